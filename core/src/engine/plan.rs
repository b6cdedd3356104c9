//! Plan: the quantities of a run that follow from its placement, made before the first tick.

use std::ops::Range;

use super::nics::Nics;
use super::wiring::{Policy, Wiring};
use crate::arithmetic::{max, min};
use crate::equation::OVERFULL;
use crate::instance::{Id, Instance};
use crate::topology::Groups;

/// Capacity in ticks of full rate without latency; two suffice without oscillation.
pub const TICKS: f64 = 4.0;
/// Share of a capacity below which free space is a rounding error.
const ROUNDING: f64 = 1e-12;

/// An operator on its device.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    inlets: (Id, Id),
    outputs: (Id, Id),
    pub window: Option<Id>,
    pub joins: bool,
    /// core seconds per input tuple, sending included
    pub cost: f64,
    /// core seconds for sending, per output tuple
    pub send_cost: f64,
    /// seconds that its device takes for a core second of handling
    pub slowdown: f64,
    /// tuples per slice that its subtasks can process
    pub most: f64,
    /// core seconds that it may use per turn
    pub share: f64,
}

impl Operator {
    /// Its queues, as positions in `Wiring::inlets`.
    #[inline]
    pub fn inlets(&self) -> Range<usize> {
        self.inlets.0 as usize..self.inlets.1 as usize
    }

    /// Streams out of it.
    #[inline]
    pub fn outputs(&self) -> Range<usize> {
        self.outputs.0 as usize..self.outputs.1 as usize
    }
}

/// A stream between two operators on their devices.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub selectivity: f64,
    /// tuples that it may hold
    pub room: f64,
    /// free space that counts as none
    pub least_room: f64,
    pub target: Id,
    /// whether it joins two devices
    pub remote: bool,
    /// bytes per tuple if it does, else 0
    pub remote_payload: f64,
    /// seconds that a tuple occupies its link
    pub wire: f64,
    /// ticks that a tuple is under way
    pub delay: usize,
    /// its first place in the pipe
    pub pipe: usize,
}

/// Turns of operators on devices, and streams on links, under one placement.
///
/// Devices come in the order in which a topological walk first meets them, so that the names of
/// identical devices make no difference.
#[derive(Clone, Debug)]
pub struct Plan {
    /// [N]
    pub operators: Vec<Operator>,
    /// [M]
    pub streams: Vec<Stream>,
    /// [D] devices in use, in order of first appearance, then the idle ones
    pub devices: Vec<Id>,
    /// devices in use
    pub used: usize,
    /// [D + 1] turns of the k-th device: `turns[turn_start[k]..turn_start[k + 1]]`
    turn_start: Vec<Id>,
    /// [N] operators, topological within a device
    pub turns: Vec<Id>,
    /// [D] core seconds per slice of the k-th device for tuples
    pub budget: Vec<f64>,
    /// [D] core seconds per slice that its operators use at any rate
    pub constant: Vec<f64>,
    /// whether `most` is finite for any operator
    pub limited: bool,
    /// [L + 1] streams of the l-th link in use: `link_streams[link_start[l]..link_start[l + 1]]`
    pub link_start: Vec<Id>,
    /// [R] remote streams by link
    pub link_streams: Vec<Id>,
    /// empty unless a network card has a limit
    pub nics: Option<Nics>,
    /// places of all streams in the pipe
    pub pipe: usize,
    /// core seconds per remote tuple, at each end
    pub overhead: f64,
    /// core seconds per remote byte, at each end
    pub overhead_per_byte: f64,
}

impl Plan {
    /// Compile one placement.
    #[must_use]
    pub fn new(instance: &Instance, wiring: &Wiring, placement: &[Id]) -> Self {
        let (platform, per_slice) = (&instance.platform, wiring.settings.slice_seconds);
        let (streams, pipe) = streams(instance, wiring, placement);
        let (devices, turn_start, turns) = turns(instance, placement);
        let mut constants = vec![0.0; instance.n_constants()];
        instance.write_constants(placement, &mut constants);
        let mut budget: Vec<f64> =
            devices.iter().map(|&d| platform.cores[d as usize] * per_slice).collect();
        let mut constant = vec![0.0; devices.len()];
        if !constants.is_empty() {
            for (k, &d) in devices.iter().enumerate() {
                constant[k] = min(constants[d as usize], 1.0) * budget[k];
                budget[k] -= constant[k];
            }
        }
        let mut operators = operators(instance, wiring, placement);
        write_costs(&mut operators, instance, &streams, placement);
        write_limits(&mut operators, instance, placement, per_slice, &constants);
        let (link_start, link_streams) = links(instance, placement, &streams);
        let nics = nics(instance, placement, &streams, &link_start, &link_streams);
        let mut plan = Self {
            limited: operators.iter().any(|operator| operator.most < f64::INFINITY),
            operators,
            streams,
            devices,
            used: turn_start.windows(2).take_while(|ends| ends[0] < ends[1]).count(),
            turn_start,
            turns,
            budget,
            constant,
            link_start,
            link_streams,
            nics,
            pipe,
            overhead: platform.overhead,
            overhead_per_byte: platform.overhead_per_byte,
        };
        plan.write_shares(instance, wiring, placement);
        plan
    }

    /// Turns of the k-th device, as positions in `turns`.
    #[inline]
    pub fn turns_of(&self, k: usize) -> Range<usize> {
        self.turn_start[k] as usize..self.turn_start[k + 1] as usize
    }

    /// Streams of the l-th link in use.
    #[inline]
    pub fn link(&self, l: usize) -> &[Id] {
        &self.link_streams[self.link_start[l] as usize..self.link_start[l + 1] as usize]
    }

    /// Equal shares of each device's budget, or shares in proportion to weight × cost.
    fn write_shares(&mut self, instance: &Instance, wiring: &Wiring, placement: &[Id]) {
        let weighted = wiring.settings.policy == Policy::Weighted;
        let weighed = if weighted {
            let costs = full_costs(instance, &self.operators, &self.streams, placement);
            costs.iter().zip(&wiring.settings.weights).map(|(cost, weight)| weight * cost).collect()
        } else {
            vec![1.0; self.operators.len()]
        };
        for (k, &budget) in self.budget.iter().enumerate() {
            let turns = &self.turns[self.turn_start[k] as usize..self.turn_start[k + 1] as usize];
            let total = turns.iter().fold(0.0, |total, &v| total + weighed[v as usize]);
            let factor = if total > 0.0 { budget / total } else { 0.0 };
            for &v in turns {
                self.operators[v as usize].share = weighed[v as usize] * factor;
            }
        }
    }
}

/// Core seconds in which device `d` sends or receives a tuple of stream `e`.
pub fn handling(instance: &Instance, e: usize, d: usize) -> f64 {
    let platform = &instance.platform;
    if !platform.handles() {
        return 0.0;
    }
    let handling = platform.overhead + platform.overhead_per_byte * instance.payload[e];
    handling * platform.slowdown(d)
}

/// Operators with costs of processing alone, and without shares or limits.
fn operators(instance: &Instance, wiring: &Wiring, placement: &[Id]) -> Vec<Operator> {
    let operator = |(v, &d): (usize, &Id)| Operator {
        inlets: (wiring.inlet_start[v], wiring.inlet_start[v + 1]),
        outputs: (instance.out_start[v], instance.out_end[v].max(instance.out_start[v])),
        window: wiring.window_of[v],
        joins: instance.joins[v],
        cost: instance.seconds[(v, instance.type_of(d as usize))],
        send_cost: 0.0,
        slowdown: instance.platform.slowdown(d as usize),
        most: f64::INFINITY,
        share: 0.0,
    };
    placement.iter().enumerate().map(operator).collect()
}

/// Streams, with their delays in ticks and their capacities, and the length of the pipe.
///
/// A latency that is longer than the run counts as long as the run: no tuple arrives in either.
fn streams(instance: &Instance, wiring: &Wiring, placement: &[Id]) -> (Vec<Stream>, usize) {
    let (settings, platform) = (&wiring.settings, &instance.platform);
    let mut pipe: usize = 0;
    let mut streams = Vec::with_capacity(instance.n_streams());
    for e in 0..instance.n_streams() {
        let (u, v) = instance.ends(e);
        let (a, b) = (placement[u] as usize, placement[v] as usize);
        let mut stream = Stream {
            selectivity: instance.selectivity[e],
            room: 0.0,
            least_room: 0.0,
            target: v as Id,
            remote: a != b,
            remote_payload: 0.0,
            wire: 0.0,
            delay: 0,
            pipe,
        };
        if stream.remote {
            stream.remote_payload = instance.payload[e];
            stream.wire = platform.gap + instance.payload[e] * platform.seconds_per_byte[(a, b)];
            let ticks = (platform.latency[(a, b)] / settings.dt - 1e-9).ceil();
            stream.delay = min(ticks, settings.ticks as f64) as usize;
            pipe = pipe.saturating_add(stream.delay);
        }
        streams.push(stream);
    }
    write_capacities(&mut streams, instance, wiring);
    (streams, pipe)
}

/// Devices by first appearance, and their operators in topological order.
fn turns(instance: &Instance, placement: &[Id]) -> (Vec<Id>, Vec<Id>, Vec<Id>) {
    let d = instance.n_devices();
    let mut rank = vec![Id::MAX; d];
    let mut devices = Vec::with_capacity(d);
    let mut keys = Vec::with_capacity(placement.len());
    for v in instance.in_order() {
        let rank = &mut rank[placement[v] as usize];
        if *rank == Id::MAX {
            *rank = devices.len() as Id;
            devices.push(placement[v]);
        }
        keys.push(*rank);
    }
    devices.extend((0..d).filter(|&d| rank[d] == Id::MAX).map(|d| d as Id));
    let Groups { start, positions } = Groups::new(&keys, d);
    let turns = positions.iter().map(|&i| instance.order[i as usize]).collect();
    (devices, start, turns)
}

/// Core seconds per input tuple and, for sending alone, per output tuple.
///
/// A windowed operator pays for sending when its window emits, all others with each input tuple.
fn write_costs(
    operators: &mut [Operator],
    instance: &Instance,
    streams: &[Stream],
    placement: &[Id],
) {
    if !instance.platform.handles() {
        return;
    }
    for (e, stream) in streams.iter().enumerate() {
        let u = instance.source[e] as usize;
        if stream.remote {
            let handling = handling(instance, e, placement[u] as usize);
            operators[u].send_cost += handling * stream.selectivity;
        }
    }
    for operator in operators.iter_mut().filter(|operator| operator.window.is_none()) {
        operator.cost += operator.send_cost;
    }
}

/// Core seconds per input tuple at full rate, for sending and receiving as well.
fn full_costs(
    instance: &Instance,
    operators: &[Operator],
    streams: &[Stream],
    placement: &[Id],
) -> Vec<f64> {
    let each = operators.iter().zip(placement).enumerate();
    let mut costs: Vec<f64> = each
        .map(|(v, (operator, &d))| {
            let seconds = instance.seconds[(v, instance.type_of(d as usize))];
            let (input, output) = (instance.input_rate[v], instance.output_rate[v]);
            if input > 0.0 { seconds + operator.send_cost * (output / input) } else { seconds }
        })
        .collect();
    for (e, stream) in streams.iter().enumerate() {
        let v = stream.target as usize;
        if stream.remote && instance.input_rate[v] > 0.0 {
            let received = instance.tuples[e] / instance.input_rate[v];
            costs[v] += received * handling(instance, e, placement[v] as usize);
        }
    }
    costs
}

/// Tuples per slice that the subtasks of an operator can process.
///
/// Subtasks are limited by their cores, if the device has more, and by their largest rate. 0 if
/// constant loads exceed the device or core.
fn write_limits(
    operators: &mut [Operator],
    instance: &Instance,
    placement: &[Id],
    per_slice: f64,
    constants: &[f64],
) {
    for (v, operator) in operators.iter_mut().enumerate() {
        let d = placement[v] as usize;
        let seconds = instance.seconds[(v, instance.type_of(d))];
        let (parallelism, limit) = (instance.parallelism[v], &mut operator.most);
        if parallelism < instance.platform.cores[d] && seconds > 0.0 {
            *limit = parallelism * per_slice / seconds;
        }
        if !constants.is_empty() {
            let constant = core_constant(instance, v, d);
            if *limit < f64::INFINITY {
                *limit *= max(1.0 - constant, 0.0);
            }
            if max(constants[d], constant) > 1.0 + OVERFULL {
                *limit = 0.0;
            }
        }
        if let Some(max_rate) = instance.max_rate.get(v) {
            *limit = min(*limit, parallelism * max_rate * per_slice);
        }
    }
}

/// Fraction of one core of device `d` that a subtask of operator `v` uses at any rate.
pub fn core_constant(instance: &Instance, v: usize, d: usize) -> f64 {
    if instance.has_constants() { instance.core_constant[(v, instance.type_of(d))] } else { 0.0 }
}

/// Remote streams grouped by (sender, receiver), as the first of each link, and all.
fn links(instance: &Instance, placement: &[Id], streams: &[Stream]) -> (Vec<Id>, Vec<Id>) {
    let pair = |&e: &Id| {
        let (u, v) = instance.ends(e as usize);
        (placement[u], placement[v])
    };
    let remote = streams.iter().enumerate().filter(|(_, stream)| stream.remote);
    let mut order: Vec<Id> = remote.map(|(e, _)| e as Id).collect();
    order.sort_by_key(pair);
    let mut start = vec![0];
    for link in order.chunk_by(|e, f| pair(e) == pair(f)) {
        start.push(start[start.len() - 1] + link.len() as Id);
    }
    (start, order)
}

/// Resources that remote streams share, if a network card has a limit.
fn nics(
    instance: &Instance,
    placement: &[Id],
    streams: &[Stream],
    link_start: &[Id],
    link_streams: &[Id],
) -> Option<Nics> {
    let (platform, d) = (&instance.platform, instance.n_devices());
    if platform.egress.iter().chain(&platform.ingress).all(|&seconds| seconds <= 0.0) {
        return None;
    }
    let links = link_start.len() - 1;
    let mut nics = Nics::new(links + 2 * d);
    for link in 0..links {
        for &e in &link_streams[link_start[link] as usize..link_start[link + 1] as usize] {
            let e = e as usize;
            let (u, v) = instance.ends(e);
            let (a, b) = (placement[u] as usize, placement[v] as usize);
            let payload = instance.payload[e];
            let seconds =
                [streams[e].wire, payload * platform.egress[a], payload * platform.ingress[b]];
            nics.add([link, links + a, links + d + b], seconds);
        }
    }
    Some(nics)
}

/// Capacity of each stream in tuples.
///
/// A capacity given by the user holds for all streams. Otherwise it is the number of tuples at
/// full rate in `TICKS` ticks, in the stream's latency, and in the longer of two times: twice the
/// longest latency (for so long a sender blocked on one stream starves the receivers of its
/// others), and the longest advance of a window (whose results come all at once and delay
/// everything on the same device or link). Into a join, the time by which the other inputs arrive
/// later is added. Queues in proportion to their rates fill in the same time, so that a slow
/// stream does not settle later than a fast one.
fn write_capacities(streams: &mut [Stream], instance: &Instance, wiring: &Wiring) {
    let settings = &wiring.settings;
    let longest = streams.iter().map(|stream| TICKS + 2.0 * stream.delay as f64);
    let advances = wiring.windows.iter().map(|window| TICKS + window.advance / settings.dt);
    let ticks = longest.chain(advances).fold(TICKS, max);
    let lead = if settings.capacity <= 0.0 && instance.joins.contains(&true) {
        lead(streams, instance, wiring)
    } else {
        vec![]
    };
    for (e, stream) in streams.iter_mut().enumerate() {
        let ticks = ticks + lead.get(e).unwrap_or(&0.0);
        let follows =
            instance.tuples[e] * (settings.peak * settings.dt) * (ticks + stream.delay as f64);
        stream.room = if settings.capacity > 0.0 { settings.capacity } else { follows };
        stream.least_room = ROUNDING * stream.room;
    }
}

/// Ticks by which the tuples of a stream reach a join earlier than those of its last input.
fn lead(streams: &[Stream], instance: &Instance, wiring: &Wiring) -> Vec<f64> {
    let mut latest = vec![0.0; instance.n_operators()];
    let mut arrival = vec![0.0; streams.len()];
    for (e, stream) in streams.iter().enumerate() {
        let (u, v) = instance.ends(e);
        let hop = if stream.remote { 1.0 + stream.delay as f64 } else { 0.0 };
        arrival[e] = latest[u] + hop;
        if let Some(k) = wiring.window_of[u] {
            let window = &wiring.windows[k as usize];
            arrival[e] += (window.size + window.advance) / wiring.settings.dt;
        }
        latest[v] = max(latest[v], arrival[e]);
    }
    for (arrival, &v) in arrival.iter_mut().zip(&instance.target) {
        let v = v as usize;
        *arrival = if instance.joins[v] { latest[v] - *arrival } else { 0.0 };
    }
    arrival
}
