//! Ctrl-C during calls that release the GIL.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(50);

/// Looks now and then whether Ctrl-C was pressed.
pub struct Signals(Instant);

impl Signals {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// KeyboardInterrupt if Ctrl-C was pressed.
    pub fn poll(&mut self) -> PyResult<()> {
        if self.0.elapsed() < EVERY {
            return Ok(());
        }
        self.0 = Instant::now();
        Python::attach(|py| py.check_signals())
    }
}
