//! How long frames are, and how many may be in flight: shorter ones where the line is blocked again and again.
//!
//! Ours. A blockage costs what it cuts: of the frames under way when it begins and when it ends half is wasted on average, so each open
//! time costs a frame. Shorter frames waste less of it and more on headers. With `h` bytes around the payload of each and `o` bytes in an
//! open time, frames of `l` bytes waste `h / l + l / o`, which is least for `l = sqrt(h o)`: over 262 kbit/s that is open for 0.43 s at a
//! time, 555 bytes, and nearly 5 % more comes through than with frames of 1500.
//!
//! That holds for blockages alone. Where frames are lost one by one, as likely short as long, shorter ones cost headers and bring nothing. So
//! the receiver says whether what is lost lately comes in long runs.

use base::Duration;

use crate::USUAL_PACKET;
use crate::line::LineLimits;

use super::{MAX_WINDOW, TRAILER_LEN};

/// The length of frames on a line: full ones, or equal parts of them.
#[derive(Debug, Default)]
pub(crate) struct Length {
    pub(crate) line: LineLimits,
    /// Bytes of a packet in the longest frame.
    pub(crate) full: usize,
    /// Frames in flight at most if all are full.
    window: u32,
    /// Parts of a full frame that a frame has room for; `None` where all are as long as may be.
    parts: Option<usize>,
}

impl Length {
    /// Frames carry `full` bytes of a packet at most on this line, or fewer where that brings more through and they are `flexible`; and
    /// `window` full ones may be in flight.
    pub(crate) fn set_line(&mut self, line: &LineLimits, full: usize, window: u32, flexible: bool) {
        (self.line, self.full, self.window) = (*line, full, window);
        self.parts = flexible.then(|| self.parts());
    }

    fn parts(&self) -> usize {
        self.parts.unwrap_or(1)
    }

    /// Bytes of a packet in a frame at most, for now.
    pub(crate) fn room(&self) -> usize {
        // Cutting frames that hold several packets' worth brings nothing until they hold less than one.
        match self.parts() {
            1 => self.full,
            parts => self.full.min(USUAL_PACKET).div_ceil(parts),
        }
    }

    /// Bytes of a packet in a frame as a rule.
    pub(crate) fn usual(&self) -> usize {
        self.room().min(USUAL_PACKET)
    }

    /// Frames in flight at most, for now.
    pub(crate) fn window(&self) -> u32 {
        (u64::from(self.window) * self.parts() as u64).min(MAX_WINDOW.into()) as u32
    }

    /// How long the line takes for a frame, or a long packet where frames may be longer; nothing where it has no rate.
    pub(crate) fn frame_time(&self) -> Duration {
        let bytes = self.usual() as u64;
        self.line.rate().map_or(Duration::ZERO, |rate| rate.time_for(bytes * 8))
    }

    /// A receiver says how often frames are lost, in 256ths and counting each run of them once, and whether the runs are long.
    pub(crate) fn on_report(&mut self, loss: u8, in_runs: bool) {
        let Some(parts) = self.parts else { return };
        if loss == 0 || !in_runs {
            self.parts = Some(1);
            return;
        }
        let (full, cost) = (self.full.min(USUAL_PACKET), self.cost());
        let open = (256 / u64::from(loss)).max(1) * (self.room().min(USUAL_PACKET) + cost) as u64;
        let best = (open * cost as u64).isqrt().max(SHORTEST);
        // In sixteenths, and with some to spare before anything changes: the estimate is of a few blockages.
        let (wanted, parts) = (16 * full as u64 / best, 16 * parts as u64);
        if wanted > parts + 4 || wanted + 20 < parts {
            self.parts = Some(wanted.div_ceil(16).clamp(1, MOST_PARTS) as usize);
        }
    }

    /// Bytes around the payload of most frames.
    const fn cost(&self) -> usize {
        self.line.overhead() + TRAILER_LEN + USUAL_EXTENSION
    }
}

/// Bytes of what is in most trailers besides their fixed part.
const USUAL_EXTENSION: usize = 2;

/// Bytes of a packet in a frame, however short the open times.
const SHORTEST: u64 = 128;

/// Parts of a packet at most.
const MOST_PARTS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn new(full: usize, cost: usize) -> Length {
        let mut length = Length::default();
        let line = LineLimits::default().with_overhead(cost - length.cost());
        length.set_line(&line, full, 1, true);
        length
    }

    /// After so many reports of an open time that holds `open` bytes of frames.
    fn settled(length: &mut Length, open: usize) -> usize {
        for _ in 0..20 {
            let frames = open / (length.room().min(USUAL_PACKET) + length.cost());
            length.on_report((256 / frames.clamp(1, 256)) as u8, true);
        }
        length.room()
    }

    #[test]
    fn the_shorter_the_open_times_the_shorter_the_frames() {
        let mut length = new(1500, 22);
        // 262144 bit/s, open for 9 s, 1 s, and 0.43 s at a time.
        let rooms = [294_912, 32_768, 14_000].map(|open| settled(&mut length, open));
        assert_eq!(rooms, [1500, 750, 500]);
        assert!(settled(&mut length, 100) >= SHORTEST as usize);
        // Where headers cost more, frames are longer.
        assert_eq!(settled(&mut new(1400, 90), 14_000), 1400);
    }

    #[test]
    fn frames_that_are_lost_one_by_one_are_full() {
        let mut length = new(1500, 22);
        assert!(settled(&mut length, 14_000) < 1500);
        length.on_report(128, false);
        assert_eq!((length.room(), length.parts()), (1500, 1));
        settled(&mut length, 14_000);
        length.on_report(0, true);
        assert_eq!(length.room(), 1500);
    }

    /// Nobody cuts packets where a frame could hold several.
    #[test]
    fn a_line_without_a_limit_has_frames_of_a_packet() {
        let mut length = new(65_000, 22);
        assert_eq!(length.room(), 65_000);
        assert_eq!(settled(&mut length, 14_000), 500);
    }

    #[test]
    fn an_estimate_that_wavers_changes_nothing() {
        let mut length = new(1500, 22);
        settled(&mut length, 14_000);
        let lengths = [9, 8, 9, 10, 8].map(|loss| {
            length.on_report(loss, true);
            length.room()
        });
        assert_eq!(lengths, [lengths[0]; 5]);
    }
}
