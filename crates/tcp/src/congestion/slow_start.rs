//! Slow start: RFC 5681 (3.1) with the byte counting of RFC 3465.
//!
//! Deviations: none.

use super::Start;

/// Growth of a window below a threshold; a part of every controller that has one.
#[derive(Clone, Copy, Debug)]
pub struct SlowStart {
    threshold: u64,
    /// Bytes that one acknowledgement can open the window by.
    limit: u64,
    mss: u64,
    after_timeout: bool,
}

impl SlowStart {
    /// Slow start up to the threshold that `start` names.
    #[must_use]
    pub const fn new(start: &Start) -> Self {
        let limit = start.mss.saturating_mul(start.byte_counting_limit);
        Self { threshold: start.ssthresh, limit, mss: start.mss, after_timeout: false }
    }

    /// The threshold, `ssthresh`, in bytes.
    #[must_use]
    pub const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Whether a window of this size is in slow start.
    #[must_use]
    pub const fn active(&self, window: u64) -> bool {
        window < self.threshold
    }

    /// Lowers the threshold after congestion.
    pub fn set_threshold(&mut self, threshold: u64, timeout: bool) {
        self.threshold = threshold;
        // RFC 3465 (2.3): after a time-out, acknowledgements may cover data that left the network before it.
        self.after_timeout = timeout;
    }

    /// The window after `acked` bytes were acknowledged.
    #[must_use]
    pub const fn grow(&self, window: u64, acked: u64) -> u64 {
        let limit = if self.after_timeout { self.mss } else { self.limit };
        window + if acked < limit { acked } else { limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_acked_bytes_up_to_the_limit() {
        let mut start = SlowStart::new(&Start {
            mss: 1000,
            initial_window: 1000,
            byte_counting_limit: 2,
            ssthresh: u64::MAX,
        });
        assert!(start.active(u64::MAX - 1));
        assert_eq!(start.grow(4000, 500), 4500);
        assert_eq!(start.grow(4000, 1500), 5500);
        assert_eq!(start.grow(4000, 9000), 6000);
        start.set_threshold(4000, true);
        assert_eq!(start.grow(1000, 9000), 2000);
        assert!(start.active(3999) && !start.active(4000));
    }
}
