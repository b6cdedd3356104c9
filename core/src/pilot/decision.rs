//! One decision of a policy: a logit for every open device, and a device by these.
//!
//! With x_a the features of device a, s those of the decision, u and k_a what the policy adds for the
//! unit and for the contents of the device, and the mean over the open devices,
//!
//!   h_a = relu(u + B s + k_a + A x_a),  g_a = relu(C h_a + D mean_b h_b + c),
//!   logit_a = o · g_a + q · x_a

use super::layers::{Matrix, Vectors, add, add_dot_products, rectify};
use crate::check::{Wrong, each, length, matrix};
use crate::table::Table;

/// Devices whose second layers are reduced at once.
const AT_ONCE: usize = 4;

/// Weights of the two layers, matrices as [in, out].
#[derive(Clone, Debug)]
pub struct Layers {
    /// [F, H] A
    pub device: Matrix,
    /// [G, H] B
    pub step: Matrix,
    /// [H, H] C
    pub own: Matrix,
    /// [H, H] D
    pub mean: Matrix,
    /// [H] c
    pub own_bias: Vec<f32>,
    /// [H] o
    pub out: Vec<f32>,
    /// [F] q, or empty
    pub skip: Vec<f32>,
}

impl Layers {
    /// Width of every layer, H.
    #[must_use]
    pub fn width(&self) -> usize {
        self.out.len()
    }

    /// Check the sizes of the weights for these numbers of features.
    pub fn check(&self, of_device: usize, of_step: usize) -> Result<(), Wrong> {
        let h = self.width();
        if h == 0 {
            return Err("there are no weights".into());
        }
        each!(matrix, self, h, h; own mean);
        matrix("device", &self.device, of_device, h)?;
        matrix("step", &self.step, of_step, h)?;
        length("own_bias", &self.own_bias, h)
    }
}

/// Inputs and outputs of a decision, and the memory that it needs.
pub struct Decision {
    /// [D, F]
    pub devices: Table<f32>,
    /// [G]
    pub steps: Vec<f32>,
    /// [D]
    pub open: Vec<bool>,
    /// [D] preference for every device, -∞ for closed devices
    pub logits: Vec<f64>,
    /// [D, H] layers
    first: Table<f32>,
    second: Table<f32>,
    mean: Vec<f32>,
    base: Vec<f32>,
    vector: Vectors,
}

impl Decision {
    /// Memory for decisions about `d` devices.
    #[must_use]
    pub fn new(layers: &Layers, d: usize) -> Self {
        let (h, features) = (layers.width(), layers.device.rows());
        Self {
            devices: Table::filled(0.0, d, features),
            steps: vec![0.0; layers.step.rows()],
            open: vec![false; d],
            logits: vec![0.0; d],
            first: Table::filled(0.0, d, h),
            second: Table::filled(0.0, d, h),
            mean: vec![0.0; h],
            base: vec![0.0; h],
            vector: Vectors::default(),
        }
    }

    /// Write the logits; `write_mean` writes the mean of the first layer of the open devices.
    pub fn evaluate(
        &mut self,
        layers: &Layers,
        unit: &[f32],
        contents: Option<&Table<f32>>,
        write_mean: impl Fn(&mut [f32], &[&[f32]]),
    ) {
        let Self { devices, steps, open, logits, first, second, mean, base, vector } = self;
        let open = || open.iter().enumerate().filter(|&(_, &open)| open).map(|(a, _)| a);
        base.copy_from_slice(unit);
        layers.step.add_product(base, vector.set(steps), 0);
        for a in open() {
            let row = first.row_mut(a);
            row.copy_from_slice(base);
            if let Some(contents) = contents {
                add(row, contents.row(a));
            }
            layers.device.add_product(row, vector.set(devices.row(a)), 0);
            rectify(row);
        }
        mean.fill(0.0);
        write_mean(mean, &open().map(|a| first.row(a)).collect::<Vec<_>>());
        base.copy_from_slice(&layers.own_bias);
        layers.mean.add_product(base, vector.set(mean), 0);
        logits.fill(f64::NEG_INFINITY);
        let (mut waiting, mut n_waiting) = ([0; AT_ONCE], 0);
        for a in open() {
            let row = second.row_mut(a);
            row.copy_from_slice(base);
            layers.own.add_product(row, vector.set(first.row(a)), 0);
            rectify(row);
            waiting[n_waiting] = a;
            n_waiting += 1;
            if n_waiting == AT_ONCE {
                reduce(layers, second, devices, waiting, logits);
                n_waiting = 0;
            }
        }
        for &a in &waiting[..n_waiting] {
            reduce(layers, second, devices, [a], logits);
        }
    }
}

fn reduce<const ROWS: usize>(
    layers: &Layers,
    second: &Table<f32>,
    features: &Table<f32>,
    devices: [usize; ROWS],
    logits: &mut [f64],
) {
    let mut totals = [0.0; ROWS];
    add_dot_products(&mut totals, devices.map(|a| second.row(a)), &layers.out);
    add_dot_products(&mut totals, devices.map(|a| features.row(a)), &layers.skip);
    for (a, total) in devices.into_iter().zip(totals) {
        logits[a] = f64::from(total);
    }
}
