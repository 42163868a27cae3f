//! A check and how it is decided.
//!
//! The level of a family. A check makes m comparisons of uncertain values, often dozens. At 95 % each, one of 42 that are
//! all true looks false in most studies, so the level has to know m.
//!
//! - A check that is a conjunction (`and`, `all`, chained comparisons, parts) *holds* if every comparison is true at
//!   95 %. That is an intersection-union test (Berger 1982): all have to pass, so the chance that it holds wrongly is
//!   at most that of one of them, 5 %. It *fails* if one comparison is false at the level 1 - 0.05 / m (Bonferroni): the
//!   chance that any of m true comparisons looks false is then at most 5 %.
//! - With an uncertain comparison in `or`, `any`, `not`, a condition, or anything else that chooses, either verdict may rest on
//!   whichever comparison came out by luck, and both need the level 1 - 0.05 / m.
//!
//! What is looked at several times, with more seeds each time until it is decided, needs a higher level each time: with l looks in all 95 %
//! becomes 1 - 0.05 / l (Bonferroni again), so that in all of them together a verdict is wrong in 5 % of studies at most.
//!
//! So a check is evaluated twice, at the two levels. `lo` and `hi` take the interval in force, and comparisons of them are
//! of plain numbers, which m does not count.

use super::decision::{Decision, PartDecision, Verdict};
use super::estimate::LEVEL;
use super::evaluator::{Environment, EvaluateError, Evaluator};
use super::formula::Formula;
use super::parser::ParseError;
use super::value::Truth;
use super::vocabulary::Vocabulary;

/// A check, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    source: String,
    /// What all have to hold: one or more.
    parts: Vec<Formula>,
}

impl Check {
    /// Reads a check of one part.
    ///
    /// # Errors
    /// The text is no expression of the language.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        Ok(Self { source: source.to_owned(), parts: vec![Formula::parse(source)?] })
    }

    /// A check that holds if all of `parts` do.
    #[must_use]
    pub fn all(parts: Vec<Formula>) -> Self {
        let sources: Vec<&str> = parts.iter().map(Formula::source).collect();
        Self { source: sources.join("; "), parts }
    }

    /// The check as written; its parts with semicolons between.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What all have to hold.
    #[must_use]
    pub fn parts(&self) -> &[Formula] {
        &self.parts
    }

    /// Checks every name, function and literal argument without evaluating anything.
    ///
    /// # Errors
    /// The first mistake and its place in the text of its part.
    pub fn verify(&self, vocabulary: &dyn Vocabulary) -> Result<(), ParseError> {
        self.parts.iter().try_for_each(|part| part.verify(vocabulary))
    }

    /// Decides the check by what `environment` knows.
    ///
    /// # Errors
    /// It asks for what nobody defines, or does not make sense: a mistake, not a verdict.
    pub fn decide(&self, environment: &dyn Environment) -> Result<Decision, EvaluateError> {
        self.decide_at(environment, LEVEL)
    }

    /// Decides it where a comparison that stands alone needs this level of confidence.
    ///
    /// # Errors
    /// As for [`Check::decide`].
    pub fn decide_at(&self, environment: &dyn Environment, level: f64) -> Result<Decision, EvaluateError> {
        let mut alone = Evaluator::new(environment, level);
        let at_level = self.truths(&mut alone)?;
        let family = family_level(level, alone.uncertain);
        let mut together = Evaluator::new(environment, family);
        let in_family = match alone.uncertain {
            0 | 1 => at_level.clone(),
            _ => self.truths(&mut together)?,
        };
        let Evaluator { lookups, comparisons, uncertain, is_mixed, mut open, .. } = alone;
        if open.is_empty() {
            open = together.open;
        }
        let rule = |at_level, in_family| ruled(at_level, in_family, is_mixed);
        let parts = self.parts.iter().zip(at_level.iter().zip(&in_family));
        let part = |(formula, (at_level, in_family)): (&Formula, (&Truth, &Truth))| {
            let (verdict, reason) = rule(at_level.clone(), in_family.clone());
            PartDecision { source: formula.source().to_owned(), verdict, reason }
        };
        let parts = parts.map(part).collect();
        let (verdict, reason) = rule(Truth::all(at_level), Truth::all(in_family));
        let reason = reason.map(|reason| match uncertain {
            0 | 1 => reason,
            m => format!("{reason}, at {:.4} % as one of {m} comparisons", 100.0 * family),
        });
        Ok(Decision { verdict, reason, uncertain, family_level: family, parts, lookups, comparisons, open })
    }

    fn truths(&self, evaluator: &mut Evaluator<'_>) -> Result<Vec<Truth>, EvaluateError> {
        self.parts.iter().map(|part| Ok(evaluator.evaluate(&part.expression)?.truth())).collect()
    }
}

/// The level at which each of `m` comparisons errs so rarely that all of them together err no more often than one at `level` (Bonferroni).
fn family_level(level: f64, m: usize) -> f64 {
    1.0 - (1.0 - level) / m.max(1) as f64
}

/// The verdict of what is so at 95 % and what is so at the level of the family, and why it is undecided.
///
/// What is known at the wider intervals is so at the narrower ones too, unless `lo` and `hi` move with them: then the two may
/// contradict each other, and nothing is decided.
fn ruled(at_level: Truth, in_family: Truth, is_mixed: bool) -> (Verdict, Option<String>) {
    match (at_level, in_family) {
        (Truth::Is(true), Truth::Is(true)) => (Verdict::Holds, None),
        (Truth::Is(true), _) if !is_mixed => (Verdict::Holds, None),
        (Truth::Is(false), Truth::Is(false)) => (Verdict::Fails, None),
        (_, Truth::Unknown(reason)) | (Truth::Unknown(reason), _) => (Verdict::Undecided, Some(reason)),
        (Truth::Is(_), Truth::Is(_)) => {
            (Verdict::Undecided, Some("the two levels contradict each other".to_owned()))
        }
    }
}
