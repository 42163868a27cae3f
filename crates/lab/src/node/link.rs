//! A link: two endpoints of a link-layer protocol, an IP queue in front of each, and a line in each direction.
//!
//! The line clocks its endpoint: when it is free the endpoint is asked for a frame, so what to send is
//! decided at the last moment. A frame whose trailer is filled late is sealed when the trailer's first bit
//! leaves. Damaged frames fail the framing's checksum and are dropped where they arrive.

use std::collections::VecDeque;

use base::{Instant, Packet};
use channel::{Fate, Line};
use link::{Class, Demand, Endpoint, FrameKind, Queue};

use super::earlier;
use crate::engine::{Context, Input, Node, Port};

/// A duplex link between its two ports.
#[derive(Debug)]
pub struct Link {
    ends: [LinkEnd; 2],
}

/// One end of a link: IP queue, endpoint, and the line that leads to the other end.
#[derive(Debug)]
pub struct LinkEnd {
    queue: Box<dyn Queue>,
    endpoint: Box<dyn Endpoint>,
    line: Line,
    framing_bits: u32,
    on_air: Option<OnAir>,
    /// Frames on their way to the other end, in the order of their arrival; `None` is one that arrives damaged.
    in_flight: VecDeque<(Instant, Option<Packet>)>,
    counters: Counters,
}

/// A frame that has started and whose late bytes are still to be filled.
#[derive(Debug)]
struct OnAir {
    seal_at: Instant,
    arrives_at: Instant,
    fate: Fate,
    frame: Packet,
    late_len: usize,
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
}

impl Link {
    /// A link between its ports 0 and 1.
    #[must_use]
    pub const fn new(ends: [LinkEnd; 2]) -> Self {
        Self { ends }
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
        while let Some((_, frame)) = sender.in_flight.pop_front_if(|(due, _)| *due <= now) {
            let Some(frame) = frame else { continue };
            if receiver.endpoint.handle_frame(now, &frame).is_err() {
                sender.counters.discarded += 1;
            }
            while let Some(packet) = receiver.endpoint.poll_packet() {
                cx.send(Port(1 - from as u16), packet);
            }
        }
    }
}

impl LinkEnd {
    /// An end whose `endpoint` is fed from `queue` and clocked by `line`; each frame costs `framing_bits` more than its bytes.
    #[must_use]
    pub fn new(queue: Box<dyn Queue>, endpoint: Box<dyn Endpoint>, line: Line, framing_bits: u32) -> Self {
        let counters = Counters::default();
        Self { queue, endpoint, line, framing_bits, on_air: None, in_flight: VecDeque::new(), counters }
    }

    /// What passed in this direction.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &dyn Endpoint {
        &*self.endpoint
    }

    /// The IP queue in front of the endpoint.
    #[must_use]
    pub fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    fn accept(&mut self, now: Instant, packet: Packet) {
        // The queue counts what it drops.
        let _ = self.queue.push(now, packet);
        self.feed(now);
    }

    /// Moves packets from the queue to the endpoint while it has room.
    fn feed(&mut self, now: Instant) {
        while self.endpoint.has_room(Class::Reliable) {
            let Some(packet) = self.queue.pop(now) else { return };
            let taken = self.endpoint.offer(now, packet, Class::Reliable);
            debug_assert!(taken.is_ok(), "an endpoint with room refused a packet");
        }
    }

    /// Seals what is due and starts frames while the line is free.
    fn clock(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        loop {
            if let Some(on_air) = self.on_air.take_if(|on_air| on_air.seal_at <= now) {
                self.seal(cx, on_air);
            }
            self.feed(now);
            if self.on_air.is_some() || self.line.free_at() > now || self.endpoint.demand() == Demand::Nothing
            {
                return;
            }
            let mut frame = Packet::default();
            let Some(info) = self.endpoint.poll_frame(now, usize::MAX, frame.as_vec_mut()) else { return };
            let bits = frame.len() as u32 * 8 + self.framing_bits;
            let transit = self.line.send(now, bits);
            self.counters.frames += 1;
            self.counters.bits[kind_index(info.kind)] += u64::from(bits);
            let late = self.line.rate().time_for(info.late_len as u64 * 8);
            let seal_at = transit.on_air.end.saturating_sub(late).max(now);
            let (arrives_at, fate, late_len) = (transit.arrives_at, transit.fate, info.late_len);
            self.on_air = Some(OnAir { seal_at, arrives_at, fate, frame, late_len });
        }
    }

    fn seal(&mut self, cx: &mut Context<'_>, mut on_air: OnAir) {
        if on_air.late_len > 0 {
            self.endpoint.seal_frame(cx.now(), &mut on_air.frame);
        }
        let intact = on_air.fate == Fate::Intact;
        cx.record(on_air.arrives_at.as_nanos() << 1 | u64::from(intact));
        if intact {
            self.in_flight.push_back((on_air.arrives_at, Some(on_air.frame)));
        } else {
            self.counters.lost += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let delivery = self.in_flight.front().map(|(due, _)| *due);
        let line = match &self.on_air {
            Some(on_air) => Some(on_air.seal_at),
            None => (self.endpoint.demand() != Demand::Nothing).then(|| self.line.free_at()),
        };
        earlier(earlier(delivery, line), self.endpoint.poll_timeout())
    }
}

impl Node for Link {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        match input {
            Input::Arrival(port, packet) => {
                let end = &mut self.ends[usize::from(port.0)];
                end.accept(cx.now(), packet);
                end.clock(cx);
            }
            Input::Wake => {
                self.deliver(cx, 0);
                self.deliver(cx, 1);
                for end in &mut self.ends {
                    if end.endpoint.poll_timeout().is_some_and(|due| due <= cx.now()) {
                        end.endpoint.handle_timeout(cx.now());
                    }
                    end.clock(cx);
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.ends[0].poll_timeout(), self.ends[1].poll_timeout())
    }
}

/// The end at `first` and the other one.
fn both(ends: &mut [LinkEnd; 2], first: usize) -> (&mut LinkEnd, &mut LinkEnd) {
    let [a, b] = ends;
    if first == 0 { (a, b) } else { (b, a) }
}

const fn kind_index(kind: FrameKind) -> usize {
    match kind {
        FrameKind::New => 0,
        FrameKind::Retransmission => 1,
        FrameKind::Filler => 2,
        FrameKind::Repair => 3,
        FrameKind::Control => 4,
    }
}
