//! `incremental` for Python.

use pyo3::prelude::*;

use super::arrays::{Column, exports, wrong};
use super::instance::Problem;
use crate::incremental::LoadState;
use crate::instance::Id;

/// A placement whose throughput follows every move.
#[pyclass(subclass, module = "streamsim._core")]
struct Incremental {
    problem: Py<Problem>,
    state: LoadState,
    /// Operator and former device of every move in effect.
    moves: Vec<(Id, Id)>,
}

#[pymethods]
impl Incremental {
    #[new]
    fn new(problem: Py<Problem>, placement: Column<i32>) -> PyResult<Self> {
        let instance = &problem.get().0;
        let state = LoadState::new(instance, placement.placement(instance)?);
        Ok(Self { problem, state, moves: vec![] })
    }

    #[getter]
    fn placement(&self) -> Column<Id> {
        Column(self.state.placement().to_vec())
    }

    #[getter]
    fn loads(&self) -> Column<f64> {
        Column(self.state.loads())
    }

    #[getter]
    fn throughput(&self) -> f64 {
        self.state.value()
    }

    #[getter]
    fn peak(&self) -> f64 {
        self.state.peak()
    }

    #[pyo3(name = "move")]
    fn move_operator(&mut self, operator: usize, device: usize) -> PyResult<()> {
        let instance = &self.problem.get().0;
        let Some(&old) = self.state.placement().get(operator) else {
            return Err(wrong(format!("there is no operator {operator}")));
        };
        if device >= instance.n_devices() {
            return Err(wrong(format!("there is no device {device}")));
        }
        self.state.move_operator(instance, operator, device);
        self.moves.push((operator as Id, old));
        Ok(())
    }

    fn undo(&mut self) -> PyResult<()> {
        let (operator, device) = self.moves.pop().ok_or_else(|| wrong("nothing was moved"))?;
        let instance = &self.problem.get().0;
        self.state.move_operator(instance, operator as usize, device as usize);
        Ok(())
    }
}

exports!(Incremental; );
