//! Windows: the times at which a task can run on a device in a pass shorter than a cut.
//!
//! A task on a device has a *head*, its earliest start there, and a *tail*, the least time after it;
//! both follow paths through the graph over the devices that are not excluded. If head, work and
//! tail reach the cut, the task cannot run there; if they do for the two ends of a stream, this pair
//! of devices is excluded. Each exclusion raises heads and tails of others.

use crate::arithmetic::max;
use crate::passes::sending_seconds;
use crate::scheduling::Tasks;
use crate::table::Table;
use crate::watch::Watch;

/// Heads, tails and work of tasks on devices, infinite on excluded devices.
#[derive(Clone, Debug)]
pub struct Windows {
    /// [N, D] earliest start
    pub head: Table,
    /// [N, D] least seconds after the finish
    pub tail: Table,
    /// [N, D] infinite where excluded
    pub work: Table,
}

impl Windows {
    /// Exclude devices until nothing changes; a task loses all if no schedule is below the cut.
    ///
    /// If the watch ends that, heads and tails are less than they could be.
    #[must_use]
    pub fn below(tasks: &Tasks, cut: f64, watch: &mut Watch) -> Self {
        let (n, d) = (tasks.n_tasks(), tasks.n_devices());
        let nothing = Table::filled(0.0, n, d);
        let mut windows = Self { head: nothing.clone(), tail: nothing, work: tasks.work.clone() };
        if cut == f64::INFINITY {
            windows.find_heads(tasks, cut, watch);
            windows.find_tails(tasks, cut, watch);
            return windows;
        }
        windows.find_tails(tasks, f64::INFINITY, watch);
        for _ in 0..=n * d {
            windows.find_heads(tasks, cut, watch);
            windows.find_tails(tasks, cut, watch);
            if watch.is_over(0) || !windows.exclude(tasks, cut) {
                break;
            }
        }
        windows
    }

    /// Compute earliest starts, over senders' devices that keep the pair below the cut.
    fn find_heads(&mut self, tasks: &Tasks, cut: f64, watch: &mut Watch) {
        let d = tasks.n_devices();
        let (mut soonest, mut after) = (vec![0.0; d], vec![0.0; d]);
        for v in tasks.in_order() {
            if watch.is_over(3 * d * d * (1 + tasks.inputs(v).len())) {
                return;
            }
            for (head, &work) in self.head.row_mut(v).iter_mut().zip(self.work.row(v)) {
                *head = if work < f64::INFINITY { 0.0 } else { f64::INFINITY };
            }
            let rows = self.work.row(v).iter().zip(self.tail.row(v));
            for (after, (work, tail)) in after.iter_mut().zip(rows) {
                *after = work + tail;
            }
            for &e in tasks.inputs(v) {
                let e = e as usize;
                let u = tasks.source[e] as usize;
                soonest.fill(f64::INFINITY);
                for b in 0..d {
                    let ready = self.head[(u, b)] + self.work[(u, b)];
                    let (size, fixed_s) = (tasks.size[e], tasks.fixed_s[e]);
                    let links = tasks.latency.row(b).iter().zip(tasks.wire.row(b));
                    let here = soonest[b];
                    for ((soonest, &after), (&latency, &wire)) in
                        soonest.iter_mut().zip(&after).zip(links)
                    {
                        let arrival = ready + sending_seconds(latency, size, wire, fixed_s);
                        *soonest = earlier(*soonest, arrival, after, cut);
                    }
                    soonest[b] = earlier(here, ready, after[b], cut);
                }
                let heads = self.head.row_mut(v).iter_mut().zip(&soonest);
                for ((head, &soonest), &work) in heads.zip(self.work.row(v)) {
                    if work < f64::INFINITY {
                        *head = max(*head, soonest);
                    }
                }
            }
        }
    }

    /// Compute least times after, over receivers' devices that keep the pair below the cut.
    fn find_tails(&mut self, tasks: &Tasks, cut: f64, watch: &mut Watch) {
        let d = tasks.n_devices();
        for v in tasks.in_order().rev() {
            if watch.is_over(3 * d * d * (1 + tasks.outputs(v).len())) {
                return;
            }
            self.tail.row_mut(v).fill(0.0);
            for e in tasks.outputs(v) {
                let u = tasks.target[e] as usize;
                let (size, fixed_s) = (tasks.size[e], tasks.fixed_s[e]);
                for a in 0..d {
                    if self.work[(v, a)] == f64::INFINITY {
                        continue;
                    }
                    let before = self.head[(v, a)] + self.work[(v, a)];
                    let links = tasks.latency.row(a).iter().zip(tasks.wire.row(a));
                    let ends = self.work.row(u).iter().zip(self.tail.row(u));
                    let mut least = f64::INFINITY;
                    for (b, ((&latency, &wire), (work, tail))) in links.zip(ends).enumerate() {
                        let seconds = sending_seconds(latency, size, wire, fixed_s);
                        let seconds = if a == b { 0.0 } else { seconds };
                        least = earlier(least, seconds + work + tail, before, cut);
                    }
                    self.tail[(v, a)] = max(self.tail[(v, a)], least);
                }
            }
        }
    }

    /// Exclude devices that reach the cut, for entire units; return whether there were any.
    fn exclude(&mut self, tasks: &Tasks, cut: f64) -> bool {
        let mut any = false;
        for v in 0..tasks.n_tasks() {
            for a in 0..tasks.n_devices() {
                let at = (v, a);
                if self.work[at] == f64::INFINITY
                    || self.head[at] + self.work[at] + self.tail[at] < cut
                {
                    continue;
                }
                for &member in tasks.members_of(tasks.unit[v] as usize) {
                    self.work[(member as usize, a)] = f64::INFINITY;
                }
                any = true;
            }
        }
        any
    }
}

/// The earlier of two times, unless the second one and the time beside it reach the cut.
#[inline(always)]
fn earlier(time: f64, other: f64, beside: f64, cut: f64) -> f64 {
    let is_below = cut == f64::INFINITY || other + beside < cut;
    if is_below && other < time { other } else { time }
}
