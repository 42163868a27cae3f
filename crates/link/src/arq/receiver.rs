//! What arrived, what of it may go up, and what to tell the sender.
//!
//! **Bounds**, whatever the peer sends: frames beyond a gap and all that is noted about them take [`HELD_LIMIT`] bytes of memory at most, with
//! what other windows of the same endpoint hold. A frame that would take more is refused as if it had been lost, so its sender
//! repeats it; the first one that is missing always has room, so the window moves on. A frame costs a search among the runs that have come,
//! and each byte that is delivered is copied once: no step goes over the window.

use std::collections::VecDeque;

use base::{Duration, Instant, Packet};

use crate::endpoint::Discard;
use crate::flow;
use crate::ready::Ready;
use crate::reassembly::Reassembly;
use crate::slack;

use super::frame::{Part, Progress, push_varint};
use super::gaps::Gaps;
use super::lines::LineId;
use super::order::Order;
use super::sequence::{MAX_WINDOW, ahead, beyond, on_air};
use super::spans::Spans;

/// The sliding receive window.
#[derive(Debug)]
pub(crate) struct Receiver {
    order: Order,
    /// The first frame that has not been received.
    next: u64,
    /// Frames received beyond `next`.
    received: Spans,
    /// The frames from `next` to the last that was received.
    slots: VecDeque<Slot>,
    /// Bytes that their payloads and the notes about them take.
    held_bytes: usize,
    /// Bytes that other windows of the same endpoint take.
    elsewhere: usize,
    /// Bytes that it may have, with what is elsewhere.
    limit: usize,
    /// The packet that the frames up to `next` have begun.
    reassembly: Reassembly,
    /// What has come over each line, one at least.
    lines: Vec<Arrivals>,
    /// How often a frame is lost after one that has come, in 65536ths.
    loss: u32,
    /// How many frames are lost one after another, in 16ths.
    run: u32,
    /// Where the next report starts, unless that has been received.
    report_from: u64,
    /// Packets beyond a gap whose fragments do not fit together.
    misplaced: u64,
    duplicates: u64,
    given_up: u64,
    /// How long a datagram waits at most for an earlier packet of its flow.
    hold: Option<Duration>,
    /// Datagrams that have begun to wait, by a frame of each.
    held_back: Vec<u64>,
    /// Those that wait, and until when; some may have been delivered.
    releases: VecDeque<(Instant, u64)>,
}

/// What has come over a line.
#[derive(Debug, Default)]
struct Arrivals {
    /// The newest serial.
    heard: u64,
    /// Serials that have not come, and may have been overtaken.
    gaps: Gaps,
}

/// A frame of the window, missing or received.
#[derive(Debug, Default)]
struct Slot {
    held: Option<Held>,
    /// Frames from here to the first of a packet that waits for the one which ends here; 0 if none does.
    successor: u32,
    /// At either end of a stretch of frames of one packet that have come: frames to its other end.
    reach: u32,
}

/// A frame beyond a gap.
#[derive(Debug)]
struct Held {
    /// `None` once it was delivered.
    payload: Option<Packet>,
    first: bool,
    last: bool,
    /// It has begun to wait for its time.
    is_timed: bool,
    back: u32,
}

/// Bytes of memory that frames beyond gaps take at most, in all windows of an endpoint: what 1 Gbit/s carries in 2 s. The widest window of
/// frames of ordinary length takes nine tenths of it; one of jumbo frames would take more.
pub(crate) const HELD_LIMIT: usize = 256 << 20;

/// Bytes that are noted about a frame besides its slot: its run, and when its time is up.
const NOTES: usize = 48;

const SLOT: usize = size_of::<Slot>();

/// Waits that are noted at most before those that are over are looked for.
const MOST_RELEASES: usize = 2 * MAX_WINDOW as usize;

impl Receiver {
    pub(crate) fn new(order: Order) -> Self {
        Self {
            order,
            next: 0,
            received: Spans::default(),
            slots: VecDeque::new(),
            held_bytes: 0,
            elsewhere: 0,
            limit: HELD_LIMIT,
            reassembly: Reassembly::default(),
            lines: vec![Arrivals::default()],
            loss: 0,
            run: 0,
            report_from: 0,
            misplaced: 0,
            duplicates: 0,
            given_up: 0,
            hold: None,
            held_back: Vec::new(),
            releases: VecDeque::new(),
        }
    }

    /// A datagram waits no longer than this for an earlier packet of its flow from now on; without end if it is not told.
    pub(crate) fn set_hold(&mut self, most: Option<Duration>) {
        self.hold = most;
    }

    /// Bytes of memory that the window takes.
    pub(crate) fn memory(&self) -> usize {
        self.held_bytes + slack::room(&self.slots) + self.reassembly.memory()
    }

    /// Other windows of the same endpoint take so many bytes.
    pub(crate) fn set_elsewhere(&mut self, bytes: usize) {
        self.elsewhere = bytes;
    }

    /// It may have so many bytes from now on, and never more than [`HELD_LIMIT`]. What it has already it keeps.
    pub(crate) fn limit_memory(&mut self, bytes: usize) {
        self.limit = bytes.min(HELD_LIMIT);
    }

    /// Whether there is memory for a payload of `len` bytes so far beyond the first that is missing.
    pub(crate) fn has_memory_for(&self, len: usize, offset: u64) -> bool {
        let slots = slots_for(offset as usize).max(self.slots.capacity());
        self.elsewhere + self.held_bytes + slots * SLOT + Packet::kept_size(len) + NOTES <= self.limit
    }

    #[cfg(test)]
    pub(crate) fn expect_from(&mut self, number: u64) {
        (self.next, self.lines[0].heard) = (number, number);
    }

    /// Takes note of a frame of any class that came over a line.
    pub(crate) fn on_serial(&mut self, now: Instant, line: LineId, serial: u32) {
        if self.lines.len() <= line.at() {
            self.lines.resize_with(line.at() + 1, Arrivals::default);
        }
        let Arrivals { heard, gaps } = &mut self.lines[line.at()];
        let Some(distance) = ahead(*heard, serial) else { return self.on_overtaken(now, line, serial) };
        *heard += distance;
        self.loss -= self.loss / LOSS_MEMORY;
        if distance > 1 {
            gaps.push(now, *heard + 1 - distance, *heard);
        }
        while let Some(lost) = gaps.poll_lost(now) {
            self.loss = (self.loss + A_LOSS).min(u16::MAX.into());
            self.run = (self.run * 7 + 16 * lost.min(LONGEST_RUN) as u32) / 8;
        }
    }

    /// A frame has come after one that was sent later.
    fn on_overtaken(&mut self, now: Instant, line: LineId, serial: u32) {
        let Arrivals { heard, gaps } = &mut self.lines[line.at()];
        let behind = beyond(serial.into(), on_air(*heard));
        if let Some(serial) = heard.checked_sub(behind)
            && gaps.on_late(now, serial)
        {
            self.loss = self.loss.saturating_sub(A_LOSS);
        }
    }

    /// What every report tells, in a frame that leaves over a line.
    pub(crate) fn progress(&self, line: LineId) -> Progress {
        Progress {
            next: self.next,
            heard: self.heard(line),
            loss: self.loss(),
            in_runs: self.run >= 16 * LONG_RUN,
        }
    }

    /// The newest serial that has come over a line.
    pub(crate) fn heard(&self, line: LineId) -> u64 {
        self.lines.get(line.at()).map_or(0, |arrivals| arrivals.heard)
    }

    /// The newest serials of all lines that frames have come over.
    pub(crate) fn heard_over_all(&self) -> impl Iterator<Item = (LineId, u64)> {
        let lines = self.lines.iter().zip(0..);
        lines.filter_map(|(arrivals, number)| Some((LineId::new(number)?, arrivals.heard)))
    }

    /// The first frame that has not been received.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// How often frames are lost lately, in 256ths.
    pub(crate) const fn loss(&self) -> u8 {
        (self.loss >> 8) as u8
    }

    /// The number of a frame that [`Receiver::handle`] would take, as far as its window goes.
    pub(crate) fn awaits(&self, sequence: u32) -> Result<u64, Discard> {
        let Some(offset) = ahead(self.next, sequence) else {
            return Err(Discard::Duplicate(sequence.into()));
        };
        if offset >= MAX_WINDOW.into() {
            return Err(Discard::OutsideWindow(sequence.into()));
        }
        match self.slots.get(offset as usize) {
            Some(slot) if slot.held.is_some() => Err(Discard::Duplicate(sequence.into())),
            _ => Ok(self.next + offset),
        }
    }

    /// A number of a frame as it is here, if it lies in the window.
    pub(crate) fn in_window(&self, sequence: u32) -> Option<u64> {
        ahead(self.next, sequence)
            .filter(|offset| *offset < MAX_WINDOW.into())
            .map(|offset| self.next + offset)
    }

    /// Whether a frame is here, or was delivered or given up.
    pub(crate) fn has(&self, sequence: u64) -> bool {
        let Some(offset) = sequence.checked_sub(self.next) else { return true };
        self.slots.get(offset as usize).is_some_and(|slot| slot.held.is_some())
    }

    /// Whether a frame has come that was sent after one that has not.
    pub(crate) fn has_gap(&self) -> bool {
        !self.received.is_empty()
    }

    /// A frame of the window is as good as received: it follows from what has come and from frames that are still to come.
    pub(crate) fn see(&mut self, sequence: u64) {
        if sequence >= self.next {
            self.received.insert(sequence, sequence + 1, |_, _| ());
        }
    }

    /// Takes a frame of class 001; packets that may go up now go to `ready`.
    pub(crate) fn handle(&mut self, frame: &Part<'_>, ready: &mut Ready) -> Result<(), Discard> {
        let Some(offset) = ahead(self.next, frame.sequence) else {
            self.duplicates += 1;
            return Err(Discard::Duplicate(frame.sequence.into()));
        };
        if offset >= MAX_WINDOW.into() || offset > 0 && !self.has_memory_for(frame.payload.len(), offset) {
            return Err(Discard::OutsideWindow(frame.sequence.into()));
        }
        self.take(frame, offset, ready)
    }

    /// Takes a frame that follows from others, as [`Receiver::handle`] does; not even memory is in its way, since the sender may already have
    /// heard that it was [seen](Receiver::see). Whoever takes sums in asks for that memory before.
    pub(crate) fn handle_solved(&mut self, frame: &Part<'_>, ready: &mut Ready) -> Result<(), Discard> {
        let offset = ahead(self.next, frame.sequence).ok_or(Discard::Duplicate(frame.sequence.into()))?;
        self.take(frame, offset, ready)
    }

    fn take(&mut self, frame: &Part<'_>, offset: u64, ready: &mut Ready) -> Result<(), Discard> {
        if offset >= MAX_WINDOW.into() {
            return Err(Discard::OutsideWindow(frame.sequence.into()));
        }
        let (at, sequence) = (offset as usize, self.next + offset);
        if at == 0 && self.slots.is_empty() {
            self.next += 1;
            if let Some(packet) = self.reassembly.push(frame.first, frame.last, frame.payload) {
                ready.push(packet);
            }
            return Ok(());
        }
        if self.slots.get(at).is_some_and(|slot| slot.held.is_some()) {
            self.duplicates += 1;
            return Err(Discard::Duplicate(frame.sequence.into()));
        }
        if self.slots.len() <= at {
            self.slots.reserve_exact(slots_for(at) - self.slots.len());
            self.slots.resize_with(at + 1, Slot::default);
        }
        let payload = Packet::kept(frame.payload);
        self.held_bytes += payload.capacity() + NOTES;
        let Part { first, last, back, .. } = *frame;
        self.slots[at].held = Some(Held { payload: Some(payload), first, last, is_timed: false, back });
        self.received.insert(sequence, sequence + 1, |_, _| ());
        if at == 0 {
            self.advance(0, ready);
        } else if self.order != Order::Link {
            let start = self.join(at);
            self.deliver(self.next + start as u64, false, ready);
        }
        Ok(())
    }

    /// Joins the frame at a place with those of its packet that have come before and behind it; where they start.
    ///
    /// Only the two ends of a stretch know of each other, so that it takes as long however many are between.
    fn join(&mut self, at: usize) -> usize {
        let held = |place: usize| self.slots.get(place).and_then(|slot| slot.held.as_ref());
        let Some(this) = held(at) else { return at };
        let (mut start, mut end) = (at, at);
        if !this.first
            && let Some(before) = at.checked_sub(1)
            && held(before).is_some_and(|held| !held.last)
        {
            start = before - self.slots[before].reach as usize;
        }
        if !this.last && held(at + 1).is_some_and(|held| !held.first) {
            end = at + 1 + self.slots[at + 1].reach as usize;
        }
        let reach = (end - start) as u32;
        (self.slots[start].reach, self.slots[end].reach) = (reach, reach);
        start
    }

    /// Takes note that no frame before `floor` will be sent again: those that are missing are given up, and nothing waits for
    /// them any more. Whether there are any.
    pub(crate) fn on_floor(&mut self, floor: u32, ready: &mut Ready) -> bool {
        let distance = match ahead(self.next, floor) {
            Some(distance) if (1..=MAX_WINDOW.into()).contains(&distance) => distance,
            _ => return false,
        };
        let floor = self.next + distance;
        let there = self.slots.len().min(distance as usize);
        let missing = self.slots.range(..there).filter(|slot| slot.held.is_none()).count() as u64;
        self.given_up += missing + distance - there as u64;
        self.advance(floor, ready);
        if self.next < floor {
            self.reassembly.abort();
            self.next = floor;
            self.received.forget_before(floor);
        }
        true
    }

    /// Moves on over the frames that have been received, and over all before `floor`.
    fn advance(&mut self, floor: u64, ready: &mut Ready) {
        while let Some(Slot { held, successor, .. }) =
            self.slots.pop_front_if(|slot| slot.held.is_some() || self.next < floor)
        {
            let sequence = self.next;
            self.next += 1;
            let Some(held) = held else {
                self.reassembly.abort();
                if successor > 0 {
                    self.deliver_from(sequence + u64::from(successor), ready);
                }
                continue;
            };
            if let Some(payload) = held.payload {
                self.held_bytes -= payload.capacity() + NOTES;
                let complete = if held.first && held.last {
                    self.reassembly.abort();
                    Some(payload)
                } else {
                    self.reassembly.push(held.first, held.last, &payload)
                };
                if let Some(packet) = complete {
                    ready.push(packet);
                }
            } else {
                // What was delivered already is no part of what was begun.
                self.reassembly.abort();
            }
            if successor > 0 {
                self.deliver_from(sequence + u64::from(successor), ready);
            }
        }
        self.received.forget_before(self.next);
        slack::give_back(&mut self.slots);
    }

    /// Delivers the packet that starts with a frame beyond the gap, if all of it is there and its turn has come, and those
    /// that waited for it.
    ///
    /// Its frames stay received: they are not news when they come again.
    fn deliver_from(&mut self, sequence: u64, ready: &mut Ready) {
        self.deliver(sequence, false, ready);
    }

    /// As [`Receiver::deliver_from`]; the first packet whether or not its turn has come if `is_released`.
    fn deliver(&mut self, sequence: u64, mut is_released: bool, ready: &mut Ready) {
        let mut following = Some(sequence);
        while let Some(sequence) = following
            && let Some((first, last)) = self.packet_from(sequence)
        {
            if !core::mem::take(&mut is_released) && !self.is_its_turn(first) {
                return self.hold_back(first);
            }
            let mut whole = Reassembly::default();
            for slot in self.slots.range_mut(first..=last) {
                let Some(held) = &mut slot.held else { continue };
                let Some(payload) = held.payload.take() else { continue };
                self.held_bytes -= payload.capacity() + NOTES;
                if held.first && held.last {
                    ready.push(payload);
                } else if let Some(packet) = whole.push(held.first, held.last, &payload) {
                    ready.push(packet);
                }
            }
            whole.abort();
            self.misplaced += whole.incomplete();
            // Nobody need come this way again: what waits for others says so anew.
            let successor = u64::from(core::mem::take(&mut self.slots[last].successor));
            following = (successor > 0).then_some(self.next + last as u64 + successor);
        }
    }

    /// The places of the first and the last frame of the packet that starts with a frame beyond the gap, if all of it is there.
    fn packet_from(&self, sequence: u64) -> Option<(usize, usize)> {
        let first = usize::try_from(sequence.checked_sub(self.next)?).ok()?;
        let slot = self.slots.get(first)?;
        let last = first + slot.reach as usize;
        let ends_here = self.slots.get(last)?.held.as_ref()?.last;
        (slot.held.as_ref()?.first && ends_here).then_some((first, last))
    }

    /// Whether the packet that starts at a place may go up. If not, it waits for the packet before it in its flow.
    fn is_its_turn(&mut self, first: usize) -> bool {
        let back = self.slots[first].held.as_ref().map_or(0, |held| held.back) as usize;
        if self.order == Order::None || back == 0 || back > first {
            return true;
        }
        let before = &mut self.slots[first - back];
        let is_delivered = before.held.as_ref().is_some_and(|held| held.payload.is_none());
        if !is_delivered {
            before.successor = back as u32;
        }
        is_delivered
    }

    /// The packet at a place has to wait, but not for ever if it is a datagram.
    fn hold_back(&mut self, first: usize) {
        let Some(held) = &mut self.slots[first].held else { return };
        if self.hold.is_some() && !held.is_timed && held.payload.as_deref().is_some_and(flow::is_datagram) {
            held.is_timed = true;
            self.held_back.push(self.next + first as u64);
        }
    }

    /// Delivers datagrams that have waited for as long as they may. To be called after each frame, so that waits have a beginning.
    pub(crate) fn release(&mut self, now: Instant, ready: &mut Ready) {
        let Some(hold) = self.hold else { return };
        self.releases.extend(self.held_back.drain(..).map(|sequence| (now + hold, sequence)));
        if self.releases.len() > MOST_RELEASES {
            let mut releases = core::mem::take(&mut self.releases);
            releases.retain(|(_, sequence)| self.is_held(*sequence));
            self.releases = releases;
        }
        while let Some(&(until, sequence)) = self.releases.front() {
            let waits = self.is_held(sequence);
            if waits && until > now {
                return;
            }
            self.releases.pop_front();
            if waits {
                self.deliver(sequence, true, ready);
            }
        }
    }

    fn is_held(&self, sequence: u64) -> bool {
        let slot = sequence.checked_sub(self.next).and_then(|offset| self.slots.get(offset as usize));
        slot.and_then(|slot| slot.held.as_ref()).is_some_and(|held| held.payload.is_some())
    }

    /// When [`Receiver::release`] wants to be called.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        self.releases.front().map(|(until, _)| *until)
    }

    /// Appends what there is room for in `space` bytes of what was received beyond `next`; whether that reaches the end.
    ///
    /// What does not fit is told by the reports that follow, each of which starts where the one before ended.
    pub(crate) fn report(&mut self, space: usize, out: &mut Vec<u8>) -> bool {
        if self.received.is_empty() {
            return true;
        }
        let start = if self.report_from > self.next { self.report_from } else { self.next };
        let limit = out.len() + space;
        let mut at = start;
        let before = out.len();
        push_varint(start - self.next, out);
        if out.len() > limit {
            out.truncate(before);
            return false;
        }
        for (first, end) in self.received.runs_from(start) {
            let len = out.len();
            push_varint(first - at, out);
            push_varint(end - first, out);
            if out.len() > limit {
                out.truncate(len);
                if at == start {
                    // Not even one run: say nothing rather than something wrong.
                    out.truncate(before);
                }
                self.report_from = at;
                return false;
            }
            at = end;
        }
        self.report_from = 0;
        true
    }

    /// Starts anew with an empty window.
    pub(crate) fn reset(&mut self) {
        self.reassembly.abort();
        let empty = Self::new(self.order);
        let before = core::mem::replace(self, empty);
        (self.reassembly, self.misplaced, self.limit) = (before.reassembly, before.misplaced, before.limit);
        (self.duplicates, self.given_up, self.hold) = (before.duplicates, before.given_up, before.hold);
    }

    /// Frames received again.
    pub(crate) const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Frames that never came, and will not.
    pub(crate) const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Packets given up because the peer sent their fragments wrongly, or started afresh.
    pub(crate) const fn incomplete(&self) -> u64 {
        self.reassembly.incomplete() + self.misplaced
    }
}

/// How many slots are made for a frame so far beyond the first that is missing.
fn slots_for(offset: usize) -> usize {
    (offset + 1).next_power_of_two()
}

/// Frames that are lost one after another, on average: with so many or more, something blocks the line. Ours: where every other frame is lost, it is two.
const LONG_RUN: u32 = 8;

/// Frames in a run that count at most, so that a single one does not last.
const LONGEST_RUN: u64 = 64;

/// What a loss adds to the average.
const A_LOSS: u32 = u16::MAX as u32 / LOSS_MEMORY;

/// Frames over which losses are averaged. Ours: tells 1 % from none, and forgets within a second at 2 Mbit/s.
const LOSS_MEMORY: u32 = 128;

#[cfg(test)]
mod tests;
