//! `pilot` for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{
    Attribute, Column, attribute, attributes_of, detached, devices_or_none, exports, put, wrong,
};
use super::coarsening::PyLevel;
use super::remaining::Remaining;
use crate::check::{not_negative, rising, shape};
use crate::instance::Id;
use crate::pilot::decision::Layers;
use crate::pilot::features::{Features, OF_DEVICE, OF_STEP, State};
use crate::pilot::layers::Matrix;
use crate::pilot::network::{Heads, Network, Round};
use crate::pilot::record::Record;
use crate::pilot::{order, rollouts};
use crate::table::Table;

/// Features of an object that has the columns of `streamplace.learn.models.pilot.features`.
impl<'a, 'py> FromPyObject<'a, 'py> for Features {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let level = object.getattr("level")?.getattr("compiled")?.cast_into::<PyLevel>()?;
        let (order, group) = (attribute(&object, "order")?, attribute(&object, "group")?);
        let yardstick = attribute(&object, "yardstick")?;
        Ok(Self::new(level.get().0.clone(), yardstick, order, group)?)
    }
}

impl Attribute for Matrix {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::new(&found.extract()?))
    }
}

/// Matrices that are stacked in an array.
impl Attribute for Vec<Matrix> {
    fn read(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        found.try_iter()?.map(|matrix| Matrix::read(&matrix?)).collect()
    }
}

/// The weights of pilot's network, checked.
#[pyclass(frozen, module = "streamsim._core")]
struct PilotWeights(Network);

#[pymethods]
impl PilotWeights {
    #[new]
    fn new(network: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rounds = network.getattr("rounds")?;
        let matrices = |name| attribute::<Vec<Matrix>>(&rounds, name);
        let (peer, pair, update) = (matrices("peer")?, matrices("pair")?, matrices("update")?);
        let biases: Table<f32> = attribute(&rounds, "update_bias")?;
        if [pair.len(), update.len(), biases.rows()] != [peer.len(); 3] {
            return Err(wrong("rounds have different numbers of weights"));
        }
        let parts = peer.into_iter().zip(pair).zip(update).enumerate();
        let rounds = parts.map(|(r, ((peer, pair), update))| {
            let update_bias = biases.row(r).to_vec();
            Round { peer, pair, update, update_bias }
        });
        let found = attributes_of!(network, Network:
            enter enter_bias unit unit_bias content;
            rounds: rounds.collect(),
            decision: attributes_of!(network, Layers:
                device step own mean own_bias out;
                skip: vec![]
            )
        );
        found.check()?;
        Ok(Self(found))
    }

    fn heads(&self, features: &Bound<'_, PyAny>) -> PyResult<(Table<f32>, Table<f32>)> {
        let (units, pairs) = (attribute(features, "units")?, attribute(features, "pairs")?);
        let features = features.extract()?;
        let heads = detached(|| self.0.heads(&features, &units, &pairs))?;
        Ok((heads.unit, heads.content))
    }

    #[allow(clippy::too_many_arguments)]
    fn rollouts<'py>(
        &self,
        py: Python<'py>,
        features: Features,
        unit: Table<f32>,
        content: Table<f32>,
        fixed: Table<i32>,
        uniform: Table<f32>,
        recorded: bool,
    ) -> PyResult<(Table<i32>, Column<f64>, Bound<'py, PyDict>)> {
        let (n, h) = (features.order.len(), self.0.width());
        shape("unit", &unit, n, h)?;
        shape("content", &content, n, h)?;
        let heads = Heads { unit, content };
        let (s, t, d) = (fixed.rows(), fixed.columns(), features.n_devices());
        check_decisions(&fixed, &uniform, d)?;
        let found = Remaining::ENDLESS.watched(|watch| {
            rollouts::rollouts(&features, &self.0, &heads, &fixed, &uniform, recorded, watch)
        })?;
        let sizes = [s, t, d, OF_DEVICE, OF_STEP];
        let record = record_of(py, recorded.then_some(found.record), sizes)?;
        Ok((found.chosen, Column(found.likelihood), record))
    }
}

/// Check given decisions about D devices, and numbers that decide.
pub fn check_decisions(fixed: &Table<i32>, uniform: &Table<f32>, d: usize) -> PyResult<()> {
    shape("uniform", uniform, fixed.rows(), fixed.columns())?;
    if fixed.cells().iter().any(|&device| device >= d as i32) {
        return Err(wrong(format!("a fixed device is not below {d}")));
    }
    Ok(())
}

/// Columns of a record of S rollouts of T decisions about D devices, with F and G features.
pub fn record_of<'py>(
    py: Python<'py>,
    record: Option<Record>,
    [s, t, d, f, g]: [usize; 5],
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    if let Some(Record { devices, steps, open }) = record {
        put!(
            found,
            devices: Column(devices).into_pyobject(py)?.call_method1("reshape", (s, t, d, f))?,
            steps: Column(steps).into_pyobject(py)?.call_method1("reshape", (s, t, g))?,
            open: Column(open).into_pyobject(py)?.call_method1("reshape", (s, t, d))?,
        );
    }
    Ok(found)
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
    fn new(features: Features) -> Self {
        let state = State::new(&features);
        Self { features, state }
    }

    #[getter]
    fn place(&self) -> Column<i32> {
        devices_or_none(self.state.place())
    }

    #[getter]
    fn peak(&self) -> f64 {
        self.state.peak()
    }

    fn put(&mut self, unit: usize, device: usize) -> PyResult<()> {
        self.check(unit)?;
        if device >= self.features.n_devices() {
            return Err(wrong(format!("there is no device {device}")));
        }
        self.state.remove(&self.features, unit);
        self.state.put(&self.features, unit, device);
        Ok(())
    }

    fn measure(
        &mut self,
        unit: usize,
        t: usize,
    ) -> PyResult<(Table<f32>, Column<f32>, Column<bool>)> {
        self.check(unit)?;
        let d = self.features.n_devices();
        let (mut devices, mut steps) = (Table::filled(0.0, d, OF_DEVICE), vec![0.0; OF_STEP]);
        let mut open = vec![false; d];
        self.state.write_open(&self.features, unit, &mut open);
        self.state.measure(&self.features, unit, t, None, &mut devices, &mut steps);
        Ok((devices, Column(steps), Column(open)))
    }
}

impl PilotState {
    fn check(&self, unit: usize) -> PyResult<()> {
        let n = self.state.place().len();
        if unit < n { Ok(()) } else { Err(wrong(format!("there is no unit {unit} of {n}"))) }
    }
}

#[pyfunction]
fn grown(
    start: Column<Id>,
    peer: Column<Id>,
    flow: Column<f64>,
    first: Option<u32>,
) -> PyResult<Column<Id>> {
    let (start, peer) = (start.0, peer.0);
    let (flow, n) = (flow.of("flow", peer.len())?, start.len().saturating_sub(1));
    rising("start", &start, peer.len())?;
    not_negative("flow", &flow)?;
    let is_whole = start.last().is_some_and(|&last| last as usize == peer.len());
    if !is_whole || peer.iter().chain(&first).any(|&v| v as usize >= n) {
        return Err(wrong("entries do not fit the nodes"));
    }
    Ok(Column(detached(|| order::grown(&start, &peer, &flow, first))))
}

exports!(PilotWeights PilotState; grown);
