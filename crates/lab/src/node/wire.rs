//! A wire: a duplex line that carries packets as they are, with a queue at each end.

mod in_flight;
mod too_long;

use core::fmt::Debug;
use std::collections::BTreeMap;

use base::{Instant, Packet};
use channel::path::Admission;
use channel::{Fate, Line};
use link::Queue;
use pep::{Proxy, Side};

use super::proxy_side::ProxySide;
use super::{named, reported};
use crate::engine::{Context, Input, Node, Port};
use crate::observe::events::{PacketStep, Probe};
use crate::observe::{QueueTrace, Tap};
use in_flight::InFlight;

/// A duplex wire between its two ports.
#[derive(Debug)]
pub struct Wire {
    ends: [WireEnd; 2],
}

/// One end of a wire: the queue in front of the line that leads to the other end.
#[derive(Debug)]
pub struct WireEnd {
    queue: Box<dyn Queue>,
    proxy_side: ProxySide,
    /// Whether the queue holds a packet, so that the idle case need not ask it.
    backlogged: bool,
    line: Line,
    /// When the line is to be asked next, while packets wait.
    ask_at: Instant,
    in_flight: InFlight,
    /// When the next packet arrives or may leave; [`Instant::MAX`] is never.
    due: Instant,
    counters: Counters,
    /// None on most wires, so that a network of thousands touches as little memory as can be for a packet.
    extras: Option<Box<Extras>>,
}

/// What few ends have.
#[derive(Debug, Default)]
struct Extras {
    /// Sources that were told of a packet that was too long.
    told_too_long: u64,
    watch: Watch,
    meddler: Option<Box<dyn Meddler>>,
}

/// Somebody on a wire who can do with packets what he likes: hold them back, drop them, copy them.
pub trait Meddler: Debug + Send {
    /// A packet leaves, which would arrive at `arrives_at`: when it is to arrive instead, once for each copy. None leaves it as it is.
    fn meddle(&mut self, now: Instant, arrives_at: Instant, packet: &[u8]) -> Option<Vec<Instant>>;
}

/// Who watches an end.
#[derive(Debug, Default)]
struct Watch {
    /// When the queue dropped a packet, where that is watched.
    dropped: Option<Vec<Instant>>,
    /// How long the queue was, where that is watched.
    lengths: Option<Box<QueueTrace>>,
    /// Logs what happens, where events are logged.
    probe: Option<Box<Probe>>,
    /// Captures what passes, where that is asked for.
    tap: Option<Box<Tap>>,
}

impl Watch {
    fn note_drop(&mut self, now: Instant, packet: &Packet) {
        if let Some(dropped) = &mut self.dropped {
            dropped.push(now);
        }
        self.note(now, PacketStep::Dropped, packet);
    }

    fn note(&self, now: Instant, step: PacketStep, packet: &Packet) {
        if let Some(probe) = &self.probe {
            probe.packet(now, step, packet);
        }
    }
}

/// What passed one direction of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets put on the line.
    pub sent: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that arrived intact.
    pub delivered: u64,
    /// Packets that the channel lost or damaged.
    pub lost: u64,
}

impl Wire {
    /// A wire between its ports 0 and 1.
    #[must_use]
    pub const fn new(ends: [WireEnd; 2]) -> Self {
        Self { ends }
    }

    /// Lets somebody meddle with what leaves at a port.
    pub fn meddle(&mut self, port: Port, meddler: impl Meddler + 'static) {
        self.ends[usize::from(port.0)].extras().meddler = Some(Box::new(meddler));
    }

    /// The end at a port.
    #[must_use]
    pub const fn end(&self, port: Port) -> &WireEnd {
        &self.ends[port.0 as usize]
    }

    /// Keeps the times at which its queues drop packets from now on.
    pub fn watch_drops(&mut self) {
        for end in &mut self.ends {
            end.extras().watch.dropped.get_or_insert_default();
        }
    }

    /// Keeps the lengths of its queues from now on.
    pub fn watch_queues(&mut self) {
        for end in &mut self.ends {
            end.extras().watch.lengths.get_or_insert_default();
        }
    }

    /// Logs what happens from now on: at the ends at ports 0 and 1, which send down and up.
    pub fn log_events(&mut self, probes: [Probe; 2]) {
        for (end, probe) in self.ends.iter_mut().zip(probes) {
            probe.watch_blockages(end.line.timeline());
            end.extras().watch.probe = Some(Box::new(probe));
        }
    }

    /// Captures what passes from now on: at the ends at ports 0 and 1, which send down and up.
    pub fn capture(&mut self, taps: [Tap; 2]) {
        for (end, tap) in self.ends.iter_mut().zip(taps) {
            end.extras().watch.tap = Some(Box::new(tap));
        }
    }
}

impl WireEnd {
    /// An end that sends on `line` what `queue` holds, perhaps with a proxy.
    #[must_use]
    pub fn new(queue: Box<dyn Queue>, proxy: Option<Proxy>, line: Line) -> Self {
        Self {
            queue,
            proxy_side: proxy.into(),
            backlogged: false,
            line,
            ask_at: Instant::ZERO,
            in_flight: InFlight::default(),
            due: Instant::MAX,
            counters: Counters { sent: 0, bytes: 0, delivered: 0, lost: 0 },
            extras: None,
        }
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    fn watch(&self) -> Option<&Watch> {
        self.extras.as_ref().map(|extras| &extras.watch)
    }

    /// A packet is where it was not before, for those who watch.
    #[inline]
    fn note(&self, now: Instant, step: PacketStep, packet: &Packet) {
        if let Some(watch) = self.watch() {
            watch.note(now, step, packet);
        }
    }

    /// The proxy, if there is one.
    #[must_use]
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy_side.proxy()
    }

    /// What passed in this direction.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The line's and the queue's counters by name.
    #[must_use]
    pub fn report(&self) -> BTreeMap<String, u64> {
        let Counters { sent, bytes, delivered, lost } = self.counters;
        let line = [
            ("packets-sent", sent),
            ("bytes-sent", bytes),
            ("packets-delivered", delivered),
            ("packets-lost", lost),
        ];
        let told = self
            .line
            .path_counters()
            .map(|_| [("too-long-told", self.extras.as_ref().map_or(0, |extras| extras.told_too_long))]);
        named("", &line)
            .chain(reported("packets-", &self.line))
            .chain(told.iter().flat_map(|told| named("packets-", told)))
            .chain(named("queue-", &self.queue.counters()))
            .chain(self.proxy_side.report())
            .collect()
    }

    /// When its queue dropped a packet, if that is watched.
    #[must_use]
    pub fn dropped(&self) -> &[Instant] {
        self.watch().and_then(|watch| watch.dropped.as_deref()).unwrap_or_default()
    }

    /// How long its queue was, if that is watched.
    #[must_use]
    pub fn queue_trace(&self) -> Option<&QueueTrace> {
        self.watch()?.lengths.as_deref()
    }

    /// The line from it.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// The queue in front of the line.
    #[must_use]
    pub fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    /// Takes a packet from the node at the end.
    fn accept(&mut self, cx: &mut Context<'_>, port: Port, mut packet: Packet) {
        let now = cx.now();
        if !self.proxy_side.takes(now, Side::Lan, &mut packet) {
            match self.admit(now, &packet) {
                Admission::Admitted => self.enqueue(now, packet),
                Admission::TooLong(Some(mtu)) => {
                    if let Some(message) = too_long::message(&packet, mtu) {
                        self.extras().told_too_long += 1;
                        cx.send(port, message);
                    }
                }
                Admission::TooLong(None) | Admission::Policed => {}
            }
        }
        self.serve_proxy(cx, port);
    }

    /// Takes a packet from the line.
    fn deliver(&mut self, cx: &mut Context<'_>, port: Port, mut packet: Packet) {
        if self.proxy_side.takes(cx.now(), Side::Link, &mut packet) {
            self.serve_proxy(cx, port);
        } else {
            cx.send(port, packet);
        }
    }

    /// Lets the proxy's time-outs happen, and sends what it has: to the node at the end, out at its port, and to the line.
    fn serve_proxy(&mut self, cx: &mut Context<'_>, port: Port) {
        if self.proxy_side.proxy().is_none() {
            return;
        }
        let now = cx.now();
        self.proxy_side.serve(cx, port);
        while let Some(packet) = self.proxy_side.poll_queued(now) {
            if self.admit(now, &packet) == Admission::Admitted {
                self.enqueue(now, packet);
            }
        }
        self.backlogged |= self.proxy_side.waits_for_turn();
        self.serve(now);
        self.note_due();
        // Room that this has made may be the node's.
        self.proxy_side.serve(cx, port);
    }

    /// What the path does with a packet in front of the queue.
    #[inline]
    fn admit(&mut self, now: Instant, packet: &Packet) -> Admission {
        let admission = self.line.admit(now, packet.len() as u64);
        if admission != Admission::Admitted {
            self.note(now, PacketStep::Dropped, packet);
        }
        admission
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, packet: Packet) {
        if !self.backlogged && self.ask(now) {
            self.queue.pass_by(now, packet.len());
            self.transmit(now, packet);
        } else {
            self.note(now, PacketStep::Queued, &packet);
            let extras = &mut self.extras;
            self.queue.push(now, packet, &mut |packet, _| note_drop(extras, now, &packet));
            self.backlogged = !self.queue.is_empty();
        }
        self.note_length(now);
        self.note_due();
    }

    #[inline]
    fn note_length(&mut self, now: Instant) {
        if let Some(extras) = &mut self.extras
            && let Some(lengths) = &mut extras.watch.lengths
        {
            lengths.note(now, self.queue.len(), self.queue.bytes(), self.queue.average());
        }
    }

    /// Whether a packet may leave now.
    #[inline]
    fn ask(&mut self, now: Instant) -> bool {
        let is_free = self.line.free_at() <= now;
        if !is_free {
            self.ask_at = self.line.free_at();
        }
        is_free
    }

    /// Sends what waits, as the line allows.
    fn serve(&mut self, now: Instant) {
        while self.backlogged {
            if !self.ask(now) {
                return;
            }
            let others_wait = !self.queue.is_empty();
            let own = self.proxy_side.poll_turn(now, others_wait);
            if let Some(packet) = own {
                if self.admit(now, &packet) == Admission::Admitted {
                    self.transmit(now, packet);
                }
            } else if let Some(packet) =
                self.queue.pop(now, &mut |packet, _| note_drop(&mut self.extras, now, &packet))
            {
                self.proxy_side.note_passed(packet.len());
                self.transmit(now, packet);
            }
            self.note_length(now);
            self.backlogged = !self.queue.is_empty() || self.proxy_side.waits_for_turn();
        }
    }

    #[inline]
    fn transmit(&mut self, now: Instant, packet: Packet) {
        let transit = self.line.send(now, packet.len() as u32 * 8);
        self.counters.sent += 1;
        self.counters.bytes += packet.len() as u64;
        self.note(now, PacketStep::Taken, &packet);
        if transit.fate != Fate::Intact {
            self.note(now, PacketStep::Lost, &packet);
        }
        if let Some(tap) = self.watch().and_then(|watch| watch.tap.as_ref()) {
            tap.on_packet(now, transit.arrives_at, transit.fate, &packet);
        }
        match transit.fate {
            Fate::Intact => self.carry(now, transit.arrives_at, packet),
            Fate::Damaged(_) | Fate::Lost => self.counters.lost += 1,
        }
    }

    /// A packet is on its way, unless somebody does something else with it.
    #[inline]
    fn carry(&mut self, now: Instant, arrives_at: Instant, packet: Packet) {
        let meddler = self.extras.as_mut().and_then(|extras| extras.meddler.as_mut());
        match meddler.and_then(|meddler| meddler.meddle(now, arrives_at, &packet)) {
            None => self.in_flight.push(arrives_at, packet),
            Some(arrivals) => {
                arrivals.into_iter().for_each(|at| self.in_flight.push(at.max(now), packet.clone()));
            }
        }
    }

    /// The next packet that has reached the other end.
    #[inline]
    fn poll_arrival(&mut self, now: Instant) -> Option<Packet> {
        let packet = self.in_flight.pop(now)?;
        self.counters.delivered += 1;
        self.note(now, PacketStep::Delivered, &packet);
        Some(packet)
    }

    #[inline]
    fn note_due(&mut self) {
        let delivery = self.in_flight.next_arrival();
        let departure = if self.backlogged { self.ask_at } else { Instant::MAX };
        let proxy = self.proxy_side.poll_timeout().unwrap_or(Instant::MAX);
        self.due = delivery.min(departure).min(proxy);
    }
}

/// A queue drops a packet, for those who watch.
fn note_drop(extras: &mut Option<Box<Extras>>, now: Instant, packet: &Packet) {
    if let Some(extras) = extras {
        extras.watch.note_drop(now, packet);
    }
}

impl Node for Wire {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match input {
            Input::Arrival(port, packet) => self.ends[usize::from(port.0)].accept(cx, port, packet),
            Input::Wake => {
                let now = cx.now();
                for (from, to) in [(0, 1), (1, 0)] {
                    if self.ends[from].due > now {
                        continue;
                    }
                    while let Some(packet) = self.ends[from].poll_arrival(now) {
                        self.ends[to].deliver(cx, Port(to as u16), packet);
                    }
                    let end = &mut self.ends[from];
                    if end.proxy_side.proxy().is_some() {
                        end.serve_proxy(cx, Port(from as u16));
                    } else {
                        if end.backlogged {
                            end.serve(now);
                        }
                        end.note_due();
                    }
                }
            }
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.ends[0].due.min(self.ends[1].due);
        (due < Instant::MAX).then_some(due)
    }
}
