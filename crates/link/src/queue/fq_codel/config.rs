//! The parameters of FQ-CoDel.

use core::num::NonZeroU32;

use base::Duration;
use base::units::{Size, above_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MAX_PACKET;

/// Parameters of FQ-CoDel (RFC 8290, 5.2), with the defaults of the RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Keys", into = "Keys")]
#[schemars(rename = "FqCodel")]
pub struct Config {
    /// Length of all queues together, in packets.
    pub(super) packets: NonZeroU32,
    /// Memory of all queues together, in bytes.
    pub(super) memory: Size,
    /// Queueing delay that should not last. Default: a twentieth of the interval.
    target: Option<Duration>,
    /// How long a longer delay may last before packets are dropped: a round trip or more.
    interval: Option<Duration>,
    /// Bytes that each flow may send per turn.
    pub(super) quantum: Size,
    /// Whether to mark packets instead of dropping them, where the transport supports ECN.
    pub(super) ecn: bool,
    /// Whether to leave out time in which the link is blocked from the delay.
    pub(super) pause_when_blocked: bool,
}

/// As they are written.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
struct Keys {
    /// Length of all queues together, in packets.
    packets: NonZeroU32,
    /// Memory of all queues together, in bytes.
    #[schemars(extend("examples" = ["32 MiB"]))]
    memory: Size,
    /// Queueing delay that should not last. Default: a twentieth of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = above_zero, extend("examples" = ["5 ms"]))]
    target: Option<Duration>,
    /// How long a longer delay may last before packets are dropped: a round trip or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = above_zero, extend("examples" = ["100 ms"]))]
    interval: Option<Duration>,
    /// Bytes that each flow may send per turn.
    #[schemars(transform = above_zero, extend("examples" = ["1514 B"]))]
    quantum: Size,
    /// Whether to mark packets instead of dropping them, where the transport supports ECN.
    ecn: bool,
    /// Whether to leave out time in which the link is blocked from the delay.
    pause_when_blocked: bool,
}

/// A parameter that makes no sense, perhaps in view of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFqCodel {
    /// No packet would fit.
    #[error("memory = \"{0}\"; allowed are {min} or more, so that any packet fits", min = LEAST_MEMORY)]
    Memory(Size),
    /// Every packet waits for that long.
    #[error("target = \"{0}\"; allowed are times above 0 s and up to interval")]
    NoTarget(Duration),
    /// An interval is not over before what it is to measure.
    #[error("interval = \"{interval}\"; allowed are times from target, which is {target}, to 1 min")]
    Interval {
        /// The interval.
        interval: Duration,
        /// What it has to be above.
        target: Duration,
    },
    /// Nothing would leave, or one flow's packets only.
    #[error("quantum = \"{0}\"; allowed are 1 B to {max}", max = MOST_QUANTUM)]
    Quantum(Size),
}

impl Config {
    /// These settings for a link with this round trip, unless the interval is told: it becomes three round trips, at
    /// least 100 ms and at most 1 min, and no less than the target.
    #[must_use]
    pub fn for_round_trip(self, round_trip: Duration) -> Self {
        let interval = round_trip.saturating_mul(ROUND_TRIPS).clamp(INTERVAL, MOST_INTERVAL);
        Self { interval: self.interval.or(Some(interval.max(self.target.unwrap_or(interval)))), ..self }
    }

    /// How long a wait may last.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or(INTERVAL)
    }

    /// The wait that is not to last.
    #[must_use]
    pub fn target(&self) -> Duration {
        self.target.unwrap_or(self.interval() / INTERVAL_BY_TARGET)
    }
}

impl TryFrom<Keys> for Config {
    type Error = NotFqCodel;
    fn try_from(keys: Keys) -> Result<Self, NotFqCodel> {
        let Keys { packets, memory, target, interval, quantum, ecn, pause_when_blocked } = keys;
        if memory < LEAST_MEMORY {
            return Err(NotFqCodel::Memory(memory));
        }
        let config = Self { packets, memory, target, interval, quantum, ecn, pause_when_blocked };
        let (target, interval) = (config.target(), config.interval());
        if target.is_zero() {
            return Err(NotFqCodel::NoTarget(target));
        }
        if interval < target || interval > MOST_INTERVAL {
            return Err(NotFqCodel::Interval { interval, target });
        }
        if !(1..=MOST_QUANTUM.0).contains(&quantum.0) {
            return Err(NotFqCodel::Quantum(quantum));
        }
        Ok(config)
    }
}

impl From<Config> for Keys {
    fn from(config: Config) -> Self {
        let Config { packets, memory, target, interval, quantum, ecn, pause_when_blocked } = config;
        Self { packets, memory, target, interval, quantum, ecn, pause_when_blocked }
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            packets: NonZeroU32::new(10_240).unwrap_or(NonZeroU32::MIN),
            memory: Size(32 << 20),
            target: None,
            interval: None,
            quantum: Size(super::codel::LONGEST),
            ecn: true,
            pause_when_blocked: true,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let Ok(config) = Keys::default().try_into() else { unreachable!("the defaults are allowed") };
        config
    }
}

/// RFC 8290, 5.2.1.
const INTERVAL: Duration = Duration::from_millis(100);
/// RFC 8290, 5.2.2: the target is 5 to 10 % of the interval.
const INTERVAL_BY_TARGET: u64 = 20;
/// Ours, by measurement: RFC 8289, 4.2, has an interval slightly above the round trips that connections see. Those of hosts are longer than
/// the link's own, and what was lost comes out in bursts of a round trip each. `docs/queues.md` has what one, two and three of them cost a download.
const ROUND_TRIPS: u64 = 3;
/// One packet of the longest.
const LEAST_MEMORY: Size = Size(MAX_PACKET as u64);
/// Ours: whoever writes more has mistaken the unit.
const MOST_INTERVAL: Duration = Duration::from_secs(60);
/// One packet of the longest too: with more, a flow would keep the line for longer than any packet takes.
const MOST_QUANTUM: Size = LEAST_MEMORY;
