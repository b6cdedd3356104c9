//! Runs of many placements with their sums, and one run with a log of its ticks.
//!
//! Results go into arrays of the caller, which are 0.

use super::Stopped;
use super::recurrence::Snapshot;
use super::ticks::Run;
use super::tuple_ages::{NoAges, Stamps};
use super::wiring::Wiring;
use crate::instance::{Id, Instance};
use crate::table::Table;
use crate::watch::Watch;

/// Ticks between snapshots, and therefore the longest period that is recognised.
const EVERY: usize = 8;

/// Sums over the measured window, one row per run.
pub struct Sums<'a> {
    /// [B, N] tuples
    pub taken: &'a mut [f64],
    /// [B, K] tuples released by windows
    pub emitted: &'a mut [f64],
    /// [B, D] core seconds
    pub busy: &'a mut [f64],
    /// [B, D, D] seconds
    pub link: &'a mut [f64],
    /// [B, M + S] tuples in streams, then backlogs, at the start
    pub opening: &'a mut [f64],
    /// [B, M + S] tuples in streams, then backlogs, at the end
    pub closing: &'a mut [f64],
    /// [B] first tick that repeats for ever, or -1
    pub repeating: &'a mut [f64],
}

/// One row per tick; queues and backlogs are those at its end.
pub struct Log<'a> {
    /// [T, M] tuples
    pub queued: &'a mut [f64],
    /// [T, M] tuples waiting for the link or in flight
    pub transit: &'a mut [f64],
    /// [T, S] tuples
    pub backlog: &'a mut [f64],
    /// [T, N] tuples
    pub taken: &'a mut [f64],
    /// [T, K] tuples released by windows
    pub emitted: &'a mut [f64],
    /// [T, D] core seconds
    pub busy: &'a mut [f64],
    /// [T, M] seconds
    pub link: &'a mut [f64],
    /// [T, 2, N] Σ tuples · latency, since generation and since admission
    pub delay: &'a mut [f64],
}

/// Run every placement and write its sums.
///
/// With `jump`, ticks that repeat exactly are counted instead of simulated, up to the start of the
/// measured window and up to the end.
///
/// # Errors
/// Why the runs ended before their time.
pub fn simulate(
    instance: &Instance,
    wiring: &Wiring,
    placements: &Table<Id>,
    jump: bool,
    sums: &mut Sums<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), Stopped> {
    let (n, k, d) = (instance.n_operators(), wiring.windows.len(), instance.n_devices());
    let inlets = wiring.inlets.len();
    for b in 0..placements.rows() {
        let placement = placements.row(b);
        let mut run = Run::new(instance, wiring, placement)?;
        let opening = &mut sums.opening[b * inlets..][..inlets];
        let repeating = run.simulate(jump, opening, watch)?;
        sums.repeating[b] = repeating.map_or(-1.0, |tick| tick as f64);
        sums.taken[b * n..][..n].copy_from_slice(&run.totals.taken);
        sums.emitted[b * k..][..k].copy_from_slice(&run.totals.emitted);
        for (&device, &busy) in run.plan.devices.iter().zip(&run.totals.busy) {
            sums.busy[b * d + device as usize] = busy;
        }
        for &e in &run.plan.link_streams {
            let (u, v) = instance.ends(e as usize);
            let at = (b * d + placement[u] as usize) * d + placement[v] as usize;
            sums.link[at] += run.link_seconds(e as usize);
        }
        run.state.write_held(&mut sums.closing[b * inlets..][..inlets]);
    }
    Ok(())
}

/// Run one placement tick by tick, with stamps, and write every tick into the log.
///
/// # Errors
/// Why the run ended before its time.
pub fn simulate_logged(
    instance: &Instance,
    wiring: &Wiring,
    placement: &[Id],
    log: &mut Log<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), Stopped> {
    let mut run = Run::new(instance, wiring, placement)?.stamped()?;
    for tick in 0..wiring.settings.ticks {
        run.tick(tick, watch)?;
        run.write(tick, log);
        run.totals.clear();
        run.ages.delay.fill([0.0; 2]);
    }
    Ok(())
}

impl Run<'_, NoAges> {
    /// Run to the end; return the first tick known to repeat for ever.
    ///
    /// Totals are those of the measured window; `opening` receives the tuples in streams and
    /// backlogs at its start.
    fn simulate(
        &mut self,
        jump: bool,
        opening: &mut [f64],
        watch: &mut Watch<'_>,
    ) -> Result<Option<usize>, Stopped> {
        let settings = &self.wiring.settings;
        let (mut since, mut tick, mut repeating) = (None, 0, None);
        let mut snapshot = Snapshot::new(&self.state, &self.totals)?;
        while tick < settings.ticks {
            if tick == settings.warm_ticks {
                self.totals.clear();
                self.state.write_held(opening);
                since = None;
            }
            self.tick(tick, watch)?;
            tick += 1;
            if !jump || tick <= settings.constant_from {
                continue;
            }
            let target =
                if tick <= settings.warm_ticks { settings.warm_ticks } else { settings.ticks };
            match since {
                Some(then) if self.repeats(&snapshot, tick - then) => {
                    repeating = repeating.or(Some(then));
                    let times = (target - tick) / (tick - then);
                    self.skip(times, &snapshot);
                    tick += times * (tick - then);
                    since = None;
                }
                Some(_) if tick % EVERY != 0 => {}
                _ => {
                    snapshot.take(&self.state, &self.totals);
                    since = Some(tick);
                }
            }
        }
        Ok(repeating)
    }
}

impl<A> Run<'_, A> {
    /// Seconds for which the tuples that moved occupied the link of stream `e`.
    fn link_seconds(&self, e: usize) -> f64 {
        self.totals.moved[e] * self.plan.streams[e].wire
    }
}

impl Run<'_, Stamps> {
    /// Write the row of one tick; totals are those of this tick alone.
    fn write(&self, tick: usize, log: &mut Log<'_>) {
        let (n, m) = (self.plan.operators.len(), self.plan.streams.len());
        let (k, d) = (self.wiring.windows.len(), self.plan.devices.len());
        let (streams, backlogs) = self.state.held.split_at(m);
        for (e, held) in streams.iter().enumerate() {
            log.queued[tick * m + e] = held.queued;
            log.transit[tick * m + e] = held.transit();
        }
        for (s, held) in backlogs.iter().enumerate() {
            log.backlog[tick * backlogs.len() + s] = held.queued;
        }
        log.taken[tick * n..][..n].copy_from_slice(&self.totals.taken);
        log.emitted[tick * k..][..k].copy_from_slice(&self.totals.emitted);
        for (&device, &busy) in self.plan.devices.iter().zip(&self.totals.busy) {
            log.busy[tick * d + device as usize] = busy;
        }
        for &e in &self.plan.link_streams {
            log.link[tick * m + e as usize] = self.link_seconds(e as usize);
        }
        let (generated, admitted) = log.delay[tick * 2 * n..][..2 * n].split_at_mut(n);
        for (v, delay) in self.ages.delay.iter().enumerate() {
            [generated[v], admitted[v]] = *delay;
        }
    }
}
