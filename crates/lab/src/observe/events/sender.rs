//! The states of a host's TCP senders at every change.

use base::Instant;
use rustc_hash::FxHashMap;
use tcp::{Connection, ConnectionId, Host, State};

use super::event::{SenderState, What};
use super::recorder::Probe;

/// Samples a host after everything that can change a sender's state.
#[derive(Debug)]
pub struct SenderWatch {
    probe: Probe,
    last: FxHashMap<ConnectionId, SenderState>,
}

impl SenderWatch {
    /// A watch that reports to `probe`.
    #[must_use]
    pub fn new(probe: Probe) -> Self {
        Self { probe, last: FxHashMap::default() }
    }

    /// Notes what has changed.
    pub fn sample(&mut self, now: Instant, host: &Host) {
        for (id, connection) in host.connections() {
            if matches!(connection.state(), State::TimeWait | State::Closed) {
                continue;
            }
            let state = SenderState::of(connection);
            let before = self.last.insert(id, state);
            if before.is_none_or(|before| SenderState { flight_size: state.flight_size, ..before } != state) {
                self.probe.note(now, What::Sender(state));
            }
        }
    }
}

impl SenderState {
    fn of(connection: &Connection) -> Self {
        let counted = connection.sender_statistics();
        Self {
            from: connection.local().port(),
            to: connection.remote().port(),
            cwnd: connection.cwnd(),
            ssthresh: connection.ssthresh(),
            flight_size: connection.flight_size(),
            srtt: connection.srtt(),
            rttvar: connection.rttvar(),
            rto: connection.rto(),
            backoff: connection.backoff(),
            timeouts: counted.timeouts,
            recoveries: counted.recoveries,
            recovering: connection.recovering(),
        }
    }
}
