//! Products of vectors and matrices in single precision.
//!
//! Sums are in one order whatever the machine: each element of a product adds its terms one after
//! the other. Terms whose factor is 0 are left out; activations have many.

use crate::table::Table;

/// Columns that are summed at once, in registers.
const LANES: usize = 32;

/// Rows of a matrix and their factors: the elements of a vector that are not 0.
#[derive(Clone, Debug, Default)]
pub struct Terms(Vec<(u32, f32)>);

impl Terms {
    /// Set the terms to a vector's elements.
    #[inline]
    pub fn set(&mut self, vector: &[f32]) {
        self.0.resize(vector.len(), (0, 0.0));
        let mut end = 0;
        for (j, &factor) in vector.iter().enumerate() {
            self.0[end] = (j as u32, factor);
            end += usize::from(factor != 0.0);
        }
        self.0.truncate(end);
    }
}

/// Add the product of a vector and a matrix to a row.
#[inline]
pub fn add_product(row: &mut [f32], terms: &Terms, matrix: &Table<f32>) {
    let (cells, width) = (matrix.cells(), matrix.columns());
    let row = &mut row[..width];
    let mut blocks = row.chunks_exact_mut(LANES);
    let mut first = 0;
    for block in &mut blocks {
        add_block::<LANES>(block, terms, cells, width, first);
        first += LANES;
    }
    let mut blocks = blocks.into_remainder().chunks_exact_mut(4);
    for block in &mut blocks {
        add_block::<4>(block, terms, cells, width, first);
        first += 4;
    }
    for (k, sum) in blocks.into_remainder().iter_mut().enumerate() {
        for &(j, factor) in &terms.0 {
            *sum += factor * cells[j as usize * width + first + k];
        }
    }
}

#[inline(always)]
fn add_block<const SIZE: usize>(
    block: &mut [f32],
    terms: &Terms,
    cells: &[f32],
    width: usize,
    first: usize,
) {
    let mut sums = [0.0; SIZE];
    sums.copy_from_slice(block);
    for &(j, factor) in &terms.0 {
        let weights = &cells[j as usize * width + first..][..SIZE];
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += factor * weight;
        }
    }
    block.copy_from_slice(&sums);
}

/// Product of two matrices.
#[must_use]
pub fn product(x: &Table<f32>, matrix: &Table<f32>) -> Table<f32> {
    let mut out = Table::filled(0.0, x.rows(), matrix.columns());
    let mut terms = Terms::default();
    for i in 0..x.rows() {
        terms.set(x.row(i));
        add_product(out.row_mut(i), &terms, matrix);
    }
    out
}

/// Add the elements of another row.
#[inline]
pub fn add(row: &mut [f32], other: &[f32]) {
    for (sum, value) in row.iter_mut().zip(other) {
        *sum += value;
    }
}

/// Subtract the elements of another row.
#[inline]
pub fn subtract(row: &mut [f32], other: &[f32]) {
    for (sum, value) in row.iter_mut().zip(other) {
        *sum += -value;
    }
}

/// The number, or 0 if it is below.
#[inline(always)]
#[must_use]
pub fn positive(x: f32) -> f32 {
    if 0.0 > x { 0.0 } else { x }
}

/// Raise what is below 0 to it.
#[inline]
pub fn rectify(row: &mut [f32]) {
    for x in row {
        *x = positive(*x);
    }
}

/// Sums of the products of the elements of each row and a vector, added to `totals`.
#[inline]
pub fn add_dot_products<const ROWS: usize>(
    totals: &mut [f32; ROWS],
    rows: [&[f32]; ROWS],
    vector: &[f32],
) {
    let rows = rows.map(|row| &row[..vector.len()]);
    for (k, &weight) in vector.iter().enumerate() {
        for (total, row) in totals.iter_mut().zip(&rows) {
            *total += row[k] * weight;
        }
    }
}

/// The first of the devices with the largest logit.
#[must_use]
pub fn likeliest(logits: &[f64]) -> usize {
    (1..logits.len()).fold(0, |best, a| if logits[a] > logits[best] { a } else { best })
}

/// A device drawn by the softmax of the logits with a number in [0, 1); below 0, the likeliest.
#[must_use]
pub fn drawn(logits: &[f64], uniform: f32) -> usize {
    let (mut top, mut best) = (f64::NEG_INFINITY, 0);
    for (a, &logit) in logits.iter().enumerate() {
        if logit > top {
            (top, best) = (logit, a);
        }
    }
    if uniform < 0.0 {
        return best;
    }
    let open = logits.iter().enumerate().filter(|&(_, &logit)| logit > f64::NEG_INFINITY);
    let weights = open.map(|(a, &logit)| (a, (logit - top).exp()));
    let total = weights.clone().fold(0.0, |total, (_, weight)| total + weight);
    let (mut remaining, mut last) = (f64::from(uniform) * total, best);
    for (a, weight) in weights {
        remaining -= weight;
        last = a;
        if remaining < 0.0 {
            break;
        }
    }
    last
}

/// Logarithm of the share of a device in the softmax of the logits.
#[must_use]
pub fn log_probability(logits: &[f64], a: usize) -> f64 {
    let top = logits[likeliest(logits)];
    let total = logits.iter().fold(0.0, |total, &logit| total + (logit - top).exp());
    logits[a] - top - total.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        for width in [1, 5, 8, 37, 64, 70] {
            let cells: Vec<f32> = (0..3 * width).map(|i| (i % 7) as f32 - 2.5).collect();
            let matrix = Table::new(cells, 3, width);
            let x = Table::new(vec![1.5, 0.0, -2.0, 0.25, 3.0, 0.0], 2, 3);
            let out = product(&x, &matrix);
            for i in 0..2 {
                for k in 0..width {
                    let each = (0..3).map(|j| x[(i, j)] * matrix[(j, k)]);
                    assert_eq!(out[(i, k)], each.fold(0.0, |sum, term| sum + term));
                }
            }
        }
    }

    #[test]
    fn draws_follow_the_softmax_and_leave_out_what_is_closed() {
        let logits = [0.0, f64::NEG_INFINITY, 3.0_f64.ln()];
        assert_eq!(drawn(&logits, -1.0), 2);
        assert_eq!([0.0, 0.2, 0.3, 0.99].map(|uniform| drawn(&logits, uniform)), [0, 0, 2, 2]);
        assert!((log_probability(&logits, 2) - 0.75_f64.ln()).abs() < 1e-12);
        assert_eq!(log_probability(&logits, 1), f64::NEG_INFINITY);
    }
}
