//! Packing of units into device memory, with rivals on different devices.

use super::SLACK;
use crate::instance::Id;
use crate::rivals::Rivals;
use crate::table::Table;
use crate::watch::Watch;

/// Units, and the devices that they may use.
#[derive(Clone, Debug)]
pub struct Units {
    /// [U, D]
    pub allowed: Table<bool>,
    pub rivals: Rivals,
    /// [U] bytes
    pub memory: Vec<f64>,
    /// [D] bytes
    pub capacity: Vec<f64>,
    /// [U] units in the order in which they are placed
    pub order: Vec<Id>,
}

/// What a search for a packing found.
#[derive(Clone, Debug, PartialEq)]
pub enum Packed {
    /// There is no packing.
    Impossible,
    /// Device of every unit; some have none if the steps or the time are used up.
    Found(Vec<Option<Id>>),
}

/// A unit's device in a depth-first search, and the free memory that it had before.
#[derive(Clone, Copy)]
struct Tried {
    free: f64,
    device: Option<usize>,
}

const NOTHING: Tried = Tried { free: f64::NEG_INFINITY, device: None };

/// Search depth first, on the devices with least free memory first.
///
/// If devices are `alike`, one of those with equal free memory is tried.
#[must_use]
pub fn pack(units: &Units, alike: bool, steps: usize, watch: &mut Watch) -> Packed {
    let n = units.memory.len();
    let (mut place, mut free) = (vec![None; n], units.capacity.clone());
    let mut tried = vec![NOTHING; n];
    let mut depth = 0;
    for _ in 0..steps {
        if depth == n || watch.is_over(10 * free.len()) {
            break;
        }
        let u = units.order[depth] as usize;
        if let Some(best) = units.tightest(&place, &free, u, tried[depth], alike) {
            tried[depth] = Tried { free: free[best], device: Some(best) };
            place[u] = Some(best as Id);
            free[best] -= units.memory[u];
            depth += 1;
            if let Some(next) = tried.get_mut(depth) {
                *next = NOTHING;
            }
        } else {
            let Some(above) = depth.checked_sub(1) else {
                return Packed::Impossible;
            };
            depth = above;
            if let Some(device) = place[units.order[depth] as usize].take() {
                free[device as usize] = tried[depth].free;
            }
        }
    }
    Packed::Found(place)
}

/// Place units in order: on their device if they fit, else on the next one, else nowhere.
#[must_use]
pub fn make_room(units: &Units, wishes: &[Id]) -> Vec<Option<Id>> {
    let (n_devices, mut free) = (units.capacity.len(), units.capacity.clone());
    let mut place: Vec<_> = wishes.iter().copied().map(Some).collect();
    for &u in &units.order {
        let u = u as usize;
        let found = (0..n_devices)
            .map(|step| (step, (wishes[u] as usize + step) % n_devices))
            .find(|&(step, d)| {
                let fits = !(units.memory[u] > free[d] + SLACK * units.capacity[d]
                    && units.memory[u] > 0.0);
                fits && (step == 0
                    || units.allowed[(u, d)] && !units.meets_rival(&place, u, d as Id))
            });
        place[u] = found.map(|(_, device)| device as Id);
        if let Some((_, device)) = found {
            free[device] -= units.memory[u];
        }
    }
    place
}

impl Units {
    /// Whether a rival of unit `u` is on device `d`.
    fn meets_rival(&self, place: &[Option<Id>], u: usize, d: Id) -> bool {
        self.rivals.of(u).iter().any(|&v| place[v as usize] == Some(d))
    }

    /// The device with least free memory that fits, after the last one tried.
    fn tightest(
        &self,
        place: &[Option<Id>],
        free: &[f64],
        u: usize,
        last: Tried,
        alike: bool,
    ) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (d, &left) in free.iter().enumerate() {
            let equal = left == last.free;
            let is_later = left > last.free || equal && last.device.is_none_or(|tried| d > tried);
            let is_repeated = alike && equal && last.device.is_some();
            let fits = self.memory[u] <= left + SLACK * self.capacity[d] || self.memory[u] == 0.0;
            let may = is_later && !is_repeated && fits && self.allowed[(u, d)];
            if may
                && best.is_none_or(|best| left < free[best])
                && !self.meets_rival(place, u, d as Id)
            {
                best = Some(d);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(memory: &[f64], capacity: &[f64], rivals: &[(Id, Id)]) -> Units {
        let n = memory.len();
        let of = |u: Id| {
            rivals.iter().filter_map(move |&(a, b)| {
                if a == u {
                    Some(b)
                } else if b == u {
                    Some(a)
                } else {
                    None
                }
            })
        };
        let (mut start, mut all) = (vec![0], vec![]);
        for u in 0..n as Id {
            all.extend(of(u));
            start.push(all.len() as Id);
        }
        Units {
            allowed: Table::filled(true, n, capacity.len()),
            rivals: Rivals::new(start, all),
            memory: memory.to_vec(),
            capacity: capacity.to_vec(),
            order: (0..n as Id).collect(),
        }
    }

    fn packed(units: &Units, steps: usize) -> Packed {
        pack(units, false, steps, &mut Watch::endless())
    }

    #[test]
    fn a_first_choice_that_fails_is_taken_back() {
        let trap = units(&[1.0, 2.0, 2.0], &[2.0, 3.0], &[]);
        assert_eq!(packed(&trap, 100), Packed::Found(vec![Some(1), Some(0), Some(1)]));
    }

    #[test]
    fn rivals_never_meet_and_limits_are_known_from_failures() {
        let apart = units(&[1.0, 1.0], &[9.0], &[(0, 1)]);
        assert_eq!(packed(&apart, 100), Packed::Impossible);
        assert_eq!(packed(&units(&[1.0, 1.0], &[9.0], &[]), 1), Packed::Found(vec![Some(0), None]));
    }

    #[test]
    fn units_that_fit_stay_and_others_go_to_the_next_device() {
        let full = units(&[3.0, 2.0, 2.0], &[4.0, 4.0, 1.0], &[]);
        assert_eq!(make_room(&full, &[0, 0, 0]), [Some(0), Some(1), Some(1)]);
        assert_eq!(make_room(&full, &[1, 0, 0]), [Some(1), Some(0), Some(0)]);
        let large = units(&[5.0], &[4.0, 4.0], &[]);
        assert_eq!(make_room(&large, &[1]), [None]);
    }
}
