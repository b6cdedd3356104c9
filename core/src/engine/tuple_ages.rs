//! Ages of tuples, as stamps: mean times at which those of a queue were generated and admitted.
//!
//! Merging takes the size-weighted mean, and a partial draw does not change the mean, except in
//! source backlogs, which are exact FIFOs.

use super::plan::Plan;
use super::state::{State, ports};
use super::wiring::{Inlet, Wiring};
use super::{Stopped, filled};
use crate::arithmetic::min;

/// Seconds of generation and of admission.
pub type Pair = [f64; 2];

/// A turn of operator v in which it takes some of its waiting tuples.
#[derive(Clone, Copy)]
pub struct Draw<'a> {
    pub v: usize,
    pub joins: bool,
    pub inlets: &'a [Inlet],
    pub take: f64,
    pub waiting: f64,
    pub slice: usize,
}

/// What follows tuples from queue to queue; by itself, nothing.
pub trait Ages {
    /// Mean stamps of the tuples that an operator draws; also add their latency.
    #[inline(always)]
    fn drawn(&mut self, _draw: Draw, _wiring: &Wiring, _state: &State) -> Pair {
        [0.0; 2]
    }
    /// `added` tuples join the `size` that wait at the receiver of stream `e`.
    #[inline(always)]
    fn enqueue(&mut self, _e: usize, _size: f64, _added: f64, _stamp: Pair) {}
    /// `added` tuples join the `size` in the send buffer of stream `e`.
    #[inline(always)]
    fn buffer(&mut self, _e: usize, _size: f64, _added: f64, _stamp: Pair) {}
    /// Tuples leave the send buffer for the queue of stream `e`.
    #[inline(always)]
    fn move_over(&mut self, _e: usize, _size: f64, _amount: f64) {}
    /// Tuples leave the send buffer for a place in the pipe.
    #[inline(always)]
    fn take_off(&mut self, _e: usize, _place: usize) {}
    /// Tuples leave a place in the pipe for the queue of stream `e`.
    #[inline(always)]
    fn land(&mut self, _e: usize, _place: usize, _size: f64, _amount: f64) {}
    /// `added` tuples join the `size` in a pane.
    #[inline(always)]
    fn collect(&mut self, _pane: usize, _size: f64, _added: f64, _stamp: Pair) {}
    /// The tuples of a pane join the `size` of which window `k` makes its result.
    #[inline(always)]
    fn evaluate(&mut self, _k: usize, _size: f64, _pane: usize, _added: f64) {}
    /// Stamps of the results of a window.
    #[inline(always)]
    fn result(&self, _k: usize) -> Pair {
        [0.0; 2]
    }
}

/// Nobody asks for ages.
pub struct NoAges;

impl Ages for NoAges {}

/// Mean stamps of every quantity of `State`, and the latency of processed tuples.
#[derive(Clone, Debug)]
pub struct Stamps {
    /// [M]
    queued: Vec<Pair>,
    /// [M]
    sending: Vec<Pair>,
    pipe: Vec<Pair>,
    panes: Vec<Pair>,
    /// [K]
    results: Vec<Pair>,
    /// [S]
    backlogs: Vec<Backlog>,
    /// [N] Σ tuples · latency of an operator's input since the last tick
    pub delay: Vec<Pair>,
}

/// The oldest tuples of a backlog.
#[derive(Clone, Copy, Debug, Default)]
struct Backlog {
    /// slice in which they were generated
    head: usize,
    /// tuples of that slice that left the backlog
    served: f64,
}

impl Stamps {
    /// Stamps of an empty cluster.
    pub fn new(wiring: &Wiring, plan: &Plan, state: &State) -> Result<Self, Stopped> {
        let m = plan.streams.len();
        Ok(Self {
            queued: vec![[0.0; 2]; m],
            sending: vec![[0.0; 2]; m],
            pipe: filled([0.0; 2], state.pipe.len())?,
            panes: filled([0.0; 2], state.panes.len())?,
            results: vec![[0.0; 2]; wiring.windows.len()],
            backlogs: vec![Backlog::default(); wiring.sources.len()],
            delay: vec![[0.0; 2]; plan.operators.len()],
        })
    }

    /// Stamps of tuples drawn from all queues in proportion to their lengths.
    fn mixed(&mut self, draw: Draw, now: f64, wiring: &Wiring, state: &State) -> Pair {
        let mut mean = [0.0; 2];
        for inlet in draw.inlets {
            let queue = inlet.queue as usize;
            let part = state.held[queue].queued / draw.waiting;
            if let Some(stamp) = self.queued.get(queue) {
                mean[0] += part * stamp[0];
                mean[1] += part * stamp[1];
            } else {
                let s = queue - self.queued.len();
                let backlog = &mut self.backlogs[s];
                mean[0] += part * backlog.leave(s, part * draw.take, draw.slice, wiring);
                mean[1] += part * now;
            }
        }
        mean
    }

    /// Stamps of sets of a join: a set is as old as the tuples of its oldest port.
    fn oldest(&self, inlets: &[Inlet], now: f64, state: &State) -> Pair {
        let mut oldest = [now; 2];
        for port in ports(inlets) {
            let waiting = state.queued(port);
            let mut mean = [0.0; 2];
            for inlet in port {
                let queue = inlet.queue as usize;
                let part = state.held[queue].queued / waiting;
                let stamp = self.queued.get(queue).copied().unwrap_or([now; 2]);
                mean[0] += part * stamp[0];
                mean[1] += part * stamp[1];
            }
            oldest = [min(oldest[0], mean[0]), min(oldest[1], mean[1])];
        }
        oldest
    }
}

impl Backlog {
    /// Remove the oldest `amount` tuples; return their mean generation time.
    fn leave(&mut self, source: usize, amount: f64, slice: usize, wiring: &Wiring) -> f64 {
        let generated = wiring.settings.generated.row(source);
        let (mut remaining, mut total) = (amount, 0.0);
        while remaining > 0.0 {
            let available = generated[self.head] - self.served;
            if available > remaining || self.head >= slice {
                self.served += remaining;
                return (total + remaining * middle(wiring, self.head)) / amount;
            }
            total += available * middle(wiring, self.head);
            remaining -= available;
            *self = Self { head: self.head + 1, served: 0.0 };
        }
        if amount > 0.0 { total / amount } else { middle(wiring, slice) }
    }
}

impl Ages for Stamps {
    #[inline]
    fn drawn(&mut self, draw: Draw, wiring: &Wiring, state: &State) -> Pair {
        let now = middle(wiring, draw.slice);
        let stamp = if draw.joins {
            self.oldest(draw.inlets, now, state)
        } else {
            self.mixed(draw, now, wiring, state)
        };
        let delay = &mut self.delay[draw.v];
        delay[0] += draw.take * (now - stamp[0]);
        delay[1] += draw.take * (now - stamp[1]);
        stamp
    }

    #[inline]
    fn enqueue(&mut self, e: usize, size: f64, added: f64, stamp: Pair) {
        blend(&mut self.queued[e], size, added, stamp);
    }

    #[inline]
    fn buffer(&mut self, e: usize, size: f64, added: f64, stamp: Pair) {
        blend(&mut self.sending[e], size, added, stamp);
    }

    #[inline]
    fn move_over(&mut self, e: usize, size: f64, amount: f64) {
        blend(&mut self.queued[e], size, amount, self.sending[e]);
    }

    #[inline]
    fn take_off(&mut self, e: usize, place: usize) {
        self.pipe[place] = self.sending[e];
    }

    #[inline]
    fn land(&mut self, e: usize, place: usize, size: f64, amount: f64) {
        blend(&mut self.queued[e], size, amount, self.pipe[place]);
    }

    #[inline]
    fn collect(&mut self, pane: usize, size: f64, added: f64, stamp: Pair) {
        blend(&mut self.panes[pane], size, added, stamp);
    }

    #[inline]
    fn evaluate(&mut self, k: usize, size: f64, pane: usize, added: f64) {
        blend(&mut self.results[k], size, added, self.panes[pane]);
    }

    #[inline]
    fn result(&self, k: usize) -> Pair {
        self.results[k]
    }
}

/// Mean of `size` tuples stamped `mean` after `added` tuples stamped `other` join.
#[inline]
fn blend(mean: &mut Pair, size: f64, added: f64, other: Pair) {
    if added > 0.0 {
        for (mean, other) in mean.iter_mut().zip(other) {
            *mean += (other - *mean) * added / (size + added);
        }
    }
}

/// Time in the middle of a slice, the stamp of everything that happens in it.
#[inline]
fn middle(wiring: &Wiring, slice: usize) -> f64 {
    (slice as f64 + 0.5) * wiring.settings.slice_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_moves_by_the_share_that_joins() {
        let mut mean = [1.0, 2.0];
        blend(&mut mean, 3.0, 1.0, [5.0, 2.0]);
        assert_eq!(mean, [2.0, 2.0]);
        blend(&mut mean, 0.0, 0.0, [9.0, 9.0]);
        assert_eq!(mean, [2.0, 2.0]);
    }
}
