//! A number that was computed from samples, with its uncertainty.
//!
//! An estimate carries the same statistic on [`Resamples`](crate::statistics::Resamples) of the seeds, its replicates. All
//! estimates over n seeds share those resamples, so functions of several estimates work replicate by replicate and what
//! the cells share stays paired.
//!
//! The interval is point +- t(n - 1) * sd(replicates) * sqrt(n / (n - 1)). The bootstrap's standard error of a mean is
//! sqrt(sum (x - mean)^2) / n; times the root it is the usual s / sqrt(n), so that for a mean this is Student's interval,
//! but for the 2 % by which 1000 resamples miss the standard error. Percentile intervals are too narrow for the 5 to 30
//! seeds that an experiment has; this one is exact for means of normal values. Its limits: it is symmetric, so for skewed
//! statistics of few seeds one side is too long and the other too short; with several samples the smallest n counts.

use core::fmt;
use std::sync::Arc;

use super::short;
use crate::statistics::t_quantile;

/// A statistic and its replicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Of the seeds themselves.
    pub point: f64,
    /// Of each resample of them.
    pub replicates: Arc<[f64]>,
    /// Seeds with a value; of several samples that went in, the fewest.
    pub n: usize,
}

/// The level of an interval that stands alone.
pub const LEVEL: f64 = 0.95;

impl Estimate {
    /// The interval at a confidence `level`, such as 0.95: its lower and its upper end. Where the estimate and all replicates are
    /// the same infinity, that is both ends.
    ///
    /// # Errors
    /// Why there is none: one seed has none, and neither have replicates some of which are no finite numbers.
    pub fn interval(&self, level: f64) -> Result<(f64, f64), String> {
        if self.n < 2 {
            return Err("one seed has no interval".to_owned());
        }
        if self.point.is_infinite() && self.replicates.iter().all(|&replicate| replicate == self.point) {
            return Ok((self.point, self.point));
        }
        if !self.point.is_finite() || self.replicates.iter().any(|replicate| !replicate.is_finite()) {
            return Err("it is infinite or undefined with some of the seeds".to_owned());
        }
        let degrees = (self.n - 1) as f64;
        let half =
            t_quantile(0.5 + 0.5 * level, degrees) * self.deviation() * (self.n as f64 / degrees).sqrt();
        Ok((self.point - half, self.point + half))
    }

    /// The standard deviation of the replicates; zero, without rounding, if they are all equal.
    fn deviation(&self) -> f64 {
        let b = self.replicates.len() as f64;
        let first = self.replicates.first().copied().unwrap_or(self.point);
        let mean = first + self.replicates.iter().map(|replicate| replicate - first).sum::<f64>() / b;
        let squares: f64 =
            self.replicates.iter().map(|replicate| (replicate - mean) * (replicate - mean)).sum();
        (squares / b).sqrt()
    }
}

/// The point and its interval at [`LEVEL`], as in `0.91 (0.88 to 0.94)`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.point, self.interval(LEVEL).ok()))
    }
}

/// A point and its interval, if it has one, as in `0.91 (0.88 to 0.94)`.
pub(super) fn told(point: f64, interval: Option<(f64, f64)>) -> String {
    match interval {
        Some((low, high)) if low < high => format!("{} ({} to {})", short(point), short(low), short(high)),
        Some(_) => short(point),
        None => format!("{} (no interval)", short(point)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::sample::Sample;
    use crate::statistics::Interval;

    const TEN: [f64; 10] = [3.1, 4.7, 2.2, 5.0, 3.9, 4.1, 2.8, 6.3, 3.3, 4.4];

    /// With all 5^5 resamples of five values, instead of 1000 of them, it is Student's interval to the last digits.
    #[test]
    fn all_resamples_give_students_interval() {
        let five = &TEN[..5];
        let digits = |k: usize| (0..5).map(move |place| k / 5_usize.pow(place) % 5);
        let mean = |k| digits(k).map(|place| five[place]).sum::<f64>() / 5.0;
        let replicates: Arc<[f64]> = (0..5_usize.pow(5)).map(mean).collect();
        let estimate = Estimate { point: five.iter().sum::<f64>() / 5.0, replicates, n: 5 };
        for level in [0.95, 0.999] {
            let student = Interval::of(five.iter().copied(), level).unwrap();
            let (low, high) = estimate.interval(level).unwrap();
            assert!((low - student.low).abs() < 1e-12 && (high - student.high).abs() < 1e-12, "{low} {high}");
        }
    }

    /// The standard error of 1000 resamples is good to 2.2 %; three times that.
    #[test]
    fn a_mean_of_ten_has_students_interval_but_for_resampling() {
        let mean = Sample::of(TEN.map(Some)).mean().unwrap();
        let student = Interval::of(TEN, 0.95).unwrap();
        let (low, high) = mean.interval(0.95).unwrap();
        assert!((mean.point - student.mean).abs() < 1e-12 && mean.n == 10);
        let ratio = (high - low) / (student.high - student.low);
        assert!((ratio - 1.0).abs() < 0.067, "{ratio}");
        assert!((0.5 * (low + high) - student.mean).abs() < 1e-12);
    }

    #[test]
    fn what_does_not_vary_has_an_interval_without_width() {
        let mean = Sample::of([Some(0.1); 10]).mean().unwrap();
        assert_eq!((mean.point, mean.interval(0.95)), (0.1, Ok((0.1, 0.1))));
        let never = Sample::of([Some(f64::INFINITY); 4]).mean().unwrap();
        assert_eq!(never.interval(0.95), Ok((f64::INFINITY, f64::INFINITY)));
        let partly = Sample::of([Some(f64::INFINITY), Some(1.0), None]);
        assert_eq!(partly.mean(), Err("it is infinite with 1 of 2 seeds".to_owned()));
        let median = partly.estimate(|values| values.iter().copied().fold(0.0, f64::max)).unwrap();
        assert!(median.interval(0.95).is_err() && median.point == f64::INFINITY);
        assert_eq!(
            Sample::of([Some(1.0)]).mean().unwrap().interval(0.95),
            Err("one seed has no interval".to_owned())
        );
    }

    #[test]
    fn seeds_without_a_value_are_left_out() {
        let some = Sample::of([Some(2.0), None, Some(4.0), Some(6.0)]);
        let mean = some.mean().unwrap();
        assert_eq!((mean.point, mean.n), (4.0, 3));
        assert!(mean.replicates.iter().all(|replicate| (2.0..=6.0).contains(replicate)));
        let few = Sample::of([Some(2.0), None, None]).because("it never ended");
        assert_eq!(few.mean(), Err("it never ended (1 of 3 seeds have a value)".to_owned()));
        assert!(Sample::of([]).mean().is_err());
    }
}
