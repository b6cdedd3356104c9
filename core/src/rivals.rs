//! Rules of units: rivals, which must not share a device, and the memory of devices.

use crate::check::{Wrong, indices, length, rising};
use crate::instance::Id;

/// Share of a device's memory by which units may exceed it, for rounding.
const SLACK: f64 = 1e-9;

/// What keeps units apart.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub rivals: Rivals,
    /// [U] bytes, or empty if memory has no limit
    pub memory: Vec<f64>,
    /// [D] bytes
    pub room: Vec<f64>,
}

impl Rules {
    /// Check lengths and indices for `n` units and `d` devices.
    pub fn check(&self, n: usize, d: usize) -> Result<(), Wrong> {
        if !self.memory.is_empty() {
            length("memory", &self.memory, n)?;
            length("room", &self.room, d)?;
        }
        self.rivals.check(n)
    }

    /// Whether so many bytes fit into device `d`, if memory is limited.
    #[inline]
    #[must_use]
    pub fn fits(&self, bytes: f64, d: usize) -> bool {
        bytes <= self.room[d] * (1.0 + SLACK)
    }
}

/// Rivals of every unit, or nothing if no unit has any.
#[derive(Clone, Debug, Default)]
pub struct Rivals {
    start: Vec<Id>,
    rivals: Vec<Id>,
}

impl Rivals {
    /// Those of unit u are `rivals[start[u]..start[u + 1]]`.
    #[must_use]
    pub fn new(start: Vec<Id>, rivals: Vec<Id>) -> Self {
        Self { start, rivals }
    }

    /// Check lengths and indices for `n` units.
    pub fn check(&self, n: usize) -> Result<(), Wrong> {
        if self.is_empty() {
            return Ok(());
        }
        length("rival_start", &self.start, n + 1)?;
        rising("rival_start", &self.start, self.rivals.len())?;
        indices("rivals", &self.rivals, n)
    }

    /// The columns `start` and `rivals`.
    #[must_use]
    pub fn columns(&self) -> (&[Id], &[Id]) {
        (&self.start, &self.rivals)
    }

    /// Whether no unit can have rivals.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Rivals of a unit.
    #[inline]
    #[must_use]
    pub fn of(&self, u: usize) -> &[Id] {
        if self.is_empty() {
            return &[];
        }
        &self.rivals[self.start[u] as usize..self.start[u + 1] as usize]
    }

    /// Whether a rival of unit `u` is on device `d`.
    #[inline]
    #[must_use]
    pub fn meet(&self, place: &[Id], u: usize, d: usize) -> bool {
        self.of(u).iter().any(|&rival| place[rival as usize] as usize == d)
    }
}
