//! The event loop of one pass.
//!
//! Events happen in the order (time, number), and each of the following steps is an event of its
//! own, at the same instant unless a duration is named. `SimPy`, and therefore the simulator of
//! GiPH, uses the same order, which decides the many ties.
//!
//! - finished, of v: hands the core to the head of the queue (granted) or frees it; then v sends
//! - sends, of v: for every stream, in the caller's order, arrived after the transfer time
//! - arrived: an input is present: counted
//! - counted: after the last input of an operator: ready
//! - ready, of v: gets a free core (granted), or joins the end of its device's queue
//! - granted, of v: finished after its work
//! - rested, of v: hands on the core that finished kept during the pause, if there is one
//! - cleared: a transfer has left its ports, which are free now
//!
//! A step that is alone at its instant is carried out at once, and only the last input of an
//! operator is an event at all; neither changes the order. Arrivals are numbered when their time is
//! decided. Under all queues but `Fifo` no operator starts before all other events of the instant
//! have happened; `Port` and `Shared` decide about transfers after that. Under `Line` an operator
//! is in the line of its device from the beginning, and ready marks that it may start.

use super::compiled::Pass;
use super::events::{
    ARRIVED, CLEARED, COUNTED, FINISHED, GRANTED, READY, RESTED, SENDS, index_of, kind_of,
};
use super::state::{Journey, Network, Progress, Queue, Rules, Run, Server, State};
use crate::arithmetic::max;
use crate::instance::Id;

/// Factors of times.
#[derive(Clone, Copy, Debug)]
pub struct Noise<'a> {
    /// [N] of the work of operators
    pub work: &'a [f64],
    /// [M] of the times of transfers
    pub sending: &'a [f64],
}

/// Simulates passes of placements, with the memory that this needs.
#[derive(Clone, Debug)]
pub struct Simulator<'a> {
    one_pass: &'a Pass,
    rules: Rules,
    /// [N] higher goes first, in queues by rank
    priority: Vec<f64>,
    /// [N] operators by falling priority, if devices hold lines
    line: Vec<Id>,
    /// [N or M, the larger] factors without noise
    ones: Vec<f64>,
    state: State,
}

impl<'a> Simulator<'a> {
    /// Prepare for placements of a problem.
    ///
    /// # Panics
    /// If there is not one priority for every operator.
    #[must_use]
    pub fn new(one_pass: &'a Pass, rules: Rules, priority: &[f64]) -> Self {
        let size = one_pass.operators.len().max(one_pass.streams.len());
        let mut simulator = Self {
            one_pass,
            rules,
            priority: vec![0.0; one_pass.operators.len()],
            line: vec![],
            ones: vec![1.0; size],
            state: State::new(one_pass, rules.network),
        };
        simulator.set_priority(priority);
        simulator
    }

    /// Use other priorities from now on.
    ///
    /// # Panics
    /// If there is not one for every operator.
    pub fn set_priority(&mut self, priority: &[f64]) {
        self.priority.copy_from_slice(priority);
        if self.rules.queue == Queue::Line {
            self.line.clone_from(&self.one_pass.order);
            self.line.sort_by(|&u, &v| {
                let key = |v: Id| falling(priority[v as usize]);
                key(u).total_cmp(&key(v))
            });
        }
    }

    /// Makespan of one pass; ∞ if lines contradict the streams, so that operators wait for ever.
    pub fn makespan(&mut self, placement: &[Id]) -> f64 {
        self.run(placement, None)
    }

    /// Makespan of one pass with noise.
    pub fn noisy_makespan(&mut self, placement: &[Id], noise: Noise<'_>) -> f64 {
        self.run(placement, Some(noise))
    }

    /// Times of all operators in the last run.
    #[must_use]
    pub fn operators(&self) -> &[Progress] {
        &self.state.operators
    }

    /// Times of all streams in the last run.
    #[must_use]
    pub fn streams(&self) -> &[Journey] {
        &self.state.streams
    }

    fn run(&mut self, placement: &[Id], noise: Option<Noise<'_>>) -> f64 {
        let (one_pass, state) = (self.one_pass, &mut self.state);
        let (n, m) = (one_pass.operators.len(), one_pass.streams.len());
        let noise = noise.unwrap_or(Noise { work: &self.ones, sending: &self.ones });
        let at_ends = (2.0 * one_pass.overhead, 2.0 * one_pass.overhead_per_byte);
        let mut run = Run {
            rules: self.rules,
            gap: one_pass.gap,
            at_ends,
            send_factor: &noise.sending[..m],
            senders: &one_pass.operators,
            streams: &one_pass.streams,
            cards: &one_pass.devices,
            links: one_pass.links.cells(),
            operators: &mut state.operators,
            journeys: &mut state.streams,
            devices: &mut state.devices,
            touched: &mut state.touched,
            events: &mut state.events,
            net: &mut state.transfers,
            now: 0.0,
            is_granting: false,
            granted: 0,
            wave: 0.0,
            alone: 0,
        };
        run.begin(one_pass, &placement[..n], &self.priority, noise.work);
        if self.rules.queue == Queue::Line {
            run.line_up(&self.line);
        }
        if self.rules.network == Network::Free {
            run.carry_out::<false>()
        } else {
            run.net.begin();
            run.carry_out::<true>()
        }
    }
}

/// A key that sorts by falling priority, NaN last.
fn falling(priority: f64) -> f64 {
    if priority.is_nan() { f64::NAN } else { 0.0 - priority }
}

impl Run<'_> {
    /// Initialise operators; those without inputs arrive now, before all other events.
    #[inline(always)]
    fn begin(&mut self, one_pass: &Pass, placement: &[Id], priority: &[f64], factor: &[f64]) {
        self.events.clear(placement.len() as u32);
        self.touched.clear(); // infinite times may have left something
        for (server, device) in self.devices.iter_mut().zip(self.cards) {
            *server = Server::idle(device);
        }
        let inputs = placement.iter().zip(priority).zip(factor);
        let rows = self.operators.iter_mut().zip(self.senders).zip(inputs);
        for (v, ((operator, sender), ((&device, priority), factor))) in rows.enumerate() {
            *operator = Progress {
                work: one_pass.work_on(v, device as usize) * factor,
                key: -priority,
                tie: v as u64,
                number: v as u32,
                waiting: sender.inputs,
                device,
                ..Progress::default()
            };
            if sender.inputs == 0 {
                self.events.push_now(ARRIVED | v as u32);
            }
        }
        self.alone = self.events.present();
    }

    /// Carry out all events; return the makespan.
    #[inline(always)]
    fn carry_out<const CONTENDED: bool>(&mut self) -> f64 {
        loop {
            if let Some((event, alone)) = self.next_event() {
                self.step::<CONTENDED>(event, alone);
                continue;
            }
            let time = self.turn::<CONTENDED>();
            if time == f64::INFINITY {
                if self.rules.queue == Queue::Line && self.is_left() {
                    return f64::INFINITY;
                }
                return if CONTENDED { max(self.now, self.net.freed) } else { self.now };
            }
            self.now = time;
        }
    }

    /// Next event of this instant, and whether it is alone at the instant.
    #[inline(always)]
    fn next_event(&mut self) -> Option<(u32, bool)> {
        if self.alone > 0 {
            self.alone -= 1;
            return self.events.pop_now().map(|event| (event, true));
        }
        if self.is_granting {
            if let Some(v) = self.next_granted() {
                return Some((GRANTED | v as u32, false));
            }
            self.is_granting = false;
        }
        let is_due = self.events.next_time() <= self.now;
        let event = if is_due { self.events.pop_later() } else { self.events.pop_now() };
        let alone = self.events.next_time() > self.now && self.events.present() == 0;
        event.map(|event| (event, alone))
    }

    /// Do the work at the end of an instant, or return the time of the next one (∞: none).
    #[inline(always)]
    fn turn<const CONTENDED: bool>(&mut self) -> f64 {
        if !self.touched.is_empty() {
            self.is_granting = true;
            self.wave += 1.0;
            return self.now;
        }
        if CONTENDED && self.net.is_unsettled {
            self.settle();
            return self.now;
        }
        let mut time = self.events.next_time();
        if CONTENDED && self.net.due <= time {
            time = self.net.due;
            self.net.due = f64::INFINITY;
            self.net.is_unsettled = time < f64::INFINITY;
        }
        time
    }

    /// Carry out one event; immediate consequences are events, unless this one is alone.
    #[inline(always)]
    fn step<const CONTENDED: bool>(&mut self, event: u32, alone: bool) {
        let (kind, v) = (kind_of(event), index_of(event));
        if CONTENDED && kind == CLEARED {
            self.release_ports(v);
        }
        if let Some(starts) = self.gets_core(kind, v, alone) {
            if alone || kind == GRANTED {
                let operator = &mut self.operators[starts];
                operator.start = self.now;
                operator.finish = self.now + operator.work;
                self.events.push(self.now, operator.finish, FINISHED | starts as u32);
            } else {
                self.events.push_now(GRANTED | starts as u32);
            }
        }
        // a pause may be shorter than rounding, so that its end is an event of this instant
        let rests = || self.events.kind_now() == Some(RESTED);
        if kind == SENDS || (kind == FINISHED && alone && !rests()) {
            self.send::<CONTENDED>(v);
        } else if kind == FINISHED {
            self.events.push_now(SENDS | v as u32);
        }
        if alone && (kind == FINISHED || kind == CLEARED) {
            // arrivals may run at once if there is nothing else
            self.alone = if self.events.are_all(ARRIVED) { self.events.present() } else { 0 };
        }
    }

    /// Operator that gets a core through this event.
    #[inline(always)]
    fn gets_core(&mut self, kind: u32, v: usize, alone: bool) -> Option<usize> {
        match kind {
            GRANTED => return Some(v),
            READY => return self.offer(v),
            ARRIVED if alone => return self.offer(v),
            ARRIVED => self.events.push_now(COUNTED | v as u32),
            COUNTED => self.events.push_now(READY | v as u32),
            FINISHED if self.rules.pause > 0.0 && self.operators[v].work > 0.0 => {
                self.events.push(self.now, self.now + self.rules.pause, RESTED | v as u32);
            }
            FINISHED | RESTED => return self.release(self.operators[v].device as usize),
            _ => {}
        }
        None
    }

    /// Schedule the arrival of every output stream of `v`, or post it to the network.
    #[inline(always)]
    fn send<const CONTENDED: bool>(&mut self, v: usize) {
        let a = self.operators[v].device as usize;
        let sender = self.senders[v];
        for e in sender.out_start as usize..sender.out_end as usize {
            let b = self.operators[self.streams[e].target as usize].device as usize;
            let mut time = self.now;
            if a != b {
                if CONTENDED {
                    self.post(e);
                    continue;
                }
                let (held, apart) = self.transfer_seconds(e, a, b);
                time = self.now + (apart + held);
            }
            self.journeys[e].departure = self.now;
            self.arrive(e, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::NONE;
    use crate::passes::compiled::{Device, Link, Operator, Stream};
    use crate::table::Table;

    /// A source that feeds two operators of one second each, by transfers of one second.
    fn fork() -> Pass {
        let operator = |inputs, out_start, out_end| Operator {
            priority: 0.0,
            level: 0,
            inputs,
            out_start,
            out_end,
        };
        let stream = |first, target| {
            let more = NONE;
            Stream { size: 1.0, tuples: 1.0, source: 0, target, first, more }
        };
        let device = Device { egress: 0.0, ingress: 0.0, kind: 0, cores: 1 };
        let link = |wire| Link { latency: 0.0, link: wire, seconds_per_byte: wire };
        let links = (0..9).map(|i| link(if i % 4 == 0 { 0.0 } else { 1.0 })).collect();
        Pass {
            operators: vec![operator(0, 0, 2), operator(1, 2, 2), operator(1, 2, 2)],
            streams: vec![stream(0, 1), stream(1, 2)],
            devices: vec![device; 3],
            links: Table::new(links, 3, 3),
            work: Table::filled(1.0, 3, 1),
            order: vec![0, 1, 2],
            gap: 0.0,
            overhead: 0.0,
            overhead_per_byte: 0.0,
        }
    }

    fn makespan(queue: Queue, network: Network, priority: [f64; 3], placement: [Id; 3]) -> f64 {
        let pass = fork();
        pass.check().expect("fits");
        let rules = Rules { queue, network, pause: 0.0, spacing: 0.0 };
        let mut simulator = Simulator::new(&pass, rules, &priority);
        let first = simulator.makespan(&placement);
        assert_eq!(first, simulator.makespan(&placement), "a run leaves nothing behind");
        first
    }

    #[test]
    fn operators_of_one_device_take_turns() {
        for queue in [Queue::Fifo, Queue::Rows, Queue::Ranked, Queue::Line] {
            assert_eq!(makespan(queue, Network::Free, [0.0; 3], [0, 0, 0]), 3.0);
            assert_eq!(makespan(queue, Network::Free, [0.0; 3], [0, 1, 1]), 4.0);
            assert_eq!(makespan(queue, Network::Free, [0.0; 3], [0, 1, 2]), 3.0);
        }
    }

    #[test]
    fn transfers_out_of_one_device_take_turns_where_they_must() {
        let expected = [
            (Network::Sender, 4.0),
            (Network::Link, 3.0),
            (Network::Port, 4.0),
            (Network::Shared, 3.0),
        ];
        for (network, seconds) in expected {
            assert_eq!(makespan(Queue::Fifo, network, [0.0; 3], [0, 1, 2]), seconds);
        }
    }

    #[test]
    fn a_line_that_contradicts_the_streams_waits_for_ever() {
        let line = [0.0, 1.0, 0.0];
        assert_eq!(makespan(Queue::Line, Network::Free, line, [0, 0, 1]), f64::INFINITY);
        assert_eq!(makespan(Queue::Line, Network::Free, line, [0, 1, 0]), 3.0);
    }
}
