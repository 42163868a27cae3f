//! What every end with this window does alike: cutting packets, numbering transmissions, reporting, and class 010.

use base::{Duration, Instant, Packet};

use crate::endpoint::{Discard, FrameInfo, FrameKind, Full};
use crate::line::LineLimits;
use crate::marks::Marks;
use crate::ready::Ready;
use crate::treatment::Treatment;
use crate::unreliable::{self, Meanwhile, Turns};

use super::frame::{self, Class, Extras, Fields, Frame, MAX_EXTENSION};
use super::length::Length;
use super::lines::{LineId, Over, PerLine, Transmission};
use super::policy::Policy;
use super::sender::{Arrival, Chosen, Next, Taken, Told};
use super::sequence::{self, MAX_WINDOW, SPACE};
use super::{Order, Receiver, Sender, TRAILER_LEN, Timer, earliest};

/// One end's windows and what it has to tell.
#[derive(Debug)]
pub(crate) struct Core<P> {
    pub(crate) length: Length,
    /// Whether what is lost lately comes in long runs, as the receiver has it.
    in_runs: bool,
    /// Transmissions so far over each line.
    serials: PerLine,
    /// What the frame that is being made leaves over.
    over: Over,
    /// Lines that frames leave room for, to say what was heard over each.
    lines: usize,
    pub(crate) sender: Sender<P>,
    pub(crate) receiver: Receiver,
    pub(crate) unreliable_sender: unreliable::Sender,
    pub(crate) unreliable_receiver: unreliable::Receiver<SPACE>,
    pub(crate) turns: Turns,
    pub(crate) news: News,
    pub(crate) ready: Ready,
    pub(crate) counters: Counters,
}

/// What has come since the last report.
#[derive(Debug)]
pub(crate) struct News {
    frames: u32,
    /// Frames that are worth a report of their own.
    pub(crate) worth: u32,
    /// When the news is to be told at the latest.
    timer: Timer,
    /// Lines over which any has come, a bit each.
    lines: u8,
}

impl News {
    /// A frame has come, or something else that the peer should know.
    pub(crate) fn on_frame(&mut self, now: Instant) {
        self.frames = self.frames.saturating_add(1);
        if self.frames >= self.worth {
            self.timer = Timer::Due;
        } else if self.timer == Timer::Off {
            self.timer = Timer::At(now + REPORT_DELAY);
        }
    }

    /// Whether any has come over a line.
    pub(crate) const fn came_over(&self, line: LineId) -> bool {
        self.lines & 1 << line.number() != 0
    }

    /// Whether it is time for a report.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.timer.is_due(now)
    }

    /// A report is on its way, which may have had no room for `all`.
    fn on_report(&mut self, now: Instant, all: bool) {
        (self.frames, self.lines) = (0, 0);
        self.timer = if all { Timer::Off } else { Timer::At(now + REPORT_DELAY) };
    }
}

/// Of frames unless told.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) new: u64,
    pub(crate) retransmissions: u64,
    fillers: u64,
    pub(crate) unreliable: u64,
    pub(crate) control: u64,
    pub(crate) received: u64,
    pub(crate) malformed: u64,
    pub(crate) acks_invalid: u64,
    pub(crate) repairs_needless: u64,
    pub(crate) packets_reset: u64,
}

impl<P: Policy> Core<P> {
    /// Nothing said yet, on a line that [`Core::set_line`] is still to tell of.
    pub(crate) fn new(order: Order, policy: P) -> Self {
        Self {
            length: Length::default(),
            in_runs: false,
            serials: PerLine::first(0),
            over: Over::Only,
            lines: 1,
            sender: Sender::new(0, policy),
            receiver: Receiver::new(order),
            unreliable_sender: unreliable::Sender::default(),
            unreliable_receiver: unreliable::Receiver::default(),
            turns: Turns::default(),
            news: News { frames: 0, worth: 1, timer: Timer::Off, lines: 0 },
            ready: Ready::holding(MAX_WINDOW as usize),
            counters: Counters::default(),
        }
    }

    /// As if so many frames had been sent, and all of them acknowledged.
    #[cfg(test)]
    pub(crate) fn start_at(&mut self, number: u64) {
        self.serials = PerLine::first(number);
        self.sender.start_at(number);
    }

    /// Frames carry `full` bytes of a packet at most, or fewer where they are `flexible`, and `window` full ones may be in flight.
    pub(crate) fn set_line(&mut self, line: &LineLimits, full: usize, window: u32, flexible: bool) {
        self.length.set_line(line, full, window, flexible);
        self.sender.set_window(self.length.window());
        let frame_bits = full as u64 * 8;
        let in_report_time = line.rate().map_or(MOST_WORTH, |rate| rate.bits_in(REPORT_TIME) / frame_bits);
        self.news.worth = in_report_time.clamp(1, MOST_WORTH) as u32;
    }

    /// What is known of losses besides what the latest report said.
    pub(crate) fn set_loss(&mut self, loss: u8, in_runs: bool) {
        self.sender.set_loss(loss);
        self.in_runs = in_runs;
    }

    /// Whether what is lost lately comes in long runs.
    pub(crate) fn is_blocked_often(&self) -> bool {
        self.in_runs
    }

    /// Makes time-outs happen: of the news, of packets whose time is up, and of those that have waited for earlier ones for long enough.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.news.timer.handle_timeout(now);
        self.sender.expire(now);
        self.release(now);
    }

    /// When a report is due, or a packet's time is up at one of the two ends.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        earliest([self.news.timer.poll_timeout(), self.sender.next_expiry(), self.receiver.next_release()])
    }

    /// Lets packets go up that have waited for earlier ones for long enough. To be called after each frame.
    pub(crate) fn release(&mut self, now: Instant) {
        self.receiver.release(now, &mut self.ready);
    }

    /// Takes what a frame says of the floor; whether frames are given up that were missing.
    pub(crate) fn on_floor(&mut self, floor: Option<u32>) -> bool {
        floor.is_some_and(|floor| self.receiver.on_floor(floor, &mut self.ready))
    }

    /// As [`Core::on_floor`], which is worth a report even if it is known: whoever says it again has not heard so.
    pub(crate) fn handle_told_floor(&mut self, now: Instant, floor: Option<u32>) {
        self.on_floor(floor);
        if floor.is_some() {
            self.news.on_frame(now);
        }
    }

    pub(crate) fn offer(&mut self, packet: Packet, treatment: Treatment) -> Result<(), Full> {
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

    /// One packet of each class waits at most; others should wait where they can be managed. None is taken while the window holds more than it may.
    pub(crate) fn has_room(&self, treatment: Treatment) -> bool {
        match treatment.is_once() {
            true => !self.unreliable_sender.is_pending(),
            false => !self.sender.is_pending() && self.sender.has_memory(),
        }
    }

    /// Bytes of memory that both windows take, and what is noted about them.
    pub(crate) fn memory(&self) -> usize {
        self.sender.memory()
            + self.receiver.memory()
            + self.unreliable_sender.memory()
            + self.unreliable_receiver.memory()
            + self.ready.memory()
    }

    /// Each window may take so many bytes from now on. What they have they keep.
    pub(crate) fn limit_memory(&mut self, bytes: usize) {
        self.sender.limit_memory(bytes);
        self.receiver.limit_memory(bytes);
    }

    /// Whether there are packets to be cut, or frames to be sent again, or a report is due.
    pub(crate) fn has_fresh(&self, now: Instant) -> bool {
        self.sender.is_urgent() || self.unreliable_sender.is_pending() || self.news.is_due(now)
    }

    /// A frame of class 010, if there is one and it is its turn; `is_sending` if there is class 001 to send. It counts in no order: its mark may take
    /// it past others.
    pub(crate) fn poll_unreliable(
        &mut self,
        now: Instant,
        is_sending: bool,
        out: &mut Vec<u8>,
    ) -> Option<FrameInfo> {
        let meanwhile = self.meanwhile(is_sending);
        let start = out.len();
        if !self.turns.is_here(meanwhile) {
            return None;
        }
        let cut = self.unreliable_sender.poll(self.room(), out)?;
        self.counters.unreliable += 1;
        let fields = Fields {
            class: Class::Unreliable,
            first: cut.first,
            last: cut.last,
            sequence: cut.number,
            ..Fields::control(self.transmission().serial)
        };
        self.complete(now, &fields, start, out);
        self.turns.on_frame(out.len() - start, meanwhile);
        Some(whole(FrameKind::New, cut.marks))
    }

    /// What class 001 has to do while class 010 would send.
    pub(crate) fn meanwhile(&self, is_sending: bool) -> Meanwhile {
        match (is_sending, self.sender.has_outstanding()) {
            (true, _) => Meanwhile::Sending,
            (false, true) => Meanwhile::Waiting,
            (false, false) => Meanwhile::Nothing,
        }
    }

    /// The frame of class 001 that goes next, if there is one such.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        next: Next,
        extras: Extras,
        out: &mut Vec<u8>,
    ) -> Option<FrameInfo> {
        let start = out.len();
        let chosen = self.sender.poll(next, self.transmission(), self.room(), out)?;
        Some(self.finish(now, &chosen, extras, start, out))
    }

    /// Bytes of a packet in the frame that is being made.
    fn room(&self) -> usize {
        let elsewhere = match self.over {
            Over::Only => 0,
            Over::OneOf(_) => frame::elsewhere_len(self.lines.max(self.receiver.heard_over_all().count())),
        };
        self.length.room().saturating_sub(elsewhere).max(1)
    }

    /// Counts and completes a frame of class 001 whose payload begins at `start`.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        chosen: &Chosen,
        extras: Extras,
        start: usize,
        out: &mut Vec<u8>,
    ) -> FrameInfo {
        match chosen.kind {
            FrameKind::Retransmission => self.counters.retransmissions += 1,
            FrameKind::Filler => self.counters.fillers += 1,
            FrameKind::Repair => {}
            _ => self.counters.new += 1,
        }
        let fields = Fields {
            class: Class::Reliable,
            first: chosen.first,
            last: chosen.last,
            sequence: chosen.sequence,
            serial: self.transmission().serial,
            back: chosen.first.then_some(chosen.back),
            extras,
        };
        self.complete(now, &fields, start, out);
        whole(chosen.kind, chosen.marks)
    }

    /// A frame that carries nothing but a report, and what `fields` say.
    pub(crate) fn control(&mut self, now: Instant, fields: &Fields, out: &mut Vec<u8>) -> FrameInfo {
        self.counters.control += 1;
        self.complete(now, fields, out.len(), out);
        whole(FrameKind::Control, Marks::default())
    }

    /// Appends what follows the payload of a frame that begins at `start`.
    pub(crate) fn complete(&mut self, now: Instant, fields: &Fields, start: usize, out: &mut Vec<u8>) {
        let extension = out.len();
        if let Over::OneOf(line) = self.over {
            frame::push_elsewhere(line, self.receiver.heard_over_all(), out);
        }
        fields.begin(out);
        let taken = out.len() - start + TRAILER_LEN;
        let space =
            self.length.line.frame_limit().saturating_sub(taken).min(MAX_EXTENSION - (out.len() - extension));
        let is_open = self.receiver.report(space, out);
        fields.emit(out.len() - extension, self.receiver.progress(self.over.line()), is_open, out);
        self.news.on_report(now, is_open);
        match fields.class {
            Class::Unreliable => {}
            Class::Control => self.turns.on_other(0),
            Class::Reliable | Class::Repair => self.turns.on_other(out.len() - start),
        }
    }

    /// Takes a frame apart, as it came over its line.
    pub(crate) fn parse<'a>(&mut self, frame: &'a [u8], over: Over) -> Result<Frame<'a>, Discard> {
        self.counters.received += 1;
        Frame::parse_as(frame, over).inspect_err(|_| self.counters.malformed += 1)
    }

    /// A frame says what this protocol does not have.
    pub(crate) fn refuse(&mut self) -> Discard {
        self.counters.malformed += 1;
        Discard::Malformed
    }

    /// Takes note of the transmission that a frame is.
    pub(crate) fn on_serial(&mut self, now: Instant, line: LineId, frame: &Frame<'_>) {
        self.news.lines |= 1 << line.number();
        if frame.class != Class::Unreliable {
            self.receiver.on_serial(now, line, frame.serial);
        }
    }

    /// There is this line too: a frame that is cut now may be sent again when all have been heard of.
    pub(crate) fn expect_line(&mut self, line: LineId) {
        self.lines = self.lines.max(usize::from(line.number()) + 1);
    }

    /// The next frame leaves over this line.
    pub(crate) fn leave_over(&mut self, over: Over) {
        self.over = over;
    }

    /// The next transmission over the line that [`Core::leave_over`] named.
    pub(crate) fn begin_transmission(&mut self) -> Transmission {
        let line = self.over.line();
        self.serials.set(line, self.serials.of(line) + 1);
        self.transmission()
    }

    /// The last transmission over that line.
    pub(crate) const fn transmission(&self) -> Transmission {
        let line = self.over.line();
        Transmission { line, serial: self.serials.of(line) }
    }

    /// Transmissions over all lines.
    pub(crate) fn transmissions(&self) -> u64 {
        self.serials.iter().map(|(_, serial)| serial).sum()
    }

    /// The last transmission over a line.
    pub(crate) const fn sent_over(&self, line: LineId) -> u64 {
        self.serials.of(line)
    }

    /// The last transmission over each line.
    pub(crate) const fn sent_over_all(&self) -> PerLine {
        self.serials
    }

    /// A report has heard of what never was.
    pub(crate) fn refuse_report(&mut self) {
        self.counters.acks_invalid += 1;
    }

    /// The transmission over the line that a frame came over of which its report has heard, if it was one of ours.
    pub(crate) fn heard(&self, line: LineId, frame: &Frame<'_>) -> Option<u64> {
        self.sent(line, frame.report.heard)
    }

    /// The newest transmissions of which a frame's report has heard, if all were ours.
    pub(crate) fn heard_over_all(&self, line: LineId, frame: &Frame<'_>) -> Option<PerLine> {
        let mut all = PerLine::default();
        for (line, heard) in frame.report.elsewhere() {
            let heard = self.sent(line, heard)?;
            // A line over which nothing has left is none, whatever the peer says.
            if heard > 0 {
                all.set(line, heard);
            }
        }
        all.set(line, self.heard(line, frame)?);
        Some(all)
    }

    /// The latest transmission over a line that has this number on the air.
    fn sent(&self, line: LineId, on_air: u32) -> Option<u64> {
        let serial = self.serials.of(line);
        serial.checked_sub(sequence::beyond(on_air.into(), sequence::on_air(serial)))
    }

    /// Takes the report of a frame that has heard of the transmission `heard` over the only line.
    pub(crate) fn handle_report(&mut self, frame: &Frame<'_>, heard: Option<u64>) {
        let Some(heard) = heard else { return self.refuse_report() };
        let _ = self.take_report(frame, &PerLine::first(heard), &PerLine::first(u64::MAX), |_| ());
    }

    /// As [`Core::handle_report`], where of what is missing only what was sent up to `ripe` may be lost; what it tells. `on_arrival` hears of
    /// each frame that has come.
    pub(crate) fn take_report(
        &mut self,
        frame: &Frame<'_>,
        heard: &PerLine,
        ripe: &PerLine,
        on_arrival: impl FnMut(Arrival),
    ) -> Option<Told> {
        let report = &frame.report;
        let told = match self.sender.handle_report(report, heard, ripe, on_arrival) {
            Taken::Told(told) => Some(told),
            Taken::Old => None,
            Taken::Invalid => {
                self.refuse_report();
                return None;
            }
        };
        self.in_runs = report.in_runs && report.loss > 0;
        self.length.on_report(report.loss, report.in_runs);
        self.sender.set_window(self.length.window());
        told
    }

    /// Takes note that a frame has come, and takes a packet's part.
    pub(crate) fn handle_payload(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), Discard> {
        match frame.class {
            Class::Control => return Ok(()),
            Class::Reliable | Class::Unreliable | Class::Repair => self.news.on_frame(now),
        }
        match frame.class {
            Class::Reliable => self.receiver.handle(&frame.part(), &mut self.ready),
            Class::Unreliable => {
                let (first, last) = (frame.first, frame.last);
                self.unreliable_receiver.handle(frame.sequence, first, last, frame.payload, &mut self.ready)
            }
            Class::Control | Class::Repair => Ok(()),
        }
    }

    /// Packets of which every frame was sent but not all acknowledged are given up and counted, since the peer may
    /// have delivered them; a packet that was not cut to its end starts again.
    pub(crate) fn reset(&mut self) {
        self.counters.packets_reset += self.sender.reset();
        self.receiver.reset();
        self.unreliable_sender.reset();
        self.unreliable_receiver.reset();
        self.turns = Turns::default();
        self.serials = PerLine::first(0);
        self.news.frames = 0;
        self.news.timer = Timer::Off;
    }

    /// Frames that the peer has told of.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
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
            ("repairs-needless", c.repairs_needless),
            ("packets-incomplete", self.receiver.incomplete() + self.unreliable_receiver.incomplete()),
            ("packets-not-taken", self.ready.dropped()),
            ("packets-reset", c.packets_reset),
            ("packets-expired", self.sender.expired()),
        ]
    }
}

/// Frames are complete when they start.
pub(crate) const fn whole(kind: FrameKind, marks: Marks) -> FrameInfo {
    FrameInfo { kind, late_len: 0, marks }
}

/// Of the line's time, what goes by between two bare acknowledgements at least. Ours: little beside any satellite's delay, and up to
/// 5 % of the capacity of the way back at 6 Mbit/s, ever less above.
const REPORT_TIME: Duration = Duration::from_millis(2);

/// Frames that are worth a report on the fastest line: 64 take 0.7 ms at 1 Gbit/s.
const MOST_WORTH: u64 = 64;

/// The longest that a frame's arrival is kept back. Ours.
const REPORT_DELAY: Duration = Duration::from_millis(5);
