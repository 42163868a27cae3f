//! NewReno: RFC 6582, with both ways of step 3 to treat the timer and the window, and the acknowledgement
//! heuristic of section 4.1.
//!
//! Deviations: the timestamp heuristic of section 4.2 is left out.

use base::Instant;

use super::scoreboard::Scoreboard;
use super::{Arrival, Change, DUP_THRESH, Episode, Lost, Phase, Scheme};
use crate::config::{ExitWindow, PartialAcks, RecoveryConfig};

/// Recovery from cumulative acknowledgements alone.
#[derive(Debug)]
pub(crate) struct NewReno {
    /// What duplicates and partial acknowledgements add to the window during fast recovery.
    inflation: i64,
    partial_acks: u32,
    /// `highest_ack` - `prev_highest_ack` of section 4.1.
    last_advance: u32,
    timer: PartialAcks,
    exit: ExitWindow,
    heuristic: bool,
}

impl NewReno {
    pub(super) const fn new(config: &RecoveryConfig) -> Self {
        Self {
            inflation: 0,
            partial_acks: 0,
            last_advance: 0,
            timer: config.partial_acks,
            exit: config.exit_window,
            heuristic: config.ack_heuristic,
        }
    }

    /// Step 2: the acknowledgement covers more than `recover`; or, after a time-out, so little was acknowledged before
    /// the duplicates that these are no echo of segments sent twice (4.1).
    fn means_loss(&self, episode: &Episode, arrival: &Arrival<'_>) -> bool {
        let covers = episode.phase == Phase::Open && arrival.una > episode.recover;
        covers
            || (self.heuristic
                && arrival.cwnd > arrival.mss
                && u64::from(self.last_advance) <= ACKED_AT_MOST * arrival.mss)
    }

    fn on_advance(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        let full = arrival.una >= episode.recover;
        match episode.phase {
            Phase::FastRecovery if full => {
                episode.end();
                self.inflation = 0;
                let flight_size = arrival.nxt - arrival.una;
                let limit = match self.exit {
                    ExitWindow::FlightSize => flight_size.max(arrival.mss) + arrival.mss,
                    ExitWindow::Ssthresh => u64::MAX,
                };
                Change::Left { limit }
            }
            Phase::FastRecovery => {
                // A partial acknowledgement: the next hole, and the window deflates by what was acknowledged.
                self.partial_acks += 1;
                board.mark_head_lost();
                episode.forced = true;
                self.inflation -= arrival.news.acked as i64;
                if arrival.news.acked >= arrival.mss {
                    self.inflation += arrival.mss as i64;
                }
                Change::None
            }
            Phase::Timeout if full => {
                episode.end();
                Change::None
            }
            Phase::Timeout | Phase::Open => Change::None,
        }
    }
}

impl Scheme for NewReno {
    /// RFC 6582 (3.2): the initial send sequence number, one below the first data byte.
    fn first_recover(&self, una: u64) -> u64 {
        una - 1
    }

    fn on_ack(
        &mut self,
        episode: &mut Episode,
        board: &mut Scoreboard,
        arrival: &Arrival<'_>,
        _holds: bool,
    ) -> Change {
        if arrival.news.acked > 0 {
            episode.dup_acks = 0;
            self.last_advance = u32::try_from(arrival.news.acked).unwrap_or(u32::MAX);
            return self.on_advance(episode, board, arrival);
        }
        if !arrival.news.duplicate {
            return Change::None;
        }
        episode.count_duplicate(arrival.nxt);
        if episode.phase == Phase::FastRecovery {
            self.inflation += arrival.mss as i64;
        } else if episode.dup_acks == DUP_THRESH && self.means_loss(episode, arrival) {
            return self.enter(episode, board, arrival);
        }
        Change::None
    }

    /// Steps 2 and 3 of RFC 5681 (3.2).
    fn enter(&mut self, episode: &mut Episode, board: &mut Scoreboard, arrival: &Arrival<'_>) -> Change {
        let flight_size = episode.flight_size(board, arrival);
        episode.begin(Phase::FastRecovery, arrival.nxt);
        self.inflation = i64::from(episode.dup_acks.min(DUP_THRESH)) * arrival.mss as i64;
        self.partial_acks = 0;
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

    /// Step 3: "impatient" lets the first partial acknowledgement alone restart the timer, "slow but steady" each.
    fn restarts_timer(&self, episode: &Episode) -> bool {
        episode.phase != Phase::FastRecovery
            || self.partial_acks <= 1
            || self.timer == PartialAcks::SlowButSteady
    }
}

/// Segments; RFC 6582 (4.1).
const ACKED_AT_MOST: u64 = 4;
