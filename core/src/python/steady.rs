//! `steady` for Python.

use pyo3::prelude::*;

use super::arrays::{Column, detached, exports};
use super::instance::Problem;
use crate::equation::n_resources;
use crate::steady;
use crate::table::Table;

#[pyfunction]
fn throughput(problem: &Problem, placements: Table<i32>) -> PyResult<Column<f64>> {
    let placements = placements.placements(&problem.0)?;
    Ok(Column(detached(|| steady::throughput(&problem.0, &placements))))
}

#[pyfunction]
fn throughput_of(problem: &Problem, placement: Column<i32>) -> PyResult<f64> {
    let placement = placement.placement(&problem.0)?;
    Ok(steady::Throughput::new(&problem.0).of(&placement))
}

#[pyfunction]
fn full_rate_loads(problem: &Problem, placement: Column<i32>) -> PyResult<Column<f64>> {
    let placement = placement.placement(&problem.0)?;
    let mut loads = vec![0.0; n_resources(problem.0.n_devices())];
    problem.0.full_rate_loads(&placement, &mut loads);
    Ok(Column(loads))
}

exports!(; throughput throughput_of full_rate_loads);
