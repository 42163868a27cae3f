//! The bootstrap: how a statistic spreads when the sample is drawn again from itself, with replacement.
//!
//! Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 6 and 13; intervals are their
//! percentile intervals. Deviations: none.

use base::random::Rng;

use super::{Interval, quantile};

/// Draws samples again, the same ones for the same seed and name.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    rng: Rng,
    resamples: usize,
}

/// One resample in the making. Draw once for what is paired, and once for each thing that is independent.
#[derive(Debug)]
pub struct Draw<'a>(&'a mut Rng);

impl Bootstrap {
    /// A bootstrap of 4000 resamples with the random stream of this root `seed` and owner's `name`.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        Self { rng: Rng::named(seed, name), resamples: RESAMPLES }
    }

    /// The same with another number of resamples.
    #[must_use]
    pub fn with_resamples(self, resamples: usize) -> Self {
        Self { resamples, ..self }
    }

    /// The statistic of each resample, in the order in which they were drawn.
    pub fn repeat(&mut self, mut statistic: impl FnMut(&mut Draw<'_>) -> f64) -> Vec<f64> {
        (0..self.resamples).map(|_| statistic(&mut Draw(&mut self.rng))).collect()
    }

    /// The share of resamples for which `event` is true, such as that one curve peaks before another.
    pub fn probability(&mut self, mut event: impl FnMut(&mut Draw<'_>) -> bool) -> f64 {
        let hits = (0..self.resamples).filter(|_| event(&mut Draw(&mut self.rng))).count();
        hits as f64 / self.resamples as f64
    }

    /// The percentile interval of a statistic of one sample at a confidence `level`; `None` of an empty sample.
    ///
    /// A value may be anything, such as a run's whole curve: pairs stay together as one value.
    pub fn interval<T>(
        &mut self,
        values: &[T],
        level: f64,
        statistic: impl Fn(&[&T]) -> f64,
    ) -> Option<Interval> {
        if values.is_empty() || self.resamples == 0 {
            return None;
        }
        let mean = statistic(&values.iter().collect::<Vec<_>>());
        let mut drawn = self.repeat(|draw| statistic(&draw.of(values)));
        drawn.sort_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - level);
        Some(Interval {
            mean,
            low: quantile(&drawn, tail),
            high: quantile(&drawn, 1.0 - tail),
            n: values.len(),
        })
    }
}

impl Draw<'_> {
    /// As many places as there are, each any of `0..n`.
    pub fn places(&mut self, n: usize) -> Vec<usize> {
        (0..n).map(|_| self.0.below(n as u64) as usize).collect()
    }

    /// As many of `values` as there are, each any of them.
    pub fn of<'v, T>(&mut self, values: &'v [T]) -> Vec<&'v T> {
        self.places(values.len()).into_iter().map(|place| &values[place]).collect()
    }
}

/// Efron and Tibshirani (1993), 13.3, ask for at least 1000 for an interval.
const RESAMPLES: usize = 4000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{mean, standard_deviation};

    fn mean_of(values: &[&f64]) -> f64 {
        values.iter().copied().sum::<f64>() / values.len() as f64
    }

    /// The seven treated mice of Efron and Tibshirani (1993), table 2.1: mean 86.86, whose bootstrap standard error
    /// for infinitely many resamples is 23.36.
    #[test]
    fn the_mice_have_their_standard_error() {
        let mice = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];
        let mut bootstrap = Bootstrap::named(1, "mice").with_resamples(20_000);
        let means = bootstrap.repeat(|draw| mean_of(&draw.of(&mice)));
        assert!((mean(&means).unwrap() - 86.857).abs() < 0.5);
        let error = standard_deviation(&means).unwrap();
        assert!((error - 23.36).abs() < 0.5, "{error}");
    }

    /// Of the 27 equally likely resamples of three values, 7 have the lowest as median and 7 the highest; 19 hold a
    /// given one.
    #[test]
    fn probabilities_are_those_of_counting() {
        let mut bootstrap = Bootstrap::named(1, "three").with_resamples(20_000);
        let lowest = bootstrap.probability(|draw| {
            let mut drawn = draw.places(3);
            drawn.sort_unstable();
            drawn[1] == 0
        });
        assert!((lowest - 7.0 / 27.0).abs() < 0.01, "{lowest}");
        let holds = bootstrap.probability(|draw| draw.of(&[1, 2, 3]).contains(&&3));
        assert!((holds - 19.0 / 27.0).abs() < 0.01, "{holds}");
    }

    #[test]
    fn intervals_repeat_and_hold_the_statistic() {
        let values: Vec<f64> = (0..40).map(|k| f64::from(k * k % 37)).collect();
        let interval = |name| Bootstrap::named(7, name).interval(&values, 0.95, mean_of).unwrap();
        let student = Interval::of(values.iter().copied(), 0.95).unwrap();
        let first = interval("a");
        assert_eq!(first, interval("a"));
        assert_ne!(first, interval("b"));
        assert!(first.low < first.mean && first.mean < first.high);
        // For a mean of forty both methods nearly agree.
        assert!((first.half_width() / student.half_width() - 1.0).abs() < 0.1);
        assert_eq!(Bootstrap::named(7, "none").interval(&[], 0.95, mean_of), None);
    }
}
