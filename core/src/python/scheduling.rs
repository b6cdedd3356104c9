//! `scheduling` for Python.

use pyo3::prelude::*;

use super::arrays::{Attribute, Column, attributes_of, detached, exports, wrong};
use crate::check::shape;
use crate::instance::{Id, NONE};
use crate::rivals::Rules;
use crate::scheduling::{self, Inserter, ListSchedule, Rule};
use crate::table::Table;
use crate::topology::Adjacency;

/// Devices, starts and finishes of tasks.
type Scheduled = (Column<Id>, Column<f64>, Column<f64>);

/// The core's copy of the tasks of a pass.
#[pyclass(frozen, module = "streamsim._core")]
pub struct Tasks(pub scheduling::Tasks);

#[pymethods]
impl Tasks {
    #[new]
    fn new(tasks: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(tasks, scheduling::Tasks:
            work size fixed_s latency wire core_start unit member_start members;
            graph: Adjacency::read(tasks)?,
            rules: Rules::read(tasks)?
        );
        found.check()?;
        Ok(Self(found))
    }
}

impl Tasks {
    /// A number for every task.
    fn column<T>(&self, name: &str, found: Column<T>) -> PyResult<Vec<T>> {
        found.of(name, self.0.n_tasks())
    }
}

/// Rule for choosing a device, as `streamplace.scheduling.insertion.Choice`.
#[derive(FromPyObject)]
struct Choice {
    ahead: Table<f64>,
    forced: Column<i32>,
    insertion: bool,
}

impl Choice {
    fn of(self, tasks: &scheduling::Tasks) -> PyResult<scheduling::Choice> {
        let (n, d, ahead) = (tasks.n_tasks(), tasks.n_devices(), self.ahead);
        let ahead = (ahead.rows() > 0).then_some(ahead);
        if let Some(ahead) = &ahead {
            shape("ahead", ahead, n, d)?;
        }
        let forced = Some(self.forced.indices_or_none("forced", n, d)?);
        let forced = forced.filter(|forced| forced.iter().any(|&device| device != NONE));
        Ok(scheduling::Choice { ahead, forced, insertion: self.insertion })
    }
}

/// A schedule, as `streamplace.scheduling.insertion.ListSchedule`.
#[derive(FromPyObject)]
struct Given {
    place: Column<i32>,
    start: Column<f64>,
    finish: Column<f64>,
}

impl Given {
    /// A schedule in which every task has a device.
    fn complete(self, tasks: &Tasks) -> PyResult<ListSchedule> {
        Ok(ListSchedule {
            place: self.place.devices(tasks.0.n_tasks(), tasks.0.n_devices())?,
            start: tasks.column("start", self.start)?,
            finish: tasks.column("finish", self.finish)?,
        })
    }
}

fn columns(schedule: ListSchedule) -> Scheduled {
    (Column(schedule.place), Column(schedule.start), Column(schedule.finish))
}

#[pyfunction]
fn upward(tasks: &Tasks) -> Column<f64> {
    Column(scheduling::upward(&tasks.0))
}

#[pyfunction]
fn downward(tasks: &Tasks) -> Column<f64> {
    Column(scheduling::downward(&tasks.0))
}

#[pyfunction]
fn optimistic_costs(tasks: &Tasks) -> Table<f64> {
    detached(|| scheduling::optimistic_costs(&tasks.0))
}

#[pyfunction]
fn least_after(tasks: &Tasks) -> Table<f64> {
    detached(|| scheduling::least_after(&tasks.0))
}

#[pyfunction]
fn mean_transfer(tasks: &Tasks) -> (f64, f64) {
    tasks.0.mean_transfer()
}

#[pyfunction]
fn mean_work(tasks: &Tasks) -> Column<f64> {
    Column(tasks.0.mean_work())
}

#[pyfunction]
fn by_rank(tasks: &Tasks, rank: Column<f64>) -> PyResult<Column<Id>> {
    let rank = tasks.column("rank", rank)?;
    Ok(Column(detached(|| scheduling::by_rank(&tasks.0, &rank))))
}

#[pyfunction]
fn insert_all(tasks: &Tasks, order: Column<Id>, choice: Choice) -> PyResult<Scheduled> {
    let choice = choice.of(&tasks.0)?;
    tasks.0.check_order(&order.0)?;
    Ok(columns(detached(|| {
        let mut inserter = Inserter::new(&tasks.0);
        inserter.all(&order.0, &choice);
        inserter.into_schedule()
    })))
}

#[pyfunction]
fn by_upward_rank(tasks: &Tasks, insertion: bool) -> Scheduled {
    columns(detached(|| scheduling::by_upward_rank(&tasks.0, insertion)))
}

#[pyfunction]
fn shorter(
    tasks: &Tasks,
    rank: Column<f64>,
    choice: Choice,
    draws: Table<f64>,
    least: f64,
) -> PyResult<Option<Scheduled>> {
    let (rank, choice) = (tasks.column("rank", rank)?, choice.of(&tasks.0)?);
    shape("draws", &draws, draws.rows(), rank.len())?;
    let found = detached(|| scheduling::shorter(&tasks.0, &rank, &choice, &draws, least));
    Ok(found.map(columns))
}

#[pyfunction]
fn latest_starts(tasks: &Tasks, schedule: Given) -> PyResult<Column<f64>> {
    let schedule = schedule.complete(tasks)?;
    Ok(Column(detached(|| scheduling::latest_starts(&tasks.0, &schedule))))
}

#[pyfunction]
fn start_soonest(tasks: &Tasks, rank: Column<f64>, favourite: Column<i32>) -> PyResult<Scheduled> {
    let rank = tasks.column("rank", rank)?;
    let favourite = favourite.indices_or_none("favourite", rank.len(), rank.len())?;
    Ok(columns(detached(|| scheduling::start_soonest(&tasks.0, &rank, &favourite))))
}

#[pyfunction]
fn by_batches(tasks: &Tasks, rule: usize, rank: Column<f64>) -> PyResult<Scheduled> {
    let rank = tasks.column("rank", rank)?;
    let rules = [Rule::Least, Rule::Greatest, Rule::Harm];
    let rule = *rules.get(rule).ok_or_else(|| wrong(format!("there is no rule {rule}")))?;
    Ok(columns(detached(|| scheduling::by_batches(&tasks.0, rule, &rank))))
}

#[pyfunction]
fn earliest_device(tasks: &Tasks, schedule: Given, task: usize) -> PyResult<usize> {
    let schedule = schedule.complete(tasks)?;
    if task >= tasks.0.n_tasks() {
        return Err(wrong(format!("there is no task {task}")));
    }
    Ok(scheduling::earliest_device(&tasks.0, &schedule, task))
}

exports!(Tasks;
    by_batches by_rank by_upward_rank downward earliest_device insert_all latest_starts least_after
    mean_transfer mean_work optimistic_costs shorter start_soonest upward
);
