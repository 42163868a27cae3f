//! `[tcp.rto]`: the retransmission time-out.

use core::num::NonZeroU32;

use base::Duration;
use base::units::above_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range;

/// How long to wait for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct RtoConfig {
    /// Retransmission time-out before the first round-trip sample. RFC 6298 (2.1): 1 s; 3 s in RFC 1122 and Linux 2.4.
    #[serde(deserialize_with = "range::timeout")]
    #[schemars(transform = above_zero)]
    pub initial: Duration,
    /// Minimum of the retransmission time-out. RFC 6298 (2.4): 1 s; 200 ms in Linux.
    #[serde(deserialize_with = "range::timeout")]
    #[schemars(transform = above_zero)]
    pub min: Duration,
    /// Maximum of the time-out, which back-off cannot exceed. RFC 6298 (2.5): 60 s or more; 120 s in Linux.
    #[serde(deserialize_with = "range::timeout")]
    #[schemars(transform = above_zero)]
    pub max: Duration,
    /// Back-off makes the time-out at most so many times as long, rounded down to a power of two; without it `max` is the only limit. ns-2
    /// stops at 64 times.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_backoff: Option<NonZeroU32>,
    /// Minimum margin of the time-out above the smoothed round-trip time: G of RFC 6298 (2.3). Linux has its 200 ms here.
    pub margin: Duration,
    /// How the time-out follows from round-trip samples.
    pub estimator: RtoEstimator,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
            max_backoff: None,
            margin: Duration::from_millis(200),
            estimator: RtoEstimator::Rfc6298,
        }
    }
}

/// How the retransmission time-out follows from round-trip samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoEstimator {
    /// RFC 6298.
    Rfc6298,
    /// Linux since 2.4: the variation is the largest of a round trip and falls slowly; `margin` is its floor.
    Linux,
}
