//! FAST TCP: Wei, Jin, Low, Hegde 2006 (IEEE/ACM Trans. Networking 14:6), section III, with the constants and the
//! response to losses of its ns-2 module (version 1.1.3).
//!
//! At each update w becomes min(2 w, (1 - gamma) w + gamma (baseRTT / RTT * w + alpha)), so that at rest a connection
//! keeps alpha segments in queues.
//!
//! Deviations:
//! - an update is made when a round ends, with the window that the acknowledged segments left under, which is the
//!   current one;
//! - the growth by a segment an acknowledgement while the queue is short ends at the threshold that a cache or the last
//!   congestion left;
//! - the window grows only while it is used;
//! - a mark is answered like a loss.

use base::{Duration, Instant};

use super::{AckSample, Cause, Congestion, Controller, MAX_WINDOW, SlowStart, Start};
use crate::config::FastConfig;

/// A window that heads for a queue of a given length.
#[derive(Clone, Debug)]
pub struct Fast {
    mss: u64,
    window: u64,
    restart_window: u64,
    /// By a segment an acknowledgement, while the queue is short.
    slow_start: SlowStart,
    config: FastConfig,
    base_rtt: Duration,
    /// The average round trip in seconds; zero before the first sample.
    rtt: f64,
    round: u64,
}

impl Fast {
    /// A controller that knows nothing of the path.
    #[must_use]
    pub const fn new(start: &Start, config: FastConfig) -> Self {
        Self {
            mss: start.mss,
            window: start.initial_window,
            restart_window: start.initial_window,
            slow_start: SlowStart::plain(start, 1),
            config,
            base_rtt: Duration::MAX,
            rtt: 0.0,
            round: 0,
        }
    }

    fn sample(&mut self, rtt: Duration) {
        self.base_rtt = self.base_rtt.min(rtt);
        let rtt = rtt.as_secs_f64();
        if self.rtt == 0.0 {
            self.rtt = rtt;
            return;
        }
        let weight = (3.0 * self.mss as f64 / self.window as f64).min(MAX_WEIGHT);
        self.rtt += weight * (rtt - self.rtt);
    }

    /// Whether the queue is so short that the window grows with every acknowledgement.
    fn is_path_empty(&self) -> bool {
        self.slow_start.active(self.window) && self.rtt - self.base_rtt.as_secs_f64() < SHORT_QUEUE
    }

    /// The update law.
    fn update(&mut self, used: bool) {
        let window = self.window as f64;
        let FastConfig { alpha, gamma } = self.config;
        let alpha = f64::from(alpha) * self.mss as f64;
        let target = self.base_rtt.as_secs_f64() / self.rtt * window + alpha;
        let next = ((1.0 - gamma) * window + gamma * target).min(2.0 * window);
        if used || next < window {
            // A float-to-integer cast saturates.
            self.window = (libm::round(next) as u64).max(2 * self.mss);
        }
    }
}

impl Controller for Fast {
    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.sample(rtt);
        }
        let new_round = ack.round != self.round;
        self.round = ack.round;
        if ack.recovering || self.rtt == 0.0 {
            return;
        }
        if self.is_path_empty() {
            self.window = self.slow_start.on_ack(self.window, ack).0;
        } else if new_round {
            self.update(ack.limited_by_window);
        }
        self.window = self.window.min(MAX_WINDOW);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let half = (self.window / 2).max(2 * self.mss);
        self.slow_start.set_threshold(half, false);
        self.window = match event.cause {
            Cause::Loss | Cause::Ecn => half,
            Cause::Timeout => 2 * self.mss,
        };
    }

    fn on_restart(&mut self, _now: Instant) {
        self.window = self.window.min(self.restart_window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        if let Some(ssthresh) = ssthresh {
            self.slow_start.set_threshold(ssthresh, false);
        }
        self.window = window.max(self.mss).min(MAX_WINDOW);
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.slow_start.threshold())
    }
}

/// The most that a sample weighs in the average round trip; it is 3 / w in larger windows.
const MAX_WEIGHT: f64 = 1.0 / 256.0;
/// Seconds of queueing delay below which the window grows with every acknowledgement.
const SHORT_QUEUE: f64 = 0.000_75;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, congestion, spare, start};

    /// A controller with a window of `segments`, a base round trip of 100 ms and an average of `rtt` seconds.
    fn fast(segments: u64, alpha: u32, rtt: f64) -> Fast {
        let config = FastConfig { alpha, ..FastConfig::default() };
        let mut fast = Fast::new(&start(segments), config);
        fast.base_rtt = Duration::from_millis(100);
        fast.rtt = rtt;
        fast
    }

    fn end_round(fast: &mut Fast) -> u64 {
        let round = fast.round + 1;
        let window = fast.window();
        fast.on_ack(&AckSample { round, ..ack(MSS, window) });
        fast.window()
    }

    /// Equation (1): 200 segments at 125 ms with alpha 20: (200 + 160 + 20) / 2 = 190.
    #[test]
    fn the_update_goes_half_of_the_way() {
        assert_eq!(end_round(&mut fast(200, 20, 0.125)), 190 * MSS);
        // At rest: 100 segments at 125 ms, of which 20 are queued.
        assert_eq!(end_round(&mut fast(100, 20, 0.125)), 100 * MSS);
    }

    /// Equation (1): at most twice the window: (10 + 8 + 100) / 2 would be 59.
    #[test]
    fn the_window_at_most_doubles() {
        assert_eq!(end_round(&mut fast(10, 100, 0.125)), 20 * MSS);
    }

    /// The module: a segment an acknowledgement below 0.75 ms of queueing.
    #[test]
    fn an_empty_path_is_filled_fast() {
        let mut empty = fast(10, 100, 0.1007);
        for _ in 0..10 {
            let window = empty.window();
            empty.on_ack(&ack(MSS, window));
        }
        assert_eq!(empty.window(), 20 * MSS);
        let mut queued = fast(10, 100, 0.1008);
        queued.on_ack(&ack(MSS, 10 * MSS));
        assert_eq!(queued.window(), 10 * MSS);
        // A cached threshold ends it.
        let mut cached = fast(10, 100, 0.1);
        cached.slow_start.set_threshold(10 * MSS, false);
        cached.on_ack(&ack(MSS, 10 * MSS));
        assert_eq!(cached.window(), 10 * MSS);
    }

    /// Section III: the average weighs a sample by min(3 / w, 1 / 256).
    #[test]
    fn the_round_trip_is_averaged() {
        for (segments, weight) in [(100, 1.0 / 256.0), (3000, 0.001)] {
            let mut fast = fast(segments, 100, 0.1);
            fast.sample(Duration::from_millis(200));
            assert!((fast.rtt - 0.1 - 0.1 * weight).abs() < 1e-12, "{segments}: {}", fast.rtt);
        }
    }

    /// The module: half after a loss, two segments after a time-out.
    #[test]
    fn congestion_halves() {
        for (cause, window) in [(Cause::Loss, 50 * MSS), (Cause::Ecn, 50 * MSS), (Cause::Timeout, 2 * MSS)] {
            let mut fast = fast(100, 20, 0.125);
            fast.on_congestion(&congestion(100 * MSS, cause));
            assert_eq!((fast.window(), fast.ssthresh()), (window, Some(50 * MSS)), "{cause:?}");
        }
    }

    #[test]
    fn an_unused_window_shrinks_but_does_not_grow() {
        let mut growing = fast(100, 100, 0.125);
        growing.on_ack(&AckSample { round: 1, ..spare(MSS, 20 * MSS) });
        assert_eq!(growing.window(), 100 * MSS);
        let mut shrinking = fast(200, 20, 0.125);
        shrinking.on_ack(&AckSample { round: 1, ..spare(MSS, 20 * MSS) });
        assert_eq!(shrinking.window(), 190 * MSS);
    }
}
