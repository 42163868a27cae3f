//! Pacing: data leave at a rate, not as fast as the window lets them go.
//!
//! Data go in bursts of one quantum (draft-cardwell-iccrg-bbr-congestion-control-00, 4.2.2), and the next burst
//! waits until the last one would have left at the rate. Payload is what counts, as in delivery rates.

use base::{Duration, Instant, Rate};

use super::Sender;
use crate::congestion::burst_quantum;

/// What has left at the rate, and what may leave now.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    rate: Rate,
    /// When all that was sent would have left at the rate.
    free_at: Instant,
    /// Nanoseconds times rate beyond `free_at`; less than the rate.
    carry: u64,
    /// Bytes that may still follow in this burst.
    burst: u64,
    /// Data that the windows allow wait for `free_at`.
    waiting: bool,
}

impl Pacer {
    const fn new(now: Instant, rate: Rate) -> Self {
        Self { rate, free_at: now, carry: 0, burst: 0, waiting: false }
    }

    fn may_send(&mut self, now: Instant) -> bool {
        let may = self.burst > 0 || now >= self.free_at;
        self.waiting = !may;
        may
    }

    fn on_sent(&mut self, now: Instant, bytes: u64, rate: Rate, mss: u64) {
        if rate != self.rate {
            (self.rate, self.carry) = (rate, 0);
        }
        if now >= self.free_at {
            let quantum = burst_quantum(rate, mss);
            self.burst = quantum;
            // A clock that wakes late is made up for; an idle time gives no credit.
            if now.saturating_since(self.free_at) > rate.time_for(8 * quantum) {
                (self.free_at, self.carry) = (now, 0);
            }
        }
        self.burst = self.burst.saturating_sub(bytes);
        let per_second = u128::from(rate.as_bps().max(1));
        let spent = u128::from(bytes) * 8 * NANOS_PER_SEC + u128::from(self.carry);
        let nanos = u64::try_from(spent / per_second).unwrap_or(u64::MAX);
        self.carry = (spent % per_second) as u64;
        self.free_at = self.free_at.saturating_add(Duration::from_nanos(nanos));
    }
}

const NANOS_PER_SEC: u128 = 1_000_000_000;
/// Linux, `tcp_pacing_ss_ratio`: percent of a window a round trip while slow start is far from its end.
const SLOW_START_PERCENT: u128 = 200;
/// Linux, `tcp_pacing_ca_ratio`: the same later.
const AVOIDANCE_PERCENT: u128 = 120;

impl Sender {
    /// Whether data that the windows allow may go now; if not, the pacing deadline is set.
    pub(super) fn may_pace(&mut self, now: Instant) -> bool {
        self.pacer.as_mut().is_none_or(|pacer| pacer.may_send(now))
    }

    /// Nothing is known to wait for pacing.
    pub(super) fn stop_pacing_wait(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.waiting = false;
        }
    }

    /// Data that wait for pacing may go.
    pub(crate) fn check_pacing_timer(&mut self, now: Instant) {
        if self.pacing_deadline() <= now {
            self.stop_pacing_wait();
        }
    }

    /// When data that wait for pacing may go; [`Instant::MAX`] if none do.
    pub(super) fn pacing_deadline(&self) -> Instant {
        self.pacer.as_ref().filter(|pacer| pacer.waiting).map_or(Instant::MAX, |pacer| pacer.free_at)
    }

    /// `bytes` of data were sent.
    pub(super) fn note_paced(&mut self, now: Instant, bytes: u32) {
        let Some(rate) = self.pacing_rate() else {
            self.pacer = None;
            return;
        };
        let pacer = self.pacer.get_or_insert_with(|| Box::new(Pacer::new(now, rate)));
        pacer.on_sent(now, u64::from(bytes), rate, u64::from(self.mss));
    }

    /// The rate that data leave at; none if they go as the window allows.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let controller = &self.controller;
        if let Some(rate) = controller.pacing_rate() {
            return Some(rate);
        }
        let srtt = self.rtt.srtt().filter(|_| self.config.pacing || self.is_unvalidated())?;
        Some(self.window_rate(srtt))
    }

    /// A rate at which the window leaves before the round trip is over (Linux, `tcp_update_pacing_rate`).
    pub(super) fn window_rate(&self, srtt: Duration) -> Rate {
        let controller = &self.controller;
        let window = controller.window();
        let far = controller.ssthresh().is_some_and(|threshold| window < threshold / 2);
        let percent = if far { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let bits = u128::from(window.max(self.board.pipe())) * 8 * percent / 100;
        let bps = bits * NANOS_PER_SEC / u128::from(srtt.as_nanos().max(1));
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// 8000 bits at 3 kbit/s take 2,666,666,666 2/3 ns: three of them exactly eight seconds.
    #[test]
    fn remainders_are_carried() {
        let rate = Rate::from_bps(3000);
        let mut pacer = Pacer::new(Instant::ZERO, rate);
        let mut now = Instant::ZERO;
        for _ in 0..3 {
            assert!(pacer.may_send(now));
            pacer.on_sent(now, 1000, rate, 1000);
            now = pacer.free_at;
        }
        assert_eq!(now, after(8_000_000_000));
    }

    /// Below 1.2 Mbit/s a burst is one segment, below 24 Mbit/s two, above that a millisecond up to 64 KiB.
    #[test]
    fn a_burst_is_one_quantum() {
        for (bps, segments) in
            [(1_000_000, 1), (10_000_000, 2), (80_000_000, 10), (800_000_000, 66), (8_000_000_000, 66)]
        {
            let rate = Rate::from_bps(bps);
            let mut pacer = Pacer::new(Instant::ZERO, rate);
            let mut sent = 0;
            while pacer.may_send(Instant::ZERO) {
                pacer.on_sent(Instant::ZERO, 1000, rate, 1000);
                sent += 1;
            }
            assert_eq!(sent, segments, "{rate}");
            assert_eq!(pacer.free_at, Instant::ZERO + rate.time_for(segments * 8000));
        }
    }

    #[test]
    fn lateness_is_made_up_for_and_idleness_is_not() {
        let rate = Rate::from_bps(1_000_000);
        let mut pacer = Pacer::new(Instant::ZERO, rate);
        pacer.on_sent(Instant::ZERO, 1000, rate, 1000);
        // Due at 8 ms, sent at 12 ms: the next is due at 16 ms.
        pacer.on_sent(after(12_000_000), 1000, rate, 1000);
        assert_eq!(pacer.free_at, after(16_000_000));
        pacer.on_sent(after(30_000_000), 1000, rate, 1000);
        assert_eq!(pacer.free_at, after(30_000_000) + Duration::from_millis(8));
    }
}
