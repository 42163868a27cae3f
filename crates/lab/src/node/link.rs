//! A link: two endpoints of a link-layer protocol, IP queues in front of each, and a line in each direction.
//!
//! The line clocks its endpoint: when it is free the endpoint is asked for a frame, so what to send is
//! decided at the last moment. A frame whose trailer is filled late is sealed when the trailer's first bit
//! leaves. Damaged frames fail the framing's checksum and are dropped where they arrive; with a [`Stream`] the framing
//! is real, and what arrives are damaged bits.
//!
//! A protocol that never stops sending would fill an idle link with events. While both ends have nothing to say but
//! bare acknowledgements that change nothing, the link sleeps; when a packet comes it catches up: the frames of the
//! meantime are put on the lines, which moves these and their errors on, and are not handled. The trace is the same
//! as without the sleep, unless a packet comes in the very nanosecond in which such a frame ends: it then goes first.

mod stream;

use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

use base::{Instant, Packet};
use channel::{Fate, Line};
use link::{Demand, Endpoint, Entry, Event, FrameKind, Header, efl};

use super::{earlier, named};
use crate::engine::{Context, Input, Node, Port};
use crate::observe::events::{
    FrameArrived, FrameSealed, FrameStarted, FramesFlagged, PacketStep, Probe, TrailerMark, What,
};

pub use stream::Stream;

/// A duplex link between its two ports.
#[derive(Debug)]
pub struct Link {
    ends: [LinkEnd; 2],
    asleep: bool,
    may_sleep: bool,
}

/// One end of a link: IP queues, endpoint, and the line that leads to the other end.
#[derive(Debug)]
pub struct LinkEnd {
    entry: Entry,
    endpoint: Box<dyn Endpoint>,
    line: Line,
    framing_bits: u32,
    /// The bits of the frames, where they are damaged one by one.
    stream: Option<Box<Stream>>,
    started: Option<Started>,
    /// Whether the endpoint had something to say when it was last asked.
    wants_line: bool,
    /// Intact frames, or all there is of a stream, on their way to the other end, in the order of their arrival.
    in_flight: VecDeque<InFlight>,
    /// How many of those say more than bare acknowledgements do.
    news_in_flight: usize,
    /// The last frame's kind and its bits on the line.
    last: Option<(FrameKind, u32)>,
    counters: Counters,
    /// Logs what happens, where events are logged.
    probe: Option<Box<Probe>>,
}

/// A frame that has started and whose late bytes are still to be filled.
#[derive(Debug)]
struct Started {
    seal_at: Instant,
    on_air: Range<Instant>,
    /// None where the bits decide it when they are known.
    fate: Option<Fate>,
    late_len: usize,
    /// What the frame says, if somebody observes and it is complete.
    trailer: Option<TrailerMark>,
    frame: InFlight,
}

/// What an endpoint told since it was last asked.
#[derive(Default)]
struct Told {
    sent: Option<TrailerMark>,
    received: Option<TrailerMark>,
    taken_for_lost: Vec<u16>,
}

#[derive(Debug)]
struct InFlight {
    /// Among the frames of its direction, from 1; 0 for what fills a stream between them.
    number: u64,
    arrives_at: Instant,
    kind: FrameKind,
    bytes: Packet,
}

/// What passed one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames put on the line.
    pub frames: u64,
    /// Frames that the channel lost or damaged.
    pub lost: u64,
    /// Bits put on the line, framing included, by what they carried: new, retransmission, filler, repair, control.
    pub bits: [u64; 5],
    /// Frames that arrived intact and that the endpoint had no use for.
    pub discarded: u64,
    /// Of all frames, the bare acknowledgements during sleep, which no endpoint saw.
    pub slept_through: u64,
    /// Packets that came out at the other end.
    pub delivered: u64,
    /// Steps of the run after which the sending endpoint wanted to be woken at some time.
    pub timed: u64,
}

impl Link {
    /// A link between its ports 0 and 1.
    #[must_use]
    pub const fn new(ends: [LinkEnd; 2]) -> Self {
        Self { ends, asleep: false, may_sleep: true }
    }

    /// Whether the link may sleep while it has nothing to say; it may unless told.
    pub const fn set_may_sleep(&mut self, may_sleep: bool) {
        self.may_sleep = may_sleep;
    }

    /// Logs what happens from now on: at the ends at ports 0 and 1, which send down and up.
    pub fn log_events(&mut self, probes: [Probe; 2]) {
        for (end, probe) in self.ends.iter_mut().zip(probes) {
            probe.watch_blockages(end.line.timeline());
            end.endpoint.observe();
            end.probe = Some(Box::new(probe));
        }
    }

    /// The end at a port.
    #[must_use]
    pub const fn end(&self, port: Port) -> &LinkEnd {
        &self.ends[port.0 as usize]
    }

    /// Takes frames that have reached the other end of the line from `from`.
    fn deliver(&mut self, cx: &mut Context<'_>, from: usize) {
        let now = cx.now();
        let (sender, receiver) = both(&mut self.ends, from);
        while let Some(frame) = sender.in_flight.pop_front_if(|frame| frame.arrives_at <= now) {
            sender.news_in_flight -= usize::from(frame.is_news());
            let probe = sender.probe.as_deref();
            let mut handle = |number: Option<u64>, frame: &[u8]| {
                let discarded = receiver.endpoint.handle_frame(now, frame).err();
                sender.counters.discarded += u64::from(discarded.is_some());
                if let Some(probe) = probe {
                    let told = Told::by(&mut *receiver.endpoint);
                    let trailer = told.received;
                    probe.note(now, What::FrameArrived(FrameArrived { number, discarded, trailer }));
                    receiver.note_flags(now, told);
                }
                let port = Port(1 - from as u16);
                sender.counters.delivered += take_packets(cx, &mut *receiver.endpoint, probe, port);
            };
            match &mut sender.stream {
                None => handle(Some(frame.number), &frame.bytes),
                Some(stream) => stream.handle(&frame.bytes, |frame| handle(None, frame)),
            }
        }
    }

    /// Lets time-outs happen at an end, and takes the packets that they release there.
    fn handle_timeout(&mut self, cx: &mut Context<'_>, at: usize) {
        let now = cx.now();
        let (receiver, sender) = both(&mut self.ends, at);
        if receiver.endpoint.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        receiver.endpoint.handle_timeout(now);
        let probe = sender.probe.as_deref();
        if probe.is_some() {
            let told = Told::by(&mut *receiver.endpoint);
            receiver.note_flags(now, told);
        }
        sender.counters.delivered += take_packets(cx, &mut *receiver.endpoint, probe, Port(at as u16));
    }

    /// Puts on the lines what a sleeping link would have sent until now, the end of the run.
    pub fn settle(&mut self, now: Instant) {
        self.wake_up(now);
    }

    fn wake_up(&mut self, now: Instant) {
        if core::mem::take(&mut self.asleep) {
            self.ends.iter_mut().for_each(|end| end.catch_up(now));
        }
    }
}

impl InFlight {
    const fn is_news(&self) -> bool {
        !matches!(self.kind, FrameKind::Control)
    }
}

impl LinkEnd {
    /// An end whose `endpoint` is fed from `entry` and clocked by `line`; each frame costs `framing_bits` more than its bytes.
    #[must_use]
    pub fn new(entry: Entry, endpoint: Box<dyn Endpoint>, line: Line, framing_bits: u32) -> Self {
        Self {
            entry,
            wants_line: endpoint.demand(Instant::ZERO) != Demand::Nothing,
            endpoint,
            line,
            framing_bits,
            stream: None,
            started: None,
            in_flight: VecDeque::new(),
            news_in_flight: 0,
            last: None,
            counters: Counters::default(),
            probe: None,
        }
    }

    /// The same end, with frames that the other end has to find in a stream of bits.
    #[must_use]
    pub fn with_stream(self, stream: Stream) -> Self {
        Self { stream: Some(Box::new(stream)), ..self }
    }

    /// What passed in this direction.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The line's, the queue's and the endpoint's counters by name; those of frames that arrived are the other end's.
    #[must_use]
    pub fn report(&self) -> BTreeMap<String, u64> {
        let Counters { frames, lost, bits, discarded, slept_through, delivered, timed } = self.counters;
        let [new, retransmission, filler, repair, control] = bits;
        let line = [
            ("frames-sent", frames),
            ("frames-lost", lost),
            ("frames-discarded", discarded),
            ("frames-slept-through", slept_through),
            ("packets-delivered", delivered),
            ("steps-with-timer", timed),
            ("bits-new", new),
            ("bits-retransmission", retransmission),
            ("bits-filler", filler),
            ("bits-repair", repair),
            ("bits-control", control),
        ];
        let endpoint = self.endpoint.counters();
        let once = self.entry.once_counters();
        let stream = self.stream.as_ref().map(|stream| stream.counters());
        named("", &line)
            .chain(stream.iter().flat_map(|counters| named("efl-", counters)))
            .chain(named("queue-", &self.entry.counters()))
            .chain(once.iter().flat_map(|counters| named("once-queue-", counters)))
            .chain(named("endpoint-", &endpoint))
            .collect()
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &dyn Endpoint {
        &*self.endpoint
    }

    /// The IP queues in front of the endpoint.
    #[must_use]
    pub const fn entry(&self) -> &Entry {
        &self.entry
    }

    fn accept(&mut self, now: Instant, packet: Packet) {
        if let Some(probe) = &self.probe {
            probe.packet(now, PacketStep::Queued, &packet);
        }
        // The queue counts what it drops.
        if let Err((packet, _)) = self.entry.push(now, packet)
            && let Some(probe) = &self.probe
        {
            probe.packet(now, PacketStep::Dropped, &packet);
        }
        self.feed(now);
    }

    /// Moves packets from the queues to the endpoint while it has room.
    fn feed(&mut self, now: Instant) {
        while let Some((packet, class)) = self.entry.pop_for(now, &*self.endpoint) {
            if let Some(probe) = &self.probe {
                probe.packet(now, PacketStep::Taken, &packet);
            }
            let taken = self.endpoint.offer(now, packet, class);
            debug_assert!(taken.is_ok(), "an endpoint with room refused a packet");
        }
    }

    /// Seals what is due and starts frames while the line is free.
    fn clock(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        loop {
            if let Some(started) = self.started.take_if(|started| started.seal_at <= now) {
                self.seal(cx, started);
            }
            self.feed(now);
            if self.started.is_some() {
                return;
            }
            self.wants_line = self.endpoint.demand(now) != Demand::Nothing;
            if self.line.free_at() > now {
                return;
            }
            if !self.wants_line {
                if self.fill_at().is_some_and(|due| due <= now) {
                    self.fill(now);
                }
                return;
            }
            self.fill(now);
            let mut bytes = Packet::default();
            let Some(info) = self.endpoint.poll_frame(now, bytes.as_vec_mut()) else {
                self.wants_line = false;
                return;
            };
            let bits;
            let (on_air, fate, behind) = match &mut self.stream {
                None => {
                    bits = bytes.len() as u32 * 8 + self.framing_bits;
                    let transit = self.line.send(now, bits);
                    (transit.on_air, Some(transit.fate), 0)
                }
                Some(stream) => {
                    bits = stream.line_bits(bytes.len());
                    (stream.reserve(now, bits, &mut self.line), None, efl::CHECK_BITS)
                }
            };
            self.count(info.kind, bits);
            self.last = Some((info.kind, bits));
            let late = self.line.rate().time_for(info.late_len as u64 * 8 + u64::from(behind));
            let arrives_at = on_air.end.saturating_add(self.line.delay());
            let number = self.counters.frames;
            let mut trailer = None;
            if let Some(probe) = &self.probe {
                trailer = Told::by(&mut *self.endpoint).sent;
                let (from, to) = (on_air.start, on_air.end);
                let late_bits = info.late_len as u32 * 8;
                let started = FrameStarted { number, kind: info.kind, bits, late_bits, from, to, arrives_at };
                probe.note(now, What::FrameStarted(started));
            }
            self.started = Some(Started {
                seal_at: on_air.end.saturating_sub(late).max(now),
                on_air,
                fate,
                late_len: info.late_len,
                trailer,
                frame: InFlight { number, arrives_at, kind: info.kind, bytes },
            });
        }
    }

    fn seal(&mut self, cx: &mut Context<'_>, started: Started) {
        let Started { on_air, fate, late_len, mut trailer, mut frame, .. } = started;
        if late_len > 0 {
            self.endpoint.seal_frame(cx.now(), &mut frame.bytes);
        }
        if self.probe.is_some() {
            trailer = trailer.or(Told::by(&mut *self.endpoint).sent);
        }
        let mut arrives = fate == Some(Fate::Intact);
        let mut intact = arrives;
        if let Some(stream) = &mut self.stream {
            (frame.bytes, intact) = stream.send(&mut self.line, &on_air, &frame.bytes);
            // On a line of rate zero nothing ever does.
            arrives = on_air.end < Instant::MAX;
        }
        if let Some(probe) = &self.probe {
            let sealed = FrameSealed { number: frame.number, intact, trailer };
            probe.note(cx.now(), What::FrameSealed(sealed));
        }
        if frame.is_news() {
            cx.record(frame.arrives_at.as_nanos() << 1 | u64::from(intact));
        }
        self.counters.lost += u64::from(!intact);
        if arrives {
            self.news_in_flight += usize::from(frame.is_news());
            self.in_flight.push_back(frame);
        }
    }

    /// When a stream without frames is to be filled.
    fn fill_at(&self) -> Option<Instant> {
        self.stream.as_ref().and_then(|stream| stream.fill_at(&self.line))
    }

    /// Fills a stream since its last frame.
    fn fill(&mut self, now: Instant) {
        if let Some(stream) = &mut self.stream
            && let Some((left_at, bytes)) = stream.fill(now, &mut self.line)
        {
            let arrives_at = left_at.saturating_add(self.line.delay()).max(now);
            self.in_flight.push_back(InFlight { number: 0, arrives_at, kind: FrameKind::Control, bytes });
        }
    }

    fn count(&mut self, kind: FrameKind, bits: u32) {
        self.counters.frames += 1;
        self.counters.bits[kind as usize] += u64::from(bits);
    }

    /// Logs which frames the endpoint has just taken for lost.
    fn note_flags(&self, now: Instant, told: Told) {
        if let Some(probe) = &self.probe
            && !told.taken_for_lost.is_empty()
        {
            let flagged = FramesFlagged { frames: told.taken_for_lost.into(), trailer: told.received };
            probe.note(now, What::FramesFlagged(flagged));
        }
    }

    /// Whether the end has nothing to say but the bare acknowledgement that it said last.
    fn is_idle(&self, now: Instant) -> bool {
        self.stream.is_none()
            && matches!(self.last, Some((FrameKind::Control, _)))
            && self.news_in_flight == 0
            && self.entry.is_empty()
            && self.endpoint.poll_timeout().is_none()
            && self.endpoint.is_at_rest(now)
    }

    /// Puts the bare acknowledgements of a sleep on the line.
    fn catch_up(&mut self, now: Instant) {
        self.started = None;
        self.in_flight.clear();
        self.wants_line = self.endpoint.demand(now) != Demand::Nothing;
        let Some((kind, bits)) = self.last else { return };
        let before = self.counters;
        while self.line.free_at() < now {
            let transit = self.line.send(self.line.free_at(), bits);
            self.count(kind, bits);
            self.counters.slept_through += 1;
            self.counters.lost += u64::from(transit.fate != Fate::Intact);
        }
        if let Some(probe) = &self.probe {
            let (frames, lost) = (self.counters.frames - before.frames, self.counters.lost - before.lost);
            probe.note(now, What::Slept { frames, lost });
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let delivery = self.in_flight.front().map(|frame| frame.arrives_at);
        let line = match &self.started {
            Some(started) => Some(started.seal_at),
            None if self.wants_line => Some(self.line.free_at()),
            None => self.fill_at(),
        };
        earlier(earlier(delivery, line), self.endpoint.poll_timeout())
    }
}

impl Node for Link {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match input {
            Input::Arrival(port, packet) => {
                self.wake_up(cx.now());
                let end = &mut self.ends[usize::from(port.0)];
                end.accept(cx.now(), packet);
                end.clock(cx);
            }
            Input::Wake => {
                self.deliver(cx, 0);
                self.deliver(cx, 1);
                for at in 0..self.ends.len() {
                    self.handle_timeout(cx, at);
                    self.ends[at].clock(cx);
                }
                let now = cx.now();
                self.asleep = self.may_sleep && self.ends.iter().all(|end| end.is_idle(now));
            }
        }
        for end in &mut self.ends {
            end.counters.timed += u64::from(end.endpoint.poll_timeout().is_some());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.asleep { None } else { earlier(self.ends[0].poll_timeout(), self.ends[1].poll_timeout()) }
    }
}

impl Told {
    fn by(endpoint: &mut dyn Endpoint) -> Self {
        let mut told = Self::default();
        let mark = |Header::Cotmll(trailer)| Some(TrailerMark::from(trailer));
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Sent(header) => told.sent = mark(header),
                Event::Received(header) => told.received = mark(header),
                Event::TakenForLost(frames) => told.taken_for_lost.extend(frames),
            }
        }
        told
    }
}

/// Takes the packets that are ready at an endpoint and sends them out at its port; how many.
fn take_packets(cx: &mut Context<'_>, endpoint: &mut dyn Endpoint, probe: Option<&Probe>, port: Port) -> u64 {
    let mut count = 0;
    while let Some(packet) = endpoint.poll_packet() {
        count += 1;
        if let Some(probe) = probe {
            probe.packet(cx.now(), PacketStep::Delivered, &packet);
        }
        cx.send(port, packet);
    }
    count
}

/// The end at `first` and the other one.
fn both(ends: &mut [LinkEnd; 2], first: usize) -> (&mut LinkEnd, &mut LinkEnd) {
    let [a, b] = ends;
    if first == 0 { (a, b) } else { (b, a) }
}
