//! The erasure rate of the path, block by block.
//!
//! Equations 1 and 2 of the paper: the weight of a new sample is its share of the sum of sample and average, so that the estimate rises
//! fast and falls slowly. A block without losses leaves it exactly where it was. [`Estimator::Steady`] is not the paper's:
//! it is unbiased, falls on blocks without losses, and counts how much each block can say.

use crate::config::Estimator;

/// The erasure rate, estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    law: Estimator,
    rate: f64,
    /// Segments that the average stands on, for the steady law.
    weight: f64,
}

impl Estimate {
    pub(crate) const fn new(law: Estimator) -> Self {
        Self { law, rate: 0.0, weight: 0.0 }
    }

    /// The rate, from 0 to 1.
    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Of the `sent` segments of a block, `arrived` came.
    pub(crate) fn on_block(&mut self, sent: u32, arrived: u32) {
        if sent == 0 {
            return;
        }
        let new = f64::from(sent.saturating_sub(arrived)) / f64::from(sent);
        match self.law {
            Estimator::Adaptive if new + self.rate > 0.0 => {
                self.rate = (new * new + self.rate * self.rate) / (new + self.rate);
            }
            Estimator::Adaptive => {}
            Estimator::Steady => {
                let sent = f64::from(sent);
                self.weight = (self.weight + sent).min(MEMORY);
                self.rate += (new - self.rate) * (sent / self.weight).min(1.0);
            }
        }
    }
}

/// Segments that the steady estimate remembers: with 200 its standard deviation at a rate of 0.3 is 0.03.
const MEMORY: f64 = 200.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn after(law: Estimator, blocks: &[(u32, u32)]) -> f64 {
        let mut estimate = Estimate::new(law);
        blocks.iter().for_each(|(sent, arrived)| estimate.on_block(*sent, *arrived));
        estimate.rate()
    }

    #[test]
    fn the_adaptive_estimate_follows_the_papers_equations() {
        let adaptive = |blocks: &[_]| after(Estimator::Adaptive, blocks);
        assert_eq!(adaptive(&[(10, 10)]), 0.0);
        assert!((adaptive(&[(10, 8)]) - 0.2).abs() < 1e-12);
        // (0.4² + 0.2²) / 0.6
        assert!((adaptive(&[(10, 8), (10, 6)]) - 1.0 / 3.0).abs() < 1e-12);
        // A loss-free block changes nothing; a small sample brings it down.
        assert_eq!(adaptive(&[(10, 5), (10, 10), (10, 10)]), 0.5);
        assert!(adaptive(&[(10, 5), (10, 9)]) < 0.5);
        // More than was sent cannot arrive.
        assert_eq!(adaptive(&[(10, 12)]), 0.0);
        assert_eq!(adaptive(&[(0, 0)]), 0.0);
    }

    /// The bias that the project's notes compute for blocks of ten: 0.18 at 10 %, 0.35 at 30 %.
    #[test]
    fn the_adaptive_estimate_reads_high() {
        let mut rng = base::Rng::named(1, "estimate");
        for (rate, expected) in [(100, 0.18), (300, 0.35)] {
            let mut estimate = Estimate::new(Estimator::Adaptive);
            let mut sum = 0.0;
            for _ in 0..20_000 {
                let arrived = (0..10).filter(|_| rng.below(1000) >= rate).count() as u32;
                estimate.on_block(10, arrived);
                sum += estimate.rate();
            }
            let mean = sum / 20_000.0;
            assert!((mean - expected).abs() < 0.015, "{mean} at {rate} per thousand");
        }
    }

    #[test]
    fn the_steady_estimate_is_unbiased_and_falls() {
        let mut estimate = Estimate::new(Estimator::Steady);
        let mut rng = base::Rng::named(1, "estimate");
        let mut sum = 0.0;
        for _ in 0..20_000 {
            let arrived = (0..10).filter(|_| rng.below(1000) >= 300).count() as u32;
            estimate.on_block(10, arrived);
            sum += estimate.rate();
        }
        assert!((sum / 20_000.0 - 0.3).abs() < 0.01, "{}", sum / 20_000.0);
        let burst = [(10, 5), (10, 10), (10, 10), (10, 10)];
        assert!((after(Estimator::Steady, &burst) - 0.125).abs() < 1e-9);
    }
}
