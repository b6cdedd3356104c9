//! `coarsening` and `partition` for Python.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::anneal::read_level;
use super::arrays::{Column, Rows, ids, table_of, wrong};
use super::flow::to_ints;
use crate::anneal::level::{Entry, Level};
use crate::coarsening::Entries;
use crate::instance::{Id, indices, length};
use crate::partition;

/// Columns `start` to `taken_tuples` of a level whose units are the n operators.
#[pyfunction]
fn level_entries<'py>(
    py: Python<'py>,
    n: usize,
    source: Column<i32>,
    target: Column<i32>,
    traffic: Column<f64>,
    tuples: Column<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let (source, target) = (ids(source.0)?, ids(target.0)?);
    let (m, counted) = (source.len(), tuples.0.len());
    length("target", target.len(), m)
        .and_then(|()| length("traffic", traffic.0.len(), m))
        .and_then(|()| length("tuples", counted, if counted == 0 { 0 } else { m }))
        .and_then(|()| indices("source", &source, n))
        .and_then(|()| indices("target", &target, n))
        .map_err(wrong)?;
    let found = PyDict::new(py);
    write_entries(&found, &Entries::of_streams(n, &source, &target, &traffic.0, &tuples.0))?;
    Ok(found)
}

/// Columns of a level whose units are groups of units that differ from those of the level.
#[pyfunction]
fn contracted<'py>(
    py: Python<'py>,
    level: &Bound<'py, PyAny>,
    group: Column<i32>,
    n_groups: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (level, group) = (read_level(level)?, ids(group.0)?);
    length("group", group.len(), level.n_units())
        .and_then(|()| indices("group", &group, n_groups))
        .map_err(wrong)?;
    let coarser = py.detach(|| level.contracted(&group, n_groups));
    let Level { load, core, start, entries, tuples, kind, rivals, memory, .. } = coarser;
    let found = PyDict::new(py);
    found.set_item("load", table_of(py, load)?)?;
    found.set_item("core", table_of(py, core)?)?;
    found.set_item("kind", to_ints(py, &kind))?;
    found.set_item("memory", memory.into_pyarray(py))?;
    let (start_of_rivals, rivals) = rivals.columns();
    found.set_item("rival_start", longs(py, start_of_rivals))?;
    found.set_item("rival", to_ints(py, rivals))?;
    write_entries(&found, &Entries { start, entries, tuples })?;
    Ok(found)
}

fn write_entries(found: &Bound<'_, PyDict>, of: &Entries) -> PyResult<()> {
    let py = found.py();
    found.set_item("start", longs(py, &of.start))?;
    let peers: Vec<Id> = of.entries.iter().map(|entry| entry.peer).collect();
    found.set_item("peer", to_ints(py, &peers))?;
    let flows =
        |of_entry: fn(&Entry) -> f64| PyArray1::from_iter(py, of.entries.iter().map(of_entry));
    found.set_item("sent", flows(|entry| entry.sent))?;
    found.set_item("taken", flows(|entry| entry.taken))?;
    let tuples =
        |of_both: fn(&(f64, f64)) -> f64| PyArray1::from_iter(py, of.tuples.iter().map(of_both));
    found.set_item("sent_tuples", tuples(|both| both.0))?;
    found.set_item("taken_tuples", tuples(|both| both.1))?;
    Ok(())
}

/// Device of every part [K] after exchanges that lower the strain on links.
#[pyfunction]
fn exchanged_parts<'py>(
    py: Python<'py>,
    traffic: Rows<f64>,
    wire: Rows<f64>,
    kind: Column<i32>,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (kind, k) = (ids(kind.0)?, traffic.0.rows());
    let sizes = [traffic.0.columns(), wire.0.rows(), wire.0.columns(), kind.len()];
    if sizes != [k; 4] {
        return Err(wrong(format!("traffic, wire or kind are not of {k} parts")));
    }
    let at = py.detach(|| partition::exchanged(&traffic.0, &wire.0, &kind));
    Ok(to_ints(py, &at))
}

fn longs<'py>(py: Python<'py>, values: &[Id]) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_iter(py, values.iter().map(|&value| i64::from(value)))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(level_entries, module)?)?;
    module.add_function(wrap_pyfunction!(contracted, module)?)?;
    module.add_function(wrap_pyfunction!(exchanged_parts, module)?)
}
