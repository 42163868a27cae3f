//! A number that was computed from samples, with its uncertainty.
//!
//! An estimate carries the same statistic on [`Resamples`](crate::statistics::Resamples) of the seeds, its replicates. All
//! estimates over n seeds share those resamples, so functions of several estimates work replicate by replicate and what
//! the cells share stays paired.
//!
//! The interval covers two:
//!
//! - point +- t s, with t of n - 1 degrees of freedom and s = sd(replicates) * sqrt(n / (n - 1)). The bootstrap's standard error
//!   of a mean is sqrt(sum (x - mean)^2) / n; times the root it is the usual one, so that for a mean this is Student's interval,
//!   but for the 2 % by which 1000 resamples miss the standard error. Percentile intervals are too narrow for the 5 to 30 seeds
//!   that an experiment has; this one is exact for means of normal values.
//! - point + h +- sqrt((t s)^2 + h^2) with h = z^2 g / 2, z of the normal distribution and g the replicates' third central moment
//!   by their second, without its bias for few seeds. Where few seeds have large values the ones that were drawn have few too
//!   many or too little of them, and the variance is seen too small just where the point is too low: g is by how much the
//!   squared standard error changes with the point. For counts g is what one of them is worth, and this is Wilson's score
//!   interval (Wilson 1927) but for t. Of twenty datagrams one in fifty of which is lost, ten seeds make Student's interval miss on
//!   the low side in 7 of 100 studies, and both together in none.
//!
//! Seeds that agree have no spread to tell how far others may be. Fewer than ten that agree decide nothing. Ten or more are equal to a number
//! if that is what all of them are; for everything else they are drawn again with two further seeds, one a step above and one a step below, where a step is
//! the least by which values of that quantity differ ([`Sample::with_step`](super::Sample::with_step)): of what is so or not, ten seeds out of ten leave 0.3.
//!
//! The greatest of several uncertain numbers is not the number that came out greatest: its point is too high, and the more so the
//! nearer they are. So what is computed from it is computed from each that may be the greatest ([`Alternative`]), and the interval covers all of them.

use core::fmt;
use std::sync::Arc;

use super::short;
use crate::statistics::{normal_quantile, t_quantile};

/// A statistic and its replicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Of the seeds themselves.
    pub point: f64,
    /// Of each resample of them.
    pub replicates: Arc<[f64]>,
    /// Seeds with a value; of several samples that went in, the fewest.
    pub n: usize,
    /// Whether all that went in are samples whose seeds agree.
    pub agrees: bool,
    /// If the greatest or the least of several went in: what comes out for each of them that may be it.
    pub alternatives: Option<Arc<[Alternative]>>,
}

/// What an estimate is if one of several is the greatest, or the least.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The estimate then.
    pub value: Estimate,
    /// What must not be above zero then: by how much the one that came out greatest is greater. One for each choice that went in.
    pub shortfalls: Vec<Estimate>,
}

/// The level of an interval that stands alone.
pub const LEVEL: f64 = 0.95;

/// Seeds that agree and decide, at least.
const AGREEING: usize = 10;

/// Of the error that is allowed, what is for leaving out what cannot be the greatest.
const CHOOSING: f64 = 0.1;

impl Estimate {
    /// An estimate that rests on no choice.
    #[must_use]
    pub const fn of(point: f64, replicates: Arc<[f64]>, n: usize) -> Self {
        Self { point, replicates, n, agrees: false, alternatives: None }
    }

    /// This estimate; `agrees` says whether all that went in are samples whose seeds agree.
    #[must_use]
    pub fn agreeing(self, agrees: bool) -> Self {
        Self { agrees, ..self }
    }

    /// What to show: the interval, if there is one. Where the seeds agree it has no width.
    #[must_use]
    pub fn spread(&self, level: f64) -> Option<(f64, f64)> {
        if self.agrees { Some((self.point, self.point)) } else { self.interval(level).ok() }
    }

    /// Whether it is this number, with all seeds and enough of them.
    #[must_use]
    pub fn is_all(&self, number: f64) -> bool {
        self.n >= AGREEING && self.point == number && (self.agrees || self.is_constant())
    }

    /// The interval at a confidence `level`, such as 0.95: its lower and its upper end. Where the estimate and all replicates are
    /// the same infinity, that is both ends.
    ///
    /// # Errors
    /// Why there is none: one seed has none, and neither have few that agree, or replicates some of which are no finite numbers.
    pub fn interval(&self, level: f64) -> Result<(f64, f64), String> {
        let Some(alternatives) = &self.alternatives else { return self.own_interval(level) };
        let others = alternatives.len().saturating_sub(1).max(1) as f64;
        let choosing = 1.0 - CHOOSING * (1.0 - level) / others;
        let level = 1.0 - (1.0 - CHOOSING) * (1.0 - level);
        let may_be = |alternative: &&Alternative| {
            let is_greater = |by: &Estimate| by.own_interval(choosing).is_ok_and(|(low, _)| low > 0.0);
            !alternative.shortfalls.iter().any(is_greater)
        };
        let mut whole: Option<(f64, f64)> = None;
        for alternative in alternatives.iter().filter(may_be) {
            let (low, high) = alternative.value.own_interval(level)?;
            whole = Some(whole.map_or((low, high), |(least, most)| (low.min(least), high.max(most))));
        }
        whole.ok_or_else(|| "nothing can be the greatest".to_owned())
    }

    fn own_interval(&self, level: f64) -> Result<(f64, f64), String> {
        let Self { point, n, .. } = *self;
        if n < 2 {
            return Err("one seed has no interval".to_owned());
        }
        if n < AGREEING && (self.agrees || self.is_constant()) {
            return Err(format!("{n} seeds agree, which may be chance; {AGREEING} would tell"));
        }
        if self.is_constant() {
            return Ok((point, point));
        }
        if !point.is_finite() || self.replicates.iter().any(|replicate| !replicate.is_finite()) {
            return Err("it is infinite or undefined with some of the seeds".to_owned());
        }
        let degrees = (n - 1) as f64;
        let (variance, third) = self.moments();
        let above = 0.5 + 0.5 * level;
        let half = t_quantile(above, degrees) * (variance * n as f64 / degrees).sqrt();
        let z = normal_quantile(above);
        // Of two values none is further from the mean.
        let skew = if n > 2 { third / variance * n as f64 / (n - 2) as f64 } else { 0.0 };
        let shift = 0.5 * z * z * skew;
        let longer = (half * half + shift * shift).sqrt();
        Ok((point + (shift - longer).min(-half), point + (shift + longer).max(half)))
    }

    /// Whether all replicates are the point.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.replicates.iter().all(|&replicate| replicate == self.point)
    }

    /// Whether it has no interval because there are so few seeds.
    pub(super) fn needs_seeds(&self) -> bool {
        self.n < 2 || (self.n < AGREEING && (self.agrees || self.is_constant()))
    }

    /// The second and the third central moment of the replicates.
    fn moments(&self) -> (f64, f64) {
        let b = self.replicates.len() as f64;
        let first = self.replicates.first().copied().unwrap_or(self.point);
        let mean = first + self.replicates.iter().map(|replicate| replicate - first).sum::<f64>() / b;
        let sums = self.replicates.iter().fold((0.0, 0.0), |(squares, cubes), replicate| {
            let away = replicate - mean;
            (squares + away * away, cubes + away * away * away)
        });
        (sums.0 / b, sums.1 / b)
    }
}

/// The point and its interval at [`LEVEL`], as in `0.91 (0.88 to 0.94)`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.point, self.spread(LEVEL)))
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
        let estimate = Estimate::of(five.iter().sum::<f64>() / 5.0, replicates, 5);
        for level in [0.95, 0.999] {
            let student = Interval::of(five.iter().copied(), level).unwrap();
            let (low, high) = estimate.interval(level).unwrap();
            // Symmetric values have no skew; these have some, so one end is further away.
            let (below, above) = (student.low - low, high - student.high);
            assert!(below.min(above).abs() < 1e-12 && below.max(above) > 1e-3, "{low} {high}");
            assert!(below.max(above) < 0.5 * (student.high - student.low), "{low} {high}");
        }
    }

    /// One of ten: Student's interval is 0.1 -+ 0.226, and the upper end 0.1 + h + sqrt(0.226^2 + h^2) with h = 1.96^2 / 2 * 0.08 * 10 / 8.
    #[test]
    fn on_the_side_of_rare_large_values_it_goes_further() {
        let mean = Sample::of((0..10).map(|seed| Some(f64::from(u8::from(seed == 4))))).mean().unwrap();
        let (low, high) = mean.interval(0.95).unwrap();
        assert!((low + 0.126).abs() < 0.015 && (high - 0.589).abs() < 0.06, "{low} {high}");
        let turned = Sample::of((0..10).map(|seed| Some(-f64::from(u8::from(seed == 4))))).mean().unwrap();
        assert_eq!(turned.interval(0.95), Ok((-high, -low)));
    }

    /// Of ten seeds that agree others may be a step away: one in three at most (0.975 to the power 1 / 10), and with forty one in eleven.
    #[test]
    fn where_seeds_agree_a_step_tells_how_far_others_may_be() {
        for (seeds, least, most) in [(10, 0.25, 0.34), (20, 0.11, 0.17), (40, 0.06, 0.1)] {
            let sample = Sample::of((0..seeds).map(|_| Some(3.0))).with_step(1.0);
            let mean = sample.mean().unwrap();
            let (low, high) = mean.interval(0.95).unwrap();
            assert!(
                (least..most).contains(&(high - 3.0)) && (least..most).contains(&(3.0 - low)),
                "{low} {high}"
            );
            assert!(mean.agrees && mean.is_all(3.0) && mean.spread(0.95) == Some((3.0, 3.0)));
        }
        let few = Sample::of([Some(3.0); 9]).with_step(1.0).mean().unwrap();
        assert!(few.needs_seeds() && !few.is_all(3.0) && few.interval(0.95).is_err());
    }

    /// The standard error of 1000 resamples is good to 2.2 %; three times that.
    #[test]
    fn a_mean_of_ten_has_students_interval_but_for_resampling() {
        let mean = Sample::of(TEN.map(Some)).mean().unwrap();
        let student = Interval::of(TEN, 0.95).unwrap();
        let (low, high) = mean.interval(0.95).unwrap();
        assert!((mean.point - student.mean).abs() < 1e-12 && mean.n == 10);
        // Its values lean a little to the high side.
        let ratio = (mean.point - low) / (student.mean - student.low);
        assert!((ratio - 1.0).abs() < 0.067, "{ratio}");
        let above = (high - mean.point) / (mean.point - low);
        assert!((1.0..1.25).contains(&above), "{above}");
    }

    #[test]
    fn what_does_not_vary_has_an_interval_without_width() {
        let mean = Sample::of([Some(0.1); 10]).mean().unwrap();
        assert_eq!((mean.point, mean.interval(0.95)), (0.1, Ok((0.1, 0.1))));
        let never = Sample::of([Some(f64::INFINITY); 10]).mean().unwrap();
        assert_eq!(never.interval(0.95), Ok((f64::INFINITY, f64::INFINITY)));
        for few in [0.1, f64::INFINITY] {
            let few = Sample::of([Some(few); 9]).mean().unwrap();
            assert_eq!(
                few.interval(0.95),
                Err("9 seeds agree, which may be chance; 10 would tell".to_owned())
            );
            assert!(few.needs_seeds() && !mean.needs_seeds());
        }
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
