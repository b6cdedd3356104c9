//! `exact` for Python.

use pyo3::prelude::*;

use super::arrays::{Attribute, Column, attributes_of, exports, wrong};
use super::remaining::Remaining;
use super::scheduling::Tasks;
use crate::check::each;
use crate::equation::n_resources;
use crate::exact::annealing;
use crate::exact::branching::{self, Limits, Outcome, Patterns};
use crate::exact::listing::Listing;
use crate::exact::packing;
use crate::exact::patterns::{Hub, Spread};
use crate::exact::units::Units;
use crate::exact::windows::Windows;
use crate::instance::{Id, Platform};
use crate::rivals::Rules;
use crate::table::Table;

/// Largest number of cells of placements for which memory is taken at once.
const FIRST_CELLS: usize = 1 << 20;
/// Largest number of devices over which units are spread.
const MAX_DEVICES: usize = 1 << 20;
/// Largest number of states of packings and of covered units.
const MAX_STATES: f64 = 1e7;

/// The core's copy of `streamplace.placers.exact.units.Units`.
#[pyclass(frozen, name = "Units", module = "streamsim._core")]
struct PyUnits(Units);

#[pymethods]
impl PyUnits {
    #[new]
    fn new(units: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(units, Units:
            load core source target traffic tuples start around classes;
            rules: Rules::read(units)?,
            platform: Platform::read(&units.getattr("platform")?)?
        );
        found.check()?;
        Ok(Self(found))
    }

    fn loads(&self, place: Column<i32>) -> PyResult<(Column<f64>, f64)> {
        let place = self.place(place)?;
        let mut loads = vec![0.0; n_resources(self.0.n_devices())];
        let peak = self.0.write_loads(&place, &mut loads);
        Ok((Column(loads), peak))
    }

    #[allow(clippy::too_many_arguments)]
    fn anneal(
        &self,
        start: Column<i32>,
        kind: Column<i32>,
        moves: u64,
        enough: f64,
        seed: u32,
        remaining: Remaining,
    ) -> PyResult<(Column<Id>, f64, u64)> {
        let (start, stop) = (self.place(start)?, remaining.at_most(moves));
        let kind = kind.of("kind", start.len())?;
        let found = remaining.watched(|watch| {
            annealing::anneal(&self.0, start, &kind, (moves, stop), enough, seed, watch)
        })?;
        Ok((Column(found.place), found.peak, found.moves))
    }

    fn place_below(
        &self,
        limits: &Bound<'_, PyAny>,
        nodes: u64,
        remaining: Remaining,
    ) -> PyResult<(Option<Column<Id>>, bool, u64)> {
        let patterns = limits.getattr("patterns")?;
        let patterns = attributes_of!(&patterns, Patterns: word work single field guards total);
        let below = attributes_of!(limits, Limits: full cut work power wire rank; patterns);
        below.check(&self.0)?;
        let nodes = remaining.at_most(nodes);
        let (outcome, nodes) =
            remaining.watched(|watch| branching::place_below(&self.0, &below, nodes, watch))?;
        Ok(match outcome {
            Outcome::Improved(place) => (Some(Column(place)), false, nodes),
            Outcome::Exhausted => (None, true, nodes),
            Outcome::Paused => (None, false, nodes),
        })
    }

    fn are_few(
        &self,
        most: usize,
        batch: usize,
        steps: usize,
        remaining: Remaining,
    ) -> PyResult<bool> {
        if batch == 0 || steps == 0 {
            return Err(wrong("a slice is empty"));
        }
        remaining.watched(|watch| {
            let (mut listing, mut before) = (Listing::new(&self.0), 0_usize);
            while !listing.is_over() {
                let size = listing.proceed(&self.0, (batch, steps), watch, |_, _| ());
                if before.saturating_add(size) > most || watch.is_over(0) {
                    return false;
                }
                before = before.saturating_add(batch);
            }
            true
        })
    }
}

impl PyUnits {
    /// Devices of the units in a placement.
    fn place(&self, place: Column<i32>) -> PyResult<Vec<Id>> {
        place.devices(self.0.n_units(), self.0.n_devices())
    }
}

/// All legal placements of units, in batches, each once up to swaps of equal devices.
#[pyclass(name = "Listing", module = "streamsim._core")]
struct PyListing {
    units: Py<PyUnits>,
    listing: Listing,
}

#[pymethods]
impl PyListing {
    #[new]
    fn new(units: Py<PyUnits>) -> Self {
        let listing = Listing::new(&units.get().0);
        Self { units, listing }
    }

    #[getter]
    fn is_over(&self) -> bool {
        self.listing.is_over()
    }

    fn proceed(&mut self, most: usize, steps: usize, remaining: Remaining) -> PyResult<Table<i32>> {
        let Self { units, listing } = self;
        let units = &units.get().0;
        remaining.watched(|watch| {
            let room = units.n_units().saturating_mul(most).min(FIRST_CELLS);
            let mut cells = Vec::with_capacity(room);
            let take = |place: &[Id], last| {
                cells.extend(place.iter().chain([&last]).map(|&d| d as i32));
            };
            let size = listing.proceed(units, (most, steps), watch, take);
            Table::new(cells, size, units.n_units())
        })
    }
}

#[pyfunction]
fn spread(
    hub: Hub,
    limit: f64,
    n_devices: usize,
    steps: i64,
    remaining: Remaining,
) -> PyResult<(Option<bool>, Option<Table<i64>>)> {
    if n_devices > MAX_DEVICES {
        return Err(wrong(format!("{n_devices} devices are too many")));
    }
    Ok(match remaining.watched(|watch| hub.spread(limit, n_devices, steps, watch))? {
        Spread::No => (Some(false), None),
        Spread::Unknown => (None, None),
        Spread::Yes(cells) => (Some(true), Some(Table::new(cells, n_devices, hub.n_kinds()))),
    })
}

#[pyfunction]
fn pattern_words(
    hub: Hub,
    shift: Column<Id>,
    least: f64,
    cut: f64,
    remaining: Remaining,
) -> PyResult<Option<(Column<i64>, Column<f64>)>> {
    let shift = shift.of("shift", hub.n_kinds())?;
    let found = remaining.watched(|watch| hub.words(&shift, least, cut, watch))?;
    Ok(found.map(|(words, works)| (Column(words), Column(works))))
}

#[pyfunction]
fn packs(
    sizes: Column<f64>,
    counts: Column<i64>,
    room: Column<f64>,
    remaining: Remaining,
) -> PyResult<bool> {
    let counts = checked_counts(counts.of("counts", sizes.0.len())?)?;
    remaining.watched(|watch| packing::packs(&sizes.0, &counts, &room.0, watch))
}

#[pyfunction]
fn windows_below(
    tasks: &Tasks,
    cut: f64,
    remaining: Remaining,
) -> PyResult<(Table<f64>, Table<f64>, Table<f64>)> {
    let found = remaining.watched(|watch| Windows::below(&tasks.0, cut, watch))?;
    Ok((found.head, found.tail, found.work))
}

exports!(PyUnits PyListing; spread pattern_words packs windows_below);

/// An object with the columns of `streamplace.placers.exact.peak_bounds.Hub`.
impl<'a, 'py> FromPyObject<'a, 'py> for Hub {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(&object, Self: counts work sent taken own);
        let k = found.n_kinds();
        if k == 0 {
            return Err(wrong("a hub has kinds"));
        }
        each!(length, found, k; work sent taken);
        Ok(Self { counts: checked_counts(found.counts)?, ..found })
    }
}

/// Numbers of items, with a bounded number of combinations.
fn checked_counts(counts: Vec<i64>) -> PyResult<Vec<i64>> {
    let states: f64 = counts.iter().map(|&count| count as f64 + 1.0).product();
    if counts.iter().any(|&count| count < 0) || states > MAX_STATES {
        return Err(wrong("counts are negative, or have too many combinations"));
    }
    Ok(counts)
}
