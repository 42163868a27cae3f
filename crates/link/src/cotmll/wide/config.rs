//! What a scenario or a gateway may say about `cotmll`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arq::{self, FramePayload, Order, Window};
use crate::capabilities::Capabilities;
use crate::line::LineLimits;

/// The parameters of wide COTMLL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", default, deny_unknown_fields)]
#[schemars(rename = "Cotmll")]
pub struct Config {
    /// Window: most frames in flight, 1 to 131072. Default: what the line carries in 8 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Which packets wait for earlier ones before they are delivered.
    pub ordered: Order,
    /// Most bytes of payload in a frame. Default: as many as a frame of the line holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_payload: Option<FramePayload>,
}

impl Config {
    /// What wide COTMLL does with these parameters.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        Capabilities {
            recovers_losses: true,
            keeps_order: matches!(self.ordered, Order::Link),
            needs_order: false,
            carries_super_segments: true,
            has_classes: false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arq::MAX_WINDOW;
    use base::Rate;

    #[test]
    fn the_window_follows_the_line() {
        let window = |rate: Option<Rate>| Config::default().window(&LineLimits::new(1440, rate));
        assert_eq!(Config::default().frame_payload(&LineLimits::new(1440, None)), 1406);
        assert_eq!(window(None), MAX_WINDOW);
        assert_eq!(window(Some(Rate::from_bps(64_000))), 1024);
        // 8 s of 20 Mbit/s.
        assert_eq!(window(Some(Rate::from_bps(20_000_000))), 160_000_000 / (1406 * 8));
        assert_eq!(window(Some(Rate::from_bps(10_000_000_000))), MAX_WINDOW);
        let told = Config { window: Some(7.try_into().unwrap()), ..Config::default() };
        assert_eq!(told.window(&LineLimits::default()), 7);
    }
}
