//! Order and adjacency of graphs given as columns of sources and targets.

use std::ops::Range;

use crate::check::{Wrong, each, indices, length, rising};
use crate::instance::Id;

/// Positions of a column by key: those of k are `positions[start[k]..start[k + 1]]`, ascending.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    pub start: Vec<Id>,
    pub positions: Vec<Id>,
}

impl Groups {
    /// Group the positions of `keys` below `n`.
    #[must_use]
    pub fn new(keys: &[Id], n: usize) -> Self {
        let mut start = vec![0; n + 1];
        for &key in keys {
            start[key as usize + 1] += 1;
        }
        for k in 0..n {
            start[k + 1] += start[k];
        }
        let mut end = start.clone();
        let mut positions = vec![0; keys.len()];
        for (i, &key) in keys.iter().enumerate() {
            positions[end[key as usize] as usize] = i as Id;
            end[key as usize] += 1;
        }
        Self { start, positions }
    }

    /// Positions of a key.
    #[inline]
    #[must_use]
    pub fn of(&self, key: usize) -> &[Id] {
        &self.positions[self.start[key] as usize..self.start[key + 1] as usize]
    }
}

/// Order and adjacency of N operators, or tasks, and the M streams between them.
///
/// Streams out of one operator are adjacent.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// [N] topological
    pub order: Vec<Id>,
    /// [M] operator that sends
    pub source: Vec<Id>,
    /// [M] operator that receives
    pub target: Vec<Id>,
    /// [N] first stream out of an operator
    pub out_start: Vec<Id>,
    /// [N] index after the last
    pub out_end: Vec<Id>,
    /// [N + 1] the streams into v are `in_streams[in_start[v]..in_start[v + 1]]`
    pub in_start: Vec<Id>,
    /// [M] port by port
    pub in_streams: Vec<Id>,
}

impl Adjacency {
    /// Number of streams, M.
    #[inline]
    #[must_use]
    pub fn n_streams(&self) -> usize {
        self.source.len()
    }

    /// Operators in topological order.
    pub fn in_order(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.order.iter().map(|&v| v as usize)
    }

    /// Streams out of an operator.
    #[inline]
    #[must_use]
    pub fn outputs(&self, v: usize) -> Range<usize> {
        self.out_start[v] as usize..self.out_end[v] as usize
    }

    /// Streams into an operator.
    #[inline]
    #[must_use]
    pub fn inputs(&self, v: usize) -> &[Id] {
        &self.in_streams[self.in_start[v] as usize..self.in_start[v + 1] as usize]
    }

    /// Operators at the two ends of a stream.
    #[inline]
    #[must_use]
    pub fn ends(&self, stream: usize) -> (usize, usize) {
        (self.source[stream] as usize, self.target[stream] as usize)
    }

    /// Check lengths and indices for `n` operators.
    pub fn check(&self, n: usize) -> Result<(), Wrong> {
        let m = self.n_streams();
        each!(length, self, n; order out_start out_end);
        each!(length, self, m; target in_streams);
        each!(indices, self, n; order source target);
        each!(indices, self, m + 1; out_start out_end);
        length("in_start", &self.in_start, n + 1)?;
        rising("in_start", &self.in_start, m)?;
        indices("in_streams", &self.in_streams, m)
    }
}

/// Operators in breadth-first topological order; fewer than n if there is a cycle.
#[must_use]
pub fn topological_order(n: usize, source: &[Id], target: &[Id]) -> Vec<Id> {
    let streams = Groups::new(source, n);
    let mut waiting = vec![0_u32; n];
    for &v in target {
        waiting[v as usize] += 1;
    }
    let mut order: Vec<Id> = (0..n as Id).filter(|&v| waiting[v as usize] == 0).collect();
    let mut done = 0;
    while let Some(&u) = order.get(done) {
        done += 1;
        for &e in streams.of(u as usize) {
            let v = target[e as usize];
            waiting[v as usize] -= 1;
            if waiting[v as usize] == 0 {
                order.push(v);
            }
        }
    }
    order
}

/// Weighted neighbours of every vertex: those of u are at `start[u]..start[u + 1]`.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    pub start: Vec<i64>,
    pub neighbour: Vec<i64>,
    pub weight: Vec<i64>,
}

/// Neighbours of every vertex in ascending order; merges parallel edges and drops loops.
///
/// Two passes of bucketing sort them in linear time.
#[must_use]
pub fn undirected(source: &[Id], target: &[Id], weight: &[i64], n: usize) -> Neighbours {
    let mut begin = vec![0_usize; n + 1];
    let edges = || source.iter().zip(target).zip(weight).filter(|((u, v), _)| u != v);
    for ((&u, &v), _) in edges() {
        begin[u as usize + 1] += 1;
        begin[v as usize + 1] += 1;
    }
    for u in 0..n {
        begin[u + 1] += begin[u];
    }
    let mut by_far = vec![(0, 0); begin[n]];
    let mut end = begin.clone();
    for ((&u, &v), &weight) in edges() {
        for (far, near) in [(v, u), (u, v)] {
            by_far[end[far as usize]] = (near as usize, weight);
            end[far as usize] += 1;
        }
    }
    let mut rows = vec![(0, 0); begin[n]];
    end.copy_from_slice(&begin);
    for far in 0..n {
        for &(near, weight) in &by_far[begin[far]..begin[far + 1]] {
            match rows[begin[near]..end[near]].last_mut() {
                Some((last, sum)) if *last == far as i64 => *sum += weight,
                _ => {
                    rows[end[near]] = (far as i64, weight);
                    end[near] += 1;
                }
            }
        }
    }
    let mut found = Neighbours { start: vec![0], ..Neighbours::default() };
    for u in 0..n {
        for &(far, weight) in &rows[begin[u]..end[u]] {
            found.neighbour.push(far);
            found.weight.push(weight);
        }
        found.start.push(found.neighbour.len() as i64);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_breadth_first_and_ends_before_a_cycle() {
        assert_eq!(topological_order(4, &[0, 0, 2], &[1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(topological_order(3, &[1, 2], &[2, 1]), [0]);
    }

    #[test]
    fn parallel_edges_are_one_and_loops_none() {
        let found = undirected(&[0, 1, 2, 2], &[1, 0, 2, 0], &[1, 2, 4, 8], 3);
        assert_eq!(found.start, [0, 2, 3, 4]);
        assert_eq!(found.neighbour, [1, 2, 0, 0]);
        assert_eq!(found.weight, [3, 8, 3, 8]);
    }
}
