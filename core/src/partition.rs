//! Exchange of devices between the parts of a graph, so that no link is too full.

use crate::instance::Id;
use crate::table::Table;

const MAX_ROUNDS: usize = 50;
/// Share up to which two sums count as equal.
const ROUNDING: f64 = 1e-9;

/// Device of every part [K] after exchanges that lower the strain on links.
///
/// `traffic` [K, K] is between parts, `wire` [K, K] the seconds per byte between devices. Two parts
/// exchange devices of one `kind` [K] while that lowers Σ load⁸ over the links of both.
#[must_use]
pub fn exchanged(traffic: &Table, wire: &Table, kind: &[Id]) -> Vec<Id> {
    let mut at: Vec<Id> = (0..kind.len() as Id).collect();
    for _ in 0..MAX_ROUNDS {
        let mut is_better = false;
        for a in 0..at.len() {
            for b in 0..a {
                if kind[at[a] as usize] != kind[at[b] as usize] {
                    continue;
                }
                let before = strain(traffic, wire, &at, a, b);
                at.swap(a, b);
                if strain(traffic, wire, &at, a, b) < before * (1.0 - ROUNDING) {
                    is_better = true;
                } else {
                    at.swap(a, b);
                }
            }
        }
        if !is_better {
            break;
        }
    }
    at
}

/// Sum of the loads to the power of eight over the links of parts a and b.
fn strain(traffic: &Table, wire: &Table, at: &[Id], a: usize, b: usize) -> f64 {
    let (on_a, on_b) = (at[a] as usize, at[b] as usize);
    let (from_a, from_b) = (traffic.row(a), traffic.row(b));
    let (wire_a, wire_b) = (wire.row(on_a), wire.row(on_b));
    let mut total = 0.0;
    for (c, &on) in at.iter().enumerate() {
        let on = on as usize;
        if c != a {
            total += eighth(from_a[c] * wire_a[on]);
            total += eighth(traffic[(c, a)] * wire[(on, on_a)]);
        }
        if c != a && c != b {
            total += eighth(from_b[c] * wire_b[on]);
            total += eighth(traffic[(c, b)] * wire[(on, on_b)]);
        }
    }
    total
}

fn eighth(load: f64) -> f64 {
    let square = load * load;
    square * square * (square * square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_with_traffic_get_the_fast_link() {
        let traffic = Table::new(vec![0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 3, 3);
        let wire = Table::new(vec![0.0, 0.1, 1.0, 0.1, 0.0, 1.0, 1.0, 1.0, 0.0], 3, 3);
        let at = exchanged(&traffic, &wire, &[0, 0, 0]);
        assert_eq!(wire[(at[0] as usize, at[2] as usize)], 0.1);
        assert_eq!(exchanged(&traffic, &wire, &[0, 1, 2]), [0, 1, 2]);
    }
}
