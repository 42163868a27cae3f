//! Was fast recovery needed? Timestamps tell (the Eifel detection, RFC 3522), and reports that every segment sent again came
//! twice (RFC 3708); as in Linux (`tcp_try_undo_recovery`, `tcp_try_undo_partial`, `tcp_try_undo_dsack`).
//!
//! The reports are asked about a time-out too, where F-RTO and the timestamps did not tell.
//!
//! Deviations:
//! - RFC 3522 decides by the first acceptable acknowledgement; where that was of an original, but copies of other
//!   segments are still under way, the next one is asked, as in Linux: those may have been lost;
//! - step 5 of RFC 3522 is for time-outs, and is left out but for its first part;
//! - RFC 3708 (2) asks for one report of each copy; here a segment that was sent again twice ends the doubt: a loss.

use std::collections::BTreeSet;

use super::Arrival;
use super::scoreboard::Scoreboard;
use super::spurious::Verdict;

/// What can be evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Timestamps.
    pub(crate) timestamps: bool,
    /// Reports of data that came twice.
    pub(crate) reports: bool,
}

/// What is to be found out about a recovery, during it and after its end.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    evidence: Evidence,
    /// `RetransmitTS` of RFC 3522 (3.2), once the first copy has left.
    retransmit_ts: Option<u32>,
    /// The ends of the segments that were sent again and of which no copy is reported.
    unreported: BTreeSet<u64>,
}

impl Doubt {
    /// None if there is no evidence to come.
    pub(super) fn new(evidence: Evidence) -> Option<Box<Self>> {
        let some = evidence != Evidence::default();
        some.then(|| Box::new(Self { evidence, retransmit_ts: None, unreported: BTreeSet::new() }))
    }

    /// The segment before the offset `end` was sent again with this timestamp; whether the doubt remains.
    pub(super) fn on_resent(&mut self, end: u64, timestamp: u32) -> bool {
        self.retransmit_ts.get_or_insert(timestamp);
        self.unreported.insert(end)
    }

    /// What an acknowledgement says, which the scoreboard has taken in.
    pub(super) fn on_ack(&mut self, board: &Scoreboard, arrival: &Arrival<'_>) -> Verdict {
        if self.evidence.reports
            && arrival.news.dsack.is_some_and(|end| self.unreported.remove(&end))
            && self.unreported.is_empty()
        {
            return Verdict::Spurious;
        }
        if self.evidence.timestamps
            && arrival.news.acked > 0
            && let (Some(sent), Some(echo)) = (self.retransmit_ts, arrival.news.echo)
        {
            let original = (echo.wrapping_sub(sent) as i32) < 0 && arrival.news.dsack.is_none();
            if original && !board.has_copies() {
                return Verdict::Spurious;
            }
            self.evidence.timestamps = original;
        }
        if self.evidence == Evidence::default() { Verdict::Needed } else { Verdict::Open }
    }
}
