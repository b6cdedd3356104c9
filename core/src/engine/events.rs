//! Events of single tuples: a binary heap by time.

use crate::instance::Id;

/// What happens; of events at one time, earlier kinds come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Source `subject` generates a tuple.
    Generate,
    /// A tuple of stream `subject` arrives at its operator.
    Arrive,
    /// A tuple of stream `subject` leaves its device.
    Send,
    /// A tuple of operator `subject` joins the open pane of its window.
    Collect,
    /// A slot of operator `subject` is free.
    Free,
    /// Window `subject` advances.
    Advance,
}

/// When a tuple was generated, and when its source took it in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp {
    pub generated: f64,
    pub admitted: f64,
}

impl Stamp {
    /// No tuple.
    pub const NONE: Self = Self { generated: 0.0, admitted: 0.0 };
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    pub time: f64,
    pub kind: Kind,
    pub subject: Id,
    pub stamp: Stamp,
}

impl Event {
    #[inline]
    fn precedes(&self, other: &Self) -> bool {
        if self.time != other.time {
            return self.time < other.time;
        }
        self.kind < other.kind
    }
}

/// Events to come, at most a given number.
///
/// Which of two events of the same time and kind comes first follows from the order in which they
/// were added and taken, so it is the same in every run.
#[derive(Clone, Debug)]
pub struct Events {
    heap: Vec<Event>,
    most: usize,
}

impl Events {
    pub fn new(most: usize) -> Self {
        Self { heap: vec![], most }
    }

    /// Whether no event can be added.
    pub fn is_full(&self) -> bool {
        self.heap.len() >= self.most
    }

    /// Add an event, unless there are too many.
    pub fn add(&mut self, event: Event) {
        if self.is_full() {
            return;
        }
        let mut i = self.heap.len();
        self.heap.push(event);
        while i > 0 {
            let parent = (i - 1) / 2;
            if !event.precedes(&self.heap[parent]) {
                break;
            }
            self.heap[i] = self.heap[parent];
            i = parent;
        }
        self.heap[i] = event;
    }

    /// Take the next event.
    pub fn take(&mut self) -> Option<Event> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else { return Some(last) };
        let heap = &mut self.heap[..];
        let mut i = 0;
        loop {
            let mut child = 2 * i + 1;
            if child >= heap.len() {
                break;
            }
            if child + 1 < heap.len() && heap[child + 1].precedes(&heap[child]) {
                child += 1;
            }
            if !heap[child].precedes(&last) {
                break;
            }
            heap[i] = heap[child];
            i = child;
        }
        heap[i] = last;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: f64, kind: Kind) -> Event {
        Event { time, kind, subject: 0, stamp: Stamp::NONE }
    }

    #[test]
    fn events_come_by_time_and_then_by_kind() {
        let mut events = Events::new(100);
        let times = [3.0, 1.0, 2.0, 1.0, 5.0, 4.0, 1.0];
        for (i, time) in times.into_iter().enumerate() {
            events.add(event(time, if i % 2 == 0 { Kind::Send } else { Kind::Arrive }));
        }
        let mut found = vec![];
        while let Some(event) = events.take() {
            found.push((event.time, event.kind));
        }
        assert_eq!(found.len(), times.len());
        assert!(found.is_sorted());
    }

    #[test]
    fn too_many_events_are_not_added() {
        let mut events = Events::new(1);
        events.add(event(2.0, Kind::Send));
        events.add(event(1.0, Kind::Send));
        assert_eq!(events.take(), Some(event(2.0, Kind::Send)));
        assert_eq!(events.take(), None);
    }
}
