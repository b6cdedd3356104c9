//! First fit by dot product, and what to do with subtasks that fit nowhere.
//!
//! Each machine gets the item whose needs have the largest dot product with its free resources,
//! until none fits (Panigrahy and others 2011). An item is one part of a unit of colocated operators,
//! as a rule one subtask, or one part of each unit of a bundle.

use super::SLACK;
use super::contents::{CORE, CPU, EGRESS, INGRESS, MEMORY, Packing, SLOTS, Use, excess_of};
use crate::arithmetic::{max, min};
use crate::instance::Id;
use crate::table::Table;
use crate::watch::Watch;

/// Nanoseconds of an operator or stream in the needs of a machine, about.
const CELL_WORK: usize = 10;

/// Operators of which one part each is placed together, and the streams around them.
#[derive(Debug)]
struct Item {
    members: Vec<usize>,
    streams: Vec<usize>,
    /// instructions per second
    need: f64,
}

/// Items of at least `fewest` operators, by number; `item` has the number of every operator's.
fn items(packing: &Packing, item: &[Id], fewest: usize) -> Vec<Item> {
    let (n, needs) = (packing.n_operators(), &packing.needs);
    let mut members = vec![vec![]; n];
    for (v, &i) in item.iter().enumerate() {
        members[i as usize].push(v);
    }
    let mut streams = vec![vec![]; n]; // each stream once
    let ends = |e: usize| (item[needs.source[e] as usize], item[needs.target[e] as usize]);
    for e in 0..packing.n_streams() {
        streams[ends(e).0 as usize].push(e);
    }
    for e in 0..packing.n_streams() {
        let (tail, head) = ends(e);
        if tail != head {
            streams[head as usize].push(e);
        }
    }
    let need = |members: &[usize]| {
        let part = |v: usize| needs.most[(v, needs.part[v] as usize)];
        let each = members.iter().map(|&v| needs.instructions[v] * part(v));
        each.fold(0.0, |sum, need| sum + need)
    };
    let found = members.into_iter().zip(streams).filter(|(members, _)| members.len() >= fewest);
    found.map(|(members, streams)| Item { need: need(&members), members, streams }).collect()
}

/// A machine that is being filled.
struct Machine<'a> {
    packing: &'a Packing,
    kind: usize,
    row: &'a mut [u32],
    /// [N] most subtasks of an operator, by slot group
    largest: &'a mut [u32],
}

/// Contents of machines [D, N], and subtasks that are left [N].
pub type Filled = (Table<u32>, Vec<u32>);

/// Fill machines of these types in turn; `None` if the watch ends that.
#[must_use]
pub fn first_fit(packing: &Packing, kinds: &[Id], watch: &mut Watch) -> Option<Filled> {
    let n = packing.n_operators();
    let (mut rows, mut left) =
        (Table::filled(0, kinds.len(), n), packing.needs.parallelism.clone());
    let needs = &packing.needs;
    let (bundles, alone) = (items(packing, &needs.bundle, 2), items(packing, &needs.unit, 1));
    let mut largest = vec![0; n];
    for (m, &kind) in kinds.iter().enumerate() {
        if left.iter().all(|&subtasks| subtasks == 0) {
            break;
        }
        largest.fill(0);
        let row = rows.row_mut(m);
        let mut machine = Machine { packing, kind: kind as usize, row, largest: &mut largest };
        loop {
            if watch.is_over(CELL_WORK * (n + packing.n_streams())) {
                return None;
            }
            let now = packing.shares(machine.kind, machine.row);
            let several = machine.best_of(&bundles, &left, &now);
            let single = machine.best_of(&alone, &left, &now);
            let chosen = match (several, single) {
                (Some((score, _)), Some((more, item))) if more > score => item,
                (Some((_, item)), _) | (None, Some((_, item))) => item,
                (None, None) => break,
            };
            for &v in &chosen.members {
                left[v] -= needs.part[v];
                machine.add(v);
            }
        }
    }
    Some((rows, left))
}

impl Machine<'_> {
    fn add(&mut self, v: usize) {
        self.row[v] += self.packing.needs.part[v];
        let group = self.packing.needs.slot_group[v] as usize;
        self.largest[group] = self.largest[group].max(self.row[v]);
    }

    /// The item that fits and scores highest, and its score.
    fn best_of<'i>(
        &mut self,
        items: &'i [Item],
        left: &[u32],
        now: &Use,
    ) -> Option<(f64, &'i Item)> {
        let mut best = None;
        let mut highest = f64::NEG_INFINITY;
        for item in items {
            let most = self.packing.most_subtasks();
            let is_short = |&v: &usize| {
                let part = self.packing.needs.part[v];
                left[v] < part || (self.row[v] + part) as usize > most
            };
            if item.members.iter().any(is_short) {
                continue;
            }
            let after = self.with(item, now);
            let share = item.need / self.packing.needs.capacity[(self.kind, CPU)];
            let score = score(now, &after, share);
            if score > highest {
                (highest, best) = (score, Some((score, item)));
            }
        }
        best
    }

    /// Use of the machine with one more item, from the use that the item adds.
    fn with(&mut self, item: &Item, now: &Use) -> Use {
        let before = self.around(item);
        for &v in &item.members {
            self.row[v] += self.packing.needs.part[v];
        }
        let mut after = self.around(item);
        after[SLOTS] += f64::from(self.more_slots(&item.members));
        for &v in &item.members {
            self.row[v] -= self.packing.needs.part[v];
        }
        for (r, &capacity) in self.packing.needs.capacity.row(self.kind).iter().enumerate() {
            after[r] = match r {
                CORE => max(now[r], after[r] / capacity),
                _ => now[r] + (after[r] - before[r]) / capacity,
            };
        }
        after
    }

    /// What an item's operators and the streams around them need.
    fn around(&self, item: &Item) -> Use {
        let mut used = Use::default();
        self.packing.add_operators(self.kind, self.row, item.members.iter().copied(), &mut used);
        self.packing.add_streams(self.kind, self.row, item.streams.iter().copied(), &mut used);
        used
    }

    /// Slots by which the largest operator of each slot group has grown by the members.
    fn more_slots(&self, members: &[usize]) -> u32 {
        let group = |v: usize| self.packing.needs.slot_group[v];
        let growth = |v: usize| self.row[v].saturating_sub(self.largest[group(v) as usize]);
        let more = |i: usize| {
            let same = members[..i].iter().filter(|&&w| group(w) == group(members[i]));
            let before = same.map(|&w| growth(w)).max().unwrap_or(0);
            growth(members[i]).saturating_sub(before)
        };
        (0..members.len()).map(more).sum()
    }
}

/// Dot product of an item's needs and the machine's free resources, less its traffic.
fn score(used: &Use, after: &Use, need: f64) -> f64 {
    let mut score = need * (1.0 - min(1.0, used[CPU])) - (after[CPU] - used[CPU] - need);
    for r in 0..used.len() {
        if after[r] > 1.0 + SLACK {
            return f64::NEG_INFINITY;
        }
        match r {
            MEMORY | SLOTS => score += (after[r] - used[r]) * (1.0 - min(1.0, used[r])),
            EGRESS | INGRESS => score -= after[r] - used[r],
            _ => {}
        }
    }
    score
}

/// Place the remaining subtasks where they exceed resources least, until the watch ends that.
pub fn force(
    packing: &Packing,
    kinds: &[Id],
    rows: &mut Table<u32>,
    left: &mut [u32],
    watch: &mut Watch,
) {
    let work = CELL_WORK * (packing.n_operators() + packing.n_streams());
    for unit in packing.units() {
        let Some(&first) = unit.first() else { continue };
        if left[first] == 0 {
            continue;
        }
        if watch.is_over(work * kinds.len()) {
            break;
        }
        let mut more: Vec<f64> = (0..kinds.len())
            .map(|m| more_excess(packing, kinds[m] as usize, rows.row_mut(m), &unit))
            .collect();
        while left[first] > 0 {
            let (mut least, mut chosen) = (f64::INFINITY, 0);
            for (m, &more) in more.iter().enumerate() {
                if more < least {
                    (least, chosen) = (more, m);
                }
            }
            for &v in &unit {
                rows[(chosen, v)] += packing.needs.part[v];
                left[v] -= packing.needs.part[v];
            }
            if left[first] > 0 {
                let kind = kinds[chosen] as usize;
                more[chosen] = more_excess(packing, kind, rows.row_mut(chosen), &unit);
            }
        }
    }
}

/// Excess that a further part of a unit adds to a machine; the fullest resource decides ties.
fn more_excess(packing: &Packing, kind: usize, row: &mut [u32], unit: &[usize]) -> f64 {
    let before = packing.excess(kind, row);
    for &v in unit {
        row[v] += packing.needs.part[v];
    }
    let shares = packing.shares(kind, row);
    for &v in unit {
        row[v] -= packing.needs.part[v];
    }
    let more = excess_of(&shares) - before;
    more + 1e-6 * shares.into_iter().fold(0.0, max)
}

/// Contents in proportion to the speed of machines, even if resources are exceeded, [D, N].
#[must_use]
pub fn deal(packing: &Packing, kinds: &[Id]) -> Table<u32> {
    let (n, needs) = (packing.n_operators(), &packing.needs);
    let mut rows = Table::filled(0, kinds.len(), n);
    for unit in packing.units() {
        let Some(&first) = unit.first() else { continue };
        let parts = needs.parallelism[first] / needs.part[first];
        let may = |m: &usize| unit.iter().all(|&v| needs.allowed[(kinds[*m] as usize, v)]);
        let speed = |m: usize| needs.capacity[(kinds[m] as usize, CPU)];
        let total = (0..kinds.len()).filter(may).fold(0.0, |sum, m| sum + speed(m));
        let (mut reached, mut dealt) = (0.0, 0);
        for m in (0..kinds.len()).filter(may) {
            reached += speed(m);
            let upto = (f64::from(parts) * reached / total + 0.5) as u32;
            for &v in &unit {
                rows[(m, v)] = upto.saturating_sub(dealt) * needs.part[v];
            }
            dealt = upto;
        }
        if total == 0.0 && !kinds.is_empty() {
            for &v in &unit {
                rows[(0, v)] = needs.parallelism[v];
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::contents::tests::pair;
    use super::*;

    fn filled(packing: &Packing, machines: usize) -> (Table<u32>, Vec<u32>) {
        first_fit(packing, &vec![0; machines], &mut Watch::endless()).unwrap()
    }

    #[test]
    fn first_fit_overfills_no_machine_and_force_places_the_rest() {
        for packing in [pair(false), pair(true)] {
            let (mut rows, mut left) = filled(&packing, 1);
            assert!(packing.shares(0, rows.row(0)).iter().all(|&share| share <= 1.0 + SLACK));
            assert_eq!(rows.row(0).iter().sum::<u32>() + left.iter().sum::<u32>(), 8);
            force(&packing, &[0], &mut rows, &mut left, &mut Watch::endless());
            assert_eq!((rows.row(0), &left[..]), (&[4, 4][..], &[0, 0][..]));
        }
    }

    #[test]
    fn parts_of_colocated_operators_are_placed_together() {
        let mut needs = pair(false).needs;
        (needs.unit, needs.part, needs.parallelism) = (vec![0, 0], vec![2, 1], vec![4, 2]);
        let packing = Packing::new(needs);
        let (rows, left) = filled(&packing, 2);
        assert_eq!((rows.cells(), &left[..]), (&[4, 2, 0, 0][..], &[0, 0][..]));
        assert_eq!(deal(&packing, &[0, 0]).cells(), [2, 1, 2, 1]);
    }

    #[test]
    fn machines_are_dealt_equal_parts() {
        assert_eq!(deal(&pair(false), &[0, 0]).cells(), [2; 4]);
    }
}
