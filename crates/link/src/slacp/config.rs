//! What a scenario or a gateway may say about `slacp`.

use base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arq::{self, FramePayload, Order, Window};
use crate::capabilities::Capabilities;
use crate::dscp::DscpSet;
use crate::limit::Limit;
use crate::line::LineLimits;

/// The parameters of SLACP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(rename = "Slacp")]
pub struct Config {
    /// Maximum retransmissions per frame, 0 to 100. Default: 1 (section 4).
    pub max_retransmissions: Limit<0, 100, 1>,
    /// Redundancy frames per retransmitted frame, 0 to 10. Default: 1 (section 4).
    pub fec_ratio: FecRatio,
    /// Retransmitted frames per FEC block, 1 to 64. Default: 8, which keeps the tail short (ours; the paper does not say).
    pub fec_block: Limit<1, 64, 8>,
    /// How long an FEC block waits for another frame before it counts as complete. Default: two frame times of the line, at
    /// least 1 ms (ours; the paper does not say).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec_timer: Option<Duration>,
    /// Silence after which a receiver repeats its acknowledgement; it does so up to nine times, each time after twice as long.
    /// Choose more than the variation of the frames' delay. Default: 25 ms, or four frame times of the line (ours; the paper does
    /// not say).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_timer: Option<Duration>,
    /// The DSCPs of packets whose frames have redundancy from their first transmission on. Default: none (section 2: "other frames
    /// deserving FEC protection").
    #[serde(skip_serializing_if = "DscpSet::is_empty")]
    pub protect_dscp: DscpSet,
    /// Which packets wait for earlier ones before they are delivered.
    pub ordered: Order,
    /// Window: most frames in flight, 1 to 131072. Default: what the line carries in 8 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Most bytes of payload in a frame. Default: as many as a frame of the line holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_payload: Option<FramePayload>,
}

impl Config {
    /// What SLACP does with these parameters.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: true,
            keeps_order: matches!(self.ordered, Order::Link),
            // What was overtaken counts as lost.
            needs_order: true,
            // A frame may be given up, and all of the packet with it.
            carries_super_segments: false,
            has_classes: false,
            wants_fillers: false,
            several_lines: false,
        }
    }

    /// Bytes of a packet in a full frame on this line.
    #[must_use]
    pub fn frame_payload(&self, line: &LineLimits) -> usize {
        arq::frame_payload(line, self.frame_payload)
    }

    /// Frames that may be in flight on this line.
    #[must_use]
    pub fn window(&self, line: &LineLimits) -> u32 {
        arq::window(line, self.frame_payload(line), self.window)
    }
}

/// Redundancy for each frame, kept in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 0, "maximum" = 10))]
pub struct FecRatio(u16);

/// A ratio that is too small or too large.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is out of range; allowed are 0 to 10")]
pub struct RatioOutOfRange(f64);

impl FecRatio {
    /// Frames of redundancy for so many frames, rounded up.
    #[must_use]
    pub const fn of(self, frames: usize) -> usize {
        (frames * self.0 as usize).div_ceil(100)
    }
}

impl Default for FecRatio {
    fn default() -> Self {
        Self(100)
    }
}

impl TryFrom<f64> for FecRatio {
    type Error = RatioOutOfRange;
    fn try_from(ratio: f64) -> Result<Self, RatioOutOfRange> {
        if (0.0..=10.0).contains(&ratio) {
            Ok(Self((ratio * 100.0).round() as u16))
        } else {
            Err(RatioOutOfRange(ratio))
        }
    }
}

impl From<FecRatio> for f64 {
    fn from(ratio: FecRatio) -> Self {
        Self::from(ratio.0) / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_values_are_the_defaults() {
        let config = Config::default();
        assert_eq!((config.max_retransmissions.get(), config.fec_ratio.of(8)), (1, 8));
    }

    #[test]
    fn redundancy_is_rounded_up() {
        let of = |ratio, frames| FecRatio::try_from(ratio).unwrap().of(frames);
        assert_eq!([of(0.0, 8), of(0.25, 8), of(0.3, 10), of(0.25, 1), of(2.0, 8)], [0, 2, 3, 1, 16]);
        assert!(
            FecRatio::try_from(-0.1).is_err()
                && FecRatio::try_from(10.1).is_err()
                && FecRatio::try_from(f64::NAN).is_err()
        );
    }
}
