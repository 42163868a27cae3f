//! What is deemed lost: the marks that the schemes set and take back.

use super::{LOST, RESENT, Record, SACKED, Scoreboard};

impl Scoreboard {
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
        self.lost_until = self.mark_lost_between(self.lost_until.max(self.base), edge);
    }

    /// Deems lost the records from `index` on that start below `end` and that the peer is not known to have. Returns
    /// the index of the first record at or beyond `end`.
    fn mark_lost_between(&mut self, mut index: u64, end: u64) -> u64 {
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
        index
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

    /// Deems lost the first record and those, unknown to be with the peer, that `expired` names; if the
    /// peer has reneged, everything, and what it claimed is forgotten.
    pub(crate) fn mark_expired(&mut self, mut expired: impl FnMut(&Record) -> bool) {
        let reneged = self.is_head_sacked();
        if reneged {
            self.forget_claims();
        }
        let mut whole = true;
        self.lost_until = self.base;
        for (at, record) in self.records.iter_mut().enumerate() {
            if record.has(SACKED) {
                // It stays so.
            } else if at == 0 || reneged || expired(record) {
                let len = record.len;
                self.lost += if record.has(LOST) { 0 } else { len };
                self.resent -= if record.has(RESENT) { len } else { 0 };
                record.marks = record.marks & !RESENT | LOST;
                self.losses = self.losses.wrapping_add(1);
            } else {
                whole &= record.has(LOST | RESENT);
            }
            self.lost_until += u64::from(whole);
        }
        self.rewind();
    }

    /// Deems lost what starts below `end` and the peer is not known to have; copies under way stay so.
    pub(crate) fn mark_rest_lost(&mut self, end: u64) {
        let index = self.mark_lost_between(self.base, end);
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
}
