//! What became of a claim, and what that rests on.

use serde::Serialize;

use crate::claims::{Decision, Verdict, short};
use crate::statistics::Interval;

/// A verdict and the criteria that it rests on.
#[derive(Clone, Debug, Serialize)]
pub struct Ruling {
    /// What was decided.
    pub verdict: Verdict,
    /// Why it is undecided, if it is.
    pub reason: Option<String>,
    /// What was measured, in a line.
    pub measured: String,
    /// Each thing that had to be so, and what was only to be told, in the order of the check.
    pub criteria: Vec<Criterion>,
}

/// One thing that a claim's check asks for.
#[derive(Clone, Debug, Serialize)]
pub struct Criterion {
    /// The quantity.
    pub what: String,
    /// What it has to be; empty for what is only told.
    pub required: String,
    /// What it is; none if it was not measured.
    pub value: Option<f64>,
    /// The 95 % interval of that over realisations, where there is one.
    pub interval: Option<[f64; 2]>,
    /// Whether it is as required; none if that cannot be told or nothing is required.
    pub holds: Option<bool>,
}

/// A measured value, with or without an interval; none if it was not measured.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    value: Option<f64>,
    interval: Option<[f64; 2]>,
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self { value: Some(value), interval: None }
    }
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Self {
        Self { value, interval: None }
    }
}

impl From<Interval> for Value {
    fn from(interval: Interval) -> Self {
        Self { value: Some(interval.mean), interval: Some([interval.low, interval.high]) }
    }
}

impl From<Option<Interval>> for Value {
    fn from(interval: Option<Interval>) -> Self {
        interval.map_or(Self { value: None, interval: None }, Self::from)
    }
}

impl Criterion {
    /// `what` was measured as `value` and had to be as `required`; `holds` is none if that cannot be told.
    pub fn new(
        what: impl Into<String>,
        required: impl Into<String>,
        value: impl Into<Value>,
        holds: impl Into<Option<bool>>,
    ) -> Self {
        let Value { value, interval } = value.into();
        Self { what: what.into(), required: required.into(), value, interval, holds: holds.into() }
    }

    /// `what` has to lie from `low` to `high`, its ends included.
    pub fn within(what: impl Into<String>, value: impl Into<Value>, low: f64, high: f64) -> Self {
        let measured: Value = value.into();
        let holds = measured.value.map(|value| (low..=high).contains(&value));
        let required = format!("{} to {}", short(low), short(high));
        Self::new(what, required, measured, holds)
    }

    /// `what` has to be at least `low`.
    pub fn at_least(what: impl Into<String>, value: impl Into<Value>, low: f64) -> Self {
        let measured: Value = value.into();
        let holds = measured.value.map(|value| value >= low);
        Self::new(what, format!("at least {}", short(low)), measured, holds)
    }

    /// `what` has to be at most `high`.
    pub fn at_most(what: impl Into<String>, value: impl Into<Value>, high: f64) -> Self {
        let measured: Value = value.into();
        let holds = measured.value.map(|value| value <= high);
        Self::new(what, format!("at most {}", short(high)), measured, holds)
    }

    /// `what` has to be above `low`, with its whole interval.
    pub fn surely_above(what: impl Into<String>, value: impl Into<Value>, low: f64) -> Self {
        let measured: Value = value.into();
        let holds = measured.interval.map(|[from, _]| from > low);
        Self::new(what, format!("above {}, with its interval", short(low)), measured, holds)
    }

    /// `what` has to be below `high`, with its whole interval.
    pub fn surely_below(what: impl Into<String>, value: impl Into<Value>, high: f64) -> Self {
        let measured: Value = value.into();
        let holds = measured.interval.map(|[_, to]| to < high);
        Self::new(what, format!("below {}, with its interval", short(high)), measured, holds)
    }

    /// `what` is only told.
    pub fn told(what: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(what, "", value, None)
    }

    const fn is_required(&self) -> bool {
        !self.required.is_empty()
    }

    /// What was measured, as text.
    #[must_use]
    pub fn measured(&self) -> String {
        match (self.value, self.interval) {
            (None, _) => "not measured".to_owned(),
            (Some(value), None) => short(value),
            (Some(value), Some([low, high])) => {
                format!("{} ({} to {})", short(value), short(low), short(high))
            }
        }
    }
}

impl Ruling {
    /// Every criterion has to hold; one that cannot be told leaves the claim undecided unless another one fails.
    #[must_use]
    pub fn all(criteria: Vec<Criterion>) -> Self {
        let required = || criteria.iter().filter(|criterion| criterion.is_required());
        let unknown = required().find(|criterion| criterion.holds.is_none());
        let (verdict, reason) = if required().any(|criterion| criterion.holds == Some(false)) {
            (Verdict::Fails, None)
        } else if let Some(unknown) = unknown {
            (Verdict::Undecided, Some(format!("{}: cannot be told", unknown.what)))
        } else if required().next().is_none() {
            (Verdict::Undecided, Some("nothing was required".to_owned()))
        } else {
            (Verdict::Holds, None)
        };
        let line = |criterion: &Criterion| format!("{} = {}", criterion.what, criterion.measured());
        let measured = criteria.iter().map(line).collect::<Vec<_>>().join("; ");
        Self { verdict, reason, measured, criteria }
    }

    /// Nobody can tell, and why.
    pub fn undecided(reason: impl Into<String>) -> Self {
        let (verdict, reason) = (Verdict::Undecided, Some(reason.into()));
        Self { verdict, reason, measured: String::new(), criteria: Vec::new() }
    }
}

impl From<&Decision> for Ruling {
    /// The values that the check asked for are what is told.
    fn from(decision: &Decision) -> Self {
        let told = |lookup: &crate::claims::Lookup| Criterion::told(&lookup.call, lookup.value.as_number());
        Self {
            verdict: decision.verdict,
            reason: decision.reason.clone(),
            measured: decision.measured(),
            criteria: decision.lookups.iter().map(told).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_is_enough_and_one_unknown_too() {
        let (met, missed) = (Criterion::at_least("a", 2.0, 1.0), Criterion::at_most("b", 2.0, 1.0));
        let unknown = Criterion::within("c", None::<f64>, 0.0, 1.0);
        let told = Criterion::told("d", 7.0);
        let verdict = |criteria: &[&Criterion]| {
            Ruling::all(criteria.iter().map(|&criterion| criterion.clone()).collect()).verdict
        };
        assert_eq!(verdict(&[&met, &told]), Verdict::Holds);
        assert_eq!(verdict(&[&met, &unknown]), Verdict::Undecided);
        assert_eq!(verdict(&[&met, &unknown, &missed]), Verdict::Fails);
        assert_eq!(verdict(&[&told]), Verdict::Undecided);
    }

    #[test]
    fn an_interval_decides_only_with_all_of_it() {
        let interval = Interval { mean: 0.2, low: -0.1, high: 0.5, n: 5 };
        assert_eq!(Criterion::surely_above("a", interval, 0.0).holds, Some(false));
        assert_eq!(Criterion::surely_below("a", interval, 0.6).holds, Some(true));
        // Without an interval there is no telling.
        assert_eq!(Criterion::surely_above("a", 0.2, 0.0).holds, None);
    }
}
