//! Token buckets, by which work that others ask for is limited.

use base::{Duration, Instant};

/// At most `burst` at once, one more each `interval`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    burst: u64,
    interval: Duration,
    /// The bucket is full at this instant or later.
    full_at: Instant,
}

impl Allowance {
    pub(crate) const fn new(burst: u64, interval: Duration) -> Self {
        Self { burst, interval, full_at: Instant::ZERO }
    }

    /// Whether one more is allowed now.
    pub(crate) fn has(&self, now: Instant) -> bool {
        self.full_at.max(now) + self.interval <= now + self.interval * self.burst
    }

    /// Whether half of it or more is taken.
    pub(crate) fn is_scarce(&self, now: Instant) -> bool {
        self.full_at.saturating_since(now) >= self.interval * (self.burst / 2)
    }

    /// Whether one more is allowed now; if so, it counts.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let allowed = self.has(now);
        if allowed {
            self.full_at = self.full_at.max(now) + self.interval;
        }
        allowed
    }
}
