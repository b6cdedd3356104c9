//! Records of decisions: the inputs of a policy, from which it learns.

use crate::table::Table;

/// Inputs of every decision of S rollouts of T decisions about D devices.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// [S, T, D, F] features of every device
    pub devices: Vec<f32>,
    /// [S, T, G] features of the decision itself
    pub steps: Vec<f32>,
    /// [S, T, D] devices that could be chosen
    pub open: Vec<bool>,
}

impl Record {
    /// A record of so many decisions, all 0.
    #[must_use]
    pub fn new(decisions: usize, d: usize, of_device: usize, of_step: usize) -> Self {
        Self {
            devices: vec![0.0; decisions * d * of_device],
            steps: vec![0.0; decisions * of_step],
            open: vec![false; decisions * d],
        }
    }

    /// Record the inputs of one decision.
    pub fn keep(&mut self, decision: usize, devices: &Table<f32>, steps: &[f32], open: &[bool]) {
        let (cells, d) = (devices.cells(), open.len());
        self.devices[decision * cells.len()..][..cells.len()].copy_from_slice(cells);
        self.steps[decision * steps.len()..][..steps.len()].copy_from_slice(steps);
        self.open[decision * d..][..d].copy_from_slice(open);
    }
}
