//! Bursts as Linux hands them to a device that cuts them into segments: how long they are, that the last segment says PSH, and that an odd
//! one waits where an acknowledgement is due (`tcp_write_xmit`, `tcp_tso_autosize`, `tcp_tso_should_defer`, `__tcp_transmit_skb`).
//!
//! Deviations:
//! - paced segments, and those of coded blocks, go one by one, so none of them ends a burst;
//! - where the owner of a connection takes trains, a train is as long as the owner likes, and what is shorter than a segment is no part of it;
//! - a burst does not end where a piece of Linux' send queue ends, after some 40 segments.

use base::{Duration, Instant};

use super::Sender;
use crate::recovery::Phase;

impl Sender {
    /// Whether `segments` new ones of `len` bytes, which go out now, end a burst of several.
    pub(super) fn ends_burst(&mut self, len: u32, segments: u32) -> bool {
        if !self.config.offload {
            return false;
        }
        if segments > 1 || !self.may_burst(len) {
            self.burst_left = 0;
            return segments > 1;
        }
        match self.burst_left {
            0 => {
                self.burst_left = self.burst() - 1;
                false
            }
            left => {
                self.burst_left = left - 1;
                left == 1
            }
        }
    }

    /// Whether a new segment of `len` bytes, which the windows allow, had better wait for the next acknowledgement, which makes
    /// room for more.
    pub(super) fn defers(&self, now: Instant, len: u32) -> bool {
        if !self.config.offload || !self.may_burst(len) {
            return false;
        }
        let is_start = self.burst_left == 0 && self.unsent() > len as usize;
        let is_repairing = self.recovery.phase() != Phase::Open;
        let wrote = now.saturating_since(self.last_sent_at) <= SOON;
        if !is_start || is_repairing || !wrote {
            return false;
        }
        let room = self.allowed().saturating_sub(self.pipe()).min(self.usable_window());
        let all_fits = self.fin_queued && self.unsent() as u64 <= room;
        let third = u64::from(self.window).min(self.allowed()) / 3;
        if room >= self.longest_burst() * u64::from(self.mss)
            || room >= third
            || all_fits
            || self.board.is_empty()
        {
            return false;
        }
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        let expected = self.board.record(self.board.head()).sent_at.saturating_add(srtt);
        expected <= now.saturating_add(SOON.min(srtt / 2))
    }

    fn may_burst(&self, len: u32) -> bool {
        len >= self.mss && self.pacer.is_none() && !self.cuts_blocks()
    }

    /// Full segments that Linux would send in one piece now; at least one.
    fn burst(&self) -> u8 {
        let segments = |bytes: u64| bytes / u64::from(self.mss);
        let free = segments(self.allowed().saturating_sub(self.pipe()));
        let half = segments(self.allowed()) / 2;
        let waiting = segments(self.usable_window().min(self.unsent() as u64));
        let count = free.min(half).min(waiting).min(self.longest_burst()).max(1);
        u8::try_from(count).unwrap_or(u8::MAX)
    }

    /// Full segments of about a millisecond at the rate at which a window leaves in a round trip, and more on short paths.
    fn longest_burst(&self) -> u64 {
        let rtt = &self.rtt;
        let at_rate = rtt.srtt().map_or(u64::MAX, |srtt| self.window_rate(srtt).as_bps() / 8 / RATE_DIVISOR);
        let halvings = rtt.min().as_nanos() / 1000 / HALVED_PER_US;
        let on_short_path =
            u32::try_from(halvings).ok().and_then(|count| MOST_BYTES.checked_shr(count)).unwrap_or(0);
        let bytes = at_rate.saturating_add(on_short_path).min(MOST_BYTES);
        (bytes / u64::from(self.mss)).max(LEAST_SEGMENTS)
    }
}

/// An acknowledgement within this time is due soon, and a segment within it was sent just now.
const SOON: Duration = Duration::from_millis(1);
/// `sk_pacing_shift` is 10: a 1024th of a second.
const RATE_DIVISOR: u64 = 1024;
/// `tcp_tso_rtt_log` is 9: what is added halves with each 512 microseconds of the least round-trip time.
const HALVED_PER_US: u64 = 512;
/// `tcp_min_tso_segs`.
const LEAST_SEGMENTS: u64 = 2;
/// `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER`, about.
const MOST_BYTES: u64 = 65_536 - 320;
