//! Sharing: how much of the bottleneck is ours while somebody else keeps a queue there.
//!
//! A queue that sending less does not drain may be somebody else's. Then the rate is half of what the bottleneck carries at least, and no more once that is sure.
//! Where the queue overflows nevertheless, there are several others, and the share goes down.

use base::{Duration, Instant};

/// Our share, and how sure it is that there is somebody to share with.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Somebody else's queue was found at the bottleneck of late.
    until: Instant,
    /// Experiments with a queue that failed, one after the other.
    failures: u32,
    share: f64,
    cut_at: Instant,
}

/// Of a bottleneck with somebody else's queue: as with one other flow that is as good as ours.
const SHARE: f64 = 0.5;
/// What is left of the share each time that the queue has overflowed for so long. Ours.
const CUT: f64 = 0.9;
const CUT_EVERY: Duration = Duration::from_secs(4);
/// The share at least. Ours.
const LEAST: f64 = 0.1;
/// What the share gains in a window without overflow. Ours.
const GAIN: f64 = 0.02;
/// Failures in a row from which on it is sure that the queue is somebody else's. Ours.
const SURE: u32 = 2;
/// How long it counts as somebody else's after it was last found. Ours.
const MEMORY: Duration = Duration::from_secs(10);

impl Default for Sharing {
    fn default() -> Self {
        Self { until: Instant::ZERO, failures: 0, share: SHARE, cut_at: Instant::ZERO }
    }
}

impl Sharing {
    /// Whether somebody else's queue was found of late.
    #[must_use]
    pub fn is_found(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Whether it is sure that the queue is somebody else's.
    #[must_use]
    pub const fn is_sure(&self) -> bool {
        self.failures >= SURE
    }

    /// Our part of what the bottleneck carries.
    #[must_use]
    pub const fn share(&self) -> f64 {
        self.share
    }

    /// A queue drained: it was ours.
    pub const fn on_drained(&mut self) {
        self.failures = 0;
    }

    /// A queue did not drain, which is tried again after `quiet_until`.
    pub fn on_not_drained(&mut self, quiet_until: Instant) {
        self.failures += 1;
        self.until = quiet_until + MEMORY;
    }

    /// Whether that queue overflows: while it does, the share becomes less, and more again when it does not.
    pub fn contend(&mut self, now: Instant, overflows: bool) {
        if !overflows {
            self.share = (self.share + GAIN).min(SHARE);
            return;
        }
        if now >= self.cut_at + CUT_EVERY {
            self.share = (self.share * CUT).max(LEAST);
            self.cut_at = now;
        }
        self.failures = self.failures.max(SURE);
        self.until = self.until.max(now + MEMORY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn two_queues_in_a_row_that_do_not_drain_are_somebody_elses() {
        let mut sharing = Sharing::default();
        sharing.on_not_drained(at(20));
        assert!(!sharing.is_sure() && sharing.is_found(at(29)) && !sharing.is_found(at(30)));
        sharing.on_drained();
        sharing.on_not_drained(at(50));
        assert!(!sharing.is_sure());
        sharing.on_not_drained(at(90));
        assert!(sharing.is_sure());
    }

    #[test]
    fn the_share_goes_down_by_a_tenth_every_four_seconds_to_a_tenth_and_comes_back() {
        let mut sharing = Sharing::default();
        (10..18).for_each(|now| sharing.contend(at(now), true));
        assert!((sharing.share() - 0.5 * 0.81).abs() < 1e-9 && sharing.is_sure());
        assert!(sharing.is_found(at(26)) && !sharing.is_found(at(27)));
        (20..200).for_each(|now| sharing.contend(at(now), true));
        assert_eq!(sharing.share(), LEAST);
        (0..19).for_each(|_| sharing.contend(at(200), false));
        assert!(sharing.share() < SHARE);
        (0..9).for_each(|_| sharing.contend(at(200), false));
        assert_eq!(sharing.share(), SHARE);
    }
}
