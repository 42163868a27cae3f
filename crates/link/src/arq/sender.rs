//! What was sent, what of it is unacknowledged, and what goes next: COTMLL's rules 1 to 3 over a large window.
//!
//! Packets are kept whole until their last frame has left the window; a frame is a range of one of them.
//!
//! **Bounds**, whatever the peer reports: what is noted about frames grows with those in the window and not with how often they are sent. A
//! report costs a search for each run that it lists, and a step for each frame that it settles or takes for lost. Besides, it may look at
//! frames that it neither settles nor loses: [`LOOKS_PER_REPORT`] of them on average.

use core::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use base::{Instant, Packet};

use crate::endpoint::{FrameKind, Obstacle};
use crate::event::{Event, Events};
use crate::flow;
use crate::marks::Marks;

use super::frame::Part;
use super::lines::{LineId, PerLine, Transmission};
use super::policy::{OnLoss, Policy};
use super::sequence::{MAX_WINDOW, on_air};
use super::spans::Spans;

mod ages;
mod expiring;
mod holding;
mod reporting;

use ages::Ages;
pub(crate) use holding::{NOTE, NOTES};
pub(crate) use reporting::{Arrival, Taken, Told};

/// The sliding transmission window.
#[derive(Debug)]
pub(crate) struct Sender<P> {
    /// What becomes of frames that are lost, and what an idle line carries.
    pub(crate) policy: P,
    window: u64,
    /// First frame in the window: the first that no cumulative acknowledgement covers.
    base: u64,
    /// The window's frames, from `base` on.
    frames: VecDeque<Frame>,
    by_age: Ages,
    flagged: BTreeSet<u64>,
    /// The one of them that was sent last over a line that may be dark.
    hoped: u64,
    /// How often frames are lost lately, as the receiver has it, in 256ths.
    loss: u8,
    /// Frames from `base` on that the receiver has told of, or that were given up.
    told: Spans,
    given_up: u64,
    /// A frame was given up, and none that left has told the floor since.
    floor_is_news: bool,
    /// All frames before this one were abandoned.
    abandoned: u64,
    /// What is given up, for an observer.
    pub(crate) events: Events,
    /// The last packet of which a frame was given up.
    last_given_up: Option<u64>,
    outstanding: u64,
    /// Packets of which frames are in the window or still to be cut, oldest first.
    packets: VecDeque<Packet>,
    /// Bytes that their buffers take.
    buffers: usize,
    /// Bytes that it may hold.
    limit: usize,
    /// Packets that have left `packets`.
    packets_done: u64,
    /// Bytes of the last packet that were cut; `None` if it was cut to its end.
    cut: Option<usize>,
    /// Its marks.
    marks: Marks,
    /// For each flow, as its hash has it, the frame after the last one of its latest packet; 0 if there was none.
    flows: Vec<u64>,
    flags: u64,
    /// When the time of a packet is up, and which it is; some may have left `packets`.
    expiring: BinaryHeap<Expiring>,
    expired: u64,
    /// Frames that reports may look at in vain until further ones come.
    looks: u64,
    /// Frames that were looked at in vain.
    #[cfg(test)]
    looked: u64,
}

/// When the time of a packet is up, and which it is.
type Expiring = Reverse<(Instant, u64)>;

/// A frame in the window.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Its latest transmission.
    serial: u64,
    /// The one before.
    before: u64,
    /// The latest transmission for a loss; 0 for none.
    repaired: u64,
    /// The lines of these three.
    lines: Lines,
    packet: u64,
    start: u32,
    len: u32,
    back: u32,
    transmissions: u8,
    marks: Marks,
    first: bool,
    last: bool,
    is_received: bool,
}

/// The lines of a frame's transmissions.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    latest: LineId,
    before: LineId,
    repaired: LineId,
}

/// Which frame goes next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// One that has to go by rule 1, since it was lost, or by rule 2, since it is new and the window has room.
    Due,
    /// A new one.
    New,
    /// One that an idle line carries by rule 3: a copy, or the one that is unacknowledged and was sent least recently.
    Filler,
    /// This one of the window.
    Again(FrameKind, u64),
    /// A lost frame, tried over a line that may be dark: it stays flagged for the others.
    Hoped,
}

/// A frame that was chosen; its payload is already written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) kind: FrameKind,
    pub(crate) sequence: u64,
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) back: u32,
    /// Transmissions of the frame before this one.
    pub(crate) before: u8,
    pub(crate) marks: Marks,
}

impl<P: Policy> Sender<P> {
    pub(crate) fn new(window: u32, policy: P) -> Self {
        Self {
            policy,
            window: window.into(),
            base: 0,
            frames: VecDeque::new(),
            by_age: Ages::default(),
            flagged: BTreeSet::new(),
            hoped: 0,
            loss: 0,
            told: Spans::default(),
            given_up: 0,
            floor_is_news: false,
            abandoned: 0,
            events: Events::default(),
            last_given_up: None,
            outstanding: 0,
            packets: VecDeque::new(),
            buffers: 0,
            limit: usize::MAX,
            packets_done: 0,
            cut: None,
            marks: Marks::default(),
            flows: Vec::new(),
            flags: 0,
            expiring: BinaryHeap::new(),
            expired: 0,
            looks: MOST_LOOKS,
            #[cfg(test)]
            looked: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn start_at(&mut self, number: u64) {
        self.base = number;
    }

    /// So many frames may be in flight from now on; those that are beyond stay there.
    pub(crate) fn set_window(&mut self, frames: u32) {
        self.window = frames.into();
    }

    /// So many 256ths of all frames are lost.
    pub(crate) fn set_loss(&mut self, loss: u8) {
        self.loss = loss;
    }

    /// Whether a packet waits to be cut, wholly or partly.
    pub(crate) const fn is_pending(&self) -> bool {
        self.cut.is_some()
    }

    /// Takes the next packet to be cut; none may be pending.
    pub(crate) fn offer(&mut self, packet: Packet) {
        debug_assert!(!self.is_pending(), "one packet at a time");
        self.marks = self.policy.marks(&packet);
        if P::EXPIRES
            && let Some(at) = packet.expires()
        {
            self.expiring.push(Reverse((at, self.packets_done + self.packets.len() as u64)));
        }
        self.buffers += packet.capacity();
        self.packets.push_back(packet);
        self.cut = Some(0);
    }

    /// Whether rule 1 applies: a frame is flagged.
    pub(crate) fn has_flagged(&self) -> bool {
        !self.flagged.is_empty()
    }

    /// Whether rule 1 or rule 2 applies: a frame is flagged, or new data may be sent.
    pub(crate) fn is_urgent(&self) -> bool {
        self.has_flagged() || self.may_cut()
    }

    /// What keeps the pending packet from being cut, or the next one out.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        match self.is_pending() {
            true if self.has_flagged() => Some(Obstacle::Repair),
            true if !self.may_cut() => Some(Obstacle::Window),
            false if !self.has_memory() => Some(Obstacle::Window),
            _ => None,
        }
    }

    /// Whether an idle line should carry a frame once more, since frames are lost.
    pub(crate) fn may_copy(&self) -> bool {
        self.loss > 0 && self.policy.has_copies()
    }

    /// How often frames are lost lately, in 256ths.
    pub(crate) const fn loss(&self) -> u8 {
        self.loss
    }

    /// Frames that are to be sent again.
    pub(crate) fn flagged(&self) -> usize {
        self.flagged.len()
    }

    /// Bytes of the packet that waits to be cut.
    pub(crate) fn pending_bytes(&self) -> u64 {
        let packet = self.packets.back().map_or(0, |packet| packet.len());
        self.cut.map_or(0, |cut| packet.saturating_sub(cut) as u64)
    }

    /// The first frame that is to be sent again.
    pub(crate) fn first_flagged(&self) -> Option<u64> {
        self.flagged.first().copied()
    }

    /// Frames that the receiver has told of.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.next().saturating_sub(self.outstanding).saturating_sub(self.given_up)
    }

    /// Whether rule 3 would find a frame: one is unacknowledged.
    pub(crate) const fn has_outstanding(&self) -> bool {
        self.outstanding > 0
    }

    /// Frames in the window, acknowledged ones behind a gap among them.
    pub(crate) fn in_flight(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Frames flagged so far.
    pub(crate) const fn flags(&self) -> u64 {
        self.flags
    }

    /// The frame that will be cut next.
    pub(crate) fn next(&self) -> u64 {
        self.base + self.frames.len() as u64
    }

    /// Frames that the receiver may not have.
    pub(crate) const fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Whether new data may be sent. What has expired takes no room in the window.
    pub(crate) fn may_cut(&self) -> bool {
        self.is_pending()
            && (self.in_flight() < self.window
                || self.next() - self.told_floor() < self.window && self.in_flight() < MAX_WINDOW.into())
    }

    fn frame(&self, sequence: u64) -> &Frame {
        &self.frames[(sequence - self.base) as usize]
    }

    /// Appends the payload of the frame that goes next, of at most `room` bytes if it is new; `None` if there is none.
    pub(crate) fn poll(
        &mut self,
        next: Next,
        transmission: Transmission,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Chosen> {
        let (kind, sequence) = match next {
            Next::Due => match self.flagged.pop_first() {
                Some(first) => (FrameKind::Retransmission, first),
                None if self.may_cut() => (FrameKind::New, self.cut_frame(room)?),
                None => return None,
            },
            Next::New => (FrameKind::New, self.cut_frame(room)?),
            Next::Filler => (FrameKind::Filler, self.next_copy().or_else(|| Some(self.oldest()?.1))?),
            Next::Again(kind, sequence) => {
                self.flagged.remove(&sequence);
                (kind, sequence)
            }
            Next::Hoped => {
                // Others take the first.
                let before = self.flagged.range(..self.hoped).next_back();
                self.hoped = *before.or_else(|| self.flagged.last())?;
                (FrameKind::Filler, self.hoped)
            }
        };
        Some(self.send(kind, sequence, transmission, out))
    }

    /// The next frame that is to be copied, if frames are lost.
    fn next_copy(&mut self) -> Option<u64> {
        if self.loss == 0 {
            return None;
        }
        while let Some(sequence) = self.policy.poll_copy() {
            if sequence >= self.base && !self.frame(sequence).is_received {
                return Some(sequence);
            }
        }
        None
    }

    /// The latest transmission of the unacknowledged frame that was sent least recently; of several lines' the one with the first frame.
    pub(crate) fn oldest(&mut self) -> Option<(u64, u64)> {
        let lines = self.by_age.lines();
        lines.filter_map(|line| self.oldest_over(line)).min_by_key(|(_, sequence)| *sequence)
    }

    /// The latest transmission of the unacknowledged frame that was sent least recently over a line, and not over another since.
    pub(crate) fn oldest_over(&mut self, line: LineId) -> Option<(u64, u64)> {
        while let Some((serial, sequence)) = self.by_age.front(line) {
            if self.is_latest(Transmission { line, serial }, sequence) {
                return Some((serial, sequence));
            }
            self.by_age.pop_front(line);
        }
        None
    }

    /// Cuts a frame of at most `room` bytes off the pending packet, if there is one.
    fn cut_frame(&mut self, room: usize) -> Option<u64> {
        let sequence = self.next();
        let packet = self.packets.back()?;
        let start = self.cut?;
        let len = room.min(packet.len() - start);
        let (first, last) = (start == 0, start + len == packet.len());
        let mut back = 0;
        if first || last {
            let place = (flow::hash(packet) % FLOWS as u64) as usize;
            let flow = self.flows.get(place).copied().unwrap_or(0);
            // What was acknowledged has been delivered, and what has expired never will be.
            if first && flow > self.base && !self.is_expired(flow - 1) {
                back = (sequence + 1 - flow) as u32;
            }
            if last {
                if self.flows.is_empty() {
                    self.flows.resize(FLOWS, 0);
                }
                self.flows[place] = sequence + 1;
            }
        }
        self.cut = if last { None } else { Some(start + len) };
        self.frames.push_back(Frame {
            serial: 0,
            before: 0,
            repaired: 0,
            lines: Lines::default(),
            packet: self.packets_done + self.packets.len() as u64 - 1,
            start: start as u32,
            len: len as u32,
            back,
            transmissions: 0,
            marks: self.marks,
            first,
            last,
            is_received: false,
        });
        self.outstanding += 1;
        Some(sequence)
    }

    fn send(
        &mut self,
        kind: FrameKind,
        sequence: u64,
        transmission: Transmission,
        out: &mut Vec<u8>,
    ) -> Chosen {
        let before = self.note_transmission(sequence, transmission);
        if kind == FrameKind::Retransmission {
            self.note_repair(sequence, transmission);
        }
        self.policy.on_sent(sequence, before.saturating_add(1), self.loss);
        let frame = self.frame(sequence);
        out.extend_from_slice(self.payload(frame));
        let Frame { first, last, back, marks, .. } = *frame;
        Chosen { kind, sequence, first, last, back, before, marks }
    }

    /// A frame is sent, or what counts as its transmission; how often it was before.
    fn note_transmission(&mut self, sequence: u64, transmission: Transmission) -> u8 {
        let frame = &mut self.frames[(sequence - self.base) as usize];
        let before = frame.transmissions;
        (frame.before, frame.serial) = (frame.serial, transmission.serial);
        (frame.lines.before, frame.lines.latest) = (frame.lines.latest, transmission.line);
        frame.transmissions = frame.transmissions.saturating_add(1);
        self.by_age.push(transmission, sequence);
        if self.by_age.len() > 4 * self.frames.len() + LEAST_NOTED {
            self.forget_old_transmissions();
        }
        before
    }

    /// Keeps of the transmissions by age only those that are the latest of their frames: a frame at the front may stay there for long while others
    /// are sent again and again.
    fn forget_old_transmissions(&mut self) {
        let mut by_age = core::mem::take(&mut self.by_age);
        by_age.retain(|transmission, sequence| self.is_latest(transmission, sequence));
        self.by_age = by_age;
    }

    /// Whether a transmission is the latest of a frame that is unacknowledged and waits for no other.
    fn is_latest(&self, Transmission { line, serial }: Transmission, sequence: u64) -> bool {
        sequence >= self.base && {
            let frame = self.frame(sequence);
            !frame.is_received
                && frame.serial == serial
                && frame.lines.latest == line
                && !self.flagged.contains(&sequence)
        }
    }

    fn payload(&self, frame: &Frame) -> &[u8] {
        let packet = &self.packets[(frame.packet - self.packets_done) as usize];
        &packet[frame.start as usize..(frame.start + frame.len) as usize]
    }

    /// A frame of the window that the receiver may lack, as the receiver would see it.
    pub(crate) fn part(&self, sequence: u64) -> Option<Part<'_>> {
        let frame = self.frames.get(usize::try_from(sequence.checked_sub(self.base)?).ok()?)?;
        let Frame { first, last, back, is_received, .. } = *frame;
        let sequence = on_air(sequence);
        (!is_received).then(|| Part { sequence, first, last, back, payload: self.payload(frame) })
    }

    /// The last frame that the receiver may lack.
    pub(crate) fn newest(&self) -> Option<u64> {
        let next = self.next();
        let start =
            next.checked_sub(1).and_then(|last| self.told.run_at(last)).map_or(next, |(start, _)| start);
        (start > self.base).then(|| start - 1)
    }

    /// The marks of a frame in the window.
    pub(crate) fn marks_of(&self, sequence: u64) -> Marks {
        self.frame(sequence).marks
    }

    /// A sum of frames up to this one goes out, which is as good as the frame itself.
    pub(crate) fn on_summed(&mut self, sequence: u64, transmission: Transmission) {
        self.flagged.remove(&sequence);
        self.note_transmission(sequence, transmission);
        self.note_repair(sequence, transmission);
    }

    fn note_repair(&mut self, sequence: u64, transmission: Transmission) {
        let frame = &mut self.frames[(sequence - self.base) as usize];
        (frame.repaired, frame.lines.repaired) = (transmission.serial, transmission.line);
    }

    /// Takes for lost the frame that was sent least recently, if any is unacknowledged: its time is up.
    pub(crate) fn lose_oldest(&mut self) {
        if let Some((_, sequence)) = self.oldest() {
            self.take_for_lost(sequence);
        }
    }

    /// Takes for lost what is out on a line.
    pub(crate) fn lose_over(&mut self, line: LineId) {
        while let Some((_, sequence)) = self.oldest_over(line) {
            self.take_for_lost(sequence);
        }
    }

    /// A line has come back of which `heard` has been heard: what left over it later and has not left again is under way after all.
    pub(crate) fn find_over(&mut self, line: LineId, heard: u64) {
        let mut found = Vec::new();
        for &sequence in &self.flagged {
            let Frame { serial, lines, .. } = *self.frame(sequence);
            if lines.latest == line && serial > heard {
                found.push((serial, sequence));
            }
        }
        found.sort_unstable();
        for (_, sequence) in &found {
            self.flagged.remove(sequence);
            self.policy.on_settled(*sequence);
        }
        self.by_age.put_back(line, found);
    }

    /// Takes the newest unacknowledged frames for lost, with so many bytes of payload at most.
    pub(crate) fn lose_newest(&mut self, bytes: u64) {
        let mut left = bytes;
        for sequence in (self.base..self.next()).rev() {
            let frame = self.frame(sequence);
            if frame.is_received || self.flagged.contains(&sequence) {
                continue;
            }
            let Some(rest) = left.checked_sub(frame.len.into()) else { return };
            left = rest;
            self.take_for_lost(sequence);
        }
    }

    /// The latest transmission of a frame is lost: it will be sent again, or is given up.
    fn take_for_lost(&mut self, sequence: u64) {
        self.flags += 1;
        let transmissions = self.frame(sequence).transmissions;
        match self.policy.on_lost(sequence, transmissions) {
            OnLoss::Retransmit => _ = self.flagged.insert(sequence),
            OnLoss::GiveUp => self.give_up(sequence),
        }
    }

    /// A frame goes out of account, and the packet that it is a part of is told of once.
    fn give_up(&mut self, sequence: u64) {
        self.settle(sequence, sequence + 1, &PerLine::default(), &mut |_| ());
        self.given_up += 1;
        self.floor_is_news = true;
        let number = self.frame(sequence).packet;
        if self.last_given_up.replace(number) != Some(number) {
            let packet = &self.packets[(number - self.packets_done) as usize];
            self.events.push(|| Event::GivenUp(packet.clone()));
        }
    }

    /// The first frame that no cumulative acknowledgement covers.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Frames given up so far.
    pub(crate) const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The latest transmission of this frame is not taken for lost before [`Sender::judge`] has named the one by which it is judged.
    pub(crate) fn defer(&mut self, sequence: u64) {
        if let Some(frame) = self.frame_mut(sequence) {
            frame.serial = DEFERRED;
        }
    }

    /// A frame that was deferred is lost if it is missing although the transmission `serial` has come.
    pub(crate) fn judge(&mut self, sequence: u64, transmission: Transmission) {
        if let Some(frame) = self.frame_mut(sequence)
            && frame.serial == DEFERRED
            && !frame.is_received
        {
            (frame.serial, frame.lines.latest) = (transmission.serial, transmission.line);
            self.by_age.push(transmission, sequence);
        }
    }

    fn frame_mut(&mut self, sequence: u64) -> Option<&mut Frame> {
        self.frames.get_mut(usize::try_from(sequence.checked_sub(self.base)?).ok()?)
    }

    /// Starts anew with an empty window; answers how many packets were given up for that.
    ///
    /// A packet that was not cut to its end is kept and will be cut from its start.
    pub(crate) fn reset(&mut self) -> u64 {
        let pending = if self.is_pending() { self.packets.pop_back() } else { None };
        let unsure = self.packets.len() as u64;
        let Self { flags, given_up, expired, limit, .. } = *self;
        let events = core::mem::take(&mut self.events);
        let fresh = Self::new(self.window as u32, self.policy.fresh());
        *self = Self { flags, given_up, expired, limit, events, ..fresh };
        if let Some(packet) = pending {
            self.offer(packet);
        }
        unsure
    }
}

/// Frames that a report may look at in vain, on average. Ours: an honest one that lists its runs looks at what was lost lately.
pub(crate) const LOOKS_PER_REPORT: u64 = 256;

/// Looks that are saved up at most: a wide window after an outage, some times.
const MOST_LOOKS: u64 = 4 * MAX_WINDOW as u64;

/// Transmissions that are noted although frames were sent again since.
const LEAST_NOTED: usize = 1024;

/// In place of a frame's serial: it is not to be judged yet.
const DEFERRED: u64 = u64::MAX;

/// Flows whose order is kept apart. Two that share a place keep one order, which costs them a wait at worst.
const FLOWS: usize = 1024;
