//! The values of the check language.

use core::fmt;

use super::estimate::Estimate;
use super::sample::Sample;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A number; the language has only one kind.
    Number(f64),
    /// A text.
    Text(String),
    /// A list or a tuple.
    List(Vec<Value>),
    /// What an experiment measured, seed by seed.
    Sample(Sample),
    /// What was computed from samples, with its uncertainty.
    Estimate(Estimate),
    /// Something that was not measured, and why. What is computed from it is unknown too, unless the outcome does not
    /// depend on it.
    Unknown(String),
}

impl Value {
    /// Whether it counts as true, as in Python; `Err` with the reason if that is unknown.
    pub(super) fn truth(&self) -> Truth {
        match self {
            Self::None => Truth::of(false),
            Self::Bool(value) => Truth::of(*value),
            Self::Number(value) => Truth::of(*value != 0.0),
            Self::Text(text) => Truth::of(!text.is_empty()),
            Self::List(items) => Truth::of(!items.is_empty()),
            Self::Sample(_) | Self::Estimate(_) => {
                Truth::Unknown("a measured value is neither true nor false".to_owned())
            }
            Self::Unknown(reason) => Truth::Unknown(reason.clone()),
        }
    }

    /// Whether it is a number with uncertainty.
    #[must_use]
    pub const fn is_uncertain(&self) -> bool {
        matches!(self, Self::Sample(_) | Self::Estimate(_))
    }

    /// The number that it is, without uncertainty: the mean of a sample, the point of an estimate.
    #[must_use]
    pub fn point(&self) -> Option<f64> {
        match self {
            Self::Sample(sample) => sample.mean().ok().map(|mean| mean.point),
            Self::Estimate(estimate) => Some(estimate.point),
            exact => exact.as_number(),
        }
    }

    /// Seeds that it rests on; a plain number needs none.
    pub(super) fn seeds(&self) -> usize {
        match self {
            Self::Sample(sample) => sample.count(),
            Self::Estimate(estimate) => estimate.n,
            _ => 0,
        }
    }

    /// What it counts as in a check: a deterministic case is a plain number.
    pub(super) fn settled(self) -> Self {
        match self {
            Self::Sample(sample) if sample.is_exact() => sample.mean_value(),
            Self::List(items) => Self::List(items.into_iter().map(Self::settled).collect()),
            other => other,
        }
    }

    /// About how much work it is to handle it once, in steps of the evaluation.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::weight).sum::<usize>(),
            Self::Sample(sample) => 1 + sample.values().len() / 16,
            Self::Estimate(_) => 4,
            _ => 1,
        }
    }

    /// How many values a function of it goes through, and whether one of them is uncertain.
    pub(super) fn extent(&self) -> (usize, bool) {
        match self {
            Self::List(items) => {
                items.iter().map(Self::extent).fold((0, false), |(a, b), (c, d)| (a + c, b || d))
            }
            other => (1, other.is_uncertain()),
        }
    }

    /// The number that it is, if it is an exact one; a boolean counts as 0 or 1.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            _ => None,
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<Sample> for Value {
    fn from(sample: Sample) -> Self {
        Self::Sample(sample)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// As it would be written in a check; what is uncertain with its interval.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::List(items) => {
                f.write_str("(")?;
                for (place, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Self::Sample(sample) => write!(f, "{}", sample.mean_value()),
            Self::Estimate(estimate) => write!(f, "{estimate}"),
            Self::Unknown(_) => f.write_str("unknown"),
        }
    }
}

/// True, false, or unknown for a reason: Kleene's logic.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Truth {
    Is(bool),
    Unknown(String),
}

impl Truth {
    pub(super) const fn of(value: bool) -> Self {
        Self::Is(value)
    }

    pub(super) const fn known(&self) -> Option<bool> {
        match self {
            Self::Is(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::Is(value) => Self::Is(!value),
            unknown => unknown,
        }
    }

    /// What all of `parts` together say: false as soon as one is, and only else unknown.
    pub(super) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::combine(parts, false)
    }

    /// What any of `parts` says: true as soon as one is, and only else unknown.
    pub(super) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::combine(parts, true)
    }

    fn combine(parts: impl IntoIterator<Item = Self>, decisive: bool) -> Self {
        let mut result = Self::Is(!decisive);
        for part in parts {
            match part {
                Self::Is(value) if value == decisive => return Self::Is(decisive),
                Self::Is(_) => {}
                unknown if result == Self::Is(!decisive) => result = unknown,
                Self::Unknown(_) => {}
            }
        }
        result
    }
}

impl From<Truth> for Value {
    fn from(truth: Truth) -> Self {
        match truth {
            Truth::Is(value) => Self::Bool(value),
            Truth::Unknown(reason) => Self::Unknown(reason),
        }
    }
}
