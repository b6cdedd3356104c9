//! Maximum adjacency orders: the next node is the one to which most flow leads.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::arithmetic::max;
use crate::instance::Id;

/// A node by its pull when it was pushed, largest first; ties by heaviest entry, then by number.
#[derive(Debug, PartialEq)]
struct Candidate {
    pull: f64,
    heaviest: f64,
    node: Id,
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let by = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
        by(self.pull, other.pull)
            .then(by(self.heaviest, other.heaviest))
            .then(Reverse(self.node).cmp(&Reverse(other.node)))
    }
}

/// Nodes from `first` on, always the one to which most flow leads from those before.
///
/// The neighbours of node u are the entries `start[u]..start[u + 1]`. Ties go to the node of the
/// heavier entry, then to the first, and so does the beginning if it is `None`.
#[must_use]
pub fn grown(start: &[Id], peer: &[Id], flow: &[f64], first: Option<Id>) -> Vec<Id> {
    let n = start.len() - 1;
    let entries = |u: usize| start[u] as usize..start[u + 1] as usize;
    let heaviest: Vec<f64> =
        (0..n).map(|u| flow[entries(u)].iter().copied().fold(0.0, max)).collect();
    let mut pull = vec![0.0; n];
    if let Some(first) = first {
        pull[first as usize] = f64::INFINITY;
    }
    let candidate =
        |node: Id, pull: f64| Candidate { pull, heaviest: heaviest[node as usize], node };
    let mut heap: BinaryHeap<_> = (0..n as Id).map(|u| candidate(u, pull[u as usize])).collect();
    let (mut order, mut done) = (Vec::with_capacity(n), vec![false; n]);
    while let Some(Candidate { pull: then, node, .. }) = heap.pop() {
        let u = node as usize;
        if done[u] || then < pull[u] {
            continue;
        }
        done[u] = true;
        order.push(node);
        for e in entries(u) {
            let v = peer[e] as usize;
            if !done[v] {
                pull[v] += flow[e];
                heap.push(candidate(peer[e], pull[v]));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of streams of 1, 3 and 2 bytes/s.
    #[test]
    fn the_heaviest_pair_comes_first_and_then_its_neighbours() {
        let (start, peer) = ([0, 1, 3, 5, 6], [1, 0, 2, 1, 3, 2]);
        let flow = [1.0, 1.0, 3.0, 3.0, 2.0, 2.0];
        assert_eq!(grown(&start, &peer, &flow, None), [1, 2, 3, 0]);
        assert_eq!(grown(&start, &peer, &flow, Some(0)), [0, 1, 2, 3]);
    }
}
