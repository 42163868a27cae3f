//! Where the receiver meets the peer's erasure code: [`crate::fec`] has its blocks.

use base::Instant;
use base::wire::tcp::coding::{Coding, Place, Report};

use super::Receiver;
use crate::buffer::reassembly::Placed;

impl Receiver {
    /// Duplicate acknowledgements that were withheld, or are due for other reasons, are to go out.
    fn free(&mut self, duplicates: u16) {
        self.duplicates_due = self.duplicates_due.saturating_add(duplicates);
    }

    /// A repair at `place` came, whose block starts at the offset in `head`, with its tail and check.
    pub(crate) fn take_repair(&mut self, now: Instant, place: Place, head: (u64, u16, u32), data: &[u8]) {
        let Some(repairs) = &mut self.repairs else { return };
        repairs.statistics.repairs_received += 1;
        if !self.finished {
            let freed = repairs.on_repair(now, place, head, data);
            self.free(freed);
        }
    }

    /// A segment came of which nothing was new: perhaps it was computed before.
    pub(crate) fn note_late_source(&mut self, coding: &Coding) {
        if let (Some(repairs), Coding { place: Some(place), repair: None, .. }) = (&mut self.repairs, coding)
        {
            repairs.on_late_source(*place);
        }
    }

    /// A segment with data came and was placed: its acknowledgement may wait for repairs. Whether others may be computed now.
    pub(crate) fn note_source(
        &mut self,
        now: Instant,
        place: Option<Place>,
        start: u64,
        (payload, placed): (&[u8], Option<Placed>),
    ) -> bool {
        let next = self.reassembly.next();
        let Some(repairs) = &mut self.repairs else { return false };
        match placed {
            Some(Placed::InOrder { gap_filled: true }) => repairs.forget_withheld(),
            Some(Placed::InOrder { .. } | Placed::OutOfOrder(_)) => {}
            _ => return false,
        }
        let Some(place) = place else { return false };
        let freed = repairs.on_source(now, place, start, payload);
        let waits = matches!(placed, Some(Placed::OutOfOrder(_))) && repairs.may_withhold(place, next);
        if waits {
            repairs.withhold(now);
        }
        self.free(freed);
        self.duplicates_due -= u16::from(waits && self.duplicates_due > 0);
        true
    }

    /// Acknowledgements are let go for which nothing can be computed any more.
    pub(crate) fn release_if_hopeless(&mut self) {
        let freed = self.repairs.as_mut().map_or(0, |repairs| repairs.release_if_hopeless());
        self.free(freed);
    }

    /// When the rest of a block is late; [`Instant::MAX`] if nothing waits for it.
    pub(crate) fn repair_deadline(&self) -> Instant {
        self.repairs.as_ref().map_or(Instant::MAX, |repairs| repairs.deadline())
    }

    /// The rest of a block did not come in time.
    pub(crate) fn check_repair_timer(&mut self, now: Instant) {
        if let Some(repairs) = self.repairs.as_mut().filter(|repairs| repairs.deadline() <= now) {
            let freed = repairs.handle_timeout().max(1);
            self.free(freed);
        }
    }

    /// What the sender is to know of its blocks, once there is something.
    pub(crate) fn repair_report(&mut self) -> Option<Report> {
        let next = self.reassembly.next();
        self.repairs.as_mut()?.report(next)
    }

    /// Whether gaps are not to be told yet: the block in which the first one lies may still be repaired.
    pub(crate) fn hides_gaps(&self) -> bool {
        self.repairs.as_ref().is_some_and(|repairs| repairs.withholds())
    }
}
