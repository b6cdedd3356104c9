//! Events in the order (time, number): a heap for later events, a queue for the current instant.
//!
//! Events are numbered in the order of their creation. An event that is due at once has a higher
//! number than all events in the heap for this instant, so those of the heap come first, and the
//! queue keeps the order of the others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An event is kind | index.
const INDEX_BITS: u32 = 28;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// Largest number of operators or streams of a pass.
pub const MAX_INDICES: usize = 1 << INDEX_BITS;

/// An input arrived; its operator counts it; and it was the last one.
pub const ARRIVED: u32 = 0;
pub const COUNTED: u32 = 1 << INDEX_BITS;
pub const READY: u32 = 2 << INDEX_BITS;
/// An operator gets a core; ends; and sends its outputs.
pub const GRANTED: u32 = 3 << INDEX_BITS;
pub const FINISHED: u32 = 4 << INDEX_BITS;
pub const SENDS: u32 = 5 << INDEX_BITS;
/// A core ends its pause after an operator.
pub const RESTED: u32 = 6 << INDEX_BITS;
/// A transfer, named by its first stream, leaves its ports.
pub const CLEARED: u32 = 7 << INDEX_BITS;

/// Kind of an event.
#[inline(always)]
pub fn kind_of(event: u32) -> u32 {
    event & !INDEX_MASK
}

/// Operator (or stream) of an event.
#[inline(always)]
pub fn index_of(event: u32) -> usize {
    (event & INDEX_MASK) as usize
}

/// Future events.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// time, number and event in one number that rises with the first two, as times are positive
    later: BinaryHeap<Reverse<u128>>,
    now: VecDeque<u32>,
    latest: u32,
}

impl Events {
    /// Forget all events; the next number follows `latest`.
    pub fn clear(&mut self, latest: u32) {
        self.later.clear();
        self.now.clear();
        self.latest = latest;
    }

    /// The next number of an event.
    #[inline(always)]
    pub fn number(&mut self) -> u32 {
        self.latest += 1;
        self.latest
    }

    /// Number of events of this instant, those of the heap left out.
    #[inline(always)]
    pub fn present(&self) -> usize {
        self.now.len()
    }

    /// Append an event of this instant.
    #[inline(always)]
    pub fn push_now(&mut self, event: u32) {
        self.now.push_back(event);
    }

    /// Remove the oldest event of this instant.
    #[inline(always)]
    pub fn pop_now(&mut self) -> Option<u32> {
        self.now.pop_front()
    }

    /// Kind of the oldest event of this instant.
    #[inline(always)]
    pub fn kind_now(&self) -> Option<u32> {
        self.now.front().map(|&event| kind_of(event))
    }

    /// Whether all events of this instant are of one kind.
    #[inline(always)]
    pub fn are_all(&self, kind: u32) -> bool {
        self.now.iter().all(|&event| kind_of(event) == kind)
    }

    /// Insert an event into the heap.
    #[inline(always)]
    pub fn push_later(&mut self, time: f64, number: u32, event: u32) {
        let entry = u128::from(number) << 32 | u128::from(event);
        self.later.push(Reverse(u128::from(time.to_bits()) << 64 | entry));
    }

    /// Time of the first event in the heap, ∞ if there is none.
    #[inline(always)]
    pub fn next_time(&self) -> f64 {
        let first = self.later.peek();
        first.map_or(f64::INFINITY, |Reverse(entry)| f64::from_bits((entry >> 64) as u64))
    }

    /// Remove the first event of the heap.
    #[inline(always)]
    pub fn pop_later(&mut self) -> Option<u32> {
        self.later.pop().map(|Reverse(entry)| entry as u32)
    }

    /// Schedule an event now or later.
    #[inline(always)]
    pub fn push(&mut self, now: f64, time: f64, event: u32) {
        if time > now {
            let number = self.number();
            self.push_later(time, number, event);
        } else {
            self.push_now(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_number() {
        let mut events = Events::default();
        events.push(0.0, 2.0, FINISHED | 1);
        events.push(0.0, 1.0, FINISHED | 2);
        events.push(0.0, 2.0, FINISHED | 3);
        assert_eq!(events.next_time(), 1.0);
        let order: Vec<_> = std::iter::from_fn(|| events.pop_later()).map(index_of).collect();
        assert_eq!(order, [2, 1, 3]);
        assert_eq!(events.next_time(), f64::INFINITY);
    }
}
