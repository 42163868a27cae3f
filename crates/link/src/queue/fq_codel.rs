//! FQ-CoDel: a queue for each flow, which take turns, and CoDel in each of them.
//!
//! RFC 8290; the law in `codel` is that of RFC 8289. A flow that sends little finds its queue empty and goes first, so it does not
//! wait for those that send much; of these each has the same share of the line and a short queue.
//!
//! **While the link is blocked, the clock by which CoDel measures waits stands still.** A protocol that repeats what was lost takes no new
//! packets while it does so, nor when its window is full of what nobody acknowledges. What waits then does not wait behind too many
//! others, and its senders are not to slow down for that; without it, and with the RFC's interval, the end of a blockage of a second
//! would drop 25 packets at once. [`Obstacle`](crate::Obstacle) has what counts as blocked, and [`IngressQueues`](crate::IngressQueues) asks for it.
//!
//! Deviations:
//! - The clock, as above, unless `pause-when-blocked = false`.
//! - A flow is the same in both directions (`flow::keyed_hash`), so that it has one place in all of this crate.
//! - Besides packets, the memory that they take is limited (`memory`); Linux has that too.
//! - Overflow takes up to half of the fattest flow's bytes, 64 packets at most, as in Linux; the RFC leaves open how many.

use std::collections::VecDeque;

use base::{Instant, Packet};

use super::codel::{self, Codel, Head, Law};
use super::stopwatch::Stopwatch;
use super::{Dropped, Queue, Refusal, Site};
use crate::flow;
use crate::marks::mark_congestion;
use crate::slack;

pub use config::{Config, NotFqCodel};

mod config;

/// A queue for each flow, which take turns.
#[derive(Debug)]
pub struct FqCodel {
    config: Config,
    law: Law,
    /// By place; none before its first packet, and no places at all before the first of any: a gateway may have thousands of queues, and most of
    /// them nothing to do.
    flows: Vec<Option<Box<Flow>>>,
    /// Flows that have just begun to wait, and those that have had a turn.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: usize,
    bytes: u64,
    /// Bytes that the packets' buffers take, which may be many more than these have.
    memory: u64,
    /// Bytes that the places of flows take, and the flows that there are.
    places: usize,
    /// Bytes that flows have room for packets in.
    room: usize,
    /// Tells where flows are found, so that no sender can know whom to get in the way of.
    key: [u64; 2],
    clock: Stopwatch,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Flow {
    waiting: VecDeque<Waiting>,
    bytes: u64,
    /// Bytes that it may send before its turn is over; below zero if it has sent more.
    credits: i64,
    /// Whether it is in a list.
    is_active: bool,
    codel: Codel,
}

#[derive(Debug)]
struct Waiting {
    packet: Packet,
    /// By the queue's own clock.
    since: Instant,
}

#[derive(Debug, Default)]
struct Counters {
    passed: u64,
    marked: u64,
    dropped_for_delay: u64,
    dropped_for_packets: u64,
    dropped_for_bytes: u64,
}

/// The flow at a place, which is in a list.
fn flow_at(flows: &mut [Option<Box<Flow>>], place: u16) -> &mut Flow {
    flows[usize::from(place)].as_mut().expect("a flow that is in a list is there")
}

impl FqCodel {
    /// The empty queue called `name` on a site.
    #[must_use]
    pub fn new(config: Config, site: &Site<'_>, name: &str) -> Self {
        let mut rng = site.rng(name);
        Self {
            law: law(&config, site),
            config,
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            memory: 0,
            places: 0,
            room: 0,
            key: [rng.bits(), rng.bits()],
            clock: Stopwatch::default(),
            counters: Counters::default(),
        }
    }

    fn place_of(&self, packet: &[u8]) -> u16 {
        (flow::keyed_hash(packet, self.key) % FLOWS as u64) as u16
    }

    /// Has a packet wait in the flow at a place, which is there from now on.
    fn push_to(&mut self, place: u16, packet: Packet, since: Instant) -> &mut Flow {
        let Self { flows, places, room, .. } = self;
        if flows.is_empty() {
            flows.resize_with(FLOWS, || None);
            *places += flows.capacity() * size_of::<Option<Box<Flow>>>();
        }
        let flow = flows[usize::from(place)].get_or_insert_with(|| {
            *places += size_of::<Flow>();
            Box::default()
        });
        let before = slack::room(&flow.waiting);
        flow.bytes += packet.len() as u64;
        flow.waiting.push_back(Waiting { packet, since });
        *room += slack::room(&flow.waiting) - before;
        flow
    }

    /// Flows are forgotten once none has anything, if they take much: what CoDel knew of them is of a queue that is no more.
    fn give_room_back(&mut self) {
        if self.places + self.room > IDLE {
            self.flows = Vec::new();
            (self.places, self.room) = (0, 0);
        }
    }

    /// The limit that what waits exceeds, if it does.
    fn exceeded(&self) -> Option<Refusal> {
        if self.packets > self.config.packets.get() as usize {
            return Some(Refusal::Packets);
        }
        (self.memory > self.config.memory.0).then_some(Refusal::Bytes)
    }

    /// Drops up to half of what the fattest flow has, from its head: its sender hears of it soonest.
    fn make_room(&mut self, reason: Refusal, dropped: &mut Dropped<'_>) {
        let flows = self.flows.iter_mut().flatten();
        let Some(fattest) = flows.max_by_key(|flow| flow.bytes) else { return };
        let enough = fattest.bytes / 2;
        let (mut packets, mut bytes, mut memory) = (0, 0, 0);
        while packets < MOST_DROPS
            && (packets == 0 || bytes < enough)
            && let Some(Waiting { packet, .. }) = fattest.pop()
        {
            (packets, bytes) = (packets + 1, bytes + packet.len() as u64);
            memory += packet.capacity() as u64;
            dropped(packet, reason);
        }
        self.packets -= packets;
        self.bytes -= bytes;
        self.memory -= memory;
        match reason {
            Refusal::Bytes => self.counters.dropped_for_bytes += packets as u64,
            _ => self.counters.dropped_for_packets += packets as u64,
        }
    }

    /// Takes the packet of a flow that its turn has come to, after those that CoDel drops.
    fn pop_from(&mut self, place: u16, now: Instant, dropped: &mut Dropped<'_>) -> Option<Packet> {
        let Self { config, law, flows, packets, bytes, memory, room, counters, .. } = self;
        let Flow { waiting, bytes: of_flow, codel, .. } = flow_at(flows, place);
        let take = || {
            let Waiting { packet, since } = waiting.pop_front()?;
            *packets -= 1;
            *of_flow -= packet.len() as u64;
            *bytes -= packet.len() as u64;
            *memory -= packet.capacity() as u64;
            // All flows together, as RFC 8289, 4.4, has it.
            Some(Head { packet, sojourn: now.saturating_since(since), behind: *bytes })
        };
        let signal = |mut packet: Packet| {
            if config.ecn && mark_congestion(&mut packet) {
                counters.marked += 1;
                return Some(packet);
            }
            counters.dropped_for_delay += 1;
            dropped(packet, Refusal::Delay);
            None
        };
        let packet = codel.pop(law, now, take, signal);
        if waiting.is_empty() && waiting.capacity() > KEPT {
            // What a burst took is not kept for each flow that ever had one.
            *room -= slack::room(waiting);
            *waiting = VecDeque::new();
        }
        packet
    }
}

impl Flow {
    fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.packet.len() as u64;
        Some(waiting)
    }
}

fn law(config: &Config, site: &Site<'_>) -> Law {
    Law::new(config.target(), config.interval(), site.rate)
}

impl Queue for FqCodel {
    /// RFC 8290, 4.1.
    fn push(&mut self, now: Instant, packet: Packet, dropped: &mut Dropped<'_>) {
        let place = self.place_of(&packet);
        let (quantum, since) = (self.config.quantum.0 as i64, self.clock.read(now));
        self.packets += 1;
        self.bytes += packet.len() as u64;
        self.memory += packet.capacity() as u64;
        let flow = self.push_to(place, packet, since);
        if !core::mem::replace(&mut flow.is_active, true) {
            flow.credits = quantum;
            self.new.push_back(place);
        }
        while let Some(reason) = self.exceeded() {
            self.make_room(reason, dropped);
        }
    }

    /// RFC 8290, 4.2.
    fn pop(&mut self, now: Instant, dropped: &mut Dropped<'_>) -> Option<Packet> {
        let now = self.clock.read(now);
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let place = *list.front()?;
            let flow = flow_at(&mut self.flows, place);
            if flow.credits <= 0 {
                flow.credits += self.config.quantum.0 as i64;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            if let Some(packet) = self.pop_from(place, now, dropped) {
                flow_at(&mut self.flows, place).credits -= packet.len() as i64;
                self.counters.passed += 1;
                return Some(packet);
            }
            if is_new {
                // Otherwise it could come back as a new one before the old ones had their turns, again and again.
                self.new.pop_front();
                self.old.push_back(place);
            } else {
                self.old.pop_front();
                flow_at(&mut self.flows, place).is_active = false;
                if self.new.is_empty() && self.old.is_empty() {
                    self.give_room_back();
                }
            }
        }
    }

    fn set_blocked(&mut self, now: Instant, since: Option<Instant>) {
        if self.config.pause_when_blocked {
            self.clock.set(now, since);
        }
    }

    fn len(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn memory(&self) -> usize {
        self.memory as usize + self.places + self.room
    }

    fn set_limits(&mut self, config: &super::Config, site: &Site<'_>) -> bool {
        let super::Config::FqCodel(config) = config else { return false };
        (self.config, self.law) = (*config, law(config, site));
        true
    }

    /// A flow that has nothing left stays in its list until its turn, as when `CoDel` drops the last.
    fn take_expired(&mut self, now: Instant, expired: &mut dyn FnMut(Packet)) {
        let Self { flows, packets, bytes, memory, .. } = self;
        for flow in flows.iter_mut().flatten().filter(|flow| !flow.waiting.is_empty()) {
            for _ in 0..flow.waiting.len() {
                match flow.waiting.pop_front() {
                    Some(Waiting { packet, .. }) if super::is_expired(&packet, now) => {
                        *packets -= 1;
                        *bytes -= packet.len() as u64;
                        *memory -= packet.capacity() as u64;
                        flow.bytes -= packet.len() as u64;
                        expired(packet);
                    }
                    other => flow.waiting.extend(other),
                }
            }
        }
    }

    fn drain(&mut self) -> Vec<Packet> {
        let mut all: Vec<Waiting> =
            self.flows.iter_mut().flatten().flat_map(|flow| flow.waiting.drain(..)).collect();
        // What came in one moment stays in order, flow by flow.
        all.sort_by_key(|waiting| waiting.since);
        self.flows = Vec::new();
        self.new.clear();
        self.old.clear();
        (self.packets, self.bytes, self.memory) = (0, 0, 0);
        (self.places, self.room) = (0, 0);
        all.into_iter().map(|waiting| waiting.packet).collect()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counters;
        vec![
            ("passed", c.passed),
            ("marked", c.marked),
            ("dropped-for-delay", c.dropped_for_delay),
            ("dropped-for-packets", c.dropped_for_packets),
            ("dropped-for-bytes", c.dropped_for_bytes),
        ]
    }
}

/// RFC 8290, 5.2.5.
const FLOWS: usize = 1024;
/// Packets that an overflow drops at most: Linux's `drop_batch_size`.
const MOST_DROPS: usize = 64;
/// Packets for which an empty flow keeps room. Ours.
const KEPT: usize = 32;
/// Bytes that flows may keep while nothing waits. Ours: a tunnel has up to three queues, which together keep less than it may always have.
const IDLE: usize = 64 << 10;

#[cfg(test)]
mod tests;
