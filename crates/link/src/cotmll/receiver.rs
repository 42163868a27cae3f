//! What arrived, what of it is complete, and what to acknowledge.
//!
//! A frame is accepted if it lies less than half the sequence space beyond the first that is missing; all others are
//! old. Frames beyond a gap are kept, one bit and one buffer each, until the gap is closed.
//!
//! **Bounds**, whatever the peer sends: 511 buffers, 850 kB of memory with frames of ordinary length and 35 MB with the longest.
//! A frame beyond a gap costs a look at each of the others at most.

use base::Packet;

use crate::endpoint::Discard;
use crate::ready::Ready;
use crate::reassembly::Reassembly;

use super::config::{Config, GapOpensWith, ToldBlock};
use super::skip::Skip;
use super::trailer::{Ack, MAX_BLOCK, Trailer};
use super::window::{SPACE, Set, WINDOW, beyond, on_air, place};

/// The sliding receive window.
#[derive(Debug)]
pub(super) struct Receiver {
    ordered: bool,
    told_block: ToldBlock,
    gap_opens_with: GapOpensWith,
    /// The first frame that has not been received.
    next: u64,
    /// Frames received beyond `next`.
    received: Set,
    /// The frame beyond a gap that came last; before `next` once that gap is closed.
    latest: u64,
    held: Box<[Held]>,
    /// Bytes that their buffers take, and may take.
    memory: (usize, usize),
    /// The packet that the frames up to `next` have begun.
    reassembly: Reassembly,
    /// Packets beyond a gap whose fragments do not fit together.
    misplaced: u64,
    duplicates: u64,
    old: u64,
    skipped: u64,
    told: Told,
}

/// A frame beyond a gap.
#[derive(Debug, Default)]
struct Held {
    /// `None` once it was delivered out of order.
    payload: Option<Packet>,
    first: bool,
    last: bool,
    /// It never came: the sender has given it up.
    skipped: bool,
}

impl Held {
    const SKIPPED: Self = Self { payload: None, first: false, last: false, skipped: true };
}

/// The acknowledgements that the peer was last sent.
#[derive(Debug, Default)]
struct Told {
    next: u64,
    block: Option<Block>,
    block_was_last: bool,
}

/// Received frames beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    start: u64,
    count: u8,
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            ordered: config.ordered,
            told_block: config.block,
            gap_opens_with: config.gap_opens_with,
            next: 0,
            received: Set::default(),
            latest: 0,
            held: core::iter::repeat_with(Held::default).take(WINDOW).collect(),
            memory: (0, usize::MAX),
            reassembly: Reassembly::default(),
            misplaced: 0,
            duplicates: 0,
            old: 0,
            skipped: 0,
            told: Told::default(),
        }
    }

    /// Takes a frame of class 001; packets that it completes go to `ready`.
    #[inline]
    pub(super) fn handle(
        &mut self,
        trailer: &Trailer,
        payload: &[u8],
        ready: &mut Ready,
    ) -> Result<(), Discard> {
        let offset = beyond(self.next, trailer.tx);
        if offset >= WINDOW as u64 {
            self.old += 1;
            return Err(Discard::Duplicate(trailer.tx.into()));
        }
        if offset == 0 {
            self.next += 1;
            if let Some(packet) = self.reassembly.push(trailer.first, trailer.last, payload) {
                ready.push(packet);
            }
            self.close_gap(ready);
            return Ok(());
        }
        let sequence = self.next + offset;
        if self.memory.0 + Packet::kept_size(payload.len()) > self.memory.1 {
            return Err(Discard::OutsideWindow(trailer.tx.into()));
        }
        if !self.insert(sequence) {
            self.duplicates += 1;
            return Err(Discard::Duplicate(trailer.tx.into()));
        }
        self.latest = sequence;
        let (first, last) = (trailer.first, trailer.last);
        let payload = Packet::kept(payload);
        self.memory.0 += payload.capacity();
        let payload = Some(payload);
        self.held[place(sequence)] = Held { payload, first, last, skipped: false };
        if !self.ordered {
            self.deliver_around(sequence, ready);
        }
        Ok(())
    }

    /// Takes the sender's word that frames will not come. They count as received from then on: acknowledgements cover them.
    ///
    /// # Errors
    /// [`Discard::Duplicate`] if all of them are old, [`Discard::OutsideWindow`] if one lies beyond the window.
    pub(super) fn handle_skip(&mut self, skip: Skip, ready: &mut Ready) -> Result<(), Discard> {
        let offset = beyond(self.next, skip.start);
        let count = u64::from(skip.count);
        let (start, count) = if offset < WINDOW as u64 {
            (self.next + offset, count)
        } else {
            (self.next, count.saturating_sub(SPACE - offset))
        };
        if count == 0 {
            return Err(Discard::Duplicate(skip.start.into()));
        }
        if start + count > self.next + WINDOW as u64 {
            return Err(Discard::OutsideWindow(skip.start.into()));
        }
        for sequence in start.max(self.next + 1)..start + count {
            if self.insert(sequence) {
                self.held[place(sequence)] = Held::SKIPPED;
                self.skipped += 1;
            }
        }
        if start == self.next {
            self.next += 1;
            self.skipped += 1;
            self.reassembly.skip();
            self.close_gap(ready);
        }
        Ok(())
    }

    /// Notes a frame beyond the gap, which it may open; tells whether it is new.
    #[inline]
    fn insert(&mut self, sequence: u64) -> bool {
        if self.gap_opens_with == GapOpensWith::Cumulative && self.received.is_empty() {
            self.told.block_was_last = true;
        }
        self.received.insert(sequence)
    }

    /// Moves on over the frames that were waiting for the one that just came.
    #[inline]
    fn close_gap(&mut self, ready: &mut Ready) {
        while !self.received.is_empty() && self.received.remove(self.next) {
            let held = &mut self.held[place(self.next)];
            self.next += 1;
            if held.skipped {
                self.reassembly.skip();
            }
            let Some(payload) = held.payload.take() else { continue };
            self.memory.0 -= payload.capacity();
            let complete = if held.first && held.last {
                self.reassembly.abort();
                Some(payload)
            } else {
                self.reassembly.push(held.first, held.last, &payload)
            };
            if let Some(packet) = complete {
                ready.push(packet);
            }
        }
    }

    /// Delivers the packet that a frame beyond the gap belongs to, if all of it is there.
    ///
    /// Its frames stay received: they are not news when they come again.
    fn deliver_around(&mut self, sequence: u64, ready: &mut Ready) {
        let Some(last) = self.find_last(sequence) else { return };
        let Some(first) = self.find_first(sequence) else { return };
        let mut whole = Reassembly::default();
        // Of a peer that follows the rules, every packet between is complete.
        for at in first..=last {
            let held = &mut self.held[place(at)];
            let Some(payload) = held.payload.take() else { continue };
            self.memory.0 -= payload.capacity();
            if held.first && held.last {
                ready.push(payload);
            } else if let Some(packet) = whole.push(held.first, held.last, &payload) {
                ready.push(packet);
            }
        }
        whole.abort();
        self.misplaced += whole.incomplete();
    }

    fn find_last(&self, sequence: u64) -> Option<u64> {
        let end = self.next + WINDOW as u64;
        let mut received = (sequence..end).take_while(|&at| self.is_there(at));
        received.find(|&at| self.held[place(at)].last)
    }

    fn find_first(&self, sequence: u64) -> Option<u64> {
        let mut received = (self.next + 1..=sequence).rev().take_while(|&at| self.is_there(at));
        received.find(|&at| self.held[place(at)].first)
    }

    /// Whether a frame beyond the gap has come.
    fn is_there(&self, sequence: u64) -> bool {
        self.received.contains(sequence) && !self.held[place(sequence)].skipped
    }

    /// The block beyond the gap that is told next, as much of it as can be told.
    fn block(&self) -> Option<Block> {
        if self.received.is_empty() {
            return None;
        }
        let end = self.next + WINDOW as u64;
        let start = match self.told_block {
            ToldBlock::Latest if self.latest > self.next => self.run_before(self.latest),
            _ => self.received.first_in(self.next, end)?,
        };
        let longest = (start + u64::from(MAX_BLOCK)).min(end);
        let stop = self.received.first_missing_in(start, longest).unwrap_or(longest);
        Some(Block { start, count: (stop - start) as u8 })
    }

    /// The start of the received frames that end with this one, as many as can be told.
    fn run_before(&self, sequence: u64) -> u64 {
        let earliest = (sequence + 1).saturating_sub(MAX_BLOCK.into());
        let run = (earliest..=sequence).rev().take_while(|&at| self.received.contains(at));
        run.last().unwrap_or(sequence)
    }

    /// The acknowledgement for the frame that is leaving now: cumulative ones and, while there is a gap, blocks in turn.
    #[inline]
    pub(super) fn next_ack(&mut self) -> Ack {
        let block = self.block();
        match block {
            Some(block) if !self.told.block_was_last => {
                self.told.block_was_last = true;
                self.told.block = Some(block);
                Ack::Block { start: on_air(block.start), count: block.count }
            }
            _ => {
                self.told =
                    Told { next: self.next, block: block.and(self.told.block), block_was_last: false };
                Ack::Cumulative(on_air(self.next))
            }
        }
    }

    /// Whether the peer has not been sent this state.
    pub(super) fn has_news(&self) -> bool {
        let block = self.block();
        self.next != self.told.next || (block.is_some() && block != self.told.block)
    }

    /// Starts anew with an empty window.
    pub(super) fn reset(&mut self) {
        (self.next, self.latest) = (0, 0);
        self.received.clear();
        self.held.iter_mut().for_each(|held| *held = Held::default());
        self.memory.0 = 0;
        self.reassembly.abort();
        self.told = Told::default();
    }

    /// Bytes of memory that packets in the making take.
    pub(super) fn memory(&self) -> usize {
        self.memory.0 + self.reassembly.memory()
    }

    /// Frames beyond gaps may take so many bytes from now on. What there is no room for counts as lost.
    pub(super) const fn limit_memory(&mut self, bytes: usize) {
        self.memory.1 = bytes;
    }

    /// Frames received again while they were beyond a gap.
    pub(super) const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Frames received again later than that.
    pub(super) const fn old(&self) -> u64 {
        self.old
    }

    /// Frames that the peer gave up before they came.
    pub(super) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Packets given up because the peer sent their fragments wrongly, or started afresh.
    pub(super) const fn incomplete(&self) -> u64 {
        self.reassembly.incomplete() + self.misplaced
    }
}
