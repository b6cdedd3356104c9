//! A schedule of a pass under moves.
//!
//! A schedule is the device of every task and one topological order of all tasks, in which every
//! core runs its tasks. Moving a task changes nothing before the first affected position, and later
//! tasks are timed only while the makespan can still be short enough: a task that finishes too late
//! for its tail ends the trial.

use crate::arithmetic::max;
use crate::instance::{Id, NONE};
use crate::scheduling::{Tasks, ready_at};

/// What the start of a task waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    Nothing,
    /// the input from another task
    Sender(Id),
    /// the task that its core ran before
    Core(Id),
}

impl Cause {
    /// The task whose end was awaited.
    #[must_use]
    pub fn task(self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Sender(u) | Self::Core(u) => Some(u as usize),
        }
    }
}

/// When and where a task runs, and why not earlier.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub core: Id,
    pub cause: Cause,
    pub finish: f64,
}

const NO_RUN: Run = Run { core: 0, cause: Cause::Nothing, finish: 0.0 };

/// Least seconds after the finish of every task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tails {
    /// with the current devices
    Current,
    /// with any devices
    Least,
}

/// State of a schedule under moves (N tasks, K cores).
#[derive(Clone, Debug)]
pub struct Sequence {
    /// [N] tasks
    pub order: Vec<Id>,
    /// [N] position of every task in the order
    pub position: Vec<Id>,
    /// [N] device
    pub place: Vec<Id>,
    /// [N]
    pub runs: Vec<Run>,
    /// [N] see `Tails::Current`
    pub tail: Vec<f64>,
    /// [N] see `Tails::Least`
    least: Vec<f64>,
    /// [N] runs that `follow` overwrote
    old: Vec<Run>,
    /// [K] time at which each core is free
    free: Vec<f64>,
    /// [K] last task of each core
    last: Vec<Id>,
    /// tasks of the critical chain, last first
    pub chain: Vec<Id>,
}

impl Sequence {
    /// A schedule that is not timed; `least`: see `Tails::Least`.
    #[must_use]
    pub fn new(tasks: &Tasks, order: &[Id], place: &[Id], least: Vec<f64>) -> Self {
        let (n, k) = (tasks.n_tasks(), tasks.n_cores());
        let mut sequence = Self {
            order: vec![0; n],
            position: vec![0; n],
            place: vec![0; n],
            runs: vec![NO_RUN; n],
            tail: vec![0.0; n],
            least,
            old: vec![NO_RUN; n],
            free: vec![0.0; k],
            last: vec![NONE; k],
            chain: Vec::with_capacity(n),
        };
        sequence.set(order, place);
        sequence
    }

    /// Take over an order and devices.
    pub fn set(&mut self, order: &[Id], place: &[Id]) {
        self.order.copy_from_slice(order);
        self.place.copy_from_slice(place);
        for (i, &v) in order.iter().enumerate() {
            self.position[v as usize] = i as Id;
        }
    }

    /// Time all tasks from a position on; return the makespan, or ∞ if it would reach the limit.
    ///
    /// The previous times are kept up to the returned position, for `restore`.
    pub fn follow(
        &mut self,
        tasks: &Tasks,
        first: usize,
        tails: Tails,
        limit: f64,
    ) -> (f64, usize) {
        let Self { order, place, runs, old, free, last, .. } = self;
        let tail = if tails == Tails::Current { &self.tail } else { &self.least };
        free.fill(0.0);
        last.fill(NONE);
        let mut makespan = 0.0;
        for &v in &order[..first] {
            let Run { core, finish, .. } = runs[v as usize];
            free[core as usize] = finish;
            last[core as usize] = v;
            makespan = max(makespan, finish);
        }
        for (i, &v) in order.iter().enumerate().skip(first) {
            let at = v as usize;
            let a = place[at] as usize;
            let (mut begin, mut cause) = (0.0, Cause::Nothing);
            for &e in tasks.inputs(at) {
                let e = e as usize;
                let u = tasks.source[e];
                let there = place[u as usize] as usize;
                let arrival = runs[u as usize].finish + tasks.transfer(e, there, a);
                if arrival > begin {
                    (begin, cause) = (arrival, Cause::Sender(u));
                }
            }
            let c = tasks.free_core(free, a);
            if free[c] > begin {
                (begin, cause) = (free[c], Cause::Core(last[c]));
            }
            let finish = begin + tasks.work[(at, a)];
            if finish + tail[at] >= limit {
                return (f64::INFINITY, i);
            }
            old[at] = runs[at];
            runs[at] = Run { core: c as Id, cause, finish };
            free[c] = finish;
            last[c] = v;
            makespan = max(makespan, finish);
        }
        (makespan, order.len())
    }

    /// Restore the times that `follow` overwrote.
    pub fn restore(&mut self, first: usize, end: usize) {
        for &v in &self.order[first..end.max(first)] {
            self.runs[v as usize] = self.old[v as usize];
        }
    }

    /// Compute the tails and the critical chain of the current schedule.
    pub fn settle(&mut self, tasks: &Tasks) {
        let mut end = self.order[0] as usize;
        for i in (0..self.order.len()).rev() {
            let v = self.order[i] as usize;
            self.tail[v] = self.tail_of(tasks, v);
            if self.runs[v].finish > self.runs[end].finish {
                end = v;
            }
        }
        self.chain.clear();
        let mut next = Some(end);
        while let Some(v) = next
            && self.chain.len() < self.order.len()
        {
            self.chain.push(v as Id);
            next = self.runs[v].cause.task();
        }
    }

    /// Start of every task, after all were timed.
    #[must_use]
    pub fn starts(&mut self, tasks: &Tasks) -> Vec<f64> {
        self.follow(tasks, 0, Tails::Least, f64::INFINITY);
        let start = (0..self.order.len()).map(|v| match self.runs[v].cause {
            Cause::Core(u) => self.runs[u as usize].finish,
            _ => ready_at(tasks, &self.place, |u| self.runs[u].finish, v, self.place[v] as usize),
        });
        start.collect()
    }

    /// Least seconds after the finish of a task, given the tails of its successors.
    #[inline]
    #[must_use]
    pub fn tail_of(&self, tasks: &Tasks, v: usize) -> f64 {
        let a = self.place[v] as usize;
        tasks.outputs(v).fold(0.0, |longest, e| {
            let u = tasks.target[e] as usize;
            let b = self.place[u] as usize;
            max(longest, tasks.transfer(e, a, b) + tasks.work[(u, b)] + self.tail[u])
        })
    }

    /// Move a task to another position, and shift the tasks between.
    pub fn bring(&mut self, v: usize, to: usize) {
        let old = self.position[v] as usize;
        if old < to {
            self.order[old..=to].rotate_left(1);
        } else {
            self.order[to..=old].rotate_right(1);
        }
        let (first, last) = (old.min(to), old.max(to));
        for i in first..=last {
            self.position[self.order[i] as usize] = i as Id;
        }
    }

    /// First position that a task may have, after all its predecessors.
    #[must_use]
    pub fn earliest(&self, tasks: &Tasks, v: usize) -> usize {
        let sources = tasks.inputs(v).iter().map(|&e| tasks.source[e as usize] as usize);
        sources.map(|u| self.position[u] as usize + 1).max().unwrap_or(0)
    }

    /// Last position that a task may have, before all its successors.
    #[must_use]
    pub fn latest(&self, tasks: &Tasks, v: usize) -> usize {
        let targets = tasks.outputs(v).map(|e| self.position[tasks.target[e] as usize] as usize);
        targets.map(|position| position - 1).min().unwrap_or(self.order.len() - 1)
    }
}
