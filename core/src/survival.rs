//! Survival: what a placement carries after the loss of one of its devices.
//!
//! The units of the lost device go to the best places among the other devices, and all others stay.
//! First each unit goes where the fullest resource is least loaded, the largest unit first. Then
//! single units move while that lowers the peak. Then branch and bound looks for a lower one, which
//! proves the peak if it ends within `MAX_NODES`.

use crate::arithmetic::{max, min};
use crate::check::{Wrong, each, indices, length};
use crate::equation::{n_resources, pressure};
use crate::incremental::LoadState;
use crate::instance::{Id, Instance, NONE};
use crate::loads::highest;
use crate::rivals::Rules;
use crate::steady::Throughput;
use crate::table::Table;

/// Largest number of nodes of branch and bound for one lost device.
pub const MAX_NODES: usize = 5_000;
/// Largest number of units of a lost device for branch and bound.
const MAX_UNITS: usize = 64;
/// Largest number of rounds of moves of single units.
const MAX_ROUNDS: usize = 20;
/// Share by which a peak must be lower to count.
const ROUNDING: f64 = 1e-12;

/// Where units may go, pins aside.
#[derive(Clone, Debug)]
pub struct Freedom {
    /// [N] unit of every operator
    pub unit: Vec<Id>,
    /// [U, D]
    pub allowed: Table<bool>,
    pub rules: Rules,
    /// [D] devices of a class are interchangeable
    pub classes: Vec<Id>,
    /// [N] kind of every operator; a slot holds one operator of each kind of a group
    pub kind: Vec<Id>,
    /// [K] group of every kind
    pub group: Vec<Id>,
    /// [D] slots, or empty if they are unlimited
    pub slots: Vec<f64>,
}

impl Freedom {
    /// Check lengths and indices for a problem.
    pub fn check(&self, instance: &Instance) -> Result<(), Wrong> {
        let (n, d) = (self.allowed.rows(), instance.n_devices());
        length("unit", &self.unit, instance.n_operators())?;
        indices("unit", &self.unit, n)?;
        each!(shape, self, n, d; allowed);
        length("classes", &self.classes, d)?;
        indices("classes", &self.classes, d)?;
        if !self.slots.is_empty() {
            length("slots", &self.slots, d)?;
            length("kind", &self.kind, instance.n_operators())?;
            indices("kind", &self.kind, self.group.len())?;
            indices("group", &self.group, self.group.len())?;
        }
        self.rules.check(n, d)
    }
}

/// What is carried after the loss of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// share of the sources' rates, 0 if some operator has no place
    pub share: f64,
    /// whether no other places of the lost operators carry more
    pub is_proven: bool,
    /// [N] placement with the lost operators elsewhere
    pub place: Option<Vec<Id>>,
}

/// Computes what placements of one problem survive, with the memory that this needs.
pub struct Survival<'a> {
    instance: &'a Instance,
    freedom: &'a Freedom,
    throughput: Throughput<'a>,
    /// [U] operators of every unit
    members: Vec<Vec<usize>>,
    /// [D] weights of device loads, for a bound of the peak
    weight: Vec<f64>,
    partial: Partial,
    search: Search,
}

/// A placement without some units, and its loads.
#[derive(Default)]
struct Partial {
    /// [N] device or `NONE`
    place: Vec<Id>,
    /// [U] device or `NONE`
    at: Vec<Id>,
    /// [R] as in `equation`, then [D] constant loads if there are any
    loads: Vec<f64>,
    /// [D] units on every device
    count: Vec<u32>,
    /// largest load, single cores included
    peak: f64,
    /// weighted sum of the device loads
    weighted: f64,
    /// former loads, the latest last
    journal: Vec<(usize, f64)>,
}

/// What is restored when a unit is taken back.
#[derive(Clone, Copy)]
struct Mark {
    journal: usize,
    peak: f64,
    weighted: f64,
}

/// A device for a unit: bound of the peak, largest load that the unit touches, device.
type Choice = (f64, f64, usize);

/// The best places of the units of a lost device so far.
#[derive(Default)]
struct Search {
    lost: usize,
    /// units of the lost device, the largest first
    units: Vec<usize>,
    /// [units + 1] weighted load of all units from each one on, at least
    rest: Vec<f64>,
    /// sum of the weights of the other devices
    weights: f64,
    /// largest load of the best placement; infinite without one
    peak: f64,
    /// [units] their devices
    best: Vec<Id>,
    /// peak that is low enough
    enough: f64,
    nodes: usize,
    /// [D] class of an empty device already tried for the present unit
    tried: Vec<bool>,
}

impl<'a> Survival<'a> {
    /// Prepare for placements of a problem.
    #[must_use]
    pub fn new(instance: &'a Instance, freedom: &'a Freedom) -> Self {
        let (n, d) = (instance.n_operators(), instance.n_devices());
        let mut members = vec![vec![]; freedom.allowed.rows()];
        for (v, &u) in freedom.unit.iter().enumerate() {
            members[u as usize].push(v);
        }
        let whole = |a| (0..n).map(|v| instance.load_on(v, a)).sum::<f64>();
        let weight = (0..d).map(whole).map(|load| if load > 0.0 { 1.0 / load } else { 0.0 });
        Self {
            instance,
            freedom,
            throughput: Throughput::new(instance),
            members,
            weight: weight.collect(),
            partial: Partial::default(),
            search: Search::default(),
        }
    }

    /// Share that a placement carries before and after the loss of any one device, at least.
    #[must_use]
    pub fn of(&mut self, placement: &[Id]) -> f64 {
        let mut least = self.throughput.of(placement);
        for d in self.in_use(placement) {
            if least <= 0.0 {
                break;
            }
            let share = self.without(placement, d, least).share;
            if share < least * (1.0 - ROUNDING) {
                least = share;
            }
        }
        least
    }

    /// What is carried after the loss of device `lost`; the search ends at a share of `enough`.
    #[must_use]
    pub fn without(&mut self, placement: &[Id], lost: usize, enough: f64) -> Loss {
        self.clear(placement, lost);
        let floor = self.prepare(lost);
        self.search.enough = max(max(1.0, 1.0 / enough), floor * (1.0 + ROUNDING));
        if floor.is_finite() {
            self.place_greedily();
            self.improve(placement);
            self.branch();
        }
        let is_proven = !floor.is_finite()
            || self.search.peak <= max(1.0, floor * (1.0 + ROUNDING))
            || (self.search.peak > self.search.enough
                && self.search.units.len() <= MAX_UNITS
                && self.search.nodes <= MAX_NODES);
        if !self.search.peak.is_finite() {
            return Loss { share: 0.0, is_proven, place: None };
        }
        let place = self.replaced(placement);
        Loss { share: self.throughput.of(&place), is_proven, place: Some(place) }
    }

    /// Devices in use, those with the most load first, as their loss is likely to cost most.
    fn in_use(&self, placement: &[Id]) -> Vec<usize> {
        let mut load = vec![-1.0; self.instance.n_devices()];
        for (v, &d) in placement.iter().enumerate() {
            load[d as usize] = max(load[d as usize], 0.0) + self.instance.load_on(v, d as usize);
        }
        let mut used: Vec<usize> = (0..load.len()).filter(|&d| load[d] >= 0.0).collect();
        used.sort_by(|&a, &b| load[b].total_cmp(&load[a]));
        used
    }

    /// The loads of a placement without the units on device `lost`.
    fn clear(&mut self, placement: &[Id], lost: usize) {
        let (instance, partial) = (self.instance, &mut self.partial);
        let d = instance.n_devices();
        partial.place.clear();
        partial.place.extend(placement.iter().map(|&a| if a as usize == lost { NONE } else { a }));
        partial.at.clear();
        partial
            .at
            .extend(self.members.iter().map(|of| of.first().map_or(NONE, |&v| partial.place[v])));
        partial.loads.clear();
        partial.loads.resize(n_resources(d) + instance.n_constants(), 0.0);
        partial.count.clear();
        partial.count.resize(d, 0);
        partial.journal.clear();
        (partial.peak, partial.weighted) = (0.0, 0.0);
        for &a in partial.at.iter().filter(|&&a| a != NONE) {
            partial.count[a as usize] += 1;
        }
        let (loads, constants) = partial.loads.split_at_mut(n_resources(d));
        let per_core = instance.limits_subtasks();
        for (v, &a) in partial.place.iter().enumerate().filter(|&(_, &a)| a != NONE) {
            let a = a as usize;
            loads[a] += instance.load_on(v, a);
            if per_core {
                partial.peak = max(partial.peak, instance.core_pressure(v, a));
            }
            if !constants.is_empty() {
                constants[a] += instance.constant[(v, instance.type_of(a))];
            }
        }
        for e in 0..instance.n_streams() {
            let (u, v) = instance.ends(e);
            let (a, b) = (partial.place[u], partial.place[v]);
            if a != NONE && b != NONE {
                instance.add_stream(loads, e, a as usize, b as usize, 1.0);
            }
        }
        partial.peak = max(partial.peak, highest(loads, constants));
        for (load, weight) in loads[..d].iter().zip(&self.weight) {
            partial.weighted += load * weight;
        }
    }

    /// Sort the units of the lost device; return a lower bound of the peak, infinite if some unit
    /// has no place.
    fn prepare(&mut self, lost: usize) -> f64 {
        let d = self.instance.n_devices();
        let lightest = |u: usize| {
            let open = (0..d).filter(|&a| a != lost && self.freedom.allowed[(u, a)]);
            let loads = open.map(|a| {
                let load =
                    self.members[u].iter().map(|&v| self.instance.load_on(v, a)).sum::<f64>();
                self.weight[a] * load
            });
            loads.fold(f64::INFINITY, min)
        };
        let units = (0..self.members.len()).filter(|&u| self.partial.at[u] == NONE);
        let mut sized: Vec<(usize, f64)> = units.map(|u| (u, lightest(u))).collect();
        sized.sort_by(|a, b| b.1.total_cmp(&a.1));
        let others = self.weight.iter().enumerate().filter(|&(a, _)| a != lost);
        let mut rest = vec![0.0; sized.len() + 1];
        for (t, &(_, load)) in sized.iter().enumerate().rev() {
            rest[t] = rest[t + 1] + load;
        }
        self.search = Search {
            lost,
            units: sized.into_iter().map(|(u, _)| u).collect(),
            rest,
            weights: others.map(|(_, weight)| weight).sum(),
            peak: f64::INFINITY,
            best: vec![],
            enough: 1.0,
            nodes: 0,
            tried: vec![false; d],
        };
        let mut floor = self.bound(0);
        for t in 0..self.search.units.len() {
            let choices = self.choices(self.search.units[t], self.search.units.len());
            floor =
                max(floor, choices.into_iter().map(|(bound, ..)| bound).fold(f64::INFINITY, min));
        }
        floor
    }

    /// Lower bound of the peak once the units from `t` on are placed, too.
    fn bound(&self, t: usize) -> f64 {
        let Search { rest, weights, .. } = &self.search;
        let whole = self.partial.weighted + rest[t];
        let mean = if *weights > 0.0 { whole / weights } else { 0.0 };
        max(self.partial.peak, mean * (1.0 - ROUNDING))
    }

    /// Devices for a unit, with the bound of the peak once the units from `t` on are placed.
    fn choices(&mut self, u: usize, t: usize) -> Vec<Choice> {
        let mut found = vec![];
        self.search.tried.fill(false);
        for d in 0..self.instance.n_devices() {
            if !self.may(&self.partial.at, u, d) || self.is_like_another(d) {
                continue;
            }
            let (mark, touched) = self.add(u, d);
            found.push((self.bound(t), touched, d));
            self.take_back(u, d, mark);
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        found
    }

    /// Whether unit `u` may go to device `d`, beside the other units at devices `at`.
    fn may(&self, at: &[Id], u: usize, d: usize) -> bool {
        let freedom = self.freedom;
        let Rules { rivals, memory, .. } = &freedom.rules;
        let is_open = d != self.search.lost && freedom.allowed[(u, d)];
        if !is_open || rivals.meet(at, u, d) {
            return false;
        }
        let here = || (0..at.len()).filter(|&other| other == u || at[other] as usize == d);
        let fits =
            memory.is_empty() || freedom.rules.fits(here().map(|u| memory[u]).sum::<f64>(), d);
        fits && (freedom.slots.is_empty() || self.slots(here()) <= freedom.slots[d])
    }

    /// Slots that units take on one device: in every group, the number of the most frequent kind.
    fn slots(&self, units: impl Iterator<Item = usize>) -> f64 {
        let Freedom { kind, group, .. } = self.freedom;
        let (mut count, mut most) = (vec![0_u32; group.len()], vec![0; group.len()]);
        for &v in units.flat_map(|u| &self.members[u]) {
            let k = kind[v] as usize;
            count[k] += 1;
            let slots: &mut u32 = &mut most[group[k] as usize];
            *slots = count[k].max(*slots);
        }
        f64::from(most.iter().sum::<u32>())
    }

    /// Whether device `d` is empty, and an equal empty device was tried; the latter is noted.
    fn is_like_another(&mut self, d: usize) -> bool {
        if self.partial.count[d] > 0 {
            return false;
        }
        std::mem::replace(&mut self.search.tried[self.freedom.classes[d] as usize], true)
    }

    /// Place a unit; return how to take it back, and the largest load that it touches.
    fn add(&mut self, u: usize, d: usize) -> (Mark, f64) {
        let (instance, partial) = (self.instance, &mut self.partial);
        let n = instance.n_devices();
        let mark =
            Mark { journal: partial.journal.len(), peak: partial.peak, weighted: partial.weighted };
        let mut touched = 0.0;
        partial.at[u] = d as Id;
        partial.count[d] += 1;
        for &v in &self.members[u] {
            partial.place[v] = d as Id;
        }
        for &v in &self.members[u] {
            if instance.has_constants() {
                partial.raise(n_resources(n) + d, instance.constant[(v, instance.type_of(d))]);
            }
            partial.raise(d, instance.load_on(v, d));
            partial.weighted += self.weight[d] * instance.load_on(v, d);
            if instance.limits_subtasks() {
                touched = max(touched, instance.core_pressure(v, d));
            }
            let inputs = instance.inputs(v).iter().map(|&e| e as usize);
            for e in instance.outputs(v).chain(inputs) {
                let (from, to) = instance.ends(e);
                let (a, b) = (partial.place[from], partial.place[to]);
                if a == b || a == NONE || b == NONE {
                    continue;
                }
                let (a, b) = (a as usize, b as usize);
                let (tuples, traffic) = (instance.tuples[e], instance.traffic[e]);
                instance.platform.each_load(tuples, traffic, (a, b), |r, load| {
                    partial.raise(r, load);
                    partial.weighted += self.weight.get(r).map_or(0.0, |weight| weight * load);
                    touched = max(touched, partial.pressure(n, r));
                });
                touched = max(touched, max(partial.pressure(n, a), partial.pressure(n, b)));
            }
        }
        touched = max(touched, partial.pressure(n, d));
        partial.peak = max(partial.peak, touched);
        (mark, touched)
    }

    /// Undo the latest `add`.
    fn take_back(&mut self, u: usize, d: usize, mark: Mark) {
        let partial = &mut self.partial;
        while partial.journal.len() > mark.journal {
            if let Some((r, load)) = partial.journal.pop() {
                partial.loads[r] = load;
            }
        }
        (partial.peak, partial.weighted) = (mark.peak, mark.weighted);
        partial.count[d] -= 1;
        partial.at[u] = NONE;
        for &v in &self.members[u] {
            partial.place[v] = NONE;
        }
    }

    /// Place one unit after the other where the peak is lowest.
    fn place_greedily(&mut self) {
        let mut added = vec![];
        for t in 0..self.search.units.len() {
            let u = self.search.units[t];
            let Some(&(_, _, d)) = self.choices(u, t + 1).first() else {
                break;
            };
            added.push((u, d, self.add(u, d).0));
        }
        if added.len() == self.search.units.len() {
            self.keep();
        }
        for &(u, d, mark) in added.iter().rev() {
            self.take_back(u, d, mark);
        }
    }

    /// Keep the present placement of all units.
    fn keep(&mut self) {
        let Search { units, best, peak, .. } = &mut self.search;
        *peak = self.partial.peak;
        best.clear();
        best.extend(units.iter().map(|&u| self.partial.at[u]));
    }

    /// Move single units while that lowers the peak.
    fn improve(&mut self, placement: &[Id]) {
        if self.search.best.is_empty() || self.search.peak <= self.search.enough {
            return;
        }
        let mut state = LoadState::new(self.instance, self.replaced(placement));
        let mut at = self.partial.at.clone();
        for (&u, &d) in self.search.units.iter().zip(&self.search.best) {
            at[u] = d;
        }
        for _ in 0..MAX_ROUNDS {
            let mut is_better = false;
            for t in 0..self.search.units.len() {
                let u = self.search.units[t];
                for d in 0..self.instance.n_devices() {
                    let home = at[u];
                    if d == home as usize || !self.may(&at, u, d) {
                        continue;
                    }
                    self.shift(&mut state, u, d);
                    if state.peak() < self.search.peak * (1.0 - ROUNDING) {
                        (at[u], self.search.peak, is_better) = (d as Id, state.peak(), true);
                    } else {
                        self.shift(&mut state, u, home as usize);
                    }
                }
                if self.search.peak <= self.search.enough {
                    break;
                }
            }
            if !is_better || self.search.peak <= self.search.enough {
                break;
            }
        }
        let Search { units, best, .. } = &mut self.search;
        best.clear();
        best.extend(units.iter().map(|&u| at[u]));
    }

    fn shift(&self, state: &mut LoadState, u: usize, d: usize) {
        for &v in &self.members[u] {
            state.move_operator(self.instance, v, d);
        }
    }

    /// Branch and bound below the best peak.
    fn branch(&mut self) {
        if self.search.units.len() <= MAX_UNITS {
            self.descend(0);
        }
    }

    fn descend(&mut self, t: usize) {
        if self.search.peak <= self.search.enough || self.search.nodes > MAX_NODES {
            return;
        }
        if t == self.search.units.len() {
            self.keep();
            return;
        }
        self.search.nodes += 1;
        let u = self.search.units[t];
        for (bound, _, d) in self.choices(u, t + 1) {
            if bound >= self.search.peak * (1.0 - ROUNDING) {
                break;
            }
            let (mark, _) = self.add(u, d);
            self.descend(t + 1);
            self.take_back(u, d, mark);
        }
    }

    /// The placement with the units of the lost device at their best places.
    fn replaced(&self, placement: &[Id]) -> Vec<Id> {
        let mut place = placement.to_vec();
        for (&u, &d) in self.search.units.iter().zip(&self.search.best) {
            for &v in &self.members[u] {
                place[v] = d;
            }
        }
        place
    }
}

impl Partial {
    /// Add to a load, and record its former value.
    fn raise(&mut self, r: usize, load: f64) {
        if load > 0.0 {
            self.journal.push((r, self.loads[r]));
            self.loads[r] += load;
        }
    }

    /// Load of resource `r` as a fraction of the capacity that constant loads leave.
    fn pressure(&self, n_devices: usize, r: usize) -> f64 {
        let constant = self.loads.get(n_resources(n_devices) + r).copied().unwrap_or(0.0);
        pressure(self.loads[r], constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::Platform;
    use crate::topology::Adjacency;

    /// Operators of a load each without streams, on equal devices.
    fn alone(load: &[f64], d: usize) -> Instance {
        let (n, none) = (load.len(), || Table::filled(0.0, 0, 1));
        let found = Instance {
            graph: Adjacency {
                order: (0..n as Id).collect(),
                source: vec![],
                target: vec![],
                out_start: vec![0; n],
                out_end: vec![0; n],
                in_start: vec![0; n + 1],
                in_streams: vec![],
            },
            sources: (0..n as Id).collect(),
            rate: vec![1.0; n],
            joins: vec![false; n],
            port_start: (0..=n as Id).collect(),
            input_rate: vec![1.0; n],
            output_rate: vec![1.0; n],
            parallelism: vec![1.0; n],
            seconds: Table::new(load.to_vec(), n, 1),
            load: Table::new(load.to_vec(), n, 1),
            core_load: Table::new(load.to_vec(), n, 1),
            constant: none(),
            core_constant: none(),
            max_rate: vec![],
            windows: Table::filled(0.0, 0, 6),
            port: vec![],
            selectivity: vec![],
            payload: vec![],
            tuples: vec![],
            intake: vec![],
            traffic: vec![],
            stream_index: vec![],
            device_type: vec![0; d],
            platform: Platform::alike(d),
        };
        found.check().expect("fits");
        found
    }

    /// Operators that may go anywhere.
    fn free(n: usize, d: usize) -> Freedom {
        Freedom {
            unit: (0..n as Id).collect(),
            allowed: Table::filled(true, n, d),
            rules: Rules::default(),
            classes: vec![0; d],
            kind: vec![],
            group: vec![],
            slots: vec![],
        }
    }

    /// Loss of device 0 under a freedom, with all places tried.
    fn loss(instance: &Instance, freedom: &Freedom, placement: &[Id]) -> Loss {
        freedom.check(instance).expect("fits");
        Survival::new(instance, freedom).without(placement, 0, f64::INFINITY)
    }

    #[test]
    fn two_half_full_devices_survive_and_two_full_ones_do_by_half() {
        for (load, share) in [(0.5, 1.0), (1.0, 0.5)] {
            let (instance, freedom) = (alone(&[load, load], 2), free(2, 2));
            assert_eq!(Survival::new(&instance, &freedom).of(&[0, 1]), share);
            let place = Some(vec![1, 1]);
            assert_eq!(loss(&instance, &freedom, &[0, 1]), Loss { share, is_proven: true, place });
        }
    }

    #[test]
    fn the_only_device_of_an_operator_does_not_survive() {
        let lost = Loss { share: 0.0, is_proven: true, place: None };
        let (instance, freedom) = (alone(&[0.5], 1), free(1, 1));
        assert_eq!(Survival::new(&instance, &freedom).of(&[0]), 0.0);
        assert_eq!(loss(&instance, &freedom, &[0]), lost);
        let (instance, mut freedom) = (alone(&[0.5, 0.1], 3), free(2, 3));
        (freedom.allowed[(0, 1)], freedom.allowed[(0, 2)]) = (false, false);
        assert_eq!(loss(&instance, &freedom, &[0, 0]), lost);
        assert_eq!(Survival::new(&instance, &freedom).without(&[0, 1], 1, 1.0).share, 1.0);
    }

    #[test]
    fn a_slot_holds_one_operator_of_each_kind() {
        let (instance, mut freedom) = (alone(&[0.1, 0.1], 2), free(2, 2));
        for (kind, place) in [(vec![0, 1], Some(vec![1, 1])), (vec![0, 0], None)] {
            (freedom.kind, freedom.group, freedom.slots) = (kind, vec![0, 0], vec![1.0; 2]);
            assert_eq!(loss(&instance, &freedom, &[0, 1]).place, place);
        }
        freedom.slots[1] = 2.0;
        assert_eq!(loss(&instance, &freedom, &[0, 1]).share, 1.0);
    }

    #[test]
    fn a_search_ends_at_a_share_that_is_enough() {
        let (instance, freedom) = (alone(&[0.6, 0.6, 0.4, 0.4, 0.4], 3), free(5, 3));
        let mut survival = Survival::new(&instance, &freedom);
        for (enough, peak, is_proven) in [(0.7, 1.4, false), (1.0, 1.2, true)] {
            let found = survival.without(&[0; 5], 0, enough);
            assert!((found.share * peak - 1.0).abs() < 1e-12, "{found:?}");
            assert_eq!(found.is_proven, is_proven);
        }
    }
}
