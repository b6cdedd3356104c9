//! What Python sees: arguments are checked and copied here, and results become arrays.
//!
//! Arrays are copied, so that nobody can change them while the GIL is released. What a function or
//! method does is said in `streamsim/_core.pyi`, and where the core has it.

mod anneal;
mod arrays;
mod coarsening;
mod engine;
mod exact;
mod flow;
mod incremental;
mod instance;
mod packing;
mod passes;
mod pilot;
mod pilot_makespan;
mod remaining;
mod scheduling;
mod steady;
mod survival;

use pyo3::prelude::*;

/// The core of streamplace; see `streamsim/_core.pyi`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SOURCES", env!("CORE_SOURCES"))?;
    module.add("CAPACITY_TICKS", crate::engine::plan::TICKS)?;
    instance::add(module)?;
    flow::add(module)?;
    steady::add(module)?;
    survival::add(module)?;
    incremental::add(module)?;
    engine::add(module)?;
    passes::add(module)?;
    scheduling::add(module)?;
    anneal::add(module)?;
    exact::add(module)?;
    coarsening::add(module)?;
    packing::add(module)?;
    pilot::add(module)?;
    pilot_makespan::add(module)?;
    module.delattr("__all__") // names of the module are those in its types
}
