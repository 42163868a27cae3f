//! Fine-grained expiry: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet",
//! IEEE JSAC 13(8), 1995, section 3.1. An acknowledgement that raises suspicion is reason to look at the clock: if
//! the first outstanding segment is older than a time-out without coarse ticks and floors, it goes out at once.
//!
//! Deviations:
//! - of the duplicates the first alone is such a reason; three are a loss anyway. With selective acknowledgements that
//!   is a duplicate of RFC 6675 (2), which may advance SND.UNA besides;
//! - a segment that was sent before the controller last heard of a loss is sent again without telling it, which is the
//!   paper's rule for its own controller and keeps the others from responding twice.

use base::{Duration, Instant};

use super::scoreboard::Scoreboard;
use super::{Arrival, Change};

/// When to look, and what the controller knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FineGrained {
    /// New acknowledgements after a retransmission that are still to be looked at.
    acks: u8,
    /// When the controller was told of congestion last.
    responded_at: Instant,
}

/// What a look at the clock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// The first segment is young, or will be sent again anyway.
    Nothing,
    /// It is overdue, and the controller has responded since it was sent.
    Known,
    /// It is overdue, and the controller does not know.
    News,
}

impl FineGrained {
    /// A segment was sent again.
    pub(super) const fn on_resent(&mut self) {
        self.acks = ACKS_AFTER_RETRANSMISSION;
    }

    /// The controller is told of congestion.
    pub(super) const fn on_response(&mut self, now: Instant) {
        self.responded_at = now;
    }

    /// An acknowledgement arrived and the scheme has made of it what it does; `first_duplicate` if it raised
    /// the count of duplicates to one.
    pub(super) fn look(
        &mut self,
        board: &Scoreboard,
        arrival: &Arrival<'_>,
        change: Change,
        first_duplicate: bool,
    ) -> Expiry {
        if matches!(change, Change::Entered { .. } | Change::Again { .. } | Change::Repaired { .. }) {
            self.responded_at = arrival.now;
        }
        let looks = first_duplicate || (arrival.news.acked > 0 && self.acks > 0);
        if arrival.news.acked > 0 {
            self.acks = self.acks.saturating_sub(1);
        }
        let Some(head) = board.first().filter(|_| looks && arrival.srtt > Duration::ZERO) else {
            return Expiry::Nothing;
        };
        let timeout = arrival.srtt + arrival.rttvar * 4;
        let overdue = arrival.now.saturating_since(head.sent_at) > timeout;
        if !overdue || board.is_head_sacked() || board.is_due_again(board.head()) {
            Expiry::Nothing
        } else if head.sent_at < self.responded_at {
            Expiry::Known
        } else {
            Expiry::News
        }
    }
}

/// Brakmo and Peterson (3.1).
const ACKS_AFTER_RETRANSMISSION: u8 = 2;
