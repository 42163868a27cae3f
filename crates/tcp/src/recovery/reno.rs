//! Reno: fast retransmit and fast recovery of RFC 5681 (3.2). The first acknowledgement of new data ends fast
//! recovery, so further losses of the window start it again, or wait for a time-out.
//!
//! Deviations: as RFC 5681 has no `recover`, three duplicates count after a time-out too, with what is sent again
//! as `FlightSize`.

use super::scoreboard::Scoreboard;
use super::{Arrival, Change, DUP_THRESH, Episode, Lost, Phase};

/// Recovery of one loss a window.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    /// Its `recover` bounds what a time-out sends again.
    pub(super) episode: Episode,
    /// What duplicates add to the window during fast recovery.
    inflation: i64,
}

impl Reno {
    pub(super) fn new(una: u64) -> Self {
        Self { episode: Episode::new(una), inflation: 0 }
    }

    pub(super) fn on_ack(&mut self, board: &mut Scoreboard, arrival: &Arrival) -> Change {
        if arrival.acked > 0 {
            self.episode.dup_acks = 0;
            return self.on_advance(arrival);
        }
        if !arrival.duplicate {
            return Change::None;
        }
        self.episode.count_duplicate(arrival.nxt);
        if self.episode.phase == Phase::FastRecovery {
            self.inflation += arrival.mss as i64;
        } else if self.episode.dup_acks == DUP_THRESH {
            return self.enter(board, arrival);
        }
        Change::None
    }

    /// Steps 2 and 3.
    pub(super) fn enter(&mut self, board: &mut Scoreboard, arrival: &Arrival) -> Change {
        let flight_size = self.episode.flight_size(board, arrival);
        self.episode.phase = Phase::FastRecovery;
        self.episode.forced = true;
        self.inflation = i64::from(self.episode.dup_acks.min(DUP_THRESH)) * arrival.mss as i64;
        let lost = Lost::head(board);
        board.mark_head_lost();
        Change::Entered { flight_size, lost }
    }

    fn on_advance(&mut self, arrival: &Arrival) -> Change {
        let left = self.episode.phase == Phase::FastRecovery;
        self.inflation = 0;
        self.episode.forced = false;
        self.episode.phase = if arrival.una < self.episode.recover { Phase::Timeout } else { Phase::Open };
        if left { Change::Left { limit: u64::MAX } } else { Change::None }
    }

    pub(super) fn on_timeout(&mut self) {
        self.inflation = 0;
    }

    pub(super) const fn inflation(&self) -> i64 {
        self.inflation
    }
}
