//! Bernoulli erasure: each frame is lost with the same probability, whatever its length, until that changes at a given time.

use core::ops::Range;
use std::collections::VecDeque;

use base::units::Probability;
use base::{Instant, Rng};

use super::{ErrorProcess, Fate, randomise};

/// Loses each frame independently of all others.
///
/// The losses are a property of the frame count: the same frames by number are lost for every scheme.
#[derive(Clone, Debug)]
pub struct Erasure {
    probability: f64,
    /// Other probabilities to come, in the order of their times.
    changes: VecDeque<(Instant, f64)>,
    rng: Rng,
    /// Frames that still pass before the next loss.
    passing: u64,
}

impl Erasure {
    /// Loses each frame with this `probability`, drawn from `rng`.
    #[must_use]
    pub fn new(probability: Probability, mut rng: Rng) -> Self {
        let probability = probability.get();
        let passing = rng.failures_before_success(probability);
        Self { probability, changes: VecDeque::new(), rng, passing }
    }

    /// With other probabilities later on, in the order of their times: a frame is lost with the one that holds when it begins.
    #[must_use]
    pub fn with_changes(mut self, changes: impl IntoIterator<Item = (Instant, Probability)>) -> Self {
        self.changes = changes.into_iter().map(|(at, probability)| (at, probability.get())).collect();
        self
    }
}

impl ErrorProcess for Erasure {
    fn fate(&mut self, on_air: Range<Instant>, _bits: u32) -> Fate {
        while let Some((_, probability)) = self.changes.pop_front_if(|(at, _)| *at <= on_air.start) {
            self.probability = probability;
            self.passing = self.rng.failures_before_success(probability);
        }
        if let Some(left) = self.passing.checked_sub(1) {
            self.passing = left;
            return Fate::Intact;
        }
        self.passing = self.rng.failures_before_success(self.probability);
        Fate::Lost
    }

    /// What arrives in place of a lost frame is noise.
    fn damage(&mut self, on_air: Range<Instant>, bytes: &mut [u8]) -> u32 {
        if self.fate(on_air, 0).is_intact() {
            return 0;
        }
        let bits = 0..bytes.len() * 8;
        randomise(&mut self.rng, bytes, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(probability: f64, frames: u32) -> u32 {
        let probability = Probability::try_from(probability).unwrap();
        let mut process = Erasure::new(probability, Rng::named(3, "erasure"));
        let lost = |_: &u32| process.fate(Instant::ZERO..Instant::ZERO, 8) == Fate::Lost;
        (0..frames).filter(lost).count() as u32
    }

    #[test]
    fn frames_are_lost_with_the_given_probability() {
        let (n, p) = (200_000, 0.01);
        let standard_error = (f64::from(n) * p * (1.0 - p)).sqrt();
        let deviation = f64::from(losses(p, n)) - f64::from(n) * p;
        assert!(deviation.abs() < 5.0 * standard_error, "{deviation}");
    }

    #[test]
    fn the_probability_changes_when_told() {
        let at = |seconds| Instant::ZERO + base::Duration::from_secs(seconds);
        let p = |probability| Probability::try_from(probability).unwrap();
        let process = Erasure::new(p(0.0), Rng::named(3, "erasure"));
        let mut process = process.with_changes([(at(10), p(1.0)), (at(20), p(0.0))]);
        for second in 0..30 {
            let lost = process.fate(at(second)..at(second + 1), 8) == Fate::Lost;
            assert_eq!(lost, (10..20).contains(&second), "{second}");
        }
    }

    #[test]
    fn never_and_always_are_exact() {
        assert_eq!(losses(0.0, 10_000), 0);
        assert_eq!(losses(1.0, 10_000), 10_000);
    }
}
