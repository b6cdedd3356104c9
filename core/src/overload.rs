//! What each source of an overloaded job gets: demands filled forward, acceptance passed backward.
//!
//! All amounts are shares of full rates. In a round, every operator wants what arrives at it, as
//! far as its outputs accept it. Devices fill the wants of their operators with CPU, links and
//! network cards those of their streams with time: all get the same level, or less if they want
//! less. Backward, an operator that cannot take in everything accepts its inputs, which wait in
//! queues of equal times, up to one level. Rounds move half-way from what they assumed to what they
//! found. With several kinds of resources such fixed points need not be unique, so the rounds are
//! the definition.

use crate::arithmetic::{max, min};
use crate::instance::{Id, Instance};
use crate::table::Table;

/// Largest number of rounds.
const MAX_ROUNDS: usize = 50;
/// Largest change in a round after which the rest would change nothing.
const STEADY: f64 = 1e-6;
/// Largest number of steps to find a level.
const MAX_STEPS: usize = 64;
/// Share by which a level may miss.
const TIE: f64 = 1e-12;

/// What operators and streams need at full rate, and where.
pub struct Needs {
    /// [N] share of its device, handling of its remote streams included
    pub cpu: Vec<f64>,
    /// [N]
    pub device: Vec<Id>,
    /// [D] share of each device beside constant loads
    pub room: Vec<f64>,
    /// [N] largest share by which a subtask uses its core
    pub most: Vec<f64>,
    /// [3, M] share of its link, of the sender's and the receiver's network card
    pub wire: Table,
    /// [3, M] the link, by the pair of devices in use, and the two cards
    pub on: Table<Id>,
    /// [3] numbers of links and cards
    pub wires: [usize; 3],
}

impl Needs {
    /// What a placement needs, but for the room beside constant loads and the limits of subtasks.
    #[must_use]
    pub fn new(instance: &Instance, place: &[Id], room: Vec<f64>, most: Vec<f64>) -> Self {
        let (m, d) = (instance.n_streams(), instance.n_devices());
        let operators = place.iter().enumerate();
        let mut cpu: Vec<f64> = operators.map(|(v, &a)| instance.load_on(v, a as usize)).collect();
        let mut wire = Table::filled(0.0, 3, m);
        let mut on = Table::filled(0, 3, m);
        let mut pairs = vec![None; d * d];
        let mut in_use = 0;
        for e in 0..m {
            let (u, v) = instance.ends(e);
            let (a, b) = (place[u] as usize, place[v] as usize);
            let pair = *pairs[a * d + b].get_or_insert_with(|| {
                in_use += 1;
                in_use - 1
            });
            (on[(0, e)], on[(1, e)], on[(2, e)]) = (pair, a as Id, b as Id);
            if a != b {
                cpu[u] += instance.stream_handling(e, a, 1.0);
                cpu[v] += instance.stream_handling(e, b, 1.0);
                (wire[(0, e)], wire[(1, e)], wire[(2, e)]) = instance.stream_loads(e, a, b);
            }
        }
        let wires = [in_use as usize, d, d];
        Self { cpu, device: place.to_vec(), room, most, wire, on, wires }
    }
}

/// Shares of operators and streams: assumed by a round, and computed by it.
struct Rounds<'a> {
    instance: &'a Instance,
    needs: &'a Needs,
    /// [N], [M] shares that CPU and wires would let through
    cpu: Vec<f64>,
    wires: Vec<f64>,
    /// [M], [N] shares that are accepted of streams, and of what sources generate
    accepted: Vec<f64>,
    own: Vec<f64>,
    /// [M] what each stream would carry if all of it was accepted
    offered: Vec<f64>,
    /// [N] demand of operators, and its limit by their CPU and their outputs
    wanted: Vec<f64>,
    free: Vec<f64>,
}

/// Shares of the sources [S] after the rounds.
#[must_use]
pub fn shares(instance: &Instance, needs: &Needs) -> Vec<f64> {
    let (n, m) = (instance.n_operators(), instance.n_streams());
    let mut rounds = Rounds {
        instance,
        needs,
        cpu: vec![1.0; n],
        wires: vec![1.0; m],
        accepted: vec![1.0; m],
        own: vec![1.0; n],
        offered: vec![1.0; m],
        wanted: vec![1.0; n],
        free: vec![1.0; n],
    };
    for _ in 0..MAX_ROUNDS {
        rounds.forward();
        let change = max(rounds.fill_devices(), rounds.fill_wires());
        if max(change, rounds.backward()) < STEADY {
            break;
        }
    }
    rounds.forward();
    let sources = instance.sources.iter().map(|&v| v as usize);
    sources.map(|v| min(rounds.own[v], rounds.free[v])).collect()
}

impl Rounds<'_> {
    /// Write what each stream would carry if all of it was accepted, and what operators want.
    fn forward(&mut self) {
        for v in self.instance.in_order() {
            let supply = self.supply(v);
            let (mut least, mut second, mut first) = (1.0, 1.0, None);
            for e in self.instance.outputs(v) {
                let limit = min(self.accepted[e], self.wires[e]);
                if limit < least {
                    (least, second, first) = (limit, least, Some(e));
                } else {
                    second = min(second, limit);
                }
            }
            let most = self.needs.most[v];
            self.wanted[v] = min(min(supply, most), least);
            self.free[v] = min(min(self.cpu[v], most), least);
            let through = min(min(supply, most), self.cpu[v]);
            for e in self.instance.outputs(v) {
                self.offered[e] = min(through, if first == Some(e) { second } else { least });
            }
        }
    }

    /// Share of its full input that could arrive at an operator; of a join the least.
    fn supply(&self, v: usize) -> f64 {
        let instance = self.instance;
        let mut supply = 1.0;
        if instance.input_rate[v] <= 0.0 {
            return supply;
        }
        let ports = instance.ports(v).len() as f64;
        for port in instance.ports(v) {
            let mut arriving = instance.rate[v] / ports;
            for e in instance.port_inputs(v, port) {
                arriving += instance.intake[e] * min(self.offered[e], self.wires[e]);
            }
            supply = min(supply, arriving * ports / instance.input_rate[v]);
        }
        supply
    }

    /// Fill devices with what their operators want; return the largest change.
    fn fill_devices(&mut self) -> f64 {
        let needs = self.needs;
        let wanted: Vec<f64> = self.wanted.iter().zip(&needs.cpu).map(|(a, b)| a * b).collect();
        let level = fill(&needs.device, &wanted, &needs.room);
        let mut change = 0.0;
        for (v, cpu) in self.cpu.iter_mut().enumerate() {
            let share = level[needs.device[v] as usize];
            let limit = if needs.cpu[v] > share { share / needs.cpu[v] } else { 1.0 };
            change = max(change, (limit - *cpu).abs());
            *cpu = (*cpu + limit) / 2.0;
        }
        change
    }

    /// Fill links and network cards with what their streams want; return the largest change.
    fn fill_wires(&mut self) -> f64 {
        let needs = self.needs;
        let mut left = vec![1.0; self.wires.len()];
        for kind in 0..3 {
            let (on, wire) = (needs.on.row(kind), needs.wire.row(kind));
            let streams = self.offered.iter().zip(&self.accepted).zip(wire);
            let demand: Vec<f64> = streams.map(|((&a, &b), wire)| min(a, b) * wire).collect();
            let level = fill(on, &demand, &vec![1.0; needs.wires[kind]]);
            for (e, left) in left.iter_mut().enumerate() {
                let share = level[on[e] as usize];
                if wire[e] > share {
                    *left = min(*left, share / wire[e]);
                }
            }
        }
        let mut change = 0.0;
        for (wire, &left) in self.wires.iter_mut().zip(&left) {
            change = max(change, (left - *wire).abs());
            *wire = (*wire + left) / 2.0;
        }
        change
    }

    /// Pass on what operators accept, from the sinks to the sources; return the largest change.
    fn backward(&mut self) -> f64 {
        let instance = self.instance;
        let mut change = 0.0;
        for v in instance.in_order().rev() {
            if instance.input_rate[v] <= 0.0 {
                continue;
            }
            let mut most = min(self.cpu[v], self.needs.most[v]);
            for e in instance.outputs(v) {
                most = min(most, min(self.accepted[e], self.wires[e]));
            }
            let ports = instance.ports(v).len() as f64;
            for port in instance.ports(v) {
                let generated = instance.rate[v] / ports;
                let taken = most * instance.input_rate[v] / ports;
                let level = self.accepted_level(v, port, generated, taken);
                for e in instance.port_inputs(v, port) {
                    change = max(change, (level - self.accepted[e]).abs());
                    self.accepted[e] = (self.accepted[e] + level) / 2.0;
                }
                if generated > 0.0 {
                    change = max(change, (level - self.own[v]).abs());
                    self.own[v] = (self.own[v] + level) / 2.0;
                }
            }
        }
        change
    }

    /// Level up to which the inputs of a port are accepted, so that their sum is the port's input.
    fn accepted_level(&self, v: usize, port: usize, generated: f64, taken: f64) -> f64 {
        let instance = self.instance;
        let mut size = generated;
        for e in instance.port_inputs(v, port) {
            size += instance.intake[e];
        }
        if size <= 0.0 {
            return 1.0;
        }
        let (mut level, mut low) = (taken / size, 0.0);
        for _ in 0..MAX_STEPS {
            let mut total = generated * min(1.0, level);
            let mut rest = if level < 1.0 { generated } else { 0.0 };
            for e in instance.port_inputs(v, port) {
                let brought = min(self.offered[e], self.wires[e]);
                total += instance.intake[e] * min(brought, level);
                rest += if brought > level { instance.intake[e] } else { 0.0 };
            }
            low = taken - total;
            if low <= TIE * taken || rest <= 0.0 {
                break;
            }
            level += low / rest;
        }
        if low > TIE * taken { 1.0 } else { min(1.0, level) }
    }
}

impl Instance {
    /// Streams into a port of an operator.
    fn port_inputs(&self, v: usize, port: usize) -> impl Iterator<Item = usize> + '_ {
        let inputs = self.inputs(v).iter().map(|&e| e as usize);
        inputs.filter(move |&e| self.port[e] as usize == port)
    }
}

/// The level up to which each resource serves demands; infinite if it serves all.
fn fill(of: &[Id], wanted: &[f64], room: &[f64]) -> Vec<f64> {
    let mut left = room.to_vec();
    let mut count = vec![0.0; room.len()];
    let mut waiting: Vec<bool> = wanted.iter().map(|&share| share > 0.0).collect();
    for (&r, _) in of.iter().zip(&waiting).filter(|(_, waits)| **waits) {
        count[r as usize] += 1.0;
    }
    let mut level = vec![f64::INFINITY; room.len()];
    loop {
        for ((level, &left), &count) in level.iter_mut().zip(&left).zip(&count) {
            *level = if count > 0.0 { left / count } else { f64::INFINITY };
        }
        let mut changed = false;
        for (i, &r) in of.iter().enumerate() {
            let r = r as usize;
            if waiting[i] && wanted[i] <= level[r] {
                waiting[i] = false;
                left[r] -= wanted[i];
                count[r] -= 1.0;
                changed = true;
            }
        }
        if !changed {
            return level;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_wants_are_filled_and_the_others_share_the_rest() {
        let level = fill(&[0, 0, 0, 1], &[0.1, 0.8, 0.9, 0.2], &[1.0, 1.0]);
        assert!((level[0] - 0.45).abs() < 1e-15);
        assert_eq!(level[1], f64::INFINITY);
    }
}
