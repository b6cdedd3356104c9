//! Homes: the device of every unit of tasks that stay together, and the memory in use.

use super::tasks::Tasks;
use crate::instance::{Id, NONE};

/// Where units are, in a schedule that grows.
#[derive(Clone, Debug)]
pub struct Homes {
    /// [U] device of every unit, or `NONE`
    home: Vec<Id>,
    /// [D] bytes
    used: Vec<f64>,
}

impl Homes {
    /// No unit has a home.
    #[must_use]
    pub fn new(tasks: &Tasks) -> Self {
        Self { home: vec![NONE; tasks.n_units()], used: vec![0.0; tasks.n_devices()] }
    }

    /// Forget all homes.
    pub fn clear(&mut self) {
        self.home.fill(NONE);
        self.used.fill(0.0);
    }

    /// Device of a unit, if it has one.
    #[inline]
    #[must_use]
    pub fn of(&self, unit: usize) -> Option<usize> {
        (self.home[unit] != NONE).then_some(self.home[unit] as usize)
    }

    /// Find the devices open to a unit: its home, or else all with enough memory and no rival.
    ///
    /// Whether its tasks may run there at all shows in their work, which is then finite.
    #[inline]
    pub fn find_open(&self, tasks: &Tasks, unit: usize, may: &mut [bool]) {
        if let Some(home) = self.of(unit) {
            may.fill(false);
            may[home] = true;
            return;
        }
        match tasks.rules.memory.get(unit) {
            None => may.fill(true),
            Some(memory) => {
                for (d, (may, used)) in may.iter_mut().zip(&self.used).enumerate() {
                    *may = tasks.rules.fits(used + memory, d);
                }
            }
        }
        for &rival in tasks.rules.rivals.of(unit) {
            if let Some(home) = self.of(rival as usize) {
                may[home] = false;
            }
        }
    }

    /// Make device `a` the home of a unit, if it has none yet, and take the unit's memory there.
    #[inline]
    pub fn give(&mut self, tasks: &Tasks, unit: usize, a: usize) {
        if self.home[unit] == NONE {
            self.home[unit] = a as Id;
            self.used[a] += tasks.rules.memory.get(unit).unwrap_or(&0.0);
        }
    }
}
