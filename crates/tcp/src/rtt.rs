//! The round-trip time and the retransmission time-out: RFC 6298, with several samples per round trip weighed
//! as in RFC 7323, appendix G.
//!
//! Deviations:
//! - the number of samples expected per round trip is rounded to a power of two, which spares two divisions an ACK;
//! - the variance term has a configured floor, as in Linux, where the RFC has the clock granularity (2.3);
//! - after a lost SYN (5.7), a sample that timestamps could give counts for more than the 3 s.

use base::Duration;

use crate::config::TcpConfig;

/// Smoothed round-trip time, its variation, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// Nanoseconds; zero before the first sample.
    srtt: u64,
    rttvar: u64,
    min: Duration,
    rto: Duration,
    min_rto: Duration,
    max_rto: Duration,
    margin: Duration,
}

impl RttEstimator {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        Self {
            srtt: 0,
            rttvar: 0,
            min: Duration::MAX,
            rto: config.initial_rto.min(config.max_rto),
            min_rto: config.min_rto,
            max_rto: config.max_rto,
            margin: config.rto_margin,
        }
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
        self.rto.saturating_mul(1 << doublings.min(63)).min(self.max_rto)
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

    /// Takes a sample, one of about `2^samples_log2` in this round trip.
    pub(crate) fn on_sample(&mut self, rtt: Duration, samples_log2: u32) {
        self.on_minimum_candidate(rtt);
        // Zero means "no sample".
        let sample = rtt.as_nanos().max(1);
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (sample, sample / 2);
        } else {
            let error = sample as i64 - self.srtt as i64;
            let spread = error.abs() - self.rttvar as i64;
            self.rttvar = self.rttvar.saturating_add_signed(spread >> (2 + samples_log2));
            self.srtt = self.srtt.saturating_add_signed(error >> (3 + samples_log2)).max(1);
        }
        let margin = self.margin.max(Duration::from_nanos(4 * self.rttvar));
        self.rto = (Duration::from_nanos(self.srtt) + margin).max(self.min_rto).min(self.max_rto);
    }

    /// The SYN's timer expired, so the first samples may be far off: RFC 6298 (5.7) starts data at 3 s.
    pub(crate) fn on_lost_syn(&mut self) {
        if self.srtt == 0 {
            self.rto = self.rto.max(AFTER_LOST_SYN).min(self.max_rto);
        }
    }
}

/// RFC 6298 (5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(min_rto: u64, margin: u64) -> RttEstimator {
        RttEstimator::new(&TcpConfig {
            min_rto: Duration::from_millis(min_rto),
            rto_margin: Duration::from_millis(margin),
            ..TcpConfig::default()
        })
    }

    /// RFC 6298 (2.2) and (2.3).
    #[test]
    fn samples_move_the_estimate_as_the_rfc_computes() {
        let mut rtt = estimator(0, 1);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.on_sample(Duration::from_millis(400), 0);
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(400)));
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 4 * 200));
        rtt.on_sample(Duration::from_millis(480), 0);
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
            rtt.on_sample(Duration::from_millis(400), 0);
        }
        one.on_sample(Duration::from_millis(800), 0);
        for _ in 0..16 {
            many.on_sample(Duration::from_millis(800), 4);
        }
        let gap = one.srtt().unwrap().abs_diff(many.srtt().unwrap());
        assert!(gap < Duration::from_millis(5), "{gap}");
    }

    #[test]
    fn floors_and_ceilings_hold() {
        let mut rtt = estimator(1000, 200);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(50), 0);
        }
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        let mut rtt = estimator(200, 200);
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(500), 0);
        }
        assert_eq!(rtt.rto(), Duration::from_millis(700));
        assert_eq!(rtt.backed_off(2), Duration::from_millis(2800));
        assert_eq!(rtt.backed_off(40), Duration::from_secs(60));
    }

    /// RFC 6298 (5.7).
    #[test]
    fn a_lost_syn_makes_the_first_timeout_three_seconds() {
        let mut rtt = estimator(200, 200);
        rtt.on_lost_syn();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }
}
