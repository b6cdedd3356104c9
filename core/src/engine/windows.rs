//! Windows: a windowed operator collects tuples in panes, and emits f(tuples in the panes) every
//! advance.

use super::queues::Done;
use super::state::Outcome;
use super::ticks::Run;
use super::tuple_ages::Ages;
use crate::arithmetic::max;

/// Capacity of a pane, as a multiple of the tuples at full rate between two advances. Without it,
/// a window that falls behind would take in its entire backlog at once and fall behind further.
const MAX_PANE: f64 = 2.0;

impl<A: Ages> Run<'_, A> {
    /// Release held results, advance when due, then take in min(waiting, limit / cost) tuples.
    ///
    /// A window does not advance while earlier results wait for space downstream. Once an advance
    /// is overdue, its operator takes nothing in, so that back-pressure reaches its inputs.
    #[inline(never)]
    pub fn process_window(&mut self, v: usize, k: usize, limit: f64, slice: usize) -> Done {
        let send_cost = self.plan.operators[v].send_cost;
        let mut out = self.release(v, k, limit);
        while self.state.results[k] <= 0.0 && self.is_due(k, slice) {
            self.advance(k);
            out += self.release(v, k, limit - out * send_cost);
        }
        self.totals.emitted[k] += out;
        let spent = out * send_cost;
        if self.is_due(k, slice) {
            return Done { tuples: out, seconds: spent, outcome: Outcome::Blocked };
        }
        let window = &self.wiring.windows[k];
        let pane = window.open_pane(self.state.advanced[k]);
        let comes = window.input_rate * self.wiring.settings.peak * window.advance;
        let done = self.take_in(
            v,
            limit - spent,
            slice,
            |_, _, _, state| max(MAX_PANE * comes - state.panes[pane], 0.0),
            |take, stamp, _, _, state, ages| {
                ages.collect(pane, state.panes[pane], take, stamp);
                state.panes[pane] += take;
            },
        );
        Done { tuples: out + done.tuples, seconds: spent + done.seconds, outcome: done.outcome }
    }

    /// Whether the next advance of a window is due by the start of this slice.
    fn is_due(&self, k: usize, slice: usize) -> bool {
        let due = (self.state.advanced[k] + 1.0) * self.wiring.windows[k].advance;
        due <= (slice as f64 + 1e-6) * self.wiring.settings.slice_seconds
    }

    /// Evaluate a window into its results and open its next pane.
    fn advance(&mut self, k: usize) {
        let (window, state) = (&self.wiring.windows[k], &mut self.state);
        let mut count = 0.0;
        for pane in window.first_pane..window.first_pane + window.panes {
            self.ages.evaluate(k, count, pane, state.panes[pane]);
            count += state.panes[pane];
        }
        state.results[k] = window.evaluate(count);
        state.advanced[k] += 1.0;
        state.panes[window.open_pane(state.advanced[k])] = 0.0;
    }

    /// Release as many results as the CPU for sending and the space downstream allow.
    fn release(&mut self, v: usize, k: usize, limit: f64) -> f64 {
        let Self { plan, state, ages, .. } = self;
        let (operator, results) = (&plan.operators[v], state.results[k]);
        let mut amount = results;
        if amount * operator.send_cost > limit {
            amount = limit / operator.send_cost;
        }
        amount = state.fitting(amount, operator, plan);
        if amount <= 0.0 {
            return 0.0;
        }
        let stamp = ages.result(k);
        state.emit(amount, stamp, operator, plan, ages);
        state.results[k] = if amount == results { 0.0 } else { results - amount };
        amount
    }
}
