//! Data of one pass: the work of operators and the bytes of streams, with devices and links.

use std::ops::Range;

use super::events::MAX_INDICES;
use crate::check::{Wrong, indices, length, not_negative, permutation, shape};
use crate::instance::{Id, NONE};
use crate::table::Table;

/// Numbers of cores are below it.
const MAX_CORES: usize = 1 << 31;

/// An operator, and the streams that it sends; a record of `streamsim.passes.compiled.OPERATOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// higher goes first
    pub priority: f64,
    /// most streams on a path from an operator without inputs
    pub level: i32,
    /// number of streams that it receives
    pub inputs: Id,
    /// first stream out of it
    pub out_start: Id,
    /// index after the last
    pub out_end: Id,
}

/// A stream of one pass; a record of `streamsim.passes.compiled.STREAM`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// bytes
    pub size: f64,
    pub tuples: f64,
    /// operator that sends
    pub source: Id,
    /// operator that receives
    pub target: Id,
    /// first stream that carries the same output of its operator
    pub first: Id,
    /// next stream that carries this output, `NONE` after the last
    pub more: Id,
}

/// A device and its network card; a record of `streamsim.passes.compiled.DEVICE`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// seconds per byte sent, 0 if the card has no limit
    pub egress: f64,
    /// seconds per byte received, 0 if the card has no limit
    pub ingress: f64,
    /// column of `Pass::work`
    pub kind: Id,
    pub cores: Id,
}

/// The way from one device to another; a record of `streamsim.passes.compiled.LINK`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// seconds
    pub latency: f64,
    /// seconds per byte of the link alone
    pub link: f64,
    /// seconds per byte of the slowest of link and network cards
    pub seconds_per_byte: f64,
}

/// One pass: N operators, M streams, D devices, C types of devices.
#[derive(Clone, Debug)]
pub struct Pass {
    /// [N]
    pub operators: Vec<Operator>,
    /// [M] by source, in the caller's order of streams among those of one source
    pub streams: Vec<Stream>,
    /// [D]
    pub devices: Vec<Device>,
    /// [D, D]
    pub links: Table<Link>,
    /// [N, C] core seconds on a device of each type
    pub work: Table,
    /// [N] operators in topological order
    pub order: Vec<Id>,
    /// link seconds per tuple
    pub gap: f64,
    /// seconds per tuple, at each end
    pub overhead: f64,
    /// seconds per byte, at each end
    pub overhead_per_byte: f64,
}

impl Pass {
    /// Seconds of operator `v` on device `d`.
    #[inline]
    #[must_use]
    pub fn work_on(&self, v: usize, d: usize) -> f64 {
        self.work[(v, self.devices[d].kind as usize)]
    }

    /// Streams out of an operator.
    #[inline]
    #[must_use]
    pub fn outputs(&self, v: usize) -> Range<usize> {
        self.operators[v].out_start as usize..self.operators[v].out_end as usize
    }

    /// Check lengths, indices and numbers.
    pub fn check(&self) -> Result<(), Wrong> {
        let (n, m, d) = (self.operators.len(), self.streams.len(), self.devices.len());
        if n.max(m) > MAX_INDICES {
            return Err(format!("{n} operators and {m} streams are too many").into());
        }
        length("order", &self.order, n)?;
        permutation("order", &self.order)?;
        shape("work", &self.work, n, self.work.columns())?;
        not_negative("work", &self.work)?;
        shape("links", &self.links, d, d)?;
        for link in self.links.cells() {
            not_negative("links", [link.latency, link.link, link.seconds_per_byte])?;
        }
        for device in &self.devices {
            not_negative("devices", [device.egress, device.ingress])?;
            indices("type", &[device.kind], self.work.columns())?;
            indices("cores", &[device.cores], MAX_CORES)?;
        }
        not_negative("overhead", [self.gap, self.overhead, self.overhead_per_byte])?;
        self.check_streams()
    }

    /// Every stream is among those of its source, and counted by its target; and every output
    /// consists of rising streams of one source.
    fn check_streams(&self) -> Result<(), Wrong> {
        let (n, m) = (self.operators.len(), self.streams.len());
        let mut missing: Vec<Id> = self.operators.iter().map(|operator| operator.inputs).collect();
        let mut count = 0;
        for v in 0..n {
            let Some(streams) = self.streams.get(self.outputs(v)) else {
                return Err(format!("operator {v} has no such streams").into());
            };
            count += streams.len();
            for stream in streams {
                let is_own = stream.source as usize == v;
                match missing.get_mut(stream.target as usize) {
                    Some(inputs) if is_own && *inputs > 0 => *inputs -= 1,
                    _ => return Err(format!("the streams of operator {v} are not its own").into()),
                }
                not_negative("streams", [stream.size, stream.tuples])?;
            }
        }
        if count != m || missing.iter().any(|&inputs| inputs > 0) {
            return Err("streams are missing".into());
        }
        let mut chained = 0;
        for first in (0..m).filter(|&e| self.streams[e].first as usize == e) {
            let mut e = first;
            loop {
                let Stream { source, more, .. } = self.streams[e];
                chained += 1;
                if more == NONE {
                    break;
                }
                let next = self.streams.get(more as usize);
                let fits = |next: &Stream| next.first as usize == first && next.source == source;
                if more as usize <= e || !next.is_some_and(fits) {
                    return Err(format!("stream {e}: {more} does not carry the same output").into());
                }
                e = more as usize;
            }
        }
        if chained == m { Ok(()) } else { Err("outputs: a stream has no first one".into()) }
    }
}
