//! Simulated annealing of contents: subtasks move and swap until no resource is exceeded. Parts of
//! colocated operators move together.

use super::contents::Packing;
use crate::arithmetic::min;
use crate::instance::Id;
use crate::random::Xorshift;
use crate::table::Table;
use crate::watch::Watch;

/// Temperatures at the start and at the end, in units of excess.
const HOT: f64 = 0.05;
const COLD: f64 = 1e-4;
/// Share of the moves that swap two subtasks.
const SWAPS: f64 = 0.4;
/// Share of the moves that also move the subtasks of the same forward bundle.
const BUNDLES: f64 = 0.5;
/// Share of the moves that start at an overloaded machine.
const EXCEEDED: f64 = 0.7;
/// Cells of contents that moves touch even if no time is left, in a fifth of a millisecond.
const MIN_CELLS: usize = 200_000;

/// Contents [D, N] with the least excess found in so many steps or until the watch ends the search,
/// and their excess.
#[must_use]
pub fn anneal(
    packing: &Packing,
    kinds: &[Id],
    mut rows: Table<u32>,
    random: &mut Xorshift,
    steps: usize,
    watch: &mut Watch,
) -> (Table<u32>, f64) {
    let d = kinds.len();
    let excess = |rows: &Table<u32>, m: usize| packing.excess(kinds[m] as usize, rows.row(m));
    let mut over: Vec<f64> = (0..d).map(|m| excess(&rows, m)).collect();
    let mut total = sum(&over);
    let (mut best, mut best_rows) = (min(f64::INFINITY, total), rows.clone());
    let (mut warmth, cooling) = (HOT, (COLD / HOT).powf(1.0 / steps.max(1) as f64));
    let cells = packing.n_operators() + packing.n_streams() + d;
    let at_least = (MIN_CELLS / cells.max(1)).max(1);
    let (mut moved, mut back) = (vec![], vec![]);
    for step in 0..steps {
        if best == 0.0 || d < 2 || (step >= at_least && watch.is_over(cells)) {
            break;
        }
        warmth *= cooling;
        let a = machine(random, &over, total);
        let b = random.choose(d);
        let Some(v) = subtask(random, rows.row(a)) else { continue };
        if a == b {
            continue;
        }
        let swaps = random.uniform() < SWAPS;
        let w = if swaps { subtask(random, rows.row(b)) } else { None };
        choose(packing, random, rows.row(a), Some(v), &mut moved);
        choose(packing, random, rows.row(b), w, &mut back);
        exchange(packing, &mut rows, a, b, &moved, &back);
        let (new_a, new_b) = (excess(&rows, a), excess(&rows, b));
        let change = new_a + new_b - over[a] - over[b];
        if change <= 0.0 || random.uniform() < (-change / warmth).exp() {
            (over[a], over[b]) = (new_a, new_b);
            total = sum(&over);
            if total < best {
                best = total;
                best_rows.cells_mut().copy_from_slice(rows.cells());
            }
        } else {
            exchange(packing, &mut rows, b, a, &moved, &back);
        }
    }
    (best_rows, best)
}

fn sum(over: &[f64]) -> f64 {
    over.iter().fold(0.0, |total, over| total + over)
}

/// A machine at random, often an overloaded one.
fn machine(random: &mut Xorshift, over: &[f64], total: f64) -> usize {
    let any = random.choose(over.len());
    if random.uniform() < EXCEEDED {
        let mut left = random.uniform() * total;
        for (m, over) in over.iter().enumerate() {
            left -= over;
            if left < 0.0 {
                return m;
            }
        }
    }
    any
}

/// One of the operators with subtasks on the machine.
fn subtask(random: &mut Xorshift, row: &[u32]) -> Option<usize> {
    let number = row.iter().filter(|&&subtasks| subtasks > 0).count();
    if number == 0 {
        return None;
    }
    let chosen = random.choose(number);
    let mut there = row.iter().enumerate().filter(|&(_, &subtasks)| subtasks > 0);
    there.nth(chosen).map(|(v, _)| v)
}

/// List the operators of which a part moves: v and those colocated with it, or those of its bundle
/// as well, or none.
fn choose(
    packing: &Packing,
    random: &mut Xorshift,
    row: &[u32],
    v: Option<usize>,
    chosen: &mut Vec<usize>,
) {
    let together = random.uniform() < BUNDLES;
    chosen.clear();
    let Some(v) = v else { return };
    let group = if together { &packing.needs.bundle } else { &packing.needs.unit };
    chosen.extend((0..row.len()).filter(|&x| row[x] > 0 && group[x] == group[v]));
}

/// Move a part of each of these operators from machine `a` to `b`, and of others back.
fn exchange(
    packing: &Packing,
    rows: &mut Table<u32>,
    a: usize,
    b: usize,
    moved: &[usize],
    back: &[usize],
) {
    let part = &packing.needs.part;
    for &x in moved {
        rows[(a, x)] -= part[x];
        rows[(b, x)] += part[x];
    }
    for &x in back {
        rows[(b, x)] -= part[x];
        rows[(a, x)] += part[x];
    }
}

#[cfg(test)]
mod tests {
    use super::super::contents::tests::pair;
    use super::*;

    fn annealed(steps: usize) -> (Table<u32>, f64) {
        let rows = Table::new(vec![4, 4, 0, 0], 2, 2);
        let random = &mut Xorshift::new(7);
        anneal(&pair(false), &[0, 0], rows, random, steps, &mut Watch::endless())
    }

    #[test]
    fn an_overloaded_machine_is_relieved() {
        let mut half = pair(false);
        half.needs.capacity.row_mut(0)[0] = 8.0;
        let (rows, random) = (Table::new(vec![4, 4, 0, 0], 2, 2), &mut Xorshift::new(7));
        let (rows, excess) = anneal(&half, &[0, 0], rows, random, 500, &mut Watch::endless());
        assert_eq!(excess, 0.0);
        assert_eq!((rows.row(0).iter().sum::<u32>(), rows.row(1).iter().sum::<u32>()), (4, 4));
    }

    #[test]
    fn the_same_seed_moves_the_same_subtasks() {
        assert_eq!(annealed(20), annealed(20));
        assert_eq!(annealed(0).0.cells(), [4, 4, 0, 0]);
    }
}
