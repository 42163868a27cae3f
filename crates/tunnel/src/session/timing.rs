//! How long a session waits for what.

use base::Duration;

/// How a session behaves in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two initiations while there is no answer. Answers to the last sixteen count, so it may be
    /// shorter than the round trip.
    pub retry: Duration,
    /// After this long without an authentic datagram the initiator shakes hands again: the peer may have restarted.
    pub silence: Duration,
    /// After this long without sending, an empty datagram says that we live.
    pub keepalive: Duration,
    /// After this long without an authentic datagram only keep-alives are worth sending.
    pub give_up: Duration,
    /// Age at which the initiator renews the keys. WireGuard's Rekey-After-Time.
    pub renew_after: Duration,
    /// Age at which keys are no longer used at all.
    pub expire_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(1),
            silence: Duration::from_secs(3),
            keepalive: Duration::from_secs(1),
            give_up: Duration::from_secs(30),
            renew_after: Duration::from_secs(120),
            expire_after: Duration::from_secs(300),
        }
    }
}

impl Timing {
    /// For a link on which one frame takes `frame_time`: keep-alives are not to fill it.
    #[must_use]
    pub fn for_frames_of(frame_time: Duration) -> Self {
        let default = Self::default();
        let keepalive = default.keepalive.max(frame_time * 2);
        Self { keepalive, silence: default.silence.max(keepalive * 3), ..default }
    }
}
