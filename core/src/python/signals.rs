//! Ctrl-C during calls that release the GIL.

use std::time::Instant;

use pyo3::prelude::*;

use crate::watch::BETWEEN_QUESTIONS;

/// Looks now and then whether Ctrl-C was pressed.
pub struct Signals(Instant);

impl Signals {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// KeyboardInterrupt if Ctrl-C was pressed.
    pub fn poll(&mut self) -> PyResult<()> {
        if self.0.elapsed().as_secs_f64() < BETWEEN_QUESTIONS {
            return Ok(());
        }
        self.0 = Instant::now();
        Python::attach(|py| py.check_signals())
    }
}
