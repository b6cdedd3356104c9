//! `pilot_makespan` for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Array2, Rows, table_of, wrong};
use super::instance::Columns;
use super::pilot::record_of;
use super::remaining::Remaining;
use super::scheduling::Tasks;
use crate::instance::{indices, length};
use crate::pilot::layers::Matrix;
use crate::pilot_makespan::features::{Case, Features, Previous, device, step};
use crate::pilot_makespan::rollouts::{self, Network};
use crate::scheduling;
use crate::table::Table;

/// The weights of the network of pilot for the makespan, checked.
#[pyclass(frozen, module = "streamsim._core")]
struct PilotMakespanWeights(Network);

type Scheduled<'py> = (Array2<'py, i32>, Array2<'py, f64>, Array2<'py, f64>);

#[pymethods]
impl PilotMakespanWeights {
    #[new]
    fn new(network: &Bound<'_, PyAny>) -> PyResult<Self> {
        let of = Columns(network);
        let matrix = |name: &str| PyResult::Ok(Matrix::new(&of.table(name)?));
        let found = Network {
            device: matrix("device")?,
            step: matrix("step")?,
            device_bias: of.column("device_bias")?,
            own: matrix("own")?,
            mean: matrix("mean")?,
            own_bias: of.column("own_bias")?,
            out: of.column("out")?,
            skip: of.column("skip")?,
        };
        found.check().map_err(wrong)?;
        Ok(Self(found))
    }

    /// Devices [S, N] by step; devices, starts and finishes of tasks, [S, N] each; and inputs by
    /// column, if they are `recorded`.
    #[allow(clippy::too_many_arguments)]
    fn rollouts<'py>(
        &self,
        py: Python<'py>,
        tasks: &Bound<'py, Tasks>,
        features: &Bound<'py, PyAny>,
        before: &Bound<'py, PyAny>,
        fixed: Rows<i32>,
        uniform: Rows<f32>,
        recorded: bool,
    ) -> PyResult<(Array2<'py, i32>, Scheduled<'py>, Bound<'py, PyDict>)> {
        let (tasks, fixed, uniform) = (&tasks.get().0, fixed.0, uniform.0);
        let (features, before) = (read_features(features, tasks)?, read_previous(before, tasks)?);
        let (s, n, d) = (fixed.rows(), tasks.n_tasks(), tasks.n_devices());
        if fixed.columns() != n || (uniform.rows(), uniform.columns()) != (s, n) {
            return Err(wrong(format!("fixed or uniform are not of {n} tasks")));
        }
        if fixed.cells().iter().any(|&device| device >= d as i32) {
            return Err(wrong(format!("a fixed device is not below {d}")));
        }
        let case = Case { tasks, features: &features, before: &before };
        let found = Remaining::ENDLESS.watched(py, |watch| {
            rollouts::rollouts(case, &self.0, &fixed, &uniform, recorded, watch)
        })?;
        let place = found.schedules.iter().flat_map(|each| each.place.iter().map(|&d| d as i32));
        let place = table_of(py, Table::new(place.collect(), s, n))?;
        let times = |of: fn(&scheduling::ListSchedule) -> &[f64]| {
            let cells: Vec<f64> = found.schedules.iter().flat_map(of).copied().collect();
            table_of(py, Table::new(cells, s, n))
        };
        let scheduled = (place, times(|each| &each.start)?, times(|each| &each.finish)?);
        let shape = [s, n, d, device::N, step::N];
        let record = record_of(py, recorded.then_some(found.record), shape)?;
        Ok((table_of(py, found.chosen)?, scheduled, record))
    }
}

fn read_features(features: &Bound<'_, PyAny>, tasks: &scheduling::Tasks) -> PyResult<Features> {
    let of = Columns(features);
    let found = Features {
        after: of.table("after")?,
        least: of.floats("least")?,
        coming: of.floats("coming")?,
        going: of.floats("going")?,
        shortest: of.float("shortest")?,
    };
    let n = tasks.n_tasks();
    length("after", found.after.rows(), n)
        .and_then(|()| length("after", found.after.columns(), tasks.n_devices()))
        .and_then(|()| length("least", found.least.len(), n))
        .and_then(|()| length("coming", found.coming.len(), n))
        .and_then(|()| length("going", found.going.len(), n))
        .map_err(wrong)?;
    Ok(found)
}

fn read_previous(before: &Bound<'_, PyAny>, tasks: &scheduling::Tasks) -> PyResult<Previous> {
    let of = Columns(before);
    let found = Previous {
        order: of.ids("order")?,
        place: of.ids("place")?,
        latest: of.floats("latest")?,
        span: of.float("span")?,
        loads: of.floats("loads")?,
    };
    let (n, d) = (tasks.n_tasks(), tasks.n_devices());
    length("order", found.order.len(), n)
        .and_then(|()| tasks.check_order(&found.order))
        .and_then(|()| length("place", found.place.len(), n))
        .and_then(|()| indices("place", &found.place, d))
        .and_then(|()| length("latest", found.latest.len(), n))
        .and_then(|()| length("loads", found.loads.len(), d))
        .map_err(wrong)?;
    Ok(found)
}

/// Add what this file defines to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PilotMakespanWeights>()
}
