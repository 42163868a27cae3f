//! When anything but keep-alives last passed, since a session that carries nothing may speak seldom.
//!
//! Both ends see the same traffic, so both know when to expect the other often. An end whose traffic is all lost expects more than it gets;
//! it shakes hands then, and that is answered.

use base::{Duration, Instant};

/// When traffic passed, in either direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// Since when it has passed without a long pause.
    since: Instant,
    /// When it passed last.
    last: Option<Instant>,
}

/// How long a session counts as active after the last traffic: longer than pauses within what people do.
const LINGER: Duration = Duration::from_secs(10);

impl Activity {
    /// Something other than a keep-alive passed.
    pub(super) fn on_traffic(&mut self, now: Instant) {
        if !self.is_at(now) {
            self.since = now;
        }
        self.last = Some(now);
    }

    /// Whether a session that nothing passes from now on is still active at `then`.
    pub(super) fn is_at(&self, then: Instant) -> bool {
        self.last.is_some_and(|last| then < last + LINGER)
    }

    /// When a peer that was heard at `heard` has been silent for too long: `active` where traffic passes, counted from its start, since the
    /// peer may have been seldom heard before; else `idle`.
    pub(super) fn due(&self, heard: Instant, active: Duration, idle: Duration) -> Instant {
        let soon = heard.max(self.since) + active;
        if self.is_at(soon) { soon } else { heard + idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn silence_counts_from_the_first_traffic_after_a_pause() {
        let (active, idle) = (Duration::from_secs(3), Duration::from_secs(23));
        let mut activity = Activity::default();
        assert_eq!(activity.due(at(0), active, idle), at(23), "nothing has passed");
        activity.on_traffic(at(100));
        assert_eq!(activity.due(at(95), active, idle), at(103));
        assert_eq!(activity.due(at(104), active, idle), at(107));
        assert_eq!(activity.due(at(108), active, idle), at(131), "it is idle again by then");
        activity.on_traffic(at(109));
        assert_eq!(activity.due(at(99), active, idle), at(103), "one activity");
        activity.on_traffic(at(119));
        assert_eq!(activity.due(at(99), active, idle), at(122), "another one");
        assert!(activity.is_at(at(128)) && !activity.is_at(at(129)));
    }
}
