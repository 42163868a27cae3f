//! What was sent and is not cumulatively acknowledged: one record a segment, with the marks that recovery sets.
//!
//! The numbers that every decision needs (`pipe` and its parts) are kept as the marks change, and every cursor
//! only moves forward between losses, so an acknowledgement costs what it changes and not what is outstanding.

mod losses;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use base::Instant;
use base::wire::tcp::{Flags, SackBlock};

use super::Phase;
use crate::buffer::ranges::{MOST_SPANS, RangeSet, Span};
use crate::connection::sender::delivery::Snapshot;
use crate::sequence::SeqSpace;

/// One segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Offset of its first byte.
    pub(crate) start: u64,
    /// Bytes of sequence space, FIN included.
    pub(crate) len: u32,
    marks: u8,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    /// What had been delivered by then.
    pub(crate) snapshot: Snapshot,
}

/// The peer has it, beyond the cumulative acknowledgement.
const SACKED: u8 = 1;
/// It is deemed lost.
const LOST: u8 = 2;
/// It was sent again since it was last deemed lost.
const RESENT: u8 = 4;
/// It was sent again at some time: no round-trip sample (Karn).
const EVER_RESENT: u8 = 8;
/// It ends with a FIN.
const FIN: u8 = 16;
/// Its last byte is where the application's data ended, so that it is pushed.
const PUSHED: u8 = 32;

/// Records whose memory stays when nothing is outstanding, so that a connection that exchanges small messages does not
/// allocate; beyond that, a window of data pays for an allocation.
const KEPT_RECORDS: usize = 1;

/// Records that a deque takes memory for when it first grows.
const FIRST_RECORDS: usize = 4;

impl Record {
    /// The offset after its last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    /// Whether it ends with a FIN.
    pub(crate) const fn has_fin(&self) -> bool {
        self.has(FIN)
    }

    /// Its flags: it is sent again with those that it had.
    pub(crate) fn flags(&self) -> Flags {
        let push = if self.has(PUSHED) { Flags::PSH } else { Flags(0) };
        push | if self.has_fin() { Flags::FIN } else { Flags(0) }
    }

    /// Bytes of data.
    pub(crate) const fn data_len(&self) -> u32 {
        self.len - self.has_fin() as u32
    }

    /// Whether it was ever sent again.
    pub(crate) const fn was_resent(&self) -> bool {
        self.has(EVER_RESENT)
    }

    /// Takes in the record that follows. What was sent at several times gives no round-trip sample.
    fn join(&mut self, next: &Self) {
        self.marks |= next.marks | if self.sent_at == next.sent_at { 0 } else { EVER_RESENT };
        self.len += next.len;
        if next.sent_at < self.sent_at {
            (self.sent_at, self.snapshot) = (next.sent_at, next.snapshot);
        }
    }

    /// The record in pieces of at most `mss` bytes of data; its FIN and PSH go with the last.
    fn pieces(self, mss: u32) -> impl Iterator<Item = Self> {
        let count = self.data_len().div_ceil(mss).max(1);
        (0..count).map(move |piece| {
            let last = piece + 1 == count;
            let len = if last { self.len - piece * mss } else { mss };
            let marks = if last { self.marks } else { self.marks & !(FIN | PUSHED) };
            Self { start: self.start + u64::from(piece * mss), len, marks, ..self }
        })
    }

    const fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }
}

/// What an acknowledgement says and newly delivers, and what was known before it; nothing but that where a timer asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    /// Recovery's phase before it.
    pub(crate) prior_phase: Phase,
    /// Bytes by which the window was inflated before it, where a reduction of the window asks.
    pub(crate) prior_inflation: i64,
    /// Segments deemed lost before it; wraps.
    pub(crate) prior_losses: u32,
    /// Bytes in the network before it.
    pub(crate) prior_in_flight: u64,
    /// Whether it is a duplicate as RFC 5681 (2) defines it.
    pub(crate) duplicate: bool,
    /// Whether it acknowledges nothing new, selectively either, and carries nothing.
    pub(crate) bare: bool,
    /// If it reports data that came twice (RFC 2883), the offset after them.
    pub(crate) dsack: Option<u64>,
    /// The timestamp that it echoes.
    pub(crate) echo: Option<u32>,
    /// Bytes that the cumulative acknowledgement advanced by.
    pub(crate) acked: u64,
    /// Bytes newly acknowledged selectively.
    pub(crate) sacked: u64,
    /// Bytes that the peer is newly known to have.
    pub(crate) bytes: u64,
    /// When the oldest of the segments was sent, of those sent once.
    pub(crate) oldest_sent_at: Option<Instant>,
    /// When the latest was sent, of those sent once.
    pub(crate) latest_sent_at: Option<Instant>,
    /// Whether any of those newly delivered had been sent again.
    pub(crate) any_resent: bool,
    /// Whether the scheme asks for order and times: what follows.
    pub(crate) in_detail: bool,
    /// What the peer had furthest on before this acknowledgement.
    pub(crate) prior_fack: u64,
    /// Bytes from the furthest back of the segments, of those sent once, to `prior_fack`: how far the network
    /// has reordered them.
    pub(crate) reordered_by: u64,
    /// Of segments that were sent again, those that were sent last after this tell nothing: the acknowledgement may
    /// be of an earlier copy.
    pub(crate) trusted_until: Instant,
    /// Of segments that were sent again and are acknowledged cumulatively, those that were sent last after this tell
    /// nothing: by the time that is echoed, an earlier copy came. Of what lies above a hole the echo says nothing: it
    /// is the last in-order segment's (RFC 7323, 4.3).
    pub(crate) echoed_until: Instant,
    /// When the one sent last was sent, and its end.
    pub(crate) newest: Option<(Instant, u64)>,
    /// Of the segment that was sent with the most delivered before it: what it noted, and when it was sent.
    pub(crate) latest: Option<(Snapshot, Instant)>,
}

impl News {
    /// Counts a record that is acknowledged; `cumulatively` or not.
    fn count(&mut self, record: &Record, cumulatively: bool) {
        self.bytes += u64::from(record.len);
        if record.has(EVER_RESENT) {
            self.any_resent = true;
        } else {
            self.oldest_sent_at.get_or_insert(record.sent_at);
            self.latest_sent_at = Some(record.sent_at);
        }
        if self.in_detail {
            let echoed = if cumulatively { self.echoed_until } else { Instant::MAX };
            self.count_order(record, self.trusted_until.min(echoed));
        }
        if self.latest.is_none_or(|(latest, _)| record.snapshot.is_as_late_as(&latest)) {
            self.latest = Some((record.snapshot, record.sent_at));
        }
    }

    fn count_order(&mut self, record: &Record, trusted_until: Instant) {
        if !record.has(EVER_RESENT) && record.end() < self.prior_fack {
            self.reordered_by = self.reordered_by.max(self.prior_fack - record.start);
        }
        if !record.has(EVER_RESENT) || record.sent_at <= trusted_until {
            self.newest = self.newest.max(Some((record.sent_at, record.end())));
        }
    }
}

/// The records, ascending, and their sums.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    /// The index of the first record; indices never repeat.
    base: u64,
    /// What is selectively acknowledged, beyond the first record's start.
    sacked_spans: RangeSet,
    /// Bytes, and of these: with the peer, deemed lost, and sent again. A window is below 2^30 (RFC 7323, 2.3).
    outstanding: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Segments that the peer has beyond the cumulative acknowledgement.
    sacked_segments: u32,
    /// Segments deemed lost so far; wraps.
    losses: u32,
    /// Everything before this index was considered for retransmission: `HighRxt`.
    cursor: u64,
    /// Everything before this index is selectively acknowledged or deemed lost.
    lost_until: u64,
}

impl Scoreboard {
    /// Whether nothing is outstanding.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes estimated to be in the network: `pipe` of RFC 6675 (4), kept incrementally.
    pub(crate) const fn pipe(&self) -> u64 {
        (self.outstanding - self.sacked - self.lost + self.resent) as u64
    }

    /// Whether copies of segments that were sent again are under way.
    pub(crate) const fn has_copies(&self) -> bool {
        self.resent > 0
    }

    /// Bytes that the peer has beyond the cumulative acknowledgement.
    pub(crate) const fn sacked(&self) -> u64 {
        self.sacked as u64
    }

    /// Bytes that are deemed lost, sent again or not.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost as u64
    }

    /// Bytes that were sent again since they were last deemed lost.
    pub(crate) const fn resent_bytes(&self) -> u64 {
        self.resent as u64
    }

    /// Segments that the peer has beyond the cumulative acknowledgement.
    pub(crate) const fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// The end of what the peer has furthest on beyond the cumulative acknowledgement, `snd.fack`; none if nothing.
    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        Some(self.sacked_spans.last()?.end)
    }

    /// Segments outstanding.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Segments deemed lost so far, for comparisons: it wraps.
    pub(crate) const fn losses(&self) -> u32 {
        self.losses
    }

    /// Bytes that `pipe` leaves out although nobody has found a loss: what arrived beyond a gap.
    pub(crate) const fn arrived_early(&self) -> u64 {
        (self.outstanding as u64).saturating_sub(self.pipe())
    }

    /// The record with this index.
    pub(crate) fn record(&self, index: u64) -> &Record {
        &self.records[(index - self.base) as usize]
    }

    /// The first record, if anything is outstanding.
    pub(crate) fn first(&self) -> Option<&Record> {
        self.records.front()
    }

    /// The record that begins there, unless the peer is known to have it.
    pub(crate) fn missing_at(&self, start: u64) -> Option<&Record> {
        let at = self.records.partition_point(|record| record.start < start);
        self.records.get(at).filter(|record| record.start == start && !record.has(SACKED))
    }

    /// The index of the first record.
    pub(crate) const fn head(&self) -> u64 {
        self.base
    }

    fn end_index(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// Whether `allowance` more bytes of memory are enough for one more record. For the first there always is room, so that
    /// something goes on.
    pub(crate) fn has_room(&self, allowance: usize) -> bool {
        let full = self.records.len() == self.records.capacity();
        self.records.is_empty() || !full || allowance >= size_of::<Record>()
    }

    /// Makes room for one more record where `allowance` bytes do not let the memory double, as it else does by itself.
    pub(crate) fn make_room(&mut self, allowance: usize) {
        let (held, fits) = (self.records.capacity(), allowance / size_of::<Record>());
        if held > 0 && self.records.len() == held && fits <= held.max(FIRST_RECORDS) {
            self.records.reserve_exact(fits.max(1));
        }
    }

    /// A segment was sent for the first time, with these of the flags PSH and FIN.
    pub(crate) fn push(&mut self, start: u64, len: u32, flags: Flags, now: Instant, snapshot: Snapshot) {
        self.outstanding += len;
        let fin = if flags.has(Flags::FIN) { FIN } else { 0 };
        let marks = fin | if flags.has(Flags::PSH) { PUSHED } else { 0 };
        if self.records.capacity() == 0 {
            self.records.reserve_exact(KEPT_RECORDS);
        }
        self.records.push_back(Record { start, len, marks, sent_at: now, snapshot });
    }

    /// Cuts what the peer is not known to have into pieces of at most `mss` bytes of data, which are deemed lost. What lies
    /// side by side is joined first, so that cutting again and again leaves no ever smaller pieces. No index is the same
    /// afterwards, and none that was given before names anything.
    pub(crate) fn cut(&mut self, mss: u32) {
        let records = core::mem::take(&mut self.records);
        self.base += records.len() as u64;
        let mut run: Option<Record> = None;
        for record in records {
            match &mut run {
                Some(run) if !run.has(SACKED) && !record.has(SACKED) => run.join(&record),
                _ => {
                    let done = run.replace(record);
                    self.push_pieces(done, mss);
                }
            }
        }
        self.push_pieces(run, mss);
        (self.lost, self.resent) = (self.outstanding - self.sacked, 0);
        (self.cursor, self.lost_until) = (self.base, self.base);
    }

    /// Appends a run's pieces, deemed lost; what the peer has stays whole, for it will hardly be sent again.
    fn push_pieces(&mut self, run: Option<Record>, mss: u32) {
        match run {
            Some(record) if record.has(SACKED) => self.records.push_back(record),
            Some(mut run) => {
                run.marks = run.marks & !RESENT | LOST;
                self.records.extend(run.pieces(mss));
            }
            None => {}
        }
    }

    /// Cuts the first record; false if that is not the one that is too large, or if there are no indices below its own.
    pub(crate) fn cut_head(&mut self, mss: u32) -> bool {
        let Some(head) = self.records.front().copied().filter(|head| head.data_len() > mss) else {
            return false;
        };
        let pieces = u64::from(head.data_len().div_ceil(mss));
        if self.base < pieces {
            return false;
        }
        self.records.pop_front();
        // Those behind it keep their indices.
        self.base -= pieces - 1;
        let pieces: Vec<Record> = head.pieces(mss).collect();
        pieces.into_iter().rev().for_each(|piece| self.records.push_front(piece));
        self.rewind();
        true
    }

    /// The record with this index was sent again as a rescue: neither `HighRxt` nor `pipe` take note of it
    /// (RFC 6675, 4, rule 4 and `SetPipe`), so it goes out once more if it is deemed lost later.
    pub(crate) fn on_rescued(&mut self, index: u64, now: Instant, snapshot: Snapshot) {
        let record = &mut self.records[(index - self.base) as usize];
        record.marks |= EVER_RESENT;
        record.sent_at = now;
        record.snapshot = snapshot;
    }

    /// The record with this index was sent again. `HighRxt` moves past it when it gets there: what lies below may be found lost
    /// later.
    pub(crate) fn on_resent(&mut self, index: u64, now: Instant, snapshot: Snapshot) {
        let record = &mut self.records[(index - self.base) as usize];
        if !record.has(RESENT) {
            self.resent += record.len;
        }
        record.marks |= RESENT | EVER_RESENT;
        record.sent_at = now;
        record.snapshot = snapshot;
    }

    /// Takes in a cumulative acknowledgement of everything before `una`.
    pub(crate) fn acknowledge(&mut self, una: u64, news: &mut News) {
        while let Some(&record) = self.records.front() {
            if record.end() > una {
                break;
            }
            self.records.pop_front();
            self.base += 1;
            self.forget(&record);
            self.outstanding -= record.len;
            news.acked += u64::from(record.len);
            if !record.has(SACKED) {
                news.count(&record, true);
            }
        }
        self.trim_head(una, news);
        if !self.sacked_spans.is_empty() {
            self.sacked_spans.remove_below(una);
        }
        if self.records.is_empty() && self.records.capacity() > KEPT_RECORDS {
            self.records = VecDeque::new();
        }
    }

    /// The peer acknowledged a part of the first record.
    fn trim_head(&mut self, una: u64, news: &mut News) {
        let Some(record) = self.records.front().copied().filter(|record| record.start < una) else { return };
        let gone = (una - record.start) as u32;
        self.forget(&record);
        self.outstanding -= gone;
        news.acked += u64::from(gone);
        if !record.has(SACKED) {
            // A gateway on the way cuts segments to its own size: what came of this one is delivered.
            news.count(&Record { len: gone, ..record }, true);
        }
        let head = &mut self.records[0];
        head.start = una;
        head.len -= gone;
        let head = *head;
        self.remember(&head);
    }

    /// Takes a record out of the sums of its marks.
    fn forget(&mut self, record: &Record) {
        let len = record.len;
        if record.marks & (SACKED | LOST | RESENT) == 0 {
            return;
        }
        self.sacked -= if record.has(SACKED) { len } else { 0 };
        self.sacked_segments -= u32::from(record.has(SACKED));
        self.lost -= if record.has(LOST) { len } else { 0 };
        self.resent -= if record.has(RESENT) { len } else { 0 };
    }

    /// Adds a record to the sums of its marks.
    fn remember(&mut self, record: &Record) {
        let len = record.len;
        self.sacked += if record.has(SACKED) { len } else { 0 };
        self.sacked_segments += u32::from(record.has(SACKED));
        self.lost += if record.has(LOST) { len } else { 0 };
        self.resent += if record.has(RESENT) { len } else { 0 };
    }

    /// Takes in a segment's SACK blocks. Blocks that cannot be, those that only report duplicates, and those that would take
    /// more memory than honest peers need, are ignored.
    pub(crate) fn take_blocks(
        &mut self,
        blocks: &[SackBlock],
        space: SeqSpace,
        (una, nxt): (u64, u64),
        news: &mut News,
    ) {
        for block in blocks {
            let (start, end) = (space.offset(block.start, una), space.offset(block.end, una));
            let start = start.max(una);
            if start >= end || end > nxt {
                continue;
            }
            let mut spans = core::mem::take(&mut self.sacked_spans);
            let merged = spans.merged(Span { start, end });
            // Part by part: what the peer had before is not walked through again.
            spans.insert(Span { start, end }, MOST_SPANS, |fresh| self.mark_sacked(fresh, merged, news));
            self.sacked_spans = spans;
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.sacked_spans.memory()
    }

    /// Marks the records that meet `fresh` and lie wholly within `merged`.
    fn mark_sacked(&mut self, fresh: Span, merged: Span, news: &mut News) {
        let mut at = self.records.partition_point(|record| record.end() <= fresh.start);
        while let Some(record) = self.records.get(at).copied().filter(|record| record.start < fresh.end) {
            if !record.has(SACKED) && merged.start <= record.start && record.end() <= merged.end {
                self.forget(&record);
                news.sacked += u64::from(record.len);
                news.count(&record, false);
                let kept = &mut self.records[at];
                kept.marks = kept.marks & !(LOST | RESENT) | SACKED;
                self.sacked += record.len;
                self.sacked_segments += 1;
            }
            at += 1;
        }
    }

    /// Considers everything outstanding for retransmission again.
    pub(crate) fn rewind(&mut self) {
        self.cursor = self.base;
    }

    /// The first record past `HighRxt` that is neither with the peer nor sent again; `HighRxt` moves up to it.
    fn advance_cursor(&mut self) -> u64 {
        self.cursor = self.cursor.max(self.base);
        while let Some(record) = self.records.get((self.cursor - self.base) as usize) {
            if !record.has(SACKED | RESENT) {
                break;
            }
            self.cursor += 1;
        }
        self.cursor
    }

    /// The first record past `HighRxt` that is deemed lost and was not sent again: rule 1 of `NextSeg`.
    pub(crate) fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let index = self.advance_cursor();
        (index < self.lost_until.min(self.end_index())).then_some(index)
    }

    /// The first record past `HighRxt` that the peer lacks although it has something beyond: rule 3 of `NextSeg`.
    pub(crate) fn next_below_highest_sacked(&mut self) -> Option<u64> {
        let highest = self.highest_sacked()?;
        let index = self.advance_cursor();
        let record = self.records.get((index - self.base) as usize)?;
        (record.start < highest).then_some(index)
    }

    /// The start of the first record, which is SND.UNA while anything is outstanding.
    pub(crate) fn una(&self) -> u64 {
        self.first().map_or(0, |head| head.start)
    }

    /// The last record that the peer is not known to have, unless a copy of it is under way: rule 4 of `NextSeg`.
    pub(crate) fn rescue(&self) -> Option<u64> {
        self.last_unsacked().filter(|&index| self.resent(index).is_none())
    }

    /// The last record that the peer is not known to have.
    pub(crate) fn last_unsacked(&self) -> Option<u64> {
        let end = self.records.back()?.end();
        let edge = self.sacked_spans.last().filter(|span| span.end >= end).map_or(end, |span| span.start);
        let back = self.records.partition_point(|record| record.start < edge).checked_sub(1)?;
        Some(self.base + back as u64)
    }
}
