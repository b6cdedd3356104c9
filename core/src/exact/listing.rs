//! All legal placements of units, of equal empty devices only the first.

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
    /// unit that is moved next; nothing at the end
    next: Option<usize>,
}

impl Listing {
    /// A list at its beginning.
    #[must_use]
    pub fn new(units: &Units) -> Self {
        let placed = vec![0; units.n_devices()];
        Self { place: vec![NONE; units.n_units()], placed, next: Some(0) }
    }

    /// Whether there are no more placements.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next.is_none()
    }

    /// Give the next placements to `take`, at most `most` in at most so many steps; return their
    /// number.
    pub fn proceed(
        &mut self,
        units: &Units,
        (most, steps): (usize, usize),
        watch: &mut Watch,
        mut take: impl FnMut(&[Id]),
    ) -> usize {
        let (n, n_devices) = (units.n_units(), units.n_devices());
        let (mut size, mut step) = (0, 0);
        while let Some(u) = self.next {
            if size == most || step == steps || watch.is_over(10 * n_devices) {
                break;
            }
            step += 1;
            let first = if self.place[u] == NONE { 0 } else { self.place[u] as usize + 1 };
            self.place[u] = NONE;
            let Some(d) = (first..n_devices).find(|&d| self.may(units, u, d)) else {
                self.next = u.checked_sub(1);
                if let Some(before) = self.next {
                    self.placed[self.place[before] as usize] -= 1;
                }
                continue;
            };
            self.place[u] = d as Id;
            if u + 1 < n {
                self.placed[d] += 1;
                self.next = Some(u + 1);
                continue;
            }
            take(&self.place);
            size += 1;
        }
        size
    }

    /// Whether a unit may be placed on a device, which is the first of those that are equal.
    fn may(&self, units: &Units, u: usize, d: usize) -> bool {
        let is_first = || {
            let equal = |a: usize| units.classes[a] == units.classes[d];
            !(0..d).any(|a| self.placed[a] == 0 && equal(a))
        };
        units.load[(u, d)].is_finite()
            && (self.placed[d] > 0 || is_first())
            && !units.rivals.meet(&self.place, u, d)
            && units.has_memory(&self.place, u, d)
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
            let take = |place: &[Id]| found.push(place.to_vec());
            listing.proceed(&units, (2, 10), &mut Watch::endless(), take);
        }
        let places = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]];
        assert_eq!(found, places);
    }
}
