//! The round-trip time and the retransmission time-out: RFC 6298, with several samples per round trip weighed
//! as in RFC 7323, appendix G; or as Linux computes them since 2.4 (`tcp_rtt_estimator`, `tcp_set_rto`).
//!
//! Deviations:
//! - the number of samples expected per round trip is rounded to a power of two, which spares two divisions an ACK;
//! - the variance term has a configured floor, as in Linux, where the RFC has the clock granularity (2.3);
//! - after a lost SYN (5.7), a sample that timestamps could give counts for more than the 3 s;
//! - Linux's is computed in nanoseconds, where 2.4 had ticks of 10 ms.

use core::num::NonZeroU32;
use std::sync::Arc;

use base::Duration;

use crate::config::{RtoEstimator, TcpConfig};

/// Smoothed round-trip time, its variation, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    config: Arc<TcpConfig>,
    /// Nanoseconds; zero before the first sample.
    srtt: u64,
    /// The mean deviation; Linux's `mdev`, less its scale of 4.
    rttvar: u64,
    linux: Linux,
    min: Duration,
    rto: Duration,
}

/// What Linux keeps beyond RFC 6298, in nanoseconds of time-out, so four times a deviation.
#[derive(Clone, Copy, Debug, Default)]
struct Linux {
    /// The largest deviation of this round trip: `mdev_max`.
    peak: u64,
    /// What the time-out exceeds `srtt` by: `rttvar`.
    margin: u64,
    /// The offset whose acknowledgement ends the round trip: `rtt_seq`.
    round_end: u64,
}

impl RttEstimator {
    pub(crate) fn new(config: &Arc<TcpConfig>) -> Self {
        Self {
            srtt: 0,
            rttvar: 0,
            linux: Linux::default(),
            min: Duration::MAX,
            rto: config.rto.initial.min(config.rto.max),
            config: Arc::clone(config),
        }
    }

    /// The time-outs that follow are another configuration's.
    pub(crate) fn set_config(&mut self, config: &Arc<TcpConfig>) {
        self.config = Arc::clone(config);
    }

    /// The time-out before back-off.
    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    /// The time-out after `doublings` of back-off (RFC 6298, 5.5).
    pub(crate) fn backed_off(&self, doublings: u32) -> Duration {
        if doublings == 0 {
            return self.rto;
        }
        let most = self.config.rto.max_backoff.map_or(63, NonZeroU32::ilog2);
        self.rto.saturating_mul(1 << doublings.min(most)).min(self.config.rto.max)
    }

    /// What the first `count` time-outs in a row come to.
    pub(crate) fn patience(&self, count: u32) -> Duration {
        // From here on they are equally long.
        let growing = count.min(64);
        let rest = self.backed_off(64).saturating_mul((count - growing).into());
        (0..growing).fold(rest, |sum, doublings| sum.saturating_add(self.backed_off(doublings)))
    }

    /// The smoothed round-trip time, once there is a sample.
    pub(crate) const fn srtt(&self) -> Option<Duration> {
        if self.srtt == 0 { None } else { Some(Duration::from_nanos(self.srtt)) }
    }

    /// The variation; zero before the first sample.
    pub(crate) const fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.rttvar)
    }

    /// The least sample; [`Duration::MAX`] before the first.
    pub(crate) const fn min(&self) -> Duration {
        self.min
    }

    /// Remembers the least round-trip time.
    pub(crate) fn on_minimum_candidate(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
    }

    /// Takes a sample, one of about `2^samples_log2` in this round trip, when SND.UNA and SND.NXT were `bounds`.
    pub(crate) fn on_sample(&mut self, rtt: Duration, samples_log2: u32, bounds: (u64, u64)) {
        self.on_minimum_candidate(rtt);
        // Zero means "no sample".
        let sample = rtt.as_nanos().max(1);
        let margin = match self.config.rto.estimator {
            RtoEstimator::Rfc6298 => {
                self.smooth(sample, samples_log2);
                (4 * self.rttvar).max(self.config.rto.margin.as_nanos())
            }
            RtoEstimator::Linux => {
                self.smooth_as_linux(sample, bounds);
                self.linux.margin
            }
        };
        self.set_rto(margin);
    }

    /// A sample after a spurious time-out sets the estimate (RFC 4015, 3.2, step 8).
    pub(crate) fn adapt(&mut self, sample: Duration, srtt: Duration, rttvar: Duration) {
        self.on_minimum_candidate(sample);
        (self.srtt, self.rttvar) = (srtt.as_nanos().max(1), rttvar.as_nanos());
        let margin = (4 * self.rttvar).max(self.config.rto.margin.as_nanos());
        (self.linux.peak, self.linux.margin) = (margin, margin);
        self.set_rto(margin);
    }

    fn set_rto(&mut self, margin: u64) {
        let rto = Duration::from_nanos(self.srtt.saturating_add(margin));
        self.rto = rto.max(self.config.rto.min).min(self.config.rto.max);
    }

    /// RFC 6298 (2.2) and (2.3).
    fn smooth(&mut self, sample: u64, samples_log2: u32) {
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (sample, sample / 2);
            return;
        }
        let error = sample as i64 - self.srtt as i64;
        let spread = error.abs() - self.rttvar as i64;
        self.rttvar = self.rttvar.saturating_add_signed(spread >> (2 + samples_log2));
        self.srtt = self.srtt.saturating_add_signed(error >> (3 + samples_log2)).max(1);
    }

    /// Every sample weighs the same. A falling round-trip time moves the deviation an eighth as much, so that it
    /// does not raise the time-out, and the time-out follows the largest deviation of a round trip.
    fn smooth_as_linux(&mut self, sample: u64, (una, nxt): (u64, u64)) {
        let floor = self.config.rto.margin.as_nanos();
        let linux = &mut self.linux;
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (sample, sample / 2);
            let margin = (4 * self.rttvar).max(floor);
            *linux = Linux { peak: margin, margin, round_end: nxt };
            return;
        }
        let error = sample as i64 - self.srtt as i64;
        let mut spread = error.abs() - self.rttvar as i64;
        if error < 0 && spread > 0 {
            spread >>= 3;
        }
        self.srtt = self.srtt.saturating_add_signed(error >> 3).max(1);
        self.rttvar = self.rttvar.saturating_add_signed(spread >> 2);
        linux.peak = linux.peak.max(4 * self.rttvar);
        linux.margin = linux.margin.max(linux.peak);
        if una > linux.round_end {
            linux.margin -= (linux.margin - linux.peak) / 4;
            (linux.round_end, linux.peak) = (nxt, floor);
        }
    }

    /// Starts with what another connection measured (RFC 9040, 6).
    pub(crate) fn seed(&mut self, srtt: Duration, rttvar: Duration) {
        (self.srtt, self.rttvar) = (srtt.as_nanos().max(1), rttvar.as_nanos());
        let margin = self.rttvar.saturating_mul(4).max(self.config.rto.margin.as_nanos());
        self.linux = Linux { peak: margin, margin, round_end: 0 };
        self.set_rto(margin);
    }

    /// The SYN's timer expired, so the first samples may be far off: RFC 6298 (5.7) starts data at 3 s.
    pub(crate) fn on_lost_syn(&mut self) {
        if self.srtt == 0 {
            self.rto = self.rto.max(AFTER_LOST_SYN).min(self.config.rto.max);
        }
    }
}

/// RFC 6298 (5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(min_rto: u64, margin: u64) -> RttEstimator {
        RttEstimator::new(&Arc::new(TcpConfig::default().with(|it| {
            it.rto.min = Duration::from_millis(min_rto);
            it.rto.margin = Duration::from_millis(margin);
        })))
    }

    /// RFC 6298 (2.2) and (2.3).
    #[test]
    fn samples_move_the_estimate_as_the_rfc_computes() {
        let mut rtt = estimator(0, 1);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.on_sample(Duration::from_millis(400), 0, (0, 0));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(400)));
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 4 * 200));
        rtt.on_sample(Duration::from_millis(480), 0, (0, 0));
        // rttvar = 3/4 * 200 + 1/4 * 80 = 170, srtt = 7/8 * 400 + 1/8 * 480 = 410.
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(410)));
        assert_eq!(rtt.rto(), Duration::from_millis(410 + 4 * 170));
        assert_eq!(rtt.min(), Duration::from_millis(400));
    }

    /// RFC 7323, appendix G: the more samples a round trip has, the less each weighs.
    #[test]
    fn many_samples_a_round_trip_weigh_less_each() {
        let (mut one, mut many) = (estimator(0, 1), estimator(0, 1));
        for rtt in [&mut one, &mut many] {
            rtt.on_sample(Duration::from_millis(400), 0, (0, 0));
        }
        one.on_sample(Duration::from_millis(800), 0, (0, 0));
        for _ in 0..16 {
            many.on_sample(Duration::from_millis(800), 4, (0, 0));
        }
        let gap = one.srtt().unwrap().abs_diff(many.srtt().unwrap());
        assert!(gap < Duration::from_millis(5), "{gap}");
    }

    #[test]
    fn floors_and_ceilings_hold() {
        let mut rtt = estimator(1000, 200);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(50), 0, (0, 0));
        }
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        let mut rtt = estimator(200, 200);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(500), 0, (0, 0));
        }
        assert_eq!(rtt.rto(), Duration::from_millis(700));
        assert_eq!(rtt.backed_off(2), Duration::from_millis(2800));
        assert_eq!(rtt.backed_off(40), Duration::from_secs(60));
    }

    /// ns-2's `TcpAgent::rtt_backoff` doubles up to 64 times and knows no other limit.
    #[test]
    fn back_off_may_end_at_a_multiple() {
        let backed_off = |most: u32, doublings| {
            let config = TcpConfig::default().with(|it| {
                it.rto.max = Duration::from_secs(10_000);
                it.rto.max_backoff = NonZeroU32::new(most);
            });
            RttEstimator::new(&Arc::new(config)).backed_off(doublings)
        };
        for doublings in [6, 7, 63] {
            assert_eq!(backed_off(64, doublings), Duration::from_secs(64));
            assert_eq!(backed_off(100, doublings), Duration::from_secs(64));
        }
        assert_eq!(backed_off(64, 5), Duration::from_secs(32));
        assert_eq!(backed_off(0, 7), Duration::from_secs(128));
    }

    #[test]
    fn patience_is_all_timeouts_together() {
        let patience = |most: u32, count| {
            let config = TcpConfig::default().with(|it| it.rto.max_backoff = NonZeroU32::new(most));
            RttEstimator::new(&Arc::new(config)).patience(count)
        };
        for (most, count, seconds) in
            [(0, 0, 0), (0, 3, 7), (0, 7, 123), (4, 3, 7), (4, 10, 35), (4, 100, 395)]
        {
            assert_eq!(patience(most, count), Duration::from_secs(seconds), "{most} {count}");
        }
    }

    /// RFC 6298 (5.7).
    #[test]
    fn a_lost_syn_makes_the_first_timeout_three_seconds() {
        let mut rtt = estimator(200, 200);
        rtt.on_lost_syn();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }

    fn linux() -> RttEstimator {
        RttEstimator::new(&Arc::new(TcpConfig::default().with(|it| {
            it.rto.estimator = RtoEstimator::Linux;
            it.rto.min = Duration::from_millis(1);
            it.rto.margin = Duration::from_millis(200);
        })))
    }

    fn sample(rtt: &mut RttEstimator, ms: u64, una: u64, nxt: u64) -> Duration {
        rtt.on_sample(Duration::from_millis(ms), 4, (una, nxt));
        rtt.rto()
    }

    /// Linux 2.4, `tcp_rtt_estimator`: three times the first sample, then never less than `srtt` and 200 ms.
    #[test]
    fn linux_keeps_the_largest_deviation_of_a_round_trip() {
        let mut rtt = linux();
        assert_eq!(sample(&mut rtt, 400, 1, 10), Duration::from_millis(400 + 4 * 200));
        // The same round trip: rttvar 200 -> 150, but the margin stays at its peak of 800 ms.
        assert_eq!(sample(&mut rtt, 400, 5, 12), Duration::from_millis(400 + 800));
        // It ends: the peak that was reached still holds; from here on a new peak counts.
        assert_eq!(sample(&mut rtt, 400, 11, 20), Duration::from_millis(400 + 800));
        // The next one ends with a peak of 4 * 84.375 ms at its first sample: the margin falls by a quarter of the gap.
        let rto = sample(&mut rtt, 400, 21, 30).as_nanos();
        let peak = 4 * (200_000_000_u64 * 27 / 64);
        assert_eq!(rto, 400_000_000 + 800_000_000 - (800_000_000 - peak) / 4);
        for round in 3..80 {
            sample(&mut rtt, 400, 10 * round + 1, 10 * round + 10);
        }
        assert!(rtt.rto().abs_diff(Duration::from_millis(600)) < Duration::from_millis(1), "{}", rtt.rto());
    }

    /// Linux 2.4, `tcp_rtt_estimator`: a sudden rise moves it by a quarter, so that a longer path brings no needless time-out.
    #[test]
    fn a_rising_round_trip_time_raises_linuxs_deviation() {
        let mut rtt = linux();
        for at in 0..100 {
            sample(&mut rtt, 400, 10 * at + 1, 10 * at + 10);
        }
        sample(&mut rtt, 1200, 1001, 1010);
        let rttvar = rtt.rttvar();
        assert!(rttvar.abs_diff(Duration::from_millis(200)) < Duration::from_millis(1), "{rttvar}");
    }

    /// Linux 2.4, `tcp_rtt_estimator`: a sudden fall of the round-trip time moves the deviation by a thirty-second.
    #[test]
    fn a_falling_round_trip_time_does_not_raise_linuxs_timeout() {
        let mut rtt = linux();
        for round in 0..100 {
            sample(&mut rtt, 1000, 10 * round + 1, 10 * round + 10);
        }
        let before = rtt.rttvar();
        sample(&mut rtt, 200, 1001, 1010);
        let risen = rtt.rttvar() - before;
        assert!(risen < Duration::from_millis(26) && risen > Duration::from_millis(24), "{risen}");
        assert!(rtt.rto() < Duration::from_millis(1110), "{}", rtt.rto());
    }

    /// RFC 6298: a sudden fall of the round-trip time moves the deviation by a quarter, so the time-out rises
    /// although the path got faster.
    #[test]
    fn a_falling_round_trip_time_raises_the_rfcs_timeout() {
        let mut rtt = estimator(1, 200);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(1000), 0, (0, 0));
        }
        rtt.on_sample(Duration::from_millis(200), 0, (0, 0));
        assert!(rtt.rto() > Duration::from_millis(1600), "{}", rtt.rto());
    }

    /// Linux 2.4, `tcp_rtt_estimator`: a round trip ends with the acknowledgement of what was sent after its begin, not with that of all that
    /// was outstanding then.
    #[test]
    fn linuxs_round_trip_ends_with_what_was_sent_after_it() {
        let mut rtt = linux();
        sample(&mut rtt, 400, 1, 10);
        // Up to here: the largest deviation is still that of the first sample.
        sample(&mut rtt, 400, 10, 20);
        // Beyond: the next round trip begins, and its largest deviation counts when it ends in its turn.
        sample(&mut rtt, 400, 11, 30);
        assert_eq!(sample(&mut rtt, 400, 30, 40), Duration::from_millis(400 + 800));
        assert!(sample(&mut rtt, 400, 31, 50) < Duration::from_millis(400 + 800));
    }

    /// RFC 4015 (3.2, step 8), RFC 9040 (6): an estimate that somebody else gives sets Linux's margin too, and the next samples start from it.
    #[test]
    fn a_given_estimate_sets_linuxs_margin() {
        let of = |ms| Duration::from_millis(ms);
        let mut adapted = linux();
        sample(&mut adapted, 100, 1, 10);
        adapted.adapt(of(1000), of(1000), of(250));
        assert_eq!(adapted.rto(), of(2000));
        assert_eq!(sample(&mut adapted, 1000, 5, 12), of(2000));
        let mut seeded = linux();
        seeded.seed(of(1000), of(250));
        assert_eq!(seeded.rto(), of(2000));
        assert_eq!(sample(&mut seeded, 1000, 0, 12), of(2000));
    }
}
