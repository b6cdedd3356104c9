//! Rollouts: placements built with pilot's network, unit by unit.
//!
//! With x_a the features of device a, s those of the step, k_a the contents of the device, the mean
//! over the open devices, and u the unit's part from the network,
//!
//!   h_a = relu(u + B s + k_a + A x_a),  g_a = relu(C h_a + D mean_b h_b + c),  logit_a = o · g_a

use super::features::{Features, State, device, step};
use super::layers::{Vectors, add, add_dot_products, drawn, log_probability, rectify, subtract};
use super::network::{Heads, Network};
use super::record::Record;
use crate::table::Table;
use crate::watch::Watch;

/// Devices whose second layers are reduced at once.
const AT_ONCE: usize = 4;

/// Devices of S rollouts of T decisions, None from where the rules left none.
#[derive(Clone, Debug)]
pub struct Rollouts {
    /// [S, T]
    pub chosen: Table<i32>,
    /// [S] logarithms of the probabilities of the decisions that were evaluated
    pub likelihood: Vec<f64>,
    pub record: Record,
}

/// Place all units, once per row of `fixed` [S, T].
///
/// T = L · U decisions are L sweeps: after the first sweep every unit in turn is removed from its
/// device and placed again, while all others stay where they are. The policy chooses where no
/// device is given (below 0): with the number `uniform` [S, T] in [0, 1), or below 0 the likeliest.
/// All devices of a rollout are -1 if the rules left none at some decision. Unless inputs are
/// `recorded`, given decisions are not evaluated and add no probability.
/// If the watch ends that, placements are not whole.
#[must_use]
pub fn rollouts(
    features: &Features,
    network: &Network,
    heads: &Heads,
    fixed: &Table<i32>,
    uniform: &Table<f32>,
    recorded: bool,
    watch: &mut Watch,
) -> Rollouts {
    let (s, n_steps) = (fixed.rows(), fixed.columns());
    let (d, h) = (features.n_devices(), network.width());
    let decisions = if recorded { s * n_steps } else { 0 };
    let mut found = Rollouts {
        chosen: Table::filled(-1, s, n_steps),
        likelihood: vec![0.0; s],
        record: Record::new(decisions, d, device::N, step::N),
    };
    let mut decision = Decision::new(d, h);
    for i in 0..s {
        let mut state = State::new(features);
        let mut contents = Table::filled(0.0, d, h);
        for t in 0..n_steps {
            if watch.is_over(d * h) {
                return found;
            }
            let unit = features.order[t % features.order.len()] as usize;
            if let Some(was) = state.remove(features, unit) {
                subtract(contents.row_mut(was), heads.content.row(unit));
            }
            let given = usize::try_from(fixed[(i, t)]).ok();
            let mut to = given.unwrap_or(0);
            if given.is_none() || recorded {
                state.write_open(features, unit, &mut decision.open);
                if !decision.open.contains(&true) {
                    found.chosen.row_mut(i).fill(-1);
                    break;
                }
                let needed = if recorded { None } else { Some(&decision.open[..]) };
                let (rows, row) = (&mut decision.devices, &mut decision.steps);
                state.measure(features, unit, t, needed, rows, row);
                if recorded {
                    let Decision { devices, steps, open, .. } = &decision;
                    found.record.keep(i * n_steps + t, devices, steps, open);
                }
                decision.evaluate(network, heads.unit.row(unit), &contents);
                if given.is_none() {
                    to = drawn(&decision.logits, uniform[(i, t)]);
                }
                found.likelihood[i] += log_probability(&decision.logits, to);
            }
            state.put(features, unit, to);
            add(contents.row_mut(to), heads.content.row(unit));
            found.chosen[(i, t)] = to as i32;
        }
    }
    found
}

/// Inputs and outputs of one decision.
struct Decision {
    /// [D, 20]
    devices: Table<f32>,
    steps: [f32; step::N],
    /// [D]
    open: Vec<bool>,
    /// [D] preference for every device, -∞ where it is not open
    logits: Vec<f64>,
    /// [D, H] layers
    first: Table<f32>,
    second: Table<f32>,
    mean: Vec<f32>,
    common: Vec<f32>,
    base: Vec<f32>,
    vector: Vectors,
}

impl Decision {
    fn new(d: usize, h: usize) -> Self {
        Self {
            devices: Table::filled(0.0, d, device::N),
            steps: [0.0; step::N],
            open: vec![false; d],
            logits: vec![0.0; d],
            first: Table::filled(0.0, d, h),
            second: Table::filled(0.0, d, h),
            mean: vec![0.0; h],
            common: vec![0.0; h],
            base: vec![0.0; h],
            vector: Vectors::default(),
        }
    }

    /// Write the logits.
    fn evaluate(&mut self, network: &Network, unit: &[f32], contents: &Table<f32>) {
        let Self { base, common, mean, first, second, vector, .. } = self;
        base.copy_from_slice(unit);
        network.step.add_product(base, vector.set(&self.steps), 0);
        mean.fill(0.0);
        let open = || self.open.iter().enumerate().filter(|&(_, &open)| open).map(|(a, _)| a);
        for a in open() {
            let row = first.row_mut(a);
            for ((row, base), content) in row.iter_mut().zip(&*base).zip(contents.row(a)) {
                *row = base + content;
            }
            network.device.add_product(row, vector.set(self.devices.row(a)), 0);
            rectify(row);
            add(mean, row);
        }
        let count = open().count() as f32;
        mean.iter_mut().for_each(|sum| *sum /= count);
        common.copy_from_slice(&network.own_bias);
        network.mean.add_product(common, vector.set(mean), 0);
        self.logits.fill(f64::NEG_INFINITY);
        let mut waiting = [0; AT_ONCE];
        let mut n_waiting = 0;
        for a in open() {
            let row = second.row_mut(a);
            row.copy_from_slice(common);
            network.own.add_product(row, vector.set(first.row(a)), 0);
            rectify(row);
            waiting[n_waiting] = a;
            n_waiting += 1;
            if n_waiting == AT_ONCE {
                reduce(second, waiting, &network.out, &mut self.logits);
                n_waiting = 0;
            }
        }
        for &a in &waiting[..n_waiting] {
            reduce(second, [a], &network.out, &mut self.logits);
        }
    }
}

fn reduce<const ROWS: usize>(
    second: &Table<f32>,
    devices: [usize; ROWS],
    out: &[f32],
    logits: &mut [f64],
) {
    let mut totals = [0.0; ROWS];
    add_dot_products(&mut totals, devices.map(|a| second.row(a)), out);
    for (a, total) in devices.into_iter().zip(totals) {
        logits[a] = f64::from(total);
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::tests::features;
    use super::super::layers::Matrix;
    use super::*;

    /// A network that likes devices with much flow at home, and does not look at units.
    fn at_home() -> (Network, Heads) {
        let matrix = |rows: usize| Matrix::new(&Table::filled(0.0, rows, 1));
        let mut likes = Table::filled(0.0, device::N, 1);
        likes[(device::FLOW_AT_HOME, 0)] = 1.0;
        let network = Network {
            enter: matrix(17),
            enter_bias: vec![0.0],
            rounds: vec![],
            unit: matrix(3),
            unit_bias: vec![0.0],
            content: matrix(1),
            device: Matrix::new(&likes),
            step: matrix(step::N),
            own: Matrix::new(&Table::filled(1.0, 1, 1)),
            mean: matrix(1),
            own_bias: vec![0.0],
            out: vec![1.0],
        };
        network.check().unwrap();
        let heads =
            network.heads(&features(), &Table::filled(0.0, 3, 17), &Table::filled(0.0, 6, 6));
        (network, heads.unwrap())
    }

    #[test]
    fn units_go_where_the_network_likes_it_and_rivals_apart() {
        let (network, heads) = at_home();
        let run = |recorded| {
            let (fixed, uniform) = (Table::filled(-1, 1, 6), Table::filled(-1.0, 1, 6));
            let watch = &mut Watch::endless();
            rollouts(&features(), &network, &heads, &fixed, &uniform, recorded, watch)
        };
        let found = run(true);
        assert_eq!(found.chosen.cells(), [0, 0, 1, 0, 0, 1]);
        assert!(found.likelihood[0] < 0.0);
        assert_eq!(found.record.open[..4], [true, false, true, true]);
        let unrecorded = run(false);
        assert_eq!(unrecorded.chosen, found.chosen);
        assert_eq!(unrecorded.likelihood, found.likelihood);
    }
}
