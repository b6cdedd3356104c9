//! `scheduling` for Python.

use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::arrays::{Array1, Array2, Column, Rows, ids, ids_or_none, table_of, to_ints, wrong};
use super::instance::Columns;
use crate::instance::{Id, NONE};
use crate::scheduling::{self, Inserter, Rule};
use crate::table::Table;

type Arrays<'py> = (Array1<'py, i32>, Array1<'py, f64>, Array1<'py, f64>);

/// The core's copy of the tasks of a pass.
#[pyclass(frozen, module = "streamsim._core")]
pub struct Tasks(pub scheduling::Tasks);

#[pymethods]
impl Tasks {
    #[new]
    fn new(tasks: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = Columns(tasks);
        let found = scheduling::Tasks {
            work: of.table("work")?,
            order: of.ids("order")?,
            in_start: of.ids("in_start")?,
            in_stream: of.ids("in_stream")?,
            out_start: of.ids("out_start")?,
            out_end: of.ids("out_end")?,
            source: of.ids("source")?,
            target: of.ids("target")?,
            size: of.floats("size")?,
            fixed_s: of.floats("fixed_s")?,
            latency: of.table("latency")?,
            wire: of.table("wire")?,
            core_start: of.ids("core_start")?,
            unit: of.ids("unit")?,
            member_start: of.ids("member_start")?,
            members: of.ids("members")?,
            rival_start: of.ids("rival_start")?,
            rivals: of.ids("rivals")?,
            memory: of.floats("memory")?,
            room: of.floats("room")?,
        };
        found.check().map_err(wrong)?;
        Ok(Self(found))
    }
}

/// Rule for choosing a device, as `streamplace.scheduling.insertion.Choice`.
#[derive(FromPyObject)]
struct Choice {
    ahead: Rows<f64>,
    forced: Column<i32>,
    insertion: bool,
}

/// A `Choice` that fits tasks.
struct Rules {
    ahead: Option<Table>,
    forced: Option<Vec<Id>>,
    insertion: bool,
}

impl Choice {
    fn of(self, tasks: &scheduling::Tasks) -> PyResult<Rules> {
        let (n, d, ahead) = (tasks.n_tasks(), tasks.n_devices(), self.ahead.0);
        if ahead.rows() > 0 && (ahead.rows(), ahead.columns()) != (n, d) {
            return Err(wrong(format!("ahead is {} × {}", ahead.rows(), ahead.columns())));
        }
        let forced = indices_or_none("forced", self.forced, n, d)?;
        let is_free = forced.iter().all(|&device| device == NONE);
        Ok(Rules {
            ahead: (ahead.rows() > 0).then_some(ahead),
            forced: (!is_free).then_some(forced),
            insertion: self.insertion,
        })
    }
}

impl Rules {
    fn choice(&self) -> scheduling::Choice<'_> {
        let (ahead, forced) = (self.ahead.as_ref(), self.forced.as_deref());
        scheduling::Choice { ahead, forced, insertion: self.insertion }
    }
}

/// `n` indices below `end`, or `NONE`.
fn indices_or_none(name: &str, found: Column<i32>, n: usize, end: usize) -> PyResult<Vec<Id>> {
    let indices = ids_or_none(found.of(name, n)?);
    match indices.iter().find(|&&index| index != NONE && index as usize >= end) {
        Some(index) => Err(wrong(format!("{name}: {index} is not below {end}"))),
        None => Ok(indices),
    }
}

/// A schedule, as `streamplace.scheduling.insertion.ListSchedule`.
#[derive(FromPyObject)]
struct Scheduled {
    place: Column<i32>,
    start: Column<f64>,
    finish: Column<f64>,
}

impl Scheduled {
    /// A schedule in which every task has a device.
    fn complete(self, tasks: &scheduling::Tasks) -> PyResult<scheduling::ListSchedule> {
        let n = tasks.n_tasks();
        Ok(scheduling::ListSchedule {
            place: self.place.devices(n, tasks.n_devices())?,
            start: self.start.of("start", n)?,
            finish: self.finish.of("finish", n)?,
        })
    }
}

fn arrays(py: Python<'_>, schedule: scheduling::ListSchedule) -> Arrays<'_> {
    let place = to_ints(py, &schedule.place);
    (place, schedule.start.into_pyarray(py), schedule.finish.into_pyarray(py))
}

/// Time before the end of the pass, by mean work and transfers.
#[pyfunction]
fn upward<'py>(py: Python<'py>, tasks: &Bound<'py, Tasks>) -> Array1<'py, f64> {
    scheduling::upward(&tasks.get().0).into_pyarray(py)
}

/// Time after the begin of the pass, by mean work and transfers.
#[pyfunction]
fn downward<'py>(py: Python<'py>, tasks: &Bound<'py, Tasks>) -> Array1<'py, f64> {
    scheduling::downward(&tasks.get().0).into_pyarray(py)
}

/// Optimistic cost table.
#[pyfunction]
fn optimistic_costs<'py>(py: Python<'py>, tasks: &Bound<'py, Tasks>) -> PyResult<Array2<'py, f64>> {
    let tasks = &tasks.get().0;
    table_of(py, py.detach(|| scheduling::optimistic_costs(tasks)))
}

/// Least seconds from the end of every task, on each device, to the end of the pass.
#[pyfunction]
fn least_after<'py>(py: Python<'py>, tasks: &Bound<'py, Tasks>) -> PyResult<Array2<'py, f64>> {
    let tasks = &tasks.get().0;
    table_of(py, py.detach(|| scheduling::least_after(tasks)))
}

/// Latency and seconds per byte of the mean pair of devices.
#[pyfunction]
fn mean_transfer(tasks: &Bound<'_, Tasks>) -> (f64, f64) {
    tasks.get().0.mean_transfer()
}

/// Mean seconds of every task over its devices.
#[pyfunction]
fn mean_work<'py>(py: Python<'py>, tasks: &Bound<'py, Tasks>) -> Array1<'py, f64> {
    tasks.get().0.mean_work().into_pyarray(py)
}

/// Topological order by highest rank.
#[pyfunction]
fn by_rank<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    rank: Column<f64>,
) -> PyResult<Array1<'py, i32>> {
    let tasks = &tasks.get().0;
    let rank = rank.of("rank", tasks.n_tasks())?;
    Ok(to_ints(py, &py.detach(|| scheduling::by_rank(tasks, &rank))))
}

/// Schedule of tasks in an order, by insertion.
#[pyfunction]
fn insert_all<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    order: Column<i32>,
    choice: Choice,
) -> PyResult<Arrays<'py>> {
    let tasks = &tasks.get().0;
    let (order, rules) = (ids(order.0)?, choice.of(tasks)?);
    tasks.check_order(&order).map_err(wrong)?;
    let schedule = py.detach(|| {
        let mut inserter = Inserter::new(tasks);
        inserter.all(&order, rules.choice());
        inserter.into_schedule()
    });
    Ok(arrays(py, schedule))
}

/// Schedule by upward rank and insertion.
#[pyfunction]
fn by_upward_rank<'py>(py: Python<'py>, tasks: &Bound<'py, Tasks>, insertion: bool) -> Arrays<'py> {
    let tasks = &tasks.get().0;
    arrays(py, py.detach(|| scheduling::by_upward_rank(tasks, insertion)))
}

/// Shortest complete schedule with random ties that is below a length, if there is one.
#[pyfunction]
fn shorter<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    rank: Column<f64>,
    choice: Choice,
    draws: Rows<f64>,
    least: f64,
) -> PyResult<Option<Arrays<'py>>> {
    let tasks = &tasks.get().0;
    let (rank, rules) = (rank.of("rank", tasks.n_tasks())?, choice.of(tasks)?);
    if draws.0.columns() != tasks.n_tasks() {
        return Err(wrong(format!("draws have {} columns", draws.0.columns())));
    }
    let found = py.detach(|| scheduling::shorter(tasks, &rank, rules.choice(), &draws.0, least));
    Ok(found.map(|schedule| arrays(py, schedule)))
}

/// Latest start of every task with the same makespan and devices.
#[pyfunction]
fn latest_starts<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    schedule: Scheduled,
) -> PyResult<Array1<'py, f64>> {
    let tasks = &tasks.get().0;
    let schedule = schedule.complete(tasks)?;
    Ok(py.detach(|| scheduling::latest_starts(tasks, &schedule)).into_pyarray(py))
}

/// Schedule by earliest start.
#[pyfunction]
fn start_soonest<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    rank: Column<f64>,
    favourite: Column<i32>,
) -> PyResult<Arrays<'py>> {
    let tasks = &tasks.get().0;
    let n = tasks.n_tasks();
    let rank = rank.of("rank", n)?;
    let favourite = indices_or_none("favourite", favourite, n, n)?;
    let schedule = py.detach(|| scheduling::start_soonest(tasks, &rank, &favourite));
    Ok(arrays(py, schedule))
}

/// Schedule batch after batch.
#[pyfunction]
fn by_batches<'py>(
    py: Python<'py>,
    tasks: &Bound<'py, Tasks>,
    rule: i64,
    rank: Column<f64>,
) -> PyResult<Arrays<'py>> {
    let tasks = &tasks.get().0;
    let rank = rank.of("rank", tasks.n_tasks())?;
    let rule = match rule {
        0 => Rule::Least,
        1 => Rule::Greatest,
        2 => Rule::Harm,
        other => return Err(wrong(format!("there is no rule {other}"))),
    };
    Ok(arrays(py, py.detach(|| scheduling::by_batches(tasks, rule, &rank))))
}

/// Device on which one task finishes earliest, while all others keep their devices and times.
#[pyfunction]
fn earliest_device(tasks: &Bound<'_, Tasks>, schedule: Scheduled, task: i64) -> PyResult<usize> {
    let tasks = &tasks.get().0;
    let schedule = schedule.complete(tasks)?;
    match usize::try_from(task) {
        Ok(v) if v < tasks.n_tasks() => Ok(scheduling::earliest_device(tasks, &schedule, v)),
        _ => Err(wrong(format!("there is no task {task}"))),
    }
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tasks>()?;
    module.add_function(wrap_pyfunction!(by_batches, module)?)?;
    module.add_function(wrap_pyfunction!(by_rank, module)?)?;
    module.add_function(wrap_pyfunction!(by_upward_rank, module)?)?;
    module.add_function(wrap_pyfunction!(downward, module)?)?;
    module.add_function(wrap_pyfunction!(earliest_device, module)?)?;
    module.add_function(wrap_pyfunction!(insert_all, module)?)?;
    module.add_function(wrap_pyfunction!(latest_starts, module)?)?;
    module.add_function(wrap_pyfunction!(least_after, module)?)?;
    module.add_function(wrap_pyfunction!(mean_transfer, module)?)?;
    module.add_function(wrap_pyfunction!(mean_work, module)?)?;
    module.add_function(wrap_pyfunction!(optimistic_costs, module)?)?;
    module.add_function(wrap_pyfunction!(shorter, module)?)?;
    module.add_function(wrap_pyfunction!(start_soonest, module)?)?;
    module.add_function(wrap_pyfunction!(upward, module)?)
}
