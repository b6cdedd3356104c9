//! Branch and bound for a placement with all loads below limits.
//!
//! The search goes depth first. At every node the unit with the fewest feasible devices is placed
//! next; a device is feasible while no load reaches its limit (forward checking), and of equal empty
//! devices only the first is tried. A node is pruned if some unit has no feasible device, or if the
//! devices cannot carry the remaining work. There is one load vector per depth, in the order of
//! `equation`. A vector is always computed from the one above it, never undone, so that rounding
//! errors do not accumulate over millions of nodes.
//!
//! If D equal devices must carry all work with loads below a cut, each must carry at least the work
//! that the others cannot. Few patterns of units lie between these limits; the search keeps every
//! device within them. Counts are packed into one word, a field per kind with a guard bit on top, so
//! that comparing all fields is one subtraction: (b | guards) - a keeps all guards if and only if
//! a ≤ b in every field.

use super::units::Units;
use crate::arithmetic::{max, min};
use crate::check::{Wrong, each, length};
use crate::equation::{egress_at, ingress_at, link_at, n_resources, nic_load};
use crate::instance::{Id, NONE};
use crate::table::Table;
use crate::watch::Watch;

/// Share by which sums may be rounded.
const ROUNDING: f64 = 1e-9;

/// Allowed combinations of units on a device (P), and the encoding of units in them.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// [P] counts of every kind; empty for no restriction
    pub word: Vec<i64>,
    /// [P] their work
    pub work: Vec<f64>,
    /// [U] one unit of the kind of u
    pub single: Vec<i64>,
    /// [U] the field of that kind
    pub field: Vec<i64>,
    pub guards: i64,
    /// work of all units
    pub total: f64,
}

/// Limits of the loads of a placement, and the needs of units.
#[derive(Clone, Debug)]
pub struct Limits {
    /// [D] limit of CPU loads
    pub full: Vec<f64>,
    /// limit of every other load
    pub cut: f64,
    /// [U] CPU work, at most load · power on every device
    pub work: Vec<f64>,
    /// [D]
    pub power: Vec<f64>,
    /// seconds per byte of the slowest link
    pub wire: f64,
    pub patterns: Patterns,
    /// [U] rank that decides between units with equally few devices, largest first
    pub rank: Vec<f64>,
}

impl Limits {
    /// Check lengths.
    pub fn check(&self, units: &Units) -> Result<(), Wrong> {
        let (n, patterns) = (units.n_units(), &self.patterns);
        each!(length, self, units.n_devices(); full power);
        each!(length, self, n; work rank);
        if !patterns.word.is_empty() {
            length("work of patterns", &patterns.work, patterns.word.len())?;
            each!(length, patterns, n; single field);
        }
        Ok(())
    }
}

/// How a search ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// No placement is within the limits.
    Exhausted,
    /// All nodes were used, or the watch ended the search.
    Paused,
    /// [U] a placement within the limits
    Improved(Vec<Id>),
}

/// Look for a placement within the limits; return how that ends, and the number of nodes.
#[must_use]
pub fn place_below(
    units: &Units,
    limits: &Limits,
    nodes: u64,
    watch: &mut Watch,
) -> (Outcome, u64) {
    let mut search = Search::new(units, limits);
    let outcome = search.run(nodes, watch);
    (outcome, search.nodes)
}

/// Streams between a unit and the units on a device.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    /// bytes/s
    out: f64,
    into: f64,
    /// tuples/s
    tuples_out: f64,
    tuples_in: f64,
}

/// A search; depth t has placed t units.
struct Search<'a> {
    units: &'a Units,
    limits: &'a Limits,
    /// [U] device or `NONE`
    place: Vec<Id>,
    /// [U + 1, R]
    loads: Table,
    /// [U] unit placed at each depth
    unit: Vec<usize>,
    /// [U, D] devices to try at each depth, the best last
    options: Table<Id>,
    /// [U] number of them still to try
    left: Vec<usize>,
    nodes: u64,
    /// [D] representative of a device: itself, or the first equal empty device
    lead: Vec<usize>,
    /// [D] work that could still go to a device
    reach: Vec<f64>,
    /// [D] units on each device, in the patterns' words
    held: Vec<i64>,
    /// [D] largest work of the patterns still open to a device
    most: Vec<f64>,
    /// [D] fields of the kinds of which a device may still receive units
    grows: Vec<i64>,
    /// [D] streams between a unit and the units on each device
    beside: Vec<Beside>,
    /// devices with such streams, in order
    peers: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(units: &'a Units, limits: &'a Limits) -> Self {
        let (n, d) = (units.n_units(), units.n_devices());
        Self {
            units,
            limits,
            place: vec![NONE; n],
            loads: Table::filled(0.0, n + 1, n_resources(d)),
            unit: vec![0; n],
            options: Table::filled(0, n, d),
            left: vec![0; n],
            nodes: 0,
            lead: vec![0; d],
            reach: vec![0.0; d],
            held: vec![0; d],
            most: vec![0.0; d],
            grows: vec![0; d],
            beside: vec![Beside::default(); d],
            peers: Vec::with_capacity(d),
        }
    }

    fn run(&mut self, nodes: u64, watch: &mut Watch) -> Outcome {
        let mut t = 0;
        if !self.branch(0, watch) {
            return Outcome::Paused;
        }
        loop {
            self.place[self.unit[t]] = NONE;
            if self.left[t] == 0 {
                if t == 0 {
                    return Outcome::Exhausted;
                }
                t -= 1;
                continue;
            }
            if self.nodes >= nodes {
                return Outcome::Paused;
            }
            self.nodes += 1;
            self.left[t] -= 1;
            self.descend(t, self.options[(t, self.left[t])] as usize);
            t += 1;
            if t == self.place.len() {
                return Outcome::Improved(self.place.clone());
            }
            if !self.branch(t, watch) {
                return Outcome::Paused;
            }
        }
    }

    /// Place the unit of depth `t` on device `d`.
    fn descend(&mut self, t: usize, d: usize) {
        let u = self.unit[t];
        self.gather(u);
        let (n, r, platform) = (self.units.n_devices(), self.loads.columns(), &self.units.platform);
        let (above, below) = self.loads.cells_mut()[t * r..(t + 2) * r].split_at_mut(r);
        below.copy_from_slice(above);
        let loads = below;
        loads[d] += self.units.load[(u, d)];
        for &b in self.peers.iter().filter(|&&b| b != d) {
            let Beside { out, into, tuples_out, tuples_in } = self.beside[b];
            let (handled, size) = (tuples_out + tuples_in, out + into);
            loads[d] += platform.handling(handled, size, d);
            loads[b] += platform.handling(handled, size, b);
            let (link, egress, ingress) = platform.flow_loads(tuples_out, out, d, b);
            loads[link_at(n, d, b)] += link;
            loads[egress_at(n, d)] += egress;
            loads[ingress_at(n, b)] += ingress;
            let (link, egress, ingress) = platform.flow_loads(tuples_in, into, b, d);
            loads[link_at(n, b, d)] += link;
            loads[egress_at(n, b)] += egress;
            loads[ingress_at(n, d)] += ingress;
        }
        self.place[u] = d as Id;
    }

    /// Choose the unit with the fewest feasible devices and sort these; none to prune the node.
    ///
    /// False if the watch ends the search.
    fn branch(&mut self, t: usize, watch: &mut Watch) -> bool {
        let (n, n_devices) = (self.units.n_units(), self.units.n_devices());
        let margin = ROUNDING * self.limits.cut;
        self.find_leads();
        self.reach.fill(0.0);
        self.left[t] = 0;
        let free = self.place.iter().position(|&d| d == NONE);
        self.unit[t] = free.unwrap_or(0);
        let patterns = self.limits.patterns.word.len();
        if watch.is_over(10 * n_devices * n_devices + n_devices * patterns) {
            return false;
        }
        if !self.match_patterns(margin) {
            return true;
        }
        let (mut chosen, mut fewest, mut rank, mut need) = (0, n_devices + 1, 0.0, 0.0);
        for u in 0..n {
            if self.place[u] != NONE {
                continue;
            }
            if watch.is_over(20 * n_devices + self.units.streams(u).len()) {
                return false;
            }
            need += self.limits.work[u];
            self.gather(u);
            let mut count = 0;
            for d in 0..n_devices {
                if self.lead[d] == d && self.fits(t, u, d) {
                    count += 1;
                    self.reach[d] += self.limits.work[u];
                }
            }
            if count < fewest || (count == fewest && self.limits.rank[u] > rank) {
                (chosen, fewest, rank) = (u, count, self.limits.rank[u]);
            }
            if count == 0 {
                break;
            }
        }
        self.unit[t] = chosen;
        if fewest > 0 && self.supply(t) >= need - margin {
            self.order(t, chosen);
        }
        true
    }

    /// Find the patterns still open to every device.
    ///
    /// Return whether they can hold all the work, less a margin for rounding.
    fn match_patterns(&mut self, margin: f64) -> bool {
        let patterns = &self.limits.patterns;
        if patterns.word.is_empty() {
            return true;
        }
        let guards = patterns.guards;
        self.held.fill(0);
        let mut free = 0_i64;
        for (&d, &single) in self.place.iter().zip(&patterns.single) {
            let sum = if d == NONE { &mut free } else { &mut self.held[d as usize] };
            *sum = sum.wrapping_add(single);
        }
        let mut whole = 0.0;
        for d in 0..self.lead.len() {
            if self.lead[d] == d {
                let (mut most, mut grows) = (-1.0, 0);
                let (least, room) = (self.held[d], self.held[d].wrapping_add(free) | guards);
                for (&word, &work) in patterns.word.iter().zip(&patterns.work) {
                    let above = (word | guards).wrapping_sub(least);
                    if above & room.wrapping_sub(word) & guards == guards {
                        grows |= word.wrapping_sub(least);
                        most = max(most, work);
                    }
                }
                (self.most[d], self.grows[d]) = (most, grows);
                if most < 0.0 {
                    return false;
                }
            }
            whole += self.most[self.lead[d]];
        }
        whole >= patterns.total - margin
    }

    /// Work that the devices can still receive.
    fn supply(&self, t: usize) -> f64 {
        let (limits, loads) = (self.limits, self.loads.row(t));
        (0..limits.full.len()).fold(0.0, |supply, d| {
            let room = (limits.full[d] - loads[d]) * limits.power[d];
            supply + min(room, self.reach[self.lead[d]])
        })
    }

    /// Choose representatives: every used device itself, the first empty device of every class.
    fn find_leads(&mut self) {
        let (classes, n) = (&self.units.classes, self.lead.len());
        self.lead.fill(usize::MAX);
        for &d in self.place.iter().filter(|&&d| d != NONE) {
            self.lead[d as usize] = d as usize;
        }
        for d in 0..n {
            if self.lead[d] != usize::MAX {
                continue;
            }
            self.lead[d] = d;
            for a in d + 1..n {
                if self.lead[a] == usize::MAX && classes[a] == classes[d] {
                    self.lead[a] = d;
                }
            }
        }
    }

    /// Sum the streams between unit `u` and the units on each device.
    fn gather(&mut self, u: usize) {
        let units = self.units;
        self.beside.fill(Beside::default());
        for &e in units.streams(u) {
            let e = e as usize;
            let leaves = units.source[e] as usize == u;
            let d = self.place[if leaves { units.target[e] } else { units.source[e] } as usize];
            if d == NONE {
                continue;
            }
            let beside = &mut self.beside[d as usize];
            if leaves {
                beside.out += units.traffic[e];
                beside.tuples_out += units.tuples[e];
            } else {
                beside.into += units.traffic[e];
                beside.tuples_in += units.tuples[e];
            }
        }
        let is_peer = |&b: &usize| {
            let Beside { out, into, tuples_out, tuples_in } = self.beside[b];
            tuples_out + tuples_in + out + into != 0.0
        };
        self.peers.clear();
        self.peers.extend((0..self.beside.len()).filter(is_peer));
    }

    /// Whether unit `u` on device `d` keeps every load within the limits, after `gather`.
    fn fits(&self, t: usize, u: usize, d: usize) -> bool {
        let (units, limits, loads) = (self.units, self.limits, self.loads.row(t));
        let (cut, full) = (limits.cut, &limits.full);
        let own = units.load[(u, d)];
        if units.core[(u, d)] >= cut || loads[d] + own >= full[d] {
            return false;
        }
        if !limits.patterns.word.is_empty() && self.grows[d] & limits.patterns.field[u] == 0 {
            return false;
        }
        let (n, platform) = (full.len(), &units.platform);
        let (mut sent, mut taken, mut handled) = (0.0, 0.0, 0.0);
        for &b in self.peers.iter().filter(|&&b| b != d) {
            let Beside { out, into, tuples_out, tuples_in } = self.beside[b];
            let (link, _, ingress) = platform.flow_loads(tuples_out, out, d, b);
            let (back, egress, _) = platform.flow_loads(tuples_in, into, b, d);
            let both = tuples_out + tuples_in;
            if loads[link_at(n, d, b)] + link >= cut
                || loads[link_at(n, b, d)] + back >= cut
                || loads[egress_at(n, b)] + egress >= cut
                || loads[ingress_at(n, b)] + ingress >= cut
                || loads[b] + platform.handling(both, out + into, b) >= full[b]
            {
                return false;
            }
            sent += out;
            taken += into;
            handled += both;
        }
        loads[d] + own + platform.handling(handled, sent + taken, d) < full[d]
            && loads[egress_at(n, d)] + nic_load(sent, platform.egress[d]) < cut
            && loads[ingress_at(n, d)] + nic_load(taken, platform.ingress[d]) < cut
            && !units.rules.rivals.meet(&self.place, u, d)
            && units.has_memory(&self.place, u, d)
    }

    /// List the feasible devices of unit `u` by falling burden, so that the best is last.
    fn order(&mut self, t: usize, u: usize) {
        self.gather(u);
        let mut count = 0;
        for d in 0..self.lead.len() {
            if self.lead[d] != d || !self.fits(t, u, d) {
                continue;
            }
            let burden = self.burden(t, u, d);
            let mut at = count;
            while at > 0 && self.burden(t, u, self.options[(t, at - 1)] as usize) < burden {
                self.options[(t, at)] = self.options[(t, at - 1)];
                at -= 1;
            }
            self.options[(t, at)] = d as Id;
            count += 1;
        }
        self.left[t] = count;
    }

    /// Load of the device with unit `u` on it, less the load that this saves on links.
    fn burden(&self, t: usize, u: usize, d: usize) -> f64 {
        let spared = self.beside[d].out + self.beside[d].into;
        self.loads[(t, d)] + self.units.load[(u, d)] - spared * self.limits.wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::units::tests::alike;

    fn limits(n: usize, d: usize, cut: f64) -> Limits {
        Limits {
            full: vec![cut; d],
            cut,
            work: vec![0.4; n],
            power: vec![1.0; d],
            wire: 0.0,
            patterns: Patterns::default(),
            rank: vec![0.4; n],
        }
    }

    #[test]
    fn five_units_of_which_a_device_holds_two_need_three_devices() {
        for (d, fits) in [(2, false), (3, true)] {
            let (units, limits) = (alike(5, d), limits(5, d, 1.0));
            let (outcome, _) = place_below(&units, &limits, 1000, &mut Watch::endless());
            assert_eq!(matches!(outcome, Outcome::Improved(_)), fits);
            assert_eq!(outcome == Outcome::Exhausted, !fits);
        }
    }

    #[test]
    fn a_search_without_nodes_or_time_is_paused() {
        let (units, limits) = (alike(5, 3), limits(5, 3, 1.0));
        let (outcome, nodes) = place_below(&units, &limits, 0, &mut Watch::endless());
        assert_eq!((outcome, nodes), (Outcome::Paused, 0));
        let mut late = Watch::new(Some(0.0), None, || false);
        assert_eq!(place_below(&units, &limits, 1000, &mut late).0, Outcome::Paused);
    }
}
