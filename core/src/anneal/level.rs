//! A level of a placement problem: units that move as one, and the streams between them.
//!
//! U units, E entries, of which every pair of units with streams has one at both ends, D devices, C
//! types of devices. Columns have the meaning of `streamplace.model.coarsening.Level`.

use crate::arithmetic::{largest, max};
use crate::check::{Wrong, indices, length, rising, shape};
use crate::equation::{egress_at, link_at, n_resources};
use crate::instance::{Id, Platform};
use crate::rivals::Rules;
use crate::table::Table;

/// The streams between a unit and another one.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub peer: Id,
    /// bytes/s to the peer
    pub sent: f64,
    /// bytes/s from the peer
    pub taken: f64,
}

/// Tuples/s to and from the peer of an entry.
pub type Tuples = (f64, f64);

/// Units and the streams between them; the indices of a checked level are valid.
#[derive(Clone, Debug)]
pub struct Level {
    /// [U, C] load as a fraction of a device of each type
    pub load: Table,
    /// [U, C] largest fraction of one core; no rows if no single core can limit
    pub core: Table,
    /// [U + 1] the entries of u are `entries[start[u]..start[u + 1]]`
    pub start: Vec<Id>,
    /// [E]
    pub entries: Vec<Entry>,
    /// [E] or empty where tuples cost no more than their bytes
    pub tuples: Vec<Tuples>,
    /// [U] row of `allowed`
    pub kind: Vec<Id>,
    /// [K, D]
    pub allowed: Table<bool>,
    pub rules: Rules,
    /// [D]
    pub device_type: Vec<Id>,
    pub platform: Platform,
    /// whether some unit may not use some device
    pub ruled: bool,
    /// whether only devices and links limit
    pub plain: bool,
}

impl Level {
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
        self.device_type.len()
    }

    /// Entries of a unit.
    #[inline]
    #[must_use]
    pub fn around(&self, u: usize) -> &[Entry] {
        &self.entries[self.range(u)]
    }

    /// Positions of the entries of a unit.
    #[inline]
    #[must_use]
    pub fn range(&self, u: usize) -> std::ops::Range<usize> {
        self.start[u] as usize..self.start[u + 1] as usize
    }

    /// Load of device `d` by unit `u`.
    #[inline]
    #[must_use]
    pub fn load_on(&self, u: usize, d: usize) -> f64 {
        self.load[(u, self.device_type[d] as usize)]
    }

    /// Largest load of one core of device `d` by unit `u`.
    #[inline]
    #[must_use]
    pub fn core_on(&self, u: usize, d: usize) -> f64 {
        self.core[(u, self.device_type[d] as usize)]
    }

    /// Whether single cores can limit.
    #[inline]
    #[must_use]
    pub fn per_core(&self) -> bool {
        self.core.rows() > 0
    }

    /// Length of the load vector, which omits network cards if they are unlimited.
    #[must_use]
    pub fn n_loads(&self) -> usize {
        let d = self.n_devices();
        if self.plain { egress_at(d, 0) } else { n_resources(d) }
    }

    /// Compute the load of every resource from scratch.
    pub fn fill_loads(&self, place: &[Id], loads: &mut [f64]) {
        loads.fill(0.0);
        let d = self.n_devices();
        for (u, &a) in place.iter().enumerate() {
            let a = a as usize;
            loads[a] += self.load_on(u, a);
            for e in self.range(u) {
                let Entry { peer, sent, .. } = self.entries[e];
                let b = place[peer as usize] as usize;
                if a == b {
                    continue;
                }
                if self.plain {
                    loads[link_at(d, a, b)] += sent * self.platform.seconds_per_byte[(a, b)];
                } else {
                    let tuples = self.tuples.get(e).map_or(0.0, |pair| pair.0);
                    self.platform.each_load(tuples, sent, (a, b), |r, load| loads[r] += load);
                }
            }
        }
    }

    /// Load of the fullest resource or single core.
    #[must_use]
    pub fn peak(&self, place: &[Id], loads: &[f64]) -> f64 {
        let worst = largest(0.0, loads);
        if !self.per_core() {
            return worst;
        }
        let units = place.iter().enumerate();
        units.fold(worst, |worst, (u, &d)| max(worst, self.core_on(u, d as usize)))
    }

    /// Peaks of placements of the units, from scratch.
    #[must_use]
    pub fn peaks(&self, places: &Table<Id>) -> Vec<f64> {
        let mut loads = vec![0.0; self.n_loads()];
        let each = (0..places.rows()).map(|row| {
            self.fill_loads(places.row(row), &mut loads);
            self.peak(places.row(row), &loads)
        });
        each.collect()
    }

    /// Check lengths and indices.
    pub fn check(&self) -> Result<(), Wrong> {
        let (n, d, types) = (self.n_units(), self.n_devices(), self.load.columns());
        if n == 0 || d == 0 {
            return Err(format!("there are {n} units and {d} devices").into());
        }
        if self.per_core() {
            shape("core", &self.core, n, types)?;
        }
        length("start", &self.start, n + 1)?;
        rising("start", &self.start, self.entries.len())?;
        let peers: Vec<Id> = self.entries.iter().map(|entry| entry.peer).collect();
        indices("peer", &peers, n)?;
        if !self.tuples.is_empty() {
            length("sent_tuples", &self.tuples, self.entries.len())?;
        }
        length("kind", &self.kind, n)?;
        indices("kind", &self.kind, self.allowed.rows())?;
        shape("allowed", &self.allowed, self.allowed.rows(), d)?;
        indices("device_type", &self.device_type, types)?;
        self.rules.check(n, d)?;
        self.platform.check(d)
    }
}
