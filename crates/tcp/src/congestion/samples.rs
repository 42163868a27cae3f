//! What unit tests of controllers feed them.

use base::{Duration, Instant};

use super::{AckSample, Cause, Congestion, Start};
use crate::config::SlowStart;

/// Payload bytes of the tests' segments.
pub(crate) const MSS: u64 = 1000;

/// A start with this many segments of window, and no threshold.
pub(crate) const fn start(segments: u64) -> Start {
    Start {
        mss: MSS,
        initial_window: segments * MSS,
        byte_counting_limit: 1,
        ssthresh: u64::MAX,
        srtt: None,
        slow_start: SlowStart::Standard,
        paced: false,
        paired: false,
    }
}

/// An acknowledgement of `bytes` while `prior_in_flight` were out, in a window that kept more back.
pub(crate) const fn ack(bytes: u64, prior_in_flight: u64) -> AckSample {
    AckSample {
        now: Instant::ZERO,
        bytes,
        delivered_bytes: bytes,
        rtt: None,
        srtt: None,
        rtt_min: Duration::MAX,
        in_flight: prior_in_flight.saturating_sub(bytes),
        prior_in_flight,
        limited_by_window: true,
        most_outstanding: prior_in_flight,
        delivery: None,
        round: 0,
        recovering: false,
        duplicate: false,
    }
}

/// An acknowledgement of `bytes` while `prior_in_flight` were out, where the application had no more to send.
pub(crate) const fn spare(bytes: u64, prior_in_flight: u64) -> AckSample {
    AckSample { limited_by_window: false, ..ack(bytes, prior_in_flight) }
}

/// Congestion with this much outstanding.
pub(crate) const fn congestion(flight_size: u64, cause: Cause) -> Congestion {
    Congestion { now: Instant::ZERO, flight_size, cause, sent_at: None, resent: false }
}

/// `ms` milliseconds after the start.
pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
