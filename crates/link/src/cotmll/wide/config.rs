//! What a scenario or a gateway may say about wide `cotmll`.

use serde::Serialize;

use crate::MAX_PACKET;
use crate::capabilities::Capabilities;
use crate::limit::Limit;
use crate::line::LineLimits;

use base::Duration;

use crate::arq::{MAX_WINDOW, Order, TRAILER_LEN};

/// The parameters of wide COTMLL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Frames that may be in flight, from 1 to 131072; what the line carries in 8 s unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Limit<1, MAX_WINDOW, MAX_WINDOW>>,
    /// Which packets wait for which.
    pub ordered: Order,
    /// Bytes of a packet in a frame at most; as many as a frame of the line holds unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_payload: Option<Limit<1, 65_000, 487>>,
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
            wants_fillers: true,
        }
    }

    /// Bytes of a packet in a full frame on this line.
    #[must_use]
    pub fn frame_payload(&self, line: &LineLimits) -> usize {
        let room = line.frame_limit().min(MAX_PACKET) - TRAILER_LEN - LEAST_EXTENSION;
        self.frame_payload.map_or(room, |told| room.min(told.get() as usize))
    }

    /// Frames that may be in flight on this line.
    #[must_use]
    pub fn window(&self, line: &LineLimits) -> u32 {
        let for_rate = |rate: base::Rate| {
            let frame_bits = self.frame_payload(line) as u64 * 8;
            (rate.bits_in(WINDOW_TIME) / frame_bits).clamp(LEAST_WINDOW, MAX_WINDOW.into()) as u32
        };
        let told = self.window.map(Limit::get);
        told.unwrap_or_else(|| line.rate().map_or(MAX_WINDOW, for_rate))
    }
}

/// Bytes of a full frame that are kept for the extension, so that data never silences reports. Ours: with an MTU of 1400 for
/// packets and 1500 for the carrier, a packet still is one frame.
const LEAST_EXTENSION: usize = 19;

/// How much of the line's time may be unacknowledged. Ours, and nearly the thesis's: 512 frames take 7.6 s at 262 kbit/s. Where a
/// fifth of all frames is lost, the last of a thousand needs five round trips.
const WINDOW_TIME: Duration = Duration::from_secs(8);

/// Frames, however slow the line.
const LEAST_WINDOW: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
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
