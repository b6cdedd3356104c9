//! Latency of one tuple in an empty system: the longest path, in seconds.

use crate::arithmetic::max;
use crate::instance::{Id, Instance};
use crate::table::Table;

/// Seconds from a source to the sink that is reached last, for each placement.
///
/// T(v) = c(v) + max over streams (u, v) of T(u) + L + g + 2·o + payload · (G + 2·o'), where the
/// network terms are 0 within a device, G is that of the slowest of link and network cards, and o'
/// is the overhead per byte. Windows are assumed to emit at once.
#[must_use]
pub fn latencies(instance: &Instance, placements: &Table<Id>) -> Vec<f64> {
    let platform = &instance.platform;
    let per_tuple = platform.gap + 2.0 * platform.overhead;
    let per_byte = 2.0 * platform.overhead_per_byte;
    let mut arrival = vec![0.0; instance.n_operators()];
    let mut latency = |place: &[Id]| {
        arrival.fill(0.0);
        let mut last = 0.0;
        for v in instance.in_order() {
            let a = place[v] as usize;
            let done = arrival[v] + instance.seconds[(v, instance.type_of(a))];
            last = max(last, done);
            for e in instance.outputs(v) {
                let to = instance.target[e] as usize;
                let b = place[to] as usize;
                let mut at = done;
                if a != b {
                    let size = instance.payload[e];
                    let fixed = per_tuple + size * per_byte;
                    at += platform.latency[(a, b)] + size * platform.wire_between(a, b) + fixed;
                }
                arrival[to] = max(arrival[to], at);
            }
        }
        last
    };
    (0..placements.rows()).map(|i| latency(placements.row(i))).collect()
}
