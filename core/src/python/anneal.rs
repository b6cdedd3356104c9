//! `anneal` for Python.

use pyo3::prelude::*;

use super::arrays::{Column, exports, wrong};
use super::coarsening::PyLevel;
use super::remaining::Remaining;
use super::scheduling::Tasks;
use crate::anneal::non_delay::NonDelay;
use crate::anneal::schedules::Annealing;
use crate::anneal::sequence::{Sequence, Tails};
use crate::anneal::walk::{Note, Settings, Walk};
use crate::check::shape;
use crate::instance::Id;
use crate::table::Table;
use crate::watch::Watch;

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
        level: Py<PyLevel>,
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
        Ok(Self { level, walk, notes: vec![] })
    }

    #[getter]
    fn best(&self) -> Column<Id> {
        Column(self.walk.best().to_vec())
    }

    #[getter]
    fn best_peak(&self) -> f64 {
        self.walk.best_peak()
    }

    fn run(&mut self, proposals: u64, enough: f64, remaining: Remaining) -> PyResult<()> {
        let Self { level, walk, notes } = self;
        let (level, proposals) = (&level.get().0, remaining.at_most(proposals));
        let search = |watch: &mut Watch| walk.run(level, proposals, enough, watch, notes);
        remaining.watched(search)
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
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
    fn new(tasks: Py<Tasks>, least: Column<f64>, moving: Table<f64>, seed: u64) -> PyResult<Self> {
        let of = &tasks.get().0;
        let n = of.n_tasks();
        if n == 0 {
            return Err(wrong("there is no task"));
        }
        if moving.rows() > 0 {
            shape("moving", &moving, n, of.n_devices())?;
        }
        let search = Annealing::new(of, least.of("least", n)?, moving, seed);
        Ok(Self { tasks, search, notes: vec![] })
    }

    #[getter]
    fn best(&self) -> f64 {
        self.search.best()
    }

    #[getter]
    fn current(&self) -> f64 {
        self.search.current()
    }

    #[getter]
    fn best_plan(&self) -> (Column<Id>, Column<Id>) {
        let (order, place) = self.search.best_plan();
        (Column(order.to_vec()), Column(place.to_vec()))
    }

    fn restart(&mut self, order: Column<Id>, place: Column<i32>) -> PyResult<()> {
        let tasks = self.tasks.get();
        let (order, place) = tasks.plan(order, place)?;
        self.search.restart(&tasks.0, &order, &place);
        Ok(())
    }

    fn run(
        &mut self,
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
        remaining.watched(|watch| search.run(tasks, counts, heat, enough, watch, notes))
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[pyfunction]
fn start_times(tasks: &Tasks, order: Column<Id>, place: Column<i32>) -> PyResult<Column<f64>> {
    let (order, place) = tasks.plan(order, place)?;
    let mut sequence = Sequence::new(&tasks.0, &order, &place, vec![0.0; order.len()]);
    Ok(Column(sequence.starts(&tasks.0)))
}

#[pyfunction]
fn held_and_eager(tasks: &Tasks, order: Column<Id>, place: Column<i32>) -> PyResult<(f64, f64)> {
    let (order, place) = tasks.plan(order, place)?;
    let tasks = &tasks.0;
    let mut sequence = Sequence::new(tasks, &order, &place, vec![0.0; order.len()]);
    let (held, _) = sequence.follow(tasks, 0, Tails::Least, f64::INFINITY);
    sequence.settle(tasks);
    Ok((held, NonDelay::new(tasks).makespan(tasks, &sequence, f64::INFINITY)))
}

impl Tasks {
    /// A topological order of all tasks, and their devices.
    fn plan(&self, order: Column<Id>, place: Column<i32>) -> PyResult<(Vec<Id>, Vec<Id>)> {
        let (n, found) = (self.0.n_tasks(), order.0.len());
        if found == 0 || found != n {
            return Err(wrong(format!("{found} tasks are in order, not {n}")));
        }
        self.0.check_order(&order.0)?;
        Ok((order.0, place.devices(n, self.0.n_devices())?))
    }
}

exports!(PyWalk PyAnnealing; start_times held_and_eager);
