//! `exact` for Python.

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;

use super::arrays::{Array1, Array2, Column, table_of, to_ints, wrong};
use super::instance::{Columns, read_platform};
use super::remaining::Remaining;
use super::scheduling::Tasks;
use crate::equation::n_resources;
use crate::exact::annealing;
use crate::exact::branching::{self, Limits, Outcome, Patterns};
use crate::exact::listing::Listing;
use crate::exact::packing;
use crate::exact::patterns::{Hub, Spread};
use crate::exact::units::Units;
use crate::exact::windows::Windows;
use crate::instance::Id;
use crate::rivals::Rivals;
use crate::watch::Watch;

/// Most cells of placements for which memory is taken at once.
const FIRST_CELLS: usize = 1 << 20;
/// Most devices over which units are spread.
const MOST_DEVICES: usize = 1 << 20;
/// Most states of packings and of covered units.
const MOST_STATES: f64 = 1e7;

/// The core's copy of `streamplace.placers.exact.units.Units`.
#[pyclass(frozen, name = "Units", module = "streamsim._core")]
struct PyUnits(Units);

#[pymethods]
impl PyUnits {
    #[new]
    fn new(units: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = Columns(units);
        let load = of.table("load")?;
        let rivals = Rivals::new(of.ids("rival_start")?, of.ids("rivals")?, load.rows());
        let found = Units {
            core: of.table("core")?,
            source: of.ids("source")?,
            target: of.ids("target")?,
            traffic: of.floats("traffic")?,
            tuples: of.floats("tuples")?,
            start: of.ids("start")?,
            around: of.ids("around")?,
            rivals: rivals.map_err(wrong)?,
            platform: read_platform(&Columns(&units.getattr("platform")?))?,
            classes: of.ids("classes")?,
            memory: of.floats("memory")?,
            room: of.floats("room")?,
            load,
        };
        found.check().map_err(wrong)?;
        Ok(Self(found))
    }

    /// Load of every resource, and the largest, single cores included.
    fn loads<'py>(&self, py: Python<'py>, place: Column<i32>) -> PyResult<(Array1<'py, f64>, f64)> {
        let place = self.place(place)?;
        let mut loads = vec![0.0; n_resources(self.0.n_devices())];
        let peak = self.0.write_loads(&place, &mut loads);
        Ok((loads.into_pyarray(py), peak))
    }

    /// Anneal a placement; the best one, its peak, and the number of moves that the clock left.
    #[allow(clippy::too_many_arguments)]
    fn anneal<'py>(
        &self,
        py: Python<'py>,
        start: Column<i32>,
        kind: Column<i32>,
        moves: u64,
        enough: f64,
        seed: u32,
        remaining: Remaining,
    ) -> PyResult<(Array1<'py, i32>, f64, u64)> {
        let (start, stop) = (self.place(start)?, remaining.at_most(moves));
        if kind.0.len() != start.len() {
            return Err(wrong("not every unit has a kind"));
        }
        let found = remaining.watched(py, |watch| {
            annealing::anneal(&self.0, start, &kind.0, (moves, stop), enough, seed, watch)
        })?;
        Ok((to_ints(py, &found.place), found.peak, found.moves))
    }

    /// Branch and bound: a placement within the limits, whether there is none, and the nodes.
    fn place_below<'py>(
        &self,
        py: Python<'py>,
        limits: &Bound<'py, PyAny>,
        nodes: u64,
        remaining: Remaining,
    ) -> PyResult<(Option<Array1<'py, i32>>, bool, u64)> {
        let below = read_limits(limits)?;
        below.check(&self.0).map_err(wrong)?;
        let nodes = remaining.at_most(nodes);
        let (outcome, nodes) =
            remaining.watched(py, |watch| branching::place_below(&self.0, &below, nodes, watch))?;
        Ok(match outcome {
            Outcome::Improved(place) => (Some(to_ints(py, &place)), false, nodes),
            Outcome::Exhausted => (None, true, nodes),
            Outcome::Paused => (None, false, nodes),
        })
    }

    /// Whether there are at most so many placements, found in slices of `batch` and `steps`.
    fn are_few(
        &self,
        py: Python<'_>,
        most: usize,
        batch: usize,
        steps: usize,
        remaining: Remaining,
    ) -> PyResult<bool> {
        if batch == 0 || steps == 0 {
            return Err(wrong("a slice is empty"));
        }
        remaining.watched(py, |watch| {
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
    fn new(units: &Bound<'_, PyUnits>) -> Self {
        Self { units: units.clone().unbind(), listing: Listing::new(&units.get().0) }
    }

    /// Whether there are no more placements.
    #[getter]
    fn is_over(&self) -> bool {
        self.listing.is_over()
    }

    /// The next placements, at most `most` in at most so many steps.
    fn proceed<'py>(
        &mut self,
        py: Python<'py>,
        most: usize,
        steps: usize,
        remaining: Remaining,
    ) -> PyResult<Array2<'py, i32>> {
        let Self { units, listing } = self;
        let units = &units.get().0;
        let (size, cells) = remaining.watched(py, |watch| {
            let room = units.n_units().saturating_mul(most).min(FIRST_CELLS);
            let mut cells = Vec::with_capacity(room);
            let take = |place: &[Id], last| {
                cells.extend(place.iter().chain([&last]).map(|&d| d as i32));
            };
            (listing.proceed(units, (most, steps), watch, take), cells)
        })?;
        cells.into_pyarray(py).reshape([size, units.n_units()])
    }
}

/// Whether all loads can be at most a limit; none if that is unknown. If so, also the pattern of
/// each device.
#[pyfunction]
fn spread<'py>(
    py: Python<'py>,
    hub: &Bound<'py, PyAny>,
    limit: f64,
    n_devices: usize,
    steps: i64,
    remaining: Remaining,
) -> PyResult<(Option<bool>, Option<Array2<'py, i64>>)> {
    let hub = read_hub(hub)?;
    if n_devices > MOST_DEVICES {
        return Err(wrong(format!("{n_devices} devices are too many")));
    }
    let answer = remaining.watched(py, |watch| hub.spread(limit, n_devices, steps, watch))?;
    Ok(match answer {
        Spread::No => (Some(false), None),
        Spread::Unknown => (None, None),
        Spread::Yes(rows) => {
            let rows = rows.into_pyarray(py).reshape([n_devices, hub.n_kinds()])?;
            (Some(true), Some(rows))
        }
    })
}

/// Words and work of all patterns from `least` to the cut; none if there are too many.
#[pyfunction]
fn pattern_words<'py>(
    py: Python<'py>,
    hub: &Bound<'py, PyAny>,
    shift: Column<i64>,
    least: f64,
    cut: f64,
    remaining: Remaining,
) -> PyResult<Option<(Array1<'py, i64>, Array1<'py, f64>)>> {
    let hub = read_hub(hub)?;
    let shift: Vec<u32> = shift.0.into_iter().filter_map(|bits| u32::try_from(bits).ok()).collect();
    if shift.len() != hub.n_kinds() {
        return Err(wrong("not every kind has its bits"));
    }
    let found = remaining.watched(py, |watch| hub.words(&shift, least, cut, watch))?;
    Ok(found.map(|(words, works)| (words.into_pyarray(py), works.into_pyarray(py))))
}

/// Whether items of some sizes fit when packed into devices in order, or deciding takes too long.
#[pyfunction]
fn packs(
    py: Python<'_>,
    sizes: Column<f64>,
    counts: Column<i64>,
    room: Column<f64>,
    remaining: Remaining,
) -> PyResult<bool> {
    let (sizes, counts, room) = (sizes.0, check_counts(counts.0)?, room.0);
    if sizes.len() != counts.len() {
        return Err(wrong("not every size has its number of items"));
    }
    let search = |watch: &mut Watch| packing::packs(&sizes, &counts, &room, watch);
    remaining.watched(py, search)
}

/// Heads, tails and work of tasks on devices in a pass below a cut.
#[pyfunction]
fn windows_below<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    cut: f64,
    remaining: Remaining,
) -> PyResult<(Array2<'py, f64>, Array2<'py, f64>, Array2<'py, f64>)> {
    let tasks = &tasks.get().0;
    let found = remaining.watched(py, |watch| Windows::below(tasks, cut, watch))?;
    Ok((table_of(py, found.head)?, table_of(py, found.tail)?, table_of(py, found.work)?))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyUnits>()?;
    module.add_class::<PyListing>()?;
    module.add_function(wrap_pyfunction!(spread, module)?)?;
    module.add_function(wrap_pyfunction!(pattern_words, module)?)?;
    module.add_function(wrap_pyfunction!(packs, module)?)?;
    module.add_function(wrap_pyfunction!(windows_below, module)?)
}

fn read_hub(hub: &Bound<'_, PyAny>) -> PyResult<Hub> {
    let of = Columns(hub);
    let counts = check_counts(of.any::<i64>("counts", 1)?.1)?;
    let (work, sent, taken) = (of.floats("work")?, of.floats("sent")?, of.floats("taken")?);
    if counts.is_empty() || [&work, &sent, &taken].iter().any(|row| row.len() != counts.len()) {
        return Err(wrong("a hub has kinds, each with its work and loads"));
    }
    Ok(Hub { counts, work, sent, taken, own: of.float("own")? })
}

/// Numbers of items, of which there are not too many combinations.
fn check_counts(counts: Vec<i64>) -> PyResult<Vec<i64>> {
    let states: f64 = counts.iter().map(|&count| count as f64 + 1.0).product();
    if counts.iter().any(|&count| count < 0) || states > MOST_STATES {
        return Err(wrong("counts are negative, or have too many combinations"));
    }
    Ok(counts)
}

fn read_limits(limits: &Bound<'_, PyAny>) -> PyResult<Limits> {
    let of = Columns(limits);
    let found = limits.getattr("patterns")?;
    let patterns = Columns(&found);
    let longs = |name: &str| Ok::<_, PyErr>(patterns.any::<i64>(name, 1)?.1);
    Ok(Limits {
        full: of.floats("full")?,
        cut: of.float("cut")?,
        work: of.floats("work")?,
        power: of.floats("power")?,
        wire: of.float("wire")?,
        patterns: Patterns {
            word: longs("word")?,
            work: patterns.floats("work")?,
            single: longs("single")?,
            field: longs("field")?,
            guards: found.getattr("guards")?.extract()?,
            total: patterns.float("total")?,
        },
        rank: of.floats("rank")?,
    })
}
