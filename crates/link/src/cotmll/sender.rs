//! What was sent, what of it is unacknowledged, and what goes next: rules 1 to 3 of Faulkner 2004, 2.3.
//!
//! Packets are kept whole until their last frame has left the window; a frame is a range of one of them.

use std::collections::VecDeque;

use base::{Instant, Packet};

use crate::endpoint::{FrameKind, Obstacle};
use crate::marks::Marks;
use crate::slack;

use super::by_age::ByAge;
use super::trailer::{Ack, SubProtocol, Trailer};
use super::window::{Set, WINDOW, beyond, on_air, place};
use super::{Config, FlagAgainst};

mod persistence;

use persistence::Persistence;

/// The sliding transmission window.
#[derive(Debug)]
pub(super) struct Sender {
    window: u64,
    /// First frame in the window: the first that no cumulative acknowledgement covers.
    base: u64,
    /// The frame that will be cut next.
    next: u64,
    /// Transmissions so far.
    transmissions: u64,
    frames: Box<[Frame]>,
    outstanding: Set,
    flagged: Set,
    by_age: ByAge,
    /// Packets of which frames are in the window or still to be cut, oldest first.
    packets: VecDeque<Outgoing>,
    /// Bytes that their buffers take, and may take.
    memory: (usize, usize),
    /// Packets that have left `packets`.
    packets_done: u64,
    /// Bytes of the last packet that were cut; `None` if it was cut to its end.
    cut: Option<usize>,
    /// Its marks.
    marks: Marks,
    flag_against: FlagAgainst,
    flags: u64,
    persistence: Persistence,
}

/// A packet on its way.
#[derive(Debug)]
struct Outgoing {
    packet: Packet,
    /// The frame that it starts with and when that was first sent; both out of reach before.
    first_frame: u64,
    first_sent: Instant,
    given_up: bool,
}

/// A frame in the window.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Its latest transmission. Kept when it is acknowledged: later blocks are compared with it.
    stamp: u64,
    first_stamp: u64,
    packet: u64,
    start: u32,
    len: u32,
    /// How often it was sent.
    transmissions: u32,
    marks: Marks,
    first: bool,
    last: bool,
}

impl Sender {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            window: config.window.get().into(),
            base: 0,
            next: 0,
            transmissions: 0,
            frames: vec![Frame::default(); WINDOW].into(),
            outstanding: Set::default(),
            flagged: Set::default(),
            by_age: ByAge::new(),
            packets: VecDeque::new(),
            memory: (0, usize::MAX),
            packets_done: 0,
            cut: None,
            marks: Marks::default(),
            flag_against: config.flag_against,
            flags: 0,
            persistence: Persistence::new(config),
        }
    }

    /// Whether a packet waits to be cut, wholly or partly.
    pub(super) const fn is_pending(&self) -> bool {
        self.cut.is_some()
    }

    /// Takes the next packet to be cut; none may be pending.
    pub(super) fn offer(&mut self, packet: Packet) {
        debug_assert!(!self.is_pending(), "one packet at a time");
        let (first_frame, first_sent) = (u64::MAX, Instant::MAX);
        // One order for all: routers keep none between frames of different DSCPs (RFC 2983, 4.1).
        self.marks = Marks::of(&packet).without_dscp();
        self.memory.0 += packet.capacity();
        self.packets.push_back(Outgoing { packet, first_frame, first_sent, given_up: false });
        self.cut = Some(0);
    }

    /// Whether rule 1 or rule 2 applies: a frame is flagged, or new data may be sent.
    #[inline]
    pub(super) const fn is_urgent(&self) -> bool {
        !self.flagged.is_empty() || self.may_cut()
    }

    /// Whether rule 3 would find a frame: one is unacknowledged.
    #[inline]
    pub(super) const fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// Whether rule 2 applies: there is new data, and room for it in the window.
    #[inline]
    pub(super) const fn may_cut(&self) -> bool {
        self.is_pending() && self.next - self.base < self.window
    }

    /// What keeps the pending packet from being cut, or the next one out.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        match self.is_pending() {
            true if !self.flagged.is_empty() => Some(Obstacle::Repair),
            true if !self.may_cut() => Some(Obstacle::Window),
            false if !self.has_memory() => Some(Obstacle::Window),
            _ => None,
        }
    }

    /// Appends the frame that the rules choose, of at most `room` bytes and a trailer, and tells what it is and its marks; `None` if
    /// they choose none.
    #[inline]
    pub(super) fn poll(
        &mut self,
        now: Instant,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<(FrameKind, Marks)> {
        if !self.flagged.is_empty() {
            let first = self.flagged.first_in(self.base, self.next)?;
            return Some((FrameKind::Retransmission, self.send(first, out)));
        }
        if self.may_cut() {
            let frame = self.cut_frame(now, room)?;
            return Some((FrameKind::New, self.send(frame, out)));
        }
        let oldest = self.sequence_at(self.by_age.oldest()?);
        Some((FrameKind::Filler, self.send(oldest, out)))
    }

    /// Cuts a frame of at most `room` bytes off the pending packet, if there is one.
    fn cut_frame(&mut self, now: Instant, room: usize) -> Option<u64> {
        let sequence = self.next;
        let outgoing = self.packets.back_mut()?;
        let start = self.cut?;
        let total = outgoing.packet.len();
        let len = room.min(total - start);
        if start == 0 {
            (outgoing.first_frame, outgoing.first_sent) = (sequence, now);
        }
        let last = start + len == total;
        self.frames[place(sequence)] = Frame {
            stamp: 0,
            first_stamp: 0,
            packet: self.packets_done + self.packets.len() as u64 - 1,
            start: start as u32,
            len: len as u32,
            transmissions: 0,
            marks: self.marks,
            first: start == 0,
            last,
        };
        self.cut = if last { None } else { Some(start + len) };
        self.next += 1;
        self.outstanding.insert(sequence);
        Some(sequence)
    }

    /// Appends a frame; its marks.
    fn send(&mut self, sequence: u64, out: &mut Vec<u8>) -> Marks {
        let place = place(sequence);
        let frame = &mut self.frames[place];
        self.transmissions += 1;
        frame.stamp = self.transmissions;
        if frame.transmissions == 0 {
            frame.first_stamp = self.transmissions;
        }
        frame.transmissions = frame.transmissions.saturating_add(1);
        self.by_age.touch(place);
        self.flagged.remove(sequence);
        let packet = &self.packets[(frame.packet - self.packets_done) as usize].packet;
        let (start, end) = (frame.start as usize, (frame.start + frame.len) as usize);
        out.extend_from_slice(&packet[start..end]);
        let trailer = Trailer {
            protocol: SubProtocol::Reliable,
            first: frame.first,
            last: frame.last,
            tx: on_air(sequence),
            ack: Ack::Cumulative(0),
        };
        out.extend_from_slice(&trailer.emit());
        frame.marks
    }

    /// Takes an acknowledgement; whether it is one that a receiver of these frames can have sent.
    #[inline]
    pub(super) fn handle_ack(&mut self, ack: Ack) -> bool {
        let in_flight = self.next - self.base;
        match ack {
            Ack::Cumulative(number) => {
                let count = beyond(self.base, number);
                let valid = count <= in_flight;
                if valid && count > 0 {
                    self.slide(self.base + count);
                }
                valid
            }
            Ack::Block { start, count } => {
                // A block at the window's start would be a cumulative acknowledgement.
                let offset = beyond(self.base, start);
                let valid = offset > 0 && offset + u64::from(count) <= in_flight;
                if valid {
                    let start = self.base + offset;
                    self.handle_block(start, start + u64::from(count));
                }
                valid
            }
        }
    }

    /// Moves the window's start. Says nothing about what is lost.
    fn slide(&mut self, base: u64) {
        for sequence in self.base..base {
            self.settle(sequence);
            if self.frames[place(sequence)].last {
                self.drop_first();
            }
        }
        self.base = base;
    }

    /// Nothing of the first packet is left in the window.
    fn drop_first(&mut self) {
        self.memory.0 -= self.packets.pop_front().map_or(0, |outgoing| outgoing.packet.capacity());
        self.packets_done += 1;
    }

    /// Bytes of memory that the window's packets take.
    pub(super) fn memory(&self) -> usize {
        self.memory.0 + slack::room(&self.packets)
    }

    /// They may take so many bytes from now on.
    pub(super) const fn limit_memory(&mut self, bytes: usize) {
        self.memory.1 = bytes;
    }

    /// Whether they take so little that a packet may be taken. One may always be under way.
    pub(super) fn has_memory(&self) -> bool {
        self.memory.0 <= self.memory.1 || self.next == self.base
    }

    /// Frames `start..end` have arrived, and what precedes them has not: flags what was not sent again since.
    fn handle_block(&mut self, start: u64, end: u64) {
        self.persistence.settle_all(start, end);
        let mut latest = 0;
        let mut at = start;
        while let Some(sequence) = self.outstanding.first_in(at, end) {
            let frame = &self.frames[place(sequence)];
            latest = latest.max(match self.flag_against {
                FlagAgainst::Latest => frame.stamp,
                FlagAgainst::First => frame.first_stamp,
            });
            self.settle(sequence);
            at = sequence + 1;
        }
        if latest == 0 {
            // Nothing that was not known: the block was told before.
            return;
        }
        let mut at = self.base;
        while let Some(sequence) = self.outstanding.first_in(at, start) {
            if self.frames[place(sequence)].stamp < latest && self.flagged.insert(sequence) {
                self.flags += 1;
            }
            at = sequence + 1;
        }
    }

    /// A frame is acknowledged, perhaps for the second time.
    #[inline]
    fn settle(&mut self, sequence: u64) {
        if self.outstanding.remove(sequence) {
            self.flagged.remove(sequence);
            self.by_age.remove(place(sequence));
        }
        self.persistence.settle(sequence);
    }

    /// The frame of the window at this place.
    fn sequence_at(&self, place_of_frame: usize) -> u64 {
        let offset = (place_of_frame + WINDOW - place(self.base)) % WINDOW;
        self.base + offset as u64
    }

    /// Starts anew with an empty window; answers how many packets were given up for that.
    ///
    /// A packet that was not cut to its end is kept and will be cut from its start.
    pub(super) fn reset(&mut self, config: &Config) -> u64 {
        let pending = if self.is_pending() { self.packets.pop_back() } else { None };
        let unsure = self.packets.iter().filter(|outgoing| !outgoing.given_up).count() as u64;
        let (flags, packets_given_up) = (self.flags, self.packets_given_up());
        let limit = self.memory.1;
        *self = Self::new(config);
        self.limit_memory(limit);
        self.flags = flags;
        self.persistence.keep_count(packets_given_up);
        if let Some(outgoing) = pending {
            self.offer(outgoing.packet);
        }
        unsure
    }

    /// The numbers on the air of the frames that are flagged, in the order of the window.
    pub(super) fn flagged(&self) -> impl Iterator<Item = u16> {
        let mut at = self.base;
        core::iter::from_fn(move || {
            let sequence = self.flagged.first_in(at, self.next)?;
            at = sequence + 1;
            Some(on_air(sequence))
        })
    }

    /// Frames flagged so far.
    pub(super) const fn flags(&self) -> u64 {
        self.flags
    }

    /// Frames in the window, acknowledged ones behind a gap among them.
    pub(super) const fn in_flight(&self) -> u64 {
        self.next - self.base
    }
}
