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
    /// What differs while nothing but keep-alives passes.
    pub idle: Idle,
}

/// How a session behaves that carries nothing. A hub with ten thousand such has little to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// As in [`Timing`], while nothing else passes; so are the others.
    pub keepalive: Duration,
    /// Two of the peer's keep-alives, of which one may be lost, and time for one to be late.
    pub silence: Duration,
    /// Two more.
    pub give_up: Duration,
    /// Soon enough that the keys do not expire.
    pub renew_after: Duration,
}

impl Idle {
    fn every(keepalive: Duration) -> Self {
        let once = Self {
            keepalive,
            silence: Duration::ZERO,
            give_up: Duration::ZERO,
            renew_after: Duration::from_secs(240),
        };
        once.expecting(keepalive)
    }

    /// With a peer that speaks this often.
    #[must_use]
    pub(super) fn expecting(self, peers: Duration) -> Self {
        Self { silence: peers * 2 + LATENESS, give_up: peers * 4 + LATENESS, ..self }
    }
}

/// By which a keep-alive may be late on a bad path.
const LATENESS: Duration = Duration::from_secs(3);
/// The most that a peer may have between its keep-alives.
pub(super) const SELDOM: Duration = Duration::from_secs(600);

/// Between the keep-alives of an idle session: less than address translators remember (half a minute, some of them).
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);

impl Default for Timing {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(1),
            silence: Duration::from_secs(3),
            keepalive: Duration::from_secs(1),
            give_up: Duration::from_secs(30),
            renew_after: Duration::from_secs(120),
            expire_after: Duration::from_secs(300),
            idle: Idle::every(KEEP_ALIVE),
        }
    }
}

impl Timing {
    /// For a link on which one frame takes `frame_time`: keep-alives are not to fill it. One that carries nothing has a keep-alive after each
    /// `idle`.
    #[must_use]
    pub fn for_frames_of(frame_time: Duration, idle: Duration) -> Self {
        let default = Self::default();
        let keepalive = default.keepalive.max(frame_time * 2);
        let silence = default.silence.max(keepalive * 3);
        Self { keepalive, silence, idle: Idle::every(idle.max(keepalive)), ..default }
    }
}
