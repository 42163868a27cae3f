//! Resamples of seeds that many samples share.
//!
//! Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 6 and 8. Deviations: the resamples
//! depend on the number of seeds alone, so every sample over the same seeds is drawn again in the same way. What two
//! cells share, such as the channel's luck, then stays shared in whatever is computed from both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::random::Rng;

/// [`RESAMPLES`] draws of n places out of `0..n`, with replacement.
#[derive(Debug)]
pub struct Resamples {
    n: usize,
    places: Vec<u32>,
}

/// Enough for an interval (Efron and Tibshirani 1993, 13.3); a standard error is then good to 1 / sqrt(2 * 1000), or 2 %.
pub const RESAMPLES: usize = 1000;

impl Resamples {
    /// The resamples of `n` seeds; always the same ones.
    ///
    /// # Panics
    /// If `n` is zero.
    #[must_use]
    pub fn of(n: usize) -> Arc<Self> {
        assert!(n > 0, "nothing to draw from");
        let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(drawn.entry(n).or_insert_with(|| Arc::new(Self::draw(n))))
    }

    fn draw(n: usize) -> Self {
        let mut rng = Rng::named(ROOT_SEED, &format!("resamples of {n} seeds"));
        let places = (0..RESAMPLES * n).map(|_| rng.below(n as u64) as u32).collect();
        Self { n, places }
    }

    /// The places of each resample.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.places.chunks_exact(self.n)
    }
}

/// One entry for each number of seeds that was asked for; what is drawn is a function of that number.
static DRAWN: Mutex<BTreeMap<usize, Arc<Resamples>>> = Mutex::new(BTreeMap::new());

/// Any number does, but every published interval depends on it.
const ROOT_SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resamples_are_pinned_and_whole() {
        let ten = Resamples::of(10);
        let first: Vec<u32> = ten.iter().next().unwrap().to_vec();
        assert_eq!(first, PINNED);
        assert_eq!(ten.iter().count(), RESAMPLES);
        assert!(ten.iter().flatten().all(|&place| place < 10));
        assert_eq!(Resamples::of(1).iter().flatten().max(), Some(&0));
    }

    const PINNED: [u32; 10] = [3, 1, 6, 5, 4, 0, 7, 0, 2, 9];

    /// Each of ten places comes 1 time a resample on average, with variance 0.9; five standard errors.
    #[test]
    fn places_are_equally_likely() {
        let ten = Resamples::of(10);
        for place in 0..10 {
            let times = ten.iter().flatten().filter(|&&drawn| drawn == place).count() as f64;
            let error = (0.9 * RESAMPLES as f64).sqrt();
            assert!((times - RESAMPLES as f64).abs() < 5.0 * error, "{place}: {times}");
        }
    }
}
