//! Westwood+: Grieco and Mascolo 2004 (ACM CCR 34:2), section 3, with the filter and the constants of Linux's
//! `tcp_westwood.c`.
//!
//! Deviations: the first interval begins with the first acknowledgement that has a round-trip time; an estimate is
//! never forgotten.

use base::{Duration, Instant};

use super::Estimator;
use crate::congestion::AckSample;

/// One rate sample a round trip, in two low-pass filters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plus {
    /// The begin of the interval; none before the first acknowledgement.
    since: Option<Instant>,
    /// Bytes that arrived in it.
    bytes: u64,
    /// Bytes per second after one filter, and after both.
    once: f64,
    twice: f64,
}

impl Plus {
    fn filter(&mut self, sample: f64) {
        if self.twice == 0.0 {
            (self.once, self.twice) = (sample, sample);
            return;
        }
        self.once = OLD * self.once + (1.0 - OLD) * sample;
        self.twice = OLD * self.twice + (1.0 - OLD) * self.once;
    }
}

impl Estimator for Plus {
    fn on_ack(&mut self, ack: &AckSample, bytes: u64, _window: u64) {
        let Some(since) = self.since else {
            self.since = ack.srtt.map(|_| ack.now);
            return;
        };
        self.bytes += bytes;
        let interval = ack.now.saturating_since(since);
        let rtt = ack.rtt.or(ack.srtt).unwrap_or(Duration::ZERO);
        if interval >= rtt.max(MIN_INTERVAL) {
            self.filter(self.bytes as f64 / interval.as_secs_f64());
            (self.since, self.bytes) = (Some(ack.now), 0);
        }
    }

    fn rate(&self) -> f64 {
        self.twice
    }
}

/// Weight of the old value; Linux, `westwood_do_filter`.
const OLD: f64 = 7.0 / 8.0;
/// Linux, `TCP_WESTWOOD_RTT_MIN`.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms};

    fn arrive(plus: &mut Plus, ms: u64, bytes: u64) {
        let srtt = Some(Duration::from_millis(100));
        plus.on_ack(&AckSample { now: at_ms(ms), srtt, ..ack(MSS, MSS) }, bytes, MSS);
    }

    /// Section 3: a sample is what arrived in a round trip; Linux: 7/8 old and 1/8 new, twice.
    #[test]
    fn a_round_trip_is_a_sample() {
        let mut plus = Plus::default();
        arrive(&mut plus, 0, 9000);
        arrive(&mut plus, 50, 4000);
        assert_eq!(plus.rate(), 0.0);
        arrive(&mut plus, 100, 6000);
        assert_eq!(plus.rate(), 100_000.0);
        arrive(&mut plus, 150, 10_000);
        arrive(&mut plus, 200, 10_000);
        // One filter: 7/8 * 100 + 1/8 * 200 = 112.5; the other: 7/8 * 100 + 1/8 * 112.5 = 101.5625 kB/s.
        assert_eq!((plus.once, plus.rate()), (112_500.0, 101_562.5));
    }

    /// Linux: no interval is below 50 ms.
    #[test]
    fn short_round_trips_are_measured_over_fifty_ms() {
        let mut plus = Plus::default();
        let arrive = |plus: &mut Plus, ms| {
            let rtt = Some(Duration::from_millis(5));
            plus.on_ack(&AckSample { now: at_ms(ms), rtt, srtt: rtt, ..ack(MSS, MSS) }, MSS, MSS);
        };
        for ms in (0..50).step_by(5) {
            arrive(&mut plus, ms);
        }
        assert_eq!(plus.rate(), 0.0);
        arrive(&mut plus, 50);
        assert_eq!(plus.rate(), 200_000.0);
    }
}
