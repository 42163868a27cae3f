//! Recovery with selective acknowledgements: RFC 6675.
//!
//! Deviations:
//! - the segment that three duplicates expose counts as lost in `pipe`, even where `IsLost` is still false for it;
//! - after a time-out, everything that is not selectively acknowledged counts as lost and is sent again in order
//!   (5.1 leaves the use of the scoreboard open); if the first segment is selectively acknowledged then, the peer
//!   has reneged and the scoreboard is cleared (RFC 2018, 8);
//! - the rescue of rule 4 is left out while the segment's copy from rule 1 or 3 is under way.

use base::Instant;

use super::scoreboard::{Record, Scoreboard};
use super::{Arrival, Change, DUP_THRESH, Episode, Lost, Next, Phase, Scheme};

/// Recovery from the scoreboard.
#[derive(Debug, Default)]
pub(crate) struct Sack {
    /// `RescueRxt`, as the offset after it: a rescue retransmission needs an acknowledgement of more.
    rescue_rxt: u64,
}

impl Sack {
    /// What the marks on the scoreboard mean.
    pub(super) fn judge(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
    ) -> Change {
        let mut change = Change::None;
        if arrival.news.acked > 0 {
            episode.dup_acks = 0;
            if episode.phase != Phase::Open && arrival.una >= episode.recover {
                if episode.phase == Phase::FastRecovery {
                    change = Change::Left { limit: u64::MAX };
                }
                episode.end();
            }
        }
        // Section 2: a duplicate is what carries new selective acknowledgements, whatever else it does.
        if arrival.news.sacked == 0 || episode.phase != Phase::Open {
            return change;
        }
        episode.count_duplicate(arrival.nxt);
        // Section 5, steps 1 and 2.
        if episode.dup_acks >= DUP_THRESH || board.is_due_again(board.head()) {
            return self.enter(episode, board, arrival);
        }
        change
    }
}

impl Scheme for Sack {
    fn on_ack(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        _holds: bool,
    ) -> Change {
        if arrival.news.sacked > 0 {
            board.mark_losses(DUP_THRESH, arrival.mss);
        }
        self.judge(episode, board, arrival)
    }

    /// Section 5, step 4.
    fn enter(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        let flight_size = episode.flight_size(board, arrival);
        episode.begin(Phase::FastRecovery, arrival.nxt);
        // Step 4.3: to the end of the first retransmission, lest a rescue be premature.
        self.rescue_rxt = board.first().map_or(arrival.nxt, Record::end);
        let lost = Lost::head(board);
        board.mark_head_lost();
        Change::Entered { flight_size, lost }
    }

    /// Rule 4 allows one rescue a recovery: nothing beyond `RecoveryPoint` is acknowledged in it.
    fn on_sent(&mut self, episode: &Episode, sent: Next, _now: Instant) {
        if matches!(sent, Next::Rescue(_)) {
            self.rescue_rxt = episode.recover;
        }
    }

    /// `NextSeg` (section 4).
    fn next(&mut self, episode: &Episode, board: &mut Scoreboard, new_data: bool) -> Next {
        if let Some(index) = board.next_lost() {
            return Next::Retransmit(index); // Rule 1.
        }
        if new_data {
            return Next::New; // Rule 2.
        }
        if episode.phase != Phase::FastRecovery {
            return Next::Nothing;
        }
        if let Some(index) = board.next_below_highest_sacked() {
            return Next::Retransmit(index); // Rule 3.
        }
        match board.rescue() {
            Some(index) if board.una() > self.rescue_rxt => Next::Rescue(index), // Rule 4.
            _ => Next::Nothing,
        }
    }
}
