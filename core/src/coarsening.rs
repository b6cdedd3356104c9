//! Coarsening: levels of a placement problem, whose vertices are units that move as one.
//!
//! The finest level has one unit per operator or per colocated group; coarser ones merge
//! neighbours. A unit loads its device, and the streams between two units load the link between
//! their devices. Streams inside a unit cost nothing.

use crate::anneal::level::{Entry, Level, Tuples};
use crate::arithmetic::max;
use crate::check::{Wrong, each, length};
use crate::instance::Id;
use crate::rivals::{Rivals, Rules};
use crate::table::Table;
use crate::topology::Groups;

/// Streams between units, seen from both ends: columns of a level.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// [U + 1] the entries of u are those from `start[u]` to `start[u + 1]`
    pub start: Vec<Id>,
    /// [E]
    pub peer: Vec<Id>,
    /// [E] bytes/s to the peer
    pub sent: Vec<f64>,
    /// [E] bytes/s from the peer
    pub taken: Vec<f64>,
    /// [E] tuples/s to the peer, or empty where they cost no more than their bytes
    pub sent_tuples: Vec<f64>,
    /// [E] tuples/s from the peer, or empty
    pub taken_tuples: Vec<f64>,
}

impl Streams {
    /// Streams of a level whose units are the n operators: two entries each.
    ///
    /// `tuples` may be empty.
    #[must_use]
    pub fn new(n: usize, source: &[Id], target: &[Id], traffic: &[f64], tuples: &[f64]) -> Self {
        let mut start = vec![0; n + 1];
        for (&u, &v) in source.iter().zip(target) {
            start[u as usize + 1] += 1;
            start[v as usize + 1] += 1;
        }
        for v in 0..n {
            start[v + 1] += start[v];
        }
        let (size, counted) = (2 * source.len(), 2 * tuples.len());
        let (mut at, mut peer) = (start.clone(), vec![0; size]);
        let (mut sent, mut taken) = (vec![0.0; size], vec![0.0; size]);
        let (mut sent_tuples, mut taken_tuples) = (vec![0.0; counted], vec![0.0; counted]);
        let mut next = |v: Id| {
            at[v as usize] += 1;
            at[v as usize] as usize - 1
        };
        for (e, ((&u, &v), &traffic)) in source.iter().zip(target).zip(traffic).enumerate() {
            let (i, j) = (next(u), next(v));
            (peer[i], peer[j]) = (v, u);
            (sent[i], taken[j]) = (traffic, traffic);
            if let Some(&tuples) = tuples.get(e) {
                (sent_tuples[i], taken_tuples[j]) = (tuples, tuples);
            }
        }
        Self { start, peer, sent, taken, sent_tuples, taken_tuples }
    }

    /// Entries and tuples/s to and from the peers of a level.
    pub fn entries(self) -> Result<(Vec<Entry>, Vec<Tuples>), Wrong> {
        each!(length, self, self.peer.len(); sent taken);
        length("taken_tuples", &self.taken_tuples, self.sent_tuples.len())?;
        let flows = self.peer.into_iter().zip(self.sent.into_iter().zip(self.taken));
        let entries = flows.map(|(peer, (sent, taken))| Entry { peer, sent, taken });
        let tuples = self.sent_tuples.into_iter().zip(self.taken_tuples);
        Ok((entries.collect(), tuples.collect()))
    }

    /// Streams of a level.
    #[must_use]
    pub fn of(level: &Level) -> Self {
        Self {
            start: level.start.clone(),
            peer: level.entries.iter().map(|entry| entry.peer).collect(),
            sent: level.entries.iter().map(|entry| entry.sent).collect(),
            taken: level.entries.iter().map(|entry| entry.taken).collect(),
            sent_tuples: level.tuples.iter().map(|both| both.0).collect(),
            taken_tuples: level.tuples.iter().map(|both| both.1).collect(),
        }
    }
}

impl Level {
    /// Merge units into groups; all streams between two groups become one pair of entries.
    ///
    /// A group has the rules of its last unit: merge only units with equal rules, or set the rules
    /// afterwards.
    #[must_use]
    pub fn contracted(&self, group: &[Id], n_groups: usize) -> Self {
        let (groups, types) = (Groups::new(group, n_groups), self.load.columns());
        let mut load = Table::filled(0.0, n_groups, types);
        let mut core = Table::filled(0.0, if self.per_core() { n_groups } else { 0 }, types);
        let mut kind = vec![0; n_groups];
        let mut memory = vec![0.0; if self.rules.memory.is_empty() { 0 } else { n_groups }];
        for (g, kind) in kind.iter_mut().enumerate() {
            for &u in groups.of(g) {
                let u = u as usize;
                *kind = self.kind[u];
                if let Some(memory) = memory.get_mut(g) {
                    *memory += self.rules.memory[u];
                }
                for (sum, load) in load.row_mut(g).iter_mut().zip(self.load.row(u)) {
                    *sum += load;
                }
                if self.per_core() {
                    for (top, &load) in core.row_mut(g).iter_mut().zip(self.core.row(u)) {
                        *top = max(*top, load);
                    }
                }
            }
        }
        let (start, entries, tuples) = self.merged_entries(group, &groups, n_groups);
        Self {
            load,
            core,
            start,
            entries,
            tuples,
            kind,
            allowed: self.allowed.clone(),
            rules: Rules {
                rivals: self.rules.rivals.contracted(group, &groups, n_groups),
                memory,
                room: self.rules.room.clone(),
            },
            device_type: self.device_type.clone(),
            platform: self.platform.clone(),
            ruled: self.ruled,
            plain: self.plain,
        }
    }

    /// Entries of groups of units, of which those to the same group are summed.
    fn merged_entries(
        &self,
        group: &[Id],
        groups: &Groups,
        n_groups: usize,
    ) -> (Vec<Id>, Vec<Entry>, Vec<Tuples>) {
        let mut start = Vec::with_capacity(n_groups + 1);
        start.push(0);
        let mut entries: Vec<Entry> = Vec::with_capacity(self.entries.len());
        let mut tuples: Vec<Tuples> = Vec::with_capacity(self.tuples.len());
        let mut at = vec![usize::MAX; n_groups]; // entry of a group as a peer of the present one
        for g in 0..n_groups {
            let first = entries.len();
            for e in groups.of(g).iter().flat_map(|&u| self.range(u as usize)) {
                let Entry { peer, sent, taken } = self.entries[e];
                let peer = group[peer as usize];
                if peer as usize == g {
                    continue;
                }
                let mut i = at[peer as usize];
                if i == usize::MAX || i < first {
                    i = entries.len();
                    at[peer as usize] = i;
                    entries.push(Entry { peer, sent: 0.0, taken: 0.0 });
                    if !self.tuples.is_empty() {
                        tuples.push((0.0, 0.0));
                    }
                }
                entries[i].sent += sent;
                entries[i].taken += taken;
                if let Some(both) = tuples.get_mut(i) {
                    both.0 += self.tuples[e].0;
                    both.1 += self.tuples[e].1;
                }
            }
            start.push(entries.len() as Id);
        }
        (start, entries, tuples)
    }
}

impl Rivals {
    /// Rivals of groups of units.
    fn contracted(&self, group: &[Id], groups: &Groups, n_groups: usize) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        let (mut start, mut rivals) = (vec![0], vec![]);
        for g in 0..n_groups {
            for &u in groups.of(g) {
                rivals.extend(self.of(u as usize).iter().map(|&v| group[v as usize]));
            }
            start.push(rivals.len() as Id);
        }
        Self::new(start, rivals)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::instance::Platform;

    /// A level of three units in a row with a shortcut, of which the outer ones are rivals.
    pub(crate) fn triangle() -> Level {
        let streams = Streams::new(3, &[0, 1, 0], &[1, 2, 2], &[1.0, 2.0, 4.0], &[]);
        let start = streams.start.clone();
        let (entries, tuples) = streams.entries().unwrap();
        Level {
            load: Table::new(vec![0.25, 0.5, 1.0], 3, 1),
            core: Table::filled(0.0, 0, 1),
            start,
            entries,
            tuples,
            kind: vec![0; 3],
            allowed: Table::filled(true, 1, 2),
            rules: Rules { rivals: Rivals::new(vec![0, 1, 1, 2], vec![2, 0]), ..Rules::default() },
            device_type: vec![0, 0],
            platform: Platform {
                seconds_per_byte: Table::new(vec![0.0, 0.125, 0.125, 0.0], 2, 2),
                ..Platform::alike(2)
            },
            ruled: true,
            plain: true,
        }
    }

    #[test]
    fn every_stream_is_seen_from_both_ends() {
        let level = triangle();
        level.check().unwrap();
        assert_eq!(level.start, [0, 2, 4, 6]);
        assert_eq!(level.entries.iter().map(|e| e.peer).collect::<Vec<_>>(), [1, 2, 0, 2, 1, 0]);
    }

    #[test]
    fn merged_units_keep_their_loads_rivals_and_the_streams_between_groups() {
        let merged = triangle().contracted(&[0, 0, 1], 2);
        merged.check().unwrap();
        assert_eq!(merged.load.cells(), [0.75, 1.0]);
        let flows: Vec<_> = merged.entries.iter().map(|e| (e.peer, e.sent, e.taken)).collect();
        assert_eq!(flows, [(1, 6.0, 0.0), (0, 0.0, 6.0)]);
        assert_eq!((merged.rules.rivals.of(0), merged.rules.rivals.of(1)), (&[1][..], &[0][..]));
    }
}
