//! How much of a packet a full frame carries, and how many may be in flight: what a line and a configuration allow. Frames may be
//! shorter (`length`).

use base::{Duration, Rate};

use crate::limit::Limit;
use crate::line::LineLimits;
use crate::{MAX_PACKET, USUAL_PACKET};

use super::{MAX_WINDOW, TRAILER_LEN};

/// Frames in flight, as a configuration says it.
pub type Window = Limit<1, MAX_WINDOW, MAX_WINDOW>;

/// Bytes of a packet in a frame at most, as a configuration says it.
pub type FramePayload = Limit<1, 65_000, 487>;

/// Bytes of a packet in a full frame on this line: as many as it holds, or fewer if `told`.
pub(crate) fn frame_payload(line: &LineLimits, told: Option<FramePayload>) -> usize {
    let room = line.frame_limit().min(MAX_PACKET) - TRAILER_LEN - LEAST_EXTENSION;
    told.map_or(room, |told| room.min(told.get() as usize))
}

/// Frames that may be in flight on this line: what it carries in 8 s, unless `told`.
pub(crate) fn window(line: &LineLimits, frame_payload: usize, told: Option<Window>) -> u32 {
    let for_rate = |rate: Rate| {
        // Where frames could be longer, packets seldom are.
        let frame_bits = frame_payload.min(USUAL_PACKET) as u64 * 8;
        (rate.bits_in(WINDOW_TIME) / frame_bits).clamp(LEAST_WINDOW, MAX_WINDOW.into()) as u32
    };
    told.map_or_else(|| line.rate().map_or(MAX_WINDOW, for_rate), Limit::get)
}

/// Bytes of a full frame that are kept for the extension, so that data never silences reports. Ours: with an MTU of 1400 for
/// packets and 1500 for the carrier, a packet still is one frame.
const LEAST_EXTENSION: usize = 19;

/// How much of the line's time may be unacknowledged. Ours, and nearly the thesis's: 512 frames take 7.6 s at 262 kbit/s. Where a
/// fifth of all frames is lost, the last of a thousand needs five round trips.
const WINDOW_TIME: Duration = Duration::from_secs(8);

/// Frames, however slow the line.
const LEAST_WINDOW: u64 = 1024;
