//! The load equation: loads of resources by work and streams, and the index of each resource.
//!
//! The resources of D devices form one flat vector: D devices, D·D ordered links, D outgoing
//! network cards, D incoming ones.

/// Free share of a device below which constant loads count as filling it.
pub const NO_ROOM: f64 = 1e-12;
/// Share by which constant loads may exceed a device, for rounding.
pub const OVERFULL: f64 = 1e-9;

/// Length of the load vector of a cluster of `d` devices.
#[inline]
#[must_use]
pub fn n_resources(d: usize) -> usize {
    d * (d + 3)
}

/// Index of the link from device `a` to device `b`.
#[inline]
#[must_use]
pub fn link_at(d: usize, a: usize, b: usize) -> usize {
    d + a * d + b
}

/// Index of the outgoing network card of device `a`.
#[inline]
#[must_use]
pub fn egress_at(d: usize, a: usize) -> usize {
    d + d * d + a
}

/// Index of the incoming network card of device `b`.
#[inline]
#[must_use]
pub fn ingress_at(d: usize, b: usize) -> usize {
    d + d * d + d + b
}

/// Load of a link by `traffic` bytes/s in `tuples` tuples/s.
#[inline]
#[must_use]
pub fn link_load(traffic: f64, tuples: f64, seconds_per_byte: f64, gap: f64) -> f64 {
    traffic * seconds_per_byte + tuples * gap
}

/// Load of a network card by `traffic` bytes/s.
#[inline]
#[must_use]
pub fn nic_load(traffic: f64, seconds_per_byte: f64) -> f64 {
    traffic * seconds_per_byte
}

/// Load of a device by sending or receiving `tuples` tuples/s and `traffic` bytes/s.
#[inline]
#[must_use]
pub fn handling_load(
    tuples: f64,
    traffic: f64,
    overhead: f64,
    overhead_per_byte: f64,
    free_cores: f64,
) -> f64 {
    (tuples * overhead + traffic * overhead_per_byte) / free_cores
}

/// Load as a fraction of the capacity that the constant load leaves free on a device or core.
///
/// The flow that fits is 1 / pressure of the full rate: load · x + constant ≤ 1. The pressure is
/// infinite if constant loads fill the device and there is a load, or if they exceed the device.
#[inline]
#[must_use]
pub fn pressure(load: f64, constant: f64) -> f64 {
    if constant <= 0.0 {
        return load;
    }
    let room = 1.0 - constant;
    if room < NO_ROOM {
        return if load > NO_ROOM || room < -OVERFULL { f64::INFINITY } else { 0.0 };
    }
    load / room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_has_room_for_nothing() {
        assert_eq!(pressure(0.5, 1.0), f64::INFINITY);
        assert_eq!(pressure(0.0, 1.0), 0.0);
        assert_eq!(pressure(0.0, 1.1), f64::INFINITY);
        assert_eq!(pressure(0.25, 0.5), 0.5);
    }

    #[test]
    fn every_resource_has_a_place_of_its_own() {
        let d = 3;
        let mut found: Vec<usize> = (0..d).collect();
        found.extend((0..d * d).map(|pair| link_at(d, pair / d, pair % d)));
        found.extend((0..d).map(|a| egress_at(d, a)));
        found.extend((0..d).map(|b| ingress_at(d, b)));
        assert_eq!(found, (0..n_resources(d)).collect::<Vec<_>>());
    }
}
