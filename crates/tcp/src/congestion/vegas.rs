//! TCP Vegas: Brakmo and Peterson 1995 (IEEE JSAC 13:8), sections III and IV; where it is silent, its authors' code as
//! it lives on in ns-2's `tcp-vegas.cc`.
//!
//! Deviations:
//! - the queue is estimated as window * (RTT - `BaseRTT`) / RTT, as in Linux, which is the paper's Diff times `BaseRTT`
//!   while the window is used;
//! - the window changes by a whole segment when a round ends, where ns-2 spreads it over the round;
//! - `BaseRTT` is the least round trip of data; it is never raised by a connection's being alone in its path;
//! - a mark is answered like a segment lost that was sent once.
//!
//! The response to a loss is ns-2's: a quarter, or a half if the segment had been sent more than once, and nothing if
//! the window came down after the segment was sent (IV). It makes no difference how the loss was found: the check of
//! a fine-grained time-out at the first duplicates is recovery's business (`recovery::fine_grained`), on for Vegas unless
//! the settings say otherwise.

use base::{Duration, Instant};

use super::{AckSample, Cause, Congestion, Controller, MAX_WINDOW, SlowStart, Start};
use crate::config::VegasConfig;

/// A window that keeps a few segments in the path's queues.
#[derive(Clone, Debug)]
pub struct Vegas {
    mss: u64,
    window: u64,
    restart_window: u64,
    /// Byte counting is not stricter after a time-out.
    slow_start: SlowStart,
    config: VegasConfig,
    base_rtt: Duration,
    round: u64,
    /// The round's samples, in nanoseconds, and their number.
    rtt_sum: u64,
    rtt_count: u64,
    /// Slow start: whether the window grows in this round; it does in every other.
    grows: bool,
    /// When the window last came down.
    reduced_at: Option<Instant>,
}

impl Vegas {
    /// A controller in slow start.
    #[must_use]
    pub const fn new(start: &Start, config: VegasConfig) -> Self {
        Self {
            mss: start.mss,
            window: start.initial_window,
            restart_window: start.initial_window,
            slow_start: SlowStart::plain(start, start.byte_counting_limit),
            config,
            base_rtt: Duration::MAX,
            round: 0,
            rtt_sum: 0,
            rtt_count: 0,
            grows: true,
            reduced_at: None,
        }
    }

    /// Bytes of the window that wait in queues: `Diff` in units of `BaseRTT` (III.B).
    fn queue(&self) -> Option<u64> {
        let rtt = self.rtt_sum.checked_div(self.rtt_count)?;
        let waiting = rtt.saturating_sub(self.base_rtt.as_nanos());
        Some((u128::from(self.window) * u128::from(waiting) / u128::from(rtt.max(1))) as u64)
    }

    /// Once a round: III.B, and III.C in slow start.
    fn on_round(&mut self, used: bool) {
        let Some(queue) = self.queue() else { return };
        let mss = self.mss;
        if self.slow_start.active(self.window) {
            if self.grows {
                self.grows = false;
            } else if queue > u64::from(self.config.gamma) * mss {
                self.window = (self.window - self.window / 8).max(2 * mss);
                self.slow_start.set_threshold(2 * mss, false);
            } else {
                self.grows = true;
            }
        } else if queue > u64::from(self.config.beta.max(self.config.alpha)) * mss {
            self.window = self.window.saturating_sub(mss).max(2 * mss);
        } else if queue < u64::from(self.config.alpha) * mss && used {
            self.window += mss;
        }
    }

    fn reduce(&mut self, now: Instant, resent: bool) {
        let window = if self.window <= 3 * self.mss {
            0
        } else if resent {
            self.window / 2
        } else {
            self.window - self.window / 4
        };
        self.window = window.max(2 * self.mss);
        self.slow_start.set_threshold(2 * self.mss, false);
        self.reduced_at = Some(now);
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.round != self.round {
            self.round = ack.round;
            if !ack.recovering {
                self.on_round(ack.limited_by_window);
            }
            (self.rtt_sum, self.rtt_count) = (0, 0);
        }
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.rtt_sum = self.rtt_sum.saturating_add(rtt.as_nanos());
            self.rtt_count += 1;
        }
        if !ack.recovering && self.slow_start.active(self.window) && self.grows {
            self.window = self.slow_start.on_ack(self.window, ack).0;
        }
        self.window = self.window.min(MAX_WINDOW);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.cause {
            Cause::Loss | Cause::Ecn => {
                let before = |sent: Instant| self.reduced_at.is_some_and(|reduced| sent <= reduced);
                if !event.sent_at.is_some_and(before) {
                    self.reduce(event.now, event.resent);
                }
            }
            Cause::Timeout => {
                self.slow_start.set_threshold((event.flight_size / 2).max(2 * self.mss), false);
                self.window = self.mss;
                self.grows = true;
                self.reduced_at = Some(event.now);
            }
        }
    }

    fn on_restart(&mut self, _now: Instant) {
        if self.window > self.restart_window {
            // Slow start leads back to where the window was.
            self.slow_start.set_threshold(self.slow_start.threshold().max(self.window), false);
            self.window = self.restart_window;
            self.grows = true;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, at_ms, congestion, spare, start};

    /// A controller in congestion avoidance at this window, with a base round trip of 100 ms.
    fn avoiding(segments: u64) -> Vegas {
        let mut vegas = Vegas::new(&Start { ssthresh: 2 * MSS, ..start(segments) }, VegasConfig::default());
        round(&mut vegas, 1, 100);
        vegas
    }

    /// A window's worth of acknowledgements in this round, all with this round-trip time.
    fn round(vegas: &mut Vegas, round: u64, rtt_ms: u64) {
        for _ in 0..vegas.window() / MSS {
            let rtt = Some(Duration::from_millis(rtt_ms));
            vegas.on_ack(&AckSample { round, rtt, ..ack(MSS, vegas.window()) });
        }
    }

    /// The window after a round of `rtt_ms` has ended.
    fn after(segments: u64, rtt_ms: u64) -> u64 {
        let mut vegas = avoiding(segments);
        round(&mut vegas, 2, rtt_ms);
        let before = vegas.window();
        vegas.on_ack(&AckSample { round: 3, ..ack(MSS, before) });
        vegas.window()
    }

    /// III.B: below alpha = 2 segments queued up by one, above beta = 4 down by one, between them nothing. The round
    /// of 100 ms before has added one: 21 segments * (1 - 100 / RTT).
    #[test]
    fn the_window_follows_the_queue() {
        // 1.91, 2.07, 3.86 and 4.03 segments.
        for (rtt_ms, window) in [(110, 22), (111, 21), (122, 21), (124, 20)] {
            assert_eq!(after(20, rtt_ms), window * MSS, "{rtt_ms} ms");
        }
    }

    /// III.B: once a round, on the average: half at 100 ms and half at 140 ms is 120 ms, 3.5 segments of 21.
    #[test]
    fn samples_are_averaged_over_the_round() {
        let mut vegas = avoiding(20);
        for at in 0..20 {
            let rtt = Some(Duration::from_millis(if at < 10 { 100 } else { 140 }));
            vegas.on_ack(&AckSample { round: 2, rtt, ..ack(MSS, 21 * MSS) });
        }
        assert_eq!(vegas.window(), 21 * MSS);
        vegas.on_ack(&AckSample { round: 3, ..ack(MSS, 21 * MSS) });
        assert_eq!(vegas.window(), 21 * MSS);
    }

    /// III.B: an unused window says nothing about the path.
    #[test]
    fn an_unused_window_does_not_grow() {
        let mut vegas = avoiding(20);
        vegas.on_ack(&AckSample { round: 2, ..spare(MSS, 5 * MSS) });
        assert_eq!(vegas.window(), 20 * MSS);
    }

    /// III.C: slow start doubles in every other round.
    #[test]
    fn slow_start_doubles_every_other_round() {
        let mut vegas = Vegas::new(&start(2), VegasConfig::default());
        let windows: Vec<u64> = (1..=6)
            .map(|number| {
                round(&mut vegas, number, 100);
                vegas.window() / MSS
            })
            .collect();
        assert_eq!(windows, [4, 4, 8, 8, 16, 16]);
    }

    /// III.C: more than gamma = 1 segment queued at the end of a resting round ends slow start; ns-2 takes an eighth.
    #[test]
    fn a_queue_ends_slow_start() {
        for (rtt_ms, window, ssthresh) in [(106, 32, u64::MAX), (107, 14, 2 * MSS)] {
            let mut vegas = Vegas::new(&start(8), VegasConfig::default());
            round(&mut vegas, 1, 100);
            round(&mut vegas, 2, rtt_ms);
            // 16 segments * (1 - 100 / RTT): 0.91 and 1.05.
            round(&mut vegas, 3, 100);
            assert_eq!((vegas.window() / MSS, vegas.ssthresh()), (window, Some(ssthresh)), "{rtt_ms} ms");
        }
    }

    /// IV: a quarter for a segment that was sent once, a half for one that was sent again, two segments from three down.
    #[test]
    fn a_loss_takes_a_quarter_or_a_half() {
        for (segments, resent, window) in [(20, false, 15), (20, true, 10), (3, false, 2), (4, true, 2)] {
            let mut vegas = Vegas::new(&start(segments), VegasConfig::default());
            let event = Congestion { resent, sent_at: Some(at_ms(5)), ..congestion(MSS, Cause::Loss) };
            vegas.on_congestion(&event);
            assert_eq!(vegas.window(), window * MSS, "{segments} {resent}");
        }
    }

    /// IV: losses of what was sent before the last decrease are of the same congestion.
    #[test]
    fn one_congestion_is_answered_once() {
        let mut vegas = avoiding(20);
        let lost = |now, sent| Congestion {
            now: at_ms(now),
            sent_at: Some(at_ms(sent)),
            ..congestion(20 * MSS, Cause::Loss)
        };
        vegas.on_congestion(&lost(200, 100));
        assert_eq!(vegas.window(), 15 * MSS);
        vegas.on_congestion(&lost(250, 190));
        assert_eq!(vegas.window(), 15 * MSS);
        vegas.on_congestion(&lost(320, 210));
        assert_eq!(vegas.window(), 11_250);
    }

    /// IV and RFC 5681 (3.1): a coarse time-out starts from one segment.
    #[test]
    fn a_timeout_starts_over() {
        let mut vegas = avoiding(20);
        vegas.on_congestion(&congestion(20 * MSS, Cause::Timeout));
        assert_eq!((vegas.window(), vegas.ssthresh()), (MSS, Some(10 * MSS)));
    }

    /// RFC 5681 (4.1), and back to the old window.
    #[test]
    fn an_idle_sender_finds_its_window_again() {
        let mut vegas = avoiding(20);
        vegas.restart_window = 4 * MSS;
        vegas.on_restart(at_ms(9000));
        assert_eq!((vegas.window(), vegas.ssthresh()), (4 * MSS, Some(20 * MSS)));
    }

    /// III.C: slow start ends when gamma segments are queued up, and not before.
    #[test]
    fn gamma_ends_slow_start() {
        for (gamma, goes_on) in [(1, false), (3, true)] {
            let mut vegas = Vegas::new(&start(20), VegasConfig { gamma, ..VegasConfig::default() });
            vegas.base_rtt = Duration::from_millis(100);
            vegas.grows = false;
            // Two of twenty segments wait.
            (vegas.rtt_sum, vegas.rtt_count) = (Duration::from_millis(111).as_nanos(), 1);
            vegas.on_round(true);
            assert_eq!(vegas.slow_start.active(vegas.window), goes_on, "gamma {gamma}");
        }
    }

    /// RFC 5681, equation 4: never below two segments.
    #[test]
    fn the_threshold_after_a_timeout_is_two_segments_at_least() {
        let mut vegas = avoiding(20);
        vegas.on_congestion(&congestion(2 * MSS, Cause::Timeout));
        assert_eq!(vegas.ssthresh(), Some(2 * MSS));
    }
}
