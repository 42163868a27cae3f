//! The sender's half: blocks, their repairs, and what of these is under way.

use core::ops::Range;
use std::collections::VecDeque;

use base::code::reed_solomon;
use base::wire::tcp::coding::{Place, Report};
use base::{Duration, Instant};

use super::plan::{self, Plan};
use super::{Estimate, Key};
use crate::buffer::send::SendBuffer;
use crate::config::{FecConfig, RepairRule};

/// A stretch of the stream that is coded together.
#[derive(Debug)]
struct Block {
    number: u8,
    /// Offset of its first byte, and of the one after its last so far.
    start: u64,
    end: u64,
    /// Bytes of its segments but the last.
    mss: u32,
    /// Segments with data: as planned, and once it is closed as they are.
    sources: u8,
    sent: u8,
    /// Repairs to be sent in any case.
    repairs: u8,
    /// Repairs begun.
    repaired: u8,
    /// No more data belong to it.
    closed: bool,
    check: u32,
    /// The data of the repairs that are still to be sent in any case.
    ready: VecDeque<Vec<u8>>,
    /// Its data that were acknowledged and left the buffer.
    kept: Vec<u8>,
}

/// Why a repair goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The block ended.
    Proactive,
    /// Something is missing.
    Reactive,
}

/// A repair that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    at: usize,
    pub(crate) reason: Reason,
    /// Bytes of its data.
    pub(crate) len: u32,
}

/// What a repair says of its block, and its data.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(crate) place: Place,
    /// Offset of the block's first byte.
    pub(crate) start: u64,
    pub(crate) tail: u16,
    pub(crate) check: u32,
    pub(crate) data: Vec<u8>,
}

/// A repair that may be in the network.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    sent_at: Instant,
    /// None if it is a segment, which the scoreboard counts.
    bytes: u32,
    reactive: bool,
    /// The end of its block: once that is acknowledged, it is of no use and not under way.
    end: u64,
}

/// What the sender knows of its blocks.
#[derive(Debug)]
pub(crate) struct Outgoing {
    config: FecConfig,
    key: Key,
    /// Bytes of data of the largest segment.
    most: u32,
    pub(crate) estimate: Estimate,
    /// Those not wholly acknowledged, oldest first.
    blocks: VecDeque<Block>,
    next_number: u8,
    in_flight: VecDeque<InFlight>,
    bytes_in_flight: u64,
    /// Repairs due for the oldest block, whatever the window.
    due: u32,
    /// Blocks of which the receiver has yet to say how much came: number, segments sent.
    unreported: VecDeque<(u8, u16)>,
    /// Segments that the oldest block lacked by the latest report.
    missing: u32,
    /// When the silence has lasted too long, and how often it has since anything was heard.
    probe_at: Instant,
    probes: u32,
}

impl Outgoing {
    pub(super) const fn new(config: FecConfig, most: u32, key: Key) -> Self {
        Self {
            config,
            key,
            most,
            estimate: Estimate::new(config.estimator),
            blocks: VecDeque::new(),
            next_number: 0,
            in_flight: VecDeque::new(),
            bytes_in_flight: 0,
            due: 0,
            unreported: VecDeque::new(),
            missing: 0,
            probe_at: Instant::MAX,
            probes: 0,
        }
    }

    /// Bytes of repairs that may be in the network.
    pub(crate) const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Packets are known to pass no larger than those with so many bytes of data.
    pub(crate) fn set_most(&mut self, most: u32) {
        self.most = self.most.min(most);
    }

    /// Whether repairs wait to be sent.
    pub(crate) fn has_work(&self) -> bool {
        self.due > 0 || self.blocks.iter().any(|block| !block.ready.is_empty())
    }

    /// Whether new data have to wait: for repairs of the last block, or because too many blocks are unacknowledged.
    pub(crate) fn holds_new_data(&self) -> bool {
        self.blocks.back().is_some_and(|last| !last.ready.is_empty()) || self.blocks.len() >= MOST_BLOCKS
    }

    /// A new block may begin, in a window of `cwnd` bytes: bytes of data of its segments; none in the middle of one.
    pub(crate) fn begin(&mut self, una: u64, nxt: u64, cwnd: u64) -> Option<u32> {
        let number = match self.blocks.pop_back_if(|last| last.sent == 0) {
            // Nothing of it has left, and the window may have changed.
            Some(empty) => empty.number,
            None if self.blocks.back().is_some_and(|last| !last.closed) || self.holds_new_data() => {
                return None;
            }
            None => {
                self.next_number = self.next_number.wrapping_add(1);
                self.next_number
            }
        };
        let Plan { mss, sources, repairs } = plan::plan(&self.config, cwnd, self.estimate.rate(), self.most);
        self.forget_acknowledged(una);
        self.blocks.push_back(Block {
            number,
            start: nxt,
            end: nxt,
            mss,
            sources: sources as u8,
            sent: 0,
            repairs: repairs as u8,
            repaired: 0,
            closed: false,
            check: 0,
            ready: VecDeque::new(),
            kept: Vec::new(),
        });
        Some(mss)
    }

    /// A segment with `len` new bytes at `start` goes out; where it is in its block.
    pub(crate) fn on_source(&mut self, start: u64, len: u32) -> Option<Place> {
        let block = self.blocks.back_mut().filter(|block| !block.closed && block.end == start)?;
        let place = Place {
            block: block.number,
            number: block.sent,
            sources: block.sources,
            repairs: block.repairs,
            again: false,
        };
        block.end += u64::from(len);
        block.sent += 1;
        Some(place)
    }

    /// Where the segment at `start`, sent again, is in its block, if it is one of those that were sent before.
    pub(crate) fn place_of(&self, start: u64, len: u32) -> Option<Place> {
        let block = self.blocks.iter().find(|block| block.start <= start && start < block.end)?;
        let at = start - block.start;
        let (number, whole) = (at / u64::from(block.mss), at.is_multiple_of(u64::from(block.mss)));
        let ends = (start + u64::from(len)).min(block.end) == (start + u64::from(block.mss)).min(block.end);
        (whole && ends).then_some(Place {
            block: block.number,
            number: number as u8,
            sources: block.sources,
            repairs: block.repairs,
            again: true,
        })
    }

    /// After a segment of `len` went out: its block ends if it is full, if the segment is a short one, or if there is nothing
    /// more to send.
    pub(crate) fn close_if_due(&mut self, len: u32, is_last: bool, una: u64, buffer: &SendBuffer) {
        let full = |block: &Block| block.sent == block.sources || len != block.mss || is_last;
        if self.blocks.back().is_some_and(full) {
            self.close(una, buffer);
        }
    }

    /// The last block ends, if it has begun.
    fn close(&mut self, una: u64, buffer: &SendBuffer) {
        let rate = self.estimate.rate();
        let (key, proactive) = (self.key, self.config.proactive);
        let Some(block) = self.blocks.back_mut().filter(|it| !it.closed && it.sent > 0) else { return };
        if block.sent < block.sources {
            // There is less to protect than was planned.
            block.repairs = block.repairs.min(plan::least_repairs(rate).max(block.sent.into()) as u8);
        }
        (block.sources, block.closed) = (block.sent, true);
        let whole = block.whole(una, buffer);
        block.check = key.check(&whole);
        let count = if proactive { block.repairs.into() } else { 0 };
        block.ready = block.encode(&whole, 0..count).into();
        self.unreported.push_back((block.number, u16::from(block.sources) + count));
        if self.unreported.len() > MOST_BLOCKS {
            self.unreported.pop_front();
        }
    }

    /// The next repair to be sent.
    pub(crate) fn next(&self) -> Option<Due> {
        let ready = |block: &Block| block.closed && block.can_repair();
        let due = |at: usize, reason| {
            let block = &self.blocks[at];
            Due { at, reason, len: block.symbol_len() }
        };
        if self.due > 0 && self.blocks.front().is_some_and(ready) {
            return Some(due(0, Reason::Reactive));
        }
        let at = self.blocks.iter().position(|block| !block.ready.is_empty())?;
        Some(due(at, Reason::Proactive))
    }

    /// The data of a repair that goes out now, and what it says.
    pub(crate) fn take(&mut self, now: Instant, due: Due, una: u64, buffer: &SendBuffer) -> Symbol {
        let block = &mut self.blocks[due.at];
        let reactive = due.reason == Reason::Reactive;
        let data = match block.ready.pop_front() {
            // Any of them will do.
            Some(data) => data,
            None => {
                let at = u16::from(block.repaired);
                block.encode(&block.whole(una, buffer), at..at + 1).remove(0)
            }
        };
        if reactive {
            self.due -= 1;
        }
        let flight = InFlight { sent_at: now, bytes: due.len, reactive, end: block.end };
        self.in_flight.push_back(flight);
        self.bytes_in_flight += u64::from(due.len);
        block.symbol(data)
    }

    /// SND.UNA is about to move from `una` to `ack`, and `buffer` to give up what lies between.
    pub(crate) fn on_acknowledged(&mut self, una: u64, ack: u64, buffer: &SendBuffer) {
        self.forget_acknowledged(ack);
        if let Some(block) = self.blocks.front_mut()
            && block.start < ack
        {
            let from = block.start.max(una);
            let upto = ack.min(block.end);
            if from < upto {
                buffer.read((from - una) as usize, (upto - from) as usize, |piece| {
                    block.kept.extend_from_slice(piece);
                });
            }
        }
        self.leave_flight(|repair| repair.end <= ack);
    }

    /// What has come wholly needs no more repairs.
    fn forget_acknowledged(&mut self, ack: u64) {
        while let Some(front) = self.blocks.pop_front_if(|front| front.closed && front.end <= ack) {
            self.due = 0;
            Self::skip_repairs(&front, &mut self.unreported);
        }
    }

    /// The repairs of a block that were not sent will not be: so many fewer can arrive.
    fn skip_repairs(block: &Block, unreported: &mut VecDeque<(u8, u16)>) {
        if let Some(it) = unreported.iter_mut().find(|it| it.0 == block.number) {
            it.1 -= block.ready.len() as u16;
        }
    }

    fn leave_flight(&mut self, has_left: impl Fn(&InFlight) -> bool) {
        let mut left = 0;
        self.in_flight.retain(|repair| {
            let gone = has_left(repair);
            left += if gone { u64::from(repair.bytes) } else { 0 };
            !gone
        });
        self.bytes_in_flight -= left;
    }

    /// Something that was sent at `sent_at` came: repairs that left before have arrived or are lost.
    pub(crate) fn on_delivered(&mut self, sent_at: Instant) {
        self.leave_flight(|repair| repair.sent_at < sent_at);
    }

    /// The retransmission timer expired: the last block ends, nothing is under way any more, and what was not sent of repairs is not
    /// sent.
    pub(crate) fn on_timeout(&mut self, una: u64, buffer: &SendBuffer) {
        self.close(una, buffer);
        self.leave_flight(|_| true);
        self.due = 0;
        if self.persists() {
            self.due = plan::enough(self.missing.max(1), self.estimate.rate()).min(MOST_PROBED);
        }
        for block in &mut self.blocks {
            Self::skip_repairs(block, &mut self.unreported);
            block.ready.clear();
        }
    }

    /// A duplicate acknowledgement came: the oldest block lacks something.
    pub(crate) fn on_duplicate(&mut self, una: u64) {
        let rate = self.estimate.rate();
        let Some(front) = self.blocks.front().filter(|block| block.closed && block.end > una) else { return };
        if !self.config.reactive || self.persists() {
            return;
        }
        // As many as are sent in any case, in a round trip at most.
        let most = u32::from(front.repairs).max(plan::least_repairs(rate));
        let under_way = self.in_flight.iter().filter(|it| it.reactive && it.end == front.end).count() as u32;
        self.due = (self.due + plan::reactive(rate)).min(most.saturating_sub(under_way));
    }

    /// What the receiver says of blocks.
    pub(crate) fn on_report(&mut self, report: &Report) {
        for (number, arrived) in report.ended.iter().rev() {
            if let Some(at) = self.unreported.iter().position(|(unreported, _)| unreported == number) {
                let sent = self.unreported[at].1;
                self.unreported.drain(..=at);
                self.estimate.on_block(sent.into(), u32::from(*arrived));
            }
        }
        let (number, missing) = report.missing;
        let is_front = self.blocks.front().is_some_and(|front| front.number == number);
        self.missing = if is_front { missing.into() } else { 0 };
        if self.missing > 0 && self.persists() {
            self.answer();
        }
    }

    /// Whether it goes on until the block is whole.
    const fn persists(&self) -> bool {
        self.config.reactive && matches!(self.config.repair, RepairRule::Missing)
    }

    /// The oldest block lacks something: as many repairs as make it whole with a high probability, less those under way.
    fn answer(&mut self) {
        let Some(front) = self.blocks.front().filter(|it| it.closed && it.ready.is_empty()) else { return };
        let under_way = self.in_flight.iter().filter(|it| it.reactive && it.end == front.end).count() as u32;
        self.due = plan::enough(self.missing, self.estimate.rate()).saturating_sub(under_way);
    }

    /// A segment at `start` was sent again, which repairs its block too.
    pub(crate) fn on_resent(&mut self, now: Instant, start: u64) {
        if self.persists()
            && let Some(block) = self.blocks.iter().find(|block| block.start <= start && start < block.end)
        {
            let flight = InFlight { sent_at: now, bytes: 0, reactive: true, end: block.end };
            self.in_flight.push_back(flight);
        }
    }

    /// An acknowledgement came, or data went out after a rest; the round trip takes `srtt`.
    pub(crate) fn restart_probe(&mut self, now: Instant, srtt: Duration, heard: bool) {
        if !self.persists() || (!heard && self.probe_at < Instant::MAX) {
            return;
        }
        self.probes = if heard { 0 } else { self.probes };
        self.probe_at = match self.blocks.front() {
            Some(_) => now.saturating_add(srtt.saturating_mul(2 << self.probes).max(LEAST_PROBE)),
            None => Instant::MAX,
        };
    }

    /// When nothing has been heard for too long.
    pub(crate) const fn deadline(&self) -> Instant {
        self.probe_at
    }

    /// Nothing was heard for too long: what the oldest block may lack is sent, and perhaps again later.
    pub(crate) fn on_silence(&mut self, now: Instant, srtt: Duration, una: u64, buffer: &SendBuffer) {
        self.close(una, buffer);
        self.probe_at = Instant::MAX;
        self.probes += 1;
        self.leave_flight(|repair| repair.sent_at < now);
        self.due = plan::enough(self.missing.max(1), self.estimate.rate()).min(MOST_PROBED);
        if self.probes < MOST_PROBES {
            self.restart_probe(now, srtt, false);
        }
    }
}

impl Block {
    /// Bytes of its longest segment.
    fn symbol_len(&self) -> u32 {
        u64::from(self.mss).min(self.end - self.start) as u32
    }

    /// Whether there are numbers for more repairs.
    fn can_repair(&self) -> bool {
        usize::from(self.sources) + usize::from(self.repaired) < reed_solomon::MAX_FRAMES
    }

    /// Its next repair, with these data.
    fn symbol(&mut self, data: Vec<u8>) -> Symbol {
        let number = self.sources + self.repaired;
        self.repaired += 1;
        Symbol {
            place: Place {
                block: self.number,
                number,
                sources: self.sources,
                repairs: self.repairs,
                again: false,
            },
            start: self.start,
            tail: self.tail(),
            check: self.check,
            data,
        }
    }

    /// Bytes of data in its last segment.
    fn tail(&self) -> u16 {
        let len = self.end - self.start;
        (len - u64::from(self.sources - 1) * u64::from(self.mss)) as u16
    }

    /// Its data: what was acknowledged, and the rest from the buffer, whose first byte is at `una`.
    fn whole(&self, una: u64, buffer: &SendBuffer) -> Vec<u8> {
        let mut whole = Vec::with_capacity((self.end - self.start) as usize);
        whole.extend_from_slice(&self.kept);
        let from = self.start + whole.len() as u64;
        if from < self.end {
            buffer.read((from - una) as usize, (self.end - from) as usize, |piece| {
                whole.extend_from_slice(piece);
            });
        }
        whole
    }

    /// These of its repairs, where `whole` are its data.
    fn encode(&self, whole: &[u8], repairs: Range<u16>) -> Vec<Vec<u8>> {
        let known: Vec<u8> = (0..self.sources).collect();
        let wanted: Vec<u8> = repairs.map(|at| (u16::from(self.sources) + at) as u8).collect();
        let mut sums = vec![vec![0; self.symbol_len() as usize]; wanted.len()];
        reed_solomon::Plan::decode(&known, &wanted).add(whole.chunks(self.mss as usize), &mut sums);
        sums
    }
}

/// A silence shorter than this is none.
const LEAST_PROBE: Duration = Duration::from_millis(10);
/// Times that a silence brings repairs before only the retransmission timer does.
const MOST_PROBES: u32 = 3;
/// Repairs after a silence at most: those of an initial window (RFC 6928).
const MOST_PROBED: u32 = 10;
/// Unacknowledged blocks: their numbers wrap at 256, and both ends have to tell old from new.
const MOST_BLOCKS: usize = 64;
