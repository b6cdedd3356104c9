//! Loads of all resources under one placement at full rate, in the order of `equation`.

use crate::arithmetic::{largest, max};
use crate::equation::{
    egress_at, handling_load, ingress_at, link_at, link_load, n_resources, nic_load, pressure,
};
use crate::instance::{Id, Instance, Platform};

/// Loads of the link a→b, of a's outgoing network card and of b's incoming one.
pub type Wires = (f64, f64, f64);

impl Platform {
    /// Loads by `tuples` tuples/s and `traffic` bytes/s from device `a` to device `b`.
    #[inline]
    #[must_use]
    pub fn flow_loads(&self, tuples: f64, traffic: f64, a: usize, b: usize) -> Wires {
        let link = link_load(traffic, tuples, self.seconds_per_byte[(a, b)], self.gap);
        (link, nic_load(traffic, self.egress[a]), nic_load(traffic, self.ingress[b]))
    }

    /// Load of device `d` by sending or receiving `tuples` tuples/s and `traffic` bytes/s.
    #[inline]
    #[must_use]
    pub fn handling(&self, tuples: f64, traffic: f64, d: usize) -> f64 {
        handling_load(tuples, traffic, self.overhead, self.overhead_per_byte, self.free_cores[d])
    }

    /// Give `add` the load of every resource by `tuples` tuples/s and `traffic` bytes/s from device
    /// `a` to another device `b`.
    #[inline(always)]
    pub fn each_load(
        &self,
        tuples: f64,
        traffic: f64,
        (a, b): (usize, usize),
        mut add: impl FnMut(usize, f64),
    ) {
        let d = self.cores.len();
        let (link, egress, ingress) = self.flow_loads(tuples, traffic, a, b);
        add(link_at(d, a, b), link);
        add(egress_at(d, a), egress);
        add(ingress_at(d, b), ingress);
        if self.handles() {
            add(a, self.handling(tuples, traffic, a));
            add(b, self.handling(tuples, traffic, b));
        }
    }

    /// Whether sending or receiving loads devices.
    #[inline]
    #[must_use]
    pub fn handles(&self) -> bool {
        self.overhead > 0.0 || self.overhead_per_byte > 0.0
    }

    /// Seconds per byte from `a` to `b`: those of the slowest of the link and the two network cards.
    #[inline]
    #[must_use]
    pub fn wire_between(&self, a: usize, b: usize) -> f64 {
        max(self.seconds_per_byte[(a, b)], max(self.egress[a], self.ingress[b]))
    }

    /// Seconds that device `d` takes for a core second of handling, beside other processes.
    #[inline]
    #[must_use]
    pub fn slowdown(&self, d: usize) -> f64 {
        self.cores[d] / self.free_cores[d]
    }
}

impl Instance {
    /// Loads of the wires by stream `e` at full rate.
    #[inline]
    #[must_use]
    pub fn stream_loads(&self, e: usize, a: usize, b: usize) -> Wires {
        self.platform.flow_loads(self.tuples[e], self.traffic[e], a, b)
    }

    /// Load of device `d` by sending or receiving a share of stream `e`.
    #[inline]
    #[must_use]
    pub fn stream_handling(&self, e: usize, d: usize, share: f64) -> f64 {
        self.platform.handling(share * self.tuples[e], share * self.traffic[e], d)
    }

    /// Load of device `d` by operator `v`.
    #[inline]
    #[must_use]
    pub fn load_on(&self, v: usize, d: usize) -> f64 {
        self.load[(v, self.type_of(d))]
    }

    /// Add the loads of a share of stream `e` to devices, links and network cards.
    #[inline]
    pub fn add_stream(&self, loads: &mut [f64], e: usize, a: usize, b: usize, share: f64) {
        if a != b {
            let (tuples, traffic) = (share * self.tuples[e], share * self.traffic[e]);
            self.platform.each_load(tuples, traffic, (a, b), |r, load| loads[r] += load);
        }
    }

    /// Write the load of every resource at full rate.
    pub fn full_rate_loads(&self, placement: &[Id], loads: &mut [f64]) {
        loads[..n_resources(self.n_devices())].fill(0.0);
        for (v, &d) in placement.iter().enumerate() {
            loads[d as usize] += self.load_on(v, d as usize);
        }
        for e in 0..self.n_streams() {
            let (u, v) = self.ends(e);
            self.add_stream(loads, e, placement[u] as usize, placement[v] as usize, 1.0);
        }
    }

    /// Whether tuples cost nothing beyond CPU and bytes on links.
    #[must_use]
    pub fn has_only_devices_and_links(&self) -> bool {
        let platform = &self.platform;
        let per_tuple = [platform.overhead, platform.overhead_per_byte, platform.gap];
        let cards = platform.egress.iter().chain(&platform.ingress);
        per_tuple.iter().chain(cards).all(|&cost| cost == 0.0)
    }

    /// Whether a subtask may be full, of its core or its largest rate, before its device is.
    #[must_use]
    pub fn limits_subtasks(&self) -> bool {
        !self.max_rate.is_empty() || self.platform.cores.iter().any(|&cores| cores > 1.0)
    }

    /// Length of the vector of constant loads: the number of devices, or 0 if there are none.
    #[must_use]
    pub fn n_constants(&self) -> usize {
        if self.has_constants() { self.n_devices() } else { 0 }
    }

    /// Load of one core by a subtask as a fraction of the capacity that its constant load leaves.
    #[inline]
    #[must_use]
    pub fn core_pressure(&self, v: usize, d: usize) -> f64 {
        let at = (v, self.type_of(d));
        let constant = if self.core_constant.rows() == 0 { 0.0 } else { self.core_constant[at] };
        pressure(self.core_load[at], constant)
    }

    /// Write the constant load of every device, unless `constants` is empty.
    pub fn write_constants(&self, placement: &[Id], constants: &mut [f64]) {
        constants.fill(0.0);
        if !constants.is_empty() {
            for (v, &d) in placement.iter().enumerate() {
                constants[d as usize] += self.constant[(v, self.type_of(d as usize))];
            }
        }
    }

    /// Largest pressure of one subtask on its core.
    #[must_use]
    pub fn busiest_core(&self, placement: &[Id]) -> f64 {
        let each = placement.iter().enumerate();
        each.fold(0.0, |worst, (v, &d)| max(worst, self.core_pressure(v, d as usize)))
    }
}

/// Largest load as a fraction of the capacity that constant loads leave, at least 0.
#[must_use]
pub fn highest(loads: &[f64], constants: &[f64]) -> f64 {
    let (devices, rest) = loads.split_at(constants.len());
    let pressures = devices.iter().zip(constants).map(|(&load, &held)| pressure(load, held));
    largest(pressures.fold(0.0, max), rest)
}
