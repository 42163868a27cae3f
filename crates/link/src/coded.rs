//! Coded ARQ: selective repeat whose repairs are sums of frames.
//!
//! Ours: a sliding-window random linear code (RFC 8681; the terms of RFC 8406) with feedback, in the frames and reports of
//! wide COTMLL ([`crate::arq`]). Selective repeat already has the throughput of any code. What coding wins is delay: a repair that
//! is a sum stands in for any of the frames in it, so a repair may be on its way before anybody knows what it is for.
//!
//! - A frame goes out as it is, once.
//! - A receiver reports a frame as come when it has come, or when a sum that came *ends* with it (`decoder`): then one frame less has to
//!   come, whichever. So what the sender is told of are degrees of freedom (RFC 8406's), in a report that was made for frames.
//! - A frame that is lost goes out again, as it is while many packets wait, and else as a sum of all that are missing up to it. Whatever
//!   of the sums arrives solves what it can.
//! - While few wait, further repairs go out for what may be lost, as many as the loss rate that the receiver reports asks for (`law`).
//! - Where what is lost comes in long runs, because something blocks the line again and again, sums bring nothing: whatever is sent
//!   meanwhile is lost. There it does as wide COTMLL does, and frames are shorter ([`crate::arq`]'s `length`).
//! - After silence, an idle line carries in turn the oldest frame that is missing, and a sum of the newest.

use base::{Instant, Packet};

use crate::arq::end::whole;
use crate::arq::frame::{Class, Extras, Fields, Frame, Part, Progress};
use crate::arq::sequence::on_air;
use crate::arq::{Core, TRAILER_LEN};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, Obstacle};
use crate::event::Event;
use crate::line::LineLimits;
use crate::treatment::Treatment;

mod config;
mod coverage;
mod decoder;
mod kept;
mod law;
mod symbol;

pub use config::Config;

use coverage::{Coverage, coefficient};
use decoder::{Decoder, Sum};
use kept::Kept;
use law::{Repairs, Wanted};

/// One end of a link with coded ARQ.
#[derive(Debug)]
pub struct Coded {
    config: Config,
    core: Core,
    repairs: Repairs,
    decoder: Decoder,
    kept: Kept,
    /// The peer's sending from which on frames are kept no more.
    keeps_until: u64,
    /// Bytes that wait outside.
    backlog: u64,
    /// Whether the next filler is a sum.
    fills_with_sum: bool,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    repairs: u64,
    repair_bytes: u64,
    solved: u64,
    /// Sums of frames that all are known.
    needless: u64,
    /// Sums of frames that were known and are not kept.
    late: u64,
    /// Sums for which there was no room.
    refused: u64,
}

impl Coded {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        let mut coded = Self {
            config,
            core: Core::new(config.ordered),
            repairs: Repairs::default(),
            decoder: Decoder::default(),
            kept: Kept::default(),
            keeps_until: 0,
            backlog: 0,
            fills_with_sum: false,
            counters: Counters::default(),
        };
        coded.set_line(line);
        coded
    }

    /// Frames that wait to be sent for the first time.
    fn waiting(&self) -> u64 {
        self.backlog.div_ceil(self.core.room as u64) + u64::from(self.core.sender.is_pending())
    }

    /// The repair that goes before anything else. On a line without a rate none goes but for what was lost: it would cost what
    /// others could have.
    fn wanted(&self) -> Option<Wanted> {
        if self.core.is_blocked_often() {
            return None;
        }
        let waiting = if self.core.line.rate().is_some() { self.waiting() } else { u64::MAX };
        self.repairs.wanted(&self.core.sender, self.core.serial, waiting)
    }

    /// Appends a repair, as a sum or as a frame where there is no other.
    fn poll_repair(&mut self, now: Instant, wanted: Wanted, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let (end, kind) = match wanted {
            Wanted::Again(frame) => (frame, FrameKind::Retransmission),
            Wanted::Lost(end) => (end, FrameKind::Retransmission),
            Wanted::Newest => (self.core.sender.newest()?, FrameKind::Repair),
        };
        let coverage = if wanted == Wanted::Again(end) { None } else { self.coverage(end) };
        self.repairs.on_sent(self.core.serial, end);
        let start = out.len();
        let info = match coverage {
            Some(coverage) => self.append_sum(now, &coverage, wanted, out),
            None => self.core.poll_again(now, end, kind, out),
        };
        if info.kind == FrameKind::Repair {
            self.counters.repairs += 1;
            self.counters.repair_bytes += (out.len() - start) as u64;
        }
        Some(info)
    }

    /// The frames up to `end` that the receiver may lack, if there are others and a frame has room to say which.
    fn coverage(&self, end: u64) -> Option<Coverage> {
        let Core { line, longest, sender, .. } = &self.core;
        let space = line.frame_limit().saturating_sub(TRAILER_LEN + longest + symbol::MAX_FIELDS);
        let coverage = Coverage::choose(end, MOST_SUMMED, space, |it| sender.part(it).is_some());
        coverage.filter(|coverage| coverage.count() > 1)
    }

    fn append_sum(
        &mut self,
        now: Instant,
        coverage: &Coverage,
        wanted: Wanted,
        out: &mut Vec<u8>,
    ) -> FrameInfo {
        let Core { serial, sender, .. } = &mut self.core;
        let (start, serial) = (out.len(), *serial);
        let mut sum = Vec::new();
        for sequence in coverage.frames() {
            if let Some(part) = sender.part(sequence) {
                symbol::add(&mut sum, coefficient(serial, sequence), &part);
            }
        }
        coverage.emit(out);
        out.extend_from_slice(&sum);
        let end = coverage.end();
        let marks = sender.marks_of(end);
        if wanted == Wanted::Lost(end) {
            sender.on_summed(end, serial);
        }
        let fields = Fields { class: Class::Repair, sequence: end, ..Fields::control(serial) };
        self.core.complete(now, &fields, start, out);
        whole(FrameKind::Repair, marks)
    }

    /// An idle line carries what may help: nothing was heard for a while.
    fn poll_filler(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.fills_with_sum = !self.fills_with_sum;
        if self.fills_with_sum {
            return self.poll_repair(now, Wanted::Newest, out);
        }
        let missing = self.core.sender.missing().first().copied();
        let oldest = missing.or_else(|| Some(self.core.sender.oldest()?.1))?;
        Some(self.core.poll_again(now, oldest, FrameKind::Filler, out))
    }

    /// Takes a sum.
    fn handle_sum(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), Discard> {
        let Some(end) = self.core.receiver.in_window(frame.sequence) else {
            self.counters.needless += 1;
            return Err(Discard::Duplicate(frame.sequence.into()));
        };
        let mut bytes = frame.payload;
        let coverage = Coverage::parse(end, &mut bytes).ok_or_else(|| self.core.refuse())?;
        self.core.news.on_frame(now);
        let (mut symbol, mut unknown) = (bytes.to_vec(), Vec::new());
        for sequence in coverage.frames() {
            let coefficient = coefficient(frame.serial.into(), sequence);
            if !self.core.receiver.has(sequence) {
                unknown.push((sequence, coefficient));
            } else if let Some(part) = self.kept.part(sequence) {
                symbol::add(&mut symbol, coefficient, &part);
            } else {
                self.counters.late += 1;
                return Err(Discard::Late(sequence));
            }
        }
        let Some(sum) = Sum::new(&unknown, symbol) else {
            self.counters.needless += 1;
            return Err(Discard::Duplicate(end));
        };
        if !self.decoder.add(sum) {
            self.counters.refused += 1;
            return Err(Discard::OutsideWindow(end));
        }
        self.take_news();
        Ok(())
    }

    /// Takes a frame as it is.
    fn handle_source(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), Discard> {
        let sequence = self.core.receiver.in_window(frame.sequence);
        self.core.handle_payload(now, frame)?;
        if let Some(sequence) = sequence {
            self.keep(sequence, &frame.part());
            if !self.decoder.is_empty() {
                self.decoder.on_known(&frame.part(), sequence);
                self.take_news();
            }
        }
        Ok(())
    }

    /// Keeps a frame that has come while there may be sums with it.
    fn keep(&mut self, sequence: u64, part: &Part<'_>) {
        let receiver = &self.core.receiver;
        let Progress { heard, loss, .. } = receiver.progress();
        if receiver.has_gap() || loss > 0 {
            self.keeps_until = heard + KEEPING;
        }
        if heard < self.keeps_until {
            self.kept.keep(sequence, part);
        } else {
            self.kept.clear();
        }
    }

    /// Takes what sums have told.
    fn take_news(&mut self) {
        let news = self.decoder.take_news();
        news.seen.iter().for_each(|sequence| self.core.receiver.see(*sequence));
        for (sequence, symbol) in news.solved {
            let Some(part) = symbol::read(on_air(sequence), &symbol) else {
                self.core.counters.malformed += 1;
                continue;
            };
            self.keep(sequence, &part);
            let taken = self.core.receiver.handle_solved(&part, &mut self.core.ready);
            self.counters.solved += u64::from(taken.is_ok());
        }
    }
}

impl Endpoint for Coded {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        self.core.offer(packet, treatment)
    }

    fn has_room(&self, treatment: Treatment) -> bool {
        self.core.has_room(treatment)
    }

    fn set_backlog(&mut self, bytes: u64) {
        self.backlog = bytes;
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.core.sender.obstacle()
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        let frame = self.core.parse(frame)?;
        if frame.extras != Extras::default() {
            return Err(self.core.refuse());
        }
        self.core.on_serial(&frame);
        let heard = self.core.heard(&frame);
        let flags = self.core.sender.flags();
        self.core.handle_report(&frame, heard);
        if self.core.sender.flags() > flags {
            self.repairs.on_loss(self.core.serial);
        }
        if let Some(heard) = heard {
            self.repairs.on_heard(heard, self.core.sender.base());
        }
        match frame.class {
            Class::Repair => self.handle_sum(now, &frame),
            Class::Reliable => self.handle_source(now, &frame),
            Class::Control | Class::Unreliable => self.core.handle_payload(now, &frame),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let is_silent = self.core.tail.is_due(now);
        self.core.restart_tail(now);
        let wanted = self.wanted();
        let is_sending = wanted.is_some()
            || self.core.sender.may_cut()
            || self.core.is_blocked_often() && self.core.sender.has_flagged();
        if let Some(info) = self.core.poll_unreliable(now, is_sending, out) {
            return Some(info);
        }
        self.core.serial += 1;
        let data = if self.core.is_blocked_often() {
            self.core.poll_reliable(now, |_, _, _| Extras::default(), out)
        } else if let Some(wanted) = wanted {
            self.poll_repair(now, wanted, out)
        } else if self.core.sender.may_cut() {
            self.core.poll_new(now, out)
        } else if is_silent && !self.core.news.alarm.is_due(now) {
            self.poll_filler(now, out)
        } else {
            None
        };
        Some(data.unwrap_or_else(|| self.core.control(now, &Fields::control(self.core.serial), out)))
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.core.ready.pop()
    }

    /// When a report is due, or unacknowledged frames are to be sent again, which [`Endpoint::demand`] asks for then.
    fn poll_timeout(&self) -> Option<Instant> {
        self.core.poll_timeout()
    }

    fn demand(&self, now: Instant) -> Demand {
        let core = &self.core;
        if core.is_blocked_often() {
            return core.demand(now);
        }
        if core.sender.may_cut()
            || core.unreliable_sender.is_pending()
            || core.news.alarm.is_due(now)
            || self.wanted().is_some()
        {
            Demand::Fresh
        } else if core.sender.has_outstanding() && core.tail.is_due(now) {
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
        self.core.set_line(line, self.config.frame_payload(line), self.config.window(line));
        if self.config.frame_payload.is_none() {
            self.core.fit_length();
        }
    }

    fn reset(&mut self) {
        self.core.reset();
        self.repairs.reset();
        self.decoder = Decoder::default();
        self.kept.clear();
        self.keeps_until = 0;
    }

    fn observe(&mut self) {
        self.core.sender.events.observe();
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.sender.events.pop()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counters;
        let mut counters = self.core.counters();
        counters.extend([
            ("frames-repair", c.repairs),
            ("bytes-repair", c.repair_bytes),
            ("frames-solved", c.solved),
            ("sums-needless", c.needless),
            ("sums-late", c.late),
            ("sums-refused", c.refused),
        ]);
        counters
    }
}

/// Sendings of the peer since the last loss, in which there may still be sums of what has come: more than it is wary for.
const KEEPING: u64 = 1 << 16;

/// Frames in a sum of ours at most. Ours: each costs both ends an addition of a frame.
const MOST_SUMMED: u64 = 256;

#[cfg(test)]
mod tests;
