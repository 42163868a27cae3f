//! COTMLL: selective-repeat ARQ that never stops sending.
//!
//! E. A. Faulkner, "Interactions Between TCP and Link Layer Protocols on Mobile Satellite Links", MIT 2004, section 2.3.
//! The protocol is clocked from below, has no timers, and keeps the line full: asked for a frame, it sends
//! 1. the first frame of the window that is flagged as lost; else
//! 2. new data, if the window has room and there is some; else
//! 3. the unacknowledged frame that was sent least recently; else
//! 4. a bare acknowledgement.
//!
//! Each frame acknowledges in its trailer, as of the moment that the trailer leaves: cumulatively and, while the
//! receive window has a gap, every other time one block beyond the first gap: the first or, if so told, that of the frame
//! which came last. A block means that what precedes it is lost, unless it was sent again since.
//!
//! Decisions where the text is open:
//! - The block's transmission that counts is the latest of the frames that the block newly acknowledges. Without
//!   news, a block flags nothing; a cumulative acknowledgement never does. Rule 1 goes by window order.
//! - A block of more than 127 frames is told as its first 127, or as the 127 up to the frame that came last. To choose the
//!   block that came last instead of the first is ours: docs/optimum.md has what it brings.
//! - The receiver accepts the 512 frames from the first missing one; a sender's window may be smaller.
//! - Control frames have no sequence number. Class 010 has its own, and goes before rule 1; but never twice in a
//!   row while rule 1 or 2 applies, nor nine times while rule 3 does, so that neither class can starve the other.
//! - Out of order, if that is chosen, a packet is delivered as soon as all its frames are there.
//! - Persistence is unlimited unless told, as in the thesis. With a limit whole packets are given up, when the line asks for a
//!   frame and their time or attempts are over, and a [`Skip`] tells the receiver to move on (ours). It goes before
//!   all else, but never twice in a row, until an acknowledgement covers the frames.
//! - There is no handshake. After a restart of either end both must be [reset](Endpoint::reset).
//!
//! Deviations: none known. [`wide`] is COTMLL too, with a format of ours.

use std::collections::BTreeSet;

use base::{Instant, Packet};

use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, Obstacle};
use crate::event::{Event, Events, Header};
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::ready::Ready;
use crate::treatment::Treatment;
use crate::unreliable;

mod by_age;
mod config;
mod receiver;
mod sender;
mod skip;
mod trailer;
pub mod wide;
mod window;

pub use config::{Acknowledge, Config, FlagAgainst, GapOpensWith, NoPersistence, Persistence, ToldBlock};
pub use skip::{SKIP_LEN, Skip};
pub use trailer::{Ack, SubProtocol, TRAILER_LEN, Trailer};
pub use wide::Wide;

/// One end of a COTMLL link.
#[derive(Debug)]
pub struct Cotmll {
    config: Config,
    /// Bytes of a packet in a frame at most.
    room: usize,
    sender: sender::Sender,
    receiver: receiver::Receiver,
    unreliable_sender: unreliable::Sender,
    unreliable_receiver: unreliable::Receiver<{ window::SPACE }>,
    /// Frames of class 010 that went without one of class 001 between.
    unreliable_run: u32,
    /// The latest frame was a skip message.
    has_just_skipped: bool,
    ready: Ready,
    events: Events,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    new: u64,
    retransmissions: u64,
    fillers: u64,
    unreliable: u64,
    control: u64,
    received: u64,
    malformed: u64,
    acks_invalid: u64,
    packets_reset: u64,
    skips_sent: u64,
    skips_received: u64,
}

/// What a frame carries, and its marks.
type Said = (FrameKind, Marks);

impl Cotmll {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        Self {
            config,
            room: room(&config, line.frame_limit()),
            sender: sender::Sender::new(&config),
            receiver: receiver::Receiver::new(&config),
            unreliable_sender: unreliable::Sender::default(),
            unreliable_receiver: unreliable::Receiver::default(),
            unreliable_run: 0,
            has_just_skipped: false,
            ready: Ready::holding(2 * window::WINDOW),
            events: Events::default(),
            counters: Counters::default(),
        }
    }

    /// Frames in the transmission window, acknowledged ones behind a gap among them.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// A skip message, if there is one and it is its turn.
    fn poll_skip(&mut self, out: &mut Vec<u8>) -> Option<Said> {
        let just_skipped = core::mem::take(&mut self.has_just_skipped);
        if just_skipped {
            return None;
        }
        let skip = self.sender.next_skip()?;
        out.extend_from_slice(&skip.emit());
        self.has_just_skipped = true;
        self.counters.skips_sent += 1;
        Some(self.bare_ack(out))
    }

    /// A frame of class 010, if there is one and it is its turn.
    fn poll_unreliable(&mut self, out: &mut Vec<u8>) -> Option<Said> {
        let longest_run = if self.sender.is_urgent() {
            1
        } else if self.sender.has_outstanding() {
            unreliable::LONGEST_RUN
        } else {
            u32::MAX
        };
        let may_go = self.unreliable_run < longest_run;
        let Some(cut) = may_go.then(|| self.unreliable_sender.poll(self.room, out)).flatten() else {
            self.unreliable_run = 0;
            return None;
        };
        let (first, last, tx) = (cut.first, cut.last, window::on_air(cut.number));
        let ack = Ack::Cumulative(0);
        let trailer = Trailer { protocol: SubProtocol::Unreliable, first, last, tx, ack };
        out.extend_from_slice(&trailer.emit());
        self.unreliable_run = self.unreliable_run.saturating_add(1);
        self.counters.unreliable += 1;
        Some((FrameKind::New, cut.marks.without_dscp()))
    }

    fn poll_reliable(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Said> {
        let (kind, marks) = self.sender.poll(now, self.room, out)?;
        match kind {
            FrameKind::Retransmission => self.counters.retransmissions += 1,
            FrameKind::Filler => self.counters.fillers += 1,
            _ => self.counters.new += 1,
        }
        Some((kind, marks))
    }

    /// The trailer of class 000, on its own or behind a message.
    fn bare_ack(&mut self, out: &mut Vec<u8>) -> Said {
        let ack = Ack::Cumulative(0);
        let trailer = Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack };
        out.extend_from_slice(&trailer.emit());
        self.counters.control += 1;
        (FrameKind::Control, Marks::default())
    }

    /// A frame of this kind, with these marks, was appended to `out`.
    fn started(&mut self, (kind, marks): Said, out: &mut [u8]) -> FrameInfo {
        let late_len = match self.config.acknowledge {
            Acknowledge::Trailer => TRAILER_LEN,
            Acknowledge::Start => {
                self.complete(out);
                0
            }
        };
        FrameInfo { kind, late_len, marks }
    }

    /// Fills in the acknowledgement at the end of `frame`.
    fn complete(&mut self, frame: &mut [u8]) {
        trailer::seal(frame, self.receiver.next_ack());
        self.events.push(|| Event::Sent(header(frame)));
    }

    /// Tells which frames are flagged besides the `known` ones.
    fn tell_flags(&mut self, known: &BTreeSet<u16>) {
        let flagged: Box<[u16]> = self.sender.flagged().filter(|frame| !known.contains(frame)).collect();
        if !flagged.is_empty() {
            self.events.push(|| Event::TakenForLost(flagged));
        }
    }

    fn handle_payload(&mut self, trailer: &Trailer, payload: &[u8]) -> Result<(), Discard> {
        match trailer.protocol {
            SubProtocol::Reliable => self.receiver.handle(trailer, payload, &mut self.ready),
            SubProtocol::Unreliable => {
                let (number, ready) = (trailer.tx.into(), &mut self.ready);
                self.unreliable_receiver.handle(number, trailer.first, trailer.last, payload, ready)
            }
            SubProtocol::Control if payload.is_empty() => Ok(()),
            SubProtocol::Control => {
                let skip = Skip::parse(payload).inspect_err(|_| self.counters.malformed += 1)?;
                self.counters.skips_received += 1;
                self.receiver.handle_skip(skip, &mut self.ready)
            }
        }
    }
}

impl Endpoint for Cotmll {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        if !self.has_room(treatment) {
            return Err(Full(packet));
        }
        if treatment.is_once() {
            self.unreliable_sender.offer(packet);
        } else {
            self.sender.offer(packet);
        }
        Ok(())
    }

    /// One packet of each class waits at most; others should wait where they can be managed.
    fn has_room(&self, treatment: Treatment) -> bool {
        match treatment.is_once() {
            true => !self.unreliable_sender.is_pending(),
            false => !self.sender.is_pending() && self.sender.has_memory(),
        }
    }

    fn memory(&self) -> usize {
        self.sender.memory()
            + self.receiver.memory()
            + self.unreliable_sender.memory()
            + self.unreliable_receiver.memory()
            + self.ready.memory()
    }

    fn limit_memory(&mut self, bytes: usize) {
        self.sender.limit_memory(bytes);
        self.receiver.limit_memory(bytes);
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.sender.obstacle()
    }

    fn handle_frame(&mut self, _now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.counters.received += 1;
        let (trailer, payload) = Trailer::parse(frame).inspect_err(|_| self.counters.malformed += 1)?;
        self.events.push(|| Event::Received(Header::Cotmll(trailer)));
        let known = self.events.is_observed().then(|| self.sender.flagged().collect::<BTreeSet<_>>());
        if !self.sender.handle_ack(trailer.ack) {
            self.counters.acks_invalid += 1;
        }
        if let Some(known) = known {
            self.tell_flags(&known);
        }
        self.handle_payload(&trailer, payload)
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    /// Never idle.
    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.sender.give_up_overdue(now);
        let said = self
            .poll_skip(out)
            .or_else(|| self.poll_unreliable(out))
            .or_else(|| self.poll_reliable(now, out))
            .unwrap_or_else(|| self.bare_ack(out));
        Some(self.started(said, out))
    }

    /// Fills in the acknowledgement, if it is not there. `frame` may be the whole frame or its late bytes.
    fn seal_frame(&mut self, _now: Instant, frame: &mut [u8]) {
        if self.config.acknowledge == Acknowledge::Trailer {
            self.complete(frame);
        }
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.ready.pop()
    }

    /// Never: continuous sending needs no timers, and a time limit is looked at when the line asks for a frame.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Never nothing.
    fn demand(&self, _now: Instant) -> Demand {
        let is_fresh = self.sender.is_urgent()
            || self.unreliable_sender.is_pending()
            || self.sender.has_new_skips()
            || self.receiver.has_news();
        if is_fresh { Demand::Fresh } else { Demand::Filler }
    }

    fn is_at_rest(&self, now: Instant) -> bool {
        self.demand(now) == Demand::Filler
            && !self.sender.has_outstanding()
            && !self.sender.has_skips()
            && !self.has_just_skipped
    }

    fn observe(&mut self) {
        self.events.observe();
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn set_line(&mut self, line: &LineLimits) {
        self.room = room(&self.config, line.frame_limit());
    }

    /// Packets of which every frame was sent but not all acknowledged are given up and counted, since the peer may
    /// have delivered them; a packet that was not cut to its end starts again.
    fn reset(&mut self) {
        self.counters.packets_reset += self.sender.reset(&self.config);
        self.receiver.reset();
        self.unreliable_sender.reset();
        self.unreliable_receiver.reset();
        self.unreliable_run = 0;
        self.has_just_skipped = false;
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counters;
        let mut counters = vec![
            ("frames-new", c.new),
            ("frames-retransmitted", c.retransmissions),
            ("frames-filler", c.fillers),
            ("frames-unreliable", c.unreliable),
            ("frames-control", c.control),
            ("frames-flagged", self.sender.flags()),
            ("frames-received", c.received),
            ("frames-duplicate", self.receiver.duplicates()),
            ("frames-old", self.receiver.old()),
            ("frames-late", self.unreliable_receiver.late()),
            ("frames-missing", self.unreliable_receiver.missing()),
            ("frames-malformed", c.malformed),
            ("acks-invalid", c.acks_invalid),
            ("packets-incomplete", self.receiver.incomplete() + self.unreliable_receiver.incomplete()),
            ("packets-not-taken", self.ready.dropped()),
            ("packets-reset", c.packets_reset),
            ("packets-given-up", self.sender.packets_given_up()),
            ("skips-sent", c.skips_sent),
            ("skips-received", c.skips_received),
            ("frames-skipped", self.receiver.skipped()),
        ];
        // Only an observer that does not read them has any.
        if self.events.dropped() > 0 {
            counters.push(("events-dropped", self.events.dropped()));
        }
        counters
    }
}

/// Bytes of a packet in a frame at most.
fn room(config: &Config, frame_limit: usize) -> usize {
    (frame_limit - TRAILER_LEN).min(config.frame_payload.get() as usize)
}

/// What the trailer at the end of a frame of ours says.
fn header(frame: &[u8]) -> Header {
    let trailer = Trailer::parse(frame).map(|(trailer, _)| trailer);
    Header::Cotmll(trailer.expect("our own frames end with a trailer"))
}

#[cfg(test)]
mod tests;
