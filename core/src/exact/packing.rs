//! Bin packing of work of few sizes, by dynamic programming.

use crate::watch::Watch;

/// Whether items fit when packed into devices in order; true if the watch ends the search.
///
/// There are `counts[k]` items of `sizes[k]`. A state is the number of packed items of each kind. Of
/// all ways to pack the same items, the one that ends on the earliest device with the least work
/// there dominates.
#[must_use]
pub fn packs(sizes: &[f64], counts: &[i64], room: &[f64], watch: &mut Watch) -> bool {
    let n_kinds = sizes.len();
    let mut stride = vec![1; n_kinds + 1];
    for kind in 0..n_kinds {
        stride[kind + 1] = stride[kind] * (counts[kind] as usize + 1);
    }
    let n_states = stride[n_kinds];
    let mut states = vec![(0, 0.0); n_states];
    let mut packed = vec![0; n_kinds];
    for state in 1..n_states {
        if watch.is_over(5 * n_kinds) {
            return true;
        }
        let mut kind = 0;
        while packed[kind] == counts[kind] {
            packed[kind] = 0;
            kind += 1;
        }
        packed[kind] += 1;
        let mut best = (room.len(), f64::INFINITY);
        for kind in 0..n_kinds {
            if packed[kind] == 0 {
                continue;
            }
            let (mut d, used) = states[state - stride[kind]];
            let mut load = used + sizes[kind];
            while d < room.len() && load > room[d] {
                d += 1;
                load = sizes[kind];
            }
            if d < best.0 || (d == best.0 && load < best.1) {
                best = (d, load);
            }
        }
        states[state] = best;
    }
    states[n_states - 1].0 < room.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_halves_do_not_fit_one_device() {
        let mut watch = Watch::endless();
        assert!(packs(&[0.5, 0.25], &[2, 4], &[1.0, 1.0], &mut watch));
        assert!(!packs(&[0.5, 0.25], &[3, 3], &[1.0, 1.0], &mut watch));
        assert!(packs(&[], &[], &[1.0], &mut watch));
    }
}
