//! The device on which one task finishes earliest, while all others keep their devices and times.

use super::insertion::{ListSchedule, ready_at};
use super::tasks::Tasks;
use crate::arithmetic::min;

/// Device on which task `v` finishes earliest, between or after the other tasks there.
///
/// Every task has a device.
#[must_use]
pub fn earliest_device(tasks: &Tasks, schedule: &ListSchedule, v: usize) -> usize {
    let ListSchedule { place, start, finish } = schedule;
    let (mut best, mut soonest) = (place[v] as usize, f64::INFINITY);
    for (a, &work) in tasks.work.row(v).iter().enumerate() {
        if work == f64::INFINITY {
            continue;
        }
        let mut begin = ready_at(tasks, place, |u| finish[u], v, a);
        // postpone until a core is free for the duration of the task
        loop {
            let (mut busy, mut until) = (0, f64::INFINITY);
            for u in (0..place.len()).filter(|&u| u != v && place[u] as usize == a) {
                if start[u] < begin + work && finish[u] > begin {
                    busy += 1;
                    until = min(until, finish[u]);
                }
            }
            if busy < tasks.cores(a).len() {
                break;
            }
            begin = until;
        }
        if begin + work < soonest {
            (best, soonest) = (a, begin + work);
        }
    }
    best
}
