//! Annealing of schedules, for searches of the shortest pass.
//!
//! Most moves concern the critical chain, which alone decides the makespan: a task of it moves to
//! another device, often that of a neighbour, or before the task that it waits for on its core;
//! sometimes neighbours move along. The largest acceptable makespan is drawn before a move is tried,
//! so that most rejections are known after timing a few tasks.

use super::non_delay::NonDelay;
use super::sequence::{Cause, Sequence, Tails};
use super::walk::Note;
use crate::instance::Id;
use crate::random::Xorshift;
use crate::scheduling::Tasks;
use crate::table::Table;
use crate::watch::Watch;

/// Share by which sums of the same terms in another order may differ.
const TIE: f64 = 1e-12;
/// Share of moves of tasks on the critical chain.
const ON_CHAIN: f64 = 0.85;
const REORDER: f64 = 0.3;
/// Share of moves of several units, the share of connected groups among these, and the most units
/// of a group.
const TOGETHER: f64 = 0.25;
const CLUSTERS: f64 = 0.6;
const MAX_UNITS: usize = 16;
/// Share of moves to the device of a neighbour.
const BESIDE: f64 = 0.5;
/// Share of moves to the device with the least moving cost, if moving costs count.
const BACK: f64 = 0.1;
/// Share of moves to another device that also draw a new position.
const REPLACED: f64 = 0.4;
/// Moves between two looks whether the best is enough.
const CHUNK: u64 = 1000;
/// Nanoseconds of a move, and of timing a task, about.
const MOVE_WORK: usize = 100;
const TASK_WORK: usize = 10;

/// A search that can be continued.
#[derive(Clone, Debug)]
pub struct Annealing {
    sequence: Sequence,
    non_delay: NonDelay,
    best_order: Vec<Id>,
    best_place: Vec<Id>,
    best: f64,
    /// [D] bytes of memory, if limited
    used: Vec<f64>,
    /// units of the move under trial, and their devices before
    group: Vec<(usize, Id)>,
    random: Xorshift,
    current: f64,
    temperature: f64,
    /// moving cost of the current schedule
    moved: f64,
    /// [N, D] additional cost of a task on a device in seconds; no rows without any
    moving: Table,
}

impl Annealing {
    /// A search without a schedule, to be restarted; `least`: see `Tails::Least`.
    #[must_use]
    pub fn new(tasks: &Tasks, least: Vec<f64>, moving: Table, seed: u64) -> Self {
        let (n, d) = (tasks.n_tasks(), tasks.n_devices());
        Self {
            sequence: Sequence::new(tasks, &tasks.order, &vec![0; n], least),
            non_delay: NonDelay::new(tasks),
            best_order: tasks.order.clone(),
            best_place: vec![0; n],
            best: f64::INFINITY,
            used: vec![0.0; d],
            group: Vec::with_capacity(MAX_UNITS),
            random: Xorshift::new(seed),
            current: 0.0,
            temperature: 0.0,
            moved: 0.0,
            moving,
        }
    }

    /// Order and devices of the best schedule so far.
    #[must_use]
    pub fn best_plan(&self) -> (&[Id], &[Id]) {
        (&self.best_order, &self.best_place)
    }

    /// Its makespan and moving cost.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.best
    }

    /// Whether it was restarted from a schedule.
    #[must_use]
    pub fn has_schedule(&self) -> bool {
        !self.sequence.chain.is_empty()
    }

    /// Makespan and moving cost of the current schedule.
    #[must_use]
    pub fn current(&self) -> f64 {
        self.current
    }

    /// Continue from another schedule.
    pub fn restart(&mut self, tasks: &Tasks, order: &[Id], place: &[Id]) {
        self.sequence.set(order, place);
        let (makespan, _) = self.sequence.follow(tasks, 0, Tails::Least, f64::INFINITY);
        self.sequence.settle(tasks);
        self.used.fill(0.0);
        for (u, &memory) in tasks.rules.memory.iter().enumerate() {
            let home = self.home(tasks, u);
            self.used[home] += memory;
        }
        self.stand(tasks, makespan);
    }

    /// Try `moves` moves and make at most `stop` of them, while the temperature falls by a factor
    /// per move; return whether all were tried before the best was `enough`.
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &mut self,
        tasks: &Tasks,
        (moves, stop): (u64, u64),
        (temperature, cooling): (f64, f64),
        enough: f64,
        watch: &mut Watch,
        notes: &mut Vec<Note>,
    ) -> bool {
        self.temperature = temperature;
        let (mut done, mut noted) = (0, self.best);
        loop {
            let over = done >= moves.min(stop) || self.best <= enough || watch.is_over(0);
            if over || self.best != noted {
                notes.push((watch.elapsed(), self.best, done));
                noted = self.best;
            }
            if over {
                return done == moves;
            }
            for _ in 0..CHUNK.min(moves.min(stop) - done) {
                self.temperature *= cooling;
                let timed = self.attempt(tasks);
                done += 1;
                if watch.is_over(MOVE_WORK + TASK_WORK * timed) {
                    break;
                }
            }
        }
    }

    /// Draw a move, and accept it if the resulting makespan is short enough; return the number of
    /// tasks that were timed, about.
    fn attempt(&mut self, tasks: &Tasks) -> usize {
        let random = &mut self.random;
        let v = if random.uniform() < ON_CHAIN {
            self.sequence.chain[random.choose(self.sequence.chain.len())] as usize
        } else {
            random.choose(self.sequence.order.len())
        };
        let limit = self.current - self.temperature * (1.0 - random.uniform()).ln();
        let limit = limit * (1.0 + TIE) - self.moved;
        if random.uniform() < REORDER {
            return self.reorder(tasks, v, limit);
        }
        let b = self.drawn_device(tasks, v);
        if b == self.sequence.place[v] as usize || tasks.work[(v, b)] == f64::INFINITY {
            return 0;
        }
        self.relocate(tasks, v, b, limit)
    }

    /// Move a task to another position: before the task that its core ran before it, or random.
    fn reorder(&mut self, tasks: &Tasks, v: usize, limit: f64) -> usize {
        let sequence = &mut self.sequence;
        let (first, old) = (sequence.earliest(tasks, v), sequence.position[v] as usize);
        let mut to = match sequence.runs[v].cause {
            Cause::Core(u) => sequence.position[u as usize] as usize,
            _ => first,
        };
        if to <= first {
            to = first + self.random.choose(sequence.latest(tasks, v) - first + 1);
        }
        if to == old {
            return 0;
        }
        sequence.bring(v, to);
        let begin = old.min(to);
        self.judge(tasks, begin, Tails::Current, limit, None, |sequence, _| sequence.bring(v, old))
    }

    /// Draw a device: any, that of a neighbour, or the one with the least moving cost.
    fn drawn_device(&mut self, tasks: &Tasks, v: usize) -> usize {
        let random = &mut self.random;
        if self.moving.rows() > 0 && random.uniform() < BACK {
            let row = self.moving.row(v);
            return (1..row.len()).fold(0, |best, b| if row[b] < row[best] { b } else { best });
        }
        let degree = degree(tasks, v);
        if degree > 0 && random.uniform() < BESIDE {
            let u = neighbour(tasks, v, random.choose(degree));
            return self.sequence.place[u] as usize;
        }
        random.choose(tasks.n_devices())
    }

    /// Move the unit of a task, and possibly others, to another device.
    fn relocate(&mut self, tasks: &Tasks, v: usize, b: usize, limit: f64) -> usize {
        self.gather(tasks, v, b);
        if self.group.len() > 1 || tasks.members_of(tasks.unit[v] as usize).len() > 1 {
            return self.move_units(tasks, b, limit);
        }
        if !self.may_move(tasks, b) {
            return 0;
        }
        let limit = limit - self.dearer(tasks, b);
        let sequence = &mut self.sequence;
        let (a, tail) = (sequence.place[v], sequence.tail[v]);
        let old = sequence.position[v] as usize;
        let mut to = old;
        sequence.place[v] = b as Id;
        sequence.tail[v] = sequence.tail_of(tasks, v);
        if self.random.uniform() < REPLACED {
            let first = sequence.earliest(tasks, v);
            to = first + self.random.choose(sequence.latest(tasks, v) - first + 1);
            sequence.bring(v, to);
        }
        let begin = old.min(to);
        self.judge(tasks, begin, Tails::Current, limit, Some(b), |sequence, _| {
            sequence.bring(v, old);
            (sequence.place[v], sequence.tail[v]) = (a, tail);
        })
    }

    /// Draw the units that move to device `b` with that of task `v`.
    ///
    /// Usually v's unit alone; else also a neighbour from any device, or a connected group on v's
    /// device.
    fn gather(&mut self, tasks: &Tasks, v: usize, b: usize) {
        let Self { sequence, random, group, .. } = self;
        let home = sequence.place[v];
        group.clear();
        group.push((tasks.unit[v] as usize, home));
        let (mut largest, mut at_home) = (1, false);
        if random.uniform() < TOGETHER {
            largest = 2;
            at_home = random.uniform() < CLUSTERS;
            if at_home {
                largest += random.choose(MAX_UNITS - 1);
            }
        }
        for _ in 0..2 * (largest - 1) {
            if group.len() == largest {
                break;
            }
            let members = tasks.members_of(group[random.choose(group.len())].0);
            let member = members[random.choose(members.len())] as usize;
            let degree = degree(tasks, member);
            if degree == 0 {
                continue;
            }
            let w = neighbour(tasks, member, random.choose(degree));
            let (unit, there) = (tasks.unit[w] as usize, sequence.place[w]);
            if there as usize == b || (at_home && there != home) {
                continue;
            }
            let known = group.iter().any(|&(u, _)| u == unit);
            if tasks.work[(w, b)] < f64::INFINITY && !known {
                group.push((unit, there));
            }
        }
    }

    fn move_units(&mut self, tasks: &Tasks, b: usize, limit: f64) -> usize {
        if !self.may_move(tasks, b) {
            return 0;
        }
        let limit = limit - self.dearer(tasks, b);
        let Self { sequence, group, .. } = self;
        let mut begin = sequence.order.len();
        for &(u, _) in group.iter() {
            for &v in tasks.members_of(u) {
                sequence.place[v as usize] = b as Id;
                begin = begin.min(sequence.position[v as usize] as usize);
            }
        }
        self.judge(tasks, begin, Tails::Least, limit, Some(b), |sequence, group| {
            for &(u, home) in group {
                for &v in tasks.members_of(u) {
                    sequence.place[v as usize] = home;
                }
            }
        })
    }

    /// Time a changed schedule from a position on, and keep it if it stays below the limit; else
    /// undo the change. Return the number of tasks that were timed, about.
    #[inline]
    fn judge(
        &mut self,
        tasks: &Tasks,
        begin: usize,
        tails: Tails,
        limit: f64,
        to: Option<usize>,
        undo: impl FnOnce(&mut Sequence, &[(usize, Id)]),
    ) -> usize {
        let (makespan, end) = self.sequence.follow(tasks, begin, tails, limit);
        if makespan < f64::INFINITY {
            if let Some(b) = to {
                self.take_room(tasks, b);
            }
            self.sequence.settle(tasks);
            self.stand(tasks, makespan);
        } else {
            self.sequence.restore(begin, end);
            undo(&mut self.sequence, &self.group);
        }
        end.saturating_sub(begin)
    }

    /// Device of a unit.
    fn home(&self, tasks: &Tasks, u: usize) -> usize {
        tasks.members_of(u).first().map_or(0, |&v| self.sequence.place[v as usize] as usize)
    }

    /// Whether device `b` has enough memory for the units of the group, and no rivals of them.
    fn may_move(&self, tasks: &Tasks, b: usize) -> bool {
        let units = self.group.iter().map(|&(u, _)| u);
        if !tasks.rules.memory.is_empty() {
            let used = units.clone().fold(self.used[b], |used, u| used + tasks.rules.memory[u]);
            if !tasks.rules.fits(used, b) {
                return false;
            }
        }
        let is_moved = |rival| self.group.iter().any(|&(u, _)| u == rival);
        units.flat_map(|u| tasks.rules.rivals.of(u)).all(|&rival| {
            let rival = rival as usize;
            !is_moved(rival) && self.home(tasks, rival) != b
        })
    }

    /// Increase of the moving cost, in seconds, if the units of the group are on device `b`.
    fn dearer(&self, tasks: &Tasks, b: usize) -> f64 {
        if self.moving.rows() == 0 {
            return 0.0;
        }
        let mut more = 0.0;
        for &(u, home) in &self.group {
            for &v in tasks.members_of(u) {
                let row = self.moving.row(v as usize);
                more += row[b] - row[home as usize];
            }
        }
        more
    }

    /// Update the used memory after a move of the group.
    fn take_room(&mut self, tasks: &Tasks, b: usize) {
        if !tasks.rules.memory.is_empty() {
            for &(u, home) in &self.group {
                self.used[home as usize] -= tasks.rules.memory[u];
                self.used[b] += tasks.rules.memory[u];
            }
        }
    }

    /// Set the value of the current schedule, and keep it if it is the best so far, with or without
    /// waiting cores.
    fn stand(&mut self, tasks: &Tasks, makespan: f64) {
        let place = &self.sequence.place;
        let costs = (0..self.moving.rows()).map(|v| self.moving[(v, place[v] as usize)]);
        self.moved = costs.fold(0.0, |moved, cost| moved + cost);
        self.current = makespan + self.moved;
        if self.current >= self.best * (1.0 - TIE) {
            return;
        }
        let held = self.current - self.moved;
        let non_delay = self.non_delay.makespan(tasks, &self.sequence, held * (1.0 + TIE));
        let reached = if non_delay == f64::INFINITY { held } else { non_delay };
        self.best = reached + self.moved;
        self.best_order.copy_from_slice(&self.sequence.order);
        self.best_place.copy_from_slice(&self.sequence.place);
    }
}

/// Number of streams into and out of a task.
fn degree(tasks: &Tasks, v: usize) -> usize {
    tasks.inputs(v).len() + tasks.outputs(v).len()
}

/// Neighbour `i` of a task, predecessors first.
fn neighbour(tasks: &Tasks, v: usize, i: usize) -> usize {
    let inputs = tasks.inputs(v);
    let neighbour = match inputs.get(i) {
        Some(&e) => tasks.source[e as usize],
        None => tasks.target[tasks.outputs(v).start + i - inputs.len()],
    };
    neighbour as usize
}
