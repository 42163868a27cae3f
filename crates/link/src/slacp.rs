//! SLACP: a link layer that repairs most losses at once and gives up the rest.
//!
//! Kojo, Astuti, Daniel, Nyrhinen and Raatikainen 2005, *Improving TCP Performance over Wireless WANs Using TCP/IP-Friendly Link
//! Layer*, section 2. A frame that the receiver misses is sent again before anything else, but once only. Frames that are sent
//! again make up blocks. A block is complete once it has a number of frames or its timer expires; then follows redundancy
//! computed across its frames, from which the receiver recovers those that were lost once more. New data has no redundancy.
//! The sender has no retransmission timer: a receiver that hears nothing repeats its acknowledgement. One packet waits to be sent;
//! others stay in the IP queue.
//!
//! What the paper leaves open, and what is ours:
//! - Frames and reports are those of wide COTMLL ([`crate::arq`]): a frame is lost if it is missing and a later transmission has come.
//!   Frames that redundancy protects are judged once that has been sent.
//! - An acknowledgement that is repeated says for how long nothing has come, less its timer. The sender knows when the last frame that came
//!   was sent, so it knows which of its frames should have come since.
//! - A sender that has heard nothing for seconds while frames are in its window asks for a report, at ever longer intervals. A report that
//!   has heard the question settles what was sent before it. So no outage, however long, leaves a full window behind.
//! - Every frame tells, where it differs from what the receiver acknowledged, before which frame nothing will be sent again. The receiver
//!   then stops waiting for what is missing.
//! - Packets that ask to be sent once ([`Treatment::Once`]) are a class of their own, without acknowledgements.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet};

use crate::arq::end::whole;
use crate::arq::frame::{Class, Extras, Fields, Frame, Part, Place};
use crate::arq::policy::{OnLoss, Policy};
use crate::arq::sequence::on_air;
use crate::arq::{Core, Departures, LineId, Next, Over, Timer, earliest};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, Obstacle};
use crate::event::Event;
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::treatment::Treatment;

mod block;
mod config;

pub use config::{Config, FecRatio, RatioOutOfRange};

use block::{Blocks, Closed, Gathering, read_symbol};

/// One end of a link with SLACP.
#[derive(Debug)]
pub struct Slacp {
    config: Config,
    core: Core<Attempts>,
    gathering: Gathering,
    /// When the block that is gathering is complete, however few frames it has.
    fec_timer: Duration,
    ack_timer: Duration,
    /// Blocks whose redundancy is being sent, oldest first.
    closed: VecDeque<Closed>,
    blocks: Blocks,
    silence: Silence,
    question: Question,
    departures: Departures,
    /// Whether the packet that is being cut has redundancy from its first transmission on.
    protects_new: bool,
    counters: Counters,
}

/// How often a frame is sent at most.
#[derive(Clone, Copy, Debug)]
struct Attempts(u8);

impl Policy for Attempts {
    const REORDERING: u64 = 1;

    fn fresh(&self) -> Self {
        *self
    }

    fn on_lost(&mut self, _sequence: u64, transmissions: u8) -> OnLoss {
        if transmissions < self.0 { OnLoss::Retransmit } else { OnLoss::GiveUp }
    }
}

/// When the peer was last heard, and when that is to be told.
#[derive(Debug)]
struct Silence {
    since: Instant,
    /// Acknowledgements repeated since then.
    repeated: u32,
    timer: Timer,
}

/// When a report is asked for.
#[derive(Debug)]
struct Question {
    /// The newest transmission that any report has heard of.
    heard: u64,
    timer: Timer,
    /// Until the next.
    pause: Duration,
}

#[derive(Debug, Default)]
struct Counters {
    repairs: u64,
    repair_bytes: u64,
    recovered: u64,
    repeated: u64,
    asked: u64,
}

impl Slacp {
    /// An endpoint with nothing said yet.
    #[must_use]
    pub fn new(config: Config, line: &LineLimits) -> Self {
        let attempts = Attempts(1 + config.max_retransmissions.get() as u8);
        let mut slacp = Self {
            config,
            core: Core::new(config.ordered, attempts),
            gathering: Gathering::default(),
            fec_timer: Duration::ZERO,
            ack_timer: ACK_TIMER,
            closed: VecDeque::new(),
            blocks: Blocks::default(),
            silence: Silence { since: Instant::ZERO, repeated: 0, timer: Timer::Off },
            question: Question { heard: 0, timer: Timer::Off, pause: FIRST_QUESTION },
            departures: Departures::default(),
            protects_new: false,
            counters: Counters::default(),
        };
        slacp.set_line(line);
        slacp
    }

    /// When the block that is gathering is complete, if there is one.
    fn fec_due(&self) -> Option<Instant> {
        self.gathering.latest().map(|latest| latest + self.fec_timer)
    }

    /// Whether the block that is gathering is full or has waited long enough.
    fn is_complete(&self, now: Instant) -> bool {
        self.gathering.len() >= self.config.fec_block.get() as usize
            || self.fec_due().is_some_and(|due| due <= now)
    }

    fn has_repairs(&self, now: Instant) -> bool {
        !self.closed.is_empty() || self.is_complete(now)
    }

    /// Whether there are frames to be sent, new or again, or redundancy.
    fn is_sending(&self, now: Instant) -> bool {
        self.core.sender.is_urgent() || self.has_repairs(now)
    }

    /// Completes the block that is gathering if it is time.
    fn close_block(&mut self, now: Instant) {
        if self.is_complete(now) {
            let count = self.config.fec_ratio.of(self.gathering.len());
            self.closed.push_back(self.gathering.close(count));
        }
    }

    fn extras(&self, place: Option<Place>) -> Extras {
        Extras { place, floor: self.core.sender.pending_floor() }
    }

    /// A frame that is sent again, or a new one. What is sent again goes into a block, and so does new data whose class asks.
    fn poll_data(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let start = out.len();
        let transmission = self.core.transmission();
        let Core { sender, length, .. } = &mut self.core;
        let chosen = sender.poll(Next::Due, transmission, length.room(), out)?;
        let asks = self.protects_new || chosen.kind == FrameKind::Retransmission;
        let place = (asks && self.config.fec_ratio.of(1) > 0).then(|| {
            sender.defer(chosen.sequence);
            let sequence = on_air(chosen.sequence);
            let back = if chosen.first { chosen.back } else { 0 };
            let part =
                Part { sequence, first: chosen.first, last: chosen.last, back, payload: &out[start..] };
            self.gathering.push(now, chosen.sequence, &part)
        });
        Some(self.core.finish(now, &chosen, self.extras(place), start, out))
    }

    /// A frame of redundancy, if a block is complete.
    fn poll_repair(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.close_block(now);
        let start = out.len();
        let block = self.closed.front_mut()?;
        let (place, sources) = (block.poll(out)?, block.sources());
        if block.is_done()
            && let Some(block) = self.closed.pop_front()
        {
            block
                .sequences
                .into_iter()
                .for_each(|sequence| self.core.sender.judge(sequence, self.core.transmission()));
        }
        self.counters.repairs += 1;
        self.counters.repair_bytes += (out.len() - start) as u64;
        let fields = Fields {
            class: Class::Repair,
            sequence: sources as u64,
            extras: self.extras(Some(place)),
            ..Fields::control(self.core.transmission().serial)
        };
        self.core.complete(now, &fields, start, out);
        Some(whole(FrameKind::Repair, Marks::default()))
    }

    /// A frame that tells only what has come, or that nothing has.
    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) -> FrameInfo {
        let mut fields =
            Fields { extras: self.extras(None), ..Fields::control(self.core.transmission().serial) };
        if self.silence.timer.is_due(now) {
            self.counters.repeated += 1;
            fields.last = true;
            fields.sequence = self.silence.tell(now, self.ack_timer);
        }
        if self.asks(now) {
            self.counters.asked += 1;
            fields.first = true;
            self.question.pause = self.question.pause.saturating_mul(2).min(LONGEST_PAUSE);
            self.question.timer = Timer::At(now + self.question.pause);
        }
        self.core.control(now, &fields, out)
    }

    /// Whether it is time to ask for a report.
    fn asks(&self, now: Instant) -> bool {
        self.question.timer.is_due(now) && self.core.sender.in_flight() > 0
    }

    /// Whether there is something to tell that no data should keep back.
    fn has_message(&self, now: Instant) -> bool {
        self.silence.timer.is_due(now) || self.asks(now)
    }

    /// Takes what a frame reports.
    fn handle_report(&mut self, now: Instant, frame: &Frame<'_>) {
        let mut heard = self.core.heard(LineId::FIRST, frame);
        if let Some(heard) = &mut heard
            && frame.class == Class::Control
            && frame.last
        {
            let until = Duration::from_millis(frame.sequence.into());
            // As if the one after the last that should have come had come.
            *heard = (*heard).max(self.departures.last_within(*heard, until).map_or(0, |serial| serial + 1));
            self.core.sender.renew_floor();
        }
        self.core.handle_report(frame, heard);
        // What says nothing new, such as all that comes while the way there is blocked, answers nothing.
        if let Some(heard) = heard.filter(|heard| *heard > self.question.heard) {
            self.question = Question { heard, timer: Timer::At(now + FIRST_QUESTION), pause: FIRST_QUESTION };
        }
    }

    /// Takes what a frame says of a block, and the frames that this recovers.
    fn handle_block(&mut self, frame: &Frame<'_>) -> Result<(), Discard> {
        let mut recovered = Vec::new();
        match (frame.class, frame.extras.place) {
            (Class::Reliable, Some(place)) => self.blocks.handle_source(place, &frame.part(), &mut recovered),
            (Class::Repair, Some(place)) => {
                if !self.blocks.handle_repair(place, frame.sequence, frame.payload, &mut recovered) {
                    return Err(self.core.refuse());
                }
            }
            (Class::Repair, None) | (_, Some(_)) => return Err(self.core.refuse()),
            (_, None) => {}
        }
        for part in recovered.iter().filter_map(|symbol| read_symbol(symbol)) {
            // One that was not missing is a duplicate, which the receiver counts.
            let is_news = self.core.receiver.handle(&part, &mut self.core.ready).is_ok();
            self.counters.recovered += u64::from(is_news);
        }
        Ok(())
    }
}

impl Silence {
    /// A frame has come that another may follow, as it was no mere acknowledgement.
    fn await_next(&mut self, now: Instant, ack_timer: Duration) {
        self.repeated = 0;
        self.timer = Timer::At(now + ack_timer);
    }

    /// How long it has lasted beyond the timer, in milliseconds, which will be told again after twice as long.
    fn tell(&mut self, now: Instant, ack_timer: Duration) -> u64 {
        self.repeated += 1;
        self.timer = if self.repeated < MOST_REPEATED {
            Timer::At(now + ack_timer.saturating_mul(1 << (self.repeated - 1)))
        } else {
            Timer::Off
        };
        let beyond = now.saturating_since(self.since).saturating_sub(ack_timer);
        (beyond.as_nanos() / 1_000_000).min(LONGEST_SILENCE)
    }
}

/// How often an acknowledgement is repeated: with 25 ms for 6 s. Then it is for the sender to ask.
const MOST_REPEATED: u32 = 9;

/// Ours: little beside a satellite's round trip, since a short burst of TCP often loses its last frame; more than most carriers vary, and
/// where one varies more, a frame is sent again that was not lost.
const ACK_TIMER: Duration = Duration::from_millis(25);

/// Of the line: what follows the last frame that came may have to wait for longer ones.
const ACK_FRAMES: u64 = 4;

/// The shortest that may be told.
const LEAST_ACK_TIMER: Duration = Duration::from_millis(1);

/// After how much silence a report is asked for, then at twice the interval each time. Ours: longer than any satellite's round trip with
/// its requests for capacity, since acknowledgements that are repeated are to find what was lost before.
const FIRST_QUESTION: Duration = Duration::from_secs(5);

/// Between two questions at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Milliseconds; as many as the field holds.
const LONGEST_SILENCE: u64 = (1 << 24) - 1;

impl Endpoint for Slacp {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    fn offer(&mut self, _now: Instant, packet: Packet, treatment: Treatment) -> Result<(), Full> {
        let asks = self.config.protect_dscp.holds(&packet);
        self.core.offer(packet, treatment)?;
        if !treatment.is_once() {
            self.protects_new = asks;
        }
        Ok(())
    }

    fn has_room(&self, treatment: Treatment) -> bool {
        self.core.has_room(treatment)
    }

    fn set_hold(&mut self, most: Option<Duration>) {
        self.core.receiver.set_hold(most);
    }

    fn memory(&self) -> usize {
        // There are two at most: nothing goes into a block while the one before has redundancy to send.
        let closed: usize = self.closed.iter().map(Closed::memory).sum();
        self.core.memory()
            + self.gathering.memory()
            + closed
            + self.blocks.memory()
            + self.departures.memory()
    }

    fn limit_memory(&mut self, bytes: usize) {
        self.core.limit_memory(bytes);
        self.blocks.limit_memory(bytes / 2);
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.core.sender.obstacle()
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        let frame = self.core.parse(frame, Over::Only)?;
        self.core.on_serial(now, LineId::FIRST, &frame);
        self.handle_report(now, &frame);
        self.silence.since = now;
        if frame.class != Class::Control {
            self.silence.await_next(now, self.ack_timer);
        } else if frame.first {
            self.core.news.on_frame(now);
        }
        let handled = self.core.handle_payload(now, &frame);
        self.handle_block(&frame)?;
        if self.core.on_floor(frame.extras.floor) {
            self.core.news.on_frame(now);
        }
        self.core.release(now);
        handled
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.core.handle_timeout(now);
        self.silence.timer.handle_timeout(now);
        self.question.timer.handle_timeout(now);
        self.close_block(now);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.core.sender.expire(now);
        let has_message = self.has_message(now);
        if !has_message
            && !self.core.sender.floor_is_news()
            && let Some(info) = self.core.poll_unreliable(now, self.is_sending(now), out)
        {
            self.departures.hand_over(now, None);
            // Overtaken frames count as lost, and routers keep no order between different DSCPs (RFC 2983, 4.1).
            return Some(FrameInfo { marks: info.marks.without_dscp(), ..info });
        }
        let transmission = self.core.begin_transmission();
        self.departures.hand_over(now, Some(transmission.serial));
        self.core.sender.on_floor_told();
        if has_message {
            return Some(self.poll_control(now, out));
        }
        if self.core.sender.in_flight() == 0 {
            self.question.timer = Timer::At(now + FIRST_QUESTION);
        }
        // A block's redundancy follows its last frame: the receiver keeps few blocks.
        let data = self.poll_repair(now, out).or_else(|| self.poll_data(now, out));
        Some(data.unwrap_or_else(|| self.poll_control(now, out)))
    }

    fn handle_departure(&mut self, at: Instant) {
        self.departures.depart(at);
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.core.ready.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let question = self.question.timer.poll_timeout().filter(|_| self.core.sender.in_flight() > 0);
        earliest([self.core.poll_timeout(), self.silence.timer.poll_timeout(), question, self.fec_due()])
    }

    fn demand(&self, now: Instant) -> Demand {
        let has_news = self.core.sender.floor_is_news() || self.has_message(now);
        if has_news || self.core.has_fresh(now) || self.has_repairs(now) {
            Demand::Fresh
        } else {
            Demand::Nothing
        }
    }

    fn set_line(&mut self, line: &LineLimits) {
        let flexible = self.config.frame_payload.is_none();
        self.core.set_line(line, self.config.frame_payload(line), self.config.window(line), flexible);
        let two_frames = self.core.length.frame_time().saturating_mul(2).max(LEAST_FEC_TIMER);
        self.fec_timer = self.config.fec_timer.unwrap_or(two_frames);
        let frames = self.core.length.frame_time().saturating_mul(ACK_FRAMES).max(ACK_TIMER);
        self.departures.is_buffered = line.is_buffered();
        self.ack_timer = self.config.ack_timer.unwrap_or(frames).max(LEAST_ACK_TIMER);
    }

    fn reset(&mut self) {
        self.core.reset();
        self.gathering.reset();
        self.closed.clear();
        self.blocks.reset();
        self.silence.timer = Timer::Off;
        self.question = Question { heard: 0, timer: Timer::Off, pause: FIRST_QUESTION };
        self.departures.reset();
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
            ("frames-recovered", c.recovered),
            ("frames-given-up", self.core.sender.given_up()),
            ("frames-not-awaited", self.core.receiver.given_up()),
            ("acks-repeated", c.repeated),
            ("acks-asked-for", c.asked),
        ]);
        counters
    }
}

/// Where the line has no rate, or a high one.
const LEAST_FEC_TIMER: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
