//! Products of vectors and matrices in single precision.
//!
//! Sums are in one order whatever the machine: each element of a product adds its terms one after
//! the other. Terms whose factor is 0 are left out; activations have many.

use crate::table::Table;

/// Columns that are summed at once, in registers.
const LANES: usize = 32;

/// The elements of a vector that are not 0, and their positions.
pub type Terms = [(u32, f32)];

/// A matrix [in, out] in strips of some columns each, of which the last may be wider than needed.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// strip by strip, and in each row by row
    strips: Vec<[f32; LANES]>,
    rows: usize,
    columns: usize,
}

impl Matrix {
    /// The matrix of a table.
    #[must_use]
    pub fn new(table: &Table<f32>) -> Self {
        let (rows, columns) = (table.rows(), table.columns());
        let mut strips = vec![[0.0; LANES]; rows * columns.div_ceil(LANES)];
        for i in 0..rows {
            for (strip, part) in table.row(i).chunks(LANES).enumerate() {
                strips[strip * rows + i][..part.len()].copy_from_slice(part);
            }
        }
        Self { strips, rows, columns }
    }

    /// Length of the vectors that it is multiplied by.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Length of the products.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Add the product of a vector and the rows from `first` on to a row.
    #[inline]
    pub fn add_product(&self, row: &mut [f32], terms: &Terms, first: usize) {
        for (block, strip) in row.chunks_mut(LANES).zip(self.strips.chunks_exact(self.rows.max(1)))
        {
            let strip = &strip[first..];
            if let Ok(block) = block.try_into() {
                add_terms(block, strip, terms);
            } else {
                let mut sums = [0.0; LANES];
                sums[..block.len()].copy_from_slice(block);
                add_terms(&mut sums, strip, terms);
                block.copy_from_slice(&sums[..block.len()]);
            }
        }
    }

    /// Products of vectors and the matrix.
    #[must_use]
    pub fn product(&self, vectors: &Vectors) -> Table<f32> {
        let mut out = Table::filled(0.0, vectors.count(), self.columns);
        for i in 0..vectors.count() {
            self.add_product(out.row_mut(i), vectors.terms(i), 0);
        }
        out
    }
}

/// Add terms to the sums of a strip; not inlined, so that the sums stay in registers.
#[inline(never)]
fn add_terms(sums: &mut [f32; LANES], strip: &[[f32; LANES]], terms: &Terms) {
    let mut totals = *sums;
    for &(j, factor) in terms {
        for (total, weight) in totals.iter_mut().zip(&strip[j as usize]) {
            *total += factor * weight;
        }
    }
    *sums = totals;
}

/// Terms of several vectors.
#[derive(Clone, Debug, Default)]
pub struct Vectors {
    terms: Vec<(u32, f32)>,
    ends: Vec<usize>,
}

impl Vectors {
    /// The rows of a table.
    #[must_use]
    pub fn of_rows(table: &Table<f32>) -> Self {
        let mut found = Self::default();
        for i in 0..table.rows() {
            found.push(table.row(i));
        }
        found
    }

    /// Terms of the only vector from now on.
    #[inline]
    pub fn set(&mut self, vector: &[f32]) -> &Terms {
        self.terms.clear();
        self.ends.clear();
        self.push(vector);
        &self.terms
    }

    fn push(&mut self, vector: &[f32]) {
        let start = self.terms.len();
        self.terms.resize(start + vector.len(), (0, 0.0));
        let (new, mut end) = (&mut self.terms[start..], 0);
        for (j, &factor) in vector.iter().enumerate() {
            new[end] = (j as u32, factor);
            end += usize::from(factor != 0.0);
        }
        self.terms.truncate(start + end);
        self.ends.push(start + end);
    }

    /// Number of vectors.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Terms of a vector.
    #[inline]
    #[must_use]
    pub fn terms(&self, i: usize) -> &Terms {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.terms[start..self.ends[i]]
    }
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

/// Replace negative values by 0.
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
            let out = Matrix::new(&matrix).product(&Vectors::of_rows(&x));
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
