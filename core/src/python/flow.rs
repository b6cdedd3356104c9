//! `flow`, `topology`, `canonical`, `latency`, `sources` and `overload` for Python.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Array1, Array2, Column, Rows, ids, int_table_of, to_ints, wrong};
use super::instance::Problem;
use crate::flow::{Flow, Graph, rates_in_order as rates_in_order_of};
use crate::instance::{Id, indices, length};
use crate::overload::{Needs, shares};
use crate::table::Table;
use crate::{canonical, latency, topology};

/// Order, adjacency and rates of a graph: the columns of `streamsim.flow.Flow` that follow from it.
///
/// In a cycle, only `order` is there, and shorter than the number of operators.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn flow<'py>(
    py: Python<'py>,
    rate: Column<f64>,
    source: Column<i32>,
    target: Column<i32>,
    selectivity: Column<f64>,
    windows: Rows<f64>,
    joins: Column<bool>,
    inputs: Column<i64>,
) -> PyResult<Bound<'py, PyDict>> {
    let n = rate.0.len();
    let (source, target) = ends(source, target, n)?;
    let m = source.len();
    let is_whole = selectivity.0.len() == m && inputs.0.len() == m && joins.0.len() == n;
    let windows = windows.0;
    let is_there = |k: usize| windows[(k, 0)] >= 0.0 && windows[(k, 0)] < n as f64;
    if !is_whole || windows.columns() != 6 || !(0..windows.rows()).all(is_there) {
        return Err(wrong("columns of a graph do not fit"));
    }
    let graph = Graph {
        rate: rate.0,
        source,
        target,
        selectivity: selectivity.0,
        windows,
        joins: joins.0,
        inputs: inputs.0,
    };
    let flow = Flow::new(&graph);
    let found = PyDict::new(py);
    let columns = [
        ("order", flow.order),
        ("stream_index", flow.stream_index),
        ("source", flow.source),
        ("target", flow.target),
        ("out_start", flow.out_start),
        ("out_end", flow.out_end),
        ("port_start", flow.port_start),
        ("port", flow.port),
        ("in_start", flow.in_start),
        ("in_streams", flow.in_streams),
    ];
    for (name, column) in columns {
        found.set_item(name, to_ints(py, &column))?;
    }
    let columns = [
        ("selectivity", flow.selectivity),
        ("input_rate", flow.rates.input_rate),
        ("output_rate", flow.rates.output_rate),
        ("tuples", flow.rates.tuples),
        ("intake", flow.rates.intake),
    ];
    for (name, column) in columns {
        found.set_item(name, column.into_pyarray(py))?;
    }
    found.set_item("joins", flow.joins.into_pyarray(py))?;
    Ok(found)
}

/// Both ends of every stream of a graph of n operators.
pub fn ends(source: Column<i32>, target: Column<i32>, n: usize) -> PyResult<(Vec<Id>, Vec<Id>)> {
    let (source, target) = (ids(source.0)?, ids(target.0)?);
    length("target", target.len(), source.len())
        .and_then(|()| indices("source", &source, n))
        .and_then(|()| indices("target", &target, n))
        .map_err(wrong)?;
    Ok((source, target))
}

/// Tuples/s on streams and into operators, of streams that visit operators after their inputs.
#[pyfunction]
fn rates_in_order<'py>(
    py: Python<'py>,
    rate: Column<f64>,
    source: Column<i32>,
    target: Column<i32>,
    selectivity: Column<f64>,
) -> PyResult<(Array1<'py, f64>, Array1<'py, f64>)> {
    let (source, target) = ends(source, target, rate.0.len())?;
    let selectivity = selectivity.of("selectivity", source.len())?;
    let found = rates_in_order_of(&rate.0, &source, &target, &selectivity);
    Ok((found.tuples.into_pyarray(py), found.input_rate.into_pyarray(py)))
}

/// Positions by key: those of k are `positions[start[k]:start[k + 1]]`, ascending.
#[pyfunction]
fn group_by<'py>(
    py: Python<'py>,
    keys: Column<i32>,
    n: usize,
) -> PyResult<(Array1<'py, i32>, Array1<'py, i32>)> {
    let keys = ids(keys.0)?;
    indices("keys", &keys, n).map_err(wrong)?;
    let groups = topology::Groups::new(&keys, n);
    Ok((to_ints(py, &groups.start), to_ints(py, &groups.positions)))
}

/// Operators in breadth-first topological order; fewer than n if there is a cycle.
#[pyfunction]
fn topological_order<'py>(
    py: Python<'py>,
    n: usize,
    source: Column<i32>,
    target: Column<i32>,
) -> PyResult<Array1<'py, i32>> {
    let (source, target) = ends(source, target, n)?;
    Ok(to_ints(py, &topology::topological_order(n, &source, &target)))
}

/// Weighted neighbours of every vertex: start, neighbours and weights.
#[pyfunction]
fn undirected<'py>(
    py: Python<'py>,
    source: Column<i32>,
    target: Column<i32>,
    weight: Column<i64>,
    n: usize,
) -> PyResult<(Array1<'py, i64>, Array1<'py, i64>, Array1<'py, i64>)> {
    let (source, target) = ends(source, target, n)?;
    let weight = weight.of("weight", source.len())?;
    let found = topology::undirected(&source, &target, &weight, n);
    let arrays = (found.start, found.neighbour, found.weight);
    Ok((arrays.0.into_pyarray(py), arrays.1.into_pyarray(py), arrays.2.into_pyarray(py)))
}

/// Placements with equal devices renumbered by first appearance along an order.
#[pyfunction(name = "canonical")]
fn canonical_rows<'py>(
    py: Python<'py>,
    placements: Rows<i32>,
    order: Column<i32>,
    classes: Column<i32>,
) -> PyResult<Array2<'py, i32>> {
    let (rows, columns) = (placements.0.rows(), placements.0.columns());
    let (devices, order, classes) =
        (ids(placements.0.into_cells())?, ids(order.0)?, ids(classes.0)?);
    indices("order", &order, columns)
        .and_then(|()| indices("placements", &devices, classes.len()))
        .and_then(|()| indices("classes", &classes, classes.len()))
        .map_err(wrong)?;
    let found = canonical::canonical(&Table::new(devices, rows, columns), &order, &classes);
    int_table_of(py, &found)
}

/// Seconds of the longest path of one tuple, for each placement.
#[pyfunction]
fn latencies<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    placements: Rows<i32>,
) -> PyResult<Array1<'py, f64>> {
    let instance = &problem.get().0;
    let placements = placements.placements(instance)?;
    Ok(py.detach(|| latency::latencies(instance, &placements)).into_pyarray(py))
}

/// Fraction of its full input that every operator has with sources at shares.
#[pyfunction]
fn flow_at<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    shares: Column<f64>,
) -> PyResult<Array1<'py, f64>> {
    let instance = &problem.get().0;
    let shares = shares.of("shares", instance.sources.len())?;
    Ok(instance.flow_at(&shares).into_pyarray(py))
}

/// Whether tuples of each source reach one of the marked operators.
#[pyfunction]
fn leading_to<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    marked: Column<bool>,
) -> PyResult<Array1<'py, bool>> {
    let instance = &problem.get().0;
    let marked = marked.of("marked", instance.n_operators())?;
    Ok(instance.leading_to(&marked).into_pyarray(py))
}

/// What each source gets if all offer their rates; `room` beside constant loads on each device,
/// `most` the largest share by which each operator's subtasks use their cores.
#[pyfunction]
fn overloaded_shares<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    placement: Column<i32>,
    room: Column<f64>,
    most: Column<f64>,
) -> PyResult<Array1<'py, f64>> {
    let instance = &problem.get().0;
    let placement = placement.placement(instance)?;
    let room = room.of("room", instance.n_devices())?;
    let most = most.of("most", instance.n_operators())?;
    let needs = Needs::new(instance, &placement, room, most);
    Ok(py.detach(|| shares(instance, &needs)).into_pyarray(py))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(flow, module)?)?;
    module.add_function(wrap_pyfunction!(rates_in_order, module)?)?;
    module.add_function(wrap_pyfunction!(group_by, module)?)?;
    module.add_function(wrap_pyfunction!(topological_order, module)?)?;
    module.add_function(wrap_pyfunction!(undirected, module)?)?;
    module.add_function(wrap_pyfunction!(canonical_rows, module)?)?;
    module.add_function(wrap_pyfunction!(latencies, module)?)?;
    module.add_function(wrap_pyfunction!(flow_at, module)?)?;
    module.add_function(wrap_pyfunction!(leading_to, module)?)?;
    module.add_function(wrap_pyfunction!(overloaded_shares, module)?)
}
