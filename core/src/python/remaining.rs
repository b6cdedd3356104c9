//! The limits of a search, as Python states them; and Ctrl-C, which Python notices.

use pyo3::prelude::*;

use super::arrays::detached;
use crate::watch::{Clock, Watch};

/// Remaining seconds and evaluations of a budget, and the clock if it is not the usual one.
#[derive(FromPyObject)]
pub struct Remaining {
    seconds: Option<f64>,
    evaluations: Option<u64>,
    clock: Option<Py<PyAny>>,
}

impl Remaining {
    /// No limit but Ctrl-C.
    pub const ENDLESS: Self = Self { seconds: None, evaluations: None, clock: None };

    /// This number of evaluations, or fewer if fewer remain.
    pub fn at_most(&self, evaluations: u64) -> u64 {
        self.evaluations.map_or(evaluations, |remaining| remaining.min(evaluations))
    }

    /// Search without the GIL; an error of Ctrl-C or of the clock ends the search, and is raised.
    pub fn watched<T: Send>(&self, search: impl FnOnce(&mut Watch) -> T + Send) -> PyResult<T> {
        detached(|| {
            let (mut signal, mut failure) = (Ok(()), None);
            let interrupted = || {
                signal = Python::attach(|py| py.check_signals());
                signal.is_err()
            };
            let clock = self.clock.as_ref().map(|clock| {
                Box::new(|| {
                    let read = |py: Python<'_>| clock.bind(py).call0()?.extract();
                    Python::attach(read).unwrap_or_else(|error| {
                        failure.get_or_insert(error);
                        f64::INFINITY
                    })
                }) as Clock<'_>
            });
            let found = search(&mut Watch::new(self.seconds, clock, interrupted));
            failure.map_or(signal, Err).map(|()| found)
        })
    }
}
