//! The network of pilot on the units of a problem.
//!
//! Units pass messages along their streams a few times. With h the state of a unit, x_e the pair
//! features of an entry e from unit u to its peer p, and the mean over u's entries,
//!
//!   m_u = mean_e relu(A h_p + B x_e),    h_u ← h_u + relu(C [h_u : m_u : mean_v h_v : n_u] + c)
//!
//! where n_u is the mean over the units that will be placed after u.

use super::decision::Layers;
use super::features::{Features, OF_DEVICE, OF_STEP};
use super::layers::{Matrix, Vectors, add, positive};
use crate::check::{Wrong, each, length, matrix, shape};
use crate::table::Table;

/// Weights of a round of messages, matrices as [in, out].
#[derive(Clone, Debug)]
pub struct Round {
    /// [H, H] A
    pub peer: Matrix,
    /// [6, H] B
    pub pair: Matrix,
    /// [4 H, H] C
    pub update: Matrix,
    /// [H] c
    pub update_bias: Vec<f32>,
}

/// All weights, matrices as [in, out].
#[derive(Clone, Debug)]
pub struct Network {
    /// [17, H]
    pub enter: Matrix,
    /// [H]
    pub enter_bias: Vec<f32>,
    pub rounds: Vec<Round>,
    /// [3 H, H] of [h_u : mean : max]
    pub unit: Matrix,
    /// [H]
    pub unit_bias: Vec<f32>,
    /// [H, H]
    pub content: Matrix,
    pub decision: Layers,
}

/// Outputs of the network for the units of one problem.
#[derive(Clone, Debug)]
pub struct Heads {
    /// [U, H] first layer's part of a unit that is to be placed
    pub unit: Table<f32>,
    /// [U, H] added to the first layer of its device for later choices
    pub content: Table<f32>,
}

impl Network {
    /// Width of every layer, H.
    #[must_use]
    pub fn width(&self) -> usize {
        self.decision.width()
    }

    /// Check the sizes of the weights.
    pub fn check(&self) -> Result<(), Wrong> {
        let h = self.width();
        self.decision.check(OF_DEVICE, OF_STEP)?;
        matrix("content", &self.content, h, h)?;
        matrix("enter", &self.enter, self.enter.rows(), h)?;
        matrix("unit", &self.unit, 3 * h, h)?;
        each!(length, self, h; enter_bias unit_bias);
        for round in &self.rounds {
            matrix("peer", &round.peer, h, h)?;
            matrix("pair", &round.pair, round.pair.rows(), h)?;
            matrix("update", &round.update, 4 * h, h)?;
            length("update_bias", &round.update_bias, h)?;
        }
        Ok(())
    }

    /// Evaluate the network on the features of units [U, 17] and pairs [E, 6].
    pub fn heads(
        &self,
        features: &Features,
        units: &Table<f32>,
        pairs: &Table<f32>,
    ) -> Result<Heads, Wrong> {
        let (n, level) = (units.rows(), &features.level);
        shape("units", units, level.n_units(), self.enter.rows())?;
        for round in &self.rounds {
            shape("pairs", pairs, level.entries.len(), round.pair.rows())?;
        }
        let width = self.width();
        let mut h = self.enter.product(&Vectors::of_rows(units));
        add_and_rectify(&mut h, &self.enter_bias);
        let pairs = Vectors::of_rows(pairs);
        let (mut of_h, mut of_pooled) = (Vectors::of_rows(&h), Vectors::default());
        for round in &self.rounds {
            let (of_peer, of_pair) = (round.peer.product(&of_h), round.pair.product(&pairs));
            let messages = Vectors::of_rows(&mean_messages(features, &of_peer, &of_pair));
            let unplaced = Vectors::of_rows(&mean_of_unplaced(features, &h));
            let mean = of_pooled.set(&pooled(&h)[..width]);
            let mut update = Table::filled(0.0, n, width);
            for u in 0..n {
                let joined = [of_h.terms(u), messages.terms(u), mean, unplaced.terms(u)];
                for (i, terms) in joined.into_iter().enumerate() {
                    round.update.add_product(update.row_mut(u), terms, i * width);
                }
            }
            add_and_rectify(&mut update, &round.update_bias);
            add(h.cells_mut(), update.cells());
            of_h = Vectors::of_rows(&h);
        }
        let pooled = of_pooled.set(&pooled(&h));
        let mut unit = self.unit.product(&of_h);
        for u in 0..n {
            self.unit.add_product(unit.row_mut(u), pooled, width);
            add(unit.row_mut(u), &self.unit_bias);
        }
        Ok(Heads { unit, content: self.content.product(&of_h) })
    }
}

fn add_and_rectify(x: &mut Table<f32>, bias: &[f32]) {
    for i in 0..x.rows() {
        for (x, bias) in x.row_mut(i).iter_mut().zip(bias) {
            *x = positive(*x + bias);
        }
    }
}

/// Mean and largest state [2 H] of all units.
fn pooled(h: &Table<f32>) -> Vec<f32> {
    let mut mean = vec![0.0; h.columns()];
    let mut most = vec![f32::NEG_INFINITY; h.columns()];
    for u in 0..h.rows() {
        add(&mut mean, h.row(u));
        for (most, &x) in most.iter_mut().zip(h.row(u)) {
            *most = if x > *most { x } else { *most };
        }
    }
    let count = h.rows() as f32;
    mean.iter().map(|sum| sum / count).chain(most).collect()
}

/// Mean over the entries of every unit of relu(of_peer + of_pair).
fn mean_messages(features: &Features, of_peer: &Table<f32>, of_pair: &Table<f32>) -> Table<f32> {
    let level = &features.level;
    let mut mean = Table::filled(0.0, of_peer.rows(), of_peer.columns());
    for u in 0..mean.rows() {
        let sums = mean.row_mut(u);
        for e in level.range(u) {
            let peer = of_peer.row(level.entries[e].peer as usize);
            for ((sum, peer), pair) in sums.iter_mut().zip(peer).zip(of_pair.row(e)) {
                *sum += positive(peer + pair);
            }
        }
        let count = level.range(u).len().max(1) as f32;
        sums.iter_mut().for_each(|sum| *sum /= count);
    }
    mean
}

/// Mean state of the units that are placed after each unit.
fn mean_of_unplaced(features: &Features, h: &Table<f32>) -> Table<f32> {
    let mut mean = Table::filled(0.0, h.rows(), h.columns());
    let mut total = vec![0.0; h.columns()];
    for (later, &u) in features.order.iter().rev().enumerate() {
        let count = later.max(1) as f32;
        for (mean, total) in mean.row_mut(u as usize).iter_mut().zip(&total) {
            *mean = total / count;
        }
        add(&mut total, h.row(u as usize));
    }
    mean
}
