//! Published claims and their verdicts.
//!
//! A claims file is TOML: one `[[claim]]` a published statement, with the experiment that decides it and a `check`, a
//! Python expression over what the experiment measured. [`Check::decide`] evaluates it against an [`Environment`];
//! [`Measurements`] is the one that experiments fill.
//!
//! The rule over seeds: a verdict is the check's at the medians over the seeds; beside it stands at how many seeds
//! the check holds on that seed's values alone.

mod builtin;
mod evaluator;
mod expression;
mod lexer;
mod measurements;
mod parser;
mod value;

use core::fmt;

use base::config::{self, ConfigError};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use evaluator::Evaluator;
pub use evaluator::{Comparison, Environment, EvaluateError, Lookup, written};
use expression::Expression;
pub use measurements::{Measurements, Quantity};
pub use parser::ParseError;
use value::Truth;
pub use value::Value;

/// A published statement that an experiment can decide.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name, unique in its file.
    pub id: String,
    /// Where in the paper.
    pub section: String,
    /// The figure that shows it, if one does.
    pub figure: Option<String>,
    /// The table that shows it, if one does.
    pub table: Option<String>,
    /// What the paper says, in other words.
    pub statement: String,
    /// What to run.
    pub experiment: String,
    /// What must hold of what was measured.
    pub check: Check,
    /// What the paper prints, if it prints a value.
    pub paper_value: Option<String>,
    /// What sort of statement it is.
    pub kind: Kind,
    /// What to know about it.
    pub note: Option<String>,
}

/// What sort of statement a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A calculation.
    Analytic,
    /// How something comes about.
    Mechanism,
    /// What is larger.
    Ordering,
    /// How many times larger.
    Ratio,
    /// How large.
    Value,
}

/// A claim as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    section: String,
    figure: Option<String>,
    table: Option<String>,
    statement: String,
    experiment: String,
    check: Spanned<String>,
    paper_value: Option<String>,
    kind: Kind,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    claim: Vec<Spanned<Written>>,
}

/// The claims of `text`, the content of `file`.
///
/// # Errors
/// Broken TOML, two claims with one id, or a check that is no expression: with its line.
pub fn parse(file: &str, text: &str) -> Result<Vec<Claim>, ConfigError> {
    parse_with(file, text, Check::parse)
}

/// The claims of `text`, the content of `file`, whose checks are prose: code decides them.
///
/// # Errors
/// Broken TOML, or two claims with one id: with its line.
pub fn parse_prose(file: &str, text: &str) -> Result<Vec<Claim>, ConfigError> {
    parse_with(file, text, |check| Ok(Check::prose(check)))
}

fn parse_with(
    file: &str,
    text: &str,
    read: impl Fn(&str) -> Result<Check, ParseError>,
) -> Result<Vec<Claim>, ConfigError> {
    let File { claim: written } = config::parse(file, text)?;
    let mut claims: Vec<Claim> = Vec::new();
    for spanned in written {
        let span = spanned.span();
        let written = spanned.into_inner();
        if claims.iter().any(|claim| claim.id == written.id) {
            let message = format!("two claims are called \"{}\"; their ids must differ", written.id);
            return Err(ConfigError::at(file, text, span, message));
        }
        let place = written.check.span();
        let check = read(written.check.get_ref())
            .map_err(|error| ConfigError::at(file, text, place, format!("no check: {error}")))?;
        let Written { id, section, figure, table, statement, experiment, paper_value, kind, note, .. } =
            written;
        claims.push(Claim {
            id,
            section,
            figure,
            table,
            statement,
            experiment,
            check,
            paper_value,
            kind,
            note,
        });
    }
    Ok(claims)
}

/// A check, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    source: String,
    /// None if it is prose.
    expression: Option<Expression>,
}

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
    /// The measured values that the check asked for, in the order in which it did, each once.
    pub lookups: Vec<Lookup>,
    /// Every comparison that it made.
    pub comparisons: Vec<Comparison>,
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// The text is no expression of the language.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        Ok(Self { source: source.to_owned(), expression: Some(parser::parse(source)?) })
    }

    /// A check that only code can decide.
    #[must_use]
    pub fn prose(source: &str) -> Self {
        Self { source: source.to_owned(), expression: None }
    }

    /// The check as written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Decides the check by what `environment` knows.
    ///
    /// # Errors
    /// It asks for what nobody defines, or does not make sense: a mistake, not a verdict.
    pub fn decide(&self, environment: &dyn Environment) -> Result<Decision, EvaluateError> {
        let expression = self.expression.as_ref().ok_or(EvaluateError::Prose)?;
        let mut evaluator = Evaluator::new(environment);
        let (verdict, reason) = match evaluator.evaluate(expression)?.truth() {
            Truth::Is(true) => (Verdict::Holds, None),
            Truth::Is(false) => (Verdict::Fails, None),
            Truth::Unknown(reason) => (Verdict::Undecided, Some(reason)),
        };
        let Evaluator { lookups, comparisons, .. } = evaluator;
        Ok(Decision { verdict, reason, lookups, comparisons })
    }

    /// Decides the check over seeds: at the medians of `runs`, and how many of them decide it alike on their own.
    ///
    /// # Errors
    /// As [`Check::decide`].
    pub fn decide_over(&self, runs: &[Measurements]) -> Result<Replicated, EvaluateError> {
        let decision = self.decide(&Measurements::medians(runs))?;
        let mut seeds = Tally::default();
        for run in runs {
            seeds.add(self.decide(run)?.verdict);
        }
        Ok(Replicated { decision, seeds })
    }
}

/// A check decided over seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicated {
    /// At the medians: the verdict.
    pub decision: Decision,
    /// Seed by seed.
    pub seeds: Tally,
}

/// How many verdicts of each sort there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Where it holds.
    pub holds: usize,
    /// Where it fails.
    pub fails: usize,
    /// Where nobody can tell.
    pub undecided: usize,
}

impl Tally {
    /// Counts one more.
    pub const fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Holds => self.holds += 1,
            Verdict::Fails => self.fails += 1,
            Verdict::Undecided => self.undecided += 1,
        }
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.holds + self.fails + self.undecided
    }

    /// Where it holds, of where it was decided; `None` if it was decided nowhere.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let decided = self.holds + self.fails;
        (decided > 0).then(|| self.holds as f64 / decided as f64)
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

impl Decision {
    /// What was measured, in a line: for each comparison as written, the values of its operands that are no numbers in
    /// the text, as a range where it was made several times, and then at how many of them it held.
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
        let mut parts: Vec<String> = Vec::new();
        for (place, (operand, _)) in made[0].operands.iter().enumerate() {
            if operand.parse::<f64>().is_ok() {
                continue;
            }
            let values = made.iter().filter_map(|made| made.operands[place].1.as_number());
            let (min, max) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
            parts.push(match (min.is_finite() && max.is_finite(), min == max) {
                (false, _) => format!("{operand} is unknown"),
                (true, true) => format!("{operand} = {}", short(min)),
                (true, false) => format!("{operand} = {} to {}", short(min), short(max)),
            });
        }
        let line = parts.join(", ");
        if made.len() == 1 {
            return line;
        }
        let held = made.iter().filter(|made| made.holds == Some(true)).count();
        format!("{line} ({held} of {} hold)", made.len())
    }
}

/// A number with three to four significant digits, or whole if it is.
pub(crate) fn short(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e9 {
        return format!("{value}");
    }
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 100.0 => format!("{value:.1}"),
        large if large >= 10.0 => format!("{value:.2}"),
        tiny if tiny < 0.01 => format!("{value:.2e}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests;
