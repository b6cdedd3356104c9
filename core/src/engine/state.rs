//! State: where tuples are between two slices, turns of operators, totals so far; sets of joins.
//!
//! A join takes sets of one tuple from every port, as many from each.

use super::plan::{Operator, Plan, Stream};
use super::tuple_ages::{Ages, Pair};
use super::wiring::{Inlet, Wiring};
use super::{Stopped, filled};
use crate::arithmetic::min;
use crate::instance::{Id, Instance};

/// How the last turn of an operator in a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No tuple waits; until one arrives.
    Done,
    /// Out of CPU; or waked up since.
    Capped,
    /// A successor or the operator's own cores are full; until space becomes free.
    Blocked,
}

/// Tuples of a stream, or of the backlog of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// waiting at the receiver
    pub queued: f64,
    /// waiting for the link
    pub sending: f64,
    /// in flight
    pub flying: f64,
}

impl Held {
    /// Tuples in transit between two devices.
    #[inline]
    pub fn transit(self) -> f64 {
        self.sending + self.flying
    }
}

/// Tuples in queues, send buffers, on the wire and in windows.
#[derive(Clone, Debug)]
pub struct State {
    /// [M + S] streams, then backlogs
    pub held: Vec<Held>,
    /// in flight by stream, then by tick of arrival modulo the stream's delay
    pub pipe: Vec<f64>,
    /// [N] tuples taken in during this slice
    pub served: Vec<f64>,
    /// [N]
    pub turn: Vec<Outcome>,
    /// tuples taken in per advance of a window, a ring for each window
    pub panes: Vec<f64>,
    /// [K] results of the window that are not yet released
    pub results: Vec<f64>,
    /// [K] number of advances of the window
    pub advanced: Vec<f64>,
}

impl State {
    /// A cluster without tuples.
    pub fn new(wiring: &Wiring, plan: &Plan) -> Result<Self, Stopped> {
        let (n, k) = (plan.operators.len(), wiring.windows.len());
        Ok(Self {
            held: vec![Held::default(); wiring.inlets.len()],
            pipe: filled(0.0, plan.pipe)?,
            served: vec![0.0; n],
            turn: vec![Outcome::Done; n],
            panes: filled(0.0, wiring.n_panes())?,
            results: vec![0.0; k],
            advanced: vec![0.0; k],
        })
    }

    /// Tuples in all queues and the backlog of an operator; complete sets for a join.
    #[inline(always)]
    pub fn waiting(&self, joins: bool, inlets: &[Inlet]) -> f64 {
        if joins {
            let ports = ports(inlets).map(|port| self.queued(port));
            return ports.reduce(min).unwrap_or(0.0);
        }
        self.queued(inlets)
    }

    /// Tuples in some queues.
    #[inline(always)]
    pub fn queued(&self, inlets: &[Inlet]) -> f64 {
        let queues = inlets.iter().map(|inlet| self.held[inlet.queue as usize].queued);
        queues.reduce(|sum, queued| sum + queued).unwrap_or(0.0)
    }

    /// Number of input tuples, up to `amount`, whose results fit on every output stream.
    #[inline(always)]
    pub fn fitting(&self, mut amount: f64, operator: &Operator, plan: &Plan) -> f64 {
        let outputs = operator.outputs();
        for (stream, held) in plan.streams[outputs.clone()].iter().zip(&self.held[outputs]) {
            let mut free = stream.room - held.queued - held.sending - held.flying;
            if free < stream.least_room {
                free = 0.0;
            }
            if stream.selectivity * amount > free {
                amount = free / stream.selectivity;
            }
        }
        amount
    }

    /// Remove `take` tuples from the queues in proportion to their lengths; wake the senders.
    ///
    /// A join removes `take` tuples from every port.
    #[inline(always)]
    pub fn draw(&mut self, take: f64, waiting: f64, joins: bool, inlets: &[Inlet]) {
        if joins {
            self.draw_sets(take, inlets);
        } else if let [inlet] = inlets {
            self.held[inlet.queue as usize].queued -= take;
            self.wake(inlet.sender, Outcome::Blocked);
        } else {
            let share = if take == waiting { 0.0 } else { (waiting - take) / waiting };
            self.scale(share, inlets);
        }
    }

    fn draw_sets(&mut self, take: f64, inlets: &[Inlet]) {
        for port in ports(inlets) {
            let waiting = self.queued(port);
            let share = if take >= waiting { 0.0 } else { (waiting - take) / waiting };
            self.scale(share, port);
        }
    }

    #[inline(always)]
    fn scale(&mut self, share: f64, inlets: &[Inlet]) {
        for inlet in inlets {
            self.held[inlet.queue as usize].queued *= share;
            self.wake(inlet.sender, Outcome::Blocked);
        }
    }

    /// Put selectivity × amount tuples on every stream out of an operator; wake the receivers.
    #[inline(always)]
    pub fn emit<A: Ages>(
        &mut self,
        amount: f64,
        stamp: Pair,
        operator: &Operator,
        plan: &Plan,
        ages: &mut A,
    ) {
        let outputs = operator.outputs();
        let streams = plan.streams[outputs.clone()].iter().zip(&mut self.held[outputs.clone()]);
        for (e, (stream, held)) in outputs.zip(streams) {
            let added = stream.selectivity * amount;
            if stream.remote {
                ages.buffer(e, held.sending, added, stamp);
                held.sending += added;
            } else {
                ages.enqueue(e, held.queued, added, stamp);
                held.queued += added;
                let turn = &mut self.turn[stream.target as usize];
                if *turn == Outcome::Done {
                    *turn = Outcome::Capped;
                }
            }
        }
    }

    /// Give another turn to an operator whose last turn had this outcome.
    #[inline(always)]
    fn wake(&mut self, v: Id, outcome: Outcome) {
        let turn = &mut self.turn[v as usize];
        if *turn == outcome {
            *turn = Outcome::Capped;
        }
    }

    /// Write the tuples in every stream, queued or in transit, and in every backlog.
    pub fn write_held(&self, amounts: &mut [f64]) {
        for (amount, held) in amounts.iter_mut().zip(&self.held) {
            *amount = held.queued + held.transit();
        }
    }
}

/// The inlets of an operator, port by port.
#[inline(always)]
pub fn ports(inlets: &[Inlet]) -> impl Iterator<Item = &[Inlet]> {
    inlets.chunk_by(|a, b| a.port == b.port)
}

/// Mean tuples, and bytes, that come over links for each tuple (or set) that is taken in.
pub fn received(
    waiting: f64,
    joins: bool,
    inlets: &[Inlet],
    streams: &[Stream],
    state: &State,
) -> (f64, f64) {
    let (mut tuples, mut bytes) = (0.0, 0.0);
    let mut add = |inlet: &Inlet, amount: f64| {
        if let Some(stream) = streams.get(inlet.queue as usize) {
            tuples += if stream.remote { amount } else { 0.0 };
            bytes += stream.remote_payload * amount;
        }
    };
    if !joins {
        for inlet in inlets {
            add(inlet, state.held[inlet.queue as usize].queued);
        }
        return (tuples / waiting, bytes / waiting);
    }
    for port in ports(inlets) {
        let waiting = state.queued(port);
        if waiting > 0.0 {
            for inlet in port {
                add(inlet, state.held[inlet.queue as usize].queued / waiting);
            }
        }
    }
    (tuples, bytes)
}

/// Sums since the start of the measured window (or of the tick, if ticks are logged).
#[derive(Clone, Debug)]
pub struct Totals {
    /// [N] tuples taken in by an operator
    pub taken: Vec<f64>,
    /// [K] tuples released by a window
    pub emitted: Vec<f64>,
    /// [M] tuples moved over a link
    pub moved: Vec<f64>,
    /// [D] core seconds used, in the order of `Plan::devices`
    pub busy: Vec<f64>,
}

impl Totals {
    /// Totals of 0.
    pub fn new(instance: &Instance) -> Self {
        Self {
            taken: vec![0.0; instance.n_operators()],
            emitted: vec![0.0; instance.windows.rows()],
            moved: vec![0.0; instance.n_streams()],
            busy: vec![0.0; instance.n_devices()],
        }
    }

    /// Reset all totals to 0.
    pub fn clear(&mut self) {
        for total in [&mut self.taken, &mut self.emitted, &mut self.moved, &mut self.busy] {
            total.fill(0.0);
        }
    }
}
