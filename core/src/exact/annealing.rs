//! A short annealing of units by the norm of their loads.

use super::units::Units;
use crate::equation::n_resources;
use crate::instance::Id;
use crate::random::Twister;
use crate::watch::Watch;

/// Share of swaps.
const SWAPS: f64 = 0.3;
/// Temperatures, as shares of the first energy.
const HOT: f64 = 0.1;
const COLD: f64 = 0.002;
/// Kind of units that move to any device.
pub const FREE: i32 = -1;

/// The best legal placement that an annealing found.
pub struct Annealed {
    pub place: Vec<Id>,
    pub peak: f64,
    /// moves that the watch left
    pub moves: u64,
}

/// Anneal a placement; end early at a peak that is `enough`.
///
/// The temperature falls over `moves` moves, of which at most `stop` are made.
///
/// Units of kind `FREE` move to any device and swap with any other; units of another kind only swap
/// with their own kind, so that every device keeps its number of each kind.
#[must_use]
pub fn anneal(
    units: &Units,
    start: Vec<Id>,
    kind: &[i32],
    (moves, stop): (u64, u64),
    enough: f64,
    seed: u32,
    watch: &mut Watch,
) -> Annealed {
    let (n, d) = (units.n_units(), units.n_devices());
    let mut random = Twister::new(seed);
    let mut loads = vec![0.0; n_resources(d)];
    let (mut place, mut best) = (start.clone(), start);
    let mut best_peak = units.write_loads(&place, &mut loads);
    let mut energy = norm(&loads, best_peak);
    let (hot, cold) = (HOT * energy, COLD * energy);
    let work = 2 * (loads.len() + n + 4 * units.source.len());
    for i in 0..moves.min(stop) {
        if best_peak <= enough {
            break;
        }
        if watch.is_over(work) {
            return Annealed { place: best, peak: best_peak, moves: i };
        }
        let u = random.choose(n as u32) as usize;
        let (old, mut new, mut other) = (place[u], random.choose(d as u32), None);
        if kind[u] != FREE || random.uniform() < SWAPS {
            let v = random.choose(n as u32) as usize;
            (new, other) = (place[v], Some(v));
            if kind[u] != kind[v] {
                continue;
            }
        }
        if new == old {
            continue;
        }
        exchange(&mut place, u, other, new, old);
        if is_legal(units, &place, u) && other.is_none_or(|v| is_legal(units, &place, v)) {
            let peak = units.write_loads(&place, &mut loads);
            let tried = norm(&loads, peak);
            let heat = hot * (cold / hot).powf(i as f64 / moves as f64);
            if random.uniform() < ((energy - tried) / heat).exp() {
                energy = tried;
                if peak < best_peak {
                    best_peak = peak;
                    best.copy_from_slice(&place);
                }
                continue;
            }
        }
        exchange(&mut place, u, other, old, new);
    }
    Annealed { place: best, peak: best_peak, moves: stop }
}

/// Put unit `u` on the new device and the other unit, if any, on the old one.
fn exchange(place: &mut [Id], u: usize, other: Option<usize>, new: Id, old: Id) {
    place[u] = new;
    if let Some(v) = other {
        place[v] = old;
    }
}

/// 8-norm of the loads: the largest dominates, but the others contribute.
fn norm(loads: &[f64], peak: f64) -> f64 {
    let power = |load: f64| {
        let share = if peak > 0.0 { load / peak } else { 0.0 };
        let square = share * share;
        square * square * square * square
    };
    let chunks = loads.chunks_exact(8);
    let rest = chunks.remainder();
    let mut total = 0.0;
    for chunk in chunks {
        let mut powers = [0.0; 8]; // by vector instructions, other than the sum
        for (power_of, &load) in powers.iter_mut().zip(chunk) {
            *power_of = power(load);
        }
        total = powers.iter().fold(total, |sum, power| sum + power);
    }
    total = rest.iter().fold(total, |sum, &load| sum + power(load));
    peak * total.powf(0.125)
}

/// Whether unit `u` may be on its device, given the others.
fn is_legal(units: &Units, place: &[Id], u: usize) -> bool {
    let d = place[u] as usize;
    !units.load[(u, d)].is_infinite()
        && !units.rules.rivals.meet(place, u, d)
        && units.has_memory(place, u, d)
}
