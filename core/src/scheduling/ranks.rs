//! Ranks: time before and after every task in a pass, by mean work and transfers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::tasks::Tasks;
use crate::arithmetic::{max, min};
use crate::instance::Id;
use crate::passes::sending_seconds;
use crate::table::Table;

/// Upward rank of HEFT: rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u)).
#[must_use]
pub fn upward(tasks: &Tasks) -> Vec<f64> {
    let (mean, work) = (tasks.mean_transfer(), tasks.mean_work());
    let mut rank = work.clone();
    for v in tasks.in_order().rev() {
        for e in tasks.outputs(v) {
            let after = rank[tasks.target[e] as usize];
            rank[v] = max(rank[v], work[v] + tasks.mean_sending(e, mean) + after);
        }
    }
    rank
}

/// Downward rank: rank(v) = max over streams (u, v) of (rank(u) + w̄(u) + c̄(u, v)).
#[must_use]
pub fn downward(tasks: &Tasks) -> Vec<f64> {
    let (mean, work) = (tasks.mean_transfer(), tasks.mean_work());
    let mut rank = vec![0.0; work.len()];
    for v in tasks.in_order() {
        for e in tasks.outputs(v) {
            let w = tasks.target[e] as usize;
            rank[w] = max(rank[w], rank[v] + work[v] + tasks.mean_sending(e, mean));
        }
    }
    rank
}

/// Optimistic cost table of PEFT, [N, D].
///
/// OCT(v, a) = max over streams (v, u) of min over devices b of
/// (OCT(u, b) + w(u, b) + c̄(v, u) where b differs from a).
#[must_use]
pub fn optimistic_costs(tasks: &Tasks) -> Table {
    let (mean, d) = (tasks.mean_transfer(), tasks.n_devices());
    let mut table = Table::filled(0.0, tasks.n_tasks(), d);
    let mut ends = vec![0.0; d];
    for v in tasks.in_order().rev() {
        for e in tasks.outputs(v) {
            let (u, sending) = (tasks.target[e] as usize, tasks.mean_sending(e, mean));
            for ((end, after), work) in ends.iter_mut().zip(table.row(u)).zip(tasks.work.row(u)) {
                *end = after + work;
            }
            let away = ends.iter().fold(f64::INFINITY, |away, end| min(away, end + sending));
            for (cost, &end) in table.row_mut(v).iter_mut().zip(&ends) {
                *cost = max(*cost, min(away, end));
            }
        }
    }
    table
}

/// Least seconds from the end of every task, on each device, to the end of the pass, [N, D].
#[must_use]
pub fn least_after(tasks: &Tasks) -> Table {
    let d = tasks.n_devices();
    let mut table = Table::filled(0.0, tasks.n_tasks(), d);
    let (latency, wire) = (tasks.latency.transposed(), tasks.wire.transposed());
    let mut least = vec![0.0; d];
    for v in tasks.in_order().rev() {
        for e in tasks.outputs(v) {
            let (u, size, fixed_s) = (tasks.target[e] as usize, tasks.size[e], tasks.fixed_s[e]);
            let (work, after) = (tasks.work.row(u), table.row(u));
            for ((least, work), after) in least.iter_mut().zip(work).zip(after) {
                *least = work + after; // at home, where no transfer is longer than one
            }
            for (b, (&work, &after)) in work.iter().zip(after).enumerate() {
                let wires = latency.row(b).iter().zip(wire.row(b));
                for (least, (&latency, &wire)) in least.iter_mut().zip(wires) {
                    let sending = sending_seconds(latency, size, wire, fixed_s);
                    *least = min(*least, sending + work + after);
                }
            }
            for (longest, &least) in table.row_mut(v).iter_mut().zip(&least) {
                *longest = max(*longest, least);
            }
        }
    }
    table
}

/// Order tasks topologically by highest rank, then lowest index.
#[must_use]
pub fn by_rank(tasks: &Tasks, rank: &[f64]) -> Vec<Id> {
    let mut waiting = tasks.input_counts();
    let entry = |v: Id| (rising(rank[v as usize]), Reverse(v));
    let free = (0..waiting.len()).filter(|&v| waiting[v] == 0);
    let mut ready: BinaryHeap<_> = free.map(|v| entry(v as Id)).collect();
    let mut order = Vec::with_capacity(waiting.len());
    while let Some((_, Reverse(v))) = ready.pop() {
        order.push(v);
        for &u in &tasks.target[tasks.outputs(v as usize)] {
            waiting[u as usize] -= 1;
            if waiting[u as usize] == 0 {
                ready.push(entry(u));
            }
        }
    }
    order
}

/// A whole number that rises with a number.
fn rising(number: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let bits = (number + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Whether u has the higher rank, or the same and the lower number.
#[inline(always)]
#[must_use]
pub fn comes_before(rank: &[f64], u: usize, v: usize) -> bool {
    rank[u] > rank[v] || (rank[u] == rank[v] && u < v)
}

#[cfg(test)]
mod tests {
    use super::rising;

    #[test]
    fn whole_numbers_rise_with_numbers() {
        let numbers = [f64::NEG_INFINITY, -2.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, f64::INFINITY];
        assert!(numbers.map(rising).is_sorted());
        assert_eq!(rising(-0.0), rising(0.0));
    }
}
