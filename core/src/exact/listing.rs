//! All legal placements of units, of equal empty devices only the first.

use std::collections::HashMap;

use super::units::Units;
use crate::instance::{Id, NONE};
use crate::watch::Watch;

/// A list of placements that can be continued.
#[derive(Clone, Debug)]
pub struct Listing {
    /// [U] device, or `NONE`
    place: Vec<Id>,
    /// [D] units before `next` on each device
    placed: Vec<u32>,
    /// [D] last device before each that is equal to it, or `NONE`
    before: Vec<Id>,
    /// [units so far, D] memory in use with each unit on a device, if memory is limited
    used: Vec<f64>,
    /// unit that is moved next; nothing at the end
    next: Option<usize>,
}

impl Listing {
    /// A list at its beginning.
    #[must_use]
    pub fn new(units: &Units) -> Self {
        let (mut latest, devices) = (HashMap::new(), 0..units.n_devices() as Id);
        let before = units.classes.iter().zip(devices).map(|(class, d)| latest.insert(class, d));
        let before: Vec<Id> = before.map(|equal| equal.unwrap_or(NONE)).collect();
        let (place, placed) = (vec![NONE; units.n_units()], vec![0; before.len()]);
        let used = units.rules.memory.first().map_or(vec![], |&memory| vec![memory; before.len()]);
        Self { place, placed, before, used, next: Some(0) }
    }

    /// Whether there are no more placements.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next.is_none()
    }

    /// Give the next placements to `take`, at most `most` in at most so many steps; return their
    /// number. `take` gets the device of the last unit, which was just found, apart from the others.
    pub fn proceed(
        &mut self,
        units: &Units,
        (most, steps): (usize, usize),
        watch: &mut Watch,
        mut take: impl FnMut(&[Id], Id),
    ) -> usize {
        let (last, n_devices) = (units.n_units() - 1, units.n_devices());
        let (mut size, mut step) = (0, 0);
        'steps: while let Some(u) = self.next {
            if size == most || step == steps || watch.is_over(10 * n_devices) {
                break;
            }
            let first = self.place[u].wrapping_add(1) as usize; // 0 after `NONE`
            for d in first..n_devices {
                if !self.may(units, u, d) {
                    continue;
                }
                self.place[u] = d as Id;
                step += 1;
                if u < last {
                    self.placed[d] += 1;
                    self.next = Some(u + 1);
                    if !self.used.is_empty() {
                        self.sum_memory(units, u + 1);
                    }
                    continue 'steps;
                }
                take(&self.place[..u], d as Id);
                size += 1;
                if size == most || step == steps {
                    continue 'steps;
                }
            }
            self.place[u] = NONE;
            step += 1;
            self.next = u.checked_sub(1);
            if let Some(before) = self.next {
                self.placed[self.place[before] as usize] -= 1;
            }
        }
        size
    }

    /// Sum the memory that unit `u` would need on every device with the units before it.
    #[cold]
    fn sum_memory(&mut self, units: &Units, u: usize) {
        let n_devices = self.placed.len();
        self.used.resize((u + 1) * n_devices, 0.0);
        let used = &mut self.used[u * n_devices..];
        used.fill(units.rules.memory[u]);
        for (&d, memory) in self.place[..u].iter().zip(&units.rules.memory) {
            used[d as usize] += memory;
        }
    }

    /// Whether a unit may be placed on a device, after the units before it.
    #[inline(always)]
    fn may(&self, units: &Units, u: usize, d: usize) -> bool {
        units.load[(u, d)].is_finite()
            && (self.placed[d] > 0 || self.is_first(d))
            && !units.rules.rivals.meet(&self.place, u, d)
            && (self.used.is_empty() || units.rules.fits(self.used[u * self.placed.len() + d], d))
    }

    /// Whether no empty device before this one is equal to it.
    #[inline]
    fn is_first(&self, d: usize) -> bool {
        let mut a = self.before[d];
        while a != NONE && self.placed[a as usize] > 0 {
            a = self.before[a as usize];
        }
        a == NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::units::tests::alike;

    #[test]
    fn equal_devices_are_used_in_order() {
        let units = alike(3, 3);
        let (mut listing, mut found) = (Listing::new(&units), vec![]);
        while !listing.is_over() {
            let take = |place: &[Id], last| found.push([place, &[last]].concat());
            listing.proceed(&units, (2, 10), &mut Watch::endless(), take);
        }
        let places = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]];
        assert_eq!(found, places);
    }
}
