//! Steady state: the relative throughput of placements.
//!
//! All flows scale together, so the relative throughput, the largest share of their rates at which
//! all sources can run at once, is x = min(1, 1 / max load). If operators have constant loads, the
//! load of a device or core counts as a fraction of the capacity that these leave.

use crate::arithmetic::{largest, largest_of, max};
use crate::equation::n_resources;
use crate::instance::{Id, Instance};
use crate::loads::highest;
use crate::table::Table;

/// Computes the throughput of placements of one problem, with the memory that this needs.
pub struct Throughput<'a> {
    instance: &'a Instance,
    kind: Kind,
    loads: Vec<f64>,
    constants: Vec<f64>,
    /// [M] pair of devices of every stream
    pairs: Vec<Id>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Only devices and links can limit.
    Plain {
        few_pairs: bool,
    },
    Any {
        per_core: bool,
    },
}

impl<'a> Throughput<'a> {
    /// Prepare for placements of a problem.
    #[must_use]
    pub fn new(instance: &'a Instance) -> Self {
        let (d, per_core) = (instance.n_devices(), instance.limits_subtasks());
        if instance.has_only_devices_and_links() && !per_core && !instance.has_constants() {
            let few_pairs = d * d <= 4 * instance.n_streams();
            let loads = vec![0.0; d + d * d];
            let pairs = vec![0; instance.n_streams()];
            return Self {
                instance,
                kind: Kind::Plain { few_pairs },
                loads,
                constants: vec![],
                pairs,
            };
        }
        let loads = vec![0.0; n_resources(d)];
        let constants = vec![0.0; instance.n_constants()];
        Self { instance, kind: Kind::Any { per_core }, loads, constants, pairs: vec![] }
    }

    /// Relative throughput of a placement, in [0, 1].
    #[must_use]
    pub fn of(&mut self, placement: &[Id]) -> f64 {
        match self.kind {
            Kind::Plain { few_pairs } => self.plain(placement, few_pairs),
            Kind::Any { per_core } => self.any(placement, per_core),
        }
    }

    fn plain(&mut self, placement: &[Id], few_pairs: bool) -> f64 {
        let instance = self.instance;
        let (d, wire) = (instance.n_devices(), instance.platform.seconds_per_byte.cells());
        let (devices, links) = self.loads.split_at_mut(d);
        for (v, &device) in placement.iter().enumerate() {
            devices[device as usize] += instance.load_on(v, device as usize);
        }
        let streams = instance.source.iter().zip(&instance.target).zip(&instance.traffic);
        for (((&u, &v), traffic), pair) in streams.zip(&mut self.pairs) {
            let at = placement[u as usize] as usize * d + placement[v as usize] as usize;
            links[at] += traffic;
            *pair = at as Id;
        }
        let mut worst = largest(1.0, devices);
        devices.fill(0.0);
        if few_pairs {
            let link_loads = links.iter().zip(wire);
            let link_loads = link_loads.map(|(&link, &wire)| link * wire);
            worst = largest_of(worst, link_loads);
            links.fill(0.0);
        } else {
            for &pair in &self.pairs {
                let link = &mut links[pair as usize];
                worst = max(worst, *link * wire[pair as usize]);
                *link = 0.0; // those in use are few
            }
        }
        1.0 / worst
    }

    fn any(&mut self, placement: &[Id], per_core: bool) -> f64 {
        self.instance.full_rate_loads(placement, &mut self.loads);
        self.instance.write_constants(placement, &mut self.constants);
        let mut worst = max(1.0, highest(&self.loads, &self.constants));
        if per_core {
            worst = max(worst, self.instance.busiest_core(placement));
        }
        1.0 / worst
    }
}

/// Relative throughput of each placement, in [0, 1].
#[must_use]
pub fn throughput(instance: &Instance, placements: &Table<Id>) -> Vec<f64> {
    let mut of = Throughput::new(instance);
    (0..placements.rows()).map(|i| of.of(placements.row(i))).collect()
}
