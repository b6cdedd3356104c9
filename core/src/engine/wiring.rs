//! Wiring: what all placements of one problem share.

use crate::check::{Wrong, length, shape};
use crate::flow::window_output;
use crate::instance::{Id, Instance};
use crate::table::Table;
use crate::topology::Groups;

/// How a device shares its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Work-conserving round robin.
    Dynamic,
    /// Equal fixed shares.
    Uniform,
    /// Fixed shares in proportion to weight × cost.
    Weighted,
}

/// Time steps, sources, queues and policy of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// [S, slices] tuples that each source generates
    pub generated: Table,
    /// first tick from which generated tuples no longer change
    pub constant_from: usize,
    /// [N] for the policy of weights
    pub weights: Vec<f64>,
    pub policy: Policy,
    /// tuples per stream, or 0 if capacities follow from the rates
    pub capacity: f64,
    /// most tuples that a source generates in a slice, as a multiple of its rate
    pub peak: f64,
    pub ticks: usize,
    /// ticks before the measured window
    pub warm_ticks: usize,
    /// slices per tick
    pub iterations: usize,
    /// seconds of a tick
    pub dt: f64,
    pub slice_seconds: f64,
}

/// A queue from which an operator draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlet {
    /// stream; or M + i, the backlog of the i-th source, an unbounded queue
    pub queue: Id,
    pub port: Id,
    /// operator that sends; for backlogs the source
    pub sender: Id,
}

/// A window: every `advance` s it emits f of the tuples of the last `size` s.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub operator: usize,
    /// tuples taken in per second at full rate
    pub input_rate: f64,
    pub size: f64,
    pub advance: f64,
    base: f64,
    factor: f64,
    limit: f64,
    /// advances that the window spans
    pub panes: usize,
    /// its first pane among those of all windows
    pub first_pane: usize,
}

/// Inlets of operators, windows and the clock.
///
/// Operators without any input are sources, so that every operator has an inlet.
#[derive(Clone, Debug)]
pub struct Wiring {
    pub settings: Settings,
    /// [S] operators that generate
    pub sources: Vec<Id>,
    /// [N + 1] the inlets of v are `inlets[inlet_start[v]..inlet_start[v + 1]]`
    pub inlet_start: Vec<Id>,
    /// [M + S] port by port
    pub inlets: Vec<Inlet>,
    /// [K]
    pub windows: Vec<Window>,
    /// [N] window of an operator
    pub window_of: Vec<Option<Id>>,
}

impl Wiring {
    /// Wire an instance.
    pub fn new(instance: &Instance, settings: Settings) -> Result<Self, Wrong> {
        let (n, m) = (instance.n_operators(), instance.n_streams());
        let sources = sources(instance);
        settings.check(n, sources.len())?;
        if (0..n).any(|v| instance.ports(v).is_empty()) {
            return Err("port_start: an operator has no port".into());
        }
        let (start, mut inlets) = {
            let of_sources = sources.iter().map(|&v| instance.port_start[v as usize]);
            let ports: Vec<Id> = instance.port.iter().copied().chain(of_sources).collect();
            let queues = Groups::new(&ports, instance.port_start[n] as usize);
            let inlet = |&queue: &Id| Inlet { queue, port: ports[queue as usize], sender: Id::MAX };
            (queues.start, queues.positions.iter().map(inlet).collect::<Vec<_>>())
        };
        for inlet in &mut inlets {
            let queue = inlet.queue as usize;
            inlet.sender = if queue < m { instance.source[queue] } else { sources[queue - m] };
        }
        let inlet_start: Vec<Id> =
            instance.port_start.iter().map(|&port| start[port as usize]).collect();
        if inlet_start.windows(2).any(|ends| ends[0] == ends[1]) {
            return Err("port: an operator has no input".into());
        }
        let windows = windows(instance, settings.slice_seconds)?;
        let window_of = window_of(instance);
        Ok(Self { settings, sources, inlet_start, inlets, windows, window_of })
    }

    /// Number of panes of all windows.
    #[must_use]
    pub fn n_panes(&self) -> usize {
        self.windows.last().map_or(0, |last| last.first_pane.saturating_add(last.panes))
    }
}

impl Settings {
    fn check(&self, n: usize, sources: usize) -> Result<(), Wrong> {
        if self.iterations == 0 {
            return Err("a tick has no slice".into());
        }
        let slices = self.ticks.saturating_mul(self.iterations);
        shape("generated", &self.generated, sources, slices)?;
        length("weights", &self.weights, n)?;
        if !self.generated.cells().iter().all(|tuples| tuples.is_finite()) {
            return Err("generated: not finite".into());
        }
        let times = [self.dt, self.slice_seconds, self.peak];
        if !times.iter().all(|&time| time > 0.0 && time.is_finite()) || self.capacity.is_nan() {
            return Err("dt, slice_seconds, peak or capacity is not a number above 0".into());
        }
        Ok(())
    }

    /// Tuples that source `s` generates in its last tick, slice by slice.
    pub fn last_tick(&self, s: usize) -> &[f64] {
        let row = self.generated.row(s);
        &row[row.len() - self.iterations..]
    }
}

impl Window {
    /// f(count) = min(limit, base + factor · count), and f(0) = 0.
    #[inline]
    #[must_use]
    pub fn output(&self, count: f64) -> f64 {
        window_output(count, self.base, self.factor, self.limit)
    }

    /// f of the tuples in all panes, scaled to the size of the window.
    #[inline]
    #[must_use]
    pub fn evaluate(&self, count: f64) -> f64 {
        self.output(count * self.size / (self.panes as f64 * self.advance))
    }

    /// Whether f(count) = factor · count.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        self.base <= 0.0 && self.limit == f64::INFINITY
    }

    /// Tuples/s emitted for `rate` tuples/s that come in, if the window is linear.
    #[must_use]
    pub fn scaled(&self, rate: f64) -> f64 {
        rate * self.factor * self.size / self.advance
    }

    /// The open pane after a number of advances.
    #[inline]
    #[must_use]
    pub fn open_pane(&self, advanced: f64) -> usize {
        self.first_pane + advanced as usize % self.panes
    }
}

/// Operators that generate, and those without any input.
#[must_use]
pub fn sources(instance: &Instance) -> Vec<Id> {
    let generates = |v: usize| instance.rate[v] > 0.0 || instance.inputs(v).is_empty();
    (0..instance.n_operators()).filter(|&v| generates(v)).map(|v| v as Id).collect()
}

/// Window of every operator.
#[must_use]
pub fn window_of(instance: &Instance) -> Vec<Option<Id>> {
    let mut window_of = vec![None; instance.n_operators()];
    for k in 0..instance.windows.rows() {
        window_of[instance.windows[(k, 0)] as usize] = Some(k as Id);
    }
    window_of
}

/// Windows, none of which advances within a slice.
pub fn windows(instance: &Instance, slice_seconds: f64) -> Result<Vec<Window>, Wrong> {
    let mut first_pane: usize = 0;
    let rows = (0..instance.windows.rows()).map(|k| instance.windows.row(k));
    rows.map(|row| {
        let (size, advance) = (row[1], row[2]);
        if !(advance > 0.0 && advance >= slice_seconds * (1.0 - 1e-9)) {
            return Err(format!("the window of operator {} advances within a slice", row[0]).into());
        }
        let panes = ((size / advance + 1e-9).floor() as usize).max(1);
        let window = Window {
            operator: row[0] as usize,
            input_rate: instance.input_rate[row[0] as usize],
            size,
            advance,
            base: row[3],
            factor: row[4],
            limit: row[5],
            panes,
            first_pane,
        };
        first_pane = first_pane.saturating_add(panes);
        Ok(window)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_scales_its_panes_to_its_size() {
        let (size, advance) = (5.0, 2.0);
        let window = Window {
            operator: 0,
            input_rate: 1.0,
            size,
            advance,
            base: 1.0,
            factor: 0.5,
            limit: 4.0,
            panes: 2,
            first_pane: 3,
        };
        assert_eq!(window.evaluate(4.0), 1.0 + 0.5 * 5.0);
        assert_eq!(window.evaluate(400.0), 4.0);
        assert_eq!(window.evaluate(0.0), 0.0);
        assert_eq!(window.open_pane(5.0), 4);
    }
}
