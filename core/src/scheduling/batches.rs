//! Batch scheduling: maps all ready tasks as a batch, then the tasks that became ready.
//!
//! The tasks of a batch are mapped one at a time, each to the core where it finishes earliest;
//! rules differ in which task comes next. Mapping a task changes the earliest finish only of tasks
//! that would use the same device or belong to the same unit, so a batch of n tasks examines about
//! n² / D devices instead of n² D.

use super::homes::Homes;
use super::insertion::{ListSchedule, ready_on};
use super::ranks::comes_before;
use super::tasks::Tasks;
use crate::arithmetic::max;
use crate::instance::{Id, NONE};
use crate::table::Table;

/// Task of a batch that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// with the least earliest finish
    Least,
    /// with the greatest earliest finish
    Greatest,
    /// with the largest loss on its second-best device
    Harm,
}

/// The two devices on which a task finishes earliest.
#[derive(Clone, Copy, Debug)]
struct Earliest {
    first: f64,
    second: f64,
    device: Id,
    other: Id,
}

/// Tasks of a batch, and the state of devices.
struct Batch<'a> {
    tasks: &'a Tasks,
    members: Vec<Id>,
    /// [N, D] when all inputs of a task are on a device
    ready: Table,
    /// [N]
    earliest: Vec<Earliest>,
    /// [K] time at which each core is free
    free: Vec<f64>,
    homes: Homes,
    may: Vec<bool>,
}

/// Schedule batch after batch; ties within the rule are broken by the highest rank.
#[must_use]
pub fn by_batches(tasks: &Tasks, rule: Rule, rank: &[f64]) -> ListSchedule {
    let (n, d) = (tasks.n_tasks(), tasks.n_devices());
    let mut schedule = ListSchedule::nowhere(n);
    let mut waiting = tasks.input_counts();
    let nowhere = Earliest { first: 0.0, second: 0.0, device: NONE, other: NONE };
    let mut batch = Batch {
        tasks,
        members: (0..n as Id).filter(|&v| waiting[v as usize] == 0).collect(),
        ready: Table::filled(0.0, n, d),
        earliest: vec![nowhere; n],
        free: vec![0.0; tasks.n_cores()],
        homes: Homes::new(tasks),
        may: vec![true; d],
    };
    let mut following = vec![];
    while !batch.members.is_empty() {
        for i in 0..batch.members.len() {
            let v = batch.members[i] as usize;
            ready_on(tasks, &schedule, v, batch.ready.row_mut(v));
            batch.find_earliest(v);
        }
        while !batch.members.is_empty() {
            let at = batch.next(rule, rank);
            let v = batch.members[at] as usize;
            let Earliest { first: finish, device, .. } = batch.earliest[v];
            if device == NONE {
                return schedule;
            }
            batch.members.swap_remove(at);
            let device = device as usize;
            schedule.put(v, device, finish - tasks.work[(v, device)], finish);
            batch.settle(v, device);
            for e in tasks.outputs(v) {
                let u = tasks.target[e];
                waiting[u as usize] -= 1;
                if waiting[u as usize] == 0 {
                    following.push(u);
                }
            }
        }
        std::mem::swap(&mut batch.members, &mut following);
    }
    schedule
}

impl Batch<'_> {
    /// Find the two devices on which a task finishes earliest.
    fn find_earliest(&mut self, v: usize) {
        self.homes.find_open(self.tasks, self.tasks.unit[v] as usize, &mut self.may);
        let (mut first, mut second) = (f64::INFINITY, f64::INFINITY);
        let (mut device, mut other) = (NONE, NONE);
        let devices = self.ready.row(v).iter().zip(self.tasks.work.row(v)).zip(&self.may);
        for (a, ((&ready, &work), &may)) in devices.enumerate() {
            if !may {
                continue;
            }
            let end = max(ready, self.free[self.tasks.free_core(&self.free, a)]) + work;
            if end < first {
                (first, second, device, other) = (end, first, a as Id, device);
            } else if end < second {
                (second, other) = (end, a as Id);
            }
        }
        self.earliest[v] = Earliest { first, second, device, other };
    }

    /// Position of the task that comes next, or of one without a device.
    fn next(&self, rule: Rule, rank: &[f64]) -> usize {
        let (mut best, mut least) = (0, f64::INFINITY);
        for (i, &v) in self.members.iter().enumerate() {
            let Earliest { first, second, device, .. } = self.earliest[v as usize];
            if device == NONE {
                return i;
            }
            let cost = match rule {
                Rule::Least => first,
                Rule::Greatest => -first,
                Rule::Harm => first - second,
            };
            if cost < least || i == 0 {
                (best, least) = (i, cost);
            } else if cost == least && comes_before(rank, v as usize, self.members[best] as usize) {
                best = i;
            }
        }
        best
    }

    /// Map a task to a device, and update the tasks of the batch that this affects.
    fn settle(&mut self, v: usize, a: usize) {
        let unit = self.tasks.unit[v];
        let core = self.tasks.free_core(&self.free, a);
        self.free[core] = self.earliest[v].first;
        self.homes.give(self.tasks, unit as usize, a);
        for i in 0..self.members.len() {
            let u = self.members[i] as usize;
            let Earliest { device, other, .. } = self.earliest[u];
            if device == a as Id || other == a as Id || self.tasks.unit[u] == unit {
                self.find_earliest(u);
            }
        }
    }
}
