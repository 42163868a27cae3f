//! Named random streams.
//!
//! Every stream derives from the run's root seed and its owner's *name*, so adding an owner, or one
//! drawing more often, changes nobody else's luck. The generator is ChaCha8: portable and versioned,
//! the same numbers on any machine. So are the distributions here: logarithms come from `libm`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

use crate::time::Duration;

/// One owner's random stream.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// The stream of the owner called `name` in the run with this root `seed`.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        let mut chacha = ChaCha8Rng::seed_from_u64(seed);
        chacha.set_stream(fnv1a(name.as_bytes()));
        Self(chacha)
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in the half-open interval [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform integer below `bound`; zero when `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The widening product's bias is below bound / 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponentially distributed span with this mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // 1 - unit() is in (0, 1]: the logarithm is finite.
        Duration::from_secs_f64(-libm::log(1.0 - self.unit()) * mean.as_secs_f64())
    }

    /// How many trials fail before the first success, each succeeding with `probability`; `u64::MAX` if none can.
    pub fn failures_before_success(&mut self, probability: f64) -> u64 {
        if probability >= 1.0 {
            return 0;
        }
        if probability <= 0.0 {
            return u64::MAX;
        }
        let failures = libm::log(1.0 - self.unit()) / libm::log1p(-probability);
        // A float-to-integer cast saturates.
        failures as u64
    }
}

/// FNV-1a, 64 bits: a stable hash of names (Fowler, Noll, Vo).
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_stream() {
        let draw = |seed, name| Rng::named(seed, name).bits();
        assert_eq!(draw(1, "blockage"), draw(1, "blockage"));
        assert_ne!(draw(1, "blockage"), draw(2, "blockage"));
        assert_ne!(draw(1, "blockage"), draw(1, "traffic"));
    }

    /// The first numbers of a stream are part of every published result: they may never change.
    #[test]
    fn streams_are_pinned() {
        let mut rng = Rng::named(1, "pinned");
        let drawn = [rng.bits(), rng.below(1000), rng.exponential(Duration::from_secs(1)).as_nanos()];
        assert_eq!(drawn, PINNED);
    }

    const PINNED: [u64; 3] = [3_828_642_047_949_377_542, 536, 1_759_064_013];

    #[test]
    fn distributions_have_their_means() {
        let mut rng = Rng::named(7, "means");
        let n = 200_000;
        let mean = |sum: f64| sum / f64::from(n);
        let exponential = mean((0..n).map(|_| rng.exponential(Duration::from_secs(2)).as_secs_f64()).sum());
        let geometric = mean((0..n).map(|_| rng.failures_before_success(0.01) as f64).sum());
        // Five standard errors: 2 / sqrt(n) and about 100 / sqrt(n).
        assert!((exponential - 2.0).abs() < 5.0 * 2.0 / f64::from(n).sqrt(), "{exponential}");
        assert!((geometric - 99.0).abs() < 5.0 * 100.0 / f64::from(n).sqrt(), "{geometric}");
        assert_eq!(rng.failures_before_success(0.0), u64::MAX);
        assert_eq!(rng.failures_before_success(1.0), 0);
    }
}
