//! The sending equation: the time of a transfer from one device to another.
//!
//! A stream of `size` bytes in `tuples` tuples takes, from device a to another device b,
//!
//! latency(a, b) + size · seconds per byte(a, b) + `fixed_s`
//! `fixed_s` = tuples · (gap + 2 · overhead) + size · 2 · overhead per byte
//!
//! seconds, and none within a device (LogGP's L + G·k + g + 2·o). In networks with contention, only
//! size · seconds per byte(a, b) + tuples · gap occupies the channel.

use super::compiled::{Pass, Stream};

/// Seconds of a transfer between two devices.
#[inline(always)]
#[must_use]
pub fn sending_seconds(latency: f64, size: f64, seconds_per_byte: f64, fixed_s: f64) -> f64 {
    latency + size * seconds_per_byte + fixed_s
}

impl Pass {
    /// Seconds of a stream that do not depend on the link.
    #[inline(always)]
    #[must_use]
    pub fn fixed_seconds(&self, stream: &Stream) -> f64 {
        let per_tuple = self.gap + 2.0 * self.overhead;
        stream.tuples * per_tuple + stream.size * (2.0 * self.overhead_per_byte)
    }
}
