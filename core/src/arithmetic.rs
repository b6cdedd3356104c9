//! Maxima and minima of numbers that are not NaN, as one machine instruction each.

/// The larger number; `a` if they are equal.
#[inline(always)]
#[must_use]
pub fn max(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The smaller number; `a` if they are equal.
#[inline(always)]
#[must_use]
pub fn min(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// Numbers that are compared at once in `largest`.
const LANES: usize = 8;

/// The largest of `floor` and of all `values`, by vector instructions.
#[inline]
#[must_use]
pub fn largest(floor: f64, values: &[f64]) -> f64 {
    if values.len() < LANES {
        return values.iter().fold(floor, |top, &value| max(top, value));
    }
    largest_of(floor, values.iter().copied())
}

/// `largest` of numbers that are computed one after the other.
#[inline(always)]
#[must_use]
pub fn largest_of(floor: f64, values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let mut lanes = [floor; LANES];
    let mut values = values;
    for _ in 0..values.len() / LANES {
        let mut next = [floor; LANES];
        for (value, from) in next.iter_mut().zip(&mut values) {
            *value = from;
        }
        for (lane, value) in lanes.iter_mut().zip(next) {
            *lane = max(*lane, value);
        }
    }
    lanes.into_iter().chain(values).fold(floor, max)
}

/// The least of `ceiling` and of all `values`, by vector instructions.
#[inline]
#[must_use]
pub fn least(ceiling: f64, values: &[f64]) -> f64 {
    if values.len() < LANES {
        return values.iter().fold(ceiling, |least, &value| min(least, value));
    }
    let mut lanes = [ceiling; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = min(*lane, value);
        }
    }
    let all = lanes.iter().chain(rest);
    all.fold(ceiling, |bottom, &value| min(bottom, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_wherever_it_is() {
        for length in 0..40_usize {
            for at in 0..length {
                let mut values = vec![0.5; length];
                values[at] = 2.0;
                assert_eq!(largest(1.0, &values), 2.0);
            }
            assert_eq!(largest(1.0, &vec![0.5; length]), 1.0);
        }
    }

    #[test]
    fn the_least_is_found_wherever_it_is() {
        for length in 0..40_usize {
            for at in 0..length {
                let mut values = vec![2.0; length];
                values[at] = 0.5;
                assert_eq!(least(1.0, &values), 0.5);
            }
            assert_eq!(least(1.0, &vec![2.0; length]), 1.0);
        }
    }
}
