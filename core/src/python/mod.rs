//! What Python sees: arguments are checked and copied here, and results become arrays.
//!
//! Arrays are copied, so that nobody can change them while the GIL is released.

mod anneal;
mod arrays;
mod exact;
mod incremental;
mod instance;
mod remaining;
mod steady;

use pyo3::prelude::*;

/// The core of streamplace; see `streamsim/_core.pyi`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    instance::add(module)?;
    steady::add(module)?;
    incremental::add(module)?;
    anneal::add(module)?;
    exact::add(module)
}
