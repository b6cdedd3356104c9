//! Resource use of one pass: core seconds by device, seconds and bytes on links.

use crate::instance::{Id, Instance};
use crate::table::Table;

/// Resource use of one pass under each of B placements.
#[derive(Clone, Debug)]
pub struct Costs {
    /// [B, D]
    pub core_seconds: Table,
    /// [B] latencies included, transfers one after another
    pub link_seconds: Vec<f64>,
    /// [B] over links
    pub remote_bytes: Vec<f64>,
}

impl Costs {
    /// Resources that the tuples of so many seconds use, constant loads left out.
    #[must_use]
    pub fn of(instance: &Instance, placements: &Table<Id>, seconds: f64) -> Self {
        let (b, platform) = (placements.rows(), &instance.platform);
        let mut costs = Self {
            core_seconds: Table::filled(0.0, b, instance.n_devices()),
            link_seconds: vec![0.0; b],
            remote_bytes: vec![0.0; b],
        };
        for i in 0..b {
            let (place, core) = (placements.row(i), costs.core_seconds.row_mut(i));
            for (v, &a) in place.iter().enumerate() {
                let each = instance.seconds[(v, instance.type_of(a as usize))];
                core[a as usize] += seconds * instance.input_rate[v] * each;
            }
            for e in 0..instance.n_streams() {
                let (u, v) = instance.ends(e);
                let (a, b) = (place[u] as usize, place[v] as usize);
                if a != b {
                    let (tuples, size) =
                        (seconds * instance.tuples[e], seconds * instance.traffic[e]);
                    let handling = tuples * platform.overhead + size * platform.overhead_per_byte;
                    core[a] += handling * platform.slowdown(a);
                    core[b] += handling * platform.slowdown(b);
                    costs.link_seconds[i] += platform.latency[(a, b)] + tuples * platform.gap;
                    costs.link_seconds[i] += size * platform.wire_between(a, b);
                    costs.remote_bytes[i] += size;
                }
            }
        }
        costs
    }
}
