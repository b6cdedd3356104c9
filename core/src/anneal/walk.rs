//! Annealing of a placement of units by the energy of its loads.
//!
//! The largest load alone has plateaus: most moves do not change it. The energy
//!
//!   E = Σ_r max(0, load_r - target)²      over devices, links, network cards and single cores
//!
//! with a target a little below the best peak so far has a slope wherever a resource is too full, is
//! zero exactly if the target is met, and depends only on the loads that a move changes.
//!
//! A round of annealing starts at the best placement so far (every fourth at random) and cools from
//! `HOT` to `COLD`, in units of the squared load of a typical unit. Each round is twice as long as
//! the one before, whatever the budget, so that a longer search continues a shorter one.

use super::level::Level;
use crate::arithmetic::{max, min};
use crate::equation::{egress_at, ingress_at, link_at};
use crate::instance::Id;
use crate::random::Xorshift;
use crate::watch::Watch;

/// Probability that a neighbour on the same device moves along.
const GROW: f64 = 0.5;
/// Largest numbers of units of a move, and of examined neighbours of theirs.
const MAX_MOVED: usize = 128;
const MAX_ENTRIES: usize = 256;
/// Share of a device's memory; smaller than the tolerance for legal placements.
const MEMORY_SLACK: f64 = 1e-10;
const MAX_ROUND_LENGTH: i64 = 2_000_000;
/// Rounds of which one begins at random.
const RANDOM_EVERY: i64 = 4;
const DEFAULT_SLACK: f64 = 0.05;
const HOT: f64 = 0.06;
const COLD: f64 = 0.002;
/// Upper limits of these temperatures, in units of the squared target.
const MAX_HOT: f64 = 0.03;
const MAX_COLD: f64 = 1e-4;
const COOL_EVERY: i64 = 64;
/// With U units, the best placement is copied at most every U / `EVERY_COPY` proposals.
const EVERY_COPY: i64 = 16;
/// Share up to which two peaks count as equal.
const ROUNDING: f64 = 1e-9;
/// Proposals between two notes of the best peak.
const CHUNK: u64 = 2048;
/// Nanoseconds of a proposal and of a changed load, about.
const PROPOSAL_WORK: usize = 60;
const CHANGE_WORK: usize = 5;

/// What a search proposes, and how warm and tolerant it is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Shares of neighbourhood moves, of swaps, and of moves to a neighbour's device.
    pub clusters: f64,
    pub swaps: f64,
    pub beside: f64,
    /// Distance of the target from the best peak, and its factor from round to round.
    pub slack: f64,
    pub tighten: f64,
    /// Factor of the temperatures.
    pub heat: f64,
    /// Whether units are moved in turn, not at random.
    pub sweep: bool,
}

/// Seconds, and the best peak after them and after a number of proposals.
pub type Note = (f64, f64, u64);

/// A move under trial: its first units go from `a` to `b`, the others back.
#[derive(Clone, Copy)]
struct Move {
    there: usize,
    a: usize,
    b: usize,
}

/// State of a search (U units, R resources).
#[derive(Clone, Debug)]
pub struct Walk {
    settings: Settings,
    place: Vec<Id>,
    best: Vec<Id>,
    best_peak: f64,
    /// [D] bytes of memory, if limited
    used: Vec<f64>,
    /// [R] devices, links and, unless the level is plain, outgoing and incoming network cards
    loads: Vec<f64>,
    /// units of the move under trial
    moved: Vec<Id>,
    /// [U] number of the last neighbourhood move with each unit
    mark: Vec<u64>,
    stamp: u64,
    /// resources whose loads the move under trial changed, in order, and the loads before
    log: Vec<(Id, f64)>,
    random: Xorshift,
    /// unit that a sweep moves next
    next: usize,
    step: i64,
    length: i64,
    round: i64,
    /// step at which `best` was copied
    copied: i64,
    energy: f64,
    target: f64,
    width: f64,
    /// unit of temperatures
    heat: f64,
    temperature: f64,
    cooling: f64,
}

impl Walk {
    /// A search that starts at a legal placement of the units.
    #[must_use]
    pub fn new(level: &Level, place: Vec<Id>, seed: u64, first_round: u32, how: Settings) -> Self {
        let mut loads = vec![0.0; level.n_loads()];
        level.fill_loads(&place, &mut loads);
        let scale = scale(level);
        let mut random = Xorshift::new(seed);
        for _ in 0..10 {
            random.draw();
        }
        let length = i64::from(first_round / 2);
        Self {
            best: place.clone(),
            best_peak: level.peak(&place, &loads),
            used: used(level, &place),
            loads,
            moved: Vec::with_capacity(MAX_MOVED + 1),
            mark: vec![0; place.len()],
            place,
            stamp: 0,
            log: vec![],
            random,
            next: 0,
            step: length,
            length,
            round: 0,
            copied: 0,
            energy: 0.0,
            target: 0.0,
            width: how.slack,
            heat: scale * scale * how.heat,
            temperature: 0.0,
            cooling: 0.0,
            settings: how,
        }
    }

    /// Device of every unit in the best placement so far.
    #[must_use]
    pub fn best(&self) -> &[Id] {
        &self.best
    }

    /// Load of its fullest resource.
    #[must_use]
    pub fn best_peak(&self) -> f64 {
        self.best_peak
    }

    /// Propose moves until there were `proposals`, the peak is `enough`, or the watch ends it.
    pub fn run(
        &mut self,
        level: &Level,
        proposals: u64,
        enough: f64,
        watch: &mut Watch,
        notes: &mut Vec<Note>,
    ) {
        let (mut done, mut noted) = (0, self.best_peak);
        loop {
            let over = done == proposals || self.best_peak <= enough || watch.is_over(0);
            if over || self.best_peak != noted {
                notes.push((watch.elapsed(), self.best_peak, done));
                noted = self.best_peak;
            }
            if over {
                return;
            }
            done += self.search(level, CHUNK.min(proposals - done), enough, watch);
        }
    }

    /// Propose moves; return their number, which is lower if the peak falls to `enough`.
    fn search(&mut self, level: &Level, proposals: u64, enough: f64, watch: &mut Watch) -> u64 {
        for proposal in 0..proposals {
            if self.best_peak <= enough {
                return proposal;
            }
            if watch.is_over(PROPOSAL_WORK + CHANGE_WORK * self.log.len()) {
                return proposal;
            }
            if self.step == self.length {
                self.begin_round(level);
            }
            if self.step % COOL_EVERY == 0 {
                self.temperature *= self.cooling;
            }
            self.step += 1;
            self.log.clear();
            if let Some(trial) = self.propose(level) {
                self.attempt(level, trial);
            }
        }
        proposals
    }

    /// Make a move, and take it back unless annealing accepts it.
    #[inline]
    fn attempt(&mut self, level: &Level, trial: Move) {
        let Move { there, a, b } = trial;
        let mut gain = 0.0;
        for i in 0..self.moved.len() {
            let to = if i < there { b } else { a };
            gain += self.shift_unit(level, self.moved[i] as usize, to);
        }
        if accepted(&mut self.random, gain, self.temperature) && self.is_apart(level) {
            self.energy += gain;
            self.take_room(level, trial);
            if gain < 0.0 {
                self.notice(level);
            }
            return;
        }
        for (i, &u) in self.moved.iter().enumerate() {
            self.place[u as usize] = if i < there { a } else { b } as Id;
        }
        for &(r, load) in self.log.iter().rev() {
            self.loads[r as usize] = load;
        }
    }

    /// Draw a move, legal except for rivals.
    #[inline]
    fn propose(&mut self, level: &Level) -> Option<Move> {
        let n = self.place.len();
        let u = if self.settings.sweep {
            let u = self.next;
            self.next = if u + 1 < n { u + 1 } else { 0 };
            u
        } else {
            self.random.choose(n)
        };
        let a = self.place[u] as usize;
        self.moved.clear();
        self.moved.push(u as Id);
        let (sort, clusters) = (self.random.uniform(), self.settings.clusters);
        if sort < clusters {
            self.grow(level, u);
        }
        let there = self.moved.len();
        let b = if clusters <= sort && sort < clusters + self.settings.swaps {
            let v = self.random.choose(n);
            self.moved.push(v as Id);
            self.place[v] as usize
        } else {
            self.destination(level)
        };
        let trial = Move { there, a, b };
        let may = a != b
            && (!level.ruled || self.is_allowed(level, trial))
            && (level.rules.memory.is_empty() || self.has_room(level, trial));
        may.then_some(trial)
    }

    /// Add neighbours on the same device, and theirs, to a move.
    fn grow(&mut self, level: &Level, u: usize) {
        self.stamp += 1;
        let (stamp, a) = (self.stamp, self.place[u]);
        self.mark[u] = stamp;
        let (mut done, mut entries) = (0, 0);
        while done < self.moved.len() && entries < MAX_ENTRIES {
            let around = level.around(self.moved[done] as usize);
            done += 1;
            entries += around.len();
            for entry in around {
                let w = entry.peer as usize;
                let full = self.moved.len() == MAX_MOVED;
                if self.mark[w] == stamp || self.place[w] != a || full {
                    continue;
                }
                if self.random.uniform() < GROW {
                    self.mark[w] = stamp;
                    self.moved.push(entry.peer);
                }
            }
        }
    }

    /// Draw a device: that of a neighbour of the moved units, or any.
    #[inline]
    fn destination(&mut self, level: &Level) -> usize {
        if self.random.uniform() < self.settings.beside {
            let v = self.moved[self.random.choose(self.moved.len())];
            let around = level.around(v as usize);
            if !around.is_empty() {
                let entry = around[self.random.choose(around.len())];
                return self.place[entry.peer as usize] as usize;
            }
        }
        self.random.choose(level.n_devices())
    }

    /// Move unit `u` to another device; return the change of the energy.
    #[inline]
    fn shift_unit(&mut self, level: &Level, u: usize, b: usize) -> f64 {
        let a = self.place[u] as usize;
        let mut changes =
            Changes { loads: &mut self.loads, log: &mut self.log, target: self.target };
        let gain = changes.shift(a, -level.load_on(u, a));
        let gain = gain + changes.shift(b, level.load_on(u, b));
        self.place[u] = b as Id;
        if level.plain {
            changes.relink(level, &self.place, u, a, b, gain)
        } else {
            changes.reroute(level, &self.place, u, a, b, gain)
        }
    }

    /// Whether all units may be where the move brings them.
    fn is_allowed(&self, level: &Level, trial: Move) -> bool {
        self.moved.iter().enumerate().all(|(i, &u)| {
            let to = if i < trial.there { trial.b } else { trial.a };
            level.allowed[(level.kind[u as usize] as usize, to)]
        })
    }

    /// Whether no moved unit shares its device with a rival.
    #[inline]
    fn is_apart(&self, level: &Level) -> bool {
        level.rules.rivals.is_empty()
            || self.moved.iter().all(|&u| {
                let u = u as usize;
                !level.rules.rivals.meet(&self.place, u, self.place[u] as usize)
            })
    }

    /// Whether both devices have enough memory for the move.
    fn has_room(&self, level: &Level, trial: Move) -> bool {
        let change = self.memory_change(level, trial);
        let (a, b) = (trial.a, trial.b);
        let (on_a, on_b) = (self.used[a] - change, self.used[b] + change);
        let fits_a = change >= 0.0 || on_a <= level.rules.room[a] * (1.0 + MEMORY_SLACK);
        fits_a && (change <= 0.0 || on_b <= level.rules.room[b] * (1.0 + MEMORY_SLACK))
    }

    /// Update the used memory after a move.
    #[inline]
    fn take_room(&mut self, level: &Level, trial: Move) {
        if !level.rules.memory.is_empty() {
            let change = self.memory_change(level, trial);
            self.used[trial.a] -= change;
            self.used[trial.b] += change;
        }
    }

    fn memory_change(&self, level: &Level, trial: Move) -> f64 {
        let units = self.moved.iter().enumerate();
        units.fold(0.0, |change, (i, &u)| {
            let size = level.rules.memory[u as usize];
            change + if i < trial.there { size } else { -size }
        })
    }

    /// Start the next round: set its placement, length and temperature.
    fn begin_round(&mut self, level: &Level) {
        if self.round > 0 {
            self.keep_if_best(level);
        }
        self.round += 1;
        self.length = self.length.max((2 * self.length).min(MAX_ROUND_LENGTH));
        self.step = 0;
        self.place.copy_from_slice(&self.best);
        self.used = used(level, &self.place);
        if self.round % RANDOM_EVERY == 0 {
            self.scatter(level);
        }
        if self.round > 1 {
            let narrower = self.width * self.settings.tighten;
            self.width = max(narrower, min(self.width, DEFAULT_SLACK));
        }
        level.fill_loads(&self.place, &mut self.loads);
        self.aim(level);
        let squared = self.target * self.target;
        let hot = min(HOT * self.heat, MAX_HOT * squared);
        let cold = min(COLD * self.heat, MAX_COLD * squared);
        self.temperature = hot;
        self.cooling = (cold / hot).powf(COOL_EVERY as f64 / self.length as f64);
    }

    /// Move every unit to a random device, if the rules allow it.
    fn scatter(&mut self, level: &Level) {
        for u in 0..self.place.len() {
            let (a, b) = (self.place[u] as usize, self.random.choose(level.n_devices()));
            let trial = Move { there: 1, a, b };
            self.moved.clear();
            self.moved.push(u as Id);
            if b == a
                || !self.is_allowed(level, trial)
                || !(level.rules.memory.is_empty() || self.has_room(level, trial))
                || level.rules.rivals.meet(&self.place, u, b)
            {
                continue;
            }
            self.place[u] = b as Id;
            self.take_room(level, trial);
        }
    }

    /// Set the target from the best peak, and the energy from the target.
    fn aim(&mut self, level: &Level) {
        self.target = max(self.best_peak * (1.0 - self.width), 1e-300);
        let target = self.target;
        let loads = self.loads.iter();
        self.energy = loads.fold(0.0, |total, &load| total + excess(load, target));
        if level.per_core() {
            let units = self.place.iter().enumerate();
            self.energy = units.fold(self.energy, |total, (u, &d)| {
                total + excess(level.core_on(u, d as usize), target)
            });
        }
    }

    /// Keep the placement if its peak is the best; the energy gives a cheap necessary condition.
    fn notice(&mut self, level: &Level) {
        let ceiling = self.best_peak - self.target;
        let cores = if level.per_core() { self.place.len() } else { 0 };
        let resources = (self.loads.len() + cores) as f64;
        if self.energy > resources * ceiling * ceiling {
            return;
        }
        let since = (self.step - self.copied) * EVERY_COPY;
        if 0 <= since && since < self.place.len() as i64 {
            return;
        }
        if self.keep_if_best(level) {
            self.aim(level);
        }
    }

    /// Keep the current placement if it is the best; return whether it is.
    fn keep_if_best(&mut self, level: &Level) -> bool {
        let peak = level.peak(&self.place, &self.loads);
        if peak >= self.best_peak * (1.0 - ROUNDING) {
            return false;
        }
        self.best.copy_from_slice(&self.place);
        self.best_peak = peak;
        self.copied = self.step;
        true
    }
}

/// The loads that a move changes, their log, and the target of the energy.
struct Changes<'a> {
    loads: &'a mut [f64],
    log: &'a mut Vec<(Id, f64)>,
    target: f64,
}

impl Changes<'_> {
    /// Change one load, and return the change of the energy.
    #[inline(always)]
    fn shift(&mut self, r: usize, change: f64) -> f64 {
        let load = &mut self.loads[r];
        let (old, new) = (*load, *load + change);
        *load = new;
        self.log.push((r as Id, old));
        excess(new, self.target) - excess(old, self.target)
    }

    /// Reroute the streams of unit `u` from device `a` to `b` where only links are loaded.
    #[inline]
    fn relink(
        &mut self,
        level: &Level,
        place: &[Id],
        u: usize,
        a: usize,
        b: usize,
        mut gain: f64,
    ) -> f64 {
        let (d, wire) = (level.n_devices(), level.platform.seconds_per_byte.cells());
        for entry in level.around(u) {
            let c = place[entry.peer as usize] as usize;
            if entry.sent > 0.0 {
                if a != c {
                    gain += self.shift(d + a * d + c, -(entry.sent * wire[a * d + c]));
                }
                if b != c {
                    gain += self.shift(d + b * d + c, entry.sent * wire[b * d + c]);
                }
            }
            if entry.taken > 0.0 {
                if a != c {
                    gain += self.shift(d + c * d + a, -(entry.taken * wire[c * d + a]));
                }
                if b != c {
                    gain += self.shift(d + c * d + b, entry.taken * wire[c * d + b]);
                }
            }
        }
        gain
    }

    /// Reroute the streams of unit `u` from device `a` to `b`, and update all loads.
    fn reroute(
        &mut self,
        level: &Level,
        place: &[Id],
        u: usize,
        a: usize,
        b: usize,
        mut gain: f64,
    ) -> f64 {
        if level.per_core() {
            gain += excess(level.core_on(u, b), self.target);
            gain -= excess(level.core_on(u, a), self.target);
        }
        for e in level.range(u) {
            let entry = &level.entries[e];
            let c = place[entry.peer as usize] as usize;
            let (sent_tuples, taken_tuples) = level.tuples.get(e).copied().unwrap_or_default();
            for (mine, sign) in [(a, -1.0), (b, 1.0)] {
                if mine != c {
                    gain += self.flow(level, mine, c, sign * sent_tuples, sign * entry.sent);
                }
            }
            for (mine, sign) in [(a, -1.0), (b, 1.0)] {
                if mine != c {
                    gain += self.flow(level, c, mine, sign * taken_tuples, sign * entry.taken);
                }
            }
        }
        gain
    }

    /// Add bytes and tuples to the loads between devices `a` and `b`.
    #[inline]
    fn flow(&mut self, level: &Level, a: usize, b: usize, tuples: f64, rate: f64) -> f64 {
        let (d, platform) = (level.n_devices(), &level.platform);
        let (link, egress, ingress) = platform.flow_loads(tuples, rate, a, b);
        let mut gain = self.shift(link_at(d, a, b), link);
        gain += self.shift(egress_at(d, a), egress);
        gain += self.shift(ingress_at(d, b), ingress);
        if platform.handles() {
            gain += self.shift(a, platform.handling(tuples, rate, a));
            gain += self.shift(b, platform.handling(tuples, rate, b));
        }
        gain
    }
}

/// Energy of one resource.
#[inline(always)]
fn excess(load: f64, target: f64) -> f64 {
    let over = max(load - target, 0.0);
    over * over
}

/// Whether annealing accepts a step that raises the energy by `gain`.
#[inline(always)]
pub fn accepted(random: &mut Xorshift, gain: f64, temperature: f64) -> bool {
    gain <= 0.0 || random.uniform() < (-gain / temperature).exp()
}

/// Memory of the units on every device, [D].
fn used(level: &Level, place: &[Id]) -> Vec<f64> {
    let mut used = vec![0.0; level.n_devices()];
    for (&size, &d) in level.rules.memory.iter().zip(place) {
        used[d as usize] += size;
    }
    used
}

/// Mean over the units of the largest load that each can cause.
fn scale(level: &Level) -> f64 {
    let wire = level.platform.seconds_per_byte.cells().iter().fold(0.0, |most, &x| max(most, x));
    let mut total = 0.0;
    for u in 0..level.n_units() {
        let heaviest = level.load.row(u).iter().fold(0.0, |most, &load| max(most, load));
        total += level.around(u).iter().fold(heaviest, |most, e| max(most, e.sent * wire));
    }
    max(total / level.n_units() as f64, 1e-300)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anneal::level::Entry;
    use crate::instance::Platform;
    use crate::rivals::Rules;
    use crate::table::Table;

    /// Eight units in a row, of equal load, on four equal devices.
    fn row() -> Level {
        let (n, d) = (8, 4);
        let flow = |peer, sent, taken| Entry { peer, sent, taken };
        let ends = |u: Id| {
            let before = (u > 0).then(|| flow(u - 1, 0.0, 1.0));
            before.into_iter().chain((u + 1 < n as Id).then(|| flow(u + 1, 1.0, 0.0)))
        };
        let mut wire = Table::filled(0.1, d, d);
        (0..d).for_each(|a| wire[(a, a)] = 0.0);
        let entries: Vec<Entry> = (0..n as Id).flat_map(ends).collect();
        let start = (0..=n as Id).map(|u| if u == 0 { 0 } else { (2 * u - 1).min(14) }).collect();
        Level {
            load: Table::filled(0.5, n, 1),
            core: Table::filled(0.0, 0, 1),
            start,
            entries,
            tuples: vec![],
            kind: vec![0; n],
            allowed: Table::filled(true, 1, d),
            rules: Rules::default(),
            device_type: vec![0; d],
            platform: Platform { seconds_per_byte: wire, ..Platform::alike(d) },
            ruled: false,
            plain: true,
        }
    }

    fn settings() -> Settings {
        let (clusters, swaps, beside) = (0.3, 0.2, 0.5);
        Settings { clusters, swaps, beside, slack: 0.05, tighten: 1.0, heat: 1.0, sweep: false }
    }

    #[test]
    fn units_in_a_row_are_spread_evenly() {
        let level = row();
        level.check().expect("a level");
        let mut walk = Walk::new(&level, vec![0; 8], 1, 4000, settings());
        assert_eq!(walk.best_peak(), 4.0);
        let mut notes = vec![];
        walk.run(&level, 50_000, 1.0, &mut Watch::endless(), &mut notes);
        assert_eq!(walk.best_peak(), 1.0);
        assert_eq!(level.peaks(&Table::new(walk.best().to_vec(), 1, 8)), [1.0]);
        assert!(notes.last().is_some_and(|note| note.1 == 1.0 && note.2 < 50_000));
    }

    #[test]
    fn a_search_that_is_continued_finds_what_one_in_a_piece_does() {
        let level = row();
        let run = |parts: &[u64]| {
            let mut walk = Walk::new(&level, vec![0; 8], 7, 4000, settings());
            for &part in parts {
                walk.run(&level, part, 0.0, &mut Watch::endless(), &mut vec![]);
            }
            (walk.best, walk.place, walk.loads)
        };
        assert_eq!(run(&[30_000]), run(&[1, 999, 10_000, 19_000]));
    }

    #[test]
    fn loads_after_many_moves_are_those_of_the_placement() {
        let mut level = row();
        for plain in [true, false] {
            level.plain = plain;
            let mut walk = Walk::new(&level, vec![0; 8], 3, 4000, settings());
            walk.run(&level, 20_000, 0.0, &mut Watch::endless(), &mut vec![]);
            let mut loads = walk.loads.clone();
            level.fill_loads(&walk.place, &mut loads);
            assert!(loads.iter().zip(&walk.loads).all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }
}
