//! Units of operators that are placed together, with loads and streams as plain columns.
//!
//! U units, E streams between them, D devices. All loads are those of the full rate, as fractions of
//! a capacity. Columns have the meaning of `streamplace.placers.exact.units.Units`.

use crate::arithmetic::{largest, max};
use crate::check::{Wrong, each, indices, length, rising};
use crate::instance::{Id, Platform};
use crate::rivals::Rules;
use crate::table::Table;

/// Units and the streams between them; the indices of checked units are valid.
#[derive(Clone, Debug)]
pub struct Units {
    /// [U, D] CPU load of unit u on device d, infinite where it may not run
    pub load: Table,
    /// [U, D] load of the busiest single core
    pub core: Table,
    /// [E]
    pub source: Vec<Id>,
    /// [E]
    pub target: Vec<Id>,
    /// [E] bytes/s
    pub traffic: Vec<f64>,
    /// [E] tuples/s
    pub tuples: Vec<f64>,
    /// [U + 1] the streams of u are `around[start[u]..start[u + 1]]`
    pub start: Vec<Id>,
    /// [2E]
    pub around: Vec<Id>,
    pub rules: Rules,
    pub platform: Platform,
    /// [D] devices of a class are interchangeable
    pub classes: Vec<Id>,
}

impl Units {
    /// Number of units, U.
    #[inline]
    #[must_use]
    pub fn n_units(&self) -> usize {
        self.load.rows()
    }

    /// Number of devices, D.
    #[inline]
    #[must_use]
    pub fn n_devices(&self) -> usize {
        self.classes.len()
    }

    /// Streams of a unit.
    #[inline]
    #[must_use]
    pub fn streams(&self, u: usize) -> &[Id] {
        &self.around[self.start[u] as usize..self.start[u + 1] as usize]
    }

    /// Compute the load of every resource; return the largest, single cores included.
    pub fn write_loads(&self, place: &[Id], loads: &mut [f64]) -> f64 {
        loads.fill(0.0);
        let mut peak = 0.0;
        for (u, &d) in place.iter().enumerate() {
            let d = d as usize;
            loads[d] += self.load[(u, d)];
            peak = max(peak, self.core[(u, d)]);
        }
        let ends = self.source.iter().zip(&self.target);
        for ((&u, &v), (&tuples, &traffic)) in ends.zip(self.tuples.iter().zip(&self.traffic)) {
            let (a, b) = (place[u as usize] as usize, place[v as usize] as usize);
            if a != b {
                self.platform.each_load(tuples, traffic, (a, b), |r, load| loads[r] += load);
            }
        }
        largest(peak, loads)
    }

    /// Whether unit `u` fits into the memory of device `d`, beside the other units there.
    #[must_use]
    pub fn has_memory(&self, place: &[Id], u: usize, d: usize) -> bool {
        let memory = &self.rules.memory;
        if memory.is_empty() {
            return true;
        }
        let others = place.iter().enumerate().filter(|&(v, &at)| at as usize == d && v != u);
        self.rules.fits(others.fold(memory[u], |used, (v, _)| used + memory[v]), d)
    }

    /// Check lengths and indices.
    pub fn check(&self) -> Result<(), Wrong> {
        let (n, d, m) = (self.n_units(), self.n_devices(), self.source.len());
        if n == 0 || d == 0 {
            return Err(format!("there are {n} units and {d} devices").into());
        }
        each!(shape, self, n, d; load core);
        each!(length, self, m; source target traffic tuples);
        each!(indices, self, n; source target);
        length("start", &self.start, n + 1)?;
        rising("start", &self.start, self.around.len())?;
        indices("around", &self.around, m)?;
        self.rules.check(n, d)?;
        self.platform.check(d)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Units of load 0.4 without streams, on equal devices.
    pub fn alike(n: usize, d: usize) -> Units {
        let units = Units {
            load: Table::filled(0.4, n, d),
            core: Table::filled(0.0, n, d),
            source: vec![],
            target: vec![],
            traffic: vec![],
            tuples: vec![],
            start: vec![0; n + 1],
            around: vec![],
            rules: Rules::default(),
            platform: Platform::alike(d),
            classes: vec![0; d],
        };
        units.check().expect("units");
        units
    }

    #[test]
    fn memory_is_shared_by_the_units_of_a_device() {
        let mut units = alike(3, 2);
        (units.rules.memory, units.rules.room) = (vec![1.0; 3], vec![2.0; 2]);
        assert!(units.has_memory(&[0, 0, 1], 1, 0));
        assert!(!units.has_memory(&[0, 0, 1], 2, 0));
    }
}
