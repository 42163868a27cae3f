//! The receiving half: reassembly, the advertised window, and when to acknowledge.

mod autotuning;
mod coding;
pub(crate) mod delaying;
mod reports;

use base::wire::tcp::{SackBlock, SackBlocks};
use base::{Instant, SeqNum};

use super::boxed;
use autotuning::Autotuning;
use delaying::{MOST_QUICK_ACKS, Policy, QuickAcks};
use reports::Reports;

use crate::buffer::ranges::Span;
use crate::buffer::reassembly::{Placed, Reassembly};
use crate::config::TcpConfig;
use crate::fec::Incoming;
use crate::sequence::{ORIGIN, SeqSpace};

/// The receive sequence space of RFC 9293 (3.3.1) and what belongs to it.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) space: SeqSpace,
    pub(super) reassembly: Reassembly,
    /// What lets the buffer and the window grow, if anything does.
    autotuning: Option<Box<Autotuning>>,
    /// Rcv.Wind.Shift.
    pub(super) window_shift: u8,
    /// Nothing beyond this is acknowledged.
    ceiling: u64,
    /// The right edge that the peer knows: it never moves left but by the rounding of the window scale.
    right_edge: u64,
    /// The MSS that was announced.
    pub(super) mss: u16,
    /// The peer's FIN came in order.
    pub(super) finished: bool,
    /// The offset of the peer's FIN; the largest before it came.
    fin_at: u64,
    /// TS.Recent (RFC 7323, 4.3) and when it was taken.
    pub(super) ts_recent: u32,
    pub(super) ts_recent_at: Instant,
    /// Last.ACK.sent (RFC 7323, 4.3).
    last_ack: u64,
    /// Acknowledgements due for segments beyond or below the in-order edge, each to be sent alone: the peer counts them.
    pub(super) duplicates_due: u16,
    /// An acknowledgement is due at once.
    pub(super) ack_now: bool,
    /// Segments in order that are not acknowledged.
    pub(super) unacked_segments: u8,
    quick_acks: QuickAcks,
    pub(super) policy: Policy,
    /// When an acknowledgement has been delayed for long enough; [`Instant::MAX`] if none is.
    pub(super) ack_at: Instant,
    reports: Reports,
    /// The peer's erasure code, if it has one.
    pub(super) repairs: Option<Box<Incoming>>,
}

/// What a segment's data and FIN did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intake {
    pub(super) placed: Option<Placed>,
    pub(super) peer_finished: bool,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig, mss: u16) -> Self {
        let limit = config.window.receive_buffer.0;
        let window_shift = if config.window.scaling { shift_for(limit) } else { 0 };
        let autotuning = config.window.autotuning.then(|| Box::new(Autotuning::new(limit, mss)));
        let buffer = autotuning.as_ref().map_or(limit, |it| it.window);
        Self {
            space: SeqSpace::starting_at(SeqNum(0)),
            reassembly: Reassembly::new(ORIGIN, buffer as usize),
            autotuning,
            window_shift,
            ceiling: u64::MAX,
            right_edge: ORIGIN,
            mss,
            finished: false,
            fin_at: u64::MAX,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_ack: ORIGIN,
            duplicates_due: 0,
            ack_now: false,
            unacked_segments: 0,
            quick_acks: QuickAcks::new(),
            policy: Policy::new(&config.acknowledgements),
            ack_at: Instant::MAX,
            reports: Reports::default(),
            repairs: None,
        }
    }

    /// The peer's SYN came. The window that a SYN of ours told holds from here on, up to `most` bytes: data may come right behind the
    /// answer to it, before this side has acknowledged anything.
    pub(super) fn on_syn(&mut self, irs: SeqNum, most: u64) {
        let told = (self.right_edge - ORIGIN).min(most);
        self.space = SeqSpace::starting_at(irs);
        self.reassembly = Reassembly::new(ORIGIN + 1, self.reassembly.limit());
        self.right_edge = ORIGIN + 1 + told;
        self.last_ack = ORIGIN + 1;
    }

    /// Bytes on the heap: what waits to be read or for a gap to be filled, and its parts.
    pub(super) fn memory(&self) -> usize {
        self.reassembly.memory()
            + boxed(&self.autotuning)
            + self.repairs.as_ref().map_or(0, |repairs| repairs.memory())
    }

    /// The host has so many bytes of memory left for it.
    pub(super) fn set_allowance(&mut self, bytes: usize) {
        self.reassembly.set_allowance(bytes);
        if let Some(repairs) = &mut self.repairs {
            repairs.set_allowance(bytes / 4);
        }
    }

    /// When an acknowledgement, or what was withheld for a repair, is to go out; [`Instant::MAX`] for never.
    pub(super) fn deadline(&self) -> Instant {
        self.ack_at.min(self.repair_deadline())
    }

    /// RCV.NXT.
    pub(super) const fn nxt(&self) -> u64 {
        self.reassembly.next() + self.finished as u64
    }

    /// What is acknowledged: RCV.NXT, unless the owner withholds some of it.
    pub(super) const fn acknowledged(&self) -> u64 {
        let nxt = self.nxt();
        if nxt < self.ceiling { nxt } else { self.ceiling }
    }

    /// Whether more has come in order than may be acknowledged.
    pub(super) const fn withholds(&self) -> bool {
        self.ceiling < self.nxt()
    }

    /// Everything below this may be acknowledged.
    pub(super) fn set_ceiling(&mut self, ceiling: u64) {
        let before = self.acknowledged();
        self.ceiling = if self.ceiling == u64::MAX { ceiling } else { self.ceiling.max(ceiling) };
        self.ack_now |= self.acknowledged() > before;
    }

    /// Takes data before any window was told.
    pub(super) fn open_early(&mut self) {
        self.right_edge = self.offered_edge();
    }

    /// RCV.WND as the peer knows it.
    pub(super) const fn window(&self) -> u64 {
        self.right_edge.saturating_sub(self.nxt())
    }

    /// Whether a segment may be processed (RFC 9293, 3.10.7.4, first). An empty segment at the right edge is
    /// acceptable: a peer that has filled the window acknowledges from there.
    pub(super) const fn accepts(&self, start: u64, len: u64) -> bool {
        let (nxt, edge) = (self.nxt(), self.nxt() + self.window());
        if len == 0 || nxt == edge {
            start >= nxt && start <= edge
        } else {
            start < edge && start + len > nxt
        }
    }

    /// Takes an acceptable segment's data and FIN.
    pub(super) fn take(&mut self, start: u64, payload: &[u8], fin: bool) -> Intake {
        let edge = self.nxt() + self.window();
        let whole_end = start + payload.len() as u64;
        if fin && !self.finished && whole_end <= edge {
            self.fin_at = whole_end;
        }
        // Beyond the window, and beyond a FIN, nothing counts.
        let end = whole_end.min(edge).min(self.fin_at);
        let mut placed = None;
        if !payload.is_empty() {
            self.note_duplicate(start, whole_end);
        }
        if !payload.is_empty() && !self.finished {
            let kept = end.saturating_sub(start) as usize;
            let result = if kept == 0 {
                Placed::Duplicate
            } else {
                self.reassembly.insert(start, &payload[..kept.min(payload.len())], edge)
            };
            self.note_placement(result, payload.len());
            placed = Some(result);
        } else if !payload.is_empty() || fin {
            self.duplicates_due = self.duplicates_due.saturating_add(u16::from(!fin || start != self.nxt()));
        }
        let peer_finished = !self.finished && self.fin_at == self.reassembly.next();
        if peer_finished {
            self.finished = true;
            self.right_edge = self.right_edge.max(self.nxt());
            self.ack_now |= !self.withholds();
        }
        Intake { placed, peer_finished }
    }

    /// When to acknowledge: RFC 5681 (4.2).
    fn note_placement(&mut self, placed: Placed, len: usize) {
        match placed {
            Placed::InOrder { gap_filled } => {
                // A super-segment counts as the segments that it was made of.
                let segments = if len >= 2 * usize::from(self.mss) { 2 } else { 1 };
                let segments = if self.withholds() { 0 } else { segments };
                self.unacked_segments = self.unacked_segments.saturating_add(segments);
                self.ack_now |= gap_filled || self.unacked_segments >= 2;
                if gap_filled {
                    self.reports.forget_runs_below(self.reassembly.next());
                }
            }
            Placed::OutOfOrder(span) => {
                self.reports.note_run(span);
                self.duplicates_due = self.duplicates_due.saturating_add(1);
            }
            Placed::Duplicate | Placed::Dropped => {
                self.duplicates_due = self.duplicates_due.saturating_add(1);
            }
        }
    }

    /// `start..end` has come; what of it had come before is to be reported.
    pub(super) fn note_duplicate(&mut self, start: u64, end: u64) {
        // Beyond what is acknowledged a report would pass for a selective acknowledgement (RFC 2883, 4).
        if self.policy.dsack
            && !self.withholds()
            && let Some(span) = self.reassembly.held(Span { start, end })
        {
            self.reports.note_duplicate(span);
            self.ack_now = true;
        }
    }

    /// Whether there is nothing to acknowledge but the in-order edge.
    pub(super) fn has_no_blocks(&self) -> bool {
        self.reports.is_empty(&self.reassembly)
    }

    /// SACK blocks for an acknowledgement that is sent now.
    pub(super) fn sack_blocks(&mut self, most: usize) -> SackBlocks {
        let mut blocks = self.reports.blocks(&self.reassembly, self.space, most);
        // What came and is not acknowledged yet is not to look like a part of the gap; a block beside the acknowledgement
        // would be none.
        let held = Span { start: self.acknowledged() + u64::from(self.mss), end: self.nxt() };
        if held.start < held.end && !blocks.is_empty() && blocks.as_slice().len() < most {
            blocks.push(SackBlock { start: self.space.number(held.start), end: self.space.number(held.end) });
        }
        blocks
    }

    /// The largest window that this side can advertise.
    pub(super) fn widest(&self) -> u64 {
        let limit = self.autotuning.as_ref().map_or(self.reassembly.limit() as u64, |it| it.ceiling);
        limit.min(u64::from(u16::MAX) << self.window_shift)
    }

    /// Segments in half of the window that was last advertised, 2 to 16: what Linux acknowledges at once.
    pub(super) fn segments_of_half_the_window(&self) -> u8 {
        match (self.right_edge - self.last_ack) / (2 * u64::from(self.mss)) {
            0 => 2,
            segments => segments.min(u64::from(MOST_QUICK_ACKS)) as u8,
        }
    }

    /// Whether the right edge may move: RFC 9293 (3.8.6.2.2) waits for half the buffer or a full segment.
    fn offered_edge(&self) -> u64 {
        let widest = u64::from(u16::MAX) << self.window_shift;
        let most = self.autotuning.as_ref().map_or(widest, |it| it.window.min(widest));
        let edge = (self.nxt() + self.reassembly.room() as u64).min(self.acknowledged() + most);
        let step = (self.reassembly.limit() as u64 / 2).min(u64::from(self.mss));
        if edge >= self.right_edge + step { edge } else { self.right_edge }
    }

    /// The application has read: a window that was nearly used up and has doubled is told at once.
    pub(super) fn on_read(&mut self) {
        let (open, edge) = (self.window(), self.offered_edge());
        if !self.finished && edge > self.right_edge && edge - self.nxt() >= 2 * open {
            self.ack_now = true;
        }
    }

    /// The window field of a segment that is sent now; it and the acknowledgement are then what the peer knows.
    pub(super) fn window_field(&mut self, shift: u8) -> u16 {
        let acknowledged = self.acknowledged();
        let edge = self.offered_edge();
        let unit = 1_u64 << shift;
        let want = edge.saturating_sub(acknowledged);
        // Up, so as not to take back what was offered; but no further than one unit past the buffer.
        let up = want.div_ceil(unit);
        let most = (self.nxt() + self.reassembly.room() as u64).saturating_sub(acknowledged) + unit;
        let field = if up * unit <= most { up } else { want >> shift }.min(u64::from(u16::MAX));
        self.right_edge = self.right_edge.max(acknowledged + (field << shift));
        self.last_ack = acknowledged;
        self.duplicates_due = self.duplicates_due.saturating_sub(1);
        self.ack_now = false;
        self.unacked_segments = 0;
        field as u16
    }

    /// Whether an acknowledgement is due at once.
    pub(super) const fn ack_due(&self) -> bool {
        self.ack_now || self.duplicates_due > 0
    }

    /// Whether anything that came is not acknowledged.
    pub(super) const fn owes_ack(&self) -> bool {
        self.ack_due() || self.unacked_segments > 0
    }

    /// PAWS, R1: whether a segment's timestamp is too old (RFC 7323, 5.3 and 5.5).
    pub(super) fn is_old_timestamp(&self, now: Instant, value: u32) -> bool {
        (value.wrapping_sub(self.ts_recent) as i32) < 0
            && now.saturating_since(self.ts_recent_at) < TS_RECENT_LIFETIME
    }

    /// RFC 7323 (4.3, 2): the timestamp to echo is that of the segment at the edge of what was acknowledged.
    pub(super) fn note_timestamp(&mut self, now: Instant, value: u32, start: u64) {
        if start <= self.last_ack && !self.is_old_timestamp(now, value) {
            (self.ts_recent, self.ts_recent_at) = (value, now);
        }
    }
}

/// RFC 7323 (5.5): after 24 days an idle connection's timestamp means nothing.
const TS_RECENT_LIFETIME: base::Duration = base::Duration::from_secs(24 * 24 * 3600);
/// RFC 7323 (2.3).
pub(super) const MAX_SHIFT: u8 = 14;

/// The least shift that shows the whole buffer in 16 bits.
fn shift_for(limit: u64) -> u8 {
    (0..MAX_SHIFT).find(|shift| limit >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_shows_the_whole_buffer() {
        assert_eq!(shift_for(65_535), 0);
        assert_eq!(shift_for(65_536), 1);
        assert_eq!(shift_for(256 * 1024), 3);
        assert_eq!(shift_for(1 << 30), 14);
    }
}
