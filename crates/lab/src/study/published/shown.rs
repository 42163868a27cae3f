//! What a mark asks for, read, checked against the study, and written.

use super::super::figure::told;
use super::super::pivot::Pivot;
use super::super::results::{View, Words};
use super::super::summary::{Cell, Summary};
use super::super::{AxisValue, Outcome, Study, agreement, markdown};
use super::format::{Format, number};
use crate::claims::{Formula, Tally, Value, Verdict};

/// What stands at a mark.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shown<'t> {
    /// Which run the page is of: the hashes of what it was measured with and of what stands at all marks, if it was filled before.
    Made(Option<(&'t str, &'t str)>),
    /// How the claims come out under the default reading, or under the one where most hold.
    Tally {
        /// The latter.
        best: bool,
    },
    /// How many there are of something.
    Count(Counted),
    /// The verdict on a claim.
    Verdict(&'t str),
    /// Under how many readings a claim holds.
    Held(&'t str),
    /// The table of all claims.
    Verdicts,
    /// The table of readings.
    Readings,
    /// A table of the study, with the values of some axes side by side.
    Table {
        /// Its name.
        id: &'t str,
        /// These axes.
        by: Vec<&'t str>,
        /// How the numbers of each column are written; the last counts for the rest.
        formats: Vec<Format>,
    },
    /// How near a table comes to the paper.
    Agreement(&'t str),
    /// A figure; the page says where its file is.
    Figure(&'t str),
    /// A value, under the default reading but for these choices.
    Value(Formula, Vec<Choice<'t>>, Option<Format>),
}

/// What is chosen where the paper leaves a choice: a reading's name, and one of its values.
type Choice<'t> = (&'t str, &'t str);

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Claims,
    Readings,
    Verdicts(Verdict),
}

const COUNTED: [(&str, Counted); 5] = [
    ("claims", Counted::Claims),
    ("readings", Counted::Readings),
    ("hold", Counted::Verdicts(Verdict::Holds)),
    ("fail", Counted::Verdicts(Verdict::Fails)),
    ("undecided", Counted::Verdicts(Verdict::Undecided)),
];

impl<'t> Shown<'t> {
    /// Reads what a mark asks for.
    pub(super) fn parse(what: &'t str) -> Result<Self, String> {
        let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("made", "") => Ok(Self::Made(None)),
            ("made", hashes) => {
                let hashes = hashes.split_once(' ').ok_or("made has two hashes, or none yet")?;
                Ok(Self::Made(Some(hashes)))
            }
            ("tally", "") => Ok(Self::Tally { best: false }),
            ("tally", "best") => Ok(Self::Tally { best: true }),
            ("verdicts", "") => Ok(Self::Verdicts),
            ("readings", "") => Ok(Self::Readings),
            ("held", id) if !id.is_empty() => Ok(Self::Held(id)),
            ("verdict", id) if !id.is_empty() => Ok(Self::Verdict(id)),
            ("agreement", id) if !id.is_empty() => Ok(Self::Agreement(unquoted(id))),
            ("figure", id) if !id.is_empty() => Ok(Self::Figure(unquoted(id))),
            ("count", of) => match COUNTED.iter().find(|(name, _)| *name == of) {
                Some((_, counted)) => Ok(Self::Count(*counted)),
                None => Err(format!("count {of}; there are {}", COUNTED.map(|(name, _)| name).join(", "))),
            },
            ("table", rest) if !rest.is_empty() => Self::parse_table(rest),
            _ => Self::parse_value(what),
        }
    }

    /// `ID`, `"ID"`, `ID by AXIS`, `ID by AXIS, AXIS as 0.0, 0 %`.
    fn parse_table(text: &'t str) -> Result<Self, String> {
        let (text, formats) = Format::split(text)?;
        let (id, by) = match text.rsplit_once(" by ") {
            Some((id, by)) => (id, by.split(',').map(str::trim).collect()),
            None => (text, Vec::new()),
        };
        Ok(Self::Table { id: unquoted(id.trim()), by, formats })
    }

    /// `EXPRESSION`, `EXPRESSION under NAME = VALUE, NAME = VALUE as 0.0`.
    fn parse_value(what: &'t str) -> Result<Self, String> {
        let (text, formats) = Format::split(what)?;
        let (expression, choices) = text.rsplit_once(" under ").unwrap_or((text, ""));
        let choice = |choice: &'t str| match choice.split_once('=') {
            Some((name, value)) => Ok((name.trim(), value.trim())),
            None => Err(format!("under {}: write NAME = VALUE", choice.trim())),
        };
        let choices = choices.split(',').filter(|choice| !choice.is_empty()).map(choice);
        let choices = choices.collect::<Result<_, _>>()?;
        let formula = Formula::parse(expression).map_err(|error| format!("\"{expression}\": {error}"))?;
        match formats[..] {
            [] => Ok(Self::Value(formula, choices, None)),
            [format] => Ok(Self::Value(formula, choices, Some(format))),
            _ => Err("one value has one format".to_owned()),
        }
    }

    /// Whether the study has what is asked for.
    pub(super) fn verify(&self, study: &Study) -> Result<(), String> {
        let known = |what: &str, id: &str, ids: Vec<&str>| match ids.contains(&id) {
            true => Ok(()),
            false => Err(format!("no {what} \"{id}\"; there are {}", ids.join(", "))),
        };
        match self {
            Self::Made(_) | Self::Tally { .. } | Self::Count(_) | Self::Verdicts | Self::Readings => Ok(()),
            Self::Verdict(id) | Self::Held(id) => {
                known("claim", id, study.claims.iter().map(|claim| claim.id.as_str()).collect())
            }
            Self::Table { id, .. } | Self::Agreement(id) => {
                known("table", id, study.tables.iter().map(|table| table.id.as_str()).collect())
            }
            Self::Figure(id) => {
                known("figure", id, study.figures.iter().map(|figure| figure.id.as_str()).collect())
            }
            Self::Value(formula, choices, _) => {
                point(study, choices)?;
                let all: Vec<usize> = (0..study.experiments.len()).collect();
                let words = Words::new(study, &all, &[]);
                formula.verify(&words).map_err(|error| format!("\"{}\": {error}", formula.source()))
            }
        }
    }

    /// What the run says; none for what is no text of its own.
    pub(super) fn write(
        &self,
        outcome: &Outcome<'_>,
        summary: &Summary<'_>,
    ) -> Result<Option<String>, String> {
        let judgement = &outcome.judgement;
        let text = match self {
            Self::Made(_) | Self::Figure(_) => return Ok(None),
            Self::Tally { best } => {
                let point = if *best { outcome.best_reading().unwrap_or(0) } else { 0 };
                tally(judgement.tallies.get(point).copied().unwrap_or_default())
                    + &if *best { format!(" ({})", outcome.point_name(point)) } else { String::new() }
            }
            Self::Count(counted) => count(outcome, *counted).to_string(),
            Self::Verdict(id) => {
                let found = summary.verdicts.iter().find(|row| row.id == *id);
                found.ok_or_else(|| format!("{id} was not judged"))?.verdict.to_string()
            }
            Self::Held(id) => {
                let found = summary.verdicts.iter().find(|row| row.id == *id);
                let tally = found.ok_or_else(|| format!("{id} was not judged"))?.tally;
                format!("{} of {}", tally.holds, tally.total())
            }
            Self::Verdicts => markdown::claims(outcome),
            Self::Readings => markdown::readings(outcome),
            Self::Table { id, by, formats } => table(outcome.study, &summary.cells, id, by, formats)?,
            Self::Agreement(id) => agreement::markdown(&summary.agreements, id)?,
            Self::Value(formula, choices, format) => value(outcome, formula, choices, *format)?,
        };
        Ok(Some(text))
    }
}

fn unquoted(id: &str) -> &str {
    id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(id)
}

/// As in `10 hold, 6 fail and 1 is undecided`.
fn tally(Tally { holds, fails, undecided }: Tally) -> String {
    let form = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    format!(
        "{}, {} and {} undecided",
        form(holds, "holds", "hold"),
        form(fails, "fails", "fail"),
        form(undecided, "is", "are")
    )
}

fn count(outcome: &Outcome<'_>, counted: Counted) -> usize {
    let tally = outcome.judgement.tallies.first().copied().unwrap_or_default();
    match counted {
        Counted::Claims => outcome.judgement.judged.len(),
        Counted::Readings => outcome.points.len(),
        Counted::Verdicts(Verdict::Holds) => tally.holds,
        Counted::Verdicts(Verdict::Fails) => tally.fails,
        Counted::Verdicts(Verdict::Undecided) => tally.undecided,
    }
}

/// The default reading but for these choices.
fn point(study: &Study, choices: &[Choice<'_>]) -> Result<Vec<usize>, String> {
    let mut point = study.default_reading();
    for (name, label) in choices {
        let place = study.readings.iter().position(|reading| reading.axis.name == *name);
        let place = place.ok_or_else(|| format!("no reading \"{name}\""))?;
        let labels: Vec<String> = study.readings[place].axis.values.iter().map(AxisValue::label).collect();
        let value = labels.iter().position(|known| known == label);
        point[place] = value.ok_or_else(|| format!("{name} = {label}; there are {}", labels.join(", ")))?;
    }
    Ok(point)
}

/// A value under a reading: of a sample its mean.
fn value(
    outcome: &Outcome<'_>,
    formula: &Formula,
    choices: &[Choice<'_>],
    format: Option<Format>,
) -> Result<String, String> {
    let reading = point(outcome.study, choices)?;
    if !outcome.points.contains(&reading) {
        return Err(format!("\"{}\": that reading did not run", formula.source()));
    }
    let reading = &reading[..];
    let Outcome { study, plan, results, experiments, .. } = outcome;
    let view = View::new(study, plan, results, reading, experiments);
    let complain = |message: &str| format!("\"{}\": {message}", formula.source());
    let value = formula.value(&view).map_err(|error| complain(&error.to_string()))?;
    match (told(&value), value) {
        (Some((point, interval)), _) => Ok(number(point, interval, format)),
        (None, Value::Unknown(reason)) => Err(complain(&reason)),
        (None, other) => Ok(other.to_string()),
    }
}

/// The table `id` as Markdown. Cells show `paper / ours` where the paper prints something.
fn table(study: &Study, cells: &[Cell], id: &str, by: &[&str], formats: &[Format]) -> Result<String, String> {
    let format = |place: usize| formats.get(place).or(formats.last()).copied();
    let written = |cell: &Cell, place: usize| written(cell, format(place));
    let bound = |bound: f64| number(bound, None, formats.last().copied());
    Pivot::new(study, cells, id, by, written, Some(&bound)).map(|table| table.markdown())
}

fn written(cell: &Cell, format: Option<Format>) -> String {
    let interval = cell.interval.map(|[low, high]| (low, high));
    let ours = match (&cell.ours_text, cell.ours) {
        (Some(text), _) => text.clone(),
        (None, Some(ours)) => number(ours, interval, format),
        (None, None) => "-".to_owned(),
    };
    let paper = cell.paper.map(|paper| number(paper, None, format)).or_else(|| cell.paper_text.clone());
    match paper {
        Some(paper) => format!("{paper} / {ours}"),
        None => ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_ask_for_words_tables_and_values() {
        let format = |text| Format::parse(text).unwrap();
        for (what, shown) in [
            ("made", Shown::Made(None)),
            ("made 12ab 34cd", Shown::Made(Some(("12ab", "34cd")))),
            ("tally best", Shown::Tally { best: true }),
            ("count undecided", Shown::Count(Counted::Verdicts(Verdict::Undecided))),
            ("table I", Shown::Table { id: "I", by: Vec::new(), formats: Vec::new() }),
            (
                "table \"figure 4-11, s\" by load, f as 0.0, 0 %",
                Shown::Table {
                    id: "figure 4-11, s",
                    by: vec!["load", "f"],
                    formats: vec![format("0.0"), format("0 %")],
                },
            ),
        ] {
            assert_eq!(Shown::parse(what), Ok(shown), "{what}");
        }
        assert!(
            matches!(Shown::parse("T('TCP', 0.5) / 2 as 0.00 %"), Ok(Shown::Value(_, none, Some(_))) if none.is_empty())
        );
        let Ok(Shown::Value(formula, choices, None)) =
            Shown::parse("T('TCP') under rate = 2, queue = 250 kB")
        else {
            panic!("a value under a reading")
        };
        assert_eq!((formula.source(), choices), ("T('TCP')", vec![("rate", "2"), ("queue", "250 kB")]));
        for (what, message) in [
            ("count apples", "count apples; there are claims, readings, hold, fail, undecided"),
            ("T( as 0.0", "\"T(\""),
            ("1 + 1 as 0, 0", "one value has one format"),
            ("made 12", "two hashes"),
            ("T('a') under rate", "under rate: write NAME = VALUE"),
        ] {
            let error = Shown::parse(what).unwrap_err();
            assert!(error.contains(message), "{what}: {error}");
        }
    }

    #[test]
    fn a_tally_is_a_sentence() {
        assert_eq!(tally(Tally { holds: 1, fails: 2, undecided: 1 }), "1 holds, 2 fail and 1 is undecided");
        assert_eq!(tally(Tally { holds: 0, fails: 1, undecided: 3 }), "0 hold, 1 fails and 3 are undecided");
    }
}
