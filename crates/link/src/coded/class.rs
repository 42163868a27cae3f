//! One class of traffic over a link with coded ARQ: its window, its repairs and what it solves.

use base::{Duration, Instant, Packet, Rate};

use crate::arq::end::whole;
use crate::arq::frame::{Class as FrameClass, Extras, Fields, Frame, Part};
use crate::arq::sequence::on_air;
use crate::arq::{
    Core, Detection, LineId, LineTerms, Next, Order, Over, Suspicion, TRAILER_LEN, Transmission, earliest,
};
use crate::capabilities::Capabilities;
use crate::endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, Obstacle};
use crate::event::Event;
use crate::flow;
use crate::line::LineLimits;
use crate::treatment::Treatment;

use super::coverage::{Coverage, MAX_SUMMED, coefficient};
use super::decoder::{Decoder, Sum};
use super::early_repeats::EarlyRepeats;
use super::kept::Kept;
use super::losses::Losses;
use super::repairs::{self, Reach, Repairs, Wanted};
use super::symbol;
use super::work::STEP;
use super::{Config, Kind};

/// One end of a class. Whatever it sends may be of use to the same class at the other end alone.
#[derive(Debug)]
pub(super) struct Class {
    config: Config,
    kind: Kind,
    pub(super) core: Core<Losses>,
    detection: Detection,
    repairs: Repairs,
    pub(super) decoder: Decoder,
    kept: Kept,
    /// The peer's transmission from which on frames are kept no more.
    keeps_until: u64,
    /// Bytes that wait outside.
    backlog: u64,
    /// Whether a class behind this one has something to send.
    delays_others: bool,
    /// Whether the next filler is a sum.
    fills_with_sum: bool,
    /// Whether much is known to be lost.
    loses_much: bool,
    /// When what is under way goes once more.
    early_repeats: EarlyRepeats,
    counters: Counters,
}

/// Bytes of memory that what a peer sends takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Frames beyond a gap, and sums that may become such.
    pub(super) held: usize,
    pub(super) sums: usize,
    pub(super) copies: usize,
}

impl Memory {
    /// With that of another.
    pub(super) const fn add(&mut self, other: Self) {
        self.held += other.held;
        self.sums += other.sums;
        self.copies += other.copies;
    }

    /// Without it.
    pub(super) const fn remove(&mut self, other: Self) {
        self.held -= other.held;
        self.sums -= other.sums;
        self.copies -= other.copies;
    }
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

impl Class {
    /// The class of packets of this kind, with nothing said yet.
    pub(super) fn new(config: Config, kind: Kind, line: &LineLimits) -> Self {
        // Who would rather lose a packet than wait for it does not wait for another.
        let order = if kind.treatment.is_once() { Order::None } else { config.ordered };
        let mut class = Self {
            config,
            kind,
            core: Core::new(order, Losses::new(kind)),
            detection: Detection::new(kind.treatment, kind.number),
            repairs: Repairs::default(),
            decoder: Decoder::default(),
            kept: Kept::default(),
            keeps_until: 0,
            backlog: 0,
            delays_others: false,
            fills_with_sum: false,
            loses_much: false,
            early_repeats: EarlyRepeats::default(),
            counters: Counters::default(),
        };
        class.set_line(line);
        class
    }

    /// Takes in what the line loses, as the reports of all classes have it. Where that has become much, interactive frames go once more.
    pub(super) fn learn_loss(&mut self, now: Instant, loss: u8, in_runs: bool) {
        self.core.set_loss(loss, in_runs);
        let lost_much = self.loses_much;
        self.loses_much = loss >= if lost_much { LITTLE } else { MUCH };
        if self.loses_much && !lost_much {
            self.early_repeats.begin();
        }
        if self.kind.treatment == Treatment::Interactive && self.early_repeats.is_due(now) {
            self.repeat_early();
        }
    }

    /// The newest frames under way go once more, before any is known to be lost.
    fn repeat_early(&mut self) {
        let Some(rate) = self.core.length.line.rate() else { return };
        let flags = self.core.sender.flags();
        self.core.sender.lose_newest(rate.bits_in(MOST_AGAIN) / 8);
        if self.core.sender.flags() > flags {
            self.repairs.on_heard(&self.core.sent_over_all(), self.core.sender.base());
            self.repairs.on_loss(self.core.transmissions());
        }
    }

    /// Whether a class behind this one has something to send.
    pub(super) fn set_delays_others(&mut self, delays: bool) {
        self.delays_others = delays;
    }

    /// What the latest report said of that.
    pub(super) fn loss(&self) -> (u8, bool) {
        (self.core.sender.loss(), self.core.is_blocked_often())
    }

    /// Whether frames go out as they are alone: where a line is blocked again and again, whatever is sent meanwhile is lost.
    fn is_uncoded(&self) -> bool {
        self.core.is_blocked_often() && !self.kind.treatment.is_once()
    }

    /// As it was last told, in bytes.
    pub(super) const fn backlog(&self) -> u64 {
        self.backlog
    }

    /// Frames that wait to be sent for the first time.
    pub(super) fn waiting(&self) -> u64 {
        self.backlog.div_ceil(self.core.length.room() as u64) + u64::from(self.core.sender.is_pending())
    }

    /// Whether there are packets to be sent, or sent again.
    pub(super) fn has_packets(&self) -> bool {
        let sender = &self.core.sender;
        match self.is_uncoded() {
            true => sender.is_urgent(),
            false => sender.may_cut() || self.wanted().is_some(),
        }
    }

    /// The repair that goes before anything else. On a line without a rate nothing is known to be idle, and of what there may be much none goes
    /// out but for what was lost: it would cost what others could have.
    fn wanted(&self) -> Option<Wanted> {
        if self.is_uncoded() {
            return None;
        }
        let is_cheap = self.core.length.line.rate().is_some() || self.kind.treatment != Treatment::Reliable;
        let waiting = if is_cheap { self.waiting() } else { u64::MAX };
        let risk = match self.kind.treatment {
            _ if self.delays_others => repairs::SHARED,
            Treatment::Once => repairs::ONCE,
            Treatment::Interactive | Treatment::Reliable => repairs::REPEATED,
        };
        self.repairs.wanted(&self.core.sender, self.core.transmissions(), waiting, risk)
    }

    /// The repair that goes over this line before anything else: of what was lost, if that arrives earliest over it.
    fn wanted_over(&self, now: Instant, line: LineId) -> Option<Wanted> {
        let wanted = self.wanted()?;
        let is_worth = match wanted {
            // One that is late would count as on its way, and keep back what is in time.
            Wanted::Newest => {
                self.detection.is_free(line) && self.detection.is_worth(now, line, &self.core, 0)
            }
            Wanted::Again(_) | Wanted::Lost(_) => self.detection.is_worth_repair(now, line, &self.core),
        };
        is_worth.then_some(wanted)
    }

    /// Whether a new frame should go over this line.
    fn takes_new(&self, now: Instant, line: LineId) -> bool {
        let sender = &self.core.sender;
        sender.may_cut()
            && self.detection.is_worth(now, line, &self.core, self.backlog + sender.pending_bytes())
    }

    /// What a line carries, how long it takes and what it may be used for.
    pub(super) fn set_line_over(&mut self, line: LineId, terms: LineTerms) {
        self.core.expect_line(line);
        self.detection.set_line(line, terms);
    }

    /// A line is dark: what is out on it was lost.
    pub(super) fn suspect(&mut self, line: LineId) {
        let flags = self.core.sender.flags();
        self.detection.darken(line, &mut self.core);
        self.lose_repairs();
        if self.core.sender.flags() > flags {
            self.repairs.on_loss(self.core.transmissions());
        }
    }

    /// What is known of which lines are silent, where there are several.
    pub(super) fn suspicion(&self) -> Option<&Suspicion> {
        self.detection.suspicion()
    }

    /// Counts no more on repairs that have left over lines that are dark.
    fn lose_repairs(&mut self) {
        for line in self.detection.dark() {
            self.repairs.lose_over(line);
        }
    }

    /// Takes over what another class knows of that.
    pub(super) fn share(&mut self, suspicion: &Suspicion) {
        let flags = self.core.sender.flags();
        self.detection.share(&mut self.core, suspicion);
        self.lose_repairs();
        if self.core.sender.flags() > flags {
            self.repairs.on_loss(self.core.transmissions());
        }
    }

    /// Whether packets are given up.
    const fn gives_up(&self) -> bool {
        self.kind.treatment.is_once() || self.kind.expires
    }

    /// That nothing before this will be sent again, where that is news to whoever waits for it.
    fn extras(&self) -> Extras {
        let floor = if self.gives_up() { self.core.sender.pending_floor() } else { None };
        Extras { place: None, floor }
    }

    /// Appends a repair, as a sum or as a frame where there is no other.
    fn poll_repair(&mut self, now: Instant, wanted: Wanted, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let (end, kind) = match wanted {
            Wanted::Again(frame) => (frame, FrameKind::Retransmission),
            Wanted::Lost(end) => (end, FrameKind::Retransmission),
            Wanted::Newest => (self.core.sender.newest()?, FrameKind::Repair),
        };
        let coverage = if wanted == Wanted::Again(end) { None } else { self.coverage(end) };
        let start = coverage.as_ref().map_or(end, Coverage::start);
        self.repairs.on_sent(self.core.transmission(), Reach { end, start });
        let start = out.len();
        let info = match coverage {
            Some(coverage) => self.append_sum(now, &coverage, wanted, out),
            None => self.core.poll(now, Next::Again(kind, end), Extras::default(), out)?,
        };
        if info.kind == FrameKind::Repair {
            self.counters.repairs += 1;
            self.counters.repair_bytes += (out.len() - start) as u64;
        }
        Some(info)
    }

    /// The frames up to `end` that the receiver may lack, if there are others and a frame has room to say which.
    fn coverage(&self, end: u64) -> Option<Coverage> {
        let core = &self.core;
        let taken = TRAILER_LEN + core.length.full + symbol::MAX_FIELDS;
        let space = core.length.line.frame_limit().saturating_sub(taken);
        let coverage = Coverage::choose(end, MAX_SUMMED, space, |it| core.sender.part(it).is_some());
        coverage.filter(|coverage| coverage.count() > 1)
    }

    fn append_sum(
        &mut self,
        now: Instant,
        coverage: &Coverage,
        wanted: Wanted,
        out: &mut Vec<u8>,
    ) -> FrameInfo {
        let extras = self.extras();
        let (start, transmission) = (out.len(), self.core.transmission());
        let Core { sender, .. } = &mut self.core;
        let mut sum = Vec::new();
        for sequence in coverage.frames() {
            if let Some(part) = sender.part(sequence) {
                symbol::add(&mut sum, coefficient(transmission, sequence), &part);
            }
        }
        coverage.emit(out);
        out.extend_from_slice(&sum);
        let end = coverage.end();
        self.detection.reordering(transmission.line).on_sum(transmission.serial, coverage.start(), end);
        let sender = &mut self.core.sender;
        let marks = sender.marks_of(end);
        if wanted == Wanted::Lost(end) {
            sender.on_summed(end, transmission);
        }
        let fields = Fields {
            class: FrameClass::Repair,
            sequence: end,
            extras,
            ..Fields::control(transmission.serial)
        };
        self.core.complete(now, &fields, start, out);
        whole(FrameKind::Repair, marks)
    }

    /// An idle line carries what may help: nothing was heard for a while.
    fn poll_filler(&mut self, now: Instant, line: LineId, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.fills_with_sum = !self.fills_with_sum && self.detection.is_worth(now, line, &self.core, 0);
        if self.fills_with_sum {
            return self.poll_repair(now, Wanted::Newest, out);
        }
        let missing = self.core.sender.policy.missing().first().copied();
        let oldest = missing.or_else(|| Some(self.core.sender.oldest()?.1))?;
        self.core.poll(now, Next::Again(FrameKind::Filler, oldest), Extras::default(), out)
    }

    /// Takes a sum.
    fn handle_sum(&mut self, now: Instant, line: LineId, frame: &Frame<'_>) -> Result<(), Discard> {
        let Some(end) = self.core.receiver.in_window(frame.sequence) else {
            self.counters.needless += 1;
            return Err(Discard::Duplicate(frame.sequence.into()));
        };
        let mut bytes = frame.payload;
        let coverage = Coverage::parse(end, &mut bytes).ok_or_else(|| self.core.refuse())?;
        self.core.news.on_frame(now);
        if !self.has_room_for_sum(end, bytes.len()) {
            self.counters.refused += 1;
            return Err(Discard::OutsideWindow(end));
        }
        self.decoder.work().spend(coverage.count() as usize * STEP);
        let (mut symbol, mut unknown) = (bytes.to_vec(), Vec::new());
        for sequence in coverage.frames() {
            let coefficient = coefficient(Transmission { line, serial: frame.serial.into() }, sequence);
            if !self.core.receiver.has(sequence) {
                unknown.push((sequence, coefficient));
            } else if let Some(part) = self.kept.part(sequence) {
                if symbol::len(&part) > symbol.len() {
                    return Err(self.core.refuse());
                }
                self.decoder.work().spend(symbol::len(&part));
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
        let is_taken = self.decoder.add(sum);
        self.take_news();
        if is_taken { Ok(()) } else { Err(Discard::OutsideWindow(end)) }
    }

    /// Whether there is credit for a sum up to `end`, and memory for the frame that comes of it.
    fn has_room_for_sum(&mut self, end: u64, len: usize) -> bool {
        let Core { receiver, .. } = &self.core;
        self.decoder.work().is_paid() && receiver.has_memory_for(len, end - receiver.next())
    }

    /// Bytes of memory that frames beyond a gap, sums and copies take.
    pub(super) fn memory(&self) -> Memory {
        let (held, sums) = (self.core.receiver.memory(), self.decoder.memory());
        Memory { held: held + self.decoder.reserved(), sums, copies: self.kept.memory() }
    }

    /// What other classes take.
    pub(super) fn set_elsewhere(&mut self, Memory { held, sums, .. }: Memory) {
        self.core.receiver.set_elsewhere(held + self.decoder.reserved());
        self.decoder.set_elsewhere(sums);
    }

    /// Bytes of memory that all of it takes.
    pub(super) fn allocated(&self) -> usize {
        self.core.memory() + self.detection.memory() + self.decoder.memory() + self.kept.memory()
    }

    /// Held frames, here and in other classes, may take so many bytes, and sums among them half as many.
    pub(super) fn limit_memory(&mut self, bytes: usize) {
        self.core.receiver.limit_memory(bytes);
        self.decoder.limit_memory(bytes / 2);
    }

    /// Drops the oldest copies until so many bytes are free.
    pub(super) fn drop_copies(&mut self, bytes: usize) {
        self.kept.shrink(self.kept.memory().saturating_sub(bytes));
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
        let heard = receiver.heard_over_all().map(|(_, serial)| serial).sum::<u64>();
        if receiver.has_gap() || receiver.loss() > 0 {
            self.keeps_until = heard + KEEPING;
        }
        if heard < self.keeps_until {
            self.kept.keep(sequence, part);
        } else {
            self.kept.clear();
        }
    }

    /// When copies are dropped, if there are any. Sums of what is dropped are of no use, and what they were to repair comes again.
    fn forgets_at(&self) -> Option<Instant> {
        self.detection.forgets_at(self.kept.memory())
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

    /// Takes a frame that came over this line.
    pub(super) fn handle_frame_over(
        &mut self,
        now: Instant,
        over: Over,
        frame: &[u8],
    ) -> Result<(), Discard> {
        let line = over.line();
        self.decoder.work().earn(frame.len());
        let frame = self.core.parse(frame, over)?;
        let is_odd = frame.class == FrameClass::Unreliable
            || frame.extras.place.is_some()
            || frame.extras.floor.is_some() && !self.gives_up();
        if is_odd {
            return Err(self.core.refuse());
        }
        self.core.on_serial(now, line, &frame);
        let heard = self.core.heard_over_all(line, &frame);
        let (flags, false_alarms) = (self.core.sender.flags(), self.detection.false_alarms());
        self.detection.handle_report(now, line, &mut self.core, &frame, heard.as_ref());
        self.lose_repairs();
        if self.core.sender.flags() > flags {
            self.repairs.on_loss(self.core.transmissions());
        } else if self.detection.false_alarms() > false_alarms && self.core.sender.loss() == 0 {
            self.repairs.on_false_alarm();
        }
        if let Some(heard) = heard {
            self.repairs.on_heard(&self.detection.ripe(&heard), self.core.sender.base());
        }
        if self.kind.expires {
            self.core.handle_told_floor(now, frame.extras.floor);
        } else {
            let is_known = !self.core.on_floor(frame.extras.floor) && frame.extras.floor.is_some();
            // Whoever says by itself what is known has not heard that it is.
            if is_known && frame.class == FrameClass::Control {
                self.core.news.on_frame(now);
            }
        }
        let handled = match frame.class {
            FrameClass::Repair => self.handle_sum(now, line, &frame),
            FrameClass::Reliable => self.handle_source(now, &frame),
            FrameClass::Control | FrameClass::Unreliable => Ok(()),
        };
        self.decoder.forget_before(self.core.receiver.next());
        self.core.release(now);
        handled
    }

    /// Starts a frame that leaves over this line.
    pub(super) fn poll_frame_over(
        &mut self,
        now: Instant,
        over: Over,
        out: &mut Vec<u8>,
    ) -> Option<FrameInfo> {
        let line = over.line();
        self.core.leave_over(over);
        let is_silent = self.detection.is_silent(now, line);
        self.detection.on_frame(now, line, &self.core, self.backlog);
        self.detection.on_numbered(now, line);
        self.core.sender.expire(now);
        self.core.sender.on_floor_told();
        let (wanted, takes_new, extras) =
            (self.wanted_over(now, line), self.takes_new(now, line), self.extras());
        let due = self.detection.next_due(now, line, &self.core, self.backlog);
        let transmission = self.core.begin_transmission();
        self.detection.reordering(line).on_sent(now, transmission.serial);
        let data = if self.detection.is_suspect(line) {
            let hoped = self.detection.hoped(now, line, &self.core);
            hoped.and_then(|next| self.core.poll(now, next, extras, out))
        } else if self.is_uncoded() {
            let core = &mut self.core;
            core.poll(now, due.unwrap_or(Next::Filler), extras, out)
        } else if let Some(wanted) = wanted {
            self.poll_repair(now, wanted, out)
        } else if takes_new {
            self.core.poll(now, Next::New, extras, out)
        } else if is_silent && !self.kind.treatment.is_once() && !self.core.news.is_due(now) {
            self.poll_filler(now, line, out)
        } else {
            None
        };
        if data.is_some() {
            self.detection.on_asked(now, transmission);
        }
        Some(data.unwrap_or_else(|| {
            let fields = Fields { extras, ..Fields::control(transmission.serial) };
            self.core.control(now, &fields, out)
        }))
    }

    /// What there is for this line, if it is free.
    pub(super) fn demand_over(&self, now: Instant, line: LineId) -> Demand {
        let core = &self.core;
        if self.detection.is_suspect(line) {
            self.detection.probe(now, line, core)
        } else if self.is_uncoded() {
            self.detection.demand(now, line, core, self.backlog)
        } else if !self.detection.may_speak(now, line, core) {
            Demand::Nothing
        } else if self.takes_new(now, line)
            || self.detection.reports(now, line, core)
            || core.sender.has_floor_news()
            || self.wanted_over(now, line).is_some()
        {
            Demand::Fresh
        } else if core.sender.awaits_report()
            && self.detection.is_silent(now, line)
            && !self.kind.treatment.is_once()
        {
            Demand::Filler
        } else {
            Demand::Nothing
        }
    }
}

impl Endpoint for Class {
    fn capabilities(&self) -> Capabilities {
        self.config.capabilities()
    }

    // Of every class, the once class too: what is repaired needs the window's numbers, and `Losses` says what is given up.
    fn offer(&mut self, _now: Instant, packet: Packet, _treatment: Treatment) -> Result<(), Full> {
        self.core.offer(packet, Treatment::Reliable)
    }

    fn has_room(&self, _treatment: Treatment) -> bool {
        self.core.has_room(Treatment::Reliable)
    }

    fn set_backlog(&mut self, _treatment: Treatment, bytes: u64) {
        self.backlog = bytes;
    }

    fn set_hold(&mut self, most: Option<Duration>) {
        self.core.receiver.set_hold(most);
    }

    fn carries_flow_of(&self, packet: &[u8]) -> bool {
        self.core.sender.carries(flow::hash(packet))
    }

    fn obstacle(&self) -> Option<Obstacle> {
        self.core.sender.obstacle()
    }

    fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> Result<(), Discard> {
        self.handle_frame_over(now, Over::Only, frame)
    }

    fn handle_timeout(&mut self, now: Instant) {
        let flags = self.core.sender.flags();
        self.detection.handle_timeout(now, &mut self.core);
        if self.core.sender.flags() > flags {
            self.repairs.on_loss(self.core.transmissions());
        }
        if self.forgets_at().is_some_and(|at| at <= now) {
            self.kept.clear();
        }
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameInfo> {
        self.poll_frame_over(now, Over::Only, out)
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        self.core.ready.pop()
    }

    /// When a report is due, or unacknowledged frames are to be sent again, which [`Endpoint::demand`] asks for then; or copies are to
    /// be forgotten.
    fn poll_timeout(&self) -> Option<Instant> {
        earliest([self.detection.poll_timeout(&self.core), self.forgets_at()])
    }

    fn demand(&self, now: Instant) -> Demand {
        self.demand_over(now, LineId::FIRST)
    }

    fn set_line(&mut self, line: &LineLimits) {
        let before = self.core.length.line.rate();
        let flexible = self.config.frame_payload.is_none();
        self.core.set_line(line, self.config.frame_payload(line), self.config.window(line), flexible);
        let is_slower = |(rate, before): (Rate, Rate)| rate.as_bps() < before.as_bps() / 4 * 3;
        if line.rate().zip(before).is_some_and(is_slower) {
            self.early_repeats.begin();
        }
    }

    fn reset(&mut self) {
        self.core.reset();
        self.detection.reset();
        self.repairs.reset();
        self.decoder.reset();
        self.kept.clear();
        self.keeps_until = 0;
        (self.loses_much, self.early_repeats) = (false, EarlyRepeats::default());
    }

    fn observe(&mut self) {
        self.core.sender.events.observe();
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.sender.events.pop()
    }

    fn acknowledged(&self) -> u64 {
        self.core.acknowledged()
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
            ("sums-refused", c.refused + self.decoder.given_up()),
        ]);
        counters
    }
}

/// Transmissions of the peer since the last loss, in which there may still be sums of what has come: more than it is wary for.
const KEEPING: u64 = 1 << 16;

/// 256ths: from so many on much is lost, until it is less than so few. Ours.
const MUCH: u8 = 64;
const LITTLE: u8 = 32;

/// What goes once more takes the line so long at most each time. Ours.
const MOST_AGAIN: Duration = Duration::from_millis(25);
