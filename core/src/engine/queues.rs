//! Queues: what an operator takes from its own in its turn on the CPU, and puts into others.
//!
//! A queue that is full holds back the operators before it.

use super::plan::{Operator, Plan};
use super::state::{Outcome, State, received};
use super::ticks::Run;
use super::tuple_ages::{Ages, Draw, Pair};
use super::wiring::Inlet;
use crate::arithmetic::max;

/// What a turn did: tuples moved, core seconds spent and why it ended.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub tuples: f64,
    pub seconds: f64,
    pub outcome: Outcome,
}

impl Done {
    /// A turn without effect.
    pub fn nothing(outcome: Outcome) -> Self {
        Self { tuples: 0.0, seconds: 0.0, outcome }
    }
}

impl<A: Ages> Run<'_, A> {
    /// Take in min(waiting, limit / cost, free space downstream) tuples and emit the results.
    #[inline(always)]
    pub fn process(&mut self, v: usize, limit: f64, slice: usize) -> Done {
        self.take_in(
            v,
            limit,
            slice,
            |take, operator, plan, state| state.fitting(take, operator, plan),
            |take, stamp, operator, plan, state, ages| {
                state.emit(take, stamp, operator, plan, ages);
            },
        )
    }

    /// Take in min(waiting, limit / cost, what is `free` for so many) tuples, and `put` them where
    /// they go.
    #[inline(always)]
    pub fn take_in(
        &mut self,
        v: usize,
        limit: f64,
        slice: usize,
        free: impl FnOnce(f64, &Operator, &Plan, &State) -> f64,
        put: impl FnOnce(f64, Pair, &Operator, &Plan, &mut State, &mut A),
    ) -> Done {
        let Self { wiring, plan, state, totals, ages } = self;
        let operator = &plan.operators[v];
        let (joins, inlets) = (operator.joins, &wiring.inlets[operator.inlets()]);
        let waiting = state.waiting(joins, inlets);
        if waiting <= 0.0 {
            return Done::nothing(Outcome::Done);
        }
        let cost = operator.cost + receiving_cost(operator, inlets, waiting, plan, state);
        let (mut take, mut outcome) = (waiting, Outcome::Done);
        if take * cost > limit {
            (take, outcome) = (limit / cost, Outcome::Capped);
        }
        if plan.limited && state.served[v] + take > operator.most {
            (take, outcome) = (max(operator.most - state.served[v], 0.0), Outcome::Blocked);
        }
        let free = free(take, operator, plan, state);
        if free < take {
            (take, outcome) = (free, Outcome::Blocked);
        }
        if take <= 0.0 {
            return Done::nothing(outcome);
        }
        let stamp = ages.drawn(Draw { v, joins, inlets, take, waiting, slice }, wiring, state);
        state.draw(take, waiting, joins, inlets);
        put(take, stamp, operator, plan, state, ages);
        totals.taken[v] += take;
        state.served[v] += take;
        Done { tuples: take, seconds: take * cost, outcome }
    }
}

/// Core seconds for receiving over links, per tuple (or set) taken in.
#[inline(always)]
fn receiving_cost(
    operator: &Operator,
    inlets: &[Inlet],
    waiting: f64,
    plan: &Plan,
    state: &State,
) -> f64 {
    if !(plan.overhead > 0.0 || plan.overhead_per_byte > 0.0) {
        return 0.0;
    }
    let (tuples, bytes) = received(waiting, operator.joins, inlets, &plan.streams, state);
    let mut cost = 0.0;
    if plan.overhead > 0.0 {
        cost += plan.overhead * tuples;
    }
    if plan.overhead_per_byte > 0.0 {
        cost += plan.overhead_per_byte * bytes;
    }
    cost * operator.slowdown
}
