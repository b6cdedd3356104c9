//! List scheduling with insertion: maps each task in turn to the core where it finishes earliest.
//!
//! The idle times of a core are a list of gaps, the last of which has no end. Gaps too short for
//! any task are dropped, so that the lists stay short, and the first gap that ends late enough is
//! found by bisection: a million tasks take seconds. A task without cost also fits between two
//! tasks without a gap: if there are such tasks, the times at which one task follows another are in
//! their own list.

use super::homes::Homes;
use super::ranks::{by_rank, upward};
use super::tasks::Tasks;
use crate::arithmetic::{max, min};
use crate::instance::{Id, NONE};
use crate::passes::sending_seconds;
use crate::table::Table;

/// Device, start and finish of every task.
#[derive(Clone, Debug)]
pub struct ListSchedule {
    /// [N] device, or `NONE` where a task found none
    pub place: Vec<Id>,
    /// [N]
    pub start: Vec<f64>,
    /// [N]
    pub finish: Vec<f64>,
}

impl ListSchedule {
    /// A schedule of no task so far.
    #[must_use]
    pub fn nowhere(n: usize) -> Self {
        Self { place: vec![NONE; n], start: vec![0.0; n], finish: vec![0.0; n] }
    }

    /// No task is scheduled any more.
    pub fn clear(&mut self) {
        self.place.fill(NONE);
        self.start.fill(0.0);
        self.finish.fill(0.0);
    }

    /// Run a task on device `a`.
    #[inline]
    pub fn put(&mut self, v: usize, a: usize, start: f64, finish: f64) {
        self.place[v] = a as Id;
        self.start[v] = start;
        self.finish[v] = finish;
    }

    /// Whether every task has a device.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.place.iter().all(|&a| a != NONE)
    }

    /// Seconds to the last finish.
    #[must_use]
    pub fn makespan(&self) -> f64 {
        self.finish.iter().fold(0.0, |end, &finish| max(end, finish))
    }
}

/// Rule for choosing a device: earliest finish plus what comes after it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// [N, D] seconds expected after a task on a device
    pub ahead: Option<Table>,
    /// [N] device on which a task must run, or `NONE`
    pub forced: Option<Vec<Id>>,
    /// whether gaps between tasks may be used
    pub insertion: bool,
}

/// Core and gap for a task, and its start.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub core: usize,
    /// gap of the core; `None` where a task without cost fits between two others
    pub gap: Option<usize>,
    pub begin: f64,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    start: f64,
    end: f64,
}

#[derive(Clone, Debug)]
struct Idle {
    /// in order; the last has no end
    gaps: Vec<Gap>,
    /// times outside gaps at which a task without cost fits, in order
    joints: Vec<f64>,
}

const ALWAYS: Gap = Gap { start: 0.0, end: f64::INFINITY };

/// Idle times of every core.
#[derive(Clone, Debug)]
pub struct Gaps {
    cores: Vec<Idle>,
}

impl Gaps {
    /// Idle cores.
    #[must_use]
    pub fn new(tasks: &Tasks) -> Self {
        let idle = || Idle { gaps: vec![ALWAYS], joints: vec![] };
        Self { cores: (0..tasks.n_cores()).map(|_| idle()).collect() }
    }

    /// All cores are idle again.
    pub fn clear(&mut self) {
        for core in &mut self.cores {
            core.gaps.clear();
            core.gaps.push(ALWAYS);
            core.joints.clear();
        }
    }

    /// Time from which a core is idle for ever.
    #[inline]
    #[must_use]
    pub fn busy_until(&self, core: usize) -> f64 {
        self.cores[core].gaps.last().map_or(0.0, |gap| gap.start)
    }

    /// Where a task that is `ready` starts earliest on device `a`; `None` if it never does.
    #[inline]
    #[must_use]
    pub fn earliest_on(
        &self,
        tasks: &Tasks,
        a: usize,
        ready: f64,
        work: f64,
        insertion: bool,
    ) -> Option<Slot> {
        let (mut best, mut soonest) = (None, f64::INFINITY);
        for core in tasks.cores(a) {
            let Idle { gaps, joints } = &self.cores[core];
            let mut g = gaps.len() - 1;
            if insertion {
                let late_enough = gaps[..g].partition_point(|gap| gap.end < ready);
                let fits = |gap: &Gap| max(ready, gap.start) + work <= gap.end;
                g = late_enough + gaps[late_enough..].iter().position(fits).unwrap_or(0);
            }
            let mut slot = Slot { core, gap: Some(g), begin: max(ready, gaps[g].start) };
            if insertion && work == 0.0 && !joints.is_empty() {
                let rest = &joints[..joints.len() - 1];
                let joint = joints[rest.partition_point(|&joint| joint < ready)];
                if ready <= joint && joint < slot.begin {
                    slot = Slot { core, gap: None, begin: joint };
                }
            }
            if slot.begin < soonest {
                soonest = slot.begin;
                best = Some(slot);
            }
        }
        best
    }

    /// Remove a time from a gap, which leaves two gaps, one or none.
    ///
    /// Gaps below the `shortest` work of any task are useless.
    #[inline]
    pub fn take(&mut self, slot: Slot, finish: f64, shortest: f64) {
        let Slot { core, gap: Some(g), begin: start } = slot else {
            return; // a task without cost, between two others
        };
        let Idle { gaps, joints } = &mut self.cores[core];
        let Gap { start: from, end } = gaps[g];
        let before = start - from >= shortest && start > from;
        let after = g == gaps.len() - 1 || (end - finish >= shortest && end > finish);
        if shortest == 0.0 && finish > start {
            if !before {
                join(joints, start);
            }
            if !after {
                join(joints, finish);
            }
        }
        match (before, after) {
            (true, true) => {
                gaps[g].end = start;
                gaps.insert(g + 1, Gap { start: finish, end });
            }
            (true, false) => gaps[g].end = start,
            (false, true) => gaps[g].start = finish,
            (false, false) => {
                gaps.remove(g);
            }
        }
    }
}

/// Note a time at which one task follows another without a gap.
fn join(joints: &mut Vec<f64>, time: f64) {
    let at = joints.iter().rposition(|&joint| joint <= time).map_or(0, |i| i + 1);
    joints.insert(at, time);
}

/// A schedule that grows by insertion, task after task.
#[derive(Clone, Debug)]
pub struct Growing {
    pub schedule: ListSchedule,
    pub gaps: Gaps,
    homes: Homes,
    shortest: f64,
    /// [D] devices that are open to the present task
    pub may: Vec<bool>,
    /// [D] time at which its inputs are there
    pub ready: Vec<f64>,
}

impl Growing {
    /// An empty schedule; `shortest` is the time of the shortest task in seconds.
    #[must_use]
    pub fn new(tasks: &Tasks, shortest: f64) -> Self {
        let (n, d) = (tasks.n_tasks(), tasks.n_devices());
        Self {
            schedule: ListSchedule::nowhere(n),
            gaps: Gaps::new(tasks),
            homes: Homes::new(tasks),
            shortest,
            may: vec![false; d],
            ready: vec![0.0; d],
        }
    }

    fn clear(&mut self) {
        self.schedule.clear();
        self.gaps.clear();
        self.homes.clear();
    }

    /// Find the devices that are open to a task, and when its inputs are there.
    #[inline(always)]
    pub fn open(&mut self, tasks: &Tasks, v: usize) {
        self.homes.find_open(tasks, tasks.unit[v] as usize, &mut self.may);
        ready_on(tasks, &self.schedule, v, &mut self.ready);
    }

    /// Run a task in a slot of device `a`.
    #[inline(always)]
    pub fn run(&mut self, tasks: &Tasks, v: usize, a: usize, slot: Slot) {
        let finish = slot.begin + tasks.work[(v, a)];
        self.homes.give(tasks, tasks.unit[v] as usize, a);
        self.schedule.put(v, a, slot.begin, finish);
        self.gaps.take(slot, finish, self.shortest);
    }
}

/// Builds schedules of one problem by insertion, with the memory that this needs.
#[derive(Clone, Debug)]
pub struct Inserter<'a> {
    tasks: &'a Tasks,
    growing: Growing,
}

impl<'a> Inserter<'a> {
    /// Prepare for schedules of a problem.
    #[must_use]
    pub fn new(tasks: &'a Tasks) -> Self {
        Self { tasks, growing: Growing::new(tasks, tasks.shortest()) }
    }

    /// Schedule the tasks in a topological order; one that finds no device ends the schedule.
    pub fn all(&mut self, order: &[Id], choice: &Choice) -> &ListSchedule {
        self.growing.clear();
        for &v in order {
            let v = v as usize;
            self.growing.open(self.tasks, v);
            let forced = choice.forced.as_ref().map_or(NONE, |forced| forced[v]);
            let unit = self.tasks.unit[v] as usize;
            if forced != NONE && self.growing.homes.of(unit).is_none() {
                for (a, may) in self.growing.may.iter_mut().enumerate() {
                    *may = *may && forced as usize == a;
                }
            }
            let Some((a, slot)) = self.best_device(v, choice) else {
                break;
            };
            self.growing.run(self.tasks, v, a, slot);
        }
        &self.growing.schedule
    }

    /// The schedule that was built last.
    #[must_use]
    pub fn into_schedule(self) -> ListSchedule {
        self.growing.schedule
    }

    /// Device on which a task finishes earliest, and where on it.
    #[inline]
    fn best_device(&self, v: usize, choice: &Choice) -> Option<(usize, Slot)> {
        let (mut best, mut least) = (None, f64::INFINITY);
        let ahead = choice.ahead.as_ref().map(|ahead| ahead.row(v));
        let devices = self.growing.may.iter().zip(&self.growing.ready).zip(self.tasks.work.row(v));
        for (a, ((&may, &ready), &work)) in devices.enumerate() {
            let ahead = ahead.map_or(0.0, |ahead| ahead[a]);
            if !may || ready + work + ahead >= least {
                continue;
            }
            let slot = self.growing.gaps.earliest_on(self.tasks, a, ready, work, choice.insertion);
            if let Some(slot) = slot.filter(|slot| slot.begin + work + ahead < least) {
                least = slot.begin + work + ahead;
                best = Some((a, slot));
            }
        }
        best
    }
}

/// Schedule of HEFT.
#[must_use]
pub fn by_upward_rank(tasks: &Tasks, insertion: bool) -> ListSchedule {
    let mut inserter = Inserter::new(tasks);
    let order = by_rank(tasks, &upward(tasks));
    inserter.all(&order, &Choice { ahead: None, forced: None, insertion });
    inserter.into_schedule()
}

/// Compute the time at which all inputs of task `v` are on each device; see `ready_at`.
#[inline]
pub fn ready_on(tasks: &Tasks, schedule: &ListSchedule, v: usize, ready: &mut [f64]) {
    ready.fill(0.0);
    for &e in tasks.inputs(v) {
        let e = e as usize;
        let u = tasks.source[e] as usize;
        let (here, end) = (schedule.place[u] as usize, schedule.finish[u]);
        let (size, fixed_s) = (tasks.size[e], tasks.fixed_s[e]);
        let at_home = max(ready[here], end);
        let wires = tasks.latency.row(here).iter().zip(tasks.wire.row(here));
        for (ready, (&latency, &wire)) in ready.iter_mut().zip(wires) {
            *ready = max(*ready, end + sending_seconds(latency, size, wire, fixed_s));
        }
        ready[here] = at_home;
    }
}

/// Time at which all inputs of task `v` are on device `a`.
#[inline]
#[must_use]
pub fn ready_at(
    tasks: &Tasks,
    place: &[Id],
    finish: impl Fn(usize) -> f64,
    v: usize,
    a: usize,
) -> f64 {
    tasks.inputs(v).iter().fold(0.0, |ready, &e| {
        let u = tasks.source[e as usize] as usize;
        max(ready, finish(u) + tasks.transfer(e as usize, place[u] as usize, a))
    })
}

/// Latest start of every task with the same makespan and devices, in the order of the schedule.
///
/// On devices with several cores, the order does not count. Every task has a device.
#[must_use]
pub fn latest_starts(tasks: &Tasks, schedule: &ListSchedule) -> Vec<f64> {
    let ListSchedule { place, finish, .. } = schedule;
    let makespan = finish.iter().fold(f64::NEG_INFINITY, |end, &finish| max(end, finish));
    let mut begin = vec![0.0; tasks.n_tasks()];
    let mut free = vec![makespan; tasks.n_devices()];
    // by falling finish, successors before predecessors
    let mut backwards: Vec<usize> = tasks.in_order().rev().collect();
    backwards.sort_by(|&u, &v| (finish[v] + 0.0).total_cmp(&(finish[u] + 0.0)));
    for v in backwards {
        let a = place[v] as usize;
        let alone = tasks.cores(a).len() == 1;
        let mut end = if alone { free[a] } else { makespan };
        for e in tasks.outputs(v) {
            let u = tasks.target[e] as usize;
            end = min(end, begin[u] - tasks.transfer(e, a, place[u] as usize));
        }
        begin[v] = end - tasks.work[(v, a)];
        if alone {
            free[a] = begin[v];
        }
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::Rules;
    use crate::topology::Adjacency;

    /// Tasks of a chain 0 → 1 and a task 2 of its own, on two devices of one core each; a transfer
    /// takes two seconds.
    fn tasks(work: [f64; 3]) -> Tasks {
        let wire = Table::new(vec![0.0, 2.0, 2.0, 0.0], 2, 2);
        let found = Tasks {
            work: Table::new(work.iter().flat_map(|&work| [work, work]).collect(), 3, 2),
            graph: Adjacency {
                order: vec![0, 2, 1],
                in_start: vec![0, 0, 1, 1],
                in_streams: vec![0],
                out_start: vec![0, 1, 1],
                out_end: vec![1, 1, 1],
                source: vec![0],
                target: vec![1],
            },
            size: vec![1.0],
            fixed_s: vec![0.0],
            latency: Table::filled(0.0, 2, 2),
            wire,
            core_start: vec![0, 1, 2],
            unit: vec![0, 1, 2],
            member_start: vec![0, 1, 2, 3],
            members: vec![0, 1, 2],
            rules: Rules::default(),
        };
        found.check().expect("fits");
        found
    }

    #[test]
    fn tasks_go_where_they_finish_earliest() {
        let tasks = tasks([1.0, 1.0, 3.0]);
        let schedule = by_upward_rank(&tasks, true);
        assert_eq!(schedule.place, [0, 0, 1]);
        assert_eq!(schedule.finish, [1.0, 2.0, 3.0]);
        assert_eq!(latest_starts(&tasks, &schedule), [1.0, 2.0, 0.0]);
    }

    #[test]
    fn a_task_fits_into_a_gap_only_where_gaps_may_be_used() {
        let tasks = tasks([1.0, 1.0, 1.0]);
        let forced = vec![0, 1, 1];
        for (insertion, start) in [(true, 0.0), (false, 4.0)] {
            let choice = Choice { ahead: None, forced: Some(forced.clone()), insertion };
            let mut inserter = Inserter::new(&tasks);
            let schedule = inserter.all(&[0, 1, 2], &choice);
            assert_eq!(schedule.start, [0.0, 3.0, start]);
        }
    }

    #[test]
    fn an_order_comes_after_predecessors() {
        let tasks = tasks([1.0; 3]);
        assert!(tasks.check_order(&[2, 0, 1]).is_ok());
        assert!(tasks.check_order(&[1, 0, 2]).is_err());
        assert!(tasks.check_order(&[0, 0, 1]).is_err());
    }
}
