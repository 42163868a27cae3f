//! TCP Westwood: a window that congestion sets to what a rate estimate says fits into the path. Mascolo, Casetti,
//! Gerla, Sanadidi, Wang 2001 (Mobicom), sections 3 and 4, with one of two estimators: [`EligibleRate`] or [`Plus`].
//!
//! Deviations:
//! - without an estimate the response is Reno's;
//! - growth is Reno's as it is here: byte counting, and only while the window is used;
//! - a marked window is answered like a loss (RFC 3168, 5).

mod eligible_rate;
mod plus;

use core::fmt::Debug;

use base::{Duration, Instant};

use super::{AckSample, Cause, Congestion, Controller, Reno, Start};

pub use eligible_rate::EligibleRate;
pub use plus::Plus;

/// Estimates the rate at which a connection's data arrive.
pub trait Estimator: Debug + Send {
    /// An acknowledgement that accounts for `bytes` more arrived; the window was this large, in bytes.
    fn on_ack(&mut self, ack: &AckSample, bytes: u64, window: u64);

    /// Bytes per second; zero while there is no estimate.
    fn rate(&self) -> f64;
}

/// Reno's growth, and a response that follows from a rate estimate.
#[derive(Clone, Debug)]
pub struct Westwood<E> {
    mss: u64,
    reno: Reno,
    rtt_min: Duration,
    count: AckedCount,
    estimator: E,
}

impl<E: Estimator + Default> Westwood<E> {
    /// A controller in slow start, without an estimate.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            mss: start.mss,
            reno: Reno::new(start),
            rtt_min: Duration::MAX,
            count: AckedCount::default(),
            estimator: E::default(),
        }
    }

    /// What fits into the path at the estimated rate, in bytes; none before there is an estimate.
    fn share(&self) -> Option<u64> {
        let rate = self.estimator.rate();
        // A float-to-integer cast saturates.
        let bytes = (rate * self.rtt_min.as_secs_f64()) as u64;
        (rate > 0.0 && self.rtt_min < Duration::MAX).then_some(bytes.clamp(2 * self.mss, super::MAX_WINDOW))
    }
}

impl<E: Estimator + Default> Controller for Westwood<E> {
    fn on_ack(&mut self, ack: &AckSample) {
        self.rtt_min = ack.rtt_min;
        let bytes = self.count.on_ack(ack.bytes, self.mss);
        self.estimator.on_ack(ack, bytes, self.reno.window());
        self.reno.on_ack(ack);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let Some(share) = self.share() else { return self.reno.on_congestion(event) };
        match event.cause {
            // 4.1: the window never rises here.
            Cause::Loss | Cause::Ecn => {
                let window = self.reno.window().min(share).max(self.mss);
                self.reno.reduce(window, share, false);
            }
            Cause::Timeout => self.reno.reduce(self.mss, share, true), // 4.2.
        }
    }

    fn on_restart(&mut self, now: Instant) {
        self.reno.on_restart(now);
    }

    fn window(&self) -> u64 {
        self.reno.window()
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        self.reno.set_window(window, ssthresh);
    }

    fn ssthresh(&self) -> Option<u64> {
        self.reno.ssthresh()
    }
}

/// Counts each arrived byte once (section 3.3, `AckedCount`): a duplicate is a segment, and the cumulative
/// acknowledgement that follows is less by what the duplicates told.
#[derive(Clone, Copy, Debug, Default)]
struct AckedCount {
    accounted: u64,
}

impl AckedCount {
    /// Bytes that an acknowledgement accounts for, if it moved SND.UNA by `acked`.
    fn on_ack(&mut self, acked: u64, mss: u64) -> u64 {
        if acked == 0 {
            self.accounted = self.accounted.saturating_add(mss);
            return mss;
        }
        if acked <= mss {
            return acked;
        }
        let fresh = acked.saturating_sub(self.accounted);
        self.accounted = self.accounted.saturating_sub(acked);
        if fresh == 0 { mss } else { fresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms, congestion, start};

    /// An estimator that knows.
    #[derive(Debug, Default)]
    struct Known(f64);

    impl Estimator for Known {
        fn on_ack(&mut self, _ack: &AckSample, _bytes: u64, _window: u64) {}
        fn rate(&self) -> f64 {
            self.0
        }
    }

    /// 20 segments of window, a round trip of 100 ms at least, 80,000 bytes a second: 8 segments fit.
    fn westwood(rate: f64) -> Westwood<Known> {
        let mut westwood = Westwood::<Known>::new(&start(20));
        westwood.estimator.0 = rate;
        westwood.on_ack(&AckSample { rtt_min: Duration::from_millis(100), ..ack(0, 0) });
        westwood
    }

    /// Section 4.1: ssthresh = BWE * `RTTmin`, and cwnd comes down to it; 4.2: one segment after a time-out.
    #[test]
    fn congestion_sets_the_threshold_to_the_share() {
        for (cause, window) in [(Cause::Loss, 8 * MSS), (Cause::Ecn, 8 * MSS), (Cause::Timeout, MSS)] {
            let mut westwood = westwood(80_000.0);
            westwood.on_congestion(&congestion(20 * MSS, cause));
            assert_eq!((westwood.window(), westwood.ssthresh()), (window, Some(8 * MSS)), "{cause:?}");
        }
    }

    /// Section 4.1: a window below the share stays; the share is at least two segments.
    #[test]
    fn the_window_never_rises_at_a_loss() {
        let mut westwood = westwood(500_000.0);
        westwood.on_congestion(&congestion(20 * MSS, Cause::Loss));
        assert_eq!((westwood.window(), westwood.ssthresh()), (20 * MSS, Some(50 * MSS)));
        westwood.estimator.0 = 1.0;
        westwood.on_congestion(&congestion(20 * MSS, Cause::Loss));
        assert_eq!((westwood.window(), westwood.ssthresh()), (2 * MSS, Some(2 * MSS)));
    }

    #[test]
    fn without_an_estimate_the_response_is_halving() {
        let mut westwood = westwood(0.0);
        westwood.on_congestion(&congestion(20 * MSS, Cause::Loss));
        assert_eq!(westwood.window(), 10 * MSS);
    }

    /// Section 3.3: three duplicates and an acknowledgement of five segments account for five in all; a partial one
    /// of what duplicates had told for one.
    #[test]
    fn bytes_that_duplicates_told_count_once() {
        let mut count = AckedCount::default();
        let counted: Vec<u64> =
            [0, 0, 0, 5 * MSS, MSS, 2 * MSS].map(|acked| count.on_ack(acked, MSS)).to_vec();
        assert_eq!(counted, [MSS, MSS, MSS, 2 * MSS, MSS, 2 * MSS]);
        let counted: Vec<u64> = [0, 0, 0, 2 * MSS, 3 * MSS].map(|acked| count.on_ack(acked, MSS)).to_vec();
        assert_eq!(counted, [MSS, MSS, MSS, MSS, 2 * MSS]);
    }

    /// Whole connections: each variant's estimate is the bottleneck's rate, 100 segments a second, whatever arrives as
    /// a duplicate.
    #[test]
    fn both_estimators_find_a_steady_rate() {
        fn settled<E: Estimator + Default>() -> f64 {
            let mut westwood = Westwood::<E>::new(&start(30));
            let rtt = Duration::from_millis(200);
            for at in 1..2000_u64 {
                // Every tenth to twelfth is a duplicate, and the thirteenth acknowledges the four.
                let (bytes, duplicate) = match at % 20 {
                    10..=12 => (0, true),
                    13 => (4 * MSS, false),
                    _ => (MSS, false),
                };
                let sample = AckSample {
                    now: at_ms(10 * at),
                    duplicate,
                    rtt: Some(rtt),
                    srtt: Some(rtt),
                    rtt_min: rtt,
                    ..ack(bytes, 20 * MSS)
                };
                westwood.on_ack(&sample);
            }
            westwood.estimator.rate()
        }
        for (name, rate) in [("ERE", settled::<EligibleRate>()), ("Westwood+", settled::<Plus>())] {
            assert!((rate / 100_000.0 - 1.0).abs() < 0.02, "{name}: {rate}");
        }
    }
}
