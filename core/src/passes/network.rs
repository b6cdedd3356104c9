//! The network of a pass: outputs that are posted, the transfers that carry them, and who is next.
//!
//! A transfer carries one output to a device, or to all of them, and is identified by the first
//! stream that it serves. A channel of `Sender` or `Link` carries one transfer at a time, in the
//! order of posting, so the begin of a transfer is known when it is posted. With `Port`, every
//! device sends one transfer and receives one at a time: transfers wait in one line, in the order
//! of posting, which is scanned at the end of every instant with a change.
//!
//! With `Shared`, the speeds of all transfers in progress rise together, as fractions of the speed
//! that each would have alone, until a link or card is full; the transfers that use it stop there
//! and the others rise further (max–min fairness). Shares change only when a transfer begins or
//! completes.

use super::compiled::Pass;
use super::events::CLEARED;
use super::state::{Network, Run};
use crate::arithmetic::{max, min};
use crate::equation::link_load;
use crate::instance::{Id, NONE};

/// Remaining fraction below which a transfer is complete, and relative tolerance within which
/// resources fill up at the same level.
const TIE: f64 = 1e-12;

/// A transfer, or a further stream that it serves.
#[derive(Clone, Copy, Debug, Default)]
struct Transfer {
    /// seconds that it occupies its channel; −1 if not the first stream
    held: f64,
    /// run in which this output was posted
    posted: u64,
    /// next stream of the same transfer
    together: Id,
    /// next in the line
    next: Id,
    /// devices that send and receive
    ends: (Id, Id),
}

/// How a transfer that shares the network changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Change {
    #[default]
    None,
    Rises,
    Stops,
}

/// A transfer that shares the network.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// fraction still to be sent
    left: f64,
    /// fraction of its full speed
    share: f64,
    /// time of its completion
    due: f64,
    /// channels (link, sender's card, receiver's card), and the fractions that full speed uses
    uses: [(usize, f64); 3],
    change: Change,
}

/// Latest transfer of the output that is being posted, by receiving device.
#[derive(Clone, Copy, Debug, Default)]
struct Receiver {
    stamp: u64,
    leader: Id,
    newest: Id,
}

/// A bus or link that serves in turn: the time at which it is free, and the run.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    until: f64,
    run: u64,
}

/// A link or network card that transfers share.
#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    /// fraction used by stopped transfers
    used: f64,
    /// fraction that the others would use at full speed
    rising: f64,
}

/// Transfers of a network with contention.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// [M]
    streams: Vec<Transfer>,
    /// [D]
    receivers: Vec<Receiver>,
    /// [D · D] links or buses, for `Sender` and `Link`
    turns: Vec<Turn>,
    /// [2 · D] whether the ports out of and into devices are busy, for `Port`
    busy: Vec<bool>,
    /// [D · D + 2 · D] links, then cards of senders and receivers, for `Shared`
    channels: Vec<Channel>,
    /// [M] for `Shared`
    flows: Vec<Flow>,
    /// transfers in progress
    active: Vec<Id>,
    /// number of runs, and of posted outputs
    run: u64,
    stamp: u64,
    /// first and last in line
    head: Id,
    tail: Id,
    /// whether `settle` is due
    pub is_unsettled: bool,
    /// times of the last settling, of the next completed transfer, and when all channels are free
    last: f64,
    pub due: f64,
    pub freed: f64,
}

impl Transfers {
    /// No transfers; only what the network needs.
    pub fn new(one_pass: &Pass, network: Network) -> Self {
        let (m, d) = (one_pass.streams.len(), one_pass.devices.len());
        let size = |needed: bool, size: usize| if needed { size } else { 0 };
        let contended = network != Network::Free;
        let shared = network == Network::Shared;
        let in_turn = matches!(network, Network::Sender | Network::Link);
        Self {
            streams: vec![Transfer::default(); size(contended, m)],
            receivers: vec![Receiver::default(); size(contended, d)],
            turns: vec![Turn::default(); size(in_turn, d * d)],
            busy: vec![false; size(network == Network::Port, 2 * d)],
            channels: vec![Channel::default(); size(shared, d * d + 2 * d)],
            flows: vec![Flow::default(); size(shared, m)],
            head: NONE,
            tail: NONE,
            due: f64::INFINITY,
            ..Self::default()
        }
    }

    /// Begin a run.
    pub fn begin(&mut self) {
        self.run += 1;
        self.active.clear(); // infinite times may have left something
        self.busy.fill(false);
        (self.head, self.tail, self.is_unsettled) = (NONE, NONE, false);
        (self.last, self.due, self.freed) = (0.0, f64::INFINITY, 0.0);
    }

    /// Append a transfer to the line.
    fn line_up(&mut self, transfer: usize) {
        self.streams[transfer].next = NONE;
        if self.head == NONE {
            self.head = transfer as Id;
        } else {
            self.streams[self.tail as usize].next = transfer as Id;
        }
        self.tail = transfer as Id;
        self.is_unsettled = true;
    }

    /// Raise all shares together; transfers stop at full links and cards.
    fn fill(&mut self) {
        for &i in &self.active {
            let flow = &mut self.flows[i as usize];
            flow.change = Change::Rises;
            for (at, _) in flow.uses {
                self.channels[at].used = 0.0;
            }
        }
        let mut rising = self.active.len();
        while rising > 0 {
            self.add_up();
            let stopped = self.stop(self.level());
            if stopped == 0 {
                return; // of numbers without bounds alone
            }
            rising -= stopped;
        }
    }

    /// Sum the use of links and cards by rising transfers at full speed.
    fn add_up(&mut self) {
        for &i in &self.active {
            for (at, _) in self.flows[i as usize].uses {
                self.channels[at].rising = 0.0;
            }
        }
        for &i in &self.active {
            let flow = &self.flows[i as usize];
            if flow.change == Change::Rises {
                for (at, used) in flow.uses {
                    self.channels[at].rising += used;
                }
            }
        }
    }

    /// Share, at most 1, at which the next link or card becomes full.
    fn level(&self) -> f64 {
        let mut level = 1.0;
        for &i in &self.active {
            let flow = &self.flows[i as usize];
            if flow.change == Change::Rises {
                for (at, _) in flow.uses {
                    let Channel { used, rising } = self.channels[at];
                    if rising > 0.0 {
                        level = min(level, max(0.0, 1.0 - used) / rising);
                    }
                }
            }
        }
        level
    }

    /// Stop the transfers that use a full link or card at this level; return their number.
    fn stop(&mut self, level: f64) -> usize {
        let mut stopped = 0;
        for &i in &self.active {
            let flow = &mut self.flows[i as usize];
            if flow.change != Change::Rises {
                continue;
            }
            let is_full = |&(at, used): &(usize, f64)| {
                let channel = self.channels[at];
                let room = max(0.0, 1.0 - channel.used);
                used > 0.0 && room <= level * (1.0 + TIE) * channel.rising
            };
            if level >= 1.0 || flow.uses.iter().any(is_full) {
                flow.change = Change::Stops;
                stopped += 1;
            }
        }
        for &i in &self.active {
            let flow = &mut self.flows[i as usize];
            if flow.change == Change::Stops {
                flow.change = Change::None;
                flow.share = level;
                for (at, used) in flow.uses {
                    self.channels[at].used += used * level;
                }
            }
        }
        stopped
    }
}

impl Run<'_> {
    /// Post the output that stream `e` carries to the network, unless it is posted already.
    pub fn post(&mut self, e: usize) {
        let first = self.streams[e].first;
        let posted = &mut self.net.streams[first as usize].posted;
        if *posted == self.net.run {
            return;
        }
        *posted = self.net.run;
        self.gather(first as usize);
        let mut i = first;
        while i != NONE {
            let (a, b) = self.ends(i as usize);
            if a != b && self.net.streams[i as usize].held >= 0.0 {
                match self.rules.network {
                    Network::Shared => self.join(i as usize),
                    Network::Port => self.net.line_up(i as usize),
                    _ => self.depart_in_turn(i as usize),
                }
            }
            i = self.streams[i as usize].more;
        }
    }

    /// Form the transfers of an output: one per device, or one to all.
    #[inline(always)]
    fn gather(&mut self, first: usize) {
        if self.streams[first].more == NONE {
            let (a, b) = self.ends(first);
            let held = self.transfer_seconds(first, a, b).0;
            let transfer = &mut self.net.streams[first];
            (transfer.together, transfer.held) = (NONE, held);
            transfer.ends = (a as Id, b as Id);
            return;
        }
        self.net.stamp += 1;
        let mut i = first as Id;
        while i != NONE {
            let e = i as usize;
            let (a, b) = self.ends(e);
            if a != b {
                let held = self.transfer_seconds(e, a, b).0;
                let to_all = self.rules.network == Network::Sender;
                let (streams, stamp) = (&mut self.net.streams, self.net.stamp);
                let to = &mut self.net.receivers[if to_all { 0 } else { b }];
                (streams[e].together, streams[e].held) = (NONE, held);
                streams[e].ends = (a as Id, b as Id);
                if to.stamp == stamp {
                    streams[to.newest as usize].together = i;
                    let leader = &mut streams[to.leader as usize];
                    leader.held = max(leader.held, held);
                    streams[e].held = -1.0;
                } else {
                    to.stamp = stamp;
                    to.leader = i;
                }
                to.newest = i;
            }
            i = self.streams[e].more;
        }
    }

    /// Schedule the arrivals of a transfer that begins at a known time and has its channel alone.
    #[inline(always)]
    fn depart(&mut self, begin: f64, transfer: usize) {
        let mut e = transfer as Id;
        while e != NONE {
            let (a, b) = self.ends(e as usize);
            let (held, apart) = self.transfer_seconds(e as usize, a, b);
            self.journeys[e as usize].departure = begin;
            self.arrive(e as usize, begin + (apart + held));
            e = self.net.streams[e as usize].together;
        }
    }

    /// Begin a transfer as soon as those before it have left its channel.
    #[inline(always)]
    fn depart_in_turn(&mut self, transfer: usize) {
        let (a, b) = self.ends(transfer);
        let to_all = self.rules.network == Network::Sender;
        let bus_or_link = if to_all { a } else { a * self.cards.len() + b };
        let channel = self.net.turns[bus_or_link];
        let is_new = channel.run != self.net.run;
        let begin = if is_new { self.now } else { max(self.now, channel.until) };
        self.depart(begin, transfer);
        let until = begin + self.net.streams[transfer].held + self.rules.spacing;
        self.net.turns[bus_or_link] = Turn { until, run: self.net.run };
        self.net.freed = max(self.net.freed, until);
    }

    /// Decide at the end of an instant which transfers are in progress from now on.
    pub fn settle(&mut self) {
        self.net.is_unsettled = false;
        if self.rules.network == Network::Shared {
            self.share_out();
        } else {
            self.begin_waiting();
        }
    }

    /// Scan the line and begin the transfers with two free ports.
    fn begin_waiting(&mut self) {
        let d = self.cards.len();
        let (mut before, mut transfer) = (NONE, self.net.head);
        while transfer != NONE {
            let Transfer { next: following, ends: (a, b), .. } =
                self.net.streams[transfer as usize];
            let (a, b) = (a as usize, b as usize);
            if self.net.busy[a] || self.net.busy[d + b] {
                before = transfer;
            } else {
                self.net.busy[a] = true;
                self.net.busy[d + b] = true;
                if before == NONE {
                    self.net.head = following;
                } else {
                    self.net.streams[before as usize].next = following;
                }
                self.depart(self.now, transfer as usize);
                let held = self.net.streams[transfer as usize].held;
                let clear = self.now + held + self.rules.spacing;
                self.events.push(self.now, clear, CLEARED | transfer);
            }
            transfer = following;
        }
        self.net.tail = before;
    }

    /// Free the ports of a transfer.
    pub fn release_ports(&mut self, transfer: usize) {
        let (a, b) = self.ends(transfer);
        self.net.busy[a] = false;
        self.net.busy[self.cards.len() + b] = false;
        self.net.is_unsettled = true;
    }

    /// Begin a transfer that shares; one that occupies no channel completes at once.
    fn join(&mut self, transfer: usize) {
        let mut e = transfer as Id;
        while e != NONE {
            self.journeys[e as usize].departure = self.now;
            e = self.net.streams[e as usize].together;
        }
        if self.net.streams[transfer].held == 0.0 {
            self.deliver(transfer);
            return;
        }
        let uses = self.uses(transfer);
        self.net.flows[transfer] = Flow { left: 1.0, due: f64::INFINITY, uses, ..Flow::default() };
        self.net.active.push(transfer as Id);
        self.net.is_unsettled = true;
    }

    /// Use of link and cards by a transfer at full speed.
    fn uses(&self, e: usize) -> [(usize, f64); 3] {
        let (a, b) = self.ends(e);
        let (d, stream, link) = (self.cards.len(), &self.streams[e], self.link(a, b));
        let alone = link_load(stream.size, stream.tuples, link.seconds_per_byte, self.gap);
        let on_link = link_load(stream.size, stream.tuples, link.link, self.gap);
        [
            (a * d + b, on_link / alone),
            (d * d + a, stream.size * self.cards[a].egress / alone),
            (d * d + d + b, stream.size * self.cards[b].ingress / alone),
        ]
    }

    /// Deliver completed transfers and share the network among the others.
    fn share_out(&mut self) {
        let passed = self.now - self.net.last;
        self.net.last = self.now;
        let mut active = 0;
        for k in 0..self.net.active.len() {
            let i = self.net.active[k];
            let held = self.net.streams[i as usize].held;
            let flow = &mut self.net.flows[i as usize];
            flow.left -= flow.share * passed / held;
            if flow.due <= self.now || flow.left <= TIE {
                self.deliver(i as usize);
            } else {
                self.net.active[active] = i;
                active += 1;
            }
        }
        self.net.active.truncate(active);
        self.net.fill();
        let mut due = f64::INFINITY;
        for &i in &self.net.active {
            let flow = &mut self.net.flows[i as usize];
            flow.due = self.now + flow.left * self.net.streams[i as usize].held / flow.share;
            due = min(due, flow.due);
        }
        self.net.due = due;
    }

    /// Let all streams of a transfer arrive, after the seconds that occupy no channel.
    fn deliver(&mut self, transfer: usize) {
        let mut e = transfer as Id;
        while e != NONE {
            let (a, b) = self.ends(e as usize);
            let apart = self.transfer_seconds(e as usize, a, b).1;
            self.arrive(e as usize, self.now + apart);
            e = self.net.streams[e as usize].together;
        }
    }
}
