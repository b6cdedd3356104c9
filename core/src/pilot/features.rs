//! What pilot sees of devices, under the placement so far.
//!
//! All loads are in units of the yardstick, the least peak that any placement could have.

use crate::anneal::level::{Entry, Level};
use crate::arithmetic::{largest, max, min};
use crate::check::{Wrong, indices, length};
use crate::instance::Id;
use crate::packing::SLACK;
use crate::table::Table;

/// Numbers of features of a device and of a decision; `streamplace.learn.models.pilot.features`
/// names their columns.
pub const OF_DEVICE: usize = 20;
pub const OF_STEP: usize = 6;

/// Largest value of a feature that has no bound of its own.
const MAX_VALUE: f64 = 4.0;

/// A problem as pilot sees it.
#[derive(Clone, Debug)]
pub struct Features {
    pub level: Level,
    pub yardstick: f64,
    /// [U] units in the order in which they are placed
    pub order: Vec<Id>,
    /// [D] class of interchangeable devices
    group: Vec<Id>,
    /// [U] smallest load over devices
    least: Vec<f64>,
    /// [D] mean yardsticks per byte/s of the links out of a device
    wire: Vec<f64>,
}

impl Features {
    /// Features of a checked level.
    pub fn new(
        level: Level,
        yardstick: f64,
        order: Vec<Id>,
        group: Vec<Id>,
    ) -> Result<Self, Wrong> {
        let (n, d) = (level.n_units(), level.n_devices());
        length("order", &order, n)?;
        indices("order", &order, n)?;
        length("group", &group, d)?;
        indices("group", &group, d)?;
        let least = (0..n).map(|u| level.load.row(u).iter().copied().fold(f64::INFINITY, min));
        let least = least.collect();
        let links = &level.platform.seconds_per_byte;
        let others = d.saturating_sub(1).max(1) as f64;
        let mean = |a| links.row(a).iter().fold(0.0, |sum, wire| sum + wire) / others / yardstick;
        let wire = (0..d).map(mean).collect();
        Ok(Self { level, yardstick, order, group, least, wire })
    }

    /// Number of devices, D.
    #[must_use]
    pub fn n_devices(&self) -> usize {
        self.group.len()
    }
}

/// A partial placement; loads in yardsticks.
#[derive(Clone, Debug)]
pub struct State {
    /// [U]
    place: Vec<Option<Id>>,
    /// [D]
    load: Vec<f64>,
    /// [D, D]
    link: Table,
    /// [D] load of the outgoing network card
    sent: Vec<f64>,
    /// [D] load of the incoming one
    taken: Vec<f64>,
    /// [D] flow between the device's units and units that have no device yet
    loose: Vec<f64>,
    /// [D] units on the device
    units: Vec<u32>,
    peak: f64,
    /// CPU load still to come, and of all units
    coming: f64,
    all_load: f64,
    /// device of the decision before
    last: Option<usize>,
    flows: Flows,
}

/// Bytes/s of a unit to and from the units on each device, and with units that have none.
#[derive(Clone, Debug)]
struct Flows {
    /// [D]
    out: Vec<f64>,
    /// [D]
    back: Vec<f64>,
    loose: f64,
    /// devices to or from which there is a flow, ascending
    partners: Vec<usize>,
    /// [D] largest load of the links out of a device and into it
    fullest_out: Vec<f64>,
    fullest_in: Vec<f64>,
}

impl State {
    /// State in which no unit has a device.
    #[must_use]
    pub fn new(features: &Features) -> Self {
        let d = features.n_devices();
        let all = features.least.iter().fold(0.0, |sum, least| sum + least / features.yardstick);
        let none = vec![0.0; d];
        Self {
            place: vec![None; features.order.len()],
            load: none.clone(),
            link: Table::filled(0.0, d, d),
            sent: none.clone(),
            taken: none.clone(),
            loose: none.clone(),
            units: vec![0; d],
            peak: 0.0,
            coming: all,
            all_load: all,
            last: None,
            flows: Flows {
                out: none.clone(),
                back: none.clone(),
                loose: 0.0,
                partners: vec![],
                fullest_out: none.clone(),
                fullest_in: none,
            },
        }
    }

    /// Device of every unit that has one.
    #[must_use]
    pub fn place(&self) -> &[Option<Id>] {
        &self.place
    }

    /// Load of the fullest resource, in yardsticks.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.peak
    }

    /// Place unit `u`, which has no device, on device `a`.
    pub fn put(&mut self, features: &Features, u: usize, a: usize) {
        self.place[u] = Some(a as Id);
        self.units[a] += 1;
        self.last = Some(a);
        self.shift(features, u, a, 1.0);
        self.peak = max(self.peak, self.load[a]);
    }

    /// Remove unit `u` from its device, if it has one; returns the device.
    pub fn remove(&mut self, features: &Features, u: usize) -> Option<usize> {
        let a = self.place[u].take()? as usize;
        self.units[a] -= 1;
        self.shift(features, u, a, -1.0);
        self.peak = max(largest(0.0, &self.load), largest(0.0, &self.sent));
        self.peak = max(self.peak, largest(0.0, &self.taken));
        self.peak = max(self.peak, largest(0.0, self.link.cells()));
        Some(a)
    }

    /// Add or remove what unit `u` loads from device `a` on.
    fn shift(&mut self, features: &Features, u: usize, a: usize, sign: f64) {
        let (level, unit) = (&features.level, sign / features.yardstick);
        let (platform, wire) = (&level.platform, &level.platform.seconds_per_byte);
        self.load[a] += level.load_on(u, a) * unit;
        self.coming -= features.least[u] * unit;
        for &Entry { peer, sent, taken } in level.around(u) {
            let flow = sent + taken;
            let Some(b) = self.place[peer as usize] else {
                self.loose[a] += sign * flow;
                continue;
            };
            let b = b as usize;
            self.loose[b] -= sign * flow;
            if b == a {
                continue;
            }
            let (out, back) = (sent * unit, taken * unit);
            self.link[(a, b)] += out * wire[(a, b)];
            self.link[(b, a)] += back * wire[(b, a)];
            self.sent[a] += out * platform.egress[a];
            self.taken[b] += out * platform.ingress[b];
            self.sent[b] += back * platform.egress[b];
            self.taken[a] += back * platform.ingress[a];
            self.peak = max(self.peak, max(self.link[(a, b)], self.link[(b, a)]));
            self.peak = max(self.peak, max(self.sent[a], self.taken[b]));
            self.peak = max(self.peak, max(self.sent[b], self.taken[a]));
        }
    }

    /// Write which devices unit `u` may go to; of interchangeable empty ones only the first.
    pub fn write_open(&self, features: &Features, u: usize, open: &mut [bool]) {
        let level = &features.level;
        open.copy_from_slice(level.allowed.row(level.kind[u] as usize));
        let mut has_empty = vec![false; open.len()];
        for (a, &class) in features.group.iter().enumerate() {
            if self.units[a] == 0 {
                open[a] &= !has_empty[class as usize];
                has_empty[class as usize] = true;
            }
        }
        for &rival in level.rules.rivals.of(u) {
            if let Some(device) = self.place[rival as usize] {
                open[device as usize] = false;
            }
        }
        if let Some(&memory) = level.rules.memory.get(u) {
            let mut free = level.rules.room.clone();
            for (place, memory) in self.place.iter().zip(&level.rules.memory) {
                if let Some(device) = place {
                    free[*device as usize] -= memory;
                }
            }
            for (a, open) in open.iter_mut().enumerate() {
                *open &= memory <= free[a] + SLACK * level.rules.room[a];
            }
        }
    }

    /// Write the features of decision `t` and of devices for unit `u`: of all, or of the open ones.
    pub fn measure(
        &mut self,
        features: &Features,
        u: usize,
        t: usize,
        open: Option<&[bool]>,
        devices: &mut Table<f32>,
        steps: &mut [f32],
    ) {
        let (level, d) = (&features.level, features.n_devices());
        self.find_flows(features, u);
        let (mut most_free, mut free, mut used) = (0.0, 0.0, 0_u32);
        for (&load, &units) in self.load.iter().zip(&self.units) {
            let headroom = max(0.0, 1.0 - load);
            free += headroom;
            most_free = max(most_free, headroom);
            used += u32::from(units > 0);
        }
        let flows = &self.flows;
        let least = features.least[u] / features.yardstick;
        let mut flow = flows.loose;
        for (out, back) in flows.out.iter().zip(&flows.back) {
            flow += out + back;
        }
        for a in (0..d).filter(|&a| open.is_none_or(|open| open[a])) {
            let own = level.load_on(u, a) / features.yardstick;
            let after = self.load[a] + own;
            let (worst, cut) = self.links_after(features, a);
            let home = flows.out[a] + flows.back[a];
            let wire = features.wire[a];
            let peak = max(max(self.peak, after), worst);
            let room = 1.0 - after;
            let for_coming =
                if after < 1.0 { min(MAX_VALUE, room / (self.coming + 1e-3)) } else { 0.0 };
            let row: [f64; OF_DEVICE] = [
                min(MAX_VALUE, self.load[a]),
                min(MAX_VALUE, after),
                min(MAX_VALUE, max(0.0, after - 1.0)),
                min(MAX_VALUE, worst),
                min(MAX_VALUE, max(0.0, worst - 1.0)),
                if flow > 0.0 { home / flow } else { 0.0 },
                min(MAX_VALUE, home * wire),
                min(MAX_VALUE, cut),
                min(MAX_VALUE, self.loose[a] * wire),
                one_if(self.units[a] == 0),
                one_if(self.last == Some(a)),
                if own > 0.0 { least / own } else { 1.0 },
                min(MAX_VALUE, peak - self.peak),
                for_coming,
                min(MAX_VALUE, room.abs() * 10.0),
                min(MAX_VALUE, own),
                most_free - max(0.0, 1.0 - self.load[a]),
                one_if(home > 0.0),
                min(MAX_VALUE, max(flows.fullest_out[a], flows.fullest_in[a])),
                min(MAX_VALUE, wire * flow),
            ];
            devices.row_mut(a).copy_from_slice(&row.map(|value| value as f32));
        }
        let n = features.order.len();
        let row: [f64; OF_STEP] = [
            self.coming / (self.all_load + 1e-9),
            min(MAX_VALUE, self.coming / (free + 1e-3)),
            min(MAX_VALUE, self.peak),
            f64::from(used) / d as f64,
            min(MAX_VALUE, most_free),
            (t % n) as f64 / n as f64,
        ];
        steps.copy_from_slice(&row.map(|value| value as f32));
    }

    /// Find the flows of unit `u`, and the fullest links of every device.
    fn find_flows(&mut self, features: &Features, u: usize) {
        let flows = &mut self.flows;
        flows.out.fill(0.0);
        flows.back.fill(0.0);
        flows.loose = 0.0;
        for &Entry { peer, sent, taken } in features.level.around(u) {
            if let Some(a) = self.place[peer as usize] {
                flows.out[a as usize] += sent;
                flows.back[a as usize] += taken;
            } else {
                flows.loose += sent + taken;
            }
        }
        let (out, back) = (&flows.out, &flows.back);
        flows.partners.clear();
        flows.partners.extend((0..out.len()).filter(|&b| out[b] > 0.0 || back[b] > 0.0));
        flows.fullest_in.fill(0.0);
        for (a, fullest_out) in flows.fullest_out.iter_mut().enumerate() {
            let row = self.link.row(a);
            *fullest_out = largest(0.0, row);
            for (fullest_in, &load) in flows.fullest_in.iter_mut().zip(row) {
                *fullest_in = max(*fullest_in, load);
            }
        }
    }

    /// Fullest link or network card that the streams of a unit on device `a` would use, and their
    /// load.
    fn links_after(&self, features: &Features, a: usize) -> (f64, f64) {
        let (platform, yardstick) = (&features.level.platform, features.yardstick);
        let (wire, flows) = (&platform.seconds_per_byte, &self.flows);
        let (mut worst, mut cut, mut sent, mut taken) = (0.0, 0.0, 0.0, 0.0);
        for &b in flows.partners.iter().filter(|&&b| b != a) {
            let (out, back) = (flows.out[b], flows.back[b]);
            if out > 0.0 {
                let more = out * wire[(a, b)] / yardstick;
                worst = max(worst, self.link[(a, b)] + more);
                cut += more;
                worst = max(worst, self.taken[b] + out * platform.ingress[b] / yardstick);
                sent += out;
            }
            if back > 0.0 {
                let more = back * wire[(b, a)] / yardstick;
                worst = max(worst, self.link[(b, a)] + more);
                cut += more;
                worst = max(worst, self.sent[b] + back * platform.egress[b] / yardstick);
                taken += back;
            }
        }
        if sent > 0.0 {
            worst = max(worst, self.sent[a] + sent * platform.egress[a] / yardstick);
        }
        if taken > 0.0 {
            worst = max(worst, self.taken[a] + taken * platform.ingress[a] / yardstick);
        }
        (worst, cut)
    }
}

fn one_if(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::coarsening::tests::triangle;

    /// Three units in a row with a shortcut, the outer ones rivals, on two equal devices.
    pub(crate) fn features() -> Features {
        Features::new(triangle(), 1.0, vec![2, 1, 0], vec![0, 0]).unwrap()
    }

    #[test]
    fn loads_are_those_of_the_units_that_are_placed() {
        let (features, mut state) = (features(), State::new(&features()));
        state.put(&features, 2, 0);
        assert_eq!((state.peak(), state.coming), (1.0, 0.75));
        state.put(&features, 0, 1);
        assert_eq!((state.link[(1, 0)], state.loose[0], state.loose[1]), (0.5, 2.0, 1.0));
        assert_eq!(state.remove(&features, 0), Some(1));
        assert_eq!((state.peak(), state.link[(1, 0)], state.loose[0]), (1.0, 0.0, 6.0));
    }

    #[test]
    fn of_equal_empty_devices_one_is_open_and_none_of_a_rival() {
        let (features, mut state) = (features(), State::new(&features()));
        let mut open = [false; 2];
        state.write_open(&features, 2, &mut open);
        assert_eq!(open, [true, false]);
        state.put(&features, 2, 0);
        state.write_open(&features, 0, &mut open);
        assert_eq!(open, [false, true]);
        state.write_open(&features, 1, &mut open);
        assert_eq!(open, [true, true]);
    }

    #[test]
    fn a_device_is_seen_as_it_would_be() {
        let (features, mut state) = (features(), State::new(&features()));
        state.put(&features, 2, 0);
        let (mut rows, mut row) = (Table::filled(0.0, 2, OF_DEVICE), [0.0; OF_STEP]);
        state.measure(&features, 1, 1, None, &mut rows, &mut row);
        let (load_after, link_after, empty, last, devices_used) = (1, 3, 9, 10, 3);
        assert_eq!(rows[(0, load_after)], 1.5);
        assert_eq!(rows[(1, link_after)], 0.25);
        assert_eq!((rows[(0, last)], rows[(1, empty)]), (1.0, 1.0));
        assert_eq!(row[devices_used], 0.5);
    }
}
