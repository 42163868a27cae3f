//! One quantity of one experiment at one coordinate, seed by seed.

use std::sync::Arc;

use super::estimate::Estimate;
use super::value::Value;
use crate::statistics::{Resamples, quantile, standard_deviation};

/// Values by seed number. Arithmetic goes seed by seed, so what two samples share cancels in their difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Arc<[Option<f64>]>,
    exact: bool,
    reason: Option<Arc<str>>,
    /// The least by which values of this quantity differ; zero if that is not known.
    step: f64,
}

impl Sample {
    /// The value of each seed, in the order of the seeds; none where a seed has no value. What is not a number is no value.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let values = values.into_iter().map(|value| value.filter(|value| !value.is_nan())).collect();
        Self { values, exact: false, reason: None, step: 0.0 }
    }

    /// What one run of a deterministic case measured: it stands for all, and checks take it for a plain number.
    #[must_use]
    pub fn exact(value: Option<f64>) -> Self {
        Self { exact: true, ..Self::of([value]) }
    }

    /// This sample, with the reason why seeds have no value.
    #[must_use]
    pub fn because(self, reason: &str) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// This sample, as one of a quantity whose values differ by `step` at least, where they differ; zero if that is
    /// not known.
    #[must_use]
    pub fn with_step(self, step: f64) -> Self {
        Self { step, ..self }
    }

    /// The value of all seeds that have one, if they agree.
    #[must_use]
    pub fn agreed(&self) -> Option<f64> {
        let mut known = self.values.iter().flatten();
        let first = known.next().copied()?;
        known.all(|&value| value == first).then_some(first)
    }

    /// Seed by seed.
    #[must_use]
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }

    /// Whether one run stands for all.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.exact
    }

    /// How many seeds have a value.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.iter().flatten().count()
    }

    /// Why some seeds have no value.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or("not measured")
    }

    /// The mean; infinite if all values are the same infinity.
    ///
    /// # Errors
    /// The reason: as [`Sample::estimate`], or some values are infinite and some are not. Such a sample has a median, but a mean
    /// that one seed makes infinite tells nothing.
    pub fn mean(&self) -> Result<Estimate, String> {
        let known = || self.values.iter().flatten();
        let infinite = known().filter(|value| value.is_infinite()).count();
        if infinite > 0 && known().any(|value| Some(value) != known().next()) {
            return Err(format!("it is infinite with {infinite} of {} seeds", self.count()));
        }
        self.estimate(shifted_mean)
    }

    /// The mean, as [`Sample::mean`], or what else is known: the number if the case is deterministic.
    #[must_use]
    pub fn mean_value(&self) -> Value {
        match (self.exact, self.mean()) {
            (true, Ok(mean)) => Value::Number(mean.point),
            (false, Ok(mean)) => Value::Estimate(mean),
            (_, Err(reason)) => Value::Unknown(reason),
        }
    }

    /// A statistic of the seeds that have a value, with what its uncertainty needs. A resample that drew no seed with a value
    /// counts as the statistic itself: at most every 2^n-th of n seeds.
    ///
    /// # Errors
    /// The reason, if fewer than half of the seeds have a value.
    pub fn estimate(&self, statistic: impl Fn(&[f64]) -> f64) -> Result<Estimate, String> {
        if let Some(reason) = self.lacking() {
            return Err(reason);
        }
        let known: Vec<f64> = self.values.iter().flatten().copied().collect();
        let point = statistic(&known);
        if let Some(agreed) = self.agreed() {
            return Ok(Estimate::of(point, self.beside(agreed, statistic), known.len()).agreeing(true));
        }
        let mut drawn = Vec::with_capacity(self.values.len());
        let replicate = |places: &[u32]| {
            drawn.clear();
            drawn.extend(places.iter().filter_map(|&place| self.values[place as usize]));
            if drawn.is_empty() { point } else { statistic(&drawn) }
        };
        let replicates = Resamples::of(self.values.len()).iter().map(replicate).collect();
        Ok(Estimate::of(point, replicates, known.len()))
    }

    /// Replicates of seeds that agree: resamples of them and of one seed a step above and one a step below.
    fn beside(&self, agreed: f64, statistic: impl Fn(&[f64]) -> f64) -> Arc<[f64]> {
        let n = self.count();
        let value = |place: u32| match (place as usize).checked_sub(n) {
            None => agreed,
            Some(0) => agreed + self.step,
            Some(_) => agreed - self.step,
        };
        let mut drawn = Vec::with_capacity(n);
        let replicate = |places: &[u32]| {
            drawn.clear();
            drawn.extend(places.iter().take(n).map(|&place| value(place)));
            statistic(&drawn)
        };
        Resamples::of(n + 2).iter().map(replicate).collect()
    }

    /// Why nothing follows from this sample; none if at least half of the seeds have a value.
    #[must_use]
    pub fn lacking(&self) -> Option<String> {
        let (known, seeds) = (self.count(), self.values.len());
        (known == 0 || 2 * known < seeds).then(|| match seeds {
            0 => "no seeds were run".to_owned(),
            1 => self.reason().to_owned(),
            _ => format!("{} ({known} of {seeds} seeds have a value)", self.reason()),
        })
    }

    /// The values of one of `of` parts of the seeds in their order, as equal as can be: what is chosen by one part can be judged
    /// by another.
    pub(super) fn part(&self, number: usize, of: usize) -> Value {
        let at = |part: usize| part * self.values.len() / of;
        let values = self.values[at(number)..at(number + 1)].into();
        let part = Self { values, exact: false, reason: self.reason.clone(), step: self.step };
        part.lacking().map_or_else(|| Value::Sample(part), Value::Unknown)
    }

    /// What `function` makes of each value; where it makes nothing, that seed has no value from then on.
    pub(super) fn map(&self, function: impl Fn(f64) -> Result<f64, &'static str>) -> Value {
        let step = self.agreed().map_or(0.0, |agreed| step_of(&function, agreed, self.step));
        self.with(self.values.iter().map(|value| value.map(&function)), (None, step))
    }

    /// What `function` makes of the two values of each seed that both samples have.
    pub(super) fn zip(
        &self,
        other: &Self,
        function: impl Fn(f64, f64) -> Result<f64, &'static str>,
    ) -> Value {
        let step = match (self.agreed(), other.agreed()) {
            (Some(a), Some(b)) => {
                step_of(|a| function(a, b), a, self.step) + step_of(|b| function(a, b), b, other.step)
            }
            _ => 0.0,
        };
        let pairs = self.values.iter().zip(other.values.iter());
        self.with(pairs.map(|(a, b)| Some(function((*a)?, (*b)?))), (other.reason.clone(), step))
    }

    fn with(
        &self,
        results: impl Iterator<Item = Option<Result<f64, &'static str>>>,
        (second_reason, step): (Option<Arc<str>>, f64),
    ) -> Value {
        let mut failure = None;
        let mut value =
            |result: Result<f64, &'static str>| result.map_err(|reason| failure = Some(reason)).ok();
        let values: Arc<[Option<f64>]> = results.map(|result| value(result?)).collect();
        let reason = self.reason.clone().or(second_reason).or_else(|| failure.map(Arc::from));
        let sample = Self { values, exact: false, reason, step };
        sample.lacking().map_or_else(|| Value::Sample(sample), Value::Unknown)
    }
}

/// By how much a function's value differs a step to either side, at most.
fn step_of(function: impl Fn(f64) -> Result<f64, &'static str>, at: f64, step: f64) -> f64 {
    let Ok(value) = function(at) else { return 0.0 };
    let beside = [at + step, at - step].into_iter().filter_map(|beside| function(beside).ok());
    beside.map(|beside| (beside - value).abs()).filter(|step| step.is_finite()).fold(0.0, f64::max)
}

/// The mean of values that are finite or all the same, exact where they are equal: resamples of a constant do not vary by
/// rounding.
fn shifted_mean(values: &[f64]) -> f64 {
    if values[0].is_infinite() {
        return values[0];
    }
    values[0] + values.iter().map(|value| value - values[0]).sum::<f64>() / values.len() as f64
}

/// A quantile of values in any order (type 7 of Hyndman and Fan 1996).
pub(super) fn quantile_of(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, q)
}

/// The standard deviation, with n - 1; zero of one value, which a resample may be.
pub(super) fn deviation(values: &[f64]) -> f64 {
    standard_deviation(values).unwrap_or(0.0)
}
