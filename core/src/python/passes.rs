//! `passes` for Python.

use numpy::{Element, IntoPyArray, PyArray1, PyArrayDescr, PyArrayDescrMethods, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict;

use super::arrays::{Array1, Array2, Column, Rows, View, id_or_none, table_of, to_ints, wrong};
use super::instance::{Columns, Problem};
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
        let found = read(one_pass)?;
        found.check().map_err(wrong)?;
        Ok(Self(found))
    }
}

/// A record of `streamsim.passes.compiled.OPERATOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct OperatorRecord {
    priority: f64,
    level: i32,
    inputs: i32,
    out_start: i64,
    out_end: i64,
}

/// A record of `streamsim.passes.compiled.STREAM`.
#[repr(C)]
#[derive(Clone, Copy)]
struct StreamRecord {
    size: f64,
    tuples: f64,
    source: i32,
    target: i32,
    first: i64,
    more: i64,
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

record!(OperatorRecord: "priority" "f8", "level" "i4", "inputs" "i4", "out_start" "i8", "out_end" "i8");
record!(StreamRecord: "size" "f8", "tuples" "f8", "source" "i4", "target" "i4", "first" "i8", "more" "i8");
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

fn read(one_pass: &Bound<'_, PyAny>) -> PyResult<passes::Pass> {
    let of = Columns(one_pass);
    let operators = of.0.getattr("operators")?.extract::<View<'_, OperatorRecord>>()?;
    let operators = operators.iter().map(|record| Operator {
        inputs: id_or_none(record.inputs),
        out_start: id_or_none(record.out_start),
        out_end: id_or_none(record.out_end),
    });
    let streams = of.0.getattr("streams")?.extract::<View<'_, StreamRecord>>()?;
    let streams = streams.iter().map(|record| Stream {
        size: record.size,
        tuples: record.tuples,
        source: id_or_none(record.source),
        target: id_or_none(record.target),
        first: id_or_none(record.first),
        more: id_or_none(record.more),
    });
    Ok(passes::Pass {
        operators: operators.collect(),
        streams: streams.collect(),
        devices: of.column("devices")?,
        links: of.table("links")?,
        work: of.table("work")?,
        order: of.ids("order")?,
        gap: of.float("gap")?,
        overhead: of.float("overhead")?,
        overhead_per_byte: of.float("overhead_per_byte")?,
    })
}

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
fn rows(name: &str, found: Rows<f64>, count: usize, size: usize) -> PyResult<Table> {
    let table = found.0;
    if table.columns() == size && (table.rows() == 1 || table.rows() == count.max(1)) {
        return Ok(table);
    }
    let (rows, columns) = (table.rows(), table.columns());
    Err(wrong(format!("{name} are {rows} × {columns}, not 1 or {count} × {size}")))
}

fn row(table: &Table, i: usize) -> &[f64] {
    table.row(i % table.rows())
}

/// Makespan of one pass under each placement.
#[pyfunction]
#[pyo3(signature = (one_pass, placements, rules, priorities, work_factors, send_factors))]
fn makespans<'py>(
    py: Python<'py>,
    one_pass: &Bound<'py, Pass>,
    placements: Rows<i32>,
    rules: Rules,
    priorities: Rows<f64>,
    work_factors: Rows<f64>,
    send_factors: Rows<f64>,
) -> PyResult<Array1<'py, f64>> {
    let (pass, rules) = (&one_pass.get().0, rules.read()?);
    let (n, m) = (pass.operators.len(), pass.streams.len());
    let placements = placements.devices(n, pass.devices.len())?;
    let count = placements.rows();
    let priorities = rows("priorities", priorities, count, n)?;
    let work = rows("work_factors", work_factors, count, n)?;
    let sending = rows("send_factors", send_factors, count, m)?;
    let found = py.detach(|| {
        let mut simulator = Simulator::new(pass, rules, priorities.row(0));
        let makespan = |i: usize| {
            if priorities.rows() > 1 {
                simulator.set_priority(priorities.row(i));
            }
            let noise = Noise { work: row(&work, i), sending: row(&sending, i) };
            simulator.noisy_makespan(placements.row(i), noise)
        };
        (0..count).map(makespan).collect::<Vec<_>>()
    });
    Ok(found.into_pyarray(py))
}

/// Makespan and times of one pass; see `streamsim._core`.
#[pyfunction]
fn pass_times<'py>(
    py: Python<'py>,
    one_pass: &Bound<'py, Pass>,
    placement: Column<i32>,
    rules: Rules,
    priority: Column<f64>,
    work_factor: Column<f64>,
    send_factor: Column<f64>,
) -> PyResult<(f64, Array2<'py, f64>, Array2<'py, f64>)> {
    let (pass, rules) = (&one_pass.get().0, rules.read()?);
    let (n, m) = (pass.operators.len(), pass.streams.len());
    let placement = placement.devices(n, pass.devices.len())?;
    let mut simulator = Simulator::new(pass, rules, &priority.of("priority", n)?);
    let work = work_factor.of("work_factor", n)?;
    let sending = send_factor.of("send_factor", m)?;
    let noise = Noise { work: &work, sending: &sending };
    let makespan = py.detach(|| simulator.noisy_makespan(&placement, noise));
    let (operators, streams) = (simulator.operators(), simulator.streams());
    let tasks = operators.iter().flat_map(|v| [v.ready, v.start, v.finish, v.work]);
    let tasks = PyArray1::from_iter(py, tasks).reshape([n, 4])?;
    let streams = streams.iter().flat_map(|e| [e.departure, e.arrival]);
    let streams = PyArray1::from_iter(py, streams).reshape([m, 2])?;
    Ok((makespan, tasks, streams))
}

/// Lower bounds of the makespan: of the longest path, and of the work.
#[pyfunction]
fn pass_bounds(
    py: Python<'_>,
    one_pass: &Bound<'_, Pass>,
    may: Rows<bool>,
    total: Column<f64>,
) -> PyResult<(f64, f64)> {
    let (pass, may) = (&one_pass.get().0, may.0);
    let total = total.of("total", pass.work.columns())?;
    if (may.rows(), may.columns()) != (pass.operators.len(), pass.devices.len()) {
        return Err(wrong("may is not operators × devices"));
    }
    let bounds = py.detach(|| passes::bounds(pass, &may, &total));
    Ok((bounds.path, bounds.work))
}

/// Longest way from each operator to an end, with mean work and transfers over a mean link.
#[pyfunction]
fn longest_to_end<'py>(
    one_pass: &Bound<'py, PyAny>,
    work: View<'py, f64>,
    latency: f64,
    seconds_per_byte: f64,
) -> PyResult<Array1<'py, f64>> {
    let of = Columns(one_pass);
    let at_ends = (of.float("gap")?, of.float("overhead")?, of.float("overhead_per_byte")?);
    let streams = of.0.getattr("streams")?.extract::<View<'_, StreamRecord>>()?;
    let ends = streams.iter().map(|record| {
        let fixed_s = fixed_seconds(record.size, record.tuples, at_ends);
        let seconds = sending_seconds(latency, record.size, seconds_per_byte, fixed_s);
        (record.source as usize, record.target as usize, seconds)
    });
    let found = passes::longest_to_end(&work, ends);
    let found = found.ok_or_else(|| wrong("streams: there is no such operator"))?;
    Ok(found.into_pyarray(one_pass.py()))
}

/// Most streams on a path to each of `n` operators.
#[pyfunction]
fn levels<'py>(
    py: Python<'py>,
    n: usize,
    source: View<'py, i32>,
    target: View<'py, i32>,
) -> PyResult<Array1<'py, i32>> {
    let ends = source.iter().zip(&*target).map(|(&u, &v)| (u as usize, v as usize));
    let found = passes::levels(n, ends).ok_or_else(|| wrong("there is no such operator"))?;
    Ok(to_ints(py, &found))
}

/// Core seconds [B, D], link seconds [B] and remote bytes [B] of one pass under each placement.
#[pyfunction]
fn pass_costs<'py>(
    py: Python<'py>,
    problem: &Bound<'py, Problem>,
    placements: Rows<i32>,
    seconds: f64,
) -> PyResult<(Array2<'py, f64>, Array1<'py, f64>, Array1<'py, f64>)> {
    let instance = &problem.get().0;
    let placements = placements.placements(instance)?;
    let costs = py.detach(|| Costs::of(instance, &placements, seconds));
    let core = table_of(py, costs.core_seconds)?;
    Ok((core, costs.link_seconds.into_pyarray(py), costs.remote_bytes.into_pyarray(py)))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Pass>()?;
    module.add_function(wrap_pyfunction!(levels, module)?)?;
    module.add_function(wrap_pyfunction!(longest_to_end, module)?)?;
    module.add_function(wrap_pyfunction!(makespans, module)?)?;
    module.add_function(wrap_pyfunction!(pass_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(pass_costs, module)?)?;
    module.add_function(wrap_pyfunction!(pass_times, module)?)
}
