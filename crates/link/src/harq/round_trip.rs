//! How long a report may take to come: RFC 6298, section 2, over what the reports of a link show.
//!
//! Deviations: the variance is one of transmissions, a sample each; a bound that the owner knows stands in place of the clock's granularity
//! and of the minimum.

use base::Duration;

/// The smoothed round trip and its variance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// `None` before the first sample.
    smoothed: Option<Duration>,
    variance: Duration,
    /// Time-outs in a row.
    backoff: u32,
}

impl RoundTrip {
    /// A report has come so long after what it reports left.
    pub(super) fn on_sample(&mut self, sample: Duration) {
        self.backoff = 0;
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variance) = (Some(sample), sample / 2);
            return;
        };
        self.variance = (self.variance * 3 + smoothed.abs_diff(sample)) / 4;
        self.smoothed = Some((smoothed * 7 + sample) / 8);
    }

    /// Nothing came in time.
    pub(super) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(MOST_BACKOFF);
    }

    /// How long to wait, `margin` longer than the round trip at least.
    pub(super) fn timeout(&self, margin: Duration) -> Duration {
        let base = self.smoothed.map_or(INITIAL, |smoothed| smoothed + (self.variance * 4).max(margin));
        base.saturating_mul(1 << self.backoff).min(LONGEST.max(base))
    }
}

/// Before the first sample. RFC 6298 (2.1) says 1 s; ours is what it was before that (appendix A), since a satellite's round trip with
/// requests for capacity takes more than 1 s.
const INITIAL: Duration = Duration::from_secs(3);

/// RFC 6298 (2.5) allows a maximum of 60 s and more. Ours: as often as SLACP asks at least, so that a link comes back soon after an outage.
const LONGEST: Duration = Duration::from_secs(30);

/// Doublings; more would reach [`LONGEST`] from anywhere.
const MOST_BACKOFF: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_follows_the_samples_and_backs_off() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout(ms(20)), INITIAL);
        round_trip.on_sample(ms(100));
        assert_eq!(round_trip.timeout(ms(20)), ms(300));
        (0..100).for_each(|_| round_trip.on_sample(ms(100)));
        assert!(round_trip.timeout(ms(20)).abs_diff(ms(120)) < ms(1));
        round_trip.on_timeout();
        round_trip.on_timeout();
        assert!(round_trip.timeout(ms(20)).abs_diff(ms(480)) < ms(4));
        (0..100).for_each(|_| round_trip.on_timeout());
        assert_eq!(round_trip.timeout(ms(20)), LONGEST);
        round_trip.on_sample(ms(180));
        assert!(round_trip.timeout(ms(20)) > ms(180) && round_trip.timeout(ms(20)) < ms(200));
    }
}
