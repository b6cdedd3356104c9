//! Schedules that are built with the policy, task by task.

use super::features::{Case, OF_DEVICE, OF_STEP, State};
use crate::check::{Wrong, length};
use crate::pilot::decision::{Decision, Layers};
use crate::pilot::layers::drawn;
use crate::pilot::record::Record;
use crate::scheduling::ListSchedule;
use crate::table::Table;
use crate::watch::Watch;

/// All weights.
#[derive(Clone, Debug)]
pub struct Network {
    pub decision: Layers,
    /// [H] u
    pub device_bias: Vec<f32>,
}

impl Network {
    /// Check the sizes of the weights.
    pub fn check(&self) -> Result<(), Wrong> {
        self.decision.check(OF_DEVICE, OF_STEP)?;
        length("device_bias", &self.device_bias, self.decision.width())?;
        length("skip", &self.decision.skip, OF_DEVICE)
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
        record: Record::new(if recorded { s * n } else { 0 }, d, OF_DEVICE, OF_STEP),
    };
    let mut decision = Decision::new(&network.decision, d);
    for i in 0..s {
        let mut state = State::new(case);
        for (t, &v) in case.before.order.iter().enumerate() {
            if watch.is_over(d * network.decision.width()) {
                break;
            }
            let (v, given) = (v as usize, usize::try_from(fixed[(i, t)]).ok());
            let count = state.find(case, v);
            if count == 0 || given.is_some_and(|to| !state.growing.may[to]) {
                break;
            }
            if recorded || (given.is_none() && count > 1) {
                state.measure(case, v, t, &mut decision.devices, &mut decision.steps);
            }
            if recorded {
                found.record.keep(
                    i * n + t,
                    &decision.devices,
                    &decision.steps,
                    &state.growing.may,
                );
            }
            let to = given.unwrap_or_else(|| {
                if count == 1 {
                    return state.growing.may.iter().position(|&may| may).unwrap_or(0);
                }
                decision.open.copy_from_slice(&state.growing.may);
                decision.evaluate(&network.decision, &network.device_bias, None, |mean, rows| {
                    let share = 1.0 / rows.len() as f64;
                    for row in rows {
                        for (mean, &x) in mean.iter_mut().zip(*row) {
                            *mean = (f64::from(*mean) + share * f64::from(x)) as f32;
                        }
                    }
                });
                drawn(&decision.logits, uniform[(i, t)])
            });
            state.run(case, v, to);
            found.chosen[(i, t)] = to as i32;
        }
        found.schedules.push(state.growing.schedule);
    }
    found
}
