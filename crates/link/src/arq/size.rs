//! How much of a packet a frame carries, and how many frames may be in flight.

use base::{Duration, Rate};

use crate::MAX_PACKET;
use crate::limit::Limit;
use crate::line::LineLimits;

use super::length::Length;
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

/// How long frames are on the line of one end, and how many of them may be in flight.
#[derive(Debug, Default)]
pub(crate) struct Size {
    pub(super) line: LineLimits,
    /// Bytes of a packet in a frame at most on this line, whatever length is chosen for frames.
    pub(super) longest: usize,
    /// Frames in flight at most if they are as long as may be.
    window: u32,
    /// How long they should be, where that is not told.
    length: Option<Length>,
}

impl Size {
    /// Frames carry `longest` bytes of a packet at most on this line, and `window` of them may be in flight.
    pub(super) fn set_line(&mut self, line: &LineLimits, longest: usize, window: u32) {
        (self.line, self.longest, self.window) = (*line, longest, window);
    }

    /// On the line that was told of last frames may be shorter, where that brings more through.
    pub(super) fn fit_length(&mut self) {
        let cost = self.line.overhead() + TRAILER_LEN + USUAL_EXTENSION;
        self.length.get_or_insert_default().set_line(self.longest, cost);
    }

    /// A receiver says how often frames are lost, in 256ths, and whether many are one after another.
    pub(super) fn on_report(&mut self, loss: u8, in_runs: bool) {
        if let Some(length) = &mut self.length {
            length.on_report(loss, in_runs);
        }
    }

    /// Bytes of a packet in a frame at most, for now.
    pub(super) fn room(&self) -> usize {
        self.length.as_ref().map_or(self.longest, Length::room)
    }

    /// Frames in flight at most, for now.
    pub(super) fn window(&self) -> u32 {
        let parts = self.length.as_ref().map_or(1, Length::parts) as u64;
        (u64::from(self.window) * parts).min(MAX_WINDOW.into()) as u32
    }

    /// How long the line takes for a full frame, or a long packet where frames may be longer; nothing where it has no rate.
    pub(super) fn frame_time(&self) -> Duration {
        let bytes = self.room().min(USUAL_PACKET) as u64;
        self.line.rate().map_or(Duration::ZERO, |rate| rate.time_for(bytes * 8))
    }
}

/// Bytes of a full frame that are kept for the extension, so that data never silences reports. Ours: with an MTU of 1400 for
/// packets and 1500 for the carrier, a packet still is one frame.
const LEAST_EXTENSION: usize = 19;

/// How much of the line's time may be unacknowledged. Ours, and nearly the thesis's: 512 frames take 7.6 s at 262 kbit/s. Where a
/// fifth of all frames is lost, the last of a thousand needs five round trips.
const WINDOW_TIME: Duration = Duration::from_secs(8);

/// Bytes of what is in most trailers besides their fixed part.
const USUAL_EXTENSION: usize = 2;

/// Bytes of an Ethernet's packet.
const USUAL_PACKET: usize = 1500;

/// Frames, however slow the line.
const LEAST_WINDOW: u64 = 1024;
