//! Groups of units that exchange the most bytes, for the next coarser level.

use super::level::Level;
use crate::instance::Id;
use crate::watch::Watch;

/// Largest ratio of the units of a level to those of the next coarser one.
const SHRINK: f64 = 2.5;
/// Nanoseconds that an entry takes about.
const ENTRY_WORK: usize = 10;

/// Group of every unit and the number of groups, which are numbered by first unit; fewer units are
/// grouped if the watch ends that.
///
/// In the given order, every single unit joins the neighbouring group with which it has the most
/// traffic, among those on the same device, under the same rules, and within the weight limit: a
/// group weighs at most `most`, where the entire graph weighs 2 (CPU load and number of units count
/// equally). Units with rivals stay single.
#[must_use]
pub fn heavy_groups(
    level: &Level,
    place: &[Id],
    order: &[Id],
    most: f64,
    watch: &mut Watch,
) -> (Vec<Id>, usize) {
    let n = level.n_units();
    let mut leader: Vec<Id> = (0..n as Id).collect();
    let (mut weight, mut size) = (weights(level), vec![1_u32; n]);
    let (mut towards, mut n_groups) = (vec![0.0; n], n);
    for &u in order {
        let u = u as usize;
        if n_groups as f64 * SHRINK <= n as f64 {
            break;
        }
        if watch.is_over(ENTRY_WORK * (1 + level.around(u).len())) {
            break;
        }
        if size[leader[u] as usize] > 1 || !level.rules.rivals.of(u).is_empty() {
            continue;
        }
        if let Some(best) = heaviest(level, place, &leader, &weight, &mut towards, u, most) {
            leader[u] = best as Id;
            weight[best] += weight[u];
            size[best] += 1;
            n_groups -= 1;
        }
    }
    numbered(&leader)
}

/// Leader of the group that unit `u` may join and has the most traffic with.
///
/// `towards` is all 0 before and after.
fn heaviest(
    level: &Level,
    place: &[Id],
    leader: &[Id],
    weight: &[f64],
    towards: &mut [f64],
    u: usize,
    most: f64,
) -> Option<usize> {
    let groups = level.around(u).iter().map(|entry| leader[entry.peer as usize] as usize);
    for (entry, g) in level.around(u).iter().zip(groups.clone()) {
        if level.rules.rivals.of(entry.peer as usize).is_empty() {
            towards[g] += entry.sent + entry.taken;
        }
    }
    let (mut best, mut heaviest) = (None, 0.0);
    for g in groups.clone() {
        let fits = weight[g] + weight[u] <= most;
        let alike = place[g] == place[u] && level.kind[g] == level.kind[u];
        if fits && towards[g] > heaviest && alike {
            (best, heaviest) = (Some(g), towards[g]);
        }
    }
    groups.for_each(|g| towards[g] = 0.0);
    best
}

/// Share of every unit in the CPU load plus its share in the number of units.
fn weights(level: &Level) -> Vec<f64> {
    let n = level.n_units();
    let load = |u| level.load.row(u).iter().fold(0.0, |sum, load| sum + load);
    let mut weight: Vec<f64> = (0..n).map(load).collect();
    let whole = weight.iter().fold(0.0, |sum, load| sum + load);
    for share in &mut weight {
        *share = (if whole > 0.0 { *share / whole } else { 0.0 }) + 1.0 / n as f64;
    }
    weight
}

/// Number groups by first appearance; a leader leads itself.
fn numbered(leader: &[Id]) -> (Vec<Id>, usize) {
    let (mut number, mut n_groups) = (vec![Id::MAX; leader.len()], 0);
    let group = leader.iter().map(|&g| {
        let number = &mut number[g as usize];
        if *number == Id::MAX {
            *number = n_groups;
            n_groups += 1;
        }
        *number
    });
    let group = group.collect();
    (group, n_groups as usize)
}
