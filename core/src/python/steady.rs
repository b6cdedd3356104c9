//! `steady` for Python.

use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::arrays::{Array1, Column, Rows};
use super::instance::Problem;
use crate::equation::n_resources;
use crate::steady;

/// Relative throughput of each placement.
#[pyfunction]
fn throughput<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    placements: Rows<i32>,
) -> PyResult<Array1<'py, f64>> {
    let instance = &problem.get().0;
    let placements = placements.placements(instance)?;
    Ok(py.detach(|| steady::throughput(instance, &placements)).into_pyarray(py))
}

/// Relative throughput of one placement.
#[pyfunction]
fn throughput_of(problem: &Bound<'_, Problem>, placement: Column<i32>) -> PyResult<f64> {
    let instance = &problem.get().0;
    let placement = placement.placement(instance)?;
    Ok(steady::Throughput::new(instance).of(&placement))
}

/// Load of every resource at full rate, in the order of the load equation.
#[pyfunction]
fn full_rate_loads<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    placement: Column<i32>,
) -> PyResult<Array1<'py, f64>> {
    let instance = &problem.get().0;
    let placement = placement.placement(instance)?;
    let mut loads = vec![0.0; n_resources(instance.n_devices())];
    instance.full_rate_loads(&placement, &mut loads);
    Ok(loads.into_pyarray(py))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(throughput, module)?)?;
    module.add_function(wrap_pyfunction!(throughput_of, module)?)?;
    module.add_function(wrap_pyfunction!(full_rate_loads, module)?)
}
