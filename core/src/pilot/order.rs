//! Maximum adjacency orders: the next node is the one to which most flow leads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::arithmetic::max;
use crate::instance::Id;

/// Nodes from `first` on, always the one to which most flow leads from those before.
///
/// The neighbours of node u are the entries `start[u]..start[u + 1]`; no flow is negative. Ties go
/// to the node of the heavier entry, then to the first, and so does the beginning if it is `None`.
#[must_use]
pub fn grown(start: &[Id], peer: &[Id], flow: &[f64], first: Option<Id>) -> Vec<Id> {
    let n = start.len() - 1;
    let entries = |u: Id| start[u as usize] as usize..start[u as usize + 1] as usize;
    let heaviest = |u: Id| flow[entries(u)].iter().copied().fold(0.0, max);
    let mut preferred: Vec<_> = (0..n as Id).map(|u| (Reverse(heaviest(u).to_bits()), u)).collect();
    preferred.sort_unstable(); // numbers that are not negative have the order of their bits
    let mut place = vec![0; n];
    for (i, &(_, u)) in preferred.iter().enumerate() {
        place[u as usize] = i as Id;
    }
    // Nodes to which a flow leads, several times if it grew; all others are taken as preferred.
    let mut heap = BinaryHeap::new();
    let mut others = preferred.iter().map(|&(_, u)| u);
    let (mut pull, mut is_done) = (vec![0.0_f64; n], vec![false; n]);
    let mut order = Vec::with_capacity(n);
    let mut next = first;
    while let Some(u) = next.or_else(|| others.find(|&u| !is_done[u as usize])) {
        is_done[u as usize] = true;
        order.push(u);
        for e in entries(u) {
            let v = peer[e] as usize;
            if !is_done[v] && flow[e] > 0.0 {
                pull[v] += flow[e];
                heap.push((pull[v].to_bits(), Reverse(place[v])));
            }
        }
        next = None;
        while let Some((bits, Reverse(i))) = heap.pop() {
            let (_, v) = preferred[i as usize];
            if !is_done[v as usize] && bits == pull[v as usize].to_bits() {
                next = Some(v);
                break;
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
