//! `pilot` for Python.

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::anneal::PyLevel;
use super::arrays::{Array1, Array2, Column, Rows, ids, table_of, to_ints, to_ints_or_none, wrong};
use super::instance::Columns;
use super::remaining::Remaining;
use crate::instance::not_negative;
use crate::pilot::features::{Features, State, device, step};
use crate::pilot::layers::Matrix;
use crate::pilot::network::{Heads, Network, Round};
use crate::pilot::record::Record;
use crate::pilot::{order, rollouts};
use crate::table::Table;

/// Features of an object that has the columns of `streamplace.learn.models.pilot.features`.
fn read_features(object: &Bound<'_, PyAny>) -> PyResult<Features> {
    let of = Columns(object);
    let level = object.getattr("level")?.getattr("compiled")?.cast_into::<PyLevel>()?;
    let (order, group) = (of.ids("order")?, of.ids("group")?);
    Features::new(level.get().0.clone(), of.float("yardstick")?, order, group).map_err(wrong)
}

/// The weights of pilot's network, checked.
#[pyclass(frozen, module = "streamsim._core")]
struct PilotWeights(Network);

#[pymethods]
impl PilotWeights {
    #[new]
    fn new(network: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = Columns(network);
        let matrix = |name: &str| PyResult::Ok(Matrix::new(&of.table(name)?));
        let turns = network.getattr("rounds")?;
        let rounds = Columns(&turns);
        let (peer, pair, update) =
            (matrices(&rounds, "peer")?, matrices(&rounds, "pair")?, matrices(&rounds, "update")?);
        let biases: Table<f32> = rounds.table("update_bias")?;
        if [pair.len(), update.len(), biases.rows()] != [peer.len(); 3] {
            return Err(wrong("rounds have different numbers of weights"));
        }
        let parts = peer.into_iter().zip(pair).zip(update).enumerate();
        let found = Network {
            enter: matrix("enter")?,
            enter_bias: of.column("enter_bias")?,
            rounds: parts
                .map(|(r, ((peer, pair), update))| Round {
                    peer,
                    pair,
                    update,
                    update_bias: biases.row(r).to_vec(),
                })
                .collect(),
            unit: matrix("unit")?,
            unit_bias: of.column("unit_bias")?,
            content: matrix("content")?,
            device: matrix("device")?,
            step: matrix("step")?,
            own: matrix("own")?,
            mean: matrix("mean")?,
            own_bias: of.column("own_bias")?,
            out: of.column("out")?,
        };
        found.check().map_err(wrong)?;
        Ok(Self(found))
    }

    /// Outputs for the units of a problem: parts of the first layer, and contents; [U, H] each.
    fn heads<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, PyAny>,
    ) -> PyResult<(Array2<'py, f32>, Array2<'py, f32>)> {
        let of = Columns(features);
        let (units, pairs) = (of.table("units")?, of.table("pairs")?);
        let features = read_features(features)?;
        let heads = py.detach(|| self.0.heads(&features, &units, &pairs)).map_err(wrong)?;
        Ok((table_of(py, heads.unit)?, table_of(py, heads.content)?))
    }

    /// Devices [S, T], log-probabilities [S], and inputs by column, if they are `recorded`.
    #[allow(clippy::too_many_arguments)]
    fn rollouts<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, PyAny>,
        unit: Rows<f32>,
        content: Rows<f32>,
        fixed: Rows<i32>,
        uniform: Rows<f32>,
        recorded: bool,
    ) -> PyResult<(Array2<'py, i32>, Array1<'py, f64>, Bound<'py, PyDict>)> {
        let features = read_features(features)?;
        let (fixed, uniform) = (fixed.0, uniform.0);
        let heads = Heads { unit: unit.0, content: content.0 };
        let size = (features.order.len(), self.0.width());
        for table in [&heads.unit, &heads.content] {
            if (table.rows(), table.columns()) != size {
                return Err(wrong("heads do not fit the units and the network"));
            }
        }
        let (s, t, d) = (fixed.rows(), fixed.columns(), features.n_devices());
        if (uniform.rows(), uniform.columns()) != (s, t) {
            return Err(wrong("fixed and uniform are of different shapes"));
        }
        if fixed.cells().iter().any(|&device| device >= d as i32) {
            return Err(wrong(format!("a fixed device is not below {d}")));
        }
        let found = Remaining::ENDLESS.watched(py, |watch| {
            rollouts::rollouts(&features, &self.0, &heads, &fixed, &uniform, recorded, watch)
        })?;
        let shape = [s, t, d, device::N, step::N];
        let record = record_of(py, recorded.then_some(found.record), shape)?;
        Ok((table_of(py, found.chosen)?, found.likelihood.into_pyarray(py), record))
    }
}

/// Columns of a record of S rollouts of T decisions about D devices, with F and G features.
pub fn record_of<'py>(
    py: Python<'py>,
    record: Option<Record>,
    [s, t, d, f, g]: [usize; 5],
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    if let Some(Record { devices, steps, open }) = record {
        found.set_item("devices", devices.into_pyarray(py).reshape([s, t, d, f])?)?;
        found.set_item("steps", steps.into_pyarray(py).reshape([s, t, g])?)?;
        found.set_item("open", open.into_pyarray(py).reshape([s, t, d])?)?;
    }
    Ok(found)
}

/// Matrices that are stacked in an array.
fn matrices(of: &Columns<'_, '_>, name: &str) -> PyResult<Vec<Matrix>> {
    let (shape, cells) = of.any::<f32>(name, 3)?;
    let size = (shape[1] * shape[2]).max(1);
    let each = cells.chunks_exact(size);
    let matrix = |cells: &[f32]| Matrix::new(&Table::new(cells.to_vec(), shape[1], shape[2]));
    Ok(each.map(matrix).collect())
}

/// A partial placement, and what pilot sees of it.
#[pyclass(module = "streamsim._core")]
struct PilotState {
    features: Features,
    state: State,
}

#[pymethods]
impl PilotState {
    #[new]
    fn new(features: &Bound<'_, PyAny>) -> PyResult<Self> {
        let features = read_features(features)?;
        let state = State::new(&features);
        Ok(Self { features, state })
    }

    /// Device of every unit, -1 while it has none.
    #[getter]
    fn place<'py>(&self, py: Python<'py>) -> Array1<'py, i32> {
        to_ints_or_none(py, self.state.place())
    }

    /// Load of the fullest resource, in yardsticks.
    #[getter]
    fn peak(&self) -> f64 {
        self.state.peak()
    }

    /// Place a unit on a device, from where it is.
    fn put(&mut self, unit: usize, device: usize) -> PyResult<()> {
        self.check(unit)?;
        if device >= self.features.n_devices() {
            return Err(wrong(format!("there is no device {device}")));
        }
        self.state.remove(&self.features, unit);
        self.state.put(&self.features, unit, device);
        Ok(())
    }

    /// Features of devices [D, 20] for a unit, of decision t [6], and which devices are open [D].
    fn measure<'py>(
        &mut self,
        py: Python<'py>,
        unit: usize,
        t: usize,
    ) -> PyResult<(Array2<'py, f32>, Array1<'py, f32>, Array1<'py, bool>)> {
        self.check(unit)?;
        let d = self.features.n_devices();
        let (mut devices, mut steps) = (Table::filled(0.0, d, device::N), vec![0.0; step::N]);
        let mut open = vec![false; d];
        self.state.write_open(&self.features, unit, &mut open);
        self.state.measure(&self.features, unit, t, None, &mut devices, &mut steps);
        Ok((table_of(py, devices)?, steps.into_pyarray(py), open.into_pyarray(py)))
    }
}

impl PilotState {
    fn check(&self, unit: usize) -> PyResult<()> {
        let n = self.state.place().len();
        if unit < n { Ok(()) } else { Err(wrong(format!("there is no unit {unit} of {n}"))) }
    }
}

/// Nodes from `first` on, always the one to which most flow leads from those before.
#[pyfunction]
fn grown<'py>(
    py: Python<'py>,
    start: Column<i64>,
    peer: Column<i32>,
    flow: Column<f64>,
    first: Option<u32>,
) -> PyResult<Array1<'py, i32>> {
    let (start, peer, flow) = (ids(start.0)?, ids(peer.0)?, flow.0);
    let n = start.len().saturating_sub(1);
    let rises = start.first() == Some(&0) && start.is_sorted();
    let fits = start.last().is_some_and(|&last| last as usize == peer.len());
    let is_there = |&v: &u32| (v as usize) < n;
    if !rises || !fits || flow.len() != peer.len() || !peer.iter().chain(&first).all(is_there) {
        return Err(wrong("entries do not fit the nodes"));
    }
    not_negative("flow", &flow).map_err(wrong)?;
    let order = py.detach(|| order::grown(&start, &peer, &flow, first));
    Ok(to_ints(py, &order))
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PilotWeights>()?;
    module.add_class::<PilotState>()?;
    module.add_function(wrap_pyfunction!(grown, module)?)
}
