//! Wide COTMLL: the thesis's rules for links of today.
//!
//! Ours, after Faulkner 2004, 2.3. The thesis's format numbers frames with 10 bits, cuts packets to 487 bytes, and tells of one
//! gap at a time: 512 frames in flight fill 3.3 Mbit/s at 600 ms. This one has 24 bits, frames as long as the line takes, and
//! tells of as many gaps as fit.
//!
//! The sender's four rules are those of the thesis ([`cotmll`](super)). What differs:
//! - Every frame has a *serial* besides its sequence number: it counts sendings of all frames but those of class 010, which repeat
//!   the last one. A report tells the newest serial
//!   that has come, so the sender knows what was lost without guessing which sending an acknowledgement belongs to:
//!   a frame is lost if it is missing although a frame that was sent three sendings later has come. Frames may overtake
//!   each other by two.
//! - A report tells of a *stretch* of the receive window, exactly: which frames of it have come and which have not. If that is more than a
//!   frame has room for, the next report goes on from there.
//! - A report tells how often frames are lost. While some are, an idle line carries each frame more than once before anything
//!   is heard of it, so that what TCP sends before its window is open seldom has to wait for a round trip.
//! - Packets wait for earlier ones of their flow only, unless told. The sender tells how far back the packet before is.
//! - What is unacknowledged is sent again after 50 ms of silence, or four frames' time, instead of all the time: on a slow line
//!   every such frame delays what comes next, which TCP takes for a queue.
//! - A bare acknowledgement goes out after 2 ms worth of the line's frames, or 5 ms after the first of them. A side with nothing
//!   unacknowledged and nothing to tell is silent.
//! - Frames are complete when they start.
//!
//! Sessions, limited persistence and the thesis's open choices belong to the thesis's format.

use base::{Duration, Instant, Packet};

use crate::arq::frame::{Class, Fields, Frame, MAX_EXTENSION, push_varint};
use crate::arq::sequence::{self, SPACE};
use crate::arq::{Alarm, MAX_WINDOW, Receiver, Sender, TRAILER_LEN};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full};
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::ready::Ready;
use crate::treatment::Treatment;
use crate::unreliable;

use super::LONGEST_RUN;

mod config;

pub use config::Config;

/// One end of a link with wide COTMLL.
#[derive(Debug)]
pub struct Wide {
    config: Config,
    /// Copies go out on a line with a rate only, since what an idle one carries costs nobody else's.
    line: LineLimits,
    /// Bytes of a packet in a frame at most.
    room: usize,
    /// Sendings so far.
    serial: u64,
    sender: Sender,
    receiver: Receiver,
    unreliable_sender: unreliable::Sender,
    unreliable_receiver: unreliable::Receiver<SPACE>,
    /// Frames of class 010 that went without one of class 001 between.
    unreliable_run: u32,
    news: News,
    /// When a silent sender says again what is unacknowledged: nothing else would show that its last frames were lost.
    tail: Alarm,
    /// After how much silence.
    tail_pause: Duration,
    ready: Ready,
    counters: Counters,
}

/// What has come since the last report.
#[derive(Debug)]
struct News {
    frames: u32,
    /// Frames that are worth a report of their own.
    worth: u32,
    /// When the news is to be told at the latest.
    alarm: Alarm,
}

impl News {
    /// A frame has come.
    fn on_frame(&mut self, now: Instant) {
        self.frames = self.frames.saturating_add(1);
        if self.frames >= self.worth {
            self.alarm = Alarm::Due;
        } else if self.alarm == Alarm::Off {
            self.alarm = Alarm::At(now + REPORT_DELAY);
        }
    }

    /// A report is on its way, which may have had no room for `all`.
    fn on_report(&mut self, now: Instant, all: bool) {
        self.frames = 0;
        self.alarm = if all { Alarm::Off } else { Alarm::At(now + REPORT_DELAY) };
    }
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
}

impl Wide {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        let mut wide = Self {
            config,
            line: *line,
            room: 0,
            serial: 0,
            sender: Sender::new(0),
            receiver: Receiver::new(config.ordered),
            unreliable_sender: unreliable::Sender::default(),
            unreliable_receiver: unreliable::Receiver::default(),
            unreliable_run: 0,
            news: News { frames: 0, worth: 1, alarm: Alarm::Off },
            tail: Alarm::Off,
            tail_pause: TAIL_PAUSE,
            ready: Ready::holding(MAX_WINDOW as usize),
            counters: Counters::default(),
        };
        wide.set_line(line);
        wide
    }

    /// As if so many frames had been sent, and all of them acknowledged.
    #[cfg(test)]
    fn start_at(&mut self, number: u64) {
        self.serial = number;
        self.sender.start_at(number);
    }

    /// As if so many frames had come.
    #[cfg(test)]
    fn expect_from(&mut self, number: u64) {
        self.receiver.expect_from(number);
    }

    /// Frames in the transmission window, acknowledged ones behind a gap among them.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// A frame of class 010, if there is one and it is its turn.
    fn poll_unreliable(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let longest_run = match (self.sender.is_urgent(), self.sender.has_outstanding()) {
            (true, _) => 1,
            (false, true) => LONGEST_RUN,
            (false, false) => u32::MAX,
        };
        let start = out.len();
        let cut = (self.unreliable_run < longest_run)
            .then(|| self.unreliable_sender.poll(self.room, out))
            .flatten();
        let Some(cut) = cut else {
            self.unreliable_run = 0;
            return None;
        };
        self.unreliable_run = self.unreliable_run.saturating_add(1);
        self.counters.unreliable += 1;
        let fields = Fields {
            class: Class::Unreliable,
            first: cut.first,
            last: cut.last,
            sequence: cut.number,
            serial: self.serial,
        };
        self.complete(now, fields, None, start, out);
        Some(whole(FrameKind::New, cut.marks))
    }

    fn poll_reliable(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let start = out.len();
        let chosen = self.sender.poll(self.serial, self.room, out)?;
        match chosen.kind {
            FrameKind::Retransmission => self.counters.retransmissions += 1,
            FrameKind::Filler => self.counters.fillers += 1,
            _ => self.counters.new += 1,
        }
        let fields = Fields {
            class: Class::Reliable,
            first: chosen.first,
            last: chosen.last,
            sequence: chosen.sequence,
            serial: self.serial,
        };
        self.complete(now, fields, chosen.first.then_some(chosen.back), start, out);
        Some(whole(chosen.kind, chosen.marks))
    }

    fn bare_ack(&mut self, now: Instant, out: &mut Vec<u8>) -> FrameInfo {
        self.counters.control += 1;
        let fields = Fields {
            class: Class::Control,
            first: false,
            last: false,
            sequence: 0,
            serial: self.serial,
        };
        self.complete(now, fields, None, out.len(), out);
        whole(FrameKind::Control, Marks::default())
    }

    /// Appends what follows the payload of a frame that begins at `start`.
    fn complete(&mut self, now: Instant, fields: Fields, back: Option<u32>, start: usize, out: &mut Vec<u8>) {
        let extension = out.len();
        if let Some(back) = back {
            push_varint(back.into(), out);
        }
        let taken = out.len() - start + TRAILER_LEN;
        let space =
            self.line.frame_limit().saturating_sub(taken).min(MAX_EXTENSION - (out.len() - extension));
        let is_open = self.receiver.report(space, out);
        fields.emit(out.len() - extension, self.receiver.progress(), is_open, out);
        self.news.on_report(now, is_open);
    }

    fn handle_parts(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), Discard> {
        if frame.class != Class::Unreliable {
            self.receiver.on_serial(frame.serial);
        }
        let behind = sequence::beyond(u64::from(frame.report.heard), sequence::on_air(self.serial));
        let valid = self
            .serial
            .checked_sub(behind)
            .is_some_and(|heard| self.sender.handle_report(&frame.report, heard));
        self.counters.acks_invalid += u64::from(!valid);
        if frame.class == Class::Control {
            return Ok(());
        }
        self.news.on_frame(now);
        if frame.class == Class::Reliable {
            return self.receiver.handle(frame, &mut self.ready);
        }
        let (first, last) = (frame.first, frame.last);
        self.unreliable_receiver.handle(frame.sequence, first, last, frame.payload, &mut self.ready)
    }
}

impl Endpoint for Wide {
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
        if treatment.is_once() { !self.unreliable_sender.is_pending() } else { !self.sender.is_pending() }
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.counters.received += 1;
        let parsed = Frame::parse(frame).inspect_err(|_| self.counters.malformed += 1)?;
        self.handle_parts(now, &parsed)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.news.alarm.handle_timeout(now);
        self.tail.handle_timeout(now);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.tail = Alarm::At(now + self.tail_pause);
        // It counts in no order: its mark may take it past others.
        if let Some(info) = self.poll_unreliable(now, out) {
            return Some(info);
        }
        self.serial += 1;
        let info = self.poll_reliable(now, out).unwrap_or_else(|| self.bare_ack(now, out));
        Some(info)
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.ready.pop()
    }

    /// When a report is due, or unacknowledged frames are to be sent again, which [`Endpoint::demand`] asks for then.
    fn poll_timeout(&self) -> Option<Instant> {
        let tail = self.tail.poll_timeout().filter(|_| self.sender.has_outstanding());
        [self.news.alarm.poll_timeout(), tail].into_iter().flatten().min()
    }

    fn demand(&self, now: Instant) -> Demand {
        let is_worth_copying = self.line.rate().is_some() && self.sender.may_copy();
        let has_data = self.sender.is_urgent() || self.unreliable_sender.is_pending();
        if has_data || is_worth_copying || self.news.alarm.is_due(now) {
            Demand::Fresh
        } else if self.sender.has_outstanding() && self.tail.is_due(now) {
            Demand::Filler
        } else {
            Demand::Nothing
        }
    }

    /// Never: a filler is data.
    fn is_at_rest(&self, _now: Instant) -> bool {
        false
    }

    fn set_line(&mut self, line: &LineLimits) {
        self.line = *line;
        self.room = self.config.frame_payload(line);
        self.sender.set_window(self.config.window(line));
        let frame_bits = self.room as u64 * 8;
        let in_report_time = line.rate().map_or(MOST_WORTH, |rate| rate.bits_in(REPORT_TIME) / frame_bits);
        self.news.worth = in_report_time.clamp(1, MOST_WORTH) as u32;
        let frame_time = line.rate().map_or(Duration::ZERO, |rate| rate.time_for(frame_bits));
        self.tail_pause = TAIL_PAUSE.max(frame_time.saturating_mul(4));
    }

    /// Packets of which every frame was sent but not all acknowledged are given up and counted, since the peer may
    /// have delivered them; a packet that was not cut to its end starts again.
    fn reset(&mut self) {
        self.counters.packets_reset += self.sender.reset();
        self.receiver.reset();
        self.unreliable_sender.reset();
        self.unreliable_receiver.reset();
        self.unreliable_run = 0;
        self.serial = 0;
        self.news.frames = 0;
        self.news.alarm = Alarm::Off;
        self.tail = Alarm::Off;
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counters;
        vec![
            ("frames-new", c.new),
            ("frames-retransmitted", c.retransmissions),
            ("frames-filler", c.fillers),
            ("frames-unreliable", c.unreliable),
            ("frames-control", c.control),
            ("frames-flagged", self.sender.flags()),
            ("frames-received", c.received),
            ("frames-duplicate", self.receiver.duplicates()),
            ("frames-late", self.unreliable_receiver.late()),
            ("frames-missing", self.unreliable_receiver.missing()),
            ("frames-malformed", c.malformed),
            ("acks-invalid", c.acks_invalid),
            ("packets-incomplete", self.receiver.incomplete() + self.unreliable_receiver.incomplete()),
            ("packets-not-taken", self.ready.dropped()),
            ("packets-reset", c.packets_reset),
        ]
    }
}

/// Frames are complete when they start.
const fn whole(kind: FrameKind, marks: Marks) -> FrameInfo {
    FrameInfo { kind, late_len: 0, marks }
}

/// Of the line's time, what goes by between two bare acknowledgements at least. Ours: little beside any satellite's delay, and up to
/// 5 % of the capacity of the way back at 6 Mbit/s, ever less above.
const REPORT_TIME: Duration = Duration::from_millis(2);

/// Frames that are worth a report on the fastest line: 64 take 0.7 ms at 1 Gbit/s.
const MOST_WORTH: u64 = 64;

/// The shortest silence after which unacknowledged frames are sent again. Ours: little beside a satellite's round trip, and one frame
/// in four on a line of 1 Mbit/s that is otherwise idle.
const TAIL_PAUSE: Duration = Duration::from_millis(50);

/// The longest that a frame's arrival is kept back. Ours.
const REPORT_DELAY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
