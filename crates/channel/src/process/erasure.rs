//! Bernoulli erasure: each frame is lost with the same probability, whatever its length.

use core::ops::Range;

use base::units::Probability;
use base::{Instant, Rng};

use super::{ErrorProcess, Fate, randomise};

/// Loses each frame independently of all others.
///
/// The losses are a property of the frame count: the same frames by number are lost for every scheme.
#[derive(Clone, Debug)]
pub struct Erasure {
    probability: f64,
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
        Self { probability, rng, passing }
    }
}

impl ErrorProcess for Erasure {
    fn fate(&mut self, _on_air: Range<Instant>, _bits: u32) -> Fate {
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
    fn never_and_always_are_exact() {
        assert_eq!(losses(0.0, 10_000), 0);
        assert_eq!(losses(1.0, 10_000), 10_000);
    }
}
