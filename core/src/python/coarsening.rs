//! `coarsening` and `partition` for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Attribute, Column, View, attributes_of, detached, exports, put, wrong};
use super::flow::check_ends;
use super::remaining::Remaining;
use crate::anneal::groups::heavy_groups;
use crate::anneal::level::Level;
use crate::check::length;
use crate::coarsening::Streams;
use crate::instance::{Id, Platform};
use crate::partition;
use crate::rivals::Rules;
use crate::table::Table;

/// The core's copy of a `streamplace.model.coarsening.Level`.
#[pyclass(frozen, name = "Level", module = "streamsim._core")]
pub struct PyLevel(pub Level);

#[pymethods]
impl PyLevel {
    #[new]
    fn new(level: &Bound<'_, PyAny>) -> PyResult<Self> {
        let streams = attributes_of!(level, Streams:
            peer sent taken sent_tuples taken_tuples; start: vec![]
        );
        let (entries, tuples) = streams.entries()?;
        let found = attributes_of!(level, Level:
            load core start kind allowed device_type ruled plain;
            entries, tuples,
            rules: Rules::read(level)?,
            platform: Platform::read(&level.getattr("platform")?)?
        );
        found.check()?;
        Ok(Self(found))
    }

    fn peaks(&self, places: Table<i32>) -> PyResult<Column<f64>> {
        let places = places.devices(self.0.n_units(), self.0.n_devices())?;
        Ok(Column(detached(|| self.0.peaks(&places))))
    }

    fn contracted<'py>(
        &self,
        py: Python<'py>,
        group: Column<Id>,
        n_groups: usize,
    ) -> PyResult<(Self, Bound<'py, PyDict>)> {
        let group = group.below("group", n_groups)?;
        length("group", &group, self.0.n_units())?;
        let coarser = detached(|| self.0.contracted(&group, n_groups));
        let (found, (start, rivals)) =
            (columns(py, Streams::of(&coarser))?, coarser.rules.rivals.columns());
        put!(found, rival_start: longs(start), rivals: Column(rivals.to_vec()));
        put!(found, load: coarser.load.clone(), core: coarser.core.clone());
        put!(found, kind: Column(coarser.kind.clone()), memory: Column(coarser.rules.memory.clone()));
        Ok((Self(coarser), found))
    }

    fn heavy_groups(
        &self,
        place: Column<i32>,
        order: Column<Id>,
        most: f64,
        remaining: Remaining,
    ) -> PyResult<(Column<Id>, usize)> {
        let (level, n) = (&self.0, self.0.n_units());
        let (place, order) = (place.devices(n, level.n_devices())?, order.below("order", n)?);
        let (group, number) =
            remaining.watched(|watch| heavy_groups(level, &place, &order, most, watch))?;
        Ok((Column(group), number))
    }
}

#[pyfunction]
fn level_entries<'py>(
    py: Python<'py>,
    n: usize,
    source: Column<Id>,
    target: Column<Id>,
    traffic: View<'py, f64>,
    tuples: View<'py, f64>,
) -> PyResult<Bound<'py, PyDict>> {
    check_ends(&source.0, &target.0, n)?;
    let m = source.0.len();
    length("traffic", &traffic, m)?;
    length("tuples", &tuples, if tuples.is_empty() { 0 } else { m })?;
    columns(py, Streams::new(n, &source.0, &target.0, &traffic, &tuples))
}

fn columns(py: Python<'_>, streams: Streams) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    put!(found, start: longs(&streams.start));
    put!(found, streams; peer sent taken sent_tuples taken_tuples);
    Ok(found)
}

/// Positions, of 64 bits.
fn longs(positions: &[Id]) -> Column<i64> {
    Column(positions.iter().map(|&position| i64::from(position)).collect())
}

#[pyfunction]
fn exchanged_parts(
    traffic: Table<f64>,
    wire: Table<f64>,
    kind: Column<Id>,
) -> PyResult<Column<Id>> {
    let k = traffic.rows();
    if [traffic.columns(), wire.rows(), wire.columns(), kind.0.len()] != [k; 4] {
        return Err(wrong(format!("traffic, wire or kind are not of {k} parts")));
    }
    Ok(Column(detached(|| partition::exchanged(&traffic, &wire, &kind.0))))
}

exports!(PyLevel; level_entries exchanged_parts);
