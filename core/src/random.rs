//! Generators of random numbers, each a seed's sequence on every machine.

/// Marsaglia's xorshift64.
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// The generator of a seed, whose bits are mixed by splitmix64.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let x = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((x ^ (x >> 31)) | 1)
    }

    /// The generator in a state, which is not 0.
    #[must_use]
    pub fn in_state(state: u64) -> Self {
        Self(state)
    }

    /// The next 64 bits.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        let mut x = self.0;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0 = x;
        x
    }

    /// Random number in [0, 1).
    #[inline(always)]
    pub fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Random integer in 0 … n - 1.
    #[inline(always)]
    pub fn choose(&mut self, n: usize) -> usize {
        (((self.draw() >> 32) * n as u64) >> 32) as usize
    }
}

/// Size of the Mersenne twister's state, and the distance between combined numbers.
const N: usize = 624;
const M: usize = 397;

/// The Mersenne twister MT19937 of Matsumoto and Nishimura (1998), drawn from as numpy does.
pub struct Twister {
    state: [u32; N],
    next: usize,
}

impl Twister {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let (mut state, mut x) = ([0; N], seed);
        for (i, word) in state.iter_mut().enumerate() {
            *word = x;
            x = 1_812_433_253_u32.wrapping_mul(x ^ (x >> 30)).wrapping_add(i as u32 + 1);
        }
        Self { state, next: N }
    }

    /// The next 32 bits.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        if self.next >= N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Random number in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let (high, low) = (self.draw() >> 5, self.draw() >> 6);
        (f64::from(low) + f64::from(high) * 67_108_864.0) / 9_007_199_254_740_992.0
    }

    /// Random integer in 0 … n - 1, of the lowest bits; nothing is drawn if there is one choice.
    #[inline]
    pub fn choose(&mut self, n: u32) -> u32 {
        if n == 1 {
            return 0;
        }
        let mask = u32::MAX >> (n - 1).leading_zeros();
        loop {
            let drawn = self.draw() & mask;
            if drawn < n {
                return drawn;
            }
        }
    }

    fn twist(&mut self) {
        let state = &mut self.state;
        for i in 0..N {
            let y = (state[i] & 0x8000_0000) | (state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            state[i] = state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twister_draws_the_published_numbers() {
        let mut random = Twister::new(5489);
        assert_eq!(random.draw(), 3_499_211_612);
        let mut random = Twister::new(5489);
        let last = (0..10_000).map(|_| random.draw()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn choices_are_below_their_number() {
        let (mut one, mut other) = (Xorshift::new(3), Twister::new(3));
        for n in 1..100 {
            assert!(one.choose(n) < n);
            assert!((other.choose(n as u32) as usize) < n);
        }
        assert!((0..100).all(|_| one.uniform() < 1.0 && other.uniform() < 1.0));
    }
}
