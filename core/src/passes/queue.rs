//! Queues for cores: first in, first out; heaps by rank; and lines, which devices hold.

use super::state::{Progress, Queue, Run};
use crate::instance::{Id, NONE};

impl Run<'_> {
    /// Give a ready operator a core and return it, or put it into its device's queue.
    #[inline(always)]
    pub fn offer(&mut self, v: usize) -> Option<usize> {
        let d = self.operators[v].device as usize;
        if self.rules.queue != Queue::Fifo {
            if self.rules.queue == Queue::Line {
                self.operators[v].is_ready = true;
            } else {
                self.enter(v, d);
            }
            self.touch(d);
            return None;
        }
        let device = &mut self.devices[d];
        if device.free > 0 {
            device.free -= 1;
            return Some(v);
        }
        self.operators[v].next = NONE;
        if device.head == NONE {
            device.head = v as Id;
        } else {
            self.operators[device.tail as usize].next = v as Id;
        }
        device.tail = v as Id;
        None
    }

    /// Free a core of device `d`; return the operator that takes it over at once.
    #[inline(always)]
    pub fn release(&mut self, d: usize) -> Option<usize> {
        let device = &mut self.devices[d];
        if self.rules.queue == Queue::Fifo && device.head != NONE {
            let v = device.head as usize;
            device.head = self.operators[v].next;
            return Some(v);
        }
        device.free += 1;
        if self.rules.queue != Queue::Fifo {
            self.touch(d);
        }
        None
    }

    /// Mark device `d` as possibly having an operator to start at the end of this instant.
    #[inline(always)]
    fn touch(&mut self, d: usize) {
        let device = &mut self.devices[d];
        if !device.is_touched {
            device.is_touched = true;
            self.touched.push(d as Id);
        }
    }

    /// Give a free core of a touched device to the first operator of its heap, if there is one.
    ///
    /// If the first of a line still waits for inputs, the line waits.
    #[inline(always)]
    pub fn next_granted(&mut self) -> Option<usize> {
        while let Some(&d) = self.touched.get(self.granted) {
            let device = &mut self.devices[d as usize];
            if device.free > 0 && device.head != NONE {
                let v = device.head as usize;
                if self.rules.queue != Queue::Line {
                    device.free -= 1;
                    device.head = without_root(self.operators, v);
                    return Some(v);
                }
                if self.operators[v].is_ready {
                    device.free -= 1;
                    device.head = self.operators[v].next;
                    return Some(v);
                }
            }
            device.is_touched = false;
            self.granted += 1;
        }
        self.touched.clear();
        self.granted = 0;
        None
    }

    /// Insert an operator into its device's heap; for a queue by rank, its key is already set.
    #[inline(always)]
    fn enter(&mut self, v: usize, d: usize) {
        let operator = &mut self.operators[v];
        if self.rules.queue == Queue::Rows {
            operator.key = self.wave;
            operator.tie = u64::from(operator.producer) << 32 | v as u64;
        }
        operator.child = NONE;
        operator.next = NONE;
        let device = &mut self.devices[d];
        device.head = meld(self.operators, device.head, v as Id);
    }

    /// Put every operator into the line of its device.
    pub fn line_up(&mut self, line: &[Id]) {
        for &v in line.iter().rev() {
            let operator = &mut self.operators[v as usize];
            let device = &mut self.devices[operator.device as usize];
            operator.is_ready = false;
            operator.next = device.head;
            device.head = v;
        }
    }

    /// Whether any line is left; at the end of a pass, its operators can never start.
    pub fn is_left(&self) -> bool {
        self.devices.iter().any(|device| device.head != NONE)
    }
}

/// Remove the root of a pairing heap: meld the children in pairs, then the pairs.
#[inline(always)]
fn without_root(operators: &mut [Progress], root: usize) -> Id {
    let (mut paired, mut v) = (NONE, operators[root].child);
    while v != NONE {
        let other = operators[v as usize].next;
        let following = if other == NONE { NONE } else { operators[other as usize].next };
        let pair = meld(operators, v, other);
        operators[pair as usize].next = paired;
        (paired, v) = (pair, following);
    }
    if paired == NONE {
        return NONE;
    }
    let mut rest = paired;
    paired = operators[paired as usize].next;
    while paired != NONE {
        let following = operators[paired as usize].next;
        rest = meld(operators, rest, paired);
        paired = following;
    }
    rest
}

/// Merge two heaps, either of which may be empty; return the root.
#[inline(always)]
fn meld(operators: &mut [Progress], mut a: Id, mut b: Id) -> Id {
    if a == NONE {
        return b;
    }
    if b == NONE {
        return a;
    }
    let (first, second) = (&operators[a as usize], &operators[b as usize]);
    if second.key < first.key || (second.key == first.key && second.tie < first.tie) {
        (a, b) = (b, a);
    }
    operators[b as usize].next = operators[a as usize].child;
    operators[a as usize].child = b;
    operators[a as usize].next = NONE;
    a
}
