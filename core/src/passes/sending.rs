//! The sending equation: the time of a transfer from one device to another.
//!
//! A stream of `size` bytes in `tuples` tuples takes, from device a to another device b,
//!
//! latency(a, b) + size · seconds per byte(a, b) + `fixed_s`
//! `fixed_s` = tuples · (gap + 2 · overhead) + size · 2 · overhead per byte
//!
//! seconds, and none within a device (LogGP's L + G·k + g + 2·o). In networks with contention, only
//! size · seconds per byte(a, b) + tuples · gap occupies the channel.

/// Seconds of a transfer between two devices.
#[inline(always)]
#[must_use]
pub fn sending_seconds(latency: f64, size: f64, seconds_per_byte: f64, fixed_s: f64) -> f64 {
    latency + size * seconds_per_byte + fixed_s
}

/// Seconds of a stream that do not depend on the link, with a gap, an overhead per tuple and an
/// overhead per byte.
#[inline(always)]
#[must_use]
pub fn fixed_seconds(size: f64, tuples: f64, (gap, overhead, per_byte): (f64, f64, f64)) -> f64 {
    tuples * (gap + 2.0 * overhead) + size * (2.0 * per_byte)
}
