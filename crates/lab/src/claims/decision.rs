//! A verdict and what it rests on, as a report tells it.

use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use super::estimate::told;
use super::evaluator::{Comparison, Lookup};
use super::value::Value;
use super::{Measured, short};

/// What a check says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is so.
    Holds,
    /// It is not so.
    Fails,
    /// What was measured cannot tell.
    Undecided,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is undecided, if it is.
    pub reason: Option<String>,
    /// How many comparisons of uncertain values the check makes.
    pub uncertain: usize,
    /// The confidence level that each of these needs where a single one may decide.
    pub family_level: f64,
    /// Each part of the check, in its order.
    pub parts: Vec<PartDecision>,
    /// The measured values that the check asked for, in the order in which it did, each once.
    pub lookups: Vec<Lookup>,
    /// Every comparison that it made, as it comes out at the level of one that stands alone.
    pub comparisons: Vec<Comparison>,
    /// What it asked for, by [`Environment::asked`](super::Environment::asked), for comparisons that more seeds may decide.
    pub open: Vec<Range<usize>>,
}

/// What one part of a check says.
#[derive(Clone, Debug, PartialEq)]
pub struct PartDecision {
    /// The part as written.
    pub source: String,
    /// Its verdict, by the rule for the whole check.
    pub verdict: Verdict,
    /// Why it is undecided, if it is.
    pub reason: Option<String>,
}

impl Decision {
    /// What was measured, in a line: for each comparison as written, the values of its operands that are no numbers in
    /// the text, with their intervals, and the difference of two uncertain ones. A comparison that was made several
    /// times is told as a range, with how often it held.
    #[must_use]
    pub fn measured(&self) -> String {
        let mut texts: Vec<&str> = Vec::new();
        for comparison in &self.comparisons {
            if !texts.contains(&comparison.text.as_str()) {
                texts.push(&comparison.text);
            }
        }
        let lines: Vec<String> = texts.into_iter().map(|text| self.measured_by(text)).collect();
        lines.join("; ")
    }

    fn measured_by(&self, text: &str) -> String {
        let made: Vec<&Comparison> = self.comparisons.iter().filter(|made| made.text == text).collect();
        if let [comparison] = made[..] {
            return comparison.told();
        }
        let mut parts: Vec<String> = Vec::new();
        for (place, (operand, _)) in made[0].operands.iter().enumerate() {
            if is_literal(operand) {
                continue;
            }
            let values: Option<Vec<f64>> = made.iter().map(|made| made.operands[place].1.point()).collect();
            let range = values.map(|values| {
                values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)))
            });
            parts.push(match range {
                None => format!("{operand} is unknown"),
                Some((min, max)) if min == max => format!("{operand} = {}", short(min)),
                Some((min, max)) => format!("{operand} = {} to {}", short(min), short(max)),
            });
        }
        let held = made.iter().filter(|made| made.holds == Some(true)).count();
        format!("{} ({held} of {} hold)", parts.join(", "), made.len())
    }
}

impl Comparison {
    /// What was compared, in a line: the operands that are no numbers in the text, with their 95 % intervals, and the
    /// difference of two uncertain ones.
    #[must_use]
    pub fn told(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (operand, value) in self.operands.iter().filter(|(operand, _)| !is_literal(operand)) {
            parts.push(match value {
                Value::Estimate(estimate) => format!("{operand} = {estimate}"),
                value => match value.point() {
                    Some(point) => format!("{operand} = {}", short(point)),
                    None => format!("{operand} is unknown"),
                },
            });
        }
        let is_operand = |measured: &&Measured| self.operands.iter().any(|(text, _)| *text == measured.text);
        parts.extend(self.measured.iter().filter(|measured| !is_operand(measured)).map(ToString::to_string));
        parts.join(", ")
    }
}

/// As in `T('TCP') = 0.91 (0.88 to 0.94)`.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.text, told(self.point, self.interval))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
        })
    }
}

fn is_literal(operand: &str) -> bool {
    operand.parse::<f64>().is_ok()
}
