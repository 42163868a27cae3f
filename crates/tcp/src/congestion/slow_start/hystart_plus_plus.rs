//! HyStart++: RFC 9406.
//!
//! Deviations: a round ends with the first acknowledgement of a segment sent after its begin, which is one segment
//! later than that of the last one sent before it (4.2, `windowEnd`).

use base::Duration;

use crate::congestion::AckSample;

/// Finds the end of slow start in longer round trips, and grows slowly for a while to see whether it was right.
#[derive(Clone, Debug)]
pub(super) struct HyStartPlusPlus {
    round: u64,
    /// `lastRoundMinRTT`; [`Duration::MAX`] is "infinity" here and below.
    last_min: Duration,
    /// `currentRoundMinRTT`.
    current_min: Duration,
    /// `rttSampleCount`.
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start (CSS).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline: Duration,
    /// Rounds that have ended in it; the one in which it began counts.
    rounds: u32,
}

impl Default for HyStartPlusPlus {
    fn default() -> Self {
        Self { round: 0, last_min: Duration::MAX, current_min: Duration::MAX, samples: 0, conservative: None }
    }
}

impl HyStartPlusPlus {
    /// Whether the window grows slowly.
    pub(super) const fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// An acknowledgement in slow start; true if congestion avoidance is to begin.
    pub(super) fn on_ack(&mut self, ack: &AckSample) -> bool {
        if ack.round != self.round {
            self.round = ack.round;
            self.last_min = self.current_min;
            self.current_min = Duration::MAX;
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        let Some(rtt) = ack.rtt else { return false };
        self.current_min = self.current_min.min(rtt);
        self.samples += 1;
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        false
    }

    fn judge(&mut self) {
        match self.conservative {
            None if self.last_min < Duration::MAX => {
                let threshold = (self.last_min / MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).min(MAX_RTT_THRESH);
                if self.current_min >= self.last_min + threshold {
                    self.conservative = Some(Conservative { baseline: self.current_min, rounds: 0 });
                }
            }
            // The delay was a passing one: slow start goes on.
            Some(conservative) if self.current_min < conservative.baseline => self.conservative = None,
            _ => {}
        }
    }
}

/// RFC 9406 (4.3): segments that one acknowledgement can open the window by, without pacing.
pub(super) const L: u64 = 8;
/// RFC 9406 (4.3): by how much slower the window grows in conservative slow start.
pub(super) const CSS_GROWTH_DIVISOR: u64 = 4;
/// RFC 9406 (4.3): rounds of conservative slow start.
const CSS_ROUNDS: u32 = 5;
/// RFC 9406 (4.3): samples before a round is judged.
const N_RTT_SAMPLE: u32 = 8;
/// RFC 9406 (4.3).
const MIN_RTT_DIVISOR: u64 = 8;
/// RFC 9406 (4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// RFC 9406 (4.3).
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, start};
    use crate::congestion::{SlowStart, Start};

    /// Eight acknowledgements of one segment each in `round`, each with this round-trip time; the window then.
    fn round(slow: &mut SlowStart, mut window: u64, round: u64, rtt_ms: u64) -> u64 {
        for _ in 0..8 {
            let rtt = Some(Duration::from_millis(rtt_ms));
            window = slow.on_ack(window, &AckSample { round, rtt, ..ack(MSS, window) }).0;
        }
        window
    }

    fn slow_start(paced: bool) -> SlowStart {
        SlowStart::new(&Start { slow_start: crate::config::SlowStart::HyStartPlusPlus, paced, ..start(10) })
    }

    /// RFC 9406 (4.2): `RttThresh` is `lastRoundMinRTT` / 8 between 4 and 16 ms.
    #[test]
    fn a_longer_round_trip_slows_the_growth() {
        for (before, after, slows) in [
            (80, 89, false),
            (80, 90, true),
            (16, 19, false),
            (16, 20, true),
            (400, 415, false),
            (400, 416, true),
        ] {
            let mut slow = slow_start(false);
            let window = round(&mut slow, 10 * MSS, 1, before);
            assert_eq!(window, 18 * MSS);
            let window = round(&mut slow, window, 2, after);
            assert_eq!(window, 26 * MSS);
            // RFC 9406 (4.2): in CSS a quarter of the bytes.
            let expected = if slows { 28 * MSS } else { 34 * MSS };
            assert_eq!(round(&mut slow, window, 3, after), expected, "{before} {after}");
        }
    }

    /// RFC 9406 (4.2): fewer than `N_RTT_SAMPLE` samples decide nothing.
    #[test]
    fn seven_samples_are_too_few() {
        let mut slow = slow_start(false);
        let mut window = round(&mut slow, 10 * MSS, 1, 80);
        for _ in 0..7 {
            let rtt = Some(Duration::from_millis(200));
            window = slow.on_ack(window, &AckSample { round: 2, rtt, ..ack(MSS, window) }).0;
        }
        assert_eq!(slow.on_ack(window, &AckSample { round: 2, ..ack(MSS, window) }).0, window + MSS);
    }

    /// RFC 9406 (4.2): after `CSS_ROUNDS` rounds, the first of them partial, ssthresh = cwnd.
    #[test]
    fn five_conservative_rounds_end_slow_start() {
        let mut slow = slow_start(false);
        let mut window = round(&mut slow, 10 * MSS, 1, 80);
        window = round(&mut slow, window, 2, 100);
        for number in 3..7 {
            window = round(&mut slow, window, number, 100);
            assert!(slow.active(window), "round {number}");
        }
        // Four rounds of eight quarters of a segment.
        assert_eq!(window, (26 + 4 * 2) * MSS);
        window = slow.on_ack(window, &AckSample { round: 7, ..ack(MSS, window) }).0;
        assert_eq!((slow.active(window), slow.threshold()), (false, window));
    }

    /// RFC 9406 (4.2): a round trip below `cssBaselineMinRtt` resumes slow start.
    #[test]
    fn a_passing_delay_resumes_slow_start() {
        let mut slow = slow_start(false);
        let mut window = round(&mut slow, 10 * MSS, 1, 80);
        window = round(&mut slow, window, 2, 100);
        window = round(&mut slow, window, 3, 99);
        let resumed = round(&mut slow, window, 4, 99);
        assert_eq!(resumed, window + 8 * MSS);
    }

    /// RFC 9406 (4.3): L is 8 without pacing and infinite with it.
    #[test]
    fn one_acknowledgement_opens_by_eight_segments_unless_paced() {
        assert_eq!(slow_start(false).on_ack(20 * MSS, &ack(12 * MSS, 20 * MSS)).0, 28 * MSS);
        assert_eq!(slow_start(true).on_ack(20 * MSS, &ack(12 * MSS, 20 * MSS)).0, 32 * MSS);
    }

    /// RFC 9406 (4.3): only the first slow start uses it.
    #[test]
    fn congestion_ends_the_search() {
        let mut slow = slow_start(false);
        let window = round(&mut slow, 10 * MSS, 1, 80);
        slow.set_threshold(100 * MSS, false);
        let window = round(&mut slow, window, 2, 200);
        assert_eq!(round(&mut slow, window, 3, 200), window + 8 * MSS);
    }
}
