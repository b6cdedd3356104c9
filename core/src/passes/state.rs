//! State of a pass: rules, progress of operators and streams, and the cores of devices.

use super::compiled::{Device, Link, Operator, Pass, Stream};
use super::events::{ARRIVED, Events};
use super::network::Transfers;
use crate::equation::link_load;
use crate::instance::{Id, NONE};

/// Which ready operator of its device a free core runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// in the order of becoming ready
    Fifo,
    /// the same, by the producers of the last inputs among those of one instant
    Rows,
    /// by rank, highest first
    Ranked,
    /// as `Ranked`, and a device waits for the next one even if another one is ready
    Line,
}

/// Transfers that may be in progress at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// all of them
    Free,
    /// one out of every device
    Sender,
    /// one on every ordered pair of devices
    Link,
    /// one out of every device and one into every device
    Port,
    /// all of them, which share links and network cards fairly
    Shared,
}

/// Rules of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub queue: Queue,
    pub network: Network,
    /// seconds for which a core stays occupied after an operator
    pub pause: f64,
    /// seconds for which a channel stays occupied after a transfer
    pub spacing: f64,
}

/// Progress of an operator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// arrival of its last input
    pub ready: f64,
    pub start: f64,
    pub finish: f64,
    /// seconds it runs
    pub work: f64,
    /// rank in the heap of its device; lower goes first
    pub(super) key: f64,
    /// decides between equal ranks
    pub(super) tie: u64,
    /// number of the event that makes it ready
    pub(super) number: u32,
    /// one more than the highest index among the producers of its last inputs, 0 without inputs
    pub(super) producer: Id,
    /// number of missing inputs
    pub(super) waiting: Id,
    pub device: Id,
    /// next in the queue or line, or next sibling in the heap
    pub(super) next: Id,
    /// first child in the heap
    pub(super) child: Id,
    /// whether its turn in a line may come
    pub(super) is_ready: bool,
}

impl Progress {
    /// Producer of its last input, of several the one with the highest index.
    #[must_use]
    pub fn producer(&self) -> Option<Id> {
        self.producer.checked_sub(1)
    }
}

/// Times of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Journey {
    pub departure: f64,
    pub arrival: f64,
}

/// State of a device.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// number of free cores
    pub(super) free: Id,
    /// first in its queue or line, or the root of its heap
    pub(super) head: Id,
    /// last in its queue
    pub(super) tail: Id,
    /// whether the device is among the touched ones
    pub(super) is_touched: bool,
}

impl Server {
    pub(super) fn idle(device: &Device) -> Self {
        Self { free: device.cores, head: NONE, tail: NONE, is_touched: false }
    }
}

/// What runs of one pass use, again and again.
#[derive(Clone, Debug)]
pub struct State {
    /// [N]
    pub operators: Vec<Progress>,
    /// [M]
    pub streams: Vec<Journey>,
    /// [D]
    pub devices: Vec<Server>,
    /// devices that may have an operator to start at the end of this instant
    pub touched: Vec<Id>,
    pub events: Events,
    pub transfers: Transfers,
}

impl State {
    /// Idle devices.
    pub fn new(one_pass: &Pass, network: Network) -> Self {
        Self {
            operators: vec![Progress::default(); one_pass.operators.len()],
            streams: vec![Journey::default(); one_pass.streams.len()],
            devices: one_pass.devices.iter().map(Server::idle).collect(),
            touched: vec![],
            events: Events::default(),
            transfers: Transfers::new(one_pass, network),
        }
    }
}

/// A run in progress. Slices instead of what holds them, so that their addresses stay in registers.
pub(super) struct Run<'a> {
    pub rules: Rules,
    pub gap: f64,
    /// overhead at both ends per tuple, and per byte
    pub at_ends: (f64, f64),
    /// [M] factors of the times of transfers
    pub send_factor: &'a [f64],
    pub senders: &'a [Operator],
    pub streams: &'a [Stream],
    pub cards: &'a [Device],
    pub links: &'a [Link],
    pub operators: &'a mut [Progress],
    pub journeys: &'a mut [Journey],
    pub devices: &'a mut [Server],
    pub touched: &'a mut Vec<Id>,
    pub events: &'a mut Events,
    pub net: &'a mut Transfers,
    pub now: f64,
    /// whether devices that were touched are granting cores, and how many have done so
    pub is_granting: bool,
    pub granted: usize,
    /// number of grantings so far
    pub wave: f64,
    /// consecutive arrivals that are alone at their instant
    pub alone: usize,
}

impl Run<'_> {
    /// Devices that send and receive stream `e`.
    #[inline(always)]
    pub fn ends(&self, e: usize) -> (usize, usize) {
        let stream = &self.streams[e];
        let of = |v: Id| self.operators[v as usize].device as usize;
        (of(stream.source), of(stream.target))
    }

    /// The way between two devices.
    #[inline(always)]
    pub fn link(&self, a: usize, b: usize) -> &Link {
        &self.links[a * self.cards.len() + b]
    }

    /// Seconds of stream `e` from `a` to `b` on the channel, and apart from it: the latency and
    /// the overhead at both ends.
    #[inline(always)]
    pub fn transfer_seconds(&self, e: usize, a: usize, b: usize) -> (f64, f64) {
        let (stream, link, factor) = (&self.streams[e], self.link(a, b), self.send_factor[e]);
        let held = link_load(stream.size, stream.tuples, link.seconds_per_byte, self.gap);
        let at_ends = stream.tuples * self.at_ends.0;
        let apart = link.latency + at_ends + stream.size * self.at_ends.1;
        (held * factor, apart * factor)
    }

    /// Schedule the arrival of stream `e`; as the last input, it makes its operator ready.
    #[inline(always)]
    pub fn arrive(&mut self, e: usize, time: f64) {
        let Stream { source, target: v, .. } = self.streams[e];
        self.journeys[e].arrival = time;
        let ticket = self.events.number();
        let target = &mut self.operators[v as usize];
        if time >= target.ready {
            let others = if time > target.ready { 0 } else { target.producer };
            target.producer = others.max(source + 1);
            target.ready = time;
            target.number = ticket;
        }
        target.waiting -= 1;
        if target.waiting == 0 {
            if target.ready > self.now {
                self.events.push_later(target.ready, target.number, ARRIVED | v);
            } else {
                self.events.push_now(ARRIVED | v);
            }
        }
    }
}
