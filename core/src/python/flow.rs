//! `flow`, `topology`, `canonical`, `latency`, `sources` and `overload` for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Column, View, detached, exports, put, wrong};
use super::instance::Problem;
use crate::check::{Wrong, indices, length};
use crate::flow::{Flow, Graph, rates_in_order as rates_in_order_of};
use crate::instance::Id;
use crate::overload::{Needs, shares};
use crate::table::Table;
use crate::{canonical, latency, topology};

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn flow<'py>(
    py: Python<'py>,
    rate: Column<f64>,
    source: Column<Id>,
    target: Column<Id>,
    selectivity: Column<f64>,
    windows: Table<f64>,
    joins: Column<bool>,
    inputs: Column<i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let n = rate.0.len();
    check_ends(&source.0, &target.0, n)?;
    let m = source.0.len();
    let is_whole = selectivity.0.len() == m && inputs.0.len() == m && joins.0.len() == n;
    let is_there = |k: usize| windows[(k, 0)] >= 0.0 && windows[(k, 0)] < n as f64;
    if !is_whole || windows.columns() != 6 || !(0..windows.rows()).all(is_there) {
        return Err(wrong("columns of a graph do not fit"));
    }
    let flow = Flow::new(&Graph {
        rate: rate.0,
        source: source.0,
        target: target.0,
        selectivity: selectivity.0,
        windows,
        joins: joins.0,
        inputs: inputs.0,
    });
    let found = PyDict::new(py);
    put!(found, flow; order stream_index source target selectivity joins out_start out_end
        port_start port in_start in_streams);
    put!(found, flow.rates; input_rate output_rate tuples intake);
    Ok(found)
}

/// Check both ends of every stream of a graph of n operators.
pub fn check_ends(source: &[Id], target: &[Id], n: usize) -> Result<(), Wrong> {
    length("target", target, source.len())?;
    indices("source", source, n)?;
    indices("target", target, n)
}

#[pyfunction]
fn rates_in_order(
    rate: View<'_, f64>,
    source: Column<Id>,
    target: Column<Id>,
    selectivity: Column<f64>,
) -> PyResult<(Column<f64>, Column<f64>)> {
    check_ends(&source.0, &target.0, rate.len())?;
    let selectivity = selectivity.of("selectivity", source.0.len())?;
    let found = rates_in_order_of(&rate, source.0, target.0, selectivity);
    Ok((Column(found.tuples), Column(found.input_rate)))
}

#[pyfunction]
fn group_by(keys: Column<Id>, n: usize) -> PyResult<(Column<Id>, Column<Id>)> {
    let groups = topology::Groups::new(&keys.below("keys", n)?, n);
    Ok((Column(groups.start), Column(groups.positions)))
}

#[pyfunction]
fn topological_order(n: usize, source: Column<Id>, target: Column<Id>) -> PyResult<Column<Id>> {
    check_ends(&source.0, &target.0, n)?;
    Ok(Column(topology::topological_order(n, &source.0, &target.0)))
}

#[pyfunction]
fn undirected(
    source: Column<Id>,
    target: Column<Id>,
    weight: Column<i64>,
    n: usize,
) -> PyResult<(Column<i64>, Column<i64>, Column<i64>)> {
    check_ends(&source.0, &target.0, n)?;
    let weight = weight.of("weight", source.0.len())?;
    let found = topology::undirected(&source.0, &target.0, &weight, n);
    Ok((Column(found.start), Column(found.neighbour), Column(found.weight)))
}

#[pyfunction(name = "canonical")]
fn canonical_rows(
    placements: Table<i32>,
    order: Column<Id>,
    classes: Column<Id>,
) -> PyResult<Table<Id>> {
    let (n, d) = (placements.columns(), classes.0.len());
    let (order, classes) = (order.below("order", n)?, classes.below("classes", d)?);
    Ok(canonical::canonical(&placements.devices(n, d)?, &order, &classes))
}

#[pyfunction]
fn latencies(problem: &Problem, placements: Table<i32>) -> PyResult<Column<f64>> {
    let placements = placements.placements(&problem.0)?;
    Ok(Column(detached(|| latency::latencies(&problem.0, &placements))))
}

#[pyfunction]
fn flow_at(problem: &Problem, shares: Column<f64>) -> PyResult<Column<f64>> {
    let shares = shares.of("shares", problem.0.sources.len())?;
    Ok(Column(problem.0.flow_at(&shares)))
}

#[pyfunction]
fn leading_to(problem: &Problem, marked: Column<bool>) -> PyResult<Column<bool>> {
    let marked = marked.of("marked", problem.0.n_operators())?;
    Ok(Column(problem.0.leading_to(&marked)))
}

#[pyfunction]
fn overloaded_shares(
    problem: &Problem,
    placement: Column<i32>,
    room: Column<f64>,
    most: Column<f64>,
) -> PyResult<Column<f64>> {
    let instance = &problem.0;
    let placement = placement.placement(instance)?;
    let room = room.of("room", instance.n_devices())?;
    let most = most.of("most", instance.n_operators())?;
    let needs = Needs::new(instance, &placement, room, most);
    Ok(Column(detached(|| shares(instance, &needs))))
}

exports!(;
    flow rates_in_order group_by topological_order undirected canonical_rows latencies flow_at
    leading_to overloaded_shares
);
