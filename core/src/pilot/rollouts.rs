//! Rollouts: placements built with pilot's network, unit by unit.

use super::decision::Decision;
use super::features::{Features, OF_DEVICE, OF_STEP, State};
use super::layers::{add, drawn, log_probability, subtract};
use super::network::{Heads, Network};
use super::record::Record;
use crate::table::Table;
use crate::watch::Watch;

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
        record: Record::new(decisions, d, OF_DEVICE, OF_STEP),
    };
    let mut decision = Decision::new(&network.decision, d);
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
                let layers = &network.decision;
                decision.evaluate(layers, heads.unit.row(unit), Some(&contents), |mean, rows| {
                    rows.iter().for_each(|row| add(mean, row));
                    mean.iter_mut().for_each(|sum| *sum /= rows.len() as f32);
                });
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

#[cfg(test)]
mod tests {
    use super::super::decision::Layers;
    use super::super::features::tests::features;
    use super::super::layers::Matrix;
    use super::*;

    /// A network that likes devices with much flow at home, and does not look at units.
    fn at_home() -> (Network, Heads) {
        let matrix = |rows: usize| Matrix::new(&Table::filled(0.0, rows, 1));
        let (mut likes, flow_at_home) = (Table::filled(0.0, OF_DEVICE, 1), 6);
        likes[(flow_at_home, 0)] = 1.0;
        let network = Network {
            enter: matrix(17),
            enter_bias: vec![0.0],
            rounds: vec![],
            unit: matrix(3),
            unit_bias: vec![0.0],
            content: matrix(1),
            decision: Layers {
                device: Matrix::new(&likes),
                step: matrix(OF_STEP),
                own: Matrix::new(&Table::filled(1.0, 1, 1)),
                mean: matrix(1),
                own_bias: vec![0.0],
                out: vec![1.0],
                skip: vec![],
            },
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
