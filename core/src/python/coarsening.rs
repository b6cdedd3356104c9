//! `coarsening` and `partition` for Python.

use numpy::{IntoPyArray, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Array1, Column, Rows, ids, table_of, to_ints, to_longs, wrong};
use super::flow::ends;
use crate::anneal::level::Level;
use crate::coarsening::Streams;
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
    let (source, target) = ends(source, target, n)?;
    let (m, counted) = (source.len(), tuples.0.len());
    let traffic = traffic.of("traffic", m)?;
    let tuples = tuples.of("tuples", if counted == 0 { 0 } else { m })?;
    let streams = Streams::new(n, &source, &target, &traffic, &tuples);
    let found = PyDict::new(py);
    write_streams(&found, streams)?;
    Ok(found)
}

/// Columns of a level that differ from those of the level whose units it merges.
pub fn merged_columns<'py>(py: Python<'py>, level: &Level) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("load", table_of(py, level.load.clone())?)?;
    found.set_item("core", table_of(py, level.core.clone())?)?;
    found.set_item("kind", to_ints(py, &level.kind))?;
    found.set_item("memory", level.memory.to_pyarray(py))?;
    let (start_of_rivals, rivals) = level.rivals.columns();
    found.set_item("rival_start", to_longs(py, start_of_rivals))?;
    found.set_item("rival", to_ints(py, rivals))?;
    write_streams(&found, Streams::of(level))?;
    Ok(found)
}

fn write_streams(found: &Bound<'_, PyDict>, streams: Streams) -> PyResult<()> {
    let py = found.py();
    let Streams { start, peer, sent, taken, sent_tuples, taken_tuples } = streams;
    found.set_item("start", to_longs(py, &start))?;
    found.set_item("peer", to_ints(py, &peer))?;
    found.set_item("sent", sent.into_pyarray(py))?;
    found.set_item("taken", taken.into_pyarray(py))?;
    found.set_item("sent_tuples", sent_tuples.into_pyarray(py))?;
    found.set_item("taken_tuples", taken_tuples.into_pyarray(py))
}

/// Device of every part [K] after exchanges that lower the strain on links.
#[pyfunction]
fn exchanged_parts<'py>(
    py: Python<'py>,
    traffic: Rows<f64>,
    wire: Rows<f64>,
    kind: Column<i32>,
) -> PyResult<Array1<'py, i32>> {
    let (kind, k) = (ids(kind.0)?, traffic.0.rows());
    let sizes = [traffic.0.columns(), wire.0.rows(), wire.0.columns(), kind.len()];
    if sizes != [k; 4] {
        return Err(wrong(format!("traffic, wire or kind are not of {k} parts")));
    }
    let at = py.detach(|| partition::exchanged(&traffic.0, &wire.0, &kind));
    Ok(to_ints(py, &at))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(level_entries, module)?)?;
    module.add_function(wrap_pyfunction!(exchanged_parts, module)?)
}
