//! What a scenario or a gateway may say about `coded`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arq::{self, FramePayload, Order, Window};
use crate::capabilities::Capabilities;
use crate::line::LineLimits;

/// The parameters of coded ARQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(rename = "Coded")]
pub struct Config {
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
    /// What coded ARQ does with these parameters.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: true,
            keeps_order: matches!(self.ordered, Order::Link),
            needs_order: false,
            carries_super_segments: true,
            has_classes: true,
            wants_fillers: true,
            several_lines: true,
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
