//! What a session says so that its peer knows that it is there: often while either has something to say, seldom in idle hours.

use base::{Duration, Instant};

use super::Session;
use super::timing::{self, Idle, Timing};
use crate::control::Kind;

impl Session {
    /// How an idle session behaves with this peer.
    pub(super) fn idle(&self) -> Idle {
        self.timing.idle.expecting(self.peer_keep_alive)
    }

    /// The peer says how often it will speak, in milliseconds.
    pub(super) fn expect_every(&mut self, keep_alive: u32) {
        self.peer_keep_alive = Duration::from_millis(keep_alive.into()).min(timing::SELDOM);
    }

    pub(super) fn keepalive_due(&self) -> Option<Instant> {
        let Timing { keepalive, idle, .. } = self.timing;
        let current = self.keys.current().filter(|_| !self.has_left);
        current.map(|current| {
            let soon = self.last_sent + keepalive;
            // Who began the session speaks first, so that the other can answer in time.
            let lead = if current.initiated { idle.keepalive / 8 } else { Duration::ZERO };
            if self.activity.is_at(soon) { soon } else { self.last_sent + (idle.keepalive - lead) }
        })
    }

    /// An idle side says now what it would have to say soon: that makes one busy moment of two.
    pub(super) fn answer_keepalive(&mut self, now: Instant) {
        let is_soon = now >= self.last_sent + self.timing.idle.keepalive / 2;
        if is_soon && !self.activity.is_at(now) {
            self.send_keepalive(now);
        }
    }

    pub(super) fn send_keepalive(&mut self, now: Instant) {
        let Some((line, to)) = self.lines.latest() else { return };
        // Where there is no room it is said at the next turn.
        self.control_to((to, line), Kind::Frame, &[]);
        self.note_sent(now, line);
    }
}
