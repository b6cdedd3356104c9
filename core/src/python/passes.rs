//! `passes` for Python.

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use super::arrays::{
    Array1, Array2, Column, Rows, ids, ids_or_none, table_of, to_ints, to_ints_or_none, wrong,
};
use super::instance::{Columns, Problem};
use crate::passes::{
    self, Costs, Device, Link, Network, Noise, Operator, Progress, Queue, Simulator, Stream,
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

/// Fields of an array of records.
struct Records<'py>(Bound<'py, PyAny>);

impl Records<'_> {
    fn field<T: Element + Copy>(&self, name: &str, length: usize) -> PyResult<Vec<T>> {
        self.0.get_item(name)?.extract::<Column<T>>()?.of(name, length)
    }
}

fn read(one_pass: &Bound<'_, PyAny>) -> PyResult<passes::Pass> {
    let of = Columns(one_pass);
    let records = |name: &str| -> PyResult<_> {
        let found = one_pass.getattr(name)?;
        Ok((found.len()?, Records(found.call_method1("reshape", (-1,))?)))
    };
    let (d, devices) = records("devices")?;
    let (_, links) = records("links")?;
    Ok(passes::Pass {
        operators: read_operators(records("operators")?)?,
        streams: read_streams(records("streams")?)?,
        devices: read_devices(d, &devices)?,
        links: Table::new(read_links(d * d, &links)?, d, d),
        work: of.table("work")?,
        order: of.ids("order")?,
        gap: of.float("gap")?,
        overhead: of.float("overhead")?,
        overhead_per_byte: of.float("overhead_per_byte")?,
    })
}

fn read_operators((n, records): (usize, Records<'_>)) -> PyResult<Vec<Operator>> {
    let inputs = ids(records.field::<i32>("inputs", n)?)?;
    let (start, end) = (records.field("out_start", n)?, records.field("out_end", n)?);
    let (start, end) = (ids::<i64>(start)?, ids::<i64>(end)?);
    let rows = inputs.into_iter().zip(start).zip(end);
    let operator = |((inputs, out_start), out_end)| Operator { inputs, out_start, out_end };
    Ok(rows.map(operator).collect())
}

fn read_streams((m, records): (usize, Records<'_>)) -> PyResult<Vec<Stream>> {
    let (size, tuples) = (records.field("size", m)?, records.field("tuples", m)?);
    let source = ids(records.field::<i32>("source", m)?)?;
    let target = ids(records.field::<i32>("target", m)?)?;
    let first = ids(records.field::<i64>("first", m)?)?;
    let more = ids_or_none(&records.field::<i64>("more", m)?);
    let stream = |e: usize| Stream {
        size: size[e],
        tuples: tuples[e],
        source: source[e],
        target: target[e],
        first: first[e],
        more: more[e],
    };
    Ok((0..m).map(stream).collect())
}

fn read_devices(d: usize, records: &Records<'_>) -> PyResult<Vec<Device>> {
    let (egress, ingress) = (records.field("egress", d)?, records.field("ingress", d)?);
    let kind = ids(records.field::<i32>("type", d)?)?;
    let cores = ids(records.field::<i32>("cores", d)?)?;
    let rows = egress.into_iter().zip(ingress).zip(kind).zip(cores);
    let device = |(((egress, ingress), kind), cores)| Device { egress, ingress, kind, cores };
    Ok(rows.map(device).collect())
}

fn read_links(size: usize, records: &Records<'_>) -> PyResult<Vec<Link>> {
    let (latency, link) = (records.field("latency", size)?, records.field("link", size)?);
    let rows = latency.into_iter().zip(link).zip(records.field("seconds_per_byte", size)?);
    let link = |((latency, link), seconds_per_byte)| Link { latency, link, seconds_per_byte };
    Ok(rows.map(link).collect())
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

/// Start and finish of every operator and the producer of its last input, under each placement.
#[pyfunction]
fn operator_times<'py>(
    py: Python<'py>,
    one_pass: &Bound<'py, Pass>,
    placements: Rows<i32>,
    rules: Rules,
    priority: Column<f64>,
) -> PyResult<(Array2<'py, f64>, Array2<'py, f64>, Array2<'py, i32>)> {
    let (pass, rules) = (&one_pass.get().0, rules.read()?);
    let n = pass.operators.len();
    let placements = placements.devices(n, pass.devices.len())?;
    let priority = priority.of("priority", n)?;
    let shape = [placements.rows(), n];
    let (mut start, mut finish, mut producer) = (vec![], vec![], vec![]);
    let ends = py.detach(|| {
        let mut simulator = Simulator::new(pass, rules, &priority);
        (0..shape[0]).all(|i| {
            let makespan = simulator.makespan(placements.row(i));
            let operators = simulator.operators();
            start.extend(operators.iter().map(|v| v.start));
            finish.extend(operators.iter().map(|v| v.finish));
            producer.extend(operators.iter().map(Progress::producer));
            rules.queue != Queue::Line || makespan < f64::INFINITY
        })
    });
    if !ends {
        return Err(wrong("the order of a device contradicts the streams; correct the priorities"));
    }
    let (start, finish) = (start.into_pyarray(py), finish.into_pyarray(py));
    let producer = to_ints_or_none(py, &producer).reshape(shape)?;
    Ok((start.reshape(shape)?, finish.reshape(shape)?, producer))
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
    py: Python<'py>,
    one_pass: &Bound<'py, Pass>,
    work: Column<f64>,
    latency: f64,
    seconds_per_byte: f64,
) -> PyResult<Array1<'py, f64>> {
    let pass = &one_pass.get().0;
    let work = work.of("work", pass.operators.len())?;
    Ok(passes::longest_to_end(pass, &work, latency, seconds_per_byte).into_pyarray(py))
}

/// Most streams on a path to each operator.
#[pyfunction]
fn levels<'py>(py: Python<'py>, problem: &Bound<'py, Problem>) -> Array1<'py, i32> {
    to_ints(py, &passes::levels(&problem.get().0))
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
    module.add_function(wrap_pyfunction!(operator_times, module)?)?;
    module.add_function(wrap_pyfunction!(pass_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(pass_costs, module)?)?;
    module.add_function(wrap_pyfunction!(pass_times, module)?)
}
