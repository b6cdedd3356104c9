//! `survival` for Python.

use pyo3::prelude::*;

use super::arrays::{Attribute, Column, attributes_of, exports, wrong};
use super::instance::Problem;
use crate::instance::Id;
use crate::rivals::Rules;
use crate::survival::{Freedom, Survival};
use crate::table::Table;

/// What placements of a problem carry after the loss of a device.
#[pyclass(frozen, name = "Survival", module = "streamsim._core")]
struct PySurvival {
    problem: Py<Problem>,
    freedom: Freedom,
}

#[pymethods]
impl PySurvival {
    #[new]
    fn new(problem: Py<Problem>, freedom: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = attributes_of!(freedom, Freedom:
            unit allowed classes kind group slots;
            rules: Rules::read(freedom)?
        );
        found.check(&problem.get().0)?;
        Ok(Self { problem, freedom: found })
    }

    /// Share that each placement carries before and after the loss of any one device, at least.
    fn shares(&self, py: Python<'_>, placements: Table<i32>) -> PyResult<Column<f64>> {
        let instance = &self.problem.get().0;
        let placements = placements.placements(instance)?;
        Ok(Column(py.detach(|| {
            let mut survival = Survival::new(instance, &self.freedom);
            (0..placements.rows()).map(|i| survival.of(placements.row(i))).collect()
        })))
    }

    /// Share that is carried after the loss of a device, at least; whether it is exactly that; and
    /// the placement, or none. The search ends at a share that is enough.
    fn without(
        &self,
        py: Python<'_>,
        placement: Column<i32>,
        device: usize,
        enough: f64,
    ) -> PyResult<(f64, bool, Option<Column<Id>>)> {
        let instance = &self.problem.get().0;
        let placement = placement.placement(instance)?;
        if device >= instance.n_devices() {
            return Err(wrong(format!("there is no device {device}")));
        }
        let loss = py
            .detach(|| Survival::new(instance, &self.freedom).without(&placement, device, enough));
        Ok((loss.share, loss.is_proven, loss.place.map(Column)))
    }
}

exports!(PySurvival; );
