//! TCP Hybla: Caini and Firrincieli 2004 (Int. J. Satellite Communications and Networking 22:5), section 3.
//!
//! With rho = RTT / RTT0 an acknowledged segment adds 2^rho - 1 segments in slow start and rho^2 / W later, so that
//! the rate, W / RTT, grows like that of a connection whose round trip is RTT0.
//!
//! Deviations:
//! - rho follows the least smoothed round trip, as in Linux's `tcp_hybla.c`: queues would raise it;
//! - one acknowledgement adds at most 2^16 - 1 segments for each that it may count (Linux), and slow start stops at
//!   the threshold;
//! - a threshold from a cache is one of this path already and is not multiplied by rho;
//! - the window grows only while it is used.

use base::{Duration, Instant};

use super::{AckSample, Cause, Congestion, Controller, MAX_WINDOW, SlowStart, Start};
use crate::config::HyblaConfig;

/// Reno with the growth of a shorter round trip.
#[derive(Clone, Debug)]
pub struct Hybla {
    mss: f64,
    /// Bytes; the fraction is what growth has earned below a byte.
    cwnd: f64,
    initial_window: f64,
    /// Byte counting is not stricter after a time-out.
    slow_start: SlowStart,
    rtt0: Duration,
    srtt_min: Duration,
    /// At least 1: no connection is slower than Reno.
    rho: f64,
}

impl Hybla {
    /// A controller in slow start.
    #[must_use]
    pub fn new(start: &Start, config: HyblaConfig) -> Self {
        let mut hybla = Self {
            mss: start.mss as f64,
            cwnd: start.initial_window as f64,
            initial_window: start.initial_window as f64,
            slow_start: SlowStart::plain(start, start.byte_counting_limit),
            rtt0: config.rtt0,
            srtt_min: Duration::MAX,
            rho: 1.0,
        };
        if let Some(srtt) = start.srtt {
            hybla.on_round_trip(srtt);
            hybla.cwnd = hybla.restart_window();
        }
        hybla
    }

    fn on_round_trip(&mut self, srtt: Duration) {
        if srtt < self.srtt_min {
            self.srtt_min = srtt;
            self.rho = (srtt.as_secs_f64() / self.rtt0.as_secs_f64()).max(1.0);
        }
    }

    /// The initial window times rho.
    fn restart_window(&self) -> f64 {
        (self.initial_window * self.rho).min(MAX_WINDOW as f64)
    }

    /// Each byte that counts opens the window by several, up to the threshold.
    fn open(&mut self, bytes: u64) {
        let step = libm::exp2(self.rho.min(MAX_EXPONENT)) - 1.0;
        let grown = self.cwnd + step * bytes as f64;
        self.cwnd = grown.min(self.slow_start.threshold() as f64);
    }
}

impl Controller for Hybla {
    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(srtt) = ack.srtt {
            self.on_round_trip(srtt);
        }
        if ack.recovering || ack.bytes == 0 {
            return;
        }
        let window = self.window();
        if self.slow_start.active(window) {
            self.open(self.slow_start.counted(window, ack));
        } else if ack.limited_by_window {
            self.cwnd += self.rho * self.rho * self.mss * ack.opening_bytes() as f64 / self.cwnd;
        }
        self.cwnd = self.cwnd.min(MAX_WINDOW as f64);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        // RFC 5681, equation 4.
        let half = (event.flight_size as f64 / 2.0).max(2.0 * self.mss).min(MAX_WINDOW as f64);
        self.slow_start.set_threshold(half as u64, false);
        self.cwnd = match event.cause {
            Cause::Loss | Cause::Ecn => half,
            Cause::Timeout => self.mss,
        };
    }

    fn on_restart(&mut self, _now: Instant) {
        self.cwnd = self.cwnd.min(self.restart_window());
    }

    fn window(&self) -> u64 {
        self.cwnd as u64
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        if let Some(ssthresh) = ssthresh {
            self.slow_start.set_threshold(ssthresh, false);
        }
        self.cwnd = (window as f64).max(self.mss).min(MAX_WINDOW as f64);
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.slow_start.threshold())
    }
}

/// The largest exponent of slow start; Linux, `hybla_fraction`'s caller.
const MAX_EXPONENT: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, congestion, start};

    fn hybla(rtt_ms: u64, segments: u64, ssthresh: u64) -> Hybla {
        let srtt = Some(Duration::from_millis(rtt_ms));
        Hybla::new(&Start { srtt, ssthresh, ..start(segments) }, HyblaConfig::default())
    }

    /// Section 3: the initial window is multiplied by rho, which is at least 1.
    #[test]
    fn the_initial_window_is_scaled() {
        assert_eq!(hybla(100, 2, u64::MAX).window(), 8 * MSS);
        assert_eq!(hybla(10, 2, u64::MAX).window(), 2 * MSS);
    }

    /// Section 3, slow start: 2^rho - 1: 15 segments at 100 ms, 1 at 25 ms.
    #[test]
    fn slow_start_adds_two_to_the_rho_less_one() {
        for (rtt_ms, added) in [(100, 15), (50, 3), (25, 1), (5, 1)] {
            let mut hybla = hybla(rtt_ms, 2, u64::MAX);
            let before = hybla.window();
            hybla.on_ack(&ack(MSS, before));
            assert_eq!(hybla.window() - before, added * MSS, "{rtt_ms} ms");
        }
    }

    /// Section 3, congestion avoidance: rho^2 / W: 16 / 8 segments at 100 ms.
    #[test]
    fn congestion_avoidance_adds_rho_squared_by_the_window() {
        let mut hybla = hybla(100, 2, 8 * MSS);
        hybla.on_ack(&ack(MSS, 8 * MSS));
        assert_eq!(hybla.window(), 10 * MSS);
    }

    /// Section 3: the rate after the same time is that of RTT0, whatever the round trip: after 20 round trips of
    /// 25 ms, 10 of 50 ms, 5 of 100 ms from a rate of 40 segments in 25 ms, about 60 segments in 25 ms.
    #[test]
    fn the_rate_grows_independently_of_the_round_trip() {
        for (rtt_ms, rounds) in [(25, 20), (50, 10), (100, 5)] {
            let rho = rtt_ms / 25;
            let mut hybla = hybla(rtt_ms, 40, 1);
            assert_eq!(hybla.window(), 40 * rho * MSS);
            for _ in 0..rounds {
                let mut left = hybla.window();
                while left > 0 {
                    let window = hybla.window();
                    hybla.on_ack(&ack(left.min(MSS), window));
                    left = left.saturating_sub(MSS);
                }
            }
            let rate = hybla.cwnd / 1000.0 / rho as f64;
            assert!((rate - 60.0).abs() < 1.0, "{rtt_ms} ms: {rate}");
        }
    }

    /// Linux: 2^16 - 1 at most, up to the threshold and to the largest window.
    #[test]
    fn growth_is_bounded() {
        let mut hybla = hybla(5000, 1, u64::MAX);
        let before = hybla.window();
        hybla.on_ack(&ack(MSS, before));
        assert_eq!(hybla.window() - before, 65_535 * MSS);
        for _ in 0..20 {
            let window = hybla.window();
            hybla.on_ack(&ack(MSS, window));
        }
        assert_eq!(hybla.window(), MAX_WINDOW);
        let mut cached = self::hybla(100, 2, 10 * MSS);
        cached.on_ack(&ack(MSS, 8 * MSS));
        assert_eq!(cached.window(), 10 * MSS);
    }

    /// RFC 5681, equation 4 and (3.1).
    #[test]
    fn congestion_halves() {
        for (cause, window) in [(Cause::Loss, 10 * MSS), (Cause::Ecn, 10 * MSS), (Cause::Timeout, MSS)] {
            let mut hybla = hybla(100, 5, u64::MAX);
            hybla.on_congestion(&congestion(20 * MSS, cause));
            assert_eq!((hybla.window(), hybla.ssthresh()), (window, Some(10 * MSS)), "{cause:?}");
        }
    }

    /// Linux: rho is that of the least smoothed round trip.
    #[test]
    fn a_queue_does_not_raise_rho() {
        let mut hybla = hybla(100, 2, 8 * MSS);
        let srtt = |ms| Some(Duration::from_millis(ms));
        hybla.on_ack(&AckSample { srtt: srtt(400), recovering: true, ..ack(MSS, 8 * MSS) });
        assert!((hybla.rho - 4.0).abs() < 1e-12);
        hybla.on_ack(&AckSample { srtt: srtt(50), recovering: true, ..ack(MSS, 8 * MSS) });
        assert!((hybla.rho - 2.0).abs() < 1e-12);
    }

    /// RFC 5681 (3.2), RFC 3168 (6.1.2): in a recovery, and by marked acknowledgements, the window does not grow.
    #[test]
    fn a_recovery_opens_no_window() {
        for ssthresh in [u64::MAX, 2 * MSS] {
            let mut hybla = hybla(100, 10, ssthresh);
            let before = hybla.window();
            hybla.on_ack(&AckSample { recovering: true, ..ack(MSS, before) });
            assert_eq!(hybla.window(), before);
        }
    }

    /// RFC 5681, equation 4: never below two segments.
    #[test]
    fn a_small_windows_threshold_is_two_segments() {
        let mut hybla = hybla(100, 10, u64::MAX);
        hybla.on_congestion(&congestion(2 * MSS, Cause::Loss));
        assert_eq!((hybla.ssthresh(), hybla.window()), (Some(2 * MSS), 2 * MSS));
    }
}
