//! The resources that the subtasks on a machine use, as shares of its capacity.
//!
//! With shuffles that send from every subtask to every subtask, the traffic of a machine depends
//! on its own contents only: of a stream that carries T from u to v it sends
//! T · share(u) · (1 − share(v)). Of a forward stream it sends only the tuples of subtasks without
//! a partner on the machine.

use super::SLACK;
use crate::arithmetic::max;
use crate::check::{Wrong, each, shape};
use crate::equation::handling_load;
use crate::instance::Id;
use crate::rivals::Rivals;
use crate::table::Table;

pub const CPU: usize = 0;
pub const CORE: usize = 1;
pub const MEMORY: usize = 2;
pub const EGRESS: usize = 3;
pub const INGRESS: usize = 4;
pub const SLOTS: usize = 5;
pub const N_RESOURCES: usize = 6;

/// Use of every resource.
pub type Use = [f64; N_RESOURCES];

/// Use of a core by an operator on a machine without its tags, and by each subtask beside one that
/// it must not meet: far more than any real excess.
const FORBIDDEN: f64 = 1e6;

/// N operators at given parallelisms (P at most), M streams, and T types of machines.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// [N] per second, those for messages included
    pub instructions: Vec<f64>,
    /// [N] cores that one subtask uses at most
    pub cores: Vec<f64>,
    /// [N] subtasks at their largest rate, if tuples have equal parts
    pub at_max_rate: Vec<f64>,
    /// [N] bytes
    pub memory: Vec<f64>,
    /// [M]
    pub source: Vec<Id>,
    /// [M]
    pub target: Vec<Id>,
    /// [M] per second
    pub tuples: Vec<f64>,
    /// [M] per second
    pub bits: Vec<f64>,
    /// [M] whether subtask i feeds subtask i
    pub forward: Vec<bool>,
    /// [N] operators of one number are joined by forward streams
    pub bundle: Vec<Id>,
    /// [N] operators of one number share slots
    pub slot_group: Vec<Id>,
    /// [N] operators of one number are colocated: a machine has as many parts of each
    pub unit: Vec<Id>,
    /// [N] subtasks in such a part
    pub part: Vec<u32>,
    /// [N + 1] where the rivals of each operator begin
    pub rival_start: Vec<Id>,
    /// operators of which no subtask may be on a machine of an operator
    pub rival: Vec<Id>,
    /// [N]
    pub parallelism: Vec<u32>,
    /// [N, P + 1] largest share of the tuples of n subtasks
    pub most: Table,
    /// [N, P + 1] smallest share
    pub least: Table,
    /// [N, P + 1] largest share of the memory
    pub stored: Table,
    /// [T, 6] of every resource; that of a core is its speed
    pub capacity: Table,
    /// [T] instructions per remote tuple, at each end
    pub per_tuple: Vec<f64>,
    /// [T] instructions per bit of a remote tuple, at each end
    pub per_bit: Vec<f64>,
    /// [T, N] whether a machine has the tags that an operator requires
    pub allowed: Table<bool>,
    /// whether remote tuples cost anything
    pub network: bool,
}

/// Needs, and what follows from them.
#[derive(Clone, Debug)]
pub struct Packing {
    pub needs: Needs,
    /// [N] operators in the order of the numbers of their slot groups
    by_slot_group: Vec<usize>,
    /// [T, N] use of a core by the busiest subtask, in instructions
    alone: Table,
    /// [T, M] instructions to send or receive a stream
    handling: Table,
    /// operators that must not meet
    rivals: Rivals,
}

impl Needs {
    /// Check lengths and indices.
    pub fn check(&self) -> Result<(), Wrong> {
        let (n, m, t) = (self.instructions.len(), self.source.len(), self.capacity.rows());
        each!(length, self, n; cores at_max_rate memory bundle slot_group unit part parallelism);
        each!(length, self, m; target tuples bits forward);
        each!(length, self, t; per_tuple per_bit);
        each!(indices, self, n; source target bundle slot_group unit);
        Rivals::new(self.rival_start.clone(), self.rival.clone()).check(n)?;
        let mut bundle = vec![None; n];
        for v in 0..n {
            let of_unit = *bundle[self.unit[v] as usize].get_or_insert(self.bundle[v]);
            if self.part[v] == 0 || of_unit != self.bundle[v] {
                return Err("a part is empty, or colocated operators are in two bundles".into());
            }
        }
        shape("allowed", &self.allowed, t, n)?;
        shape("capacity", &self.capacity, t, N_RESOURCES)?;
        each!(shape, self, n, self.most.columns().max(2); most least stored);
        if self.part.iter().any(|&subtasks| subtasks as usize >= self.most.columns()) {
            return Err("a part has more subtasks than the shares tell about".into());
        }
        Ok(())
    }
}

impl Packing {
    /// Derive values that are read often.
    #[must_use]
    pub fn new(needs: Needs) -> Self {
        let (n, m, types) = (needs.instructions.len(), needs.source.len(), needs.capacity.rows());
        let mut by_slot_group: Vec<usize> = (0..n).collect();
        by_slot_group.sort_by_key(|&v| needs.slot_group[v]);
        let (mut alone, mut handling) =
            (Table::filled(0.0, types, n), Table::filled(0.0, types, m));
        for kind in 0..types {
            for v in 0..n {
                let waiting = needs.at_max_rate[v] * needs.capacity[(kind, CORE)];
                let busy = max(needs.instructions[v] / needs.cores[v], waiting);
                alone[(kind, v)] = busy * needs.most[(v, 1)];
            }
            let (per_tuple, per_bit) = (needs.per_tuple[kind], needs.per_bit[kind]);
            for e in 0..m {
                handling[(kind, e)] =
                    handling_load(needs.tuples[e], needs.bits[e], per_tuple, per_bit, 1.0);
            }
        }
        let rivals = Rivals::new(needs.rival_start.clone(), needs.rival.clone());
        Self { needs, by_slot_group, alone, handling, rivals }
    }

    /// Largest number of subtasks of an operator whose shares are known, P.
    #[must_use]
    pub fn most_subtasks(&self) -> usize {
        self.needs.most.columns() - 1
    }

    /// Number of operators, N.
    #[must_use]
    pub fn n_operators(&self) -> usize {
        self.needs.instructions.len()
    }

    /// Number of streams, M.
    #[must_use]
    pub fn n_streams(&self) -> usize {
        self.needs.source.len()
    }

    /// Share of each resource that contents use on a machine of a type; `row` counts subtasks.
    #[must_use]
    pub fn shares(&self, kind: usize, row: &[u32]) -> Use {
        let mut used = [0.0; N_RESOURCES];
        self.add_operators(kind, row, 0..self.n_operators(), &mut used);
        self.add_streams(kind, row, 0..self.n_streams(), &mut used);
        used[SLOTS] = f64::from(self.slots(row));
        for (share, capacity) in used.iter_mut().zip(self.needs.capacity.row(kind)) {
            *share /= capacity;
        }
        used
    }

    /// Sum over resources of the share by which contents exceed the machine's capacity.
    #[must_use]
    pub fn excess(&self, kind: usize, row: &[u32]) -> f64 {
        excess_of(&self.shares(kind, row))
    }

    /// Add what some operators need of a machine with these contents, but for their streams.
    #[inline]
    pub fn add_operators(
        &self,
        kind: usize,
        row: &[u32],
        operators: impl Iterator<Item = usize>,
        used: &mut Use,
    ) {
        let needs = &self.needs;
        let (alone, allowed) = (self.alone.row(kind), needs.allowed.row(kind));
        for v in operators {
            let n = row[v] as usize;
            if n == 0 {
                continue;
            }
            used[CPU] += needs.instructions[v] * needs.most[(v, n)];
            used[MEMORY] += needs.memory[v] * needs.stored[(v, n)];
            used[CORE] = max(used[CORE], alone[v]);
            if !allowed[v] {
                used[CORE] = FORBIDDEN * needs.capacity[(kind, CORE)];
            }
            for &rival in self.rivals.of(v) {
                let pairs = f64::from(row[v].min(row[rival as usize]));
                used[CORE] += pairs * FORBIDDEN * needs.capacity[(kind, CORE)];
            }
        }
    }

    /// Add what some streams need of a machine with these contents.
    #[inline]
    pub fn add_streams(
        &self,
        kind: usize,
        row: &[u32],
        streams: impl Iterator<Item = usize>,
        used: &mut Use,
    ) {
        let needs = &self.needs;
        if !needs.network {
            return;
        }
        let handling = self.handling.row(kind);
        for e in streams {
            let (u, v) = (needs.source[e] as usize, needs.target[e] as usize);
            let (a, b) = (row[u] as usize, row[v] as usize);
            if a == 0 && b == 0 {
                continue;
            }
            let (sent, received) = if needs.forward[e] {
                (needs.most[(u, a.saturating_sub(b))], needs.most[(v, b.saturating_sub(a))])
            } else {
                let sent = needs.most[(u, a)] * (1.0 - needs.least[(v, b)]);
                (sent, needs.most[(v, b)] * (1.0 - needs.least[(u, a)]))
            };
            used[CPU] += handling[e] * (sent + received);
            used[EGRESS] += needs.bits[e] * sent;
            used[INGRESS] += needs.bits[e] * received;
        }
    }

    /// Colocated operators of each number, by number.
    #[must_use]
    pub fn units(&self) -> Vec<Vec<usize>> {
        let mut units = vec![vec![]; self.n_operators()];
        for (v, &unit) in self.needs.unit.iter().enumerate() {
            units[unit as usize].push(v);
        }
        units
    }

    /// Whether a machine with these contents has as many parts of each colocated operator.
    #[must_use]
    pub fn is_whole(&self, row: &[u32]) -> bool {
        let mut parts = vec![None; row.len()];
        row.iter().enumerate().all(|(v, &subtasks)| {
            let number = subtasks / self.needs.part[v];
            subtasks % self.needs.part[v] == 0
                && *parts[self.needs.unit[v] as usize].get_or_insert(number) == number
        })
    }

    /// Slots in use: for each group, the number of subtasks of its largest operator.
    fn slots(&self, row: &[u32]) -> u32 {
        let (mut total, mut largest, mut group) = (0, 0, None);
        for &v in &self.by_slot_group {
            if group != Some(self.needs.slot_group[v]) {
                total += largest;
                (largest, group) = (0, Some(self.needs.slot_group[v]));
            }
            largest = largest.max(row[v]);
        }
        total + largest
    }
}

/// Sum over resources of the use beyond a capacity.
#[must_use]
pub fn excess_of(shares: &Use) -> f64 {
    let over = shares.iter().map(|share| share - 1.0).filter(|&over| over > SLACK);
    over.fold(0.0, |total, over| total + over)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two operators of 4 equal subtasks, 8 instructions/s each and a stream of 8 bits/s.
    pub fn pair(forward: bool) -> Packing {
        let shares = Table::new([0.0, 0.25, 0.5, 0.75, 1.0].repeat(2), 2, 5);
        Packing::new(Needs {
            instructions: vec![8.0; 2],
            cores: vec![1.0; 2],
            at_max_rate: vec![0.0; 2],
            memory: vec![4.0; 2],
            source: vec![0],
            target: vec![1],
            tuples: vec![1.0],
            bits: vec![8.0],
            forward: vec![forward],
            bundle: if forward { vec![0, 0] } else { vec![0, 1] },
            slot_group: vec![0, 0],
            unit: vec![0, 1],
            part: vec![1, 1],
            rival_start: vec![0; 3],
            rival: vec![],
            parallelism: vec![4, 4],
            most: shares.clone(),
            least: shares.clone(),
            stored: shares,
            capacity: Table::new(vec![16.0, 4.0, 8.0, 8.0, 8.0, 4.0], 1, N_RESOURCES),
            per_tuple: vec![0.0],
            per_bit: vec![0.0],
            allowed: Table::filled(true, 1, 2),
            network: true,
        })
    }

    #[test]
    fn shuffles_send_what_is_not_at_home_and_forward_streams_what_has_no_partner() {
        let used = pair(false).shares(0, &[2, 2]);
        assert_eq!(used, [0.5, 0.5, 0.5, 0.25, 0.25, 0.5]);
        let used = pair(true).shares(0, &[3, 2]);
        assert_eq!((used[EGRESS], used[INGRESS]), (0.25, 0.0));
        assert!(pair(false).needs.check().is_ok());
    }

    #[test]
    fn operators_that_must_not_meet_exceed_a_machine() {
        let mut needs = pair(false).needs;
        (needs.rival_start, needs.rival) = (vec![0, 1, 2], vec![1, 0]);
        let apart = Packing::new(needs);
        assert!(apart.excess(0, &[1, 1]) >= FORBIDDEN);
        assert_eq!((apart.excess(0, &[2, 0]), apart.excess(0, &[0, 2])), (0.0, 0.0));
    }

    #[test]
    fn colocated_operators_have_as_many_parts() {
        let mut needs = pair(false).needs;
        (needs.unit, needs.part) = (vec![0, 0], vec![2, 1]);
        let together = Packing::new(needs);
        assert!(together.is_whole(&[4, 2]) && together.is_whole(&[0, 0]));
        assert!(!together.is_whole(&[2, 2]) && !together.is_whole(&[3, 1]));
    }

    #[test]
    fn what_exceeds_a_capacity_counts_and_room_does_not() {
        assert_eq!(excess_of(&[1.5, 0.0, 0.5, 1.25, 0.0, 1.0]), 0.75);
    }
}
