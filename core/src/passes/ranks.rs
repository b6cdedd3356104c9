//! Levels of operators, and the longest way to an end of the graph.

use super::compiled::Pass;
use super::sending::sending_seconds;
use crate::arithmetic::max;
use crate::instance::{Id, Instance};

/// Level of each operator: most streams on a path to it from an operator without inputs.
///
/// Streams into an operator come before those out of it.
#[must_use]
pub fn levels(instance: &Instance) -> Vec<Id> {
    let mut level = vec![0; instance.n_operators()];
    for e in 0..instance.n_streams() {
        let (u, v) = instance.ends(e);
        level[v] = level[v].max(level[u] + 1);
    }
    level
}

/// rank(v) = w(v) + max over streams (v, u) of (c(v, u) + rank(u)), in seconds, [N].
///
/// c is the transfer time over a link of this latency and these seconds per byte.
#[must_use]
pub fn longest_to_end(one_pass: &Pass, work: &[f64], latency: f64, wire: f64) -> Vec<f64> {
    let mut rank = work.to_vec();
    for stream in one_pass.streams.iter().rev() {
        let transfer = sending_seconds(latency, stream.size, wire, one_pass.fixed_seconds(stream));
        let (u, v) = (stream.source as usize, stream.target as usize);
        rank[u] = max(rank[u], work[u] + transfer + rank[v]);
    }
    rank
}
