//! `pilot_makespan` for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{attributes_of, exports};
use super::pilot::{check_decisions, record_of};
use super::remaining::Remaining;
use super::scheduling::Tasks;
use crate::check::shape;
use crate::instance::Id;
use crate::pilot::decision::Layers;
use crate::pilot_makespan::features::{Case, Features, OF_DEVICE, OF_STEP, Previous};
use crate::pilot_makespan::rollouts::{self, Network};
use crate::scheduling::ListSchedule;
use crate::table::Table;

/// The weights of the network of pilot for the makespan, checked.
#[pyclass(frozen, module = "streamsim._core")]
struct PilotMakespanWeights(Network);

type Scheduled = (Table<Id>, Table<f64>, Table<f64>);

#[pymethods]
impl PilotMakespanWeights {
    #[new]
    fn new(network: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(network, Network:
            device_bias;
            decision: attributes_of!(network, Layers: device step own mean own_bias out skip)
        );
        found.check()?;
        Ok(Self(found))
    }

    #[allow(clippy::too_many_arguments)]
    fn rollouts<'py>(
        &self,
        py: Python<'py>,
        tasks: &Tasks,
        features: &Bound<'py, PyAny>,
        before: &Bound<'py, PyAny>,
        fixed: Table<i32>,
        uniform: Table<f32>,
        recorded: bool,
    ) -> PyResult<(Table<i32>, Scheduled, Bound<'py, PyDict>)> {
        let tasks = &tasks.0;
        let (s, n, d) = (fixed.rows(), tasks.n_tasks(), tasks.n_devices());
        let features = attributes_of!(features, Features: after least coming going shortest);
        let before = attributes_of!(before, Previous: order place latest span loads);
        let case = Case { tasks, features: &features, before: &before };
        shape("fixed", &fixed, s, n)?;
        case.check()?;
        check_decisions(&fixed, &uniform, d)?;
        let found = Remaining::ENDLESS.watched(|watch| {
            rollouts::rollouts(case, &self.0, &fixed, &uniform, recorded, watch)
        })?;
        let schedules = found.schedules.iter();
        let place = schedules.clone().flat_map(|each| each.place.iter().copied());
        let times = |of: fn(&ListSchedule) -> &[f64]| {
            Table::new(schedules.clone().flat_map(of).copied().collect(), s, n)
        };
        let place = Table::new(place.collect(), s, n);
        let scheduled = (place, times(|each| &each.start), times(|each| &each.finish));
        let sizes = [s, n, d, OF_DEVICE, OF_STEP];
        let record = record_of(py, recorded.then_some(found.record), sizes)?;
        Ok((found.chosen, scheduled, record))
    }
}

exports!(PilotMakespanWeights; );
