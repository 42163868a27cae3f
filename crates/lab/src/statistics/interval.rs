//! Confidence intervals of means.

use serde::Serialize;

use super::t_quantile;

/// A mean and the interval that holds the true one with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The sample's mean, or for a bootstrap the statistic of the sample itself.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Values.
    pub n: usize,
}

impl Interval {
    /// Student's interval of the mean of independent `values` at the confidence `level`, such as 0.95; `None` for
    /// fewer than two values, which say nothing about their spread.
    ///
    /// # Panics
    /// If `level` is not between 0 and 1, both excluded.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>, level: f64) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len();
        let (mean, deviation) = (mean(&values)?, standard_deviation(&values)?);
        let half = t_quantile(0.5 + 0.5 * level, (n - 1) as f64) * deviation / (n as f64).sqrt();
        Some(Self { mean, low: mean - half, high: mean + half, n })
    }
}

/// The arithmetic mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let rough = values.iter().sum::<f64>() / n;
    // The mean of what is left takes the sum's rounding out of large values.
    Some(rough + values.iter().map(|value| value - rough).sum::<f64>() / n)
}

/// The sample's standard deviation, with n - 1; `None` of fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST Statistical Reference Datasets, univariate, the fourth of numerical accuracy: 1001 values
    /// around 10^7; certified mean 10000000.2, standard deviation 0.1.
    #[test]
    fn large_values_keep_their_deviation() {
        let alternating = (0..500).flat_map(|_| [10_000_000.1, 10_000_000.3]);
        let values: Vec<f64> = core::iter::once(10_000_000.2).chain(alternating).collect();
        assert!((mean(&values).unwrap() - 10_000_000.2).abs() < 1e-8);
        assert!((standard_deviation(&values).unwrap() - 0.1).abs() < 1e-8);
    }

    /// Student's own data on sleep (1908), as in R: `t.test(Pair(extra1, extra2))` gives the mean difference -1.58
    /// and the 95 % interval -2.4598858 to -0.7001142.
    #[test]
    fn the_sleep_of_ten_patients() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences = first.iter().zip(second).map(|(first, second)| first - second);
        let interval = Interval::of(differences, 0.95).unwrap();
        assert!((interval.mean + 1.58).abs() < 1e-12 && interval.n == 10);
        assert!((interval.low + 2.459_885_8).abs() < 1e-7, "{interval:?}");
        assert!((interval.high + 0.700_114_2).abs() < 1e-7, "{interval:?}");
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(Interval::of([1.0], 0.95), None);
        assert_eq!((mean(&[]), standard_deviation(&[2.0])), (None, None));
    }
}
