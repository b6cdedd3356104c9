//! Steady state under moves: moving one operator costs its degree plus the resources it changes.
//!
//! The loads at full rate are the leaves of a tournament tree whose root is the largest load, so
//! that the bottleneck and the throughput are known after every move.

use crate::arithmetic::{largest_of, max};
use crate::equation::{link_at, n_resources, pressure};
use crate::instance::{Id, Instance};

/// Largest number of resources whose largest load is found by a scan: vector instructions make that
/// cheaper than maintaining a tree.
const SCANNED: usize = 250;

/// A placement and the loads it causes.
///
/// A load is `loads[r] + carry[r]`: the rounding error of every addition is carried, so that a
/// load returns to its old value when its operators return, after any number of moves.
#[derive(Clone, Debug)]
pub struct LoadState {
    placement: Vec<Id>,
    /// [R] as in `equation`; without the network cards if `plain`
    loads: Vec<f64>,
    carry: Vec<f64>,
    /// `tree[1]` is the largest load; leaves: resources, then cores. Or empty.
    tree: Vec<f64>,
    /// only devices and links limit
    plain: bool,
    /// whether the leaves include one per operator for the bound of a single core
    per_core: bool,
    /// [D] constant loads of the devices; empty if there are none
    constants: Vec<f64>,
    constants_carry: Vec<f64>,
}

impl LoadState {
    /// The state of a placement from scratch.
    #[must_use]
    pub fn new(instance: &Instance, placement: Vec<Id>) -> Self {
        let d = instance.n_devices();
        let (plain, per_core) = (instance.has_only_devices_and_links(), instance.limits_subtasks());
        let size = if plain { d + d * d } else { n_resources(d) };
        let leaves = size + if per_core { placement.len() } else { 0 };
        let mut state = Self {
            placement,
            loads: vec![0.0; size],
            carry: vec![0.0; size],
            tree: vec![],
            plain,
            per_core,
            constants: vec![0.0; instance.n_constants()],
            constants_carry: vec![0.0; instance.n_constants()],
        };
        state.load(instance);
        if size > SCANNED || per_core {
            state.tree = vec![0.0; 2 * leaves.next_power_of_two()];
            state.grow(instance);
        }
        state
    }

    /// Device of every operator.
    #[must_use]
    pub fn placement(&self) -> &[Id] {
        &self.placement
    }

    /// Load of every resource, as in `equation`; without the network cards if they cannot limit.
    #[must_use]
    pub fn loads(&self) -> Vec<f64> {
        self.loads.iter().zip(&self.carry).map(|(load, carry)| load + carry).collect()
    }

    /// Move operator `v` to device `to` and update every load that this changes.
    #[inline]
    pub fn move_operator(&mut self, instance: &Instance, v: usize, to: usize) {
        let old = self.placement[v] as usize;
        if old == to {
            return;
        }
        self.take_constant(instance, v, old, -1.0);
        self.take_constant(instance, v, to, 1.0);
        self.shift(old, -instance.load_on(v, old));
        self.shift(to, instance.load_on(v, to));
        for e in instance.outputs(v) {
            let peer = self.placement[instance.target[e] as usize] as usize;
            self.reroute(instance, e, old, peer, -1.0);
            self.reroute(instance, e, to, peer, 1.0);
        }
        for &e in instance.inputs(v) {
            let peer = self.placement[instance.source[e as usize] as usize] as usize;
            self.reroute(instance, e as usize, peer, old, -1.0);
            self.reroute(instance, e as usize, peer, to, 1.0);
        }
        self.placement[v] = to as Id;
        if self.per_core {
            set_leaf(&mut self.tree, self.loads.len() + v, instance.core_pressure(v, to));
        }
    }

    /// Load of the fullest resource.
    #[inline]
    #[must_use]
    pub fn peak(&self) -> f64 {
        if let Some(&top) = self.tree.get(1) {
            return top;
        }
        let held = self.constants.len();
        let worst = (0..held).fold(0.0, |worst, r| max(worst, self.leaf(r)));
        let rest = self.loads[held..].iter().zip(&self.carry[held..]);
        largest_of(worst, rest.map(|(load, carry)| load + carry))
    }

    /// Relative throughput of the current placement.
    #[inline]
    #[must_use]
    pub fn value(&self) -> f64 {
        1.0 / max(1.0, self.peak())
    }

    /// Add the loads of the placement to empty resources.
    fn load(&mut self, instance: &Instance) {
        for v in 0..self.placement.len() {
            let d = self.placement[v] as usize;
            self.take_constant(instance, v, d, 1.0);
            self.shift(d, instance.load_on(v, d));
        }
        for e in 0..instance.n_streams() {
            let (u, v) = instance.ends(e);
            let (a, b) = (self.placement[u] as usize, self.placement[v] as usize);
            self.reroute(instance, e, a, b, 1.0);
        }
    }

    /// Build the tournament tree over the loads and, if they may limit, the cores.
    fn grow(&mut self, instance: &Instance) {
        let (half, size) = (self.tree.len() / 2, self.loads.len());
        for r in 0..size {
            self.tree[half + r] = self.leaf(r);
        }
        if self.per_core {
            for (v, &d) in self.placement.iter().enumerate() {
                self.tree[half + size + v] = instance.core_pressure(v, d as usize);
            }
        }
        for i in (1..half).rev() {
            self.tree[i] = max(self.tree[2 * i], self.tree[2 * i + 1]);
        }
    }

    /// Add (sign 1) or remove (sign −1) stream `e` between devices `a` and `b`.
    #[inline]
    fn reroute(&mut self, instance: &Instance, e: usize, a: usize, b: usize, sign: f64) {
        let d = instance.n_devices();
        if self.plain {
            // links from a device to itself cost nothing, which is cheaper than a branch
            let flow = sign * instance.traffic[e];
            let wire = instance.platform.seconds_per_byte[(a, b)];
            self.shift(link_at(d, a, b), flow * wire);
            return;
        }
        if a != b {
            let (tuples, traffic) = (sign * instance.tuples[e], sign * instance.traffic[e]);
            instance.platform.each_load(tuples, traffic, (a, b), |r, load| self.shift(r, load));
        }
    }

    /// Change the load of resource `r` and carry the rounding error (Knuth's two-sum).
    #[inline]
    fn shift(&mut self, r: usize, change: f64) {
        add_carrying(&mut self.loads[r], &mut self.carry[r], change);
        if !self.tree.is_empty() {
            let load = self.leaf(r);
            set_leaf(&mut self.tree, r, load);
        }
    }

    /// Load of a resource as a fraction of the capacity that constant loads leave free.
    #[inline]
    fn leaf(&self, r: usize) -> f64 {
        let load = self.loads[r] + self.carry[r];
        match self.constants.get(r) {
            Some(constant) => pressure(load, constant + self.constants_carry[r]),
            None => load,
        }
    }

    /// Add or remove the constant load of operator `v` on device `d`; its leaf is updated later.
    #[inline]
    fn take_constant(&mut self, instance: &Instance, v: usize, d: usize, sign: f64) {
        if let Some(constant) = self.constants.get_mut(d) {
            let change = sign * instance.constant[(v, instance.type_of(d))];
            add_carrying(constant, &mut self.constants_carry[d], change);
        }
    }
}

/// Add a change to a sum, and its rounding error to the carry of the sum.
#[inline(always)]
fn add_carrying(sum: &mut f64, carry: &mut f64, change: f64) {
    let old = *sum;
    let new = old + change;
    let added = new - old;
    *sum = new;
    *carry += (old - (new - added)) + (change - added);
}

/// Write one leaf and update the maxima above it, until one does not change.
#[inline]
fn set_leaf(tree: &mut [f64], leaf: usize, load: f64) {
    let mut i = leaf + tree.len() / 2;
    tree[i] = load;
    while i > 1 {
        i /= 2;
        let top = max(tree[2 * i], tree[2 * i + 1]);
        if tree[i] == top {
            return;
        }
        tree[i] = top;
    }
}
