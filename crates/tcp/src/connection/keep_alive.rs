//! Keep-alives: whether a silent peer is still there (RFC 1122, 4.2.3.6; RFC 9293, 3.8.4). Off unless `limits.keep-alive`
//! says so.
//!
//! A probe is an acknowledgement from one number before SND.NXT, which the peer has to answer.

use base::{Duration, Instant};

use super::{Connection, Failure};

/// `tcp_keepalive_intvl` of Linux: between two probes.
const INTERVAL: Duration = Duration::from_secs(75);
/// `tcp_keepalive_probes` of Linux.
const PROBES: u8 = 9;

impl Connection {
    /// The peer was heard of.
    pub(super) fn postpone_keep_alive(&mut self, now: Instant) {
        if let Some(idle) = self.sender.config.limits.keep_alive
            && self.may_stay_silent()
        {
            self.timers.idle = now.saturating_add(idle);
            self.timers.keep_alives = 0;
            self.timers.keep_alive_due = false;
        }
    }

    /// Nothing has come for so long. What is outstanding has a timer of its own.
    pub(super) fn on_keep_alive_timer(&mut self, now: Instant) {
        if self.sender.una < self.sender.nxt || self.sender.timers.persisting {
            return self.postpone_keep_alive(now);
        }
        if self.timers.keep_alives == PROBES {
            return self.fail(now, Failure::TimedOut);
        }
        self.timers.keep_alives += 1;
        self.timers.idle = now.saturating_add(INTERVAL);
        (self.timers.keep_alive_due, self.receiver.ack_now) = (true, true);
    }
}
