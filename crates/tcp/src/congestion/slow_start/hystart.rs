//! HyStart: Ha and Rhee 2011, "Taming the elephants: New TCP slow start", with the constants of Linux's CUBIC.
//!
//! Deviations:
//! - as in Linux, the least round trip is that of data: a SYN takes less time on a slow line;
//! - a round ends with the first acknowledgement of a segment sent after its begin;
//! - the allowance for acknowledgements that a receiving host merged (Linux, at most 1 ms) is not made.

use base::{Duration, Instant};

use crate::congestion::AckSample;

/// Finds the end of slow start in longer round trips, and in a train of acknowledgements as long as the path.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    round: u64,
    round_start: Instant,
    /// The end of the train of closely spaced acknowledgements.
    train_end: Instant,
    /// The least round trip of data.
    delay_min: Duration,
    current_min: Duration,
    samples: u32,
    /// Bytes of window below which nothing is judged.
    low_window: u64,
    paced: bool,
}

impl HyStart {
    pub(super) const fn new(mss: u64, paced: bool) -> Self {
        Self {
            round: 0,
            round_start: Instant::ZERO,
            train_end: Instant::ZERO,
            delay_min: Duration::MAX,
            current_min: Duration::MAX,
            samples: 0,
            low_window: LOW_WINDOW * mss,
            paced,
        }
    }

    /// An acknowledgement in slow start; true if congestion avoidance is to begin.
    pub(super) fn on_ack(&mut self, window: u64, ack: &AckSample) -> bool {
        if ack.round != self.round {
            self.round = ack.round;
            (self.round_start, self.train_end) = (ack.now, ack.now);
            (self.current_min, self.samples) = (Duration::MAX, 0);
        }
        self.delay_min = self.delay_min.min(ack.rtt.unwrap_or(Duration::MAX));
        if window < self.low_window || self.delay_min == Duration::MAX {
            return false;
        }
        self.is_train_long(ack) || self.is_delay_longer(ack)
    }

    /// A train of half the least round trip fills the path one way; paced segments make trains twice as long.
    fn is_train_long(&mut self, ack: &AckSample) -> bool {
        if ack.now.saturating_since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = ack.now;
        let threshold = if self.paced { self.delay_min } else { self.delay_min / 2 };
        ack.now.saturating_since(self.round_start) > threshold
    }

    fn is_delay_longer(&mut self, ack: &AckSample) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        self.current_min = self.current_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let allowance = (self.delay_min / 8).max(MIN_DELAY).min(MAX_DELAY);
        self.current_min > self.delay_min.saturating_add(allowance)
    }
}

/// Segments of window; Linux, `hystart_low_window`.
const LOW_WINDOW: u64 = 16;
/// Acknowledgements no further apart are one train; Linux, `hystart_ack_delta_us`.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Linux, `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u32 = 8;
/// Linux, `HYSTART_DELAY_MIN`.
const MIN_DELAY: Duration = Duration::from_millis(4);
/// Linux, `HYSTART_DELAY_MAX`.
const MAX_DELAY: Duration = Duration::from_millis(16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms, start};
    use crate::congestion::{SlowStart, Start};

    fn slow_start() -> SlowStart {
        let mut slow = SlowStart::new(&Start { slow_start: crate::config::SlowStart::HyStart, ..start(16) });
        see_least(&mut slow);
        slow
    }

    /// A round trip of 100 ms.
    fn see_least(slow: &mut SlowStart) {
        let _ = slow.on_ack(16 * MSS, &sample(0, 0, 100, 16 * MSS));
    }

    fn sample(at: u64, round: u64, rtt_ms: u64, window: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt_ms));
        // The handshake's counts for nothing.
        let rtt_min = Duration::from_millis(50);
        AckSample { now: at_ms(at), round, rtt, rtt_min, ..ack(MSS, window) }
    }

    /// Ha and Rhee, section 4.2; Linux: the ninth sample above the least by an eighth of it ends slow start.
    #[test]
    fn a_longer_delay_ends_slow_start() {
        let mut slow = slow_start();
        let mut window = 16 * MSS;
        for at in 0..9 {
            assert!(slow.active(window));
            window = slow.on_ack(window, &sample(at * 10, 1, 113, window)).0;
        }
        assert_eq!((slow.active(window), slow.threshold()), (false, 25 * MSS));
    }

    /// An eighth of 100 ms is the allowance: 112 ms is within it.
    #[test]
    fn a_little_more_delay_does_not() {
        let mut slow = slow_start();
        let mut window = 16 * MSS;
        for at in 0..30 {
            window = slow.on_ack(window, &sample(at * 10, 1, 112, window)).0;
        }
        assert!(slow.active(window));
    }

    /// Ha and Rhee, section 4.1: acknowledgements 2 ms apart for more than half of the least round trip.
    #[test]
    fn a_long_train_ends_slow_start() {
        let mut slow = slow_start();
        let mut window = 16 * MSS;
        for at in 0..26 {
            window = slow.on_ack(window, &sample(at * 2, 1, 100, window)).0;
            assert!(slow.active(window), "{at}");
        }
        window = slow.on_ack(window, &sample(52, 1, 100, window)).0;
        assert!(!slow.active(window));
    }

    /// Linux: once a connection, and again after each time-out.
    #[test]
    fn a_timeout_begins_the_search_anew() {
        let mut slow = slow_start();
        let run = |slow: &mut SlowStart| {
            see_least(slow);
            let mut window = 16 * MSS;
            for at in 0..20 {
                window = slow.on_ack(window, &sample(at * 10, 1, 150, window)).0;
            }
            slow.threshold()
        };
        assert_eq!(run(&mut slow), 25 * MSS);
        slow.set_threshold(100 * MSS, false);
        assert_eq!(run(&mut slow), 100 * MSS);
        slow.set_threshold(100 * MSS, true);
        assert_eq!(run(&mut slow), 25 * MSS);
    }

    /// A gap of 3 ms breaks the train.
    #[test]
    fn a_gap_breaks_the_train() {
        let mut slow = slow_start();
        let mut window = 16 * MSS;
        for at in 0..40 {
            window = slow.on_ack(window, &sample(at * 3, 1, 100, window)).0;
        }
        assert!(slow.active(window));
    }

    /// Linux, `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`: the allowance is an eighth of the least round trip, but at least 4 ms and at most
    /// 16 ms.
    #[test]
    fn the_allowance_has_a_floor_and_a_ceiling() {
        for (least, within) in [(8, 12), (24, 28), (80, 90), (128, 144), (200, 216), (600, 616)] {
            for (rtt, ends) in [(within, false), (within + 1, true)] {
                let start = Start { slow_start: crate::config::SlowStart::HyStart, ..start(16) };
                let mut slow = SlowStart::new(&start);
                let _ = slow.on_ack(16 * MSS, &sample(0, 0, least, 16 * MSS));
                let mut window = 16 * MSS;
                for at in 0..9 {
                    window = slow.on_ack(window, &sample(1000 + at * 10, 1, rtt, window)).0;
                }
                assert_eq!(!slow.active(window), ends, "{rtt} ms where {least} ms is the least");
            }
        }
    }

    /// Linux, `hystart_low_window`: below 16 segments a longer delay says nothing: slow start would end in tiny windows.
    #[test]
    fn small_windows_are_not_judged() {
        for (segments, ends) in [(14, false), (16, true)] {
            let mut slow = slow_start();
            let window = segments * MSS;
            for at in 0..9 {
                let _ = slow.on_ack(window, &sample(at * 10, 1, 150, window));
            }
            assert_eq!(slow.threshold() < u64::MAX, ends, "{segments} segments");
        }
    }
}
