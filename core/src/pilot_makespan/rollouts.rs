//! The network of the policy, a logit for every device; and schedules built with it.
//!
//! With x_a the features of device a, s those of the step, the mean over the open devices, and all
//! weights learned,
//!
//!   h_a = relu(A x_a + B s + b)
//!   g_a = relu(C h_a + D mean_b h_b + c)
//!   logit_a = o · g_a + k · x_a

use super::features::{Case, State, device, step};
use crate::check::{Wrong, each, length, matrix};
use crate::instance::Id;
use crate::pilot::layers::{Matrix, Vectors, add_dot_products, drawn, rectify};
use crate::pilot::record::Record;
use crate::scheduling::ListSchedule;
use crate::table::Table;
use crate::watch::Watch;

/// All weights, matrices as [in, out].
#[derive(Clone, Debug)]
pub struct Network {
    /// [14, H] A
    pub device: Matrix,
    /// [10, H] B
    pub step: Matrix,
    /// [H] b
    pub device_bias: Vec<f32>,
    /// [H, H] C
    pub own: Matrix,
    /// [H, H] D
    pub mean: Matrix,
    /// [H] c
    pub own_bias: Vec<f32>,
    /// [H] o
    pub out: Vec<f32>,
    /// [14] k
    pub skip: Vec<f32>,
}

impl Network {
    /// Check the sizes of the weights.
    pub fn check(&self) -> Result<(), Wrong> {
        let h = self.out.len();
        if h == 0 {
            return Err("there are no weights".into());
        }
        each!(matrix, self, h, h; own mean);
        matrix("device", &self.device, device::N, h)?;
        matrix("step", &self.step, step::N, h)?;
        each!(length, self, h; device_bias own_bias);
        length("skip", &self.skip, device::N)
    }
}

/// Schedules [S, N] of tasks, and their devices [S, N] by step.
#[derive(Clone, Debug)]
pub struct Rollouts {
    /// [S, N], -1 from the step at which the rules left no device
    pub chosen: Table<i32>,
    /// [S]
    pub schedules: Vec<ListSchedule>,
    pub record: Record,
}

/// Build a schedule for each row of `fixed` [S, N].
///
/// The policy chooses where no device is given (below 0): with the number `uniform` [S, N] in
/// [0, 1), or below 0 the likeliest.
/// If the watch ends that, schedules are not whole.
#[must_use]
pub fn rollouts(
    case: Case<'_>,
    network: &Network,
    fixed: &Table<i32>,
    uniform: &Table<f32>,
    recorded: bool,
    watch: &mut Watch,
) -> Rollouts {
    let (s, n, d) = (fixed.rows(), fixed.columns(), case.tasks.n_devices());
    let mut found = Rollouts {
        chosen: Table::filled(-1, s, n),
        schedules: Vec::with_capacity(s),
        record: Record::new(if recorded { s * n } else { 0 }, d, device::N, step::N),
    };
    let (mut rows, mut row) = (Table::filled(0.0, d, device::N), [0.0; step::N]);
    let mut preferences = Preferences::new(d, network.out.len());
    for i in 0..s {
        let mut state = State::new(case);
        for (t, &v) in case.before.order.iter().enumerate() {
            if watch.is_over(d * network.out.len()) {
                break;
            }
            let (v, given) = (v as usize, usize::try_from(fixed[(i, t)]).ok());
            let count = state.find(case, v);
            if count == 0 || given.is_some_and(|to| !state.may[to]) {
                break;
            }
            if recorded || (given.is_none() && count > 1) {
                state.measure(case, v, t, &mut rows, &mut row);
            }
            if recorded {
                found.record.keep(i * n + t, &rows, &row, &state.may);
            }
            let to = given.unwrap_or_else(|| {
                if count == 1 {
                    return state.may.iter().position(|&may| may).unwrap_or(0);
                }
                preferences.evaluate(network, &rows, &row, &state.may);
                drawn(&preferences.logits, uniform[(i, t)])
            });
            state.run(case, v, to);
            found.chosen[(i, t)] = to as i32;
        }
        found.schedules.push(state.schedule);
    }
    found
}

/// Preferences for devices, and the memory that computing them needs.
struct Preferences {
    /// [D] -∞ where a device is not open
    logits: Vec<f64>,
    /// [D, H]
    first: Table<f32>,
    base: Vec<f32>,
    mean: Vec<f32>,
    second: Vec<f32>,
    vector: Vectors,
}

impl Preferences {
    fn new(d: usize, h: usize) -> Self {
        Self {
            logits: vec![0.0; d],
            first: Table::filled(0.0, d, h),
            base: vec![0.0; h],
            mean: vec![0.0; h],
            second: vec![0.0; h],
            vector: Vectors::default(),
        }
    }

    /// Write the logits.
    fn evaluate(&mut self, net: &Network, rows: &Table<f32>, step: &[f32], may: &[bool]) {
        let Self { logits, first, base, mean, second, vector } = self;
        base.copy_from_slice(&net.device_bias);
        net.step.add_product(base, vector.set(step), 0);
        mean.fill(0.0);
        let open: Vec<Id> = (0..may.len() as Id).filter(|&a| may[a as usize]).collect();
        let share = 1.0 / open.len() as f64;
        for &a in &open {
            let row = first.row_mut(a as usize);
            row.copy_from_slice(base);
            net.device.add_product(row, vector.set(rows.row(a as usize)), 0);
            rectify(row);
            for (mean, &x) in mean.iter_mut().zip(&*row) {
                *mean = (f64::from(*mean) + share * f64::from(x)) as f32;
            }
        }
        base.copy_from_slice(&net.own_bias);
        net.mean.add_product(base, vector.set(mean), 0);
        logits.fill(f64::NEG_INFINITY);
        for &a in &open {
            second.copy_from_slice(base);
            net.own.add_product(second, vector.set(first.row(a as usize)), 0);
            rectify(second);
            let mut logit = [0.0];
            add_dot_products(&mut logit, [second], &net.out);
            add_dot_products(&mut logit, [rows.row(a as usize)], &net.skip);
            logits[a as usize] = f64::from(logit[0]);
        }
    }
}
