//! The scheduling problem of one pass: tasks, streams between them, and allowed devices.
//!
//! The network has no contention: the time of a transfer does not depend on others.

use std::ops::{Deref, Range};

use crate::arithmetic::least;
use crate::check::{Wrong, each, indices, length, permutation, rising};
use crate::instance::Id;
use crate::passes::sending_seconds;
use crate::rivals::Rules;
use crate::table::Table;
use crate::topology::Adjacency;

/// N tasks, E streams between them, D devices, K cores, U units of tasks that stay together.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// [N, D] seconds, infinite where a task may not run
    pub work: Table,
    pub graph: Adjacency,
    /// [E] bytes
    pub size: Vec<f64>,
    /// [E] seconds of a transfer that do not depend on the link
    pub fixed_s: Vec<f64>,
    /// [D, D] seconds
    pub latency: Table,
    /// [D, D] seconds per byte
    pub wire: Table,
    /// [D + 1] the cores of d are `core_start[d]..core_start[d + 1]`
    pub core_start: Vec<Id>,
    /// [N]
    pub unit: Vec<Id>,
    /// [U + 1] the tasks of a unit are `members[member_start[u]..]`
    pub member_start: Vec<Id>,
    /// [N]
    pub members: Vec<Id>,
    pub rules: Rules,
}

impl Deref for Tasks {
    type Target = Adjacency;

    #[inline]
    fn deref(&self) -> &Adjacency {
        &self.graph
    }
}

impl Tasks {
    /// Number of tasks, N.
    #[inline]
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.work.rows()
    }

    /// Number of devices, D.
    #[inline]
    #[must_use]
    pub fn n_devices(&self) -> usize {
        self.work.columns()
    }

    /// Number of cores, K.
    #[inline]
    #[must_use]
    pub fn n_cores(&self) -> usize {
        self.core_start[self.n_devices()] as usize
    }

    /// Number of units, U.
    #[inline]
    #[must_use]
    pub fn n_units(&self) -> usize {
        self.member_start.len() - 1
    }

    /// Number of streams into each task.
    #[must_use]
    pub fn input_counts(&self) -> Vec<Id> {
        self.in_start.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Cores of a device.
    #[inline]
    #[must_use]
    pub fn cores(&self, device: usize) -> Range<usize> {
        range(&self.core_start, device)
    }

    /// Tasks of a unit.
    #[inline]
    #[must_use]
    pub fn members_of(&self, unit: usize) -> &[Id] {
        &self.members[range(&self.member_start, unit)]
    }

    /// Transfer time of stream `e` from device `a` to device `b`, in seconds.
    #[inline(always)]
    #[must_use]
    pub fn transfer(&self, e: usize, a: usize, b: usize) -> f64 {
        if a == b {
            return 0.0;
        }
        let (latency, wire) = (self.latency[(a, b)], self.wire[(a, b)]);
        sending_seconds(latency, self.size[e], wire, self.fixed_s[e])
    }

    /// Core of device `a` that is free first; `free` [K] is when each core is free.
    #[inline(always)]
    #[must_use]
    pub fn free_core(&self, free: &[f64], a: usize) -> usize {
        let cores = self.cores(a);
        let mut first = cores.start;
        for core in cores.skip(1) {
            if free[core] < free[first] {
                first = core;
            }
        }
        first
    }

    /// Work of the shortest task.
    #[must_use]
    pub fn shortest(&self) -> f64 {
        least(f64::INFINITY, self.work.cells())
    }

    /// Latency and seconds per byte of the mean ordered pair of different devices.
    #[must_use]
    pub fn mean_transfer(&self) -> (f64, f64) {
        let d = self.n_devices();
        let (mut latency, mut wire) = (0.0, 0.0);
        for a in 0..d {
            for b in (0..d).filter(|&b| a != b) {
                latency += self.latency[(a, b)];
                wire += self.wire[(a, b)];
            }
        }
        let pairs = if d > 1 { (d * (d - 1)) as f64 } else { 1.0 };
        (latency / pairs, wire / pairs)
    }

    /// Transfer time of stream `e` over a link of mean latency and mean seconds per byte.
    #[inline(always)]
    #[must_use]
    pub fn mean_sending(&self, e: usize, (latency, wire): (f64, f64)) -> f64 {
        sending_seconds(latency, self.size[e], wire, self.fixed_s[e])
    }

    /// Mean seconds of every task over the devices that may run it, [N].
    #[must_use]
    pub fn mean_work(&self) -> Vec<f64> {
        let mean = |row: &[f64]| {
            let able = row.iter().filter(|&&work| work < f64::INFINITY);
            let (total, count) =
                able.fold((0.0, 0.0), |(total, count), work| (total + work, count + 1.0));
            total / if count > 1.0 { count } else { 1.0 }
        };
        (0..self.n_tasks()).map(|v| mean(self.work.row(v))).collect()
    }

    /// Check lengths, indices and numbers.
    pub fn check(&self) -> Result<(), Wrong> {
        let (n, d, m) = (self.n_tasks(), self.n_devices(), self.source.len());
        if d == 0 {
            return Err("there is no device".into());
        }
        length("core_start", &self.core_start, d + 1)?;
        rising("core_start", &self.core_start, usize::MAX)?;
        if (0..d).any(|a| self.cores(a).is_empty()) {
            return Err("core_start: a device has no core".into());
        }
        each!(shape, self, d, d; latency wire);
        each!(length, self, m; size fixed_s);
        each!(not_negative, self; work latency wire size fixed_s);
        each!(not_negative, self.rules; memory room);
        self.check_streams(n, m)?;
        self.check_units(n, d)
    }

    /// Check that tasks come after their predecessors, and at most once.
    pub fn check_order(&self, order: &[Id]) -> Result<(), Wrong> {
        let mut is_done = vec![false; self.n_tasks()];
        indices("order", order, self.n_tasks())?;
        for &v in order {
            let mut sources = self.inputs(v as usize).iter().map(|&e| self.source[e as usize]);
            if is_done[v as usize] || !sources.all(|u| is_done[u as usize]) {
                let what = format!("order: task {v} comes twice or before its predecessors");
                return Err(what.into());
            }
            is_done[v as usize] = true;
        }
        Ok(())
    }

    fn check_streams(&self, n: usize, m: usize) -> Result<(), Wrong> {
        self.graph.check(n)?;
        each!(permutation, self; order in_streams);
        let mut position = vec![0; n];
        for (i, v) in self.in_order().enumerate() {
            position[v] = i;
        }
        let (mut inputs, mut outputs) = (0, 0);
        for v in 0..n {
            inputs += self.inputs(v).len();
            let is_into = |&e: &Id| self.target[e as usize] as usize == v;
            let (Some(sources), true) =
                (self.source.get(self.outputs(v)), self.inputs(v).iter().all(is_into))
            else {
                return Err(format!("the streams of task {v} are not its own").into());
            };
            outputs += sources.len();
            let targets = sources.iter().zip(&self.target[self.outputs(v)]);
            for (&source, &target) in targets {
                if source as usize != v || position[target as usize] <= position[v] {
                    let what = format!("the streams of task {v} are not its own, or go back");
                    return Err(what.into());
                }
            }
        }
        if (inputs, outputs) == (m, m) { Ok(()) } else { Err("streams are missing".into()) }
    }

    fn check_units(&self, n: usize, d: usize) -> Result<(), Wrong> {
        if self.member_start.is_empty() {
            return Err("member_start is empty".into());
        }
        let units = self.n_units();
        each!(length, self, n; unit members);
        indices("unit", &self.unit, units)?;
        rising("member_start", &self.member_start, n)?;
        permutation("members", &self.members)?;
        let is_of = |u: usize| self.members_of(u).iter().all(|&v| self.unit[v as usize] == u as Id);
        if self.member_start[units] as usize != n || !(0..units).all(is_of) {
            return Err("members are not those of their units".into());
        }
        self.rules.check(units, d)
    }
}

#[inline(always)]
fn range(start: &[Id], i: usize) -> Range<usize> {
    start[i] as usize..start[i + 1] as usize
}
