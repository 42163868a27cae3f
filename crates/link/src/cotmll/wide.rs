//! Wide COTMLL: the thesis's rules for links of today.
//!
//! Ours, after Faulkner 2004, 2.3. The thesis's format numbers frames with 10 bits, cuts packets to 487 bytes, and tells of one
//! gap at a time: 512 frames in flight fill 3.3 Mbit/s at 600 ms. This one has 24 bits, frames as long as the line takes, and
//! tells of as many gaps as fit.
//!
//! The sender's four rules are those of the thesis ([`cotmll`](super)). What differs:
//! - Every frame has a *serial* besides its sequence number: it counts transmissions of all frames but those of class 010, which repeat
//!   the last one. A report tells the newest serial
//!   that has come, so the sender knows what was lost without guessing which transmission an acknowledgement belongs to:
//!   a frame is lost if it is missing although a frame that was sent three transmissions later has come. Frames may overtake
//!   each other by two.
//! - A report tells of a *stretch* of the receive window, exactly: which frames of it have come and which have not. If that is more than a
//!   frame has room for, the next report goes on from there.
//! - A report tells how often frames are lost. While some are, an idle line carries each frame more than once before anything
//!   is heard of it, so that what TCP sends before its window is open seldom has to wait for a round trip.
//! - Packets wait for earlier ones of their flow only, unless told. The sender tells how far back the packet before is.
//! - What is unacknowledged is sent again after 50 ms of silence, or four frames' time, instead of all the time: on a slow line
//!   every such frame delays what comes next, which TCP takes for a queue.
//! - A packet whose time is up is not sent any more. Every frame then tells the *floor*, before which nothing will be sent again, until the
//!   receiver has heard of it.
//! - A bare acknowledgement goes out after 2 ms worth of the line's frames, or 5 ms after the first of them. A side with nothing
//!   unacknowledged and nothing to tell is silent.
//! - Frames are complete when they start.
//!
//! Limited persistence and the thesis's open choices belong to the thesis's format.

use base::{Duration, Instant, Packet};

use crate::arq::frame::{Class, Extras, Fields};
use crate::arq::{Copies, Core, Detection, LineId, LineTerms, Next, Over};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, Full, Lines, Obstacle};
use crate::line::LineLimits;
use crate::treatment::Treatment;

mod config;
mod written;

pub use config::Config;

/// One end of a link with wide COTMLL.
#[derive(Debug)]
pub struct Wide {
    config: Config,
    core: Core<Copies>,
    detection: Detection,
    /// Bytes that wait outside.
    backlog: u64,
}

impl Wide {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        let core = Core::new(config.ordered, Copies::default());
        let mut wide = Self { config, core, detection: Detection::default(), backlog: 0 };
        wide.set_line(line);
        wide
    }

    /// As if so many frames had been sent, and all of them acknowledged.
    #[cfg(test)]
    fn start_at(&mut self, number: u64) {
        self.core.start_at(number);
    }

    /// As if so many frames had come.
    #[cfg(test)]
    fn expect_from(&mut self, number: u64) {
        self.core.receiver.expect_from(number);
    }

    /// Frames in the transmission window, acknowledged ones behind a gap among them.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.core.sender.in_flight()
    }

    fn handle(&mut self, now: Instant, over: Over, frame: &[u8]) -> Result<(), Discard> {
        let line = over.line();
        let frame = self.core.parse(frame, over)?;
        if frame.class == Class::Repair || frame.extras.place.is_some() {
            return Err(self.core.refuse());
        }
        self.core.on_serial(now, line, &frame);
        let heard = self.core.heard_over_all(line, &frame);
        self.detection.handle_report(now, line, &mut self.core, &frame, heard.as_ref());
        let handled = self.core.handle_payload(now, &frame);
        self.core.handle_told_floor(now, frame.extras.floor);
        self.core.release(now);
        handled
    }

    fn poll(&mut self, now: Instant, over: Over, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let line = over.line();
        let core = &mut self.core;
        core.leave_over(over);
        self.detection.on_frame(now, line, core, self.backlog);
        core.sender.expire(now);
        let is_suspect = self.detection.is_suspect(line);
        let is_worth_once = self.detection.is_worth_once(now, line, core);
        let is_sign = is_worth_once && self.detection.is_sign_due(now, line);
        if is_worth_once
            && !is_sign
            && let Some(info) = core.poll_unreliable(now, core.sender.is_urgent(), out)
        {
            self.detection.on_unnumbered(now);
            return Some(info);
        }
        self.detection.on_numbered(now, line);
        let transmission = core.begin_transmission();
        self.detection.reordering(line).on_sent(now, transmission.serial);
        let extras = Extras { place: None, floor: core.sender.pending_floor() };
        core.sender.on_floor_told();
        let next = match is_suspect {
            true => self.detection.hoped(now, line, core),
            false => self.detection.next_due(now, line, core, self.backlog).or(Some(Next::Filler)),
        };
        let data = next.and_then(|next| core.poll(now, next, extras, out));
        if data.is_some() || is_sign {
            self.detection.on_asked(now, transmission);
        }
        let fields = Fields { extras, ..Fields::control(transmission.serial) };
        Some(data.unwrap_or_else(|| core.control(now, &fields, out)))
    }
}

impl Endpoint for Wide {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        self.core.offer(packet, treatment)
    }

    fn has_room(&self, treatment: Treatment) -> bool {
        self.core.has_room(treatment)
    }

    fn set_backlog(&mut self, treatment: Treatment, bytes: u64) {
        if treatment == Treatment::Reliable {
            self.backlog = bytes;
        }
    }

    fn set_hold(&mut self, most: Option<Duration>) {
        self.core.receiver.set_hold(most);
    }

    fn memory(&self) -> usize {
        self.core.memory() + self.detection.memory()
    }

    fn limit_memory(&mut self, bytes: usize) {
        self.core.limit_memory(bytes);
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.core.sender.obstacle()
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.handle(now, Over::Only, frame)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.detection.handle_timeout(now, &mut self.core);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.poll(now, Over::Only, out)
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.core.ready.pop()
    }

    /// When a report is due, or unacknowledged frames are to be sent again, which [`Endpoint::demand`] asks for then.
    fn poll_timeout(&self) -> Option<Instant> {
        self.detection.poll_timeout(&self.core)
    }

    fn demand(&self, now: Instant) -> Demand {
        self.detection.demand(now, LineId::FIRST, &self.core, self.backlog)
    }

    fn demand_over(&self, now: Instant, line: LineId) -> Demand {
        self.detection.demand(now, line, &self.core, self.backlog)
    }

    fn set_line(&mut self, line: &LineLimits) {
        let flexible = self.config.frame_payload.is_none();
        self.core.set_line(line, self.config.frame_payload(line), self.config.window(line), flexible);
    }

    fn lines(&mut self) -> Option<&mut dyn Lines> {
        Some(self)
    }

    fn reset(&mut self) {
        self.core.reset();
        self.detection.reset();
    }

    fn acknowledged(&self) -> u64 {
        self.core.acknowledged()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.core.counters()
    }
}

impl Lines for Wide {
    fn set_line_over(&mut self, line: LineId, terms: LineTerms) {
        self.core.expect_line(line);
        self.core.unreliable_receiver.take_late();
        self.detection.set_line(line, terms);
    }

    fn handle_frame_over(&mut self, now: Instant, line: LineId, frame: &[u8]) -> Result<(), Discard> {
        self.handle(now, Over::OneOf(line), frame)
    }

    fn poll_frame_over(&mut self, now: Instant, line: LineId, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.poll(now, Over::OneOf(line), out)
    }

    fn suspect(&mut self, line: LineId) {
        self.detection.darken(line, &mut self.core);
    }
}

#[cfg(test)]
mod tests;
