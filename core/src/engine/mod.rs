//! The engine: a discrete-time simulation of streams with queues, CPU sharing and a network.
//!
//! A tick is cut into slices. In a slice, sources generate tuples, and then every device spends
//! its CPU; after the last slice of a tick the network moves bytes. Tuples are amounts here, and
//! single ones only in `single_tuples`.
//!
//! - `wiring`: what all placements of one problem share; `plan`: what follows from a placement.
//! - `state`: where tuples are; `queues`, `windows`: a turn of an operator.
//! - `network`, `nics`: links and network cards.
//! - `ticks`: how devices spend CPU; `recurrence`: ticks that repeat for ever.
//! - `runs`: runs of many placements, and one run with a log; `rates`: what their sums mean.
//! - `tuple_ages`: stamps, for latencies; `single_tuples`, `events`: tuples one by one.

mod events;
mod network;
mod nics;
pub mod plan;
mod queues;
pub mod rates;
mod recurrence;
pub mod runs;
pub mod single_tuples;
mod state;
mod ticks;
mod tuple_ages;
mod windows;
pub mod wiring;

use crate::watch::Watch;

/// Why a run ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    Interrupted,
    OutOfMemory,
}

/// Go on, unless a watch says that the run is over; after work of about so many nanoseconds.
#[inline]
fn go_on(watch: &mut Watch<'_>, work: usize) -> Result<(), Stopped> {
    if watch.is_over(work) { Err(Stopped::Interrupted) } else { Ok(()) }
}

/// Values of the same kind, if there is memory for them.
fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>, Stopped> {
    let mut values = Vec::new();
    values.try_reserve_exact(n).map_err(|_| Stopped::OutOfMemory)?;
    values.resize(n, value);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_memory_is_an_error() {
        assert_eq!(filled(0.0, usize::MAX), Err(Stopped::OutOfMemory));
        assert_eq!(filled(1.5, 2), Ok(vec![1.5, 1.5]));
    }
}
