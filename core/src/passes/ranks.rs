//! Levels of operators, and the longest way to an end of the graph.
//!
//! Streams into an operator come before those out of it. Nothing is returned if there is a stream
//! of an operator that does not exist.

use crate::arithmetic::max;
use crate::instance::Id;

/// Level of each of `n` operators: most streams on a path to it from an operator without inputs.
///
/// `streams` are their ends.
pub fn levels(n: usize, streams: impl Iterator<Item = (usize, usize)>) -> Option<Vec<Id>> {
    let mut level = vec![0; n];
    for (u, v) in streams {
        let above = level.get(u)? + 1;
        let level = level.get_mut(v)?;
        *level = above.max(*level);
    }
    Some(level)
}

/// rank(v) = w(v) + max over streams (v, u) of (c(v, u) + rank(u)), in seconds, [N].
///
/// `streams` are their ends and the time c of their transfers.
pub fn longest_to_end(
    work: &[f64],
    streams: impl DoubleEndedIterator<Item = (usize, usize, f64)>,
) -> Option<Vec<f64>> {
    let mut rank = work.to_vec();
    for (u, v, transfer) in streams.rev() {
        let after = *rank.get(v)?;
        let rank = rank.get_mut(u)?;
        *rank = max(*rank, work[u] + transfer + after);
    }
    Some(rank)
}
