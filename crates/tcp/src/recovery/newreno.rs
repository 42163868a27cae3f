//! NewReno: RFC 6582, the "impatient" variant.
//!
//! Deviations:
//! - the window at exit is min(ssthresh, max(FlightSize, SMSS) + SMSS), the first option of step 3;
//! - the heuristics of section 4 for duplicates after a time-out are left out: there, duplicates mean nothing.

use super::scoreboard::Scoreboard;
use super::{Arrival, Change, DUP_THRESH, Episode, Next, Phase};

/// Recovery from cumulative acknowledgements alone.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    pub(super) episode: Episode,
    /// What duplicates and partial acknowledgements add to the controller's window during fast recovery.
    inflation: i64,
    partial_acks: u32,
}

impl NewReno {
    pub(super) fn new(una: u64) -> Self {
        // RFC 6582 (3.2): `recover` starts at the initial send sequence number, one below the first data byte.
        Self { episode: Episode::new(una - 1), inflation: 0, partial_acks: 0 }
    }

    pub(super) fn on_ack(&mut self, board: &mut Scoreboard, arrival: &Arrival) -> Change {
        if arrival.acked > 0 {
            self.episode.dup_acks = 0;
            return self.on_advance(board, arrival);
        }
        if !arrival.duplicate {
            return Change::None;
        }
        self.episode.count_duplicate(arrival.nxt);
        match self.episode.phase {
            Phase::FastRecovery => self.inflation += arrival.mss as i64,
            // Step 2: the acknowledgement must cover more than `recover`.
            Phase::Open if self.episode.dup_acks == DUP_THRESH && arrival.una > self.episode.recover => {
                self.episode.begin(Phase::FastRecovery, arrival.nxt);
                self.inflation = i64::from(DUP_THRESH) * arrival.mss as i64;
                self.partial_acks = 0;
                board.mark_head_lost();
                return Change::Entered;
            }
            Phase::Open | Phase::Timeout => {}
        }
        Change::None
    }

    fn on_advance(&mut self, board: &mut Scoreboard, arrival: &Arrival) -> Change {
        let full = arrival.una >= self.episode.recover;
        match self.episode.phase {
            Phase::FastRecovery if full => {
                self.episode.end();
                self.inflation = 0;
                let flight_size = arrival.nxt - arrival.una;
                Change::Left { limit: flight_size.max(arrival.mss) + arrival.mss }
            }
            Phase::FastRecovery => {
                // A partial acknowledgement: the next hole, and the window deflates by what was acknowledged.
                self.partial_acks += 1;
                board.mark_head_lost();
                self.episode.forced = true;
                self.inflation -= arrival.acked as i64;
                if arrival.acked >= arrival.mss {
                    self.inflation += arrival.mss as i64;
                }
                Change::None
            }
            Phase::Timeout if full => {
                self.episode.end();
                Change::None
            }
            Phase::Timeout | Phase::Open => Change::None,
        }
    }

    pub(super) fn on_timeout(&mut self) {
        self.inflation = 0;
    }

    pub(super) fn next(&mut self, board: &mut Scoreboard, new_data: bool) -> Next {
        match board.next_lost() {
            Some(index) => Next::Retransmit(index),
            None if new_data => Next::New,
            None => Next::Nothing,
        }
    }

    pub(super) const fn inflation(&self) -> i64 {
        self.inflation
    }

    /// Step 3, "impatient": of the partial acknowledgements, the first alone restarts the timer.
    pub(super) fn restarts_timer(&self) -> bool {
        self.episode.phase != Phase::FastRecovery || self.partial_acks <= 1
    }
}
