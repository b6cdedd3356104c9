//! Hubs and patterns: bounds for units of few kinds around one unit with many streams.
//!
//! Units with equal work and equal streams from and to the hub are of one kind: if of the network
//! only the links between the hub's device and the others are kept, they are interchangeable. A
//! pattern is a combination of units on one device, by the counts of each kind (K).

use crate::watch::Watch;

/// Largest number of patterns of a device.
const MAX_PATTERNS: usize = 2_000;
/// Limits of the words of patterns, and of the steps to enumerate them.
const MAX_WORDS: usize = 4_000;
const MAX_STEPS: usize = 200_000;

/// A hub, and the other units by kind.
pub struct Hub {
    /// [K]
    pub counts: Vec<i64>,
    /// [K] CPU load
    pub work: Vec<f64>,
    /// [K] load of a link from the hub
    pub sent: Vec<f64>,
    /// [K] load of a link to the hub
    pub taken: Vec<f64>,
    /// CPU load of the hub
    pub own: f64,
}

/// Whether units can be spread over devices.
pub enum Spread {
    No,
    /// [D, K] the pattern of each device
    Yes(Vec<i64>),
    Unknown,
}

/// Work, and bytes from and to the hub, of a pattern.
type Needs = (f64, f64, f64);

impl Hub {
    /// Number of kinds, K.
    #[must_use]
    pub fn n_kinds(&self) -> usize {
        self.counts.len()
    }

    /// Whether all loads can be at most `limit`, and if so the pattern of each device.
    ///
    /// One device holds the hub and a pattern, every other one a pattern whose streams also fit one
    /// link. The units are covered device by device; a state is the number of covered units of each
    /// kind.
    #[must_use]
    pub fn spread(&self, limit: f64, n_devices: usize, steps: i64, watch: &mut Watch) -> Spread {
        let n = self.n_kinds();
        let mut radix = vec![1; n + 1];
        for k in 0..n {
            radix[k + 1] = radix[k] * (self.counts[k] as usize + 1);
        }
        let home = self.maximal_patterns(limit - self.own, f64::INFINITY, watch);
        let away = self.maximal_patterns(limit, limit, watch);
        let (Some(home), Some(away)) = (home, away) else { return Spread::Unknown };
        let (mut reached, mut steps) = (vec![false; radix[n]], steps);
        let (mut states, mut origin) = (vec![0; n], vec![(0, 0)]);
        let mut first = 0;
        for device in 0..n_devices {
            let last = origin.len();
            if first == last {
                break;
            }
            let options = if device == 0 { &home } else { &away };
            for s in first..last {
                steps -= (options.len() / n.max(1)) as i64;
                if steps < 0 || watch.is_over(options.len() * 2) {
                    return Spread::Unknown;
                }
                for option in options.chunks_exact(n.max(1)) {
                    let (at, mut code) = (states.len(), 0);
                    for k in 0..n {
                        let covered = (states[s * n + k] + option[k]).min(self.counts[k]);
                        states.push(covered);
                        code += covered as usize * radix[k];
                    }
                    if reached[code] {
                        states.truncate(at);
                        continue;
                    }
                    reached[code] = true;
                    origin.push((s, device));
                    if code == radix[n] - 1 {
                        return Spread::Yes(trace(&states, &origin, n, n_devices));
                    }
                }
            }
            first = last;
        }
        Spread::No
    }

    /// Maximal patterns of one device, row by row; nothing if there are too many.
    fn maximal_patterns(&self, room: f64, link: f64, watch: &mut Watch) -> Option<Vec<i64>> {
        let n = self.n_kinds();
        let (mut patterns, mut now) = (vec![], vec![0; n]);
        loop {
            let fits = self.fits(&now, room, link);
            let mut is_maximal = fits;
            for k in 0..n {
                if is_maximal && now[k] < self.counts[k] {
                    now[k] += 1;
                    is_maximal = !self.fits(&now, room, link);
                    now[k] -= 1;
                }
            }
            if is_maximal {
                patterns.extend_from_slice(&now);
                if patterns.len() > MAX_PATTERNS * n {
                    return None;
                }
            }
            if watch.is_over(10 * n * n) {
                return None;
            }
            if !advance(&mut now, &self.counts, fits) {
                return Some(patterns);
            }
        }
    }

    fn needs(&self, now: &[i64]) -> Needs {
        let kinds = now.iter().zip(&self.work).zip(&self.sent).zip(&self.taken);
        kinds.fold((0.0, 0.0, 0.0), |(work, sent, taken), (((&count, w), s), t)| {
            let count = count as f64;
            (work + count * w, sent + count * s, taken + count * t)
        })
    }

    fn fits(&self, now: &[i64], room: f64, link: f64) -> bool {
        let (work, sent, taken) = self.needs(now);
        work <= room && sent <= link && taken <= link
    }

    /// Words and work of all patterns from `least` to the cut, where the hub is the last kind;
    /// nothing if there are too many.
    ///
    /// A word has the count of each kind shifted by `shift` [K].
    #[must_use]
    pub fn words(
        &self,
        shift: &[u32],
        least: f64,
        cut: f64,
        watch: &mut Watch,
    ) -> Option<(Vec<i64>, Vec<f64>)> {
        let n = self.n_kinds();
        let (mut words, mut works, mut now) = (vec![], vec![], vec![0; n]);
        for _ in 0..MAX_STEPS {
            let (work, sent, taken) = self.needs(&now);
            let is_linked = now[n - 1] == 1 || (sent <= cut && taken <= cut);
            if least <= work && work <= cut && is_linked {
                let counts = now.iter().zip(shift);
                words.push(counts.fold(0_i64, |word, (count, &shift)| {
                    word.wrapping_add(count.wrapping_shl(shift))
                }));
                works.push(work);
                if words.len() > MAX_WORDS {
                    return None;
                }
            }
            if watch.is_over(4 * n) {
                return None;
            }
            if !advance(&mut now, &self.counts, work <= cut) {
                return Some((words, works));
            }
        }
        None
    }
}

/// The units that each device newly covers on the path to the last state, [D, K].
fn trace(states: &[i64], origin: &[(usize, usize)], n: usize, n_devices: usize) -> Vec<i64> {
    let mut chosen = vec![0; n_devices * n];
    let mut s = origin.len() - 1;
    while s > 0 {
        let (before, device) = origin[s];
        for k in 0..n {
            chosen[device * n + k] = states[s * n + k] - states[before * n + k];
        }
        s = before;
    }
    chosen
}

/// Step to the next combination, skipping larger ones than one that does not fit.
fn advance(now: &mut [i64], counts: &[i64], fits: bool) -> bool {
    let (mut k, n) = (0, now.len());
    if !fits {
        while k < n && now[k] == 0 {
            k += 1;
        }
        if k < n {
            now[k] = 0;
            k += 1;
        }
    }
    while k < n && now[k] == counts[k] {
        now[k] = 0;
        k += 1;
    }
    if k < n {
        now[k] += 1;
    }
    k < n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(own: f64) -> Hub {
        Hub { counts: vec![4], work: vec![0.5], sent: vec![0.0], taken: vec![0.0], own }
    }

    #[test]
    fn four_halves_and_a_hub_need_three_devices() {
        let mut watch = Watch::endless();
        assert!(matches!(hub(0.5).spread(1.0, 2, 1000, &mut watch), Spread::No));
        let Spread::Yes(rows) = hub(0.5).spread(1.0, 3, 1000, &mut watch) else {
            panic!("they fit")
        };
        assert_eq!(rows.iter().sum::<i64>(), 4);
        assert!(matches!(hub(0.0).spread(1.0, 3, 0, &mut watch), Spread::Unknown));
    }

    #[test]
    fn larger_combinations_than_one_that_does_not_fit_are_skipped() {
        let mut now = [2, 0];
        assert!(advance(&mut now, &[3, 1], false));
        assert_eq!(now, [0, 1]);
    }
}
