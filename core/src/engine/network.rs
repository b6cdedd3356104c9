//! Network: links move bytes once per tick; tuples arrive after the latency.

use super::plan::Plan;
use super::state::{Held, State};
use super::ticks::Run;
use super::tuple_ages::Ages;
use crate::arithmetic::max;
use crate::instance::Id;

impl<A: Ages> Run<'_, A> {
    /// Deliver due tuples, then let every link move for a tick.
    pub fn transmit(&mut self, tick: usize) {
        if self.plan.pipe > 0 {
            self.land(tick);
        }
        let dt = self.wiring.settings.dt;
        if self.plan.nics.is_some() {
            self.transmit_through_nics(tick, dt);
            return;
        }
        for link in 0..self.plan.link_start.len() - 1 {
            let level = fair_level(self.plan.link(link), dt, &self.plan, &self.state.held);
            for i in self.plan.link_start[link]..self.plan.link_start[link + 1] {
                let e = self.plan.link_streams[i as usize] as usize;
                let (mut amount, wire) = (self.state.held[e].sending, self.plan.streams[e].wire);
                if amount * wire > level {
                    amount = level / wire;
                }
                self.carry(e, amount, tick);
            }
        }
    }

    /// Move the tuples that links and network cards together allow.
    fn transmit_through_nics(&mut self, tick: usize, dt: f64) {
        let Some(mut nics) = self.plan.nics.take() else { return };
        let State { held, .. } = &self.state;
        nics.grant(dt, self.plan.link_streams.iter().map(|&e| held[e as usize].sending));
        for i in 0..self.plan.link_streams.len() {
            self.carry(self.plan.link_streams[i] as usize, nics.granted(i), tick);
        }
        self.plan.nics = Some(nics);
    }

    /// Move tuples from a send buffer into the receiver's queue, or into the pipe to it.
    #[inline(always)]
    fn carry(&mut self, e: usize, amount: f64, tick: usize) {
        let Self { plan, state, totals, ages, .. } = self;
        let (stream, held) = (&plan.streams[e], &mut state.held[e]);
        if stream.delay == 0 {
            ages.move_over(e, held.queued, amount);
            held.queued += amount;
        } else {
            let place = stream.pipe + tick % stream.delay;
            ages.take_off(e, place);
            state.pipe[place] = amount;
            held.flying += amount;
        }
        held.sending = if amount == held.sending { 0.0 } else { held.sending - amount };
        totals.moved[e] += amount;
    }

    /// Deliver the tuples that were moved `delay` ticks ago.
    fn land(&mut self, tick: usize) {
        let Self { plan, state, ages, .. } = self;
        for &e in &plan.link_streams {
            let e = e as usize;
            let (stream, held) = (&plan.streams[e], &mut state.held[e]);
            if stream.delay > 0 {
                let place = stream.pipe + tick % stream.delay;
                let amount = state.pipe[place];
                ages.land(e, place, held.queued, amount);
                held.queued += amount;
                held.flying = max(held.flying - amount, 0.0);
            }
        }
    }
}

/// Max-min fair link seconds per stream: Σ min(demand, level) = dt, or infinite if all fits.
#[inline(always)]
fn fair_level(link: &[Id], dt: f64, plan: &Plan, held: &[Held]) -> f64 {
    let wanted = |&e: &Id| held[e as usize].sending * plan.streams[e as usize].wire;
    let demand = link.iter().map(wanted).fold(0.0, |sum, wanted| sum + wanted);
    if demand <= dt {
        return f64::INFINITY;
    }
    level(dt, link.len(), || link.iter().map(wanted))
}

/// Level up to which demands, of which there are `n`, share `dt` seconds.
fn level<I: Iterator<Item = f64>>(dt: f64, n: usize, demands: impl Fn() -> I) -> f64 {
    let (mut level, mut hungry) = (dt / n as f64, n + 1);
    loop {
        let (mut remaining, mut above) = (dt, 0);
        for wanted in demands() {
            if wanted > level {
                above += 1;
            } else {
                remaining -= wanted;
            }
        }
        if above >= hungry || above == 0 {
            return level;
        }
        (level, hungry) = (remaining / above as f64, above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_small_demands_leave_is_shared_by_large_ones() {
        let demands = [0.1, 5.0, 0.2, 9.0];
        assert_eq!(level(1.0, 4, || demands.into_iter()), (1.0 - 0.1 - 0.2) / 2.0);
    }
}
