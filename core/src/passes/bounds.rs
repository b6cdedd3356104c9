//! Lower bounds of the makespan under any placement, queue and network.
//!
//! `path` is the longest path of earliest finishes F(v, d) of operator v on device d,
//!
//! F(v, d) = w(v, d) + max over inputs (u, v) of min over d' of F(u, d') + time from d' to d,
//!
//! where very large problems use the time from d' to the nearest other device for all d.
//!
//! `work` follows from T · Σ `n_d` `g_d` ≥ Σ over v of min over d of w(v, d) `g_d`, which holds for
//! any speeds `g_d` > 0. It is computed over all devices and, for every set of devices to which
//! some operators are confined, over those operators alone.

use super::compiled::{Link, Pass};
use super::sending::{fixed_seconds, sending_seconds};
use crate::arithmetic::{max, min};
use crate::table::Table;

/// Largest number of streams times pairs of devices for an examination of every link (about 0.1 s).
const MAX_CELLS: usize = 100_000_000;

/// Lower bounds of the makespan without noise, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// longest path, each operator where it finishes earliest
    pub path: f64,
    /// all work, or that of one class of hardware, over the total speed for it
    pub work: f64,
}

/// Lower bounds of operators that may run on some devices, `may` [N, D].
///
/// `total` [C] is the work of all operators on a device of each type, the inverse of its speed.
#[must_use]
pub fn bounds(one_pass: &Pass, may: &Table<bool>, total: &[f64]) -> Bounds {
    let d = one_pass.devices.len();
    let cells = one_pass.streams.len().saturating_mul(d).saturating_mul(d);
    Bounds {
        path: longest_path(one_pass, may, cells <= MAX_CELLS),
        work: most_work(one_pass, may, total),
    }
}

fn longest_path(one_pass: &Pass, may: &Table<bool>, every_link: bool) -> f64 {
    let d = one_pass.devices.len();
    let at_ends = (one_pass.gap, one_pass.overhead, one_pass.overhead_per_byte);
    let elsewhere = if every_link { vec![] } else { nearest(one_pass) };
    let cells =
        |of: fn(&Link) -> f64| Table::new(one_pass.links.cells().iter().map(of).collect(), d, d);
    let (latency, wire) = (cells(|link| link.latency), cells(|link| link.seconds_per_byte));
    let mut begin = Table::filled(0.0, may.rows(), d);
    let (mut longest, mut soonest) = (0.0, vec![0.0; d]);
    for &v in &one_pass.order {
        let v = v as usize;
        longest = max(longest, run(one_pass, may, &mut begin, v));
        for stream in &one_pass.streams[one_pass.outputs(v)] {
            let fixed_s = fixed_seconds(stream.size, stream.tuples, at_ends);
            let ends = begin.row(v);
            if every_link {
                soonest.copy_from_slice(ends);
                for (a, &end) in ends.iter().enumerate().filter(|&(_, &end)| end != f64::INFINITY) {
                    let wires = latency.row(a).iter().zip(wire.row(a));
                    for (soonest, (&latency, &wire)) in soonest.iter_mut().zip(wires) {
                        let sending = sending_seconds(latency, stream.size, wire, fixed_s);
                        *soonest = min(*soonest, end + sending);
                    }
                }
            } else {
                let arrivals = ends.iter().zip(&elsewhere).map(|(end, &(latency, wire))| {
                    end + sending_seconds(latency, stream.size, wire, fixed_s)
                });
                let away = arrivals.fold(f64::INFINITY, min);
                for (soonest, &end) in soonest.iter_mut().zip(ends) {
                    *soonest = min(end, away);
                }
            }
            for (begin, &soonest) in begin.row_mut(stream.target as usize).iter_mut().zip(&soonest)
            {
                *begin = max(*begin, soonest);
            }
        }
    }
    longest
}

/// Least latency and seconds per byte from each device to another one; ∞ and 0 if there is none.
fn nearest(one_pass: &Pass) -> Vec<(f64, f64)> {
    let d = one_pass.devices.len();
    let least = |a: usize, of: fn(&Link) -> f64| {
        let row = one_pass.links.row(a).iter().enumerate().filter(|&(b, _)| a != b);
        row.fold(f64::INFINITY, |least, (_, link)| min(least, of(link)))
    };
    let each = (0..d).map(|a| {
        let wire = least(a, |link| link.seconds_per_byte);
        (least(a, |link| link.latency), if wire.is_infinite() { 0.0 } else { wire })
    });
    each.collect()
}

/// Replace the begin of an operator on each device by its end; return the earliest end.
fn run(one_pass: &Pass, may: &Table<bool>, begin: &mut Table, v: usize) -> f64 {
    let mut soonest = f64::INFINITY;
    for (a, (begin, &may)) in begin.row_mut(v).iter_mut().zip(may.row(v)).enumerate() {
        *begin += if may { one_pass.work_on(v, a) } else { f64::INFINITY };
        soonest = min(soonest, *begin);
    }
    soonest
}

/// Largest ratio of effort to power, over all devices and each set with confined operators.
fn most_work(one_pass: &Pass, may: &Table<bool>, total: &[f64]) -> f64 {
    let speed_of = |kind: usize| if total[kind] > 0.0 { 1.0 / total[kind] } else { 1.0 };
    let speed: Vec<f64> =
        one_pass.devices.iter().map(|device| speed_of(device.kind as usize)).collect();
    let pairs = one_pass.devices.iter().zip(&speed);
    let power: Vec<f64> = pairs.map(|(device, speed)| f64::from(device.cores) * speed).collect();
    let (mut examples, mut effort) = (Vec::<usize>::new(), Vec::new()); // operators of one class
    for v in 0..may.rows() {
        let open = may.row(v).iter().zip(&speed).enumerate().filter(|(_, (may, _))| **may);
        let efforts = open.map(|(a, (_, speed))| one_pass.work_on(v, a) * speed);
        let least = efforts.fold(f64::INFINITY, min);
        match examples.iter().position(|&u| may.row(u) == may.row(v)) {
            Some(k) => effort[k] += least,
            None => {
                examples.push(v);
                effort.push(0.0 + least);
            }
        }
    }
    let sum = |values: &[f64]| values.iter().fold(0.0, |sum, value| sum + value);
    let mut longest = sum(&effort) / sum(&power);
    for &example in &examples {
        let (mut confined, mut able) = (0.0, 0.0);
        for (power, &may) in power.iter().zip(may.row(example)) {
            able += if may { *power } else { 0.0 };
        }
        for (effort, &u) in effort.iter().zip(&examples) {
            confined += if is_within(may.row(u), may.row(example)) { *effort } else { 0.0 };
        }
        longest = max(longest, confined / able);
    }
    longest
}

/// Whether all devices of one row are devices of the other.
fn is_within(row: &[bool], other: &[bool]) -> bool {
    row.iter().zip(other).all(|(&one, &other)| other || !one)
}
