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

/// Why a run ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    Interrupted,
    OutOfMemory,
}

/// Turns of operators and streams between two questions whether a run is to go on: some 0.5 ms.
const STEPS: usize = 1 << 15;

/// Asks now and then whether a run is to go on.
pub struct Watch<'a> {
    go_on: &'a mut dyn FnMut() -> bool,
    steps: usize,
}

impl<'a> Watch<'a> {
    pub fn new(go_on: &'a mut dyn FnMut() -> bool) -> Self {
        Self { go_on, steps: 0 }
    }

    /// Count steps.
    ///
    /// # Errors
    /// `Interrupted`, if the run is to end.
    #[inline]
    pub fn count(&mut self, steps: usize) -> Result<(), Stopped> {
        self.steps += steps;
        if self.steps < STEPS {
            return Ok(());
        }
        self.steps = 0;
        if (self.go_on)() { Ok(()) } else { Err(Stopped::Interrupted) }
    }
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
    fn a_run_ends_when_nobody_wants_it() {
        let mut questions = 0;
        let mut go_on = || {
            questions += 1;
            questions < 3
        };
        let mut watch = Watch::new(&mut go_on);
        assert_eq!(watch.count(STEPS - 1), Ok(()));
        assert_eq!(watch.count(STEPS), Ok(()));
        assert_eq!(watch.count(STEPS), Ok(()));
        assert_eq!(watch.count(STEPS), Err(Stopped::Interrupted));
    }

    #[test]
    fn too_much_memory_is_an_error() {
        assert_eq!(filled(0.0, usize::MAX), Err(Stopped::OutOfMemory));
        assert_eq!(filled(1.5, 2), Ok(vec![1.5, 1.5]));
    }
}
