//! What the policy sees of devices for one task, given the schedule so far and the previous one.
//!
//! The features of a device are the effect of running a task there. All times are shares of the
//! span of the previous schedule.

use crate::arithmetic::{max, min};
use crate::check::{Wrong, each, indices, length, shape};
use crate::instance::{Id, NONE};
use crate::scheduling::{Growing, Slot, Tasks};
use crate::table::Table;

/// Numbers of features of a device and of a decision;
/// `streamplace.learn.models.pilot_makespan.features` names their columns.
pub const OF_DEVICE: usize = 14;
pub const OF_STEP: usize = 10;

/// Column of the share of inputs at home, before those of outputs and partners.
const AT_HOME: usize = 10;
/// Largest value of a feature that is a share of the span, and with a minus the smallest.
const MAX_VALUE: f64 = 4.0;

/// A problem; seconds.
#[derive(Clone, Debug)]
pub struct Features {
    /// [N, D] least seconds from the end of a task on a device to the end of the pass
    pub after: Table,
    /// [N] smallest work over devices
    pub least: Vec<f64>,
    /// [N] bytes that a task receives
    pub coming: Vec<f64>,
    /// [N] bytes that it sends
    pub going: Vec<f64>,
    /// work of the shortest task
    pub shortest: f64,
}

/// The schedule that is to be improved, with the slack of its tasks.
#[derive(Clone, Debug)]
pub struct Previous {
    /// [N] order of the decisions
    pub order: Vec<Id>,
    /// [N]
    pub place: Vec<Id>,
    /// [N] start of every task when all are as late as can be
    pub latest: Vec<f64>,
    /// seconds that the pass takes
    pub span: f64,
    /// [D] seconds that a core of each device works
    pub loads: Vec<f64>,
}

/// What stays the same while a schedule is rebuilt.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub tasks: &'a Tasks,
    pub features: &'a Features,
    pub before: &'a Previous,
}

impl Case<'_> {
    /// Check lengths and indices.
    pub fn check(&self) -> Result<(), Wrong> {
        let Self { tasks, features, before } = self;
        let (n, d) = (tasks.n_tasks(), tasks.n_devices());
        shape("after", &features.after, n, d)?;
        each!(length, features, n; least coming going);
        each!(length, before, n; order place latest);
        length("loads", &before.loads, d)?;
        indices("place", &before.place, d)?;
        tasks.check_order(&before.order)
    }
}

/// A partial schedule.
#[derive(Clone, Debug)]
pub struct State {
    pub growing: Growing,
    /// [D] seconds there, in the previous schedule, of tasks not yet decided
    coming: Vec<f64>,
    /// [D] where the present task would run, and when
    slots: Vec<Slot>,
    /// [D] seconds that count as differences from the open device with the least: finish, finish
    /// and way to the end, ready, work, lateness, and busy until
    seconds: Vec<[f64; 6]>,
}

impl State {
    /// State before the first decision.
    #[must_use]
    pub fn new(case: Case<'_>) -> Self {
        let d = case.tasks.n_devices();
        Self {
            growing: Growing::new(case.tasks, case.features.shortest),
            coming: case.before.loads.clone(),
            slots: vec![Slot { core: 0, gap: None, begin: 0.0 }; d],
            seconds: vec![[0.0; 6]; d],
        }
    }

    /// Find when a task could begin on every device; returns how many are open.
    pub fn find(&mut self, case: Case<'_>, v: usize) -> usize {
        let tasks = case.tasks;
        self.growing.open(tasks, v);
        let Growing { gaps, may, ready, .. } = &mut self.growing;
        let mut count = 0;
        for (a, may) in may.iter_mut().enumerate() {
            let work = tasks.work[(v, a)];
            *may = *may && work < f64::INFINITY;
            if *may {
                count += 1;
                let never = Slot { core: tasks.cores(a).start, gap: None, begin: f64::INFINITY };
                let slot = gaps.earliest_on(tasks, a, ready[a], work, true);
                self.slots[a] = slot.unwrap_or(never);
            }
        }
        count
    }

    /// Run a task on a device that is open, after `find`.
    pub fn run(&mut self, case: Case<'_>, v: usize, a: usize) {
        let (tasks, was) = (case.tasks, case.before.place[v] as usize);
        self.coming[was] -= tasks.work[(v, was)] / tasks.cores(was).len() as f64;
        self.growing.run(tasks, v, a, self.slots[a]);
    }

    /// Write features of the open devices [D, 14] and of decision `t`, after `find`.
    pub fn measure(
        &mut self,
        case: Case<'_>,
        v: usize,
        t: usize,
        rows: &mut Table<f32>,
        row: &mut [f32],
    ) {
        let Case { tasks, features, before } = case;
        let (n, d, span) = (tasks.n_tasks(), tasks.n_devices(), before.span);
        let mut least = [f64::INFINITY; 6];
        let (mut begin, mut count, mut load) = (f64::INFINITY, 0_u32, 0.0);
        for a in 0..d {
            load += self.coming[a] / d as f64;
            if !self.growing.may[a] {
                continue;
            }
            count += 1;
            begin = min(begin, self.slots[a].begin);
            let (work, after) = (tasks.work[(v, a)], features.after[(v, a)]);
            let finish = self.slots[a].begin + work;
            let until = tasks.cores(a).map(|core| self.growing.gaps.busy_until(core));
            let (late, until) = (late(case, v, a, finish), until.fold(f64::INFINITY, min));
            self.seconds[a] = [finish, finish + after, self.growing.ready[a], work, late, until];
            for (least, &seconds) in least.iter_mut().zip(&self.seconds[a]) {
                *least = min(*least, seconds);
            }
        }
        rows.cells_mut().fill(0.0);
        for a in (0..d).filter(|&a| self.growing.may[a]) {
            let seconds = &self.seconds[a];
            let [finish, end, ready, work, later, until] =
                std::array::from_fn(|f| seconds[f] - least[f]);
            let wait = self.slots[a].begin - self.growing.ready[a];
            let seconds =
                [finish, end, wait, ready, work, seconds[4], later, until, self.coming[a]];
            let shares = seconds.map(|seconds| share(seconds, span) as f32);
            let row = rows.row_mut(a);
            row[..shares.len()].copy_from_slice(&shares);
            row[shares.len()] = f32::from(u8::from(before.place[v] as usize == a));
            row[OF_DEVICE - 1] = share(features.after[(v, a)], span) as f32;
        }
        self.write_homes(case, v, rows);
        let (outputs, inputs) = (tasks.outputs(v).len() as f64, tasks.inputs(v).len() as f64);
        let sending = features.after.row(v).iter().copied().fold(f64::INFINITY, min);
        let values: [f64; OF_STEP] = [
            share(before.latest[v] - begin, span),
            t as f64 / n as f64,
            outputs.ln_1p() / 3.0,
            inputs.ln_1p() / 3.0,
            share(features.least[v], span),
            share(sending, span),
            (n as f64).ln() / 5.0,
            (d as f64).ln() / 3.0,
            f64::from(count) / d as f64,
            share(load, span),
        ];
        row.copy_from_slice(&values.map(|value| value as f32));
    }

    /// Add shares of the bytes received and sent whose other end is on each device, or was before.
    ///
    /// Partners are tasks that feed the same tasks; their bytes count as a third share.
    fn write_homes(&self, case: Case<'_>, v: usize, rows: &mut Table<f32>) {
        let Case { tasks, features, before } = case;
        let place = &self.growing.schedule.place;
        let mut add = |device: Id, column: usize, share: f64| {
            let cell = &mut rows[(device as usize, column)];
            *cell = (f64::from(*cell) + share) as f32;
        };
        if features.coming[v] > 0.0 {
            for &e in tasks.inputs(v) {
                let home = place[tasks.source[e as usize] as usize];
                let share = tasks.size[e as usize] / features.coming[v];
                add(home, AT_HOME, share);
            }
        }
        let mut partners = 0.0;
        for e in tasks.outputs(v) {
            let u = tasks.target[e] as usize;
            partners += features.coming[u] - tasks.size[e];
            if features.going[v] > 0.0 {
                let share = tasks.size[e] / features.going[v];
                add(before.place[u], AT_HOME + 1, share);
            }
        }
        if partners > 0.0 {
            for e in tasks.outputs(v) {
                for &other in tasks.inputs(tasks.target[e] as usize) {
                    let w = tasks.source[other as usize] as usize;
                    if w != v {
                        let home = if place[w] == NONE { before.place[w] } else { place[w] };
                        let share = tasks.size[other as usize] / partners;
                        add(home, AT_HOME + 2, share);
                    }
                }
            }
        }
    }
}

fn share(seconds: f64, span: f64) -> f64 {
    if span > 0.0 { min(MAX_VALUE, max(-MAX_VALUE, seconds / span)) } else { 0.0 }
}

/// Seconds by which the pass would take longer if all else were as before.
fn late(case: Case<'_>, v: usize, a: usize, finish: f64) -> f64 {
    let Case { tasks, before, .. } = case;
    tasks.outputs(v).fold(finish - before.span, |late, e| {
        let u = tasks.target[e] as usize;
        let there = finish + tasks.transfer(e, a, before.place[u] as usize);
        max(late, there - before.latest[u])
    })
}
