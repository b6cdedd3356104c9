//! `passes` for Python.

use numpy::{Element, PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict;

use super::arrays::{
    Column, View, attribute, attributes, attributes_of, detached, exports, same_in_numpy, wrong,
};
use super::instance::Problem;
use crate::check::shape;
use crate::instance::Id;
use crate::passes::{
    self, Costs, Device, Link, Network, Noise, Operator, Queue, Simulator, Stream, fixed_seconds,
    sending_seconds,
};
use crate::table::Table;

/// The core's copy of a pass.
#[pyclass(frozen, module = "streamsim._core")]
pub struct Pass(pub passes::Pass);

#[pymethods]
impl Pass {
    #[new]
    fn new(one_pass: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(one_pass, passes::Pass:
            operators streams devices links work order gap overhead overhead_per_byte
        );
        found.check()?;
        Ok(Self(found))
    }
}

/// Let numpy compare the dtype of an array with that of a structure, and read its records.
macro_rules! record {
    ($record:ident: $($field:literal $type:literal),*) => {
        unsafe impl Element for $record {
            const IS_COPY: bool = true;

            fn get_dtype(py: Python<'_>) -> Bound<'_, PyArrayDescr> {
                static DTYPE: PyOnceLock<Py<PyArrayDescr>> = PyOnceLock::new();
                let dtype = || aligned_dtype::<Self>(py, vec![$(($field, $type)),*]);
                DTYPE.get_or_init(py, || dtype().expect("numpy has dtypes")).bind(py).clone()
            }

            fn clone_ref(&self, _: Python<'_>) -> Self {
                *self
            }
        }
    };
}

record!(Operator: "priority" "f8", "level" "i4", "inputs" "i4", "out_start" "i4", "out_end" "i4");
record!(Stream: "size" "f8", "tuples" "f8", "source" "i4", "target" "i4", "first" "i4", "more" "i4");
record!(Device: "egress" "f8", "ingress" "f8", "type" "i4", "cores" "i4");
record!(Link: "latency" "f8", "link" "f8", "seconds_per_byte" "f8");

/// The dtype of these fields with the layout of C, in which `T` has them as well.
fn aligned_dtype<T>(py: Python<'_>, fields: Vec<(&str, &str)>) -> PyResult<Py<PyArrayDescr>> {
    let options = [("align", true)].into_py_dict(py)?;
    let dtype = py.import("numpy")?.getattr("dtype")?.call((fields,), Some(&options))?;
    let dtype = dtype.cast_into::<PyArrayDescr>()?;
    assert_eq!(dtype.itemsize(), size_of::<T>());
    Ok(dtype.unbind())
}

same_in_numpy!(Operator, Stream, Device, Link);
attributes!(Table<Link>);

/// Rules of a pass, as `streamsim.pass_rules.Rules`.
#[derive(FromPyObject)]
struct Rules {
    queue: String,
    network: String,
    pause: f64,
    spacing: f64,
}

impl Rules {
    fn read(self) -> PyResult<passes::Rules> {
        let queue = match self.queue.as_str() {
            "fifo" => Queue::Fifo,
            "rows" => Queue::Rows,
            "priority" | "depth" | "breadth" => Queue::Ranked,
            "order" => Queue::Line,
            other => return Err(wrong(format!("there is no queue {other:?}"))),
        };
        let network = match self.network.as_str() {
            "free" => Network::Free,
            "sender" => Network::Sender,
            "link" => Network::Link,
            "port" => Network::Port,
            "shared" => Network::Shared,
            other => return Err(wrong(format!("there is no network {other:?}"))),
        };
        Ok(passes::Rules { queue, network, pause: self.pause, spacing: self.spacing })
    }
}

/// One row for all placements, or one for each.
fn check_rows(name: &str, table: &Table, count: usize, size: usize) -> PyResult<()> {
    let rows = if table.rows() == 1 { 1 } else { count.max(1) };
    Ok(shape(name, table, rows, size)?)
}

fn row(table: &Table, i: usize) -> &[f64] {
    table.row(i % table.rows())
}

#[pyfunction]
fn makespans(
    one_pass: &Pass,
    placements: Table<i32>,
    rules: Rules,
    priorities: Table<f64>,
    work_factors: Table<f64>,
    send_factors: Table<f64>,
) -> PyResult<Column<f64>> {
    let (pass, rules) = (&one_pass.0, rules.read()?);
    let (n, m) = (pass.operators.len(), pass.streams.len());
    let placements = placements.devices(n, pass.devices.len())?;
    let count = placements.rows();
    check_rows("priorities", &priorities, count, n)?;
    check_rows("work_factors", &work_factors, count, n)?;
    check_rows("send_factors", &send_factors, count, m)?;
    Ok(Column(detached(|| {
        let mut simulator = Simulator::new(pass, rules, priorities.row(0));
        let makespan = |i: usize| {
            if priorities.rows() > 1 {
                simulator.set_priority(priorities.row(i));
            }
            let noise = Noise { work: row(&work_factors, i), sending: row(&send_factors, i) };
            simulator.noisy_makespan(placements.row(i), noise)
        };
        (0..count).map(makespan).collect()
    })))
}

#[pyfunction]
fn operator_times(
    one_pass: &Pass,
    placements: Table<i32>,
    rules: Rules,
    priority: Column<f64>,
) -> PyResult<(Table<f64>, Table<f64>, Table<i32>)> {
    let (pass, rules) = (&one_pass.0, rules.read()?);
    let n = pass.operators.len();
    let placements = placements.devices(n, pass.devices.len())?;
    let (count, priority) = (placements.rows(), priority.of("priority", n)?);
    let (mut start, mut finish, mut producer) = (vec![], vec![], vec![]);
    let ends = detached(|| {
        let mut simulator = Simulator::new(pass, rules, &priority);
        (0..count).all(|i| {
            let makespan = simulator.makespan(placements.row(i));
            let operators = simulator.operators();
            start.extend(operators.iter().map(|v| v.start));
            finish.extend(operators.iter().map(|v| v.finish));
            producer.extend(operators.iter().map(|v| v.producer().map_or(-1, |u| u as i32)));
            rules.queue != Queue::Line || makespan < f64::INFINITY
        })
    });
    if !ends {
        return Err(wrong("the order of a device contradicts the streams; correct the priorities"));
    }
    let table = |cells| Table::new(cells, count, n);
    Ok((table(start), table(finish), Table::new(producer, count, n)))
}

#[pyfunction]
fn pass_times(
    one_pass: &Pass,
    placement: Column<i32>,
    rules: Rules,
    priority: Column<f64>,
    work_factor: Column<f64>,
    send_factor: Column<f64>,
) -> PyResult<(f64, Table<f64>, Table<f64>)> {
    let (pass, rules) = (&one_pass.0, rules.read()?);
    let (n, m) = (pass.operators.len(), pass.streams.len());
    let placement = placement.devices(n, pass.devices.len())?;
    let mut simulator = Simulator::new(pass, rules, &priority.of("priority", n)?);
    let work = work_factor.of("work_factor", n)?;
    let sending = send_factor.of("send_factor", m)?;
    let noise = Noise { work: &work, sending: &sending };
    let makespan = detached(|| simulator.noisy_makespan(&placement, noise));
    let (operators, streams) = (simulator.operators(), simulator.streams());
    let tasks = operators.iter().flat_map(|v| [v.ready, v.start, v.finish, v.work]);
    let streams = streams.iter().flat_map(|e| [e.departure, e.arrival]);
    Ok((makespan, Table::new(tasks.collect(), n, 4), Table::new(streams.collect(), m, 2)))
}

#[pyfunction]
fn pass_bounds(one_pass: &Pass, may: Table<bool>, total: Column<f64>) -> PyResult<(f64, f64)> {
    let pass = &one_pass.0;
    let total = total.of("total", pass.work.columns())?;
    shape("may", &may, pass.operators.len(), pass.devices.len())?;
    let bounds = detached(|| passes::bounds(pass, &may, &total));
    Ok((bounds.path, bounds.work))
}

#[pyfunction]
fn longest_to_end(
    one_pass: &Bound<'_, PyAny>,
    work: View<'_, f64>,
    latency: f64,
    seconds_per_byte: f64,
) -> PyResult<Column<f64>> {
    let number = |name| attribute(one_pass, name);
    let at_ends = (number("gap")?, number("overhead")?, number("overhead_per_byte")?);
    let streams: View<'_, Stream> = one_pass.getattr("streams")?.extract()?;
    let ends = streams.iter().map(|record| {
        let fixed_s = fixed_seconds(record.size, record.tuples, at_ends);
        let seconds = sending_seconds(latency, record.size, seconds_per_byte, fixed_s);
        (record.source as usize, record.target as usize, seconds)
    });
    let found = passes::longest_to_end(&work, ends);
    found.map(Column).ok_or_else(|| wrong("streams: there is no such operator"))
}

#[pyfunction]
fn levels(n: usize, source: View<'_, i32>, target: View<'_, i32>) -> PyResult<Column<Id>> {
    let ends = source.iter().zip(&*target).map(|(&u, &v)| (u as usize, v as usize));
    passes::levels(n, ends).map(Column).ok_or_else(|| wrong("there is no such operator"))
}

#[pyfunction]
fn pass_costs(
    problem: &Problem,
    placements: Table<i32>,
    seconds: f64,
) -> PyResult<(Table<f64>, Column<f64>, Column<f64>)> {
    let placements = placements.placements(&problem.0)?;
    let costs = detached(|| Costs::of(&problem.0, &placements, seconds));
    Ok((costs.core_seconds, Column(costs.link_seconds), Column(costs.remote_bytes)))
}

exports!(Pass; levels longest_to_end makespans operator_times pass_bounds pass_costs pass_times);
