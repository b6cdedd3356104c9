//! Flows by source: which part of the input of every operator each source causes.

use crate::instance::Instance;

impl Instance {
    /// Fraction of its full input that every operator has with sources at `shares` [S].
    #[must_use]
    pub fn flow_at(&self, shares: &[f64]) -> Vec<f64> {
        let mut flow = vec![0.0; self.n_operators()];
        for (&v, share) in self.sources.iter().zip(shares) {
            flow[v as usize] = share * self.rate[v as usize];
        }
        for v in self.in_order() {
            if self.input_rate[v] > 0.0 {
                flow[v] /= self.input_rate[v];
            }
            for e in self.outputs(v) {
                flow[self.target[e] as usize] += self.intake[e] * flow[v];
            }
        }
        flow
    }

    /// Whether tuples of each source reach one of the marked operators, [S].
    #[must_use]
    pub fn leading_to(&self, marked: &[bool]) -> Vec<bool> {
        let mut leads = marked.to_vec();
        for v in self.in_order().rev() {
            let mut outputs = self.outputs(v);
            leads[v] |= outputs.any(|e| self.tuples[e] > 0.0 && leads[self.target[e] as usize]);
        }
        self.sources.iter().map(|&v| leads[v as usize]).collect()
    }
}
