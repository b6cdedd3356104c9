//! `anneal` for Python.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Array1, Column, Rows, ids, to_ints, wrong};
use super::coarsening::merged_columns;
use super::instance::{Columns, read_platform};
use super::remaining::Remaining;
use super::scheduling::Tasks;
use crate::anneal::groups::heavy_groups;
use crate::anneal::level::{Entry, Level};
use crate::anneal::non_delay::NonDelay;
use crate::anneal::schedules::Annealing;
use crate::anneal::sequence::{Sequence, Tails};
use crate::anneal::walk::{Note, Settings, Walk};
use crate::instance::{Id, indices, length};
use crate::rivals::Rivals;
use crate::scheduling;
use crate::watch::Watch;

/// The core's copy of a `streamplace.model.coarsening.Level`.
#[pyclass(frozen, name = "Level", module = "streamsim._core")]
pub struct PyLevel(pub Level);

#[pymethods]
impl PyLevel {
    #[new]
    fn new(level: &Bound<'_, PyAny>) -> PyResult<Self> {
        read_level(level).map(Self)
    }

    /// Load of the fullest resource under placements of the units.
    fn peaks<'py>(&self, py: Python<'py>, places: Rows<i32>) -> PyResult<Array1<'py, f64>> {
        let places = places.devices(self.0.n_units(), self.0.n_devices())?;
        Ok(py.detach(|| self.0.peaks(&places)).into_pyarray(py))
    }

    /// The level whose units are groups of units, and its columns that differ.
    fn contracted<'py>(
        &self,
        py: Python<'py>,
        group: Column<i32>,
        n_groups: usize,
    ) -> PyResult<(Self, Bound<'py, PyDict>)> {
        let group = ids(group.0)?;
        length("group", group.len(), self.0.n_units())
            .and_then(|()| indices("group", &group, n_groups))
            .map_err(wrong)?;
        let coarser = py.detach(|| self.0.contracted(&group, n_groups));
        let columns = merged_columns(py, &coarser)?;
        Ok((Self(coarser), columns))
    }

    /// Group of every unit, by the heaviest traffic, and the number of groups.
    fn heavy_groups<'py>(
        &self,
        py: Python<'py>,
        place: Column<i32>,
        order: Column<i64>,
        most: f64,
        remaining: Remaining,
    ) -> PyResult<(Array1<'py, i32>, usize)> {
        let level = &self.0;
        let place = place.devices(level.n_units(), level.n_devices())?;
        let order = ids(order.0)?;
        indices("order", &order, level.n_units()).map_err(wrong)?;
        let search = |watch: &mut Watch| heavy_groups(level, &place, &order, most, watch);
        let (group, number) = remaining.watched(py, search)?;
        Ok((to_ints(py, &group), number))
    }
}

/// An annealing of the placement of units, which can be continued.
#[pyclass(name = "Walk", module = "streamsim._core")]
struct PyWalk {
    level: Py<PyLevel>,
    walk: Walk,
    notes: Vec<Note>,
}

#[pymethods]
impl PyWalk {
    #[new]
    #[pyo3(signature = (
        level, place, seed, first_round, *, mix, slack, tighten = 1.0, heat = 1.0, sweep = false
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        level: &Bound<'_, PyLevel>,
        place: Column<i32>,
        seed: u64,
        first_round: u32,
        mix: (f64, f64, f64),
        slack: f64,
        tighten: f64,
        heat: f64,
        sweep: bool,
    ) -> PyResult<Self> {
        let units = &level.get().0;
        let place = place.devices(units.n_units(), units.n_devices())?;
        let (clusters, swaps, beside) = mix;
        let how = Settings { clusters, swaps, beside, slack, tighten, heat, sweep };
        let walk = Walk::new(units, place, seed, first_round, how);
        Ok(Self { level: level.clone().unbind(), walk, notes: vec![] })
    }

    /// Device of every unit in the best placement so far.
    #[getter]
    fn best<'py>(&self, py: Python<'py>) -> Array1<'py, i32> {
        to_ints(py, self.walk.best())
    }

    /// Load of its fullest resource.
    #[getter]
    fn best_peak(&self) -> f64 {
        self.walk.best_peak()
    }

    /// Propose moves until the budget ends, that number, or a peak that is enough.
    fn run(
        &mut self,
        py: Python<'_>,
        proposals: u64,
        enough: f64,
        remaining: Remaining,
    ) -> PyResult<()> {
        let Self { level, walk, notes } = self;
        let (level, proposals) = (&level.get().0, remaining.at_most(proposals));
        let search = |watch: &mut Watch| walk.run(level, proposals, enough, watch, notes);
        remaining.watched(py, search)
    }

    /// Seconds, best peak and proposals at the improvements and at the end of the last run.
    fn take_notes(&mut self) -> Vec<(f64, f64, u64)> {
        tuples(&mut self.notes)
    }
}

/// An annealing of the schedule of a pass, which can be continued.
#[pyclass(name = "Annealing", module = "streamsim._core")]
struct PyAnnealing {
    tasks: Py<Tasks>,
    search: Annealing,
    notes: Vec<Note>,
}

#[pymethods]
impl PyAnnealing {
    #[new]
    fn new(
        tasks: &Bound<'_, Tasks>,
        least: Column<f64>,
        moving: Rows<f64>,
        seed: u64,
    ) -> PyResult<Self> {
        let of = &tasks.get().0;
        let (n, d, moving) = (of.n_tasks(), of.n_devices(), moving.0);
        if n == 0 {
            return Err(wrong("there is no task"));
        }
        if moving.rows() > 0 && (moving.rows(), moving.columns()) != (n, d) {
            return Err(wrong("moving costs are not those of these tasks"));
        }
        let search = Annealing::new(of, least.of("least", n)?, moving, seed);
        Ok(Self { tasks: tasks.clone().unbind(), search, notes: vec![] })
    }

    /// Makespan and moving cost of the best schedule so far.
    #[getter]
    fn best(&self) -> f64 {
        self.search.best()
    }

    /// Makespan and moving cost of the current schedule.
    #[getter]
    fn current(&self) -> f64 {
        self.search.current()
    }

    /// Order of the tasks in the best schedule, and their devices.
    #[getter]
    fn best_plan<'py>(&self, py: Python<'py>) -> (Array1<'py, i32>, Array1<'py, i32>) {
        let (order, place) = self.search.best_plan();
        (to_ints(py, order), to_ints(py, place))
    }

    /// Continue from another schedule.
    fn restart(&mut self, order: Column<i32>, place: Column<i32>) -> PyResult<()> {
        let tasks = &self.tasks.get().0;
        let (order, place) = plan(tasks, order, place)?;
        self.search.restart(tasks, &order, &place);
        Ok(())
    }

    /// Try moves while the temperature falls; whether all were tried before the best was enough.
    fn run(
        &mut self,
        py: Python<'_>,
        moves: u64,
        temperature: f64,
        cooling: f64,
        enough: f64,
        remaining: Remaining,
    ) -> PyResult<bool> {
        let Self { tasks, search, notes } = self;
        let (tasks, counts) = (&tasks.get().0, (moves, remaining.at_most(moves)));
        if !search.has_schedule() {
            return Err(wrong("there is no schedule yet; restart from one"));
        }
        let heat = (temperature, cooling);
        remaining.watched(py, |watch| search.run(tasks, counts, heat, enough, watch, notes))
    }

    /// Seconds, best value and moves at the improvements and at the end of the last run.
    fn take_notes(&mut self) -> Vec<(f64, f64, u64)> {
        tuples(&mut self.notes)
    }
}

/// Start of every task whose device holds the order.
#[pyfunction]
fn start_times<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    order: Column<i32>,
    place: Column<i32>,
) -> PyResult<Array1<'py, f64>> {
    let tasks = &tasks.get().0;
    let (order, place) = plan(tasks, order, place)?;
    let mut sequence = Sequence::new(tasks, &order, &place, vec![0.0; order.len()]);
    Ok(sequence.starts(tasks).into_pyarray(py))
}

/// Makespans where devices hold the order, and where no core waits while a task is ready.
#[pyfunction]
fn held_and_eager(
    tasks: &Bound<'_, Tasks>,
    order: Column<i32>,
    place: Column<i32>,
) -> PyResult<(f64, f64)> {
    let tasks = &tasks.get().0;
    let (order, place) = plan(tasks, order, place)?;
    let mut sequence = Sequence::new(tasks, &order, &place, vec![0.0; order.len()]);
    let (held, _) = sequence.follow(tasks, 0, Tails::Least, f64::INFINITY);
    sequence.settle(tasks);
    Ok((held, NonDelay::new(tasks).makespan(tasks, &sequence, f64::INFINITY)))
}

/// A topological order of all tasks, and their devices.
fn plan(
    tasks: &scheduling::Tasks,
    order: Column<i32>,
    place: Column<i32>,
) -> PyResult<(Vec<Id>, Vec<Id>)> {
    let order = ids(order.0)?;
    if order.is_empty() || order.len() != tasks.n_tasks() {
        return Err(wrong(format!("{} tasks are in order, not {}", order.len(), tasks.n_tasks())));
    }
    tasks.check_order(&order).map_err(wrong)?;
    Ok((order, place.devices(tasks.n_tasks(), tasks.n_devices())?))
}

fn tuples(notes: &mut Vec<Note>) -> Vec<(f64, f64, u64)> {
    notes.drain(..).map(|note| (note.seconds, note.peak, note.proposals)).collect()
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLevel>()?;
    module.add_class::<PyWalk>()?;
    module.add_class::<PyAnnealing>()?;
    module.add_function(wrap_pyfunction!(start_times, module)?)?;
    module.add_function(wrap_pyfunction!(held_and_eager, module)?)
}

/// Level of an object that has the columns of `streamplace.model.coarsening.Level`, checked.
fn read_level(level: &Bound<'_, PyAny>) -> PyResult<Level> {
    let of = Columns(level);
    let (load, peer) = (of.table("load")?, of.ids("peer")?);
    let (sent, taken) = (of.floats("sent")?, of.floats("taken")?);
    if sent.len() != peer.len() || taken.len() != peer.len() {
        return Err(wrong("peer, sent and taken differ in length"));
    }
    let flows = peer.into_iter().zip(sent.into_iter().zip(taken));
    let (out, into) = (of.floats("sent_tuples")?, of.floats("taken_tuples")?);
    if out.len() != into.len() {
        return Err(wrong("sent_tuples and taken_tuples differ in length"));
    }
    let rivals = Rivals::new(of.long_ids("rival_start")?, of.ids("rival")?, load.rows());
    let found = Level {
        core: of.table("core")?,
        start: of.long_ids("start")?,
        entries: flows.map(|(peer, (sent, taken))| Entry { peer, sent, taken }).collect(),
        tuples: out.into_iter().zip(into).collect(),
        kind: of.ids("kind")?,
        allowed: of.table("allowed")?,
        rivals: rivals.map_err(wrong)?,
        device_type: of.ids("device_type")?,
        platform: read_platform(&Columns(&level.getattr("platform")?))?,
        memory: of.floats("memory")?,
        room: of.floats("room")?,
        ruled: level.getattr("ruled")?.extract()?,
        plain: level.getattr("plain")?.extract()?,
        load,
    };
    found.check().map_err(wrong)?;
    Ok(found)
}
