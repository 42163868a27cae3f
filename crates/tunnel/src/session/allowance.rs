//! Token buckets, by which work that others ask for is limited.

use base::{Duration, Instant};

/// At most `burst` at once, one more each `interval`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    burst: u64,
    interval: Duration,
    /// The bucket is full at this instant or later.
    full_at: Instant,
}

impl Allowance {
    pub(super) const fn new(burst: u64, interval: Duration) -> Self {
        Self { burst, interval, full_at: Instant::ZERO }
    }

    /// Whether one more is allowed now; if so, it counts.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let allowed = full_at <= now + self.interval * self.burst;
        if allowed {
            self.full_at = full_at;
        }
        allowed
    }
}
