//! Times of single tuples: each is followed from queue to queue, event by event.
//!
//! The loop over ticks moves amounts of tuples, which have no time of service and come evenly.
//! Here a tuple waits until a core of its device is free, first come first served, and is then
//! processed for its seconds; it holds network cards and link in turn, and travels for the latency.
//! Queues have no limit, so the times exist only while every resource carries its load.

use std::collections::VecDeque;

use super::events::{Event, Events, Kind, Stamp};
use super::plan::{Plan, core_constant, handling};
use super::wiring::{Policy, Wiring};
use super::{Stopped, filled, go_on};
use crate::arithmetic::{max, min};
use crate::instance::{Id, Instance};
use crate::random::Xorshift;
use crate::table::Table;
use crate::watch::Watch;

/// Tuples in all queues, or events, above which a run is given up.
pub const MAX_WAITING: usize = 1 << 20;
/// Share of a run before tuples count.
const WARM: f64 = 0.2;
/// Time of admission, before a source takes a tuple in.
const NO_TIME: f64 = -1.0;
/// Nanoseconds of an event.
const EVENT: usize = 50;

/// What is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Randomness {
    Nothing,
    Arrivals,
    /// Arrivals and times of service.
    All,
}

/// Times of tuples at sinks, as far as there is room for them.
pub struct Times<'a> {
    pub since_generation: &'a mut [f64],
    pub since_admission: &'a mut [f64],
    /// source tuples that each of them represents
    pub weight: &'a mut [f64],
}

/// Follow tuples under a placement until a horizon; return how many times were written.
///
/// `weights` [N] are the source tuples that an input tuple of a sink represents. 0 if a resource is
/// too full, so that too many tuples wait.
///
/// # Errors
/// Why the run ended before its time.
#[allow(clippy::too_many_arguments)]
pub fn follow(
    instance: &Instance,
    wiring: &Wiring,
    placement: &[Id],
    weights: &[f64],
    (random, seed): (Randomness, u64),
    horizon: f64,
    times: &mut Times<'_>,
    watch: &mut Watch<'_>,
) -> Result<usize, Stopped> {
    let plan = Plan::new(instance, wiring, placement);
    let idle = plan.operators.iter().any(|operator| operator.most <= 0.0);
    if idle || plan.budget.iter().any(|&budget| budget <= 0.0) {
        return Ok(0);
    }
    let mut run = Tuples::new(instance, wiring, placement, plan, (random, seed))?;
    run.begin();
    let mut written = 0;
    while !run.events.is_full() && run.waiting < MAX_WAITING - 1 {
        go_on(watch, EVENT)?;
        let Some(event) = run.events.take().filter(|event| event.time <= horizon) else {
            return Ok(written);
        };
        if let Some((v, at, stamp)) = run.happen(event) {
            let weight = weights[v];
            if weight > 0.0
                && stamp.generated >= WARM * horizon
                && written < times.since_generation.len()
            {
                times.since_generation[written] = at - stamp.generated;
                times.since_admission[written] = at - stamp.admitted;
                times.weight[written] = weight;
                written += 1;
            }
        }
    }
    Ok(0)
}

/// Cores by device, or with fixed shares by operator.
struct Cores {
    /// number of cores
    count: usize,
    /// times at which used ones become free
    free: Vec<f64>,
    /// seconds that a core is taken for a second of work
    stretch: f64,
}

impl Cores {
    /// Cores for an amount of CPU, that of `count` cores.
    fn new(held: f64, count: f64) -> Self {
        let count = max(count, 1.0);
        let stretch = count / max(held, 1e-300);
        Self { count: (count as usize).max(1), free: vec![], stretch }
    }

    /// Take the core that is free first, for some core seconds; return when.
    fn start(&mut self, now: f64, work: f64) -> f64 {
        if work == 0.0 {
            return now;
        }
        if self.free.len() < self.count {
            self.free.push(now + work * self.stretch);
            return now;
        }
        let mut core = 0;
        for (c, &free) in self.free.iter().enumerate().skip(1) {
            if free < self.free[core] {
                core = c;
            }
        }
        let start = max(now, self.free[core]);
        self.free[core] = start + work * self.stretch;
        start
    }
}

/// An operator and its subtasks.
struct Server {
    /// its cores
    cores: Id,
    /// subtasks, 0 without a limit
    slots: usize,
    /// subtasks that process a tuple
    busy: usize,
    /// seconds that a subtask is taken for a second of work
    hold: f64,
    /// seconds that a subtask is taken for a tuple, at least
    least_hold: f64,
    /// tuples that wait for a subtask
    queue: VecDeque<Tuple>,
}

/// A tuple at its operator.
#[derive(Clone, Copy)]
struct Tuple {
    stamp: Stamp,
    /// core seconds for receiving it
    receiving: f64,
}

/// The way of a stream between two devices.
struct Way {
    sending: f64,
    receiving: f64,
    a: usize,
    b: usize,
    /// parts of tuples that it has still to carry
    credit: f64,
}

/// Tuples that a window took in, and the sums of their stamps.
#[derive(Clone, Copy)]
struct Pane {
    count: f64,
    generated: f64,
    admitted: f64,
}

const EMPTY: Pane = Pane { count: 0.0, generated: 0.0, admitted: 0.0 };

/// Where all tuples are, and what will happen to them.
struct Tuples<'a> {
    instance: &'a Instance,
    wiring: &'a Wiring,
    plan: Plan,
    seconds: Vec<f64>,
    random: Randomness,
    generator: Xorshift,
    events: Events,
    cores: Vec<Cores>,
    servers: Vec<Server>,
    /// by port, tuples that wait for the other ports of a join
    ports: Vec<VecDeque<Tuple>>,
    /// in all queues
    waiting: usize,
    ways: Vec<Way>,
    /// [D, D] times from which links are free, and [D] network cards
    link: Table,
    egress: Vec<f64>,
    ingress: Vec<f64>,
    panes: Vec<Pane>,
    /// [K] advances of the window
    advanced: Vec<f64>,
}

impl<'a> Tuples<'a> {
    /// A run before its first event.
    fn new(
        instance: &'a Instance,
        wiring: &'a Wiring,
        placement: &[Id],
        plan: Plan,
        (random, state): (Randomness, u64),
    ) -> Result<Self, Stopped> {
        let d = instance.n_devices();
        let each = placement.iter().enumerate();
        let seconds = each.map(|(v, &d)| instance.seconds[(v, instance.type_of(d as usize))]);
        Ok(Self {
            seconds: seconds.collect(),
            random,
            generator: Xorshift::in_state(state),
            events: Events::new(MAX_WAITING),
            cores: cores(instance, wiring, &plan),
            servers: servers(instance, wiring, placement, &plan),
            ports: vec![VecDeque::new(); instance.port_start[placement.len()] as usize],
            waiting: 0,
            ways: ways(instance, placement),
            link: Table::filled(0.0, d, d),
            egress: vec![0.0; d],
            ingress: vec![0.0; d],
            panes: filled(EMPTY, wiring.n_panes())?,
            advanced: vec![0.0; wiring.windows.len()],
            instance,
            wiring,
            plan,
        })
    }

    /// Draw a number above 0 and below 1.
    fn uniform(&mut self) -> f64 {
        ((self.generator.draw() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    }

    /// Plan the first tuples of the sources, and the first advances of the windows.
    fn begin(&mut self) {
        for (s, &v) in self.wiring.sources.iter().enumerate() {
            let rate = self.instance.rate[v as usize];
            if rate > 0.0 {
                let at = self.uniform() / rate;
                self.generate_at(s, at);
            }
        }
        for (k, window) in self.wiring.windows.iter().enumerate() {
            self.plan_event(window.advance, Kind::Advance, k, Stamp::NONE);
        }
    }

    fn plan_event(&mut self, time: f64, kind: Kind, subject: usize, stamp: Stamp) {
        self.events.add(Event { time, kind, subject: subject as Id, stamp });
    }

    fn generate_at(&mut self, s: usize, at: f64) {
        self.plan_event(at, Kind::Generate, s, Stamp { generated: at, admitted: NO_TIME });
    }

    /// Plan the next tuple of a source.
    fn generate(&mut self, s: usize, now: f64) {
        let gap = if self.random == Randomness::Nothing { 1.0 } else { -self.uniform().ln() };
        self.generate_at(s, now + gap / self.instance.rate[self.wiring.sources[s] as usize]);
    }

    /// Let an event happen; return an operator that processes a tuple, when it is done, and the
    /// tuple's stamp.
    fn happen(&mut self, event: Event) -> Option<(usize, f64, Stamp)> {
        let Event { time: now, kind, subject, stamp } = event;
        let subject = subject as usize;
        let (v, tuple) = match kind {
            Kind::Send => {
                let at = self.cross(subject, now);
                self.plan_event(at, Kind::Arrive, subject, stamp);
                return None;
            }
            Kind::Collect => {
                self.collect(subject, stamp);
                return None;
            }
            Kind::Advance => {
                self.advance(subject, now);
                return None;
            }
            Kind::Free => (subject, self.free(subject)?),
            Kind::Generate => {
                self.generate(subject, now);
                let v = self.wiring.sources[subject] as usize;
                (v, self.served_at_once(v, Tuple { stamp, receiving: 0.0 })?)
            }
            Kind::Arrive => {
                let v = self.instance.target[subject] as usize;
                let mut tuple = Tuple { stamp, receiving: self.ways[subject].receiving };
                if self.instance.joins[v] {
                    tuple = self.join(v, self.instance.port[subject] as usize, tuple)?;
                }
                (v, self.served_at_once(v, tuple)?)
            }
        };
        let factor = if self.random == Randomness::All { -self.uniform().ln() } else { 1.0 };
        let (at, stamp) = self.serve(v, now, factor, tuple);
        Some((v, at, stamp))
    }

    /// Free a subtask; return the tuple that it processes next.
    fn free(&mut self, v: usize) -> Option<Tuple> {
        let server = &mut self.servers[v];
        server.busy -= 1;
        let tuple = server.queue.pop_front()?;
        self.waiting -= 1;
        Some(tuple)
    }

    /// The tuple, unless all subtasks are busy and it has to wait.
    fn served_at_once(&mut self, v: usize, tuple: Tuple) -> Option<Tuple> {
        let server = &mut self.servers[v];
        if server.slots == 0 || server.busy < server.slots {
            return Some(tuple);
        }
        server.queue.push_back(tuple);
        self.waiting += 1;
        None
    }

    /// A set of one tuple from every port of a join, if it is complete.
    fn join(&mut self, v: usize, port: usize, tuple: Tuple) -> Option<Tuple> {
        self.ports[port].push_back(tuple);
        self.waiting += 1;
        let ports = &mut self.ports[self.instance.ports(v)];
        if ports.iter().any(VecDeque::is_empty) {
            return None;
        }
        let mut set = Tuple { stamp: tuple.stamp, receiving: 0.0 };
        for part in ports.iter_mut().filter_map(VecDeque::pop_front) {
            set.stamp.generated = min(set.stamp.generated, part.stamp.generated);
            set.stamp.admitted = min(set.stamp.admitted, part.stamp.admitted);
            set.receiving += part.receiving;
            self.waiting -= 1;
        }
        Some(set)
    }

    /// Process a tuple when a core is free; return when it is done, and its stamp.
    fn serve(&mut self, v: usize, now: f64, factor: f64, tuple: Tuple) -> (f64, Stamp) {
        let is_window = self.plan.operators[v].window.is_some();
        let own = self.seconds[v] + tuple.receiving;
        let work = factor * if is_window { own } else { own + self.plan.operators[v].send_cost };
        let server = &mut self.servers[v];
        let start = self.cores[server.cores as usize].start(now, work);
        let at = start + factor * own;
        let mut stamp = tuple.stamp;
        if stamp.admitted == NO_TIME {
            stamp.admitted = start;
        }
        if server.slots > 0 {
            server.busy += 1;
            let freed = start + max(work * server.hold, server.least_hold);
            self.plan_event(freed, Kind::Free, v, Stamp::NONE);
        }
        if is_window {
            self.plan_event(at, Kind::Collect, v, stamp);
        } else {
            self.emit(v, 1.0, at, stamp);
        }
        (at, stamp)
    }

    /// Put the results of an operator on its streams; of parts of tuples, the sums when whole.
    fn emit(&mut self, v: usize, amount: f64, at: f64, stamp: Stamp) {
        for e in self.instance.outputs(v) {
            let way = &mut self.ways[e];
            way.credit += amount * self.instance.selectivity[e];
            let whole = (way.credit + 1e-9).floor();
            way.credit -= whole;
            let kind = if way.a == way.b { Kind::Arrive } else { Kind::Send };
            let time = at + way.sending;
            for _ in 0..whole as usize {
                if self.events.is_full() {
                    break;
                }
                self.plan_event(time, kind, e, stamp);
            }
        }
    }

    /// Send a tuple through network card, link and network card; return when it arrives.
    fn cross(&mut self, e: usize, now: f64) -> f64 {
        let (platform, size) = (&self.instance.platform, self.instance.payload[e]);
        let (a, b) = (self.ways[e].a, self.ways[e].b);
        let out = max(now, self.egress[a]);
        self.egress[a] = out + size * platform.egress[a];
        let on = max(out, self.link[(a, b)]);
        self.link[(a, b)] = on + platform.gap + size * platform.seconds_per_byte[(a, b)];
        let into = max(on, self.ingress[b]);
        self.ingress[b] = into + size * platform.ingress[b];
        let alone = now + platform.gap + size * platform.wire_between(a, b);
        let last = max(max(max(self.egress[a], self.link[(a, b)]), self.ingress[b]), alone);
        last + platform.latency[(a, b)]
    }

    /// Put a tuple into the open pane of a window.
    fn collect(&mut self, v: usize, stamp: Stamp) {
        if let Some(k) = self.plan.operators[v].window {
            let window = &self.wiring.windows[k as usize];
            let pane = &mut self.panes[window.open_pane(self.advanced[k as usize])];
            pane.count += 1.0;
            pane.generated += stamp.generated;
            pane.admitted += stamp.admitted;
        }
    }

    /// Evaluate a window, and open its next pane; results have the mean stamps of its tuples.
    fn advance(&mut self, k: usize, now: f64) {
        let window = &self.wiring.windows[k];
        let mut sum = EMPTY;
        for pane in &self.panes[window.first_pane..][..window.panes] {
            sum.count += pane.count;
            sum.generated += pane.generated;
            sum.admitted += pane.admitted;
        }
        if sum.count > 0.0 {
            let (v, emitted) = (window.operator, window.evaluate(sum.count));
            let cores = self.servers[v].cores as usize;
            let at = self.cores[cores].start(now, emitted * self.plan.operators[v].send_cost);
            let stamp =
                Stamp { generated: sum.generated / sum.count, admitted: sum.admitted / sum.count };
            self.emit(v, emitted, at, stamp);
        }
        self.advanced[k] += 1.0;
        self.panes[window.open_pane(self.advanced[k])] = EMPTY;
        let next = (self.advanced[k] + 1.0) * window.advance;
        self.plan_event(next, Kind::Advance, k, Stamp::NONE);
    }
}

/// Cores of all devices, or with fixed shares of all operators.
fn cores(instance: &Instance, wiring: &Wiring, plan: &Plan) -> Vec<Cores> {
    let per_slice = wiring.settings.slice_seconds;
    if wiring.settings.policy != Policy::Dynamic {
        let held = plan.operators.iter().map(|operator| operator.share / per_slice);
        return held.map(|held| Cores::new(held, (held - 1e-9).ceil())).collect();
    }
    let mut held = vec![0.0; plan.devices.len()];
    for (&device, budget) in plan.devices.iter().zip(&plan.budget) {
        held[device as usize] = budget / per_slice;
    }
    let each = held.into_iter().zip(&instance.platform.cores);
    each.map(|(held, cores)| Cores::new(held, (cores - 1e-9).ceil())).collect()
}

/// All operators, with the slots of their subtasks.
fn servers(instance: &Instance, wiring: &Wiring, placement: &[Id], plan: &Plan) -> Vec<Server> {
    let by_device = wiring.settings.policy == Policy::Dynamic;
    let server = |(v, &d): (usize, &Id)| {
        let mut server = Server {
            cores: if by_device { d } else { v as Id },
            slots: 0,
            busy: 0,
            hold: 1.0,
            least_hold: 0.0,
            queue: VecDeque::new(),
        };
        if plan.operators[v].most < f64::INFINITY {
            let parallelism = instance.parallelism[v];
            let slots = max((parallelism - 1e-9).ceil(), 1.0);
            server.slots = slots as usize;
            server.hold = slots / parallelism;
            server.hold /= max(1.0 - core_constant(instance, v, d as usize), 1e-9);
            if let Some(max_rate) = instance.max_rate.get(v) {
                server.least_hold = slots / (parallelism * max_rate);
            }
        }
        server
    };
    placement.iter().enumerate().map(server).collect()
}

/// The ways of all streams.
fn ways(instance: &Instance, placement: &[Id]) -> Vec<Way> {
    let way = |e: usize| {
        let (u, v) = instance.ends(e);
        let (a, b) = (placement[u] as usize, placement[v] as usize);
        let handled = |d: usize| if a == b { 0.0 } else { handling(instance, e, d) };
        Way { sending: handled(a), receiving: handled(b), a, b, credit: 0.0 }
    };
    (0..instance.n_streams()).map(way).collect()
}
