//! The sender's half: blocks, their repairs, and what of these is under way.

mod block;

use std::collections::VecDeque;

use base::wire::tcp::coding::{Place, Report};
use base::{Duration, Instant};

use super::plan::{self, Plan};
use super::{Estimate, FecStatistics, Key, Trust};
use crate::buffer::send::SendBuffer;
use crate::config::{FecConfig, RepairRule};
use block::Block;

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
    /// Whether losses beside it are congestion.
    pub(crate) trust: Trust,
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
    /// Blocks acknowledged since the receiver last reported.
    silent: u32,
    /// Bytes that it may take to keep data of.
    allowance: usize,
    pub(crate) statistics: FecStatistics,
}

impl Outgoing {
    pub(super) fn new(config: FecConfig, most: u32, key: Key) -> Self {
        Self {
            config,
            key,
            most,
            estimate: Estimate::new(config.estimator),
            trust: Trust::new(),
            blocks: VecDeque::new(),
            next_number: 0,
            in_flight: VecDeque::new(),
            bytes_in_flight: 0,
            due: 0,
            unreported: VecDeque::new(),
            missing: 0,
            probe_at: Instant::MAX,
            probes: 0,
            silent: 0,
            allowance: usize::MAX,
            statistics: FecStatistics::default(),
        }
    }

    /// Whether the stream is cut into blocks.
    pub(crate) const fn cuts(&self) -> bool {
        self.config.codes() || self.config.adaptive_mss
    }

    /// Whether it repairs: not if nobody understands it.
    pub(crate) const fn codes(&self) -> bool {
        self.config.codes()
    }

    /// Bytes of data of the largest segment.
    pub(crate) const fn most(&self) -> u32 {
        self.most
    }

    /// Bytes of data that it keeps.
    pub(crate) fn memory(&self) -> usize {
        let of = |block: &Block| block.kept.capacity() + block.ready.iter().map(Vec::len).sum::<usize>();
        self.blocks.iter().map(of).sum()
    }

    /// It may grow by so many bytes.
    pub(crate) const fn set_allowance(&mut self, bytes: usize) {
        self.allowance = bytes;
    }

    /// The connection is over.
    pub(crate) fn rest(&mut self) {
        self.blocks = VecDeque::new();
        self.leave_flight(|_| true);
        (self.due, self.missing, self.probe_at) = (0, 0, Instant::MAX);
    }

    /// Bytes of repairs that may be in the network.
    pub(crate) const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Packets are known to pass no larger than those with so many bytes of data: repairs of larger ones do not.
    pub(crate) fn set_most(&mut self, most: u32) {
        self.most = self.most.min(most);
        for block in self.blocks.iter_mut().filter(|block| block.symbol_len() > most) {
            Self::skip_repairs(block, &mut self.unreported);
            block.give_up();
        }
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
            given_up: false,
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
        let (number, whole) = (at / u64::from(block.mss), at.is_multiple_of(block.mss.into()));
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
        let (key, config, room) = (self.key, self.config, self.allowance);
        let Some(block) = self.blocks.back_mut().filter(|it| !it.closed && it.sent > 0) else { return };
        if block.sent < block.sources {
            // There is less to protect than was planned.
            block.repairs = block.repairs.min(plan::least_repairs(rate).max(block.sent.into()) as u8);
        }
        (block.sources, block.closed) = (block.sent, true);
        if !config.codes() {
            return;
        }
        if self.unreported.len() == MOST_BLOCKS {
            self.unreported.pop_front();
        }
        if block.given_up {
            self.unreported.push_back((block.number, block.sources.into()));
            return;
        }
        let whole = block.whole(una, buffer);
        block.check = key.check(block.start, block.sources, &whole);
        let most = room / block.symbol_len() as usize;
        let count = if config.proactive { usize::from(block.repairs).min(most) as u16 } else { 0 };
        block.ready = block.encode(&whole, 0..count).into();
        self.unreported.push_back((block.number, u16::from(block.sources) + count));
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
            let len = upto.saturating_sub(from) as usize;
            if len > self.allowance {
                // There is no memory to repair it from.
                block.give_up();
            } else if from < upto && !block.given_up && self.config.codes() {
                block.kept.reserve_exact(len);
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
            self.silent += u32::from(self.unreported.iter().any(|it| it.0 == front.number));
        }
    }

    /// Blocks have been acknowledged for long, and the receiver says nothing of them: it does not know the options, or somebody between
    /// takes them away.
    pub(crate) fn stop_if_unheard(&mut self) {
        if self.silent < DEAF_AFTER || !self.codes() {
            return;
        }
        (self.config.proactive, self.config.reactive) = (false, false);
        (self.due, self.missing, self.probe_at) = (0, 0, Instant::MAX);
        self.unreported.clear();
        for block in &mut self.blocks {
            block.give_up();
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
        if self.persists() && self.blocks.front().is_some_and(Block::can_repair) {
            self.due = self.due_after_silence();
        }
        for block in &mut self.blocks {
            Self::skip_repairs(block, &mut self.unreported);
            block.ready.clear();
        }
    }

    /// A duplicate acknowledgement came: the oldest block lacks something.
    pub(crate) fn on_duplicate(&mut self, una: u64) {
        let rate = self.estimate.rate();
        let lacks = |block: &&Block| block.closed && block.end > una && block.can_repair();
        let Some(front) = self.blocks.front().filter(lacks) else { return };
        if !self.config.reactive || self.persists() {
            return;
        }
        // As many as are sent in any case, in a round trip at most.
        let most = u32::from(front.repairs).max(plan::least_repairs(rate));
        let free = most.saturating_sub(self.under_way(front));
        self.due = (self.due + plan::reactive(rate)).min(free);
    }

    /// What the receiver says of blocks.
    pub(crate) fn on_report(&mut self, report: &Report) {
        self.silent = 0;
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
        let lacks = |it: &&Block| it.closed && it.ready.is_empty() && it.can_repair();
        let Some(front) = self.blocks.front().filter(lacks) else { return };
        let under_way = self.under_way(front);
        self.due = plan::enough(self.missing, self.estimate.rate()).saturating_sub(under_way);
    }

    /// Reactive repairs of a block that may be in the network.
    fn under_way(&self, block: &Block) -> u32 {
        self.in_flight.iter().filter(|it| it.reactive && it.end == block.end).count() as u32
    }

    /// Repairs after a silence: what the oldest block may lack.
    fn due_after_silence(&self) -> u32 {
        plan::enough(self.missing.max(1), self.estimate.rate()).min(MOST_PROBED)
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
        self.probe_at = match self.blocks.front().filter(|front| front.sent > 0) {
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
        if !self.blocks.front().is_some_and(|front| front.closed && front.can_repair()) {
            return;
        }
        self.due = self.due_after_silence();
        if self.probes < MOST_PROBES {
            self.restart_probe(now, srtt, false);
        }
    }
}

/// A silence shorter than this is none.
const LEAST_PROBE: Duration = Duration::from_millis(10);
/// Times that a silence brings repairs before only the retransmission timer does.
const MOST_PROBES: u32 = 3;
/// Repairs after a silence at most: those of an initial window (RFC 6928).
const MOST_PROBED: u32 = 10;
/// Blocks acknowledged without a word of the receiver's, whose every acknowledgement should have one.
const DEAF_AFTER: u32 = 32;
/// Unacknowledged blocks: their numbers wrap at 256, and both ends have to tell old from new.
const MOST_BLOCKS: usize = 64;

#[cfg(test)]
mod tests;
