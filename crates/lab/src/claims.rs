//! Published claims and their verdicts.
//!
//! A claims file is TOML: one `[[claim]]` a published statement, with the experiment that decides it and a `check`, a
//! Python expression over what the experiment measured. [`Check::decide`] evaluates it against an [`Environment`];
//! [`Measurements`] are what one run measured.
//!
//! An environment answers with [`Sample`]s, values seed by seed; what is computed from them is an [`Estimate`] with an
//! interval, and a comparison holds or fails only if the whole interval of the difference is on one side.

mod arithmetic;
mod builtin;
mod check;
mod comparing;
mod decision;
mod estimate;
mod evaluator;
mod expression;
mod formula;
mod lexer;
mod measurements;
mod parser;
mod ranked;
mod sample;
mod value;
mod vocabulary;

use base::config::{self, ConfigError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

pub use check::Check;
pub use comparing::Measured;
pub use decision::{Decision, PartDecision, Verdict};
pub use estimate::{Alternative, Estimate, LEVEL};
pub use evaluator::{Comparison, Environment, EvaluateError, Lookup, written};
pub use formula::Formula;
pub use measurements::{Measurements, Quantity};
pub use parser::ParseError;
pub use sample::Sample;
pub use value::Value;
pub use vocabulary::Vocabulary;

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
    /// Values that are shown beside it and decide nothing.
    pub told: Vec<Formula>,
    /// What the paper prints, if it prints a value.
    pub paper_value: Option<String>,
    /// What sort of statement it is.
    pub kind: Kind,
    /// What to know about it.
    pub note: Option<String>,
    /// Why it comes out as it does.
    pub remark: Option<String>,
    /// An older wording of the check.
    pub was: Option<String>,
    /// In what the check asks for less than the paper says.
    pub weaker: Option<String>,
    /// The place in the paper's text.
    pub source: Option<String>,
    /// The experiments whose quantities its bare names mean; all if it names none.
    pub from: Vec<String>,
}

/// What sort of statement a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ClaimKind")]
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
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Claim")]
struct Written {
    /// Its name, unique in its file.
    id: String,
    /// Where in the paper.
    section: String,
    /// The figure that shows it, if one does.
    figure: Option<String>,
    /// The table that shows it, if one does.
    table: Option<String>,
    /// What the paper says, in other words.
    statement: String,
    /// What to run.
    #[serde(default)]
    experiment: String,
    /// What must hold of what was measured: an expression, or several that must all hold.
    #[schemars(with = "Parts")]
    check: Spanned<Parts>,
    /// Values that are shown beside it and decide nothing.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    told: Vec<Spanned<String>>,
    /// What the paper prints, if it prints a value.
    paper_value: Option<String>,
    /// What sort of statement it is.
    kind: Kind,
    /// What to know about it.
    note: Option<String>,
    /// Why it comes out as it does.
    remark: Option<String>,
    /// An older wording of the check.
    was: Option<String>,
    /// In what the check asks for less than the paper says; shown beside the verdict.
    weaker: Option<String>,
    /// The place in the paper's text.
    source: Option<String>,
    /// The experiments whose quantities its bare names mean; all if it names none.
    #[serde(default)]
    from: Vec<String>,
}

/// A check of one part or of several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a check is a text or a list of texts")]
#[schemars(rename = "Check")]
enum Parts {
    One(String),
    All(#[schemars(length(min = 1))] Vec<String>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Published statements.
    #[schemars(with = "Vec<Written>")]
    claim: Vec<Spanned<Written>>,
}

/// The claims of `text`, the content of `file`.
///
/// # Errors
/// Broken TOML, two claims with one id, or a check that is no expression: with its line.
pub fn parse(file: &str, text: &str) -> Result<Vec<Claim>, ConfigError> {
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
        let check = read_check(written.check.get_ref()).map_err(|error| {
            ConfigError::at(file, text, place, format!("the check cannot be read: {error}"))
        })?;
        let told = written.told.iter().map(|told| {
            Formula::parse(told.get_ref()).map_err(|error| {
                ConfigError::at(file, text, told.span(), format!("this cannot be read: {error}"))
            })
        });
        claims.push(Claim {
            told: told.collect::<Result<_, _>>()?,
            id: written.id,
            section: written.section,
            figure: written.figure,
            table: written.table,
            statement: written.statement,
            experiment: written.experiment,
            check,
            paper_value: written.paper_value,
            kind: written.kind,
            note: written.note,
            remark: written.remark,
            was: written.was,
            weaker: written.weaker,
            source: written.source,
            from: written.from,
        });
    }
    Ok(claims)
}

fn read_check(parts: &Parts) -> Result<Check, String> {
    match parts {
        Parts::One(check) => Check::parse(check).map_err(|error| error.to_string()),
        Parts::All(parts) if parts.is_empty() => Err("no part".to_owned()),
        Parts::All(parts) => {
            let part = |(place, part): (usize, &String)| {
                Formula::parse(part).map_err(|error| format!("part {}, {error}", place + 1))
            };
            Ok(Check::all(parts.iter().enumerate().map(part).collect::<Result<_, _>>()?))
        }
    }
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
