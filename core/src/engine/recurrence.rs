//! Recurrence: if a state recurs exactly, the ticks in between repeat for ever.

use super::state::{Held, State, Totals};
use super::ticks::Run;
use super::tuple_ages::NoAges;
use super::{Stopped, filled};

/// State and totals of an earlier tick.
pub struct Snapshot {
    held: Vec<Held>,
    pipe: Vec<f64>,
    taken: Vec<f64>,
    moved: Vec<f64>,
    busy: Vec<f64>,
}

impl Snapshot {
    /// Memory for a snapshot.
    pub fn new(state: &State, totals: &Totals) -> Result<Self, Stopped> {
        Ok(Self {
            held: state.held.clone(),
            pipe: filled(0.0, state.pipe.len())?,
            taken: totals.taken.clone(),
            moved: totals.moved.clone(),
            busy: totals.busy.clone(),
        })
    }

    /// Copy the current state and totals.
    pub fn take(&mut self, state: &State, totals: &Totals) {
        self.held.clone_from(&state.held);
        self.pipe.clone_from(&state.pipe);
        self.taken.clone_from(&totals.taken);
        self.moved.clone_from(&totals.moved);
        self.busy.clone_from(&totals.busy);
    }
}

impl Run<'_, NoAges> {
    /// Whether every tick from here on repeats the one `period` ticks before it.
    ///
    /// True if all queues and buffers are bit for bit as before, tuples in flight are the same for
    /// every tick of arrival, and backlogs make no difference. Windows are never found to repeat.
    pub fn repeats(&self, snapshot: &Snapshot, period: usize) -> bool {
        let m = self.plan.streams.len();
        let alike =
            |(now, then): (&Held, &Held)| now.queued == then.queued && now.sending == then.sending;
        self.state.held[..m].iter().zip(&snapshot.held).all(alike)
            && self.wiring.windows.is_empty()
            && (0..self.wiring.sources.len()).all(|s| self.backlog_repeats(s, snapshot, period))
            && (self.plan.pipe == 0 || self.pipe_repeats(snapshot))
    }

    /// Whether a backlog is as before, or has grown without ever having limited its source.
    ///
    /// After being emptied, it would hold at most the tuples generated since. A larger backlog
    /// changes no minimum and therefore no tick, unless the operator draws from other queues too.
    fn backlog_repeats(&self, s: usize, snapshot: &Snapshot, period: usize) -> bool {
        let at = self.plan.streams.len() + s;
        let (now, then) = (self.state.held[at].queued, snapshot.held[at].queued);
        if now == then {
            return true;
        }
        if self.plan.operators[self.wiring.sources[s] as usize].inlets().len() > 1 {
            return false;
        }
        let last = self.wiring.settings.last_tick(s);
        let came = last.iter().fold(0.0, |came, tuples| came + tuples * period as f64);
        now > then && now > came * (1.0 + 1e-9)
    }

    /// Whether the tuples in flight are as before, and the same for every tick of arrival.
    fn pipe_repeats(&self, snapshot: &Snapshot) -> bool {
        self.plan.link_streams.iter().all(|&e| {
            let e = e as usize;
            let stream = &self.plan.streams[e];
            let places = stream.pipe..stream.pipe + stream.delay;
            let (now, then) = (&self.state.pipe[places.clone()], &snapshot.pipe[places]);
            self.state.held[e].flying == snapshot.held[e].flying
                && now.iter().zip(then).all(|(amount, then)| amount == then && *amount == now[0])
        })
    }

    /// Add the changes since the snapshot `times` more times.
    pub fn skip(&mut self, times: usize, snapshot: &Snapshot) {
        let (times, m) = (times as f64, self.plan.streams.len());
        for (now, then) in self.state.held[m..].iter_mut().zip(&snapshot.held[m..]) {
            now.queued += times * (now.queued - then.queued);
        }
        extend(times, &mut self.totals.taken, &snapshot.taken);
        extend(times, &mut self.totals.moved, &snapshot.moved);
        extend(times, &mut self.totals.busy, &snapshot.busy);
    }
}

/// Add the increases of totals `times` more times.
fn extend(times: f64, totals: &mut [f64], before: &[f64]) {
    for (total, before) in totals.iter_mut().zip(before) {
        *total += times * (*total - before);
    }
}
