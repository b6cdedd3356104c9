//! The end of a search: its time is over, or Ctrl-C was pressed.

use std::time::Instant;

/// Nanoseconds of work between two looks at the clock.
const BETWEEN_LOOKS: usize = 100_000;
/// Seconds between two questions whether the search is interrupted.
const BETWEEN_QUESTIONS: f64 = 0.05;

/// Seconds since any moment, for a clock that is not the usual one.
pub type Clock<'a> = Box<dyn FnMut() -> f64 + 'a>;

/// Tells a search when to end.
pub struct Watch<'a> {
    seconds: Option<f64>,
    began: Instant,
    clock: Option<Clock<'a>>,
    interrupted: Box<dyn FnMut() -> bool + 'a>,
    question: f64,
    /// nanoseconds of work until the next look
    left: usize,
    over: bool,
}

impl<'a> Watch<'a> {
    /// Watch for the end of so many seconds, if any, and for an interrupt.
    #[must_use]
    pub fn new(
        seconds: Option<f64>,
        clock: Option<Clock<'a>>,
        interrupted: impl FnMut() -> bool + 'a,
    ) -> Self {
        let clock = clock.map(|mut clock| {
            let began = clock();
            Box::new(move || clock() - began) as Clock<'a>
        });
        Self {
            seconds,
            began: Instant::now(),
            clock,
            interrupted: Box::new(interrupted),
            question: BETWEEN_QUESTIONS,
            left: 0,
            over: false,
        }
    }

    /// A watch that ends no search.
    #[must_use]
    pub fn endless() -> Self {
        Self::new(None, None, || false)
    }

    /// Whether the search must end, after work that took about so many nanoseconds.
    #[inline]
    pub fn is_over(&mut self, work: usize) -> bool {
        if work < self.left {
            self.left -= work;
            return self.over;
        }
        self.look()
    }

    /// Seconds since the search began.
    pub fn elapsed(&mut self) -> f64 {
        match &mut self.clock {
            Some(clock) => clock(),
            None => self.began.elapsed().as_secs_f64(),
        }
    }

    #[cold]
    fn look(&mut self) -> bool {
        self.left = BETWEEN_LOOKS;
        let passed = self.began.elapsed().as_secs_f64();
        if passed >= self.question {
            self.question = passed + BETWEEN_QUESTIONS;
            self.over |= (self.interrupted)();
        }
        if let Some(seconds) = self.seconds {
            self.over |= self.elapsed() >= seconds;
        }
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_without_time_ends_at_once() {
        assert!(Watch::new(Some(0.0), None, || false).is_over(0));
        assert!(!Watch::endless().is_over(0));
    }

    #[test]
    fn the_clock_is_looked_at_after_enough_work() {
        let mut now = 0.0;
        let clock = move || {
            now += 1.0;
            now
        };
        let mut watch = Watch::new(Some(1.5), Some(Box::new(clock)), || false);
        assert!(!watch.is_over(0));
        assert!(!watch.is_over(BETWEEN_LOOKS / 2));
        assert!(watch.is_over(BETWEEN_LOOKS / 2));
        assert!(watch.is_over(0));
    }
}
