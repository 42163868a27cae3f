//! Reno: fast retransmit and fast recovery of RFC 5681 (3.2). The first acknowledgement of new data ends fast
//! recovery, so further losses of the window start it again, or wait for a time-out.
//!
//! Deviations: as RFC 5681 has no `recover`, three duplicates count after a time-out too, with what is sent again
//! as `FlightSize`.

use base::Instant;

use super::scoreboard::Scoreboard;
use super::{Arrival, Change, DUP_THRESH, Episode, Lost, Phase, Scheme};

/// Recovery of one loss a window. The episode's `recover` bounds what a time-out sends again.
#[derive(Debug, Default)]
pub(crate) struct Reno {
    /// What duplicates add to the window during fast recovery.
    inflation: i64,
}

impl Reno {
    fn on_advance(&mut self, episode: &mut Episode, arrival: &Arrival<'_>) -> Change {
        let left = episode.phase == Phase::FastRecovery;
        self.inflation = 0;
        episode.forced = false;
        episode.phase = if arrival.una < episode.recover { Phase::Timeout } else { Phase::Open };
        if left { Change::Left { limit: u64::MAX } } else { Change::None }
    }
}

impl Scheme for Reno {
    fn on_ack(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        _holds: bool,
    ) -> Change {
        if arrival.news.acked > 0 {
            episode.dup_acks = 0;
            return self.on_advance(episode, arrival);
        }
        if !arrival.news.duplicate {
            return Change::None;
        }
        episode.count_duplicate(arrival.nxt);
        if episode.phase == Phase::FastRecovery {
            self.inflation += arrival.mss as i64;
        } else if episode.dup_acks == DUP_THRESH {
            return self.enter(episode, board, arrival);
        }
        Change::None
    }

    /// Steps 2 and 3.
    fn enter(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        let flight_size = episode.flight_size(board, arrival);
        episode.phase = Phase::FastRecovery;
        episode.forced = true;
        self.inflation = i64::from(episode.dup_acks.min(DUP_THRESH)) * arrival.mss as i64;
        let lost = Lost::head(board);
        board.mark_head_lost();
        Change::Entered { flight_size, lost }
    }

    fn on_timeout(&mut self, _now: Instant) {
        self.inflation = 0;
    }

    fn inflation(&self) -> i64 {
        self.inflation
    }

    fn is_cumulative(&self) -> bool {
        true
    }
}
