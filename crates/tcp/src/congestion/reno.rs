//! Reno congestion control: RFC 5681, section 3, with appropriate byte counting in congestion avoidance.
//!
//! Deviations:
//! - the window grows only while it is what limits the sender (RFC 5681 leaves that open; RFC 7661, 4.3, and
//!   Linux ask for it), and not by what was selectively acknowledged before;
//! - inflation by duplicate acknowledgements (3.2, 4) is recovery's business, not the controller's.

use base::Instant;

use super::{AckSample, Cause, Congestion, Controller, SlowStart, Start};

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct Reno {
    window: u64,
    restart_window: u64,
    slow_start: SlowStart,
    /// Bytes acknowledged since the window last grew in congestion avoidance.
    acked: u64,
}

impl Reno {
    /// A controller in slow start.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        Self {
            window: start.initial_window,
            restart_window: start.initial_window,
            slow_start: SlowStart::new(start),
            acked: 0,
        }
    }

    /// Goes on from this window, with this threshold.
    pub(super) fn reduce(&mut self, window: u64, threshold: u64, timeout: bool) {
        self.slow_start.set_threshold(threshold, timeout);
        self.acked = 0;
        self.window = window;
    }

    /// RFC 5681 (3.1), the recommended way of equation 3: a segment for each window's worth of bytes.
    fn avoid_congestion(&mut self, bytes: u64) {
        self.acked += bytes;
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window += self.slow_start.mss();
        }
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.recovering || ack.bytes == 0 {
            return;
        }
        if self.slow_start.active(self.window) {
            let (window, rest) = self.slow_start.on_ack(self.window, ack);
            self.window = window;
            if rest > 0 {
                self.avoid_congestion(rest);
            }
        } else if ack.limited_by_window {
            self.avoid_congestion(ack.opening_bytes());
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        // RFC 5681, equation 4.
        let threshold = (event.flight_size / 2).max(2 * self.slow_start.mss());
        let window = match event.cause {
            Cause::Loss | Cause::Ecn => threshold,
            Cause::Timeout => self.slow_start.mss(),
        };
        self.reduce(window, threshold, event.cause == Cause::Timeout);
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
        self.window = window.max(self.slow_start.mss());
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.slow_start.threshold())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::samples::{MSS, ack, congestion, spare, start};

    fn reno(initial_window: u64) -> Reno {
        Reno::new(&start(initial_window / MSS))
    }

    /// RFC 5681, equation 2: at most one SMSS an ACK.
    #[test]
    fn slow_start_grows_by_at_most_a_segment_an_ack() {
        let mut reno = reno(2 * MSS);
        reno.on_ack(&ack(2 * MSS, 2 * MSS));
        assert_eq!(reno.window(), 3 * MSS);
        reno.on_ack(&ack(300, 3 * MSS));
        assert_eq!(reno.window(), 3300);
    }

    /// RFC 5681 (3.1), equation 3: one SMSS a round trip.
    #[test]
    fn congestion_avoidance_grows_by_a_segment_a_window() {
        let mut reno = reno(2 * MSS);
        reno.on_congestion(&congestion(20 * MSS, Cause::Loss));
        assert_eq!((reno.window(), reno.ssthresh()), (10 * MSS, Some(10 * MSS)));
        for _ in 0..9 {
            reno.on_ack(&ack(MSS, 10 * MSS));
        }
        assert_eq!(reno.window(), 10 * MSS);
        reno.on_ack(&ack(MSS, 10 * MSS));
        assert_eq!(reno.window(), 11 * MSS);
    }

    /// RFC 5681, equation 4 and (3.1): loss window of one segment, threshold never below two.
    #[test]
    fn a_timeout_starts_from_one_segment() {
        let mut reno = reno(2 * MSS);
        reno.on_congestion(&congestion(MSS, Cause::Timeout));
        assert_eq!((reno.window(), reno.ssthresh()), (MSS, Some(2 * MSS)));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut slow = reno(10 * MSS);
        slow.on_ack(&spare(MSS, 4 * MSS));
        assert_eq!(slow.window(), 10 * MSS);
        let mut avoiding = reno(10 * MSS);
        avoiding.on_congestion(&congestion(20 * MSS, Cause::Loss));
        avoiding.on_ack(&spare(10 * MSS, 8 * MSS));
        assert_eq!(avoiding.window(), 10 * MSS);
    }

    #[test]
    fn the_window_holds_during_recovery() {
        let mut reno = reno(4 * MSS);
        reno.on_ack(&AckSample { recovering: true, ..ack(MSS, 4 * MSS) });
        assert_eq!(reno.window(), 4 * MSS);
    }

    /// RFC 5681 (4.1): RW = min(IW, cwnd).
    #[test]
    fn a_restart_never_opens_the_window() {
        let mut reno = reno(4 * MSS);
        reno.on_ack(&ack(MSS, 4 * MSS));
        reno.on_restart(Instant::ZERO);
        assert_eq!(reno.window(), 4 * MSS);
        reno.on_congestion(&congestion(MSS, Cause::Timeout));
        reno.on_restart(Instant::ZERO);
        assert_eq!(reno.window(), MSS);
    }

    /// RFC 3465 (2.3): after a time-out an acknowledgement opens the window by a segment, whatever L is otherwise.
    #[test]
    fn after_a_timeout_a_segment_an_ack_counts() {
        for (cause, opened) in [(Cause::Timeout, MSS), (Cause::Loss, 2 * MSS)] {
            let mut reno = Reno::new(&crate::congestion::Start { byte_counting_limit: 2, ..start(10) });
            reno.on_congestion(&congestion(20 * MSS, cause));
            reno.set_window(MSS, None);
            reno.on_ack(&ack(2 * MSS, 2 * MSS));
            assert_eq!(reno.window(), MSS + opened, "{cause:?}");
        }
    }
}
