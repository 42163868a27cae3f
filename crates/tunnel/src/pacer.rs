//! When the next frame may leave.

use base::{Duration, Instant, Rate, Serializer};

/// Paces frames to the link rate, and idle chatter to a rate of its own.
///
/// Frames leave in bursts of at most [`QUANTUM`] of line time, plus what a late wake-up must make up for,
/// at most [`catch_up`].
#[derive(Clone, Debug)]
pub struct Pacer {
    /// None on a link without a rate.
    line: Option<Serializer>,
    /// Between two fillers; zero keeps the line always busy.
    filler_interval: Duration,
    filler_at: Instant,
}

/// Line time that may be sent ahead: a timer's granularity, for batches on fast links.
pub const QUANTUM: Duration = Duration::from_micros(200);
/// Lateness that is made up for, so that a late timer costs no throughput: as long as 64 KiB take, which carriers are used to
/// from super-segments, but from 1 ms to 10 ms, by which a busy machine's timers are late.
#[must_use]
pub fn catch_up(rate: Rate) -> Duration {
    rate.time_for(65_536 * 8).clamp(Duration::from_millis(1), Duration::from_millis(10))
}
/// Up to this link rate an idle line is kept busy, as the thesis has it (Faulkner 2004, 2.2).
pub const ALWAYS_BUSY: Rate = Rate::from_bps(1_000_000);

impl Pacer {
    /// A pacer for a link of this rate (`None`: as fast as the carrier takes it), that sends at most
    /// `fillers` idle frames a second where the line is faster than [`ALWAYS_BUSY`].
    #[must_use]
    pub fn new(rate: Option<Rate>, fillers: u32) -> Self {
        let filler_interval = match rate {
            Some(rate) if rate <= ALWAYS_BUSY => Duration::ZERO,
            _ if fillers == 0 => Duration::MAX,
            _ => Duration::from_nanos(1_000_000_000 / u64::from(fillers)),
        };
        Self { line: rate.map(Serializer::new), filler_interval, filler_at: Instant::ZERO }
    }

    /// Frames leave at another rate from now on; how often an idle line speaks stays. A line that is faster than was thought is free
    /// sooner; one that is slower has had the time that was meant for it.
    pub fn set_rate(&mut self, now: Instant, rate: Option<Rate>) {
        let former = self.rate();
        let debt = self.free_at().saturating_since(now);
        self.line = rate.map(|rate| {
            let mut line = Serializer::new(rate);
            let faster = former.filter(|former| *former < rate);
            let debt = faster.map_or(debt, |former| rate.time_for(former.bits_in(debt)));
            line.send(now.saturating_add(debt), 0);
            line
        });
    }

    /// The rate, if the link has one.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.line.as_ref().map(Serializer::rate)
    }

    /// Whether the link has a rate.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.line.is_some()
    }

    /// Whether a frame may leave now.
    #[must_use]
    pub fn is_free(&self, now: Instant) -> bool {
        self.line.as_ref().is_none_or(|line| line.free_at() <= now + QUANTUM)
    }

    /// Whether an idle frame may leave now, the line being free.
    #[must_use]
    pub fn allows_filler(&self, now: Instant) -> bool {
        self.filler_at <= now
    }

    /// `bytes` have left.
    pub fn on_sent(&mut self, now: Instant, bytes: usize) {
        if let Some(line) = &mut self.line {
            line.send(now.saturating_sub(catch_up(line.rate())), bytes as u64 * 8);
        }
    }

    /// The frame that has left was an idle one.
    pub fn on_filler(&mut self, now: Instant) {
        self.filler_at = now.saturating_add(self.filler_interval);
    }

    /// When the line is free for the next frame.
    #[must_use]
    pub fn free_at(&self) -> Instant {
        self.line.as_ref().map_or(Instant::ZERO, Serializer::free_at)
    }

    /// When an idle frame may leave.
    #[must_use]
    pub fn filler_at(&self) -> Instant {
        self.filler_at.max(self.free_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends frames whenever allowed, waking `lateness` after each asked-for time; bits in `span`.
    fn bits_sent(rate: Rate, frame: usize, lateness: Duration, span: Duration) -> u64 {
        let mut pacer = Pacer::new(Some(rate), 0);
        // Not from zero, where there is nothing to catch up with.
        let start = Instant::ZERO + Duration::from_secs(10);
        let (mut now, mut bits, mut longest) = (start, 0, 0);
        while now < start + span {
            let mut burst = 0;
            while pacer.is_free(now) {
                pacer.on_sent(now, frame);
                burst += frame as u64 * 8;
            }
            bits += burst;
            longest = longest.max(burst);
            now = pacer.free_at().max(now) + lateness;
        }
        let bound = rate.bits_in(QUANTUM + catch_up(rate)) + 2 * frame as u64 * 8;
        assert!(longest <= bound, "a burst of {longest} bits at {rate}, bound {bound}");
        bits
    }

    #[test]
    fn the_rate_is_met_with_late_timers_and_bursts_stay_bounded() {
        let span = Duration::from_secs(2);
        for bps in [9_600, 256_000, 1_000_000, 100_000_000, 10_000_000_000] {
            for lateness in [0, 1_000, 60_000, 900_000, 9_000_000] {
                if lateness > catch_up(Rate::from_bps(bps)).as_nanos() {
                    continue;
                }
                let rate = Rate::from_bps(bps);
                let bits = bits_sent(rate, 496, Duration::from_nanos(lateness), span);
                let want = rate.bits_in(span);
                let slack = rate.bits_in(QUANTUM + catch_up(rate) * 2) + 3 * 496 * 8;
                assert!(bits.abs_diff(want) <= slack, "{bits} of {want} at {rate}, {lateness} ns late");
            }
        }
    }

    #[test]
    fn an_idle_line_is_busy_when_slow_and_paced_when_fast() {
        let now = Instant::from_nanos(5);
        let mut slow = Pacer::new(Some(ALWAYS_BUSY), 50);
        slow.on_filler(now);
        assert!(slow.allows_filler(now));
        for rate in [None, Some(Rate::from_bps(1_000_001))] {
            let mut fast = Pacer::new(rate, 50);
            assert!(fast.allows_filler(now));
            fast.on_filler(now);
            assert!(!fast.allows_filler(now + Duration::from_millis(19)));
            assert!(fast.allows_filler(now + Duration::from_millis(20)));
        }
        let mut silent = Pacer::new(None, 0);
        silent.on_filler(now);
        assert!(!silent.allows_filler(now + Duration::from_secs(1_000_000)));
    }

    #[test]
    fn another_rate_holds_after_what_was_sent() {
        let mut pacer = Pacer::new(Some(Rate::from_bps(8_000)), 50);
        let now = Instant::ZERO + Duration::from_secs(1);
        pacer.on_sent(now, 1000);
        let due = pacer.free_at().saturating_since(now);
        // What was thought to take a second takes half of it.
        pacer.set_rate(now, Some(Rate::from_bps(16_000)));
        let free_at = now + Duration::from_nanos(due.as_nanos() / 2);
        assert_eq!((pacer.free_at(), pacer.rate()), (free_at, Some(Rate::from_bps(16_000))));
        pacer.on_sent(now, 1000);
        assert_eq!(pacer.free_at(), free_at + Duration::from_millis(500));
        let free_at = pacer.free_at();
        pacer.set_rate(now, Some(Rate::from_bps(8_000)));
        assert_eq!(pacer.free_at(), free_at);
        pacer.set_rate(now, None);
        assert!(pacer.is_free(now));
    }

    #[test]
    fn without_a_rate_the_line_is_always_free() {
        let mut pacer = Pacer::new(None, 50);
        pacer.on_sent(Instant::ZERO, 1 << 30);
        assert!(!pacer.is_limited() && pacer.is_free(Instant::ZERO));
    }
}
