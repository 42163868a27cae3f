//! The scoreboard against RFC 6675's definitions.

use super::*;
use crate::connection::sender::delivery::DeliveryMeter;
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
    /// The last goes out as a rescue, which rule 1 must not heed.
    Rescue,
    Timeout,
    HeadLost,
    /// What starts so far beyond SND.UNA at most is overdue.
    Overdue(u64),
    /// So much beyond SND.UNA is lost after all.
    RestLost(u64),
    NothingLost,
    /// Segments have at most so many bytes from here on, and all is deemed lost.
    Cut(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u32..6).prop_map(Step::Send),
        4 => (0_u64..60, 1_u64..12).prop_map(|(start, len)| Step::Sack(start, len)),
        2 => (0_u64..30).prop_map(Step::Ack),
        3 => Just(Step::ResendNext),
        1 => Just(Step::Rescue),
        1 => Just(Step::Timeout),
        1 => Just(Step::HeadLost),
        1 => (0_u64..60).prop_map(Step::Overdue),
        1 => (0_u64..60).prop_map(Step::RestLost),
        1 => Just(Step::NothingLost),
        1 => (1_u32..6).prop_map(Step::Cut),
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

    /// A time-out for the first segment and all that start below `edge`.
    fn lose(&mut self, edge: u64) {
        let sacked: Vec<bool> = self.segments.iter().map(|segment| self.sacked(segment)).collect();
        let reneged = sacked.first() == Some(&true);
        if reneged {
            self.has.clear();
        }
        for (at, (segment, sacked)) in self.segments.iter_mut().zip(sacked).enumerate() {
            if reneged || (!sacked && (at == 0 || segment.0 < edge)) {
                (segment.2, segment.3) = (true, false);
            }
        }
    }

    /// Runs that the peer is not known to have are cut anew.
    fn cut(&mut self, mss: u64) {
        let mut runs: Vec<(u64, u64, bool)> = Vec::new();
        for segment in &self.segments {
            let sacked = self.sacked(segment);
            match runs.last_mut() {
                Some(run) if !run.2 && !sacked => run.1 = segment.1,
                _ => runs.push((segment.0, segment.1, sacked)),
            }
        }
        self.segments.clear();
        for (start, end, sacked) in runs {
            let step = if sacked { end - start } else { mss };
            let starts = (start..end).step_by(step as usize);
            self.segments.extend(starts.map(|at| (at, end.min(at + step), !sacked, false)));
        }
        self.lose(u64::MAX);
    }

    fn pipe(&self) -> u64 {
        let unsacked = self.segments.iter().filter(|segment| !self.sacked(segment));
        unsacked.map(|&(start, end, lost, again)| (end - start) * (u64::from(!lost) + u64::from(again))).sum()
    }
}

/// As many segments of `MSS` bytes; where the next begins.
fn pushed(board: &mut Scoreboard, nxt: u64, segments: u64) -> u64 {
    let snapshot = DeliveryMeter::new().snapshot(Instant::ZERO, false);
    (0..segments).for_each(|at| board.push(nxt + at * MSS, MSS as u32, Flags(0), Instant::ZERO, snapshot));
    nxt + segments * MSS
}

/// RFC 2018 (5): blocks below SND.UNA say nothing any more. There is room for so many: kept, they would shut out all others.
#[test]
fn what_is_acknowledged_leaves_no_blocks() {
    let (mut board, mut nxt) = (Scoreboard::default(), ORIGIN + 1);
    for _ in 0..10 {
        let una = nxt;
        nxt = pushed(&mut board, nxt, 3);
        let block = SackBlock { start: SPACE.number(nxt - MSS), end: SPACE.number(nxt) };
        board.take_blocks(&[block], SPACE, (una, nxt), &mut News::default());
        assert_eq!(board.highest_sacked(), Some(nxt));
        board.acknowledge(nxt, &mut News::default());
        assert_eq!(board.highest_sacked(), None, "after 4096 gaps each loss costs a time-out");
    }
}

/// RFC 4821 (7.6.2): a size that did not pass is cut; what is in flight behind it goes by the same indices. Before there are any below
/// its own it is not.
#[test]
fn cutting_the_head_leaves_the_others_where_they_are() {
    let (mut board, una) = (Scoreboard::default(), ORIGIN + 1);
    pushed(&mut board, una, 6);
    assert!(!board.cut_head(2), "there are no indices for its pieces");
    board.acknowledge(una + 3 * MSS, &mut News::default());
    let behind = [4, 5].map(|index| board.record(index).start);
    assert!(board.cut_head(2));
    assert_eq!([4, 5].map(|index| board.record(index).start), behind, "others are sent again in their place");
    assert_eq!([board.record(2).start, board.record(3).start], [una + 3 * MSS, una + 3 * MSS + 2]);
}

proptest! {
    /// The incremental sums and cursors agree with the definition after every step.
    #[test]
    fn agrees_with_the_rfcs_definition(steps in proptest::collection::vec(step(), 1..120)) {
        let (mut board, mut meter) = (Scoreboard::default(), DeliveryMeter::new());
        let mut model = Model { una: ORIGIN + 1, ..Model::default() };
        let mut nxt = ORIGIN + 1;
        for step in steps {
            let mut news = News::default();
            match step {
                Step::Send(len) => {
                    board.push(nxt, len, Flags(0), Instant::ZERO, meter.snapshot(Instant::ZERO, false));
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
                    let known = model.segments.iter().filter(|s| model.sacked(s));
                    let reported: u64 = known.map(|s| s.1.min(una).saturating_sub(s.0)).sum();
                    board.acknowledge(una, &mut news);
                    prop_assert_eq!(news.acked, una - model.una);
                    prop_assert_eq!(news.bytes, news.acked - reported, "delivered, and not reported before");
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
                        board.on_resent(index, Instant::ZERO, meter.snapshot(Instant::ZERO, false));
                        model.segments[at].3 = true;
                    }
                }
                Step::Rescue => {
                    let last = model.segments.iter().rposition(|s| !model.sacked(s));
                    let index = board.rescue();
                    let expected = last.map(|at| model.segments[at]).filter(|s| !s.3).map(|s| s.0);
                    prop_assert_eq!(index.map(|index| board.record(index).start), expected);
                    if let Some(index) = index {
                        board.on_rescued(index, Instant::ZERO, meter.snapshot(Instant::ZERO, false));
                    }
                }
                Step::Timeout => {
                    board.mark_all_lost();
                    model.lose(u64::MAX);
                }
                Step::Overdue(bytes) => {
                    let edge = model.una + bytes;
                    board.mark_expired(|record| record.start < edge);
                    model.lose(edge);
                }
                Step::HeadLost => {
                    board.mark_head_lost();
                    if let Some(head) = model.segments.first().copied().filter(|head| !model.sacked(head)) {
                        model.segments[0] = (head.0, head.1, true, false);
                    }
                }
                Step::RestLost(bytes) => {
                    let edge = model.una + bytes;
                    board.mark_rest_lost(edge);
                    for at in 0..model.segments.len() {
                        let segment = model.segments[at];
                        model.segments[at].2 |= segment.0 < edge && !model.sacked(&segment);
                    }
                }
                Step::NothingLost => {
                    board.unmark_lost();
                    model.segments.iter_mut().for_each(|segment| segment.2 &= segment.3);
                }
                Step::Cut(mss) => {
                    let past = board.end_index();
                    board.cut(mss);
                    prop_assert!(board.head() >= past, "an index that was given before");
                    prop_assert_eq!(board.pipe(), 0);
                    board.mark_all_lost();
                    model.cut(u64::from(mss));
                }
            }
            prop_assert_eq!(board.pipe(), model.pipe());
            prop_assert_eq!(board.len(), model.segments.len());
            let sacked = model.segments.iter().filter(|s| model.sacked(s));
            prop_assert_eq!(board.sacked(), sacked.clone().map(|s| s.1 - s.0).sum::<u64>());
            prop_assert_eq!(board.sacked_segments() as usize, sacked.count());
            let last = model.segments.iter().rfind(|s| !model.sacked(s)).map(|s| s.0);
            prop_assert_eq!(board.last_unsacked().map(|index| board.record(index).start), last);
        }
    }
}

/// What a window of data took is given back when it is acknowledged; a segment's worth stays.
#[test]
fn an_empty_scoreboard_holds_no_memory() {
    let mut board = Scoreboard::default();
    let mut meter = DeliveryMeter::new();
    for segment in 0..100 {
        let snapshot = meter.snapshot(Instant::ZERO, segment == 0);
        board.push(ORIGIN + segment * MSS, MSS as u32, Flags(0), Instant::ZERO, snapshot);
    }
    board.acknowledge(ORIGIN + 99 * MSS, &mut News::default());
    assert!(board.records.capacity() >= 100);
    board.acknowledge(ORIGIN + 100 * MSS, &mut News::default());
    assert_eq!(board.records.capacity(), 0);
    for segment in 100..103 {
        let snapshot = meter.snapshot(Instant::ZERO, true);
        board.push(ORIGIN + segment * MSS, MSS as u32, Flags(0), Instant::ZERO, snapshot);
        board.acknowledge(ORIGIN + (segment + 1) * MSS, &mut News::default());
        assert_eq!(board.records.capacity(), KEPT_RECORDS);
    }
}

/// Cutting again and again leaves full pieces, however little each cut takes off (RFC 5927, 7: somebody may ask for that).
/// A FIN stays last, and what left at several times gives no sample.
#[test]
fn repeated_cuts_leave_full_pieces() {
    let (mut board, mut meter) = (Scoreboard::default(), DeliveryMeter::new());
    for segment in 0..20 {
        let fin = segment == 19;
        let sent_at = Instant::from_nanos(segment % 10);
        let snapshot = meter.snapshot(sent_at, segment == 0);
        board.push(
            ORIGIN + segment * 1000,
            1000 + u32::from(fin),
            if fin { Flags::FIN } else { Flags(0) },
            sent_at,
            snapshot,
        );
    }
    for mss in (500..1000).rev() {
        board.cut(mss);
        assert_eq!(board.len(), 20_000_usize.div_ceil(mss as usize));
        let fins: Vec<bool> = board.records.iter().map(Record::has_fin).collect();
        assert_eq!(fins.iter().position(|&fin| fin), Some(board.len() - 1));
        assert!(board.records.iter().all(|it| it.was_resent() && it.sent_at == Instant::ZERO));
        assert_eq!((board.lost, board.outstanding, board.resent), (20_001, 20_001, 0));
    }
}

/// A peer that claims every second byte: the claims kept are bounded, whole segments are still taken in, and a block that
/// reaches over all of them counts each segment once.
#[test]
fn claims_are_bounded() {
    let (mut board, mut meter) = (Scoreboard::default(), DeliveryMeter::new());
    const MSS: u64 = 1000;
    let una = ORIGIN + 1;
    for segment in 0..100 {
        let snapshot = meter.snapshot(Instant::ZERO, segment == 0);
        board.push(una + segment * MSS, MSS as u32, Flags(0), Instant::ZERO, snapshot);
    }
    let nxt = una + 100 * MSS;
    let mut take = |start: u64, end: u64| {
        let mut news = News::default();
        let block = SackBlock { start: SPACE.number(una + start), end: SPACE.number(una + end) };
        board.take_blocks(&[block], SPACE, (una, nxt), &mut news);
        (news.sacked, board.sacked_spans.iter().count())
    };
    for byte in 0..6000 {
        assert_eq!(take(MSS + 2 * byte, MSS + 2 * byte + 1).0, 0);
    }
    assert_eq!(take(99 * MSS, 100 * MSS), (0, MOST_SPANS));
    assert_eq!(take(MSS, 100 * MSS), (99 * MSS, 1));
    assert_eq!(board.sacked(), 99 * MSS);
}
