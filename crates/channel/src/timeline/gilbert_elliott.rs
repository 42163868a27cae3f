//! The two-state Markov channel of Gilbert and Elliott, in continuous time (Faulkner 2004, 3.2, equation 3.1).
//!
//! Deviations:
//! - continuous time in place of the thesis's discrete steps of unstated length, so that no parameter
//!   depends on the rate: sojourns are exponential, not geometric;
//! - the first state is drawn from the stationary distribution, which the thesis leaves open.

use core::ops::Range;

use base::{Duration, Instant, Rng};

/// Blocked intervals with exponential lengths and exponential gaps.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    mean_blocked: Duration,
    mean_open: Duration,
    rng: Rng,
    /// When the next open period starts; the end of the last blocked interval.
    open_from: Instant,
    /// Whether the first state, blocked, is still to be told.
    starts_blocked: bool,
}

impl GilbertElliott {
    /// Blocked for the fraction `f` of the time, below 1, in intervals of mean length `d`, drawn from `rng`.
    ///
    /// The blocked state is left at rate 1/d and entered at rate f / ((1 - f) d).
    #[must_use]
    pub fn new(f: f64, d: Duration, mut rng: Rng) -> Self {
        let starts_blocked = rng.chance(f);
        let mean_open = Duration::from_secs_f64(d.as_secs_f64() * (1.0 - f) / f);
        // With f = 0 the open period is endless, not exponential with an endless mean.
        let open_from = if f > 0.0 { Instant::ZERO } else { Instant::MAX };
        Self { mean_blocked: d, mean_open, rng, open_from, starts_blocked }
    }
}

impl Iterator for GilbertElliott {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        let start = if core::mem::take(&mut self.starts_blocked) {
            self.open_from
        } else {
            self.open_from.saturating_add(self.rng.exponential(self.mean_open).max(SHORTEST))
        };
        if start == Instant::MAX {
            return None;
        }
        let end = start.saturating_add(self.rng.exponential(self.mean_blocked).max(SHORTEST));
        self.open_from = end;
        Some(start..end)
    }
}

/// The clock's resolution: no state is shorter.
const SHORTEST: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn realisation(f: f64, d: Duration, seed: u64) -> GilbertElliott {
        GilbertElliott::new(f, d, Rng::named(seed, "blockage"))
    }

    /// Equation 3.1: mean blockage d, blocked fraction f, mean period d / f. Tolerance: five standard errors of
    /// exponential sojourns.
    #[test]
    fn sojourns_have_the_means_of_the_thesis() {
        for f in [0.1, 0.3, 0.5, 0.7, 0.9] {
            for d in [Duration::from_millis(1), Duration::from_secs(5)] {
                let periods = 100_000_u32;
                let intervals: Vec<_> = realisation(f, d, 17).take(periods as usize).collect();
                let n = f64::from(periods);
                let d = d.as_secs_f64();
                let lengths = intervals.iter().map(|i| (i.end - i.start).as_secs_f64());
                let blocked: f64 = lengths.sum::<f64>() / n;
                let period = intervals.last().unwrap().end.as_secs_f64() / n;
                assert!((blocked / d - 1.0).abs() < 5.0 / n.sqrt(), "f {f} d {d}: {blocked}");
                assert!((period * f / d - 1.0).abs() < 5.0 / n.sqrt(), "f {f} d {d}: period {period}");
                let fraction = blocked / period;
                let spread = (2.0 / n).sqrt() * f * (1.0 - f);
                assert!((fraction - f).abs() < 5.0 * spread, "f {f} d {d}: fraction {fraction}");
            }
        }
    }

    #[test]
    fn the_first_state_is_stationary() {
        let n = 20_000_u32;
        let first = |seed| realisation(0.3, Duration::from_secs(1), seed).next().unwrap().start;
        let blocked = (0..n).filter(|&seed| first(seed.into()) == Instant::ZERO).count() as f64;
        let share = blocked / f64::from(n);
        assert!((share - 0.3).abs() < 5.0 * (0.3 * 0.7 / f64::from(n)).sqrt(), "{share}");
    }

    #[test]
    fn intervals_are_in_order_and_apart() {
        let intervals: Vec<_> = realisation(0.9, Duration::from_nanos(3), 1).take(10_000).collect();
        assert!(intervals.iter().all(|i| i.start < i.end));
        assert!(intervals.windows(2).all(|pair| pair[0].end < pair[1].start));
    }

    #[test]
    fn without_blockage_there_is_none() {
        for seed in 0..100 {
            assert_eq!(realisation(0.0, Duration::from_secs(1), seed).next(), None);
        }
    }
}
