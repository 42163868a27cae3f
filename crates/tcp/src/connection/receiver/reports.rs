//! What an acknowledgement says beyond its number: selective acknowledgements (RFC 2018) and reports of data that
//! came twice (RFC 2883).
//!
//! Deviations: of several duplicates that one acknowledgement answers, the last is reported.

use base::wire::tcp::{MAX_SACK_BLOCKS, SackBlock, SackBlocks};

use crate::buffer::ranges::Span;
use crate::buffer::reassembly::Reassembly;
use crate::sequence::SeqSpace;

/// What is to be reported; it takes memory only while there is something.
#[derive(Debug, Default)]
pub(super) struct Reports(Option<Box<Pending>>);

#[derive(Debug)]
struct Pending {
    /// Latest-changed runs beyond the in-order edge, latest first (RFC 2018, 4).
    recent: [Span; MAX_SACK_BLOCKS],
    recent_len: u8,
    /// Data that came twice and were not reported yet.
    duplicate: Option<Span>,
}

impl Default for Pending {
    fn default() -> Self {
        Self { recent: [Span { start: 0, end: 0 }; MAX_SACK_BLOCKS], recent_len: 0, duplicate: None }
    }
}

impl Pending {
    fn recent(&self) -> &[Span] {
        &self.recent[..usize::from(self.recent_len)]
    }
}

impl Reports {
    /// The run `span` beyond the in-order edge has changed.
    pub(super) fn note_run(&mut self, span: Span) {
        let pending = self.0.get_or_insert_default();
        let mut kept = [span; MAX_SACK_BLOCKS];
        let mut len = 1;
        for &old in pending.recent() {
            if (old.end < span.start || old.start > span.end) && len < MAX_SACK_BLOCKS {
                kept[len] = old;
                len += 1;
            }
        }
        (pending.recent, pending.recent_len) = (kept, len as u8);
    }

    /// `span` came twice.
    pub(super) fn note_duplicate(&mut self, span: Span) {
        self.0.get_or_insert_default().duplicate = Some(span);
    }

    /// Everything below `next` is received in order.
    pub(super) fn forget_runs_below(&mut self, next: u64) {
        let Some(pending) = &mut self.0 else { return };
        let mut len = 0;
        for at in 0..usize::from(pending.recent_len) {
            if pending.recent[at].start > next {
                pending.recent[len] = pending.recent[at];
                len += 1;
            }
        }
        pending.recent_len = len as u8;
        self.drop_if_empty();
    }

    fn drop_if_empty(&mut self) {
        if self.0.as_ref().is_some_and(|pending| pending.recent_len == 0 && pending.duplicate.is_none()) {
            self.0 = None;
        }
    }

    /// Whether there is nothing to say of `reassembly` but its in-order edge.
    pub(super) fn is_empty(&self, reassembly: &Reassembly) -> bool {
        self.0.is_none() && reassembly.waiting().is_empty()
    }

    /// At most `most` blocks for an acknowledgement that is sent now: what came twice (RFC 2883, 4) and, if it lies
    /// beyond the in-order edge, the run around it; then the latest-changed runs, and then others while there is
    /// room (RFC 2018, 4).
    pub(super) fn blocks(&mut self, reassembly: &Reassembly, space: SeqSpace, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if most == 0 {
            return blocks;
        }
        let runs = reassembly.waiting();
        let duplicate = self.0.as_mut().and_then(|pending| pending.duplicate.take());
        let around = duplicate.and_then(|twice| runs.around(twice));
        let recent = self.0.as_ref().map_or(&[][..], |pending| pending.recent());
        let others = runs.iter().filter(|run| !recent.contains(run));
        let rest = recent.iter().copied().chain(others).filter(|&run| Some(run) != around);
        for span in duplicate.into_iter().chain(around).chain(rest).take(most) {
            blocks.push(SackBlock { start: space.number(span.start), end: space.number(span.end) });
        }
        self.drop_if_empty();
        blocks
    }
}
