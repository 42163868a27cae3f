//! What was sent and is not cumulatively acknowledged: one record a segment, with the marks that recovery sets.
//!
//! The numbers that every decision needs (`pipe` and its parts) are kept as the marks change, and every cursor
//! only moves forward between losses, so an acknowledgement costs what it changes and not what is outstanding.

use std::collections::VecDeque;

use base::Instant;
use base::wire::tcp::SackBlock;

use crate::buffer::ranges::{RangeSet, Span};
use crate::connection::delivery::Snapshot;
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

impl Record {
    /// The offset after its last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    /// Whether it ends with a FIN.
    pub(crate) const fn has_fin(&self) -> bool {
        self.has(FIN)
    }

    /// Bytes of data.
    pub(crate) const fn data_len(&self) -> u32 {
        self.len - self.has_fin() as u32
    }

    /// Whether it was ever sent again.
    pub(crate) const fn was_resent(&self) -> bool {
        self.has(EVER_RESENT)
    }

    const fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }
}

/// What an acknowledgement newly delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
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
    /// What the peer had furthest on before this acknowledgement.
    pub(crate) prior_fack: u64,
    /// Bytes from the furthest back of the segments, of those sent once, to `prior_fack`: how far the network
    /// has reordered them.
    pub(crate) reordered_by: u64,
    /// Of segments that were sent again, those that were sent last after this tell nothing: the acknowledgement may
    /// be of an earlier copy.
    pub(crate) trusted_until: Instant,
    /// When the one sent last was sent, and its end.
    pub(crate) newest: Option<(Instant, u64)>,
    /// Of the segment that was sent with the most delivered before it: what it noted, and when it was sent.
    pub(crate) latest: Option<(Snapshot, Instant)>,
}

impl Delivered {
    fn count(&mut self, record: &Record) {
        self.bytes += u64::from(record.len);
        if record.has(EVER_RESENT) {
            self.any_resent = true;
        } else {
            self.oldest_sent_at.get_or_insert(record.sent_at);
            self.latest_sent_at = Some(record.sent_at);
            if record.end() < self.prior_fack {
                self.reordered_by = self.reordered_by.max(self.prior_fack - record.start);
            }
        }
        if !record.has(EVER_RESENT) || record.sent_at <= self.trusted_until {
            self.newest = self.newest.max(Some((record.sent_at, record.end())));
        }
        if self.latest.is_none_or(|(latest, _)| record.snapshot.is_as_late_as(&latest)) {
            self.latest = Some((record.snapshot, record.sent_at));
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

    /// Bytes that the peer has beyond the cumulative acknowledgement.
    pub(crate) const fn sacked(&self) -> u64 {
        self.sacked as u64
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

    /// The index of the first record.
    pub(crate) const fn head(&self) -> u64 {
        self.base
    }

    fn end_index(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// A segment was sent for the first time.
    pub(crate) fn push(&mut self, start: u64, len: u32, fin: bool, now: Instant, snapshot: Snapshot) {
        self.outstanding += len;
        let marks = if fin { FIN } else { 0 };
        self.records.push_back(Record { start, len, marks, sent_at: now, snapshot });
    }

    /// The record with this index was sent again; `advance` moves `HighRxt` to it.
    pub(crate) fn on_resent(&mut self, index: u64, now: Instant, snapshot: Snapshot, advance: bool) {
        let record = &mut self.records[(index - self.base) as usize];
        if !record.has(RESENT) {
            self.resent += record.len;
        }
        record.marks |= RESENT | EVER_RESENT;
        record.sent_at = now;
        record.snapshot = snapshot;
        if advance {
            self.cursor = self.cursor.max(index + 1);
        }
    }

    /// Takes in a cumulative acknowledgement of everything before `una`.
    pub(crate) fn acknowledge(&mut self, una: u64, news: &mut Delivered) {
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
                news.count(&record);
            }
        }
        self.trim_head(una, news);
        if !self.sacked_spans.is_empty() {
            self.sacked_spans.remove_below(una);
        }
    }

    /// The peer acknowledged a part of the first record.
    fn trim_head(&mut self, una: u64, news: &mut Delivered) {
        let Some(record) = self.records.front().copied().filter(|record| record.start < una) else { return };
        let gone = (una - record.start) as u32;
        self.forget(&record);
        self.outstanding -= gone;
        news.acked += u64::from(gone);
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

    /// Takes in a segment's SACK blocks. Blocks that cannot be, and those that only report duplicates, are ignored.
    pub(crate) fn take_blocks(
        &mut self,
        blocks: &[SackBlock],
        space: SeqSpace,
        (una, nxt): (u64, u64),
        news: &mut Delivered,
    ) {
        for block in blocks {
            let (start, end) = (space.offset(block.start, una), space.offset(block.end, una));
            let start = start.max(una);
            if start >= end || end > nxt {
                continue;
            }
            let mut fresh: Option<Span> = None;
            let merged = self.sacked_spans.insert(Span { start, end }, |part| {
                let whole = fresh.get_or_insert(part);
                whole.end = part.end;
            });
            if let Some(fresh) = fresh {
                self.mark_sacked(fresh, merged, news);
            }
        }
    }

    /// Marks the records that meet `fresh` and lie wholly within `merged`.
    fn mark_sacked(&mut self, fresh: Span, merged: Span, news: &mut Delivered) {
        let mut at = self.records.partition_point(|record| record.end() <= fresh.start);
        while let Some(record) = self.records.get(at).copied().filter(|record| record.start < fresh.end) {
            if !record.has(SACKED) && merged.start <= record.start && record.end() <= merged.end {
                self.forget(&record);
                news.sacked += u64::from(record.len);
                news.count(&record);
                let kept = &mut self.records[at];
                kept.marks = kept.marks & !(LOST | RESENT) | SACKED;
                self.sacked += record.len;
                self.sacked_segments += 1;
            }
            at += 1;
        }
    }

    /// Deems lost what `IsLost` of RFC 6675 (4) says is lost, now that more is selectively acknowledged: everything
    /// below which lie `DupThresh` separate runs, or more than `DupThresh` - 1 segments' bytes, that the peer has.
    pub(crate) fn mark_losses(&mut self, dup_thresh: u32, mss: u64) {
        let (mut runs, mut bytes) = (0, 0);
        let edge = self.sacked_spans.iter().rev().find(|span| {
            runs += 1;
            bytes += span.end - span.start;
            runs >= dup_thresh || bytes > u64::from(dup_thresh - 1) * mss
        });
        if let Some(edge) = edge {
            self.mark_lost_below(edge.start);
        }
    }

    /// Deems lost what starts below `edge` and the peer is not known to have.
    pub(crate) fn mark_lost_below(&mut self, edge: u64) {
        let mut index = self.lost_until.max(self.base);
        while let Some(record) = self.records.get_mut((index - self.base) as usize) {
            if record.start >= edge {
                break;
            }
            if !record.has(SACKED | LOST) {
                record.marks |= LOST;
                self.lost += record.len;
                self.losses = self.losses.wrapping_add(1);
            }
            index += 1;
        }
        self.lost_until = index;
    }

    /// Deems the first record lost, even if it was sent again.
    pub(crate) fn mark_head_lost(&mut self) {
        let Some(head) = self.records.front_mut().filter(|head| !head.has(SACKED)) else { return };
        let len = head.len;
        if head.has(RESENT) || !head.has(LOST) {
            self.losses = self.losses.wrapping_add(1);
        }
        self.lost += if head.has(LOST) { 0 } else { len };
        self.resent -= if head.has(RESENT) { len } else { 0 };
        head.marks = head.marks & !RESENT | LOST;
        self.lost_until = self.lost_until.max(self.base + 1);
        self.rewind();
    }

    /// Deems everything lost that the peer is not known to have; forgets what it claimed if it has reneged.
    pub(crate) fn mark_all_lost(&mut self) {
        self.mark_expired(|_| true);
    }

    /// Deems lost the first record and those, unknown to be with the peer, that `expired` names; forgets what the
    /// peer claimed if it has reneged.
    pub(crate) fn mark_expired(&mut self, mut expired: impl FnMut(&Record) -> bool) {
        if self.is_head_sacked() {
            self.forget_claims();
        }
        let mut whole = true;
        self.lost_until = self.base;
        for (at, record) in self.records.iter_mut().enumerate() {
            if record.has(SACKED) {
                // It stays so.
            } else if at == 0 || expired(record) {
                let len = record.len;
                self.lost += if record.has(LOST) { 0 } else { len };
                self.resent -= if record.has(RESENT) { len } else { 0 };
                record.marks = record.marks & !RESENT | LOST;
                self.losses = self.losses.wrapping_add(1);
            } else {
                whole &= record.has(RESENT);
            }
            self.lost_until += u64::from(whole);
        }
        self.rewind();
    }

    /// Deems lost what starts below `end` and the peer is not known to have; copies under way stay so.
    pub(crate) fn mark_rest_lost(&mut self, end: u64) {
        let mut index = self.base;
        while let Some(record) = self.records.get_mut((index - self.base) as usize) {
            if record.start >= end {
                break;
            }
            if !record.has(SACKED | LOST) {
                record.marks |= LOST;
                self.lost += record.len;
                self.losses = self.losses.wrapping_add(1);
            }
            index += 1;
        }
        self.lost_until = self.lost_until.max(index);
        self.rewind();
    }

    /// Nothing was lost after all; copies that were sent again count on.
    pub(crate) fn unmark_lost(&mut self) {
        for record in &mut self.records {
            if record.has(LOST) && !record.has(RESENT) {
                record.marks &= !LOST;
                self.lost -= record.len;
            }
        }
        self.lost_until = self.base;
        self.rewind();
    }

    /// Whether the peer has the first record selectively: it has reneged, or is about to acknowledge it.
    pub(crate) fn is_head_sacked(&self) -> bool {
        self.records.front().is_some_and(|head| head.has(SACKED))
    }

    /// The peer has taken back what it had acknowledged selectively (RFC 2018, 8).
    fn forget_claims(&mut self) {
        self.sacked_spans.clear();
        (self.sacked, self.sacked_segments) = (0, 0);
        for record in &mut self.records {
            record.marks &= !SACKED;
        }
    }

    /// Deems lost, in order, what `is_lost` says of records that were sent once and are not with the peer; ends at
    /// the first that is not.
    pub(crate) fn mark_lost_while(&mut self, mut is_lost: impl FnMut(&Record) -> bool) {
        let mut index = self.lost_until.max(self.base);
        while let Some(record) = self.records.get_mut((index - self.base) as usize) {
            if !record.has(SACKED | LOST | RESENT) {
                if !is_lost(record) {
                    break;
                }
                record.marks |= LOST;
                self.lost += record.len;
                self.losses = self.losses.wrapping_add(1);
            }
            index += 1;
        }
        self.lost_until = index;
    }

    /// The record with this index, if it was sent again and that copy is under way.
    pub(crate) fn resent(&self, index: u64) -> Option<&Record> {
        let at = index.checked_sub(self.base)?;
        self.records.get(at as usize).filter(|record| record.has(RESENT))
    }

    /// The copy of this record that was sent again is deemed lost.
    pub(crate) fn mark_lost_again(&mut self, index: u64) {
        let record = &mut self.records[(index - self.base) as usize];
        let len = record.len;
        self.lost += if record.has(LOST) { 0 } else { len };
        self.resent -= len;
        record.marks = record.marks & !RESENT | LOST;
        self.losses = self.losses.wrapping_add(1);
    }

    /// Whether the record with this index is deemed lost, and not sent again since.
    pub(crate) fn is_due_again(&self, index: u64) -> bool {
        let record = index.checked_sub(self.base).and_then(|at| self.records.get(at as usize));
        record.is_some_and(|record| record.has(LOST) && !record.has(RESENT | SACKED))
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

    /// The last record that the peer is not known to have: rule 4 of `NextSeg`.
    pub(crate) fn last_unsacked(&self) -> Option<u64> {
        let back = self.records.iter().rposition(|record| !record.has(SACKED))?;
        Some(self.base + back as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::delivery::DeliveryMeter;
    use crate::sequence::ORIGIN;
    use base::SeqNum;
    use proptest::prelude::*;

    const MSS: u64 = 4;
    const SPACE: SeqSpace = SeqSpace::starting_at(SeqNum(u32::MAX - 30));

    #[derive(Clone, Debug)]
    enum Step {
        Send(u32),
        /// Offsets beyond SND.UNA.
        Sack(u64, u64),
        Ack(u64),
        ResendNext,
        Timeout,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1_u32..6).prop_map(Step::Send),
            4 => (0_u64..60, 1_u64..12).prop_map(|(start, len)| Step::Sack(start, len)),
            2 => (0_u64..30).prop_map(Step::Ack),
            3 => Just(Step::ResendNext),
            1 => Just(Step::Timeout),
        ]
    }

    /// RFC 6675, section 4, word for word: a list of segments, and of what the peer says it has byte by byte.
    #[derive(Default)]
    struct Model {
        /// Start, end, deemed lost, sent again.
        segments: Vec<(u64, u64, bool, bool)>,
        has: Vec<u64>,
        una: u64,
    }

    impl Model {
        fn sacked(&self, &(start, end, ..): &(u64, u64, bool, bool)) -> bool {
            (start..end).all(|byte| self.has.contains(&byte))
        }

        fn is_lost(&self, end: u64) -> bool {
            let above: Vec<u64> = self.has.iter().copied().filter(|&byte| byte >= end).collect();
            let runs = above.iter().filter(|&&byte| !above.contains(&(byte - 1))).count();
            // A run that reaches down to the segment's own bytes is still a run above its first byte.
            runs >= 3 || above.len() as u64 > 2 * MSS
        }

        fn mark(&mut self) {
            for at in 0..self.segments.len() {
                let segment = self.segments[at];
                if !self.sacked(&segment) && self.is_lost(segment.1) {
                    self.segments[at].2 = true;
                }
            }
        }

        fn pipe(&self) -> u64 {
            let unsacked = self.segments.iter().filter(|segment| !self.sacked(segment));
            unsacked
                .map(|&(start, end, lost, again)| (end - start) * (u64::from(!lost) + u64::from(again)))
                .sum()
        }
    }

    proptest! {
        /// The incremental sums and cursors agree with the definition after every step.
        #[test]
        fn agrees_with_the_rfcs_definition(steps in proptest::collection::vec(step(), 1..120)) {
            let (mut board, mut meter) = (Scoreboard::default(), DeliveryMeter::new());
            let mut model = Model { una: ORIGIN + 1, ..Model::default() };
            let mut nxt = ORIGIN + 1;
            for step in steps {
                let mut news = Delivered::default();
                match step {
                    Step::Send(len) => {
                        board.push(nxt, len, false, Instant::ZERO, meter.snapshot(Instant::ZERO, false));
                        model.segments.push((nxt, nxt + u64::from(len), false, false));
                        nxt += u64::from(len);
                    }
                    Step::Sack(start, len) => {
                        // Whole segments only, as receivers do: a part of one would make the run's edge ambiguous.
                        let start = model.una + start;
                        let inside = model.segments.iter().filter(|s| s.0 >= start && s.1 <= start + len);
                        let bounds = inside.map(|s| (s.0, s.1)).collect::<Vec<_>>();
                        let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else { continue };
                        // The head is never selectively acknowledged alone.
                        if first.0 == model.una { continue; }
                        let block = SackBlock { start: SPACE.number(first.0), end: SPACE.number(last.1) };
                        board.take_blocks(&[block], SPACE, (model.una, nxt), &mut news);
                        for byte in first.0..last.1 {
                            if !model.has.contains(&byte) { model.has.push(byte); }
                        }
                        board.mark_losses(3, MSS);
                        model.mark();
                    }
                    Step::Ack(bytes) => {
                        let una = (model.una + bytes).min(nxt);
                        board.acknowledge(una, &mut news);
                        prop_assert_eq!(news.acked, una - model.una);
                        model.una = una;
                        model.has.retain(|&byte| byte >= una);
                        model.segments.retain(|segment| segment.1 > una);
                        if let Some(head) = model.segments.first_mut() { head.0 = head.0.max(una); }
                    }
                    Step::ResendNext => {
                        let first = model.segments.iter().position(|s| s.2 && !s.3 && !model.sacked(s));
                        let index = board.next_lost();
                        prop_assert_eq!(index.map(|index| board.record(index).start), first.map(|at| model.segments[at].0));
                        if let (Some(index), Some(at)) = (index, first) {
                            board.on_resent(index, Instant::ZERO, meter.snapshot(Instant::ZERO, false), true);
                            model.segments[at].3 = true;
                        }
                    }
                    Step::Timeout => {
                        board.mark_all_lost();
                        let sacked: Vec<bool> = model.segments.iter().map(|s| model.sacked(s)).collect();
                        let reneged = sacked.first() == Some(&true);
                        if reneged { model.has.clear(); }
                        for (segment, sacked) in model.segments.iter_mut().zip(sacked) {
                            segment.2 |= reneged || !sacked;
                            segment.3 = false;
                        }
                    }
                }
                prop_assert_eq!(board.pipe(), model.pipe());
                prop_assert_eq!(board.is_empty(), model.segments.is_empty());
                let last = model.segments.iter().rfind(|s| !model.sacked(s)).map(|s| s.0);
                prop_assert_eq!(board.last_unsacked().map(|index| board.record(index).start), last);
            }
        }
    }
}
