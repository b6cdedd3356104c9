//! Scheduling by earliest start: maps the pair of ready task and device that can start first.
//!
//! A task may have a *favourite* among its successors. The core that ran the task is then reserved
//! for the favourite until the favourite could start elsewhere as well.

use super::homes::Homes;
use super::insertion::{ListSchedule, ready_on};
use super::tasks::Tasks;
use crate::arithmetic::max;
use crate::instance::{Id, NONE};

/// A core: when it is free, and for which task it is kept until when.
#[derive(Clone, Copy, Debug)]
struct Core {
    free: f64,
    kept_for: Id,
    kept_until: f64,
}

/// Ready tasks.
struct Ready {
    tasks: Vec<Id>,
    /// [ready, D] when all inputs of each are on a device
    times: Vec<f64>,
}

impl Ready {
    fn push(&mut self, tasks: &Tasks, schedule: &ListSchedule, v: usize) {
        let begin = self.times.len();
        self.tasks.push(v as Id);
        self.times.resize(begin + tasks.n_devices(), 0.0);
        ready_on(tasks, schedule, v, &mut self.times[begin..]);
    }

    fn swap_remove(&mut self, at: usize, d: usize) -> usize {
        let last = (self.tasks.len() - 1) * d;
        self.times.copy_within(last.., at * d);
        self.times.truncate(last);
        self.tasks.swap_remove(at) as usize
    }
}

/// Position of a ready task, device, core and start.
#[derive(Clone, Copy)]
struct Pair {
    at: usize,
    device: usize,
    core: usize,
    begin: f64,
}

/// Schedule the tasks by earliest start; ties are broken by the highest rank.
///
/// `favourite` [N] is a task or `NONE`.
#[must_use]
pub fn start_soonest(tasks: &Tasks, rank: &[f64], favourite: &[Id]) -> ListSchedule {
    let (n, d, mean) = (tasks.n_tasks(), tasks.n_devices(), tasks.mean_transfer());
    let mut schedule = ListSchedule::nowhere(n);
    let mut waiting = tasks.input_counts();
    let mut ready = Ready { tasks: vec![], times: vec![] };
    let mut cores = vec![Core { free: 0.0, kept_for: NONE, kept_until: 0.0 }; tasks.n_cores()];
    let (mut homes, mut may) = (Homes::new(tasks), vec![false; d]);
    for v in (0..n).filter(|&v| waiting[v] == 0) {
        ready.push(tasks, &schedule, v);
    }
    while let Some(pair) = soonest(tasks, &ready, &cores, &homes, &mut may, rank) {
        let v = ready.swap_remove(pair.at, d);
        let finish = pair.begin + tasks.work[(v, pair.device)];
        schedule.put(v, pair.device, pair.begin, finish);
        let core = &mut cores[pair.core];
        (core.free, core.kept_for) = (finish, favourite[v]);
        if favourite[v] != NONE {
            let to_it = tasks.outputs(v).filter(|&e| tasks.target[e] == favourite[v]);
            core.kept_until =
                finish + to_it.fold(0.0, |longest, e| max(longest, tasks.mean_sending(e, mean)));
        }
        homes.give(tasks, tasks.unit[v] as usize, pair.device);
        for e in tasks.outputs(v) {
            let w = tasks.target[e] as usize;
            waiting[w] -= 1;
            if waiting[w] == 0 {
                ready.push(tasks, &schedule, w);
            }
        }
        for core in cores.iter_mut().filter(|core| core.kept_for == v as Id) {
            core.kept_for = NONE;
        }
    }
    schedule
}

/// The pair that starts first, if any can start.
fn soonest(
    tasks: &Tasks,
    ready: &Ready,
    cores: &[Core],
    homes: &Homes,
    may: &mut [bool],
    rank: &[f64],
) -> Option<Pair> {
    let mut best: Option<Pair> = None;
    let rows = ready.tasks.iter().zip(ready.times.chunks_exact(tasks.n_devices()));
    for (at, (&v, times)) in rows.enumerate() {
        homes.find_open(tasks, tasks.unit[v as usize] as usize, may);
        let devices = times.iter().zip(tasks.work.row(v as usize)).zip(&*may).enumerate();
        for (device, ((&ready_at, &work), &may)) in devices {
            if !may || work == f64::INFINITY {
                continue;
            }
            let Some((core, begin)) = start_on(tasks, cores, v, device, ready_at) else {
                continue;
            };
            let is_first = best.is_none_or(|best| {
                let higher = rank[v as usize] > rank[ready.tasks[best.at] as usize];
                begin < best.begin || (begin == best.begin && higher)
            });
            if is_first {
                best = Some(Pair { at, device, core, begin });
            }
        }
    }
    best
}

/// Core of device `a` on which task `v` can start earliest, and the start.
#[inline]
fn start_on(tasks: &Tasks, cores: &[Core], v: Id, a: usize, ready: f64) -> Option<(usize, f64)> {
    let (mut best, mut soonest) = (None, f64::INFINITY);
    for c in tasks.cores(a) {
        let core = &cores[c];
        let mut begin = max(ready, core.free);
        if core.kept_for != NONE && core.kept_for != v {
            begin = max(begin, core.kept_until);
        }
        if begin < soonest {
            (best, soonest) = (Some((c, begin)), begin);
        }
    }
    best
}
