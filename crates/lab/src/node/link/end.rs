//! One end of a link: what waits, the endpoint, and the paths that lead to those who hear it.

use std::collections::BTreeMap;

use base::{Instant, Packet};
use channel::dama::Terminal;
use channel::{Encapsulation, Fate, Line};
use link::{
    Demand, Discard, Endpoint, Event, FrameKind, Header, IngressQueues, LineId, Lines, MAX_LINES, efl,
};
use pep::Proxy;
use tunnel::ingress::{Ingress, Watch};

use super::path::{InFlight, Path, Started};
use super::{Buffered, Stream};
use crate::engine::{Context, Port};
use crate::node::{earlier, named, proxy_side, reported};
use crate::observe::events::{
    FrameSealed, FrameStarted, FramesFlagged, PacketStep, Probe, TrailerMark, What,
};
use crate::observe::{QueueTrace, Sighting, Tap};

/// One end of a link: IP queues, endpoint, and the lines from it.
#[derive(Debug)]
pub struct LinkEnd {
    pub(super) ingress: Ingress,
    pub(super) endpoint: Box<dyn Endpoint>,
    pub(super) path: Path,
    /// Those beside the first.
    pub(super) others: Vec<Path>,
    cost: FrameCost,
    /// Between the endpoint and the line of a DAMA system's terminal.
    pub(super) mac: Option<Box<Terminal<Buffered>>>,
    /// The bits of the frames, where they are damaged one by one.
    pub(super) stream: Option<Box<Stream>>,
    /// The last frame's kind and its bits on the line.
    last: Option<(FrameKind, u32)>,
    pub(super) counters: Counters,
    /// How long the queues were, where that is watched.
    lengths: Option<Box<QueueTrace>>,
    /// Logs what happens, where events are logged.
    pub(super) probe: Option<Box<Probe>>,
    /// Captures what passes, where that is asked for.
    pub(super) tap: Option<Box<Tap>>,
}

/// What a frame costs on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameCost {
    /// So many bits besides its bytes.
    Framing(u32),
    /// What cells take to carry it.
    Encapsulated(Encapsulation),
}

impl FrameCost {
    /// Bits of a frame of `len` bytes on the line.
    #[must_use]
    pub const fn bits(self, len: usize) -> u32 {
        match self {
            Self::Framing(bits) => len as u32 * 8 + bits,
            Self::Encapsulated(encapsulation) => encapsulation.air_bits(len) as u32,
        }
    }
}

/// What an endpoint told since it was last asked.
#[derive(Default)]
pub(super) struct Told {
    pub(super) sent: Option<TrailerMark>,
    pub(super) received: Option<TrailerMark>,
    taken_for_lost: Vec<u16>,
    given_up: Vec<Packet>,
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

impl LinkEnd {
    /// An end whose `endpoint` is fed from `queues` and clocked by `line`; each frame has its `cost`.
    #[must_use]
    pub fn new(queues: IngressQueues, endpoint: Box<dyn Endpoint>, line: Line, cost: FrameCost) -> Self {
        Self {
            ingress: Ingress::new(queues),
            path: Path::new(line, endpoint.demand(Instant::ZERO) != Demand::Nothing),
            others: Vec::new(),
            endpoint,
            cost,
            mac: None,
            stream: None,
            last: None,
            counters: Counters::default(),
            lengths: None,
            probe: None,
            tap: None,
        }
    }

    /// This end with frames that the other end has to find in a stream of bits.
    #[must_use]
    pub fn with_stream(self, stream: Stream) -> Self {
        Self { stream: Some(Box::new(stream)), ..self }
    }

    /// This end with further paths beside the first: the name and the line of each.
    ///
    /// # Panics
    /// If the endpoint's protocol has but one line, or there are more than it can have.
    #[must_use]
    pub fn with_paths(mut self, paths: impl IntoIterator<Item = (String, Line)>) -> Self {
        for (name, line) in paths {
            self.others.push(Path { name, ..Path::new(line, false) });
        }
        let fits = self.others.is_empty() || self.endpoint.lines().is_some() && self.others.len() < MAX_LINES;
        assert!(fits, "a protocol for so many lines");
        self.ingress.counts_waiting = !self.others.is_empty();
        self
    }

    /// This end with `proxy` in front of its queues; `None` for no proxy.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Option<Proxy>) -> Self {
        self.ingress.proxy = proxy.map(Box::new);
        self
    }

    /// Logs what happens from now on.
    pub(super) fn log_events(&mut self, probe: Probe) {
        probe.watch_blockages(self.path.line.timeline());
        self.endpoint.observe();
        self.probe = Some(Box::new(probe));
    }

    pub(super) fn watch_queues(&mut self) {
        self.lengths.get_or_insert_default();
    }

    /// How long its queues were together, if that is watched.
    #[must_use]
    pub fn queue_trace(&self) -> Option<&QueueTrace> {
        self.lengths.as_deref()
    }

    /// How many paths there are.
    pub(super) const fn paths(&self) -> usize {
        1 + self.others.len()
    }

    #[inline]
    pub(super) fn path_mut(&mut self, at: usize) -> &mut Path {
        match at.checked_sub(1) {
            None => &mut self.path,
            Some(place) => &mut self.others[place],
        }
    }

    /// What the endpoint has for a path.
    fn demand(&self, now: Instant, at: usize) -> Demand {
        match LineId::new(at as u8).filter(|_| !self.others.is_empty()) {
            None => self.endpoint.demand(now),
            Some(line) => self.endpoint.demand_over(now, line),
        }
    }

    /// The endpoint as one of several lines, and which a path is; `None` where there is but one.
    #[inline]
    fn lines(&mut self, at: usize) -> Option<(&mut dyn Lines, LineId)> {
        if self.others.is_empty() {
            return None;
        }
        Some((self.endpoint.lines()?, LineId::new(at as u8)?))
    }

    /// Gives the endpoint a frame that has come over a path.
    pub(super) fn handle_frame(&mut self, now: Instant, at: usize, frame: &[u8]) -> Result<(), Discard> {
        match self.lines(at) {
            None => self.endpoint.handle_frame(now, frame),
            Some((lines, line)) => lines.handle_frame_over(now, line, frame),
        }
    }

    /// Bytes of memory that packets and split connections take: those that wait, and those that the endpoint has.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.ingress.memory() + self.endpoint.memory()
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
        let (once, interactive) =
            (self.ingress.queues.once_counters(), self.ingress.queues.interactive_counters());
        let stream = self.stream.as_ref().map(|stream| stream.counters());
        let mac = self.mac.as_ref().map(|mac| mac.counters().named());
        named("", &line)
            .chain(reported("frames-", &self.path.line))
            .chain(self.by_path())
            .chain(stream.iter().flat_map(|counters| named("efl-", counters)))
            .chain(mac.iter().flat_map(|counters| named("mac-", counters)))
            .chain(proxy_side::report(self.ingress.proxy.as_deref()))
            .chain(named("queue-", &self.ingress.queues.counters()))
            .chain(once.iter().flat_map(|counters| named("once-queue-", counters)))
            .chain(interactive.iter().flat_map(|counters| named("interactive-queue-", counters)))
            .chain(named("endpoint-", &endpoint))
            .collect()
    }

    /// What passed over each of several paths, by its name.
    fn by_path(&self) -> impl Iterator<Item = (String, u64)> {
        let paths = core::iter::once(&self.path).chain(&self.others).filter(|_| !self.others.is_empty());
        paths.flat_map(|path| {
            let named = |what: &str| format!("path-{}-{what}", path.name);
            [
                (named("frames-sent"), path.frames),
                (named("frames-lost"), path.lost),
                (named("bits"), path.bits),
            ]
        })
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &dyn Endpoint {
        &*self.endpoint
    }

    /// The line from it, the first of several.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.path.line
    }

    /// The IP queues in front of the endpoint.
    #[must_use]
    pub const fn queues(&self) -> &IngressQueues {
        &self.ingress.queues
    }

    pub(super) fn accept(&mut self, now: Instant, packet: Packet) {
        let (ingress, endpoint, mut watcher) = self.watched();
        ingress.accept(now, packet, endpoint, &mut watcher);
        self.feed(now);
    }

    /// Moves packets from the queues and the proxy to the endpoint while it has room.
    pub(super) fn feed(&mut self, now: Instant) {
        let (ingress, endpoint, mut watcher) = self.watched();
        ingress.feed(now, endpoint, &mut watcher);
    }

    /// What stands in front of the endpoint, the endpoint, and who watches them.
    fn watched(&mut self) -> (&mut Ingress, &mut dyn Endpoint, Watcher<'_>) {
        let watcher = Watcher { probe: self.probe.as_deref(), lengths: self.lengths.as_deref_mut() };
        (&mut self.ingress, &mut *self.endpoint, watcher)
    }

    /// Lets the proxy's time-outs happen, and sends what it has for the node at the end out at its port.
    pub(super) fn serve_proxy(&mut self, cx: &mut Context<'_>, port: Port) {
        if let Some(proxy) = &mut self.ingress.proxy {
            proxy_side::serve(proxy, cx, port);
        }
    }

    /// Seals what is due and starts frames while the lines are free.
    pub(super) fn clock(&mut self, cx: &mut Context<'_>) {
        if self.mac.is_some() {
            return self.clock_mac(cx);
        }
        (0..self.paths()).for_each(|at| self.clock_path(cx, at));
    }

    /// Seals what is due on a path and starts frames while its line is free.
    fn clock_path(&mut self, cx: &mut Context<'_>, at: usize) {
        let now = cx.now();
        loop {
            if let Some(started) = self.path_mut(at).started.take_if(|started| started.seal_at <= now) {
                self.seal(cx, at, started);
            }
            self.feed(now);
            if self.path_mut(at).started.is_some() {
                return;
            }
            if !self.may_start(now, at) {
                if !self.path.wants_line && self.fill_at().is_some_and(|due| due <= now) {
                    self.fill(now);
                }
                return;
            }
            self.fill(now);
            let mut bytes = Packet::default();
            let info = match self.lines(at) {
                None => self.endpoint.poll_frame(now, bytes.as_vec_mut()),
                Some((lines, line)) => lines.poll_frame_over(now, line, bytes.as_vec_mut()),
            };
            let Some(info) = info else {
                self.path_mut(at).wants_line = false;
                return;
            };
            let bits;
            let (on_air, arrives_at, fate, behind) = match &mut self.stream {
                None => {
                    bits = self.cost.bits(bytes.len());
                    let transit = self.path_mut(at).line.send_unasked(now, bits);
                    (transit.on_air, transit.arrives_at, Some(transit.fate), 0)
                }
                Some(stream) => {
                    bits = stream.line_bits(bytes.len());
                    let line = &mut self.path.line;
                    let on_air = stream.reserve(now, bits, line);
                    let arrives_at = on_air.end.saturating_add(line.delay());
                    (on_air, arrives_at, None, efl::CHECK_BITS)
                }
            };
            self.count(at, info.kind, bits);
            self.last = Some((info.kind, bits));
            let last_bits = info.late_len as u64 * 8 + u64::from(behind);
            let number = self.counters.frames;
            let mut trailer = None;
            if let Some(probe) = &self.probe {
                let told = Told::by(&mut *self.endpoint);
                trailer = told.sent;
                self.note_flags(now, told);
                let (from, to) = (on_air.start, on_air.end);
                let late_bits = info.late_len as u32 * 8;
                let started = FrameStarted { number, kind: info.kind, bits, late_bits, from, to, arrives_at };
                probe.note(now, What::FrameStarted(started));
            }
            let path = self.path_mut(at);
            path.started = Some(Started {
                seal_at: path.line.start_of_last(on_air.end, last_bits).max(now),
                on_air,
                fate,
                bits,
                late_len: info.late_len,
                trailer,
                frame: InFlight { number, arrives_at, kind: info.kind, bytes },
            });
        }
    }

    /// Whether there is something to say over a path and its line is free for it.
    fn may_start(&mut self, now: Instant, at: usize) -> bool {
        let demand = self.demand(now, at);
        let path = self.path_mut(at);
        path.wants_line = demand != Demand::Nothing;
        if !path.wants_line {
            return false;
        }
        let is_free = path.line.free_at() <= now;
        if !is_free {
            path.ask_at = path.line.free_at();
        }
        is_free
    }

    fn seal(&mut self, cx: &mut Context<'_>, at: usize, started: Started) {
        let Started { on_air, fate, bits, late_len, mut trailer, mut frame, .. } = started;
        if late_len > 0 {
            self.endpoint.seal_frame(cx.now(), &mut frame.bytes);
        }
        if self.probe.is_some() {
            let told = Told::by(&mut *self.endpoint);
            trailer = trailer.or(told.sent);
            self.note_flags(cx.now(), told);
        }
        let mut arrives = fate == Some(Fate::Intact);
        let mut intact = arrives;
        let mut has_preamble = false;
        if let Some(stream) = &mut self.stream {
            has_preamble = stream.preamble_is_due();
            (frame.bytes, intact) = stream.send(&mut self.path.line, &on_air, &frame.bytes);
            // On a line of rate zero nothing ever does.
            arrives = on_air.end < Instant::MAX;
        }
        if let Some(probe) = &self.probe {
            let sealed = FrameSealed { number: frame.number, intact, trailer };
            probe.note(cx.now(), What::FrameSealed(sealed));
        }
        if let Some(tap) = &self.tap {
            let fate = fate.unwrap_or(Fate::of_wrong_bits(u32::from(!intact)));
            let InFlight { number, arrives_at, kind, bytes } = &frame;
            let (number, arrives_at, kind) = (*number, *arrives_at, *kind);
            tap.on_frame(
                cx.now(),
                &Sighting { number, kind, bits, on_air, arrives_at, fate, bytes, has_preamble },
            );
        }
        self.launch(cx, at, frame, intact, arrives);
    }

    /// A frame, complete, is on its way over a path; whether it is going to be intact, and whether anything arrives.
    pub(super) fn launch(
        &mut self,
        cx: &mut Context<'_>,
        at: usize,
        frame: InFlight,
        intact: bool,
        arrives: bool,
    ) {
        if frame.is_news() {
            cx.record(frame.arrives_at.as_nanos() << 1 | u64::from(intact));
        }
        self.counters.lost += u64::from(!intact);
        self.path_mut(at).launch(frame, intact, arrives);
    }

    /// When a stream without frames is to be filled.
    fn fill_at(&self) -> Option<Instant> {
        self.stream.as_ref().and_then(|stream| stream.fill_at(&self.path.line))
    }

    /// Fills a stream since its last frame.
    fn fill(&mut self, now: Instant) {
        if let Some(stream) = &mut self.stream
            && let Some((left_at, bytes)) = stream.fill(now, &mut self.path.line)
        {
            let arrives_at = left_at.saturating_add(self.path.line.delay()).max(now);
            self.path.in_flight.push_back(InFlight {
                number: 0,
                arrives_at,
                kind: FrameKind::Control,
                bytes,
            });
        }
    }

    pub(super) fn count(&mut self, at: usize, kind: FrameKind, bits: u32) {
        let path = self.path_mut(at);
        path.frames += 1;
        path.bits += u64::from(bits);
        self.counters.frames += 1;
        self.counters.bits[kind as usize] += u64::from(bits);
    }

    /// Logs which frames the endpoint has just taken for lost, and which packets it has given up.
    pub(super) fn note_flags(&self, now: Instant, told: Told) {
        let Some(probe) = &self.probe else { return };
        told.given_up.iter().for_each(|packet| probe.packet(now, PacketStep::Lost, packet));
        if !told.taken_for_lost.is_empty() {
            let flagged = FramesFlagged { frames: told.taken_for_lost.into(), trailer: told.received };
            probe.note(now, What::FramesFlagged(flagged));
        }
    }

    /// Whether the end has nothing to say but the bare acknowledgement that it said last.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.stream.is_none()
            && self.others.is_empty()
            && self.mac.is_none()
            && matches!(self.last, Some((FrameKind::Control, _)))
            && self.path.news_in_flight == 0
            && self.ingress.queues.is_empty()
            && self.proxy_timeout().is_none()
            && self.endpoint.poll_timeout().is_none()
            && self.endpoint.is_at_rest(now)
    }

    /// Puts the bare acknowledgements of a sleep on the line.
    pub(super) fn catch_up(&mut self, now: Instant) {
        self.path.started = None;
        self.path.in_flight.clear();
        self.path.wants_line = self.endpoint.demand(now) != Demand::Nothing;
        let Some((kind, bits)) = self.last else { return };
        let before = self.counters;
        while self.path.line.free_at() < now {
            let transit = self.path.line.send_unasked(self.path.line.free_at(), bits);
            self.count(0, kind, bits);
            self.counters.slept_through += 1;
            self.counters.lost += u64::from(transit.fate != Fate::Intact);
        }
        self.path.ask_at = self.path.line.free_at();
        if let Some(probe) = &self.probe {
            let (frames, lost) = (self.counters.frames - before.frames, self.counters.lost - before.lost);
            probe.note(now, What::Slept { frames, lost });
        }
    }

    fn proxy_timeout(&self) -> Option<Instant> {
        self.ingress.proxy.as_ref().and_then(|proxy| proxy.poll_timeout())
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let line = match self.mac.is_some() {
            true => self.mac_timeout(),
            false => self.path.next_frame().or_else(|| self.fill_at()),
        };
        let path = earlier(self.path.next_arrival(), line);
        let paths = self
            .others
            .iter()
            .fold(path, |due, path| earlier(due, earlier(path.next_arrival(), path.next_frame())));
        earlier(earlier(paths, self.endpoint.poll_timeout()), self.proxy_timeout())
    }
}

/// Who watches what stands in front of an endpoint.
struct Watcher<'a> {
    probe: Option<&'a Probe>,
    lengths: Option<&'a mut QueueTrace>,
}

impl Watcher<'_> {
    fn note(&self, now: Instant, step: PacketStep, packet: &Packet) {
        if let Some(probe) = self.probe {
            probe.packet(now, step, packet);
        }
    }
}

impl Watch for Watcher<'_> {
    fn on_queued(&mut self, now: Instant, packet: &Packet) {
        self.note(now, PacketStep::Queued, packet);
    }

    fn on_dropped(&mut self, now: Instant, packet: &Packet) {
        self.note(now, PacketStep::Dropped, packet);
    }

    fn on_taken(&mut self, now: Instant, packet: &Packet) {
        self.note(now, PacketStep::Taken, packet);
    }

    fn on_length(&mut self, now: Instant, queues: &IngressQueues) {
        if let Some(lengths) = &mut self.lengths {
            lengths.note(now, queues.len(), queues.bytes(), queues.average());
        }
    }
}

impl Told {
    pub(super) fn by(endpoint: &mut dyn Endpoint) -> Self {
        let mut told = Self::default();
        let mark = |Header::Cotmll(trailer)| Some(TrailerMark::from(trailer));
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Sent(header) => told.sent = mark(header),
                Event::Received(header) => told.received = mark(header),
                Event::TakenForLost(frames) => told.taken_for_lost.extend(frames),
                Event::GivenUp(packet) => told.given_up.push(packet),
            }
        }
        told
    }
}
