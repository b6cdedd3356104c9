//! Ticks: how devices spend CPU, slice by slice, before the network moves bytes.

use super::plan::Plan;
use super::state::{Outcome, State, Totals};
use super::tuple_ages::{Ages, NoAges, Stamps};
use super::wiring::{Policy, Wiring};
use super::{Stopped, go_on};
use crate::arithmetic::{max, min};
use crate::instance::{Id, Instance};
use crate::watch::Watch;

/// Nanoseconds of a turn of an operator or stream.
const TURN: usize = 8;
/// Rounds of turns between two looks whether the run is over.
const ROUNDS: usize = 1000;

/// A run of one placement, from an empty cluster.
pub struct Run<'a, A> {
    pub wiring: &'a Wiring,
    pub plan: Plan,
    pub state: State,
    pub totals: Totals,
    pub ages: A,
}

impl<'a> Run<'a, NoAges> {
    /// A run without ages.
    pub fn new(instance: &Instance, wiring: &'a Wiring, placement: &[Id]) -> Result<Self, Stopped> {
        let plan = Plan::new(instance, wiring, placement);
        let state = State::new(wiring, &plan)?;
        Ok(Self { wiring, plan, state, totals: Totals::new(instance), ages: NoAges })
    }

    /// The same run with stamps.
    pub fn stamped(self) -> Result<Run<'a, Stamps>, Stopped> {
        let Self { wiring, plan, state, totals, .. } = self;
        let ages = Stamps::new(wiring, &plan, &state)?;
        Ok(Run { wiring, plan, state, totals, ages })
    }
}

impl<A: Ages> Run<'_, A> {
    /// Generate tuples and spend CPU slice by slice, then let the network move bytes.
    pub fn tick(&mut self, tick: usize, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let (m, used) = (self.plan.streams.len(), self.plan.used);
        for i in 0..self.wiring.settings.iterations {
            let slice = tick * self.wiring.settings.iterations + i;
            for s in 0..self.wiring.sources.len() {
                self.state.held[m + s].queued += self.wiring.settings.generated[(s, slice)];
            }
            if self.plan.limited {
                self.state.served.fill(0.0);
            }
            for k in 0..used {
                self.spend(k, slice, watch)?;
            }
        }
        self.transmit(tick);
        go_on(watch, TURN * (self.plan.operators.len() + m))
    }

    /// Spend the budget of the k-th device in rounds of turns.
    ///
    /// In the first round every operator may use its share. Fixed shares end there. The dynamic
    /// policy divides the rest equally among the operators that ran out of CPU, round after round,
    /// until the budget is used up or nothing moves. Operators that cannot do anything are skipped.
    fn spend(&mut self, k: usize, slice: usize, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let turns = self.plan.turns_of(k);
        let mut budget = self.plan.budget[k];
        let tolerance = 1e-12 * budget;
        let (mut share, mut progress) = (None, 0.0); // the share is every operator's own
        for &v in &self.plan.turns[turns.clone()] {
            self.state.turn[v as usize] = Outcome::Capped;
        }
        for rounds in 1_usize.. {
            let (mut moved, mut capped, mut blocked) = (0.0, 0, 0);
            for i in turns.clone() {
                let v = self.plan.turns[i] as usize;
                if self.state.turn[v] != Outcome::Capped {
                    continue;
                }
                let operator = &self.plan.operators[v];
                let limit = max(min(share.unwrap_or(operator.share), budget), 0.0);
                let done = match operator.window {
                    None => self.process(v, limit, slice),
                    Some(window) => self.process_window(v, window as usize, limit, slice),
                };
                self.state.turn[v] = done.outcome;
                budget -= done.seconds;
                moved += done.tuples;
                capped += usize::from(done.outcome == Outcome::Capped);
                blocked += usize::from(done.outcome == Outcome::Blocked);
            }
            progress += moved;
            let stuck = capped + blocked == 0 || moved <= 1e-9 * progress;
            if stuck || budget <= tolerance || self.wiring.settings.policy != Policy::Dynamic {
                break;
            }
            share = Some(budget / capped.max(1) as f64);
            if rounds % ROUNDS == 0 {
                look(watch, ROUNDS * TURN * turns.len())?;
            }
        }
        self.totals.busy[k] += self.plan.budget[k] - budget + self.plan.constant[k];
        Ok(())
    }
}

/// Go on in a slice of many rounds, as there are if capacities are tiny.
#[cold]
#[inline(never)]
fn look(watch: &mut Watch<'_>, work: usize) -> Result<(), Stopped> {
    go_on(watch, work)
}
