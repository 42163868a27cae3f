//! Bursts of errors with uniform lengths and uniform good times between them (Kojo et al. 2005, section 4, table 1).
//!
//! Deviations: the paper leaves open where a run starts. Here it starts at a random place of the cycle, as if the channel had
//! always been there, so that not all replications meet their first burst alike.

use core::ops::Range;

use base::{Duration, Instant, Rng};

/// A span of time between two limits, all equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformSpan {
    /// The shortest.
    pub least: Duration,
    /// The longest, not below the shortest.
    pub most: Duration,
}

impl UniformSpan {
    /// The mean.
    #[must_use]
    pub fn mean(self) -> Duration {
        self.least + (self.most - self.least) / 2
    }

    /// One of them; a nanosecond at least.
    fn draw(self, rng: &mut Rng) -> Duration {
        let width = (self.most - self.least).as_nanos();
        self.least + Duration::from_nanos(rng.below(width + 1).max(u64::from(self.least.is_zero())))
    }

    /// The one that goes on at a random time: longer ones are met more often.
    fn draw_met(self, rng: &mut Rng) -> Duration {
        loop {
            let span = self.draw(rng);
            if rng.unit() * self.most.as_secs_f64() < span.as_secs_f64() {
                return span;
            }
        }
    }
}

/// Blocked intervals of uniform length, uniform times apart.
#[derive(Clone, Debug)]
pub struct Uniform {
    interval: UniformSpan,
    length: UniformSpan,
    rng: Rng,
    /// The next burst, once drawn; it may go on since before the start.
    next: Range<Instant>,
}

impl Uniform {
    /// Blocked for `length`, then open for `interval`, and so on, drawn from `rng`.
    #[must_use]
    pub fn new(interval: UniformSpan, length: UniformSpan, mut rng: Rng) -> Self {
        let (open, blocked) = (interval.mean().as_secs_f64(), length.mean().as_secs_f64());
        let starts_blocked = rng.chance(blocked / (open + blocked));
        let met = if starts_blocked { length } else { interval }.draw_met(&mut rng);
        let left = Duration::from_nanos(1 + rng.below(met.as_nanos()));
        let start = Instant::ZERO;
        let next = if starts_blocked {
            start..start + left
        } else {
            start + left..start + left + length.draw(&mut rng)
        };
        Self { interval, length, rng, next }
    }
}

impl Iterator for Uniform {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        let start = self.next.end.saturating_add(self.interval.draw(&mut self.rng));
        let following = start..start.saturating_add(self.length.draw(&mut self.rng));
        let burst = core::mem::replace(&mut self.next, following);
        (burst.start < burst.end).then_some(burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(least: u64, most: u64) -> UniformSpan {
        UniformSpan { least: Duration::from_millis(least), most: Duration::from_millis(most) }
    }

    fn bursts(interval: UniformSpan, length: UniformSpan, seed: u64) -> Uniform {
        Uniform::new(interval, length, Rng::named(seed, "bursts"))
    }

    /// Table 1, "High": good times of 2 to 10 s, bursts of 100 to 300 ms. Tolerance: five standard errors.
    #[test]
    fn lengths_and_intervals_are_uniform() {
        let n = 20_000;
        let all: Vec<_> = bursts(span(2000, 10_000), span(100, 300), 3).take(n).collect();
        let check = |seconds: Vec<f64>, least: f64, most: f64| {
            let (mean, count) = ((least + most) / 2.0, seconds.len() as f64);
            let error = (most - least) / 12_f64.sqrt() / count.sqrt();
            let measured = seconds.iter().sum::<f64>() / count;
            assert!((measured - mean).abs() < 5.0 * error, "{measured} instead of {mean}");
            assert!(seconds.iter().all(|s| (least..=most).contains(s)));
            let lower = seconds.iter().filter(|s| **s < mean).count() as f64 / count;
            assert!((lower - 0.5).abs() < 5.0 * 0.5 / count.sqrt(), "{lower}");
        };
        // The first burst may have begun before the start.
        check(all[1..].iter().map(|b| (b.end - b.start).as_secs_f64()).collect(), 0.1, 0.3);
        check(all.windows(2).map(|w| (w[1].start - w[0].end).as_secs_f64()).collect(), 2.0, 10.0);
    }

    /// At any time the channel is blocked as often as in the long run, at the start too.
    #[test]
    fn the_start_is_a_time_like_any_other() {
        let n = 20_000_u32;
        let blocked_at = |at: Instant| {
            let blocked = |seed| {
                let mut all = bursts(span(0, 700), span(100, 300), seed);
                all.find(|burst| burst.end > at).is_some_and(|burst| burst.start <= at)
            };
            (0..n).filter(|&seed| blocked(seed.into())).count() as f64 / f64::from(n)
        };
        let share = 200.0 / 550.0;
        let tolerance = 5.0 * (share * (1.0 - share) / f64::from(n)).sqrt();
        for millis in [0, 100, 350, 5000] {
            let measured = blocked_at(Instant::ZERO + Duration::from_millis(millis));
            assert!((measured - share).abs() < tolerance, "{millis} ms: {measured} instead of {share}");
        }
    }

    #[test]
    fn adjacent_bursts_stay_apart() {
        let all: Vec<_> = bursts(span(0, 0), span(100, 100), 1).take(1000).collect();
        assert!(all.windows(2).all(|w| w[0].end < w[1].start));
    }
}
