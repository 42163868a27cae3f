//! Link-level FEC, and hybrid FEC/ARQ: each packet cut into fragments, with redundancy among them.
//!
//! Tickoo, Subramanian, Kalyanaraman and Ramakrishnan 2005, *LT-TCP: End-to-End Framework to Improve TCP Performance over Networks with
//! Lossy Channels*, sections IV.3 and IV-C, after Barakat and Al Fawal 2004: the two link-level schemes that LT-TCP is compared with. A
//! packet becomes K fragments of data and N - K of a Reed-Solomon code, and any K of the N that arrive make it whole. FEC alone leaves
//! it at that (`transmissions = 1`). Hybrid FEC/ARQ sends all N again where fewer arrived, at most three times.
//!
//! Deviations, and what the paper leaves open:
//! - The paper's schemes are a model: it says nothing of headers, of reports, or of when the sender learns what was lost. The frames are
//!   ours (`harq/header.rs`), and cost 4 bytes a fragment with FEC alone, 7 otherwise.
//! - Its tables fit only if a transmission's fragments count by themselves: with N = 10, K = 9 and a tenth of all frames lost, 26.4 % of packets
//!   are lost after one transmission and 0.5 % after four. So it is unless `combine` is set. With that each transmission has fresh fragments, and
//!   any K of all that have come are enough.
//! - Blocks go through the window of [`arq`](crate::arq), with its reports: a block is lost if it is missing and the third transmission after
//!   its own has been heard of, or if a report is overdue (`harq/round_trip.rs`). Reports are frames of their own.
//! - While the receiver has not acknowledged all blocks before the first that may still be sent again, each fragment names that one, and so
//!   does a control frame where there are no fragments. So packets wait for nothing that was given up.
//! - A packet that is too long for a block is spread over several, and lost with any of them.
//! - Packets that ask to be sent once ([`Treatment::Once`]) are coded alike, have numbers of their own, and are not acknowledged. With FEC
//!   alone all packets are.
//! - When the peer starts afresh, a packet of which fragments are still to be sent is lost like any other that is under way.

use base::{Duration, Instant, Packet};

use crate::USUAL_PACKET;
use crate::arq::frame::{Class, Extras, Fields, Frame};
use crate::arq::policy::{OnLoss, Policy};
use crate::arq::sequence::on_air;
use crate::arq::{Core, Departures, LineId, Next, Timer, earliest};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full};
use crate::event::Event;
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::treatment::Treatment;

mod arriving;
mod code;
mod config;
mod gathering;
mod header;
mod outgoing;
mod round_trip;

pub use config::{Config, Contradiction, Ordered};

use arriving::{NOTHING, Newest};
use gathering::{Recent, Window};
use header::{CONTROL, Header, Piece, Transmission};
use outgoing::{About, Outgoing};
use round_trip::RoundTrip;

/// One end of a link with FEC, or with hybrid FEC/ARQ.
#[derive(Debug)]
pub struct Harq {
    config: Config,
    /// Windows of blocks, and what sends once.
    core: Core<Transmissions>,
    /// Bytes of a packet in a block at most.
    room: usize,
    outgoing: Option<Outgoing>,
    /// When transmissions began and when they ended.
    begun: Departures,
    ended: Departures,
    round_trip: RoundTrip,
    /// The newest transmission that a report has heard of.
    heard: u64,
    /// When the oldest transmission is lost without a report, or a report is to be asked for.
    timer: Timer,
    /// When the floor was told last.
    told: Instant,
    awaited: Window,
    recent: Recent,
    newest: Newest,
    counters: Counters,
}

/// How often a block is sent at most.
#[derive(Clone, Copy, Debug)]
struct Transmissions(u8);

impl Policy for Transmissions {
    const EXPIRES: bool = false;

    fn fresh(&self) -> Self {
        *self
    }

    fn on_lost(&mut self, _block: u64, transmissions: u8) -> OnLoss {
        if transmissions < self.0 { OnLoss::Retransmit } else { OnLoss::GiveUp }
    }
}

#[derive(Debug, Default)]
struct Counters {
    blocks_new: u64,
    blocks_again: u64,
    blocks_once: u64,
    blocks_decoded: u64,
    repairs: u64,
    repair_bytes: u64,
    duplicates: u64,
    late: u64,
    timeouts: u64,
    asked: u64,
}

impl Harq {
    /// An endpoint with nothing said yet.
    ///
    /// # Panics
    /// With parameters that contradict each other ([`Config::check`]).
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        config.check().expect("parameters that go together");
        let transmissions = Transmissions(config.transmissions.get() as u8);
        let mut harq = Self {
            config,
            core: Core::new(config.order(), transmissions),
            room: 0,
            outgoing: None,
            begun: Departures::default(),
            ended: Departures::default(),
            round_trip: RoundTrip::default(),
            heard: 0,
            timer: Timer::Off,
            told: Instant::ZERO,
            awaited: Window::default(),
            recent: Recent::default(),
            newest: NOTHING,
            counters: Counters::default(),
        };
        harq.set_line(line);
        harq
    }

    /// How a packet is sent: with FEC alone as one that asks for it.
    fn treated(&self, treatment: Treatment) -> Treatment {
        if self.config.repeats() { treatment } else { Treatment::Once }
    }

    /// How long a report may take.
    fn timeout(&self) -> Duration {
        let frames = self.core.length.frame_time().saturating_mul(MARGIN_FRAMES);
        self.round_trip.timeout(frames.max(MARGIN))
    }

    /// Sets the timer by what is under way now.
    fn set_timer(&mut self) {
        let sender = &mut self.core.sender;
        let from = if sender.has_outstanding() {
            // Without one, all that is missing will be sent again, or is not out yet.
            sender.oldest().and_then(|(serial, _)| {
                self.ended.forget_before(serial);
                self.ended.of(serial)
            })
        } else if sender.in_flight() > 0 && !sender.floor_is_news() {
            // All is received or given up, and the receiver has not said that it knows.
            Some(self.told)
        } else {
            None
        };
        self.timer = from.map_or(Timer::Off, |from| Timer::At(from + self.timeout()));
    }

    /// Whether it is time to ask for a report.
    fn asks(&self, now: Instant) -> bool {
        self.timer.is_due(now) && !self.core.sender.has_outstanding()
    }

    /// The next block to be sent, of either kind.
    fn next_block(&mut self) -> Option<Outgoing> {
        let meanwhile = self.core.meanwhile(self.core.sender.is_urgent());
        let mut block = vec![0; code::BLOCK_FIELDS];
        let once = self.core.turns.is_here(meanwhile);
        if let Some(cut) = once.then(|| self.core.unreliable_sender.poll(self.room, &mut block)).flatten() {
            self.counters.blocks_once += 1;
            self.core.turns.on_frame(block.len(), meanwhile);
            let (number, first, last) = (cut.number, cut.first, cut.last);
            // A fragment counts with others: routers keep no order between different DSCPs (RFC 2983, 4.1).
            let marks = cut.marks.without_dscp();
            let about = About { number, serial: None, kind: FrameKind::New, marks, first, last, before: 0 };
            return Some(Outgoing::new(&self.config, &about, block));
        }
        if !self.core.sender.is_urgent() {
            return None;
        }
        let transmission = self.core.begin_transmission();
        let chosen = self.core.sender.poll(Next::Due, transmission, self.room, &mut block)?;
        self.core.turns.on_other(block.len());
        match chosen.kind {
            FrameKind::Retransmission => self.counters.blocks_again += 1,
            _ => self.counters.blocks_new += 1,
        }
        let about = About {
            number: chosen.sequence,
            serial: Some(transmission.serial),
            kind: chosen.kind,
            marks: chosen.marks,
            first: chosen.first,
            last: chosen.last,
            before: chosen.before,
        };
        Some(Outgoing::new(&self.config, &about, block))
    }

    /// The next fragment, if there is a block to be sent.
    fn poll_fragment(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        if self.outgoing.is_none() {
            self.outgoing = self.next_block();
        }
        let floor = self.core.sender.pending_floor();
        let block = self.outgoing.as_mut()?;
        let transmission = block.serial.map(|serial| Transmission { serial: on_air(serial), floor });
        let is_first = block.is_at_start();
        Header { index: block.index(), number: on_air(block.number), transmission }.emit(out);
        let start = out.len();
        let info = block.poll(out);
        match info.kind {
            FrameKind::Repair => {
                self.counters.repairs += 1;
                self.counters.repair_bytes += (out.len() - start) as u64;
            }
            FrameKind::Retransmission => self.core.counters.retransmissions += 1,
            _ => self.core.counters.new += 1,
        }
        let (serial, is_last) = (block.serial, block.is_done());
        self.begun.hand_over(now, serial.filter(|_| is_first));
        self.ended.hand_over(now, serial.filter(|_| is_last));
        if is_last {
            self.outgoing = None;
        }
        if serial.is_some() {
            self.on_floor_told(now);
        }
        Some(info)
    }

    /// A frame that tells what has come and, where that is news, what is given up; or asks for such a one.
    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) -> FrameInfo {
        let asks = self.asks(now);
        if asks {
            self.counters.asked += 1;
            self.round_trip.on_timeout();
        }
        let extras = Extras { place: None, floor: self.core.sender.pending_floor() };
        let fields = Fields { first: asks, extras, ..Fields::control(self.core.transmission().serial) };
        let start = out.len();
        out.push(CONTROL);
        self.core.complete(now, &fields, start, out);
        self.core.counters.control += 1;
        self.begun.hand_over(now, None);
        self.ended.hand_over(now, None);
        self.on_floor_told(now);
        FrameInfo { kind: FrameKind::Control, late_len: 0, marks: Marks::default() }
    }

    /// A frame that names the floor is on its way.
    fn on_floor_told(&mut self, now: Instant) {
        self.core.sender.on_floor_told();
        self.told = now;
    }

    /// Takes for lost what no report has told of in time.
    fn on_timeout(&mut self, now: Instant) {
        let timeout = self.timeout();
        let mut any = false;
        while let Some((serial, _)) = self.core.sender.oldest()
            && self.ended.of(serial).is_some_and(|ended| ended + timeout <= now)
        {
            self.core.sender.lose_oldest();
            any = true;
        }
        if any {
            self.counters.timeouts += 1;
            self.round_trip.on_timeout();
        }
        self.set_timer();
    }

    /// Takes a report, and what a control frame says besides.
    fn handle_control(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), Discard> {
        if frame.class != Class::Control || frame.extras.place.is_some() || !frame.payload.is_empty() {
            return Err(self.core.refuse());
        }
        let heard = self.core.heard(LineId::FIRST, frame);
        self.core.handle_report(frame, heard);
        if let Some(heard) = heard.filter(|heard| *heard > self.heard) {
            self.heard = heard;
            if let Some(begun) = self.begun.of(heard) {
                self.round_trip.on_sample(now.saturating_since(begun));
            }
            self.begun.forget_before(heard);
        }
        self.set_timer();
        self.handle_floor(now, frame.extras.floor);
        if frame.first {
            self.core.news.on_frame(now);
        }
        Ok(())
    }
}

/// Of the round trip: longer than a report waits at the receiver, and for a frame to leave there. Ours.
const MARGIN: Duration = Duration::from_millis(20);

/// Margin over the round trip, in frame times, where that is more than [`MARGIN`]: on a slow line a report waits
/// longer for a frame to leave.
const MARGIN_FRAMES: u64 = 4;

impl Endpoint for Harq {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        self.core.offer(packet, self.treated(treatment))
    }

    fn has_room(&self, treatment: Treatment) -> bool {
        self.core.has_room(self.treated(treatment))
    }

    fn memory(&self) -> usize {
        let outgoing = self.outgoing.as_ref().map_or(0, Outgoing::memory);
        let blocks = outgoing + self.awaited.memory() + self.recent.memory();
        self.core.memory() + blocks + self.begun.memory() + self.ended.memory()
    }

    fn limit_memory(&mut self, bytes: usize) {
        self.core.limit_memory(bytes);
        self.awaited.limit_memory(bytes);
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.core.counters.received += 1;
        let handled = match Piece::parse(frame) {
            Ok(Piece::Control(frame)) => return self.handle_control(now, &frame),
            Ok(Piece::Fragment(header @ Header { transmission: Some(transmission), .. }, fragment)) => {
                self.handle_sent(now, &header, transmission, fragment)
            }
            Ok(Piece::Fragment(header, fragment)) => self.handle_once(&header, fragment),
            Err(discard) => Err(discard),
        };
        match handled {
            Err(Discard::Truncated(_) | Discard::Malformed) => self.core.counters.malformed += 1,
            Err(Discard::Duplicate(_)) => self.counters.duplicates += 1,
            Err(Discard::Late(_)) => self.counters.late += 1,
            Err(Discard::OutsideWindow(_)) | Ok(()) => {}
        }
        handled
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now);
        if self.asks(now) {
            self.timer = Timer::Due;
        } else if self.timer.is_due(now) {
            self.on_timeout(now);
        }
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        if self.core.news.is_due(now) || self.asks(now) {
            let info = self.poll_control(now, out);
            self.set_timer();
            return Some(info);
        }
        let fragment = self.poll_fragment(now, out);
        let info = fragment.or_else(|| self.core.sender.floor_is_news().then(|| self.poll_control(now, out)));
        self.set_timer();
        info
    }

    fn handle_departure(&mut self, at: Instant) {
        self.begun.depart(at);
        self.ended.depart(at);
        self.set_timer();
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.core.ready.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest([self.core.poll_timeout(), self.timer.poll_timeout()])
    }

    fn demand(&self, now: Instant) -> Demand {
        let has_news = self.core.sender.floor_is_news() || self.asks(now);
        if self.outgoing.is_some() || has_news || self.core.has_fresh(now) {
            Demand::Fresh
        } else {
            Demand::Nothing
        }
    }

    fn set_line(&mut self, line: &LineLimits) {
        self.room = self.config.block_payload(line);
        self.core.set_line(line, self.room.min(USUAL_PACKET), self.config.window(line), false);
        self.begun.is_buffered = line.is_buffered();
        self.ended.is_buffered = line.is_buffered();
    }

    fn reset(&mut self) {
        // A packet that was not cut to its end starts again; the window counts the others that may be sent again.
        let is_cut = self.outgoing.take().is_some_and(|block| block.serial.is_none() && block.ends_packet);
        self.core.counters.packets_reset += u64::from(is_cut);
        self.core.reset();
        self.begun.reset();
        self.ended.reset();
        self.round_trip = RoundTrip::default();
        self.heard = 0;
        self.timer = Timer::Off;
        self.awaited.reset();
        self.recent.reset();
        self.newest = NOTHING;
    }

    fn observe(&mut self) {
        self.core.sender.events.observe();
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.sender.events.pop()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (c, core) = (&self.counters, &self.core);
        vec![
            ("blocks-new", c.blocks_new),
            ("blocks-retransmitted", c.blocks_again),
            ("blocks-once", c.blocks_once),
            ("blocks-given-up", core.sender.given_up()),
            ("blocks-not-awaited", core.receiver.given_up()),
            ("blocks-missing", core.unreliable_receiver.missing()),
            ("blocks-decoded", c.blocks_decoded),
            ("blocks-evicted", self.awaited.evicted()),
            ("frames-new", core.counters.new),
            ("frames-retransmitted", core.counters.retransmissions),
            ("frames-repair", c.repairs),
            ("bytes-repair", c.repair_bytes),
            ("frames-control", core.counters.control),
            ("frames-received", core.counters.received),
            ("frames-duplicate", c.duplicates),
            ("frames-late", c.late),
            ("frames-malformed", core.counters.malformed),
            ("acks-invalid", core.counters.acks_invalid),
            ("acks-asked-for", c.asked),
            ("time-outs", c.timeouts),
            ("packets-incomplete", core.receiver.incomplete() + core.unreliable_receiver.incomplete()),
            ("packets-not-taken", core.ready.dropped()),
            ("packets-reset", core.counters.packets_reset),
        ]
    }
}

#[cfg(test)]
mod tests;
