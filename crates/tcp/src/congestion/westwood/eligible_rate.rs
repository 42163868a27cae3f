//! The Eligible Rate Estimate: Wang, Valla, Sanadidi, Ng, Gerla 2002, "Adaptive bandwidth share estimation in TCP
//! Westwood" (Globecom), sections 3.1 to 3.3.
//!
//! Samples are taken over an interval that adapts to congestion, from the time between two acknowledgements while
//! the path is clear to a round trip while it is full; and they pass a filter whose time constant grows with how
//! unsteady they are.
//!
//! Deviations:
//! - an interval is lengthened to the acknowledgement before it: part of a gap would count its bytes and not its time;
//! - acknowledgements closer together than a 64th of a round trip share an entry of the history;
//! - the history goes back no further than the smoothed round trip.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::Estimator;
use crate::congestion::AckSample;

/// Adaptive sampling, adaptive filtering.
#[derive(Clone, Debug, Default)]
pub struct EligibleRate {
    /// `t_(k-1)`.
    last: Option<Instant>,
    /// Bytes in all.
    arrived: u64,
    /// What had arrived by when, over the last round trip, and at least one entry older than that.
    history: VecDeque<(Instant, u64)>,
    /// What was achieved lately, the last sample, and the estimate: bytes per second.
    throughput: f64,
    sample: f64,
    estimate: f64,
    instability: Instability,
}

impl EligibleRate {
    fn remember(&mut self, now: Instant, rtt: Duration) {
        let begin = now.saturating_sub(rtt);
        while self.history.get(1).is_some_and(|&(at, _)| at <= begin) {
            self.history.pop_front();
        }
        let spacing = rtt / HISTORY;
        let len = self.history.len();
        // The last entry may move on while the one before it is close.
        let merge = len > 1 && now.saturating_since(self.history[len - 2].0) < spacing;
        if merge {
            self.history.pop_back();
        }
        self.history.push_back((now, self.arrived));
    }

    /// Bytes per second that arrived in the `span` before `now`.
    fn rate_over(&self, now: Instant, span: Duration) -> f64 {
        let begin = now.saturating_sub(span);
        let after = self.history.partition_point(|&(at, _)| at <= begin);
        // Where the history starts later than the span, the rate is that since its start.
        let (since, arrived) = self.history[after.saturating_sub(1)];
        let elapsed = now.saturating_since(since).as_secs_f64();
        if elapsed > 0.0 { (self.arrived - arrived) as f64 / elapsed } else { 0.0 }
    }

    /// Section 3.1: a round trip times the part of the window that does not fit into the path at the achieved rate.
    fn interval(&mut self, ack: &AckSample, rtt: Duration, gap: Duration, window: u64) -> Duration {
        let recent = self.rate_over(ack.now, rtt);
        self.throughput = THROUGHPUT_OLD * self.throughput + (1.0 - THROUGHPUT_OLD) * recent;
        let window = window.max(1) as f64;
        let fits = self.throughput * ack.rtt_min.min(rtt).as_secs_f64();
        Duration::from_secs_f64(rtt.as_secs_f64() * ((window - fits) / window).max(0.0)).max(gap)
    }

    /// Section 3.2: a low-pass filter, discretized with the bilinear transformation.
    fn filter(&mut self, sample: f64, gap: Duration, rtt: Duration) {
        let previous = core::mem::replace(&mut self.sample, sample);
        if self.estimate == 0.0 {
            self.estimate = sample;
            return;
        }
        let instability = self.instability.on_sample((sample - previous).abs());
        let tau = rtt.as_secs_f64() * (1.0 + N * instability);
        let gap = gap.as_secs_f64();
        let gain = ((2.0 * tau - gap) / (2.0 * tau + gap)).clamp(0.0, 1.0);
        self.estimate = gain * self.estimate + (1.0 - gain) * sample;
    }
}

impl Estimator for EligibleRate {
    fn on_ack(&mut self, ack: &AckSample, bytes: u64, window: u64) {
        let Some(rtt) = ack.srtt.filter(|rtt| !rtt.is_zero()) else { return };
        self.arrived = self.arrived.saturating_add(bytes);
        let last = self.last.unwrap_or(ack.now);
        if self.last.is_none() {
            self.history.push_back((ack.now, self.arrived));
        }
        let gap = ack.now.saturating_since(last);
        if gap.is_zero() {
            // Several at once: the next one after a while tells of all of them.
            self.last = Some(ack.now);
            return;
        }
        let interval = self.interval(ack, rtt, gap, window);
        let sample = self.rate_over(ack.now, interval);
        self.remember(ack.now, rtt);
        self.last = Some(ack.now);
        self.filter(sample, gap, rtt);
    }

    fn rate(&self) -> f64 {
        self.estimate
    }
}

/// How much samples differ from one to the next (section 3.3).
#[derive(Clone, Debug, Default)]
struct Instability {
    /// The last ten values of `U`, bytes per second; the youngest is at `at`.
    recent: [f64; RECENT],
    at: usize,
}

impl Instability {
    /// Takes the difference of two samples: `U / U_max`, from 0, steady, to 1, as unsteady as ever lately.
    fn on_sample(&mut self, difference: f64) -> f64 {
        let value = SMOOTHING * self.recent[self.at] + (1.0 - SMOOTHING) * difference;
        self.at = (self.at + 1) % RECENT;
        self.recent[self.at] = value;
        let most = self.recent.iter().fold(0.0, |most: f64, &it| most.max(it));
        if most > 0.0 { value / most } else { 0.0 }
    }
}

/// Entries of the history in a round trip.
const HISTORY: u64 = 64;
/// Section 3.1: the weight of the old throughput.
const THROUGHPUT_OLD: f64 = 0.6;
/// Section 3.3: the round trips that an unsteady time constant has beyond one.
const N: f64 = 10.0;
/// Section 3.3: `beta` of the instability's average.
const SMOOTHING: f64 = 0.6;
/// Section 3.3: `U_max` is the largest of so many.
const RECENT: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms};

    const RTT: Duration = Duration::from_millis(100);

    fn arrive(ere: &mut EligibleRate, ms: u64, window: u64) {
        let sample = AckSample { now: at_ms(ms), srtt: Some(RTT), rtt_min: RTT, ..ack(MSS, window) };
        ere.on_ack(&sample, MSS, window);
    }

    /// Section 3.1: on a clear path the interval is the gap before the acknowledgement, as of packet pairs: 1000
    /// bytes in 10 ms.
    #[test]
    fn a_clear_path_is_sampled_from_gap_to_gap() {
        let mut ere = EligibleRate::default();
        // Ten segments arrive in a round trip: the window is ten.
        for at in 0..=20 {
            arrive(&mut ere, 10 * at, 10 * MSS);
        }
        let sample = AckSample { now: at_ms(202), srtt: Some(RTT), rtt_min: RTT, ..ack(MSS, 10 * MSS) };
        ere.on_ack(&sample, MSS, 10 * MSS);
        assert!((ere.sample - 500_000.0).abs() < 1.0, "{}", ere.sample);
    }

    /// Section 3.1: twice the window for the same rate means that half of it queues: half a round trip is sampled.
    #[test]
    fn a_full_path_is_sampled_over_more_of_the_round_trip() {
        let mut ere = EligibleRate::default();
        for at in 0..=20 {
            arrive(&mut ere, 10 * at, 20 * MSS);
        }
        let now = at_ms(202);
        ere.arrived += MSS;
        let sample = AckSample { now, srtt: Some(RTT), rtt_min: RTT, ..ack(MSS, 20 * MSS) };
        let interval = ere.interval(&sample, RTT, Duration::from_millis(2), 20 * MSS);
        // Half of 20 segments fit at 10 in 100 ms; a little more arrived in the last 100 ms.
        assert!(interval.as_millis().abs_diff(49) <= 2, "{interval}");
    }

    /// Section 3.2: alpha = (2 tau - gap) / (2 tau + gap); with unsteady samples tau is eleven round trips.
    #[test]
    fn the_filter_follows_its_time_constant() {
        let mut ere = EligibleRate { sample: 100_000.0, estimate: 100_000.0, ..EligibleRate::default() };
        // The first difference is the largest yet: tau = 1100 ms, alpha = (2200 - 10) / (2200 + 10).
        ere.filter(200_000.0, Duration::from_millis(10), RTT);
        let expected = 100_000.0 + 100_000.0 * 20.0 / 2210.0;
        assert!((ere.estimate - expected).abs() < 1e-6, "{}", ere.estimate);
    }

    /// Section 3.3: U = 0.6 U + 0.4 |difference|, as a part of the largest of ten.
    #[test]
    fn steady_samples_shorten_the_time_constant() {
        let mut instability = Instability::default();
        assert_eq!(instability.on_sample(100.0), 1.0);
        assert!((instability.on_sample(0.0) - 0.6).abs() < 1e-12);
        for _ in 0..8 {
            instability.on_sample(0.0);
        }
        // The value of 40 has left the ten: the largest is 24, the last 24 * 0.6^9.
        let part = instability.on_sample(0.0);
        assert!((part - 0.010_077_696).abs() < 1e-9, "{part}");
    }

    /// The history stays within its bound, whatever the rate of acknowledgements.
    #[test]
    fn the_history_is_bounded() {
        let mut ere = EligibleRate::default();
        for at in 0..100_000_u64 {
            let now = Instant::from_nanos(at * 10_000);
            let sample = AckSample { now, srtt: Some(RTT), rtt_min: RTT, ..ack(MSS, 100 * MSS) };
            ere.on_ack(&sample, MSS, 100 * MSS);
            assert!(ere.history.len() <= HISTORY as usize + 3, "{}", ere.history.len());
        }
    }

    /// Section 3.3: steady samples have a time constant of a round trip, so the estimate follows a path that changes within a few.
    #[test]
    fn a_steady_estimate_follows_the_path() {
        let mut ere = EligibleRate::default();
        let mut ms = 0;
        for _ in 0..4000 {
            ms += 2;
            arrive(&mut ere, ms, 50 * MSS);
        }
        assert!((ere.rate() - 500_000.0).abs() < 5000.0, "{}", ere.rate());
        for _ in 0..100 {
            ms += 10;
            arrive(&mut ere, ms, 50 * MSS);
        }
        assert!(
            (ere.rate() - 100_000.0).abs() < 20_000.0,
            "{} a second after the path has changed",
            ere.rate()
        );
    }
}
