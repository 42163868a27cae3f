//! Temporal sharing of TCP control blocks: RFC 9040, section 6 (once RFC 2140), as Kojo et al. 2005, section 4, use it
//! ("CBI"): a new connection starts with the `ssthresh` that an earlier one to the same destination learnt.
//!
//! Deviations and choices: only `ssthresh` and, if `share-rtt` says so, the round-trip time and its variation are kept
//! (RFC 9040 lists more); the latest value replaces the cached one; a connection that never lost anything has learnt no
//! threshold and leaves the cached one as it is; state older than `lifetime` is not used.

use std::sync::Mutex;

use base::{Duration, Instant};

use super::{Closing, Opening, Policy, Shared, Ticket, lock};
use crate::congestion::{self, Controller, Start};

/// What is cached of one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedState {
    /// Slow start threshold in bytes, once one was learnt.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time and its variation, once there was a sample.
    pub rtt: Option<(Duration, Duration)>,
    /// When it was stored.
    pub stored_at: Instant,
    /// Connections that take part now.
    pub members: u32,
}

/// The policy for one destination.
#[derive(Debug)]
pub(super) struct Cache {
    lifetime: Duration,
    share_rtt: bool,
    state: Mutex<CachedState>,
}

impl Cache {
    pub(super) fn new(opening: &Opening<'_>) -> Self {
        let settings = &opening.config.sharing;
        Self { lifetime: settings.lifetime, share_rtt: settings.share_rtt, state: Mutex::default() }
    }

    fn fresh(&self, now: Instant) -> Option<CachedState> {
        let state = *lock(&self.state);
        (now.saturating_since(state.stored_at) <= self.lifetime).then_some(state)
    }
}

impl Policy for Cache {
    fn join(&self, _opening: &Opening<'_>) -> Ticket {
        lock(&self.state).members += 1;
        Ticket { slot: 0, number: 0 }
    }

    fn establish(&self, _ticket: Ticket, opening: &Opening<'_>) -> Box<dyn Controller> {
        let cached = self.fresh(opening.now).and_then(|state| state.ssthresh);
        let ssthresh = cached.unwrap_or(opening.start.ssthresh);
        congestion::build(opening.config, &Start { ssthresh, ..opening.start })
    }

    fn leave(&self, _ticket: Ticket, closing: &Closing) {
        let mut state = lock(&self.state);
        state.members -= 1;
        let rtt = closing.srtt.map(|srtt| (srtt, closing.rttvar));
        if closing.ssthresh.is_some() || rtt.is_some() {
            if closing.now.saturating_since(state.stored_at) > self.lifetime {
                (state.ssthresh, state.rtt) = (None, None);
            }
            state.ssthresh = closing.ssthresh.or(state.ssthresh);
            state.rtt = rtt.or(state.rtt);
            state.stored_at = closing.now;
        }
    }

    fn rtt(&self, now: Instant) -> Option<(Duration, Duration)> {
        self.fresh(now).filter(|_| self.share_rtt)?.rtt
    }

    fn members(&self) -> u32 {
        lock(&self.state).members
    }

    fn shared(&self) -> Shared {
        Shared::Cache(*lock(&self.state))
    }
}
