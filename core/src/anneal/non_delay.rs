//! The non-delay makespan: that of cores that never wait while a task is ready, as in the simulator.
//!
//! A free core runs the ready task of its device that comes first in the order, even if waiting for
//! another task would be better. The pass may therefore take longer than the sequence, or shorter.
//! Devices that hold the order take exactly as long as the sequence.

use super::sequence::Sequence;
use crate::arithmetic::{max, min};
use crate::instance::{Id, NONE};
use crate::scheduling::Tasks;

/// State of a pass that is timed.
#[derive(Clone, Debug)]
pub struct NonDelay {
    /// [N]
    ready: Vec<f64>,
    /// [N] number of missing inputs
    waiting: Vec<u32>,
    /// [N] next of the tasks that wait on the same device
    following: Vec<Id>,
    /// [D] first of them
    head: Vec<Id>,
    /// [D] earliest start of any of them
    soonest: Vec<f64>,
    /// [K] time at which each core is free
    free: Vec<f64>,
}

impl NonDelay {
    /// Memory for a problem.
    #[must_use]
    pub fn new(tasks: &Tasks) -> Self {
        let (n, d) = (tasks.n_tasks(), tasks.n_devices());
        Self {
            ready: vec![0.0; n],
            waiting: vec![0; n],
            following: vec![NONE; n],
            head: vec![NONE; d],
            soonest: vec![0.0; d],
            free: vec![0.0; tasks.n_cores()],
        }
    }

    /// Makespan of a settled sequence whose cores do not wait; ∞ if it would reach the limit.
    pub fn makespan(&mut self, tasks: &Tasks, sequence: &Sequence, limit: f64) -> f64 {
        let n = tasks.n_tasks();
        self.free.fill(0.0);
        self.head.fill(NONE);
        self.soonest.fill(f64::INFINITY);
        self.ready.fill(0.0);
        for v in 0..n {
            self.waiting[v] = tasks.inputs(v).len() as u32;
            if self.waiting[v] == 0 {
                self.enter(tasks, sequence, v);
            }
        }
        let mut makespan = 0.0;
        for _ in 0..n {
            let mut a = 0;
            for b in 1..self.soonest.len() {
                if self.soonest[b] < self.soonest[a] {
                    a = b;
                }
            }
            let Some(v) = self.take_first(sequence, a) else { return f64::INFINITY };
            let c = tasks.free_core(&self.free, a);
            let end = self.soonest[a] + tasks.work[(v, a)];
            if end + sequence.tail[v] >= limit {
                return f64::INFINITY;
            }
            self.free[c] = end;
            makespan = max(makespan, end);
            self.update(tasks, a);
            for e in tasks.outputs(v) {
                let u = tasks.target[e] as usize;
                let arrival = end + tasks.transfer(e, a, sequence.place[u] as usize);
                self.ready[u] = max(self.ready[u], arrival);
                self.waiting[u] -= 1;
                if self.waiting[u] == 0 {
                    self.enter(tasks, sequence, u);
                }
            }
        }
        makespan
    }

    /// Add a task to the queue of its device.
    fn enter(&mut self, tasks: &Tasks, sequence: &Sequence, v: usize) {
        let a = sequence.place[v] as usize;
        self.following[v] = self.head[a];
        self.head[a] = v as Id;
        let free = self.free[tasks.free_core(&self.free, a)];
        self.soonest[a] = min(self.soonest[a], max(free, self.ready[v]));
    }

    /// Remove and return the first in the order of the tasks ready at the next start on device `a`.
    fn take_first(&mut self, sequence: &Sequence, a: usize) -> Option<usize> {
        let (mut best, mut before_best, mut before) = (NONE, NONE, NONE);
        let mut v = self.head[a];
        while v != NONE {
            let at = v as usize;
            let is_first = best == NONE || sequence.position[at] < sequence.position[best as usize];
            if self.ready[at] <= self.soonest[a] && is_first {
                (best, before_best) = (v, before);
            }
            before = v;
            v = self.following[at];
        }
        if best == NONE {
            return None;
        }
        let after = self.following[best as usize];
        if before_best == NONE {
            self.head[a] = after;
        } else {
            self.following[before_best as usize] = after;
        }
        Some(best as usize)
    }

    /// Compute the next time at which device `a` can start a waiting task.
    fn update(&mut self, tasks: &Tasks, a: usize) {
        let free = self.free[tasks.free_core(&self.free, a)];
        let mut soonest = f64::INFINITY;
        let mut v = self.head[a];
        while v != NONE {
            soonest = min(soonest, max(free, self.ready[v as usize]));
            v = self.following[v as usize];
        }
        self.soonest[a] = soonest;
    }
}
