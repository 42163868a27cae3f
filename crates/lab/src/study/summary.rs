//! What `reproduce --json` prints. Other programs read it: names stay as they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::agreement::{self, Agreement};
use super::form::Center;
use super::judge::Judged;
use super::pivot::Pivot;
use super::table::{self, NOT_ALL};
use super::{Outcome, Study, StudyError};
use crate::claims::{Tally, Value, Verdict, short};

/// One number of a paper's table or figure, beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The table or figure.
    pub table: String,
    /// Which of its cells.
    pub row: BTreeMap<String, String>,
    /// What the paper prints there, if it prints a number.
    pub paper: Option<f64>,
    /// What it says there instead of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_text: Option<String>,
    /// Its quartiles over the paper's replications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_quartiles: Option<[f64; 2]>,
    /// Our mean over the seeds, or the median where the table shows that.
    pub ours: Option<f64>,
    /// What stands there if that is infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours_text: Option<String>,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Our lower quartile.
    pub p25: Option<f64>,
    /// Our upper quartile.
    pub p75: Option<f64>,
    /// Seeds.
    pub n: usize,
    /// The physical bound, where there is one.
    pub bound: Option<f64>,
    /// Whether a parameter was fitted to this cell.
    pub calibrated: bool,
}

impl Cell {
    /// Its value as people read it: a mean with its 95 % interval, or a median with its quartiles, or what stands instead; without these if
    /// it is to be `alone`.
    pub(super) fn shown(&self, center: Center, alone: bool) -> String {
        let ours = match (&self.ours_text, self.ours, self.interval) {
            (Some(text), ..) if alone && text == NOT_ALL => return "not all".to_owned(),
            (Some(text), ..) => return text.clone(),
            (None, None, _) => return "-".to_owned(),
            (None, Some(ours), _) if alone => short(ours),
            (None, Some(ours), _) if center == Center::Median => match (self.p25, self.p75) {
                (Some(low), Some(high)) if high > low => {
                    format!("{} ({} to {})", short(ours), short(low), short(high))
                }
                _ => short(ours),
            },
            (None, Some(ours), Some([low, high])) if high > low => within(ours, (low, high)),
            (None, Some(ours), _) => short(ours),
        };
        match self.paper.map(short).or_else(|| self.paper_text.clone()) {
            Some(paper) => format!("{paper} / {ours}"),
            None => ours,
        }
    }

    /// A cell with nothing in it yet.
    pub(super) fn empty(table: &str, row: BTreeMap<String, String>) -> Self {
        Self {
            table: table.to_owned(),
            row,
            paper: None,
            paper_text: None,
            paper_quartiles: None,
            ours: None,
            ours_text: None,
            interval: None,
            p25: None,
            p75: None,
            n: 0,
            bound: None,
            calibrated: false,
        }
    }
}

/// A number and its interval, with two digits of half of that. The interval is as lopsided as it is: few seeds of which one is far off tell
/// little about the side on which that is.
fn within(value: f64, (low, high): (f64, f64)) -> String {
    let off = (high - low) / 2.0;
    let decimals = (1.0 - off.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$} ({low:.decimals$} to {high:.decimals$})")
}

/// A comparison that a claim makes, or a value that is told beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Criterion {
    /// As written.
    pub what: String,
    /// What was measured.
    pub measured: String,
    /// Whether it holds; none if it cannot be told, or decides nothing.
    pub holds: Option<bool>,
}

/// A claim's line.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictRow<'a> {
    /// The claim's id.
    pub id: &'a str,
    /// What it says.
    pub claim: &'a str,
    /// What the paper prints.
    pub paper: Option<&'a str>,
    /// What was measured.
    pub ours: String,
    /// The verdict under the default reading.
    pub verdict: Verdict,
    /// Why it is undecided.
    pub reason: Option<&'a str>,
    /// What the verdict rests on, with intervals.
    pub criteria: Vec<Criterion>,
    /// The verdicts over all readings.
    pub tally: Tally,
    /// Why it comes out so in a full run, where we know.
    pub remark: Option<&'a str>,
    /// In what the check asks for less than the paper says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weaker: Option<&'a str>,
}

/// One reading of what the paper leaves unsaid.
#[derive(Clone, Debug, Serialize)]
pub struct ReadingRow {
    /// Its value on each axis.
    pub reading: BTreeMap<String, String>,
    /// How the claims come out under it.
    pub tally: Tally,
    /// The verdict on each claim.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// The whole object.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// The study's short name.
    pub paper: &'a str,
    /// The root seed.
    pub seed: u64,
    /// Its tables, under the default reading.
    pub cells: Vec<Cell>,
    /// How near larger tables come to the paper.
    pub agreements: Vec<Agreement>,
    /// Its claims, under the default reading.
    pub verdicts: Vec<VerdictRow<'a>>,
    /// The default reading's name, or the study's setting if it has no readings.
    pub point: String,
    /// All readings that ran, the default one first.
    pub readings: Vec<ReadingRow>,
    /// Where the report is.
    pub report: Option<PathBuf>,
}

impl Summary<'_> {
    /// The tables, each with its name above it.
    #[must_use]
    pub fn tables(&self, study: &Study) -> String {
        let all = study.tables.iter().filter_map(|form| {
            let table = Pivot::for_reading(study, &self.cells, &form.id)?;
            Some(format!("{}\n{}\n", table.heading(study, &form.id), table.text()))
        });
        all.collect()
    }

    /// How near larger tables come to the paper, a line each.
    #[must_use]
    pub fn agreement(&self) -> String {
        agreement::lines(&self.agreements)
    }
}

impl<'a> Summary<'a> {
    /// The summary of a study's runs.
    ///
    /// # Errors
    /// A table does not fit what was measured.
    pub fn new(outcome: &'a Outcome<'_>, report: Option<PathBuf>) -> Result<Self, StudyError> {
        let cells = table::cells(outcome)?;
        let tables = outcome.study.tables.iter();
        let side_by_side = tables.map(|form| (form.id.as_str(), form.order.as_slice())).collect();
        Ok(Self {
            paper: &outcome.study.name,
            seed: outcome.results.first_seed,
            agreements: agreement::agreements(&cells, &side_by_side),
            cells,
            verdicts: outcome.judgement.judged.iter().map(|judged| verdict_row(outcome, judged)).collect(),
            point: outcome.setting(),
            readings: (0..outcome.points.len()).map(|point| reading_row(outcome, point)).collect(),
            report,
        })
    }

    /// As one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary has only names, numbers and lists")
    }
}

fn verdict_row<'a>(outcome: &'a Outcome<'_>, judged: &'a Judged) -> VerdictRow<'a> {
    let claim = &outcome.study.claims[judged.claim];
    VerdictRow {
        id: &claim.id,
        claim: &claim.statement,
        paper: claim.paper_value.as_deref(),
        ours: judged.decision.measured(),
        verdict: judged.decision.verdict,
        reason: judged.decision.reason.as_deref(),
        criteria: criteria(judged),
        tally: judged.tally(),
        remark: claim.remark.as_deref(),
        weaker: claim.weaker.as_deref(),
    }
}

fn reading_row(outcome: &Outcome<'_>, point: usize) -> ReadingRow {
    let readings = outcome.study.readings.iter().zip(&outcome.points[point]);
    let judged = &outcome.judgement.judged;
    ReadingRow {
        reading: readings.map(|(r, &at)| (r.axis.name.clone(), r.axis.values[at].label())).collect(),
        tally: outcome.judgement.tallies[point],
        verdicts: judged
            .iter()
            .map(|judged| (outcome.study.claims[judged.claim].id.clone(), judged.verdicts[point]))
            .collect(),
    }
}

/// What a verdict rests on, and what is told beside it.
pub(super) fn criteria(judged: &Judged) -> Vec<Criterion> {
    let compared = judged.decision.comparisons.iter().map(|comparison| Criterion {
        what: comparison.text.clone() + &comparison.place,
        measured: comparison.told(),
        holds: comparison.holds,
    });
    let told = judged.told.iter().map(|(what, value)| Criterion {
        what: what.clone(),
        measured: match value {
            Value::Sample(sample) => sample.mean_value().to_string(),
            Value::Unknown(reason) => format!("unknown: {reason}"),
            value => value.to_string(),
        },
        holds: None,
    });
    compared.chain(told).collect()
}

impl Outcome<'_> {
    /// What was chosen where the paper leaves a choice: the default reading's name, or the study's setting.
    #[must_use]
    pub fn setting(&self) -> String {
        self.point_name(0)
    }

    /// What a reading that ran is called.
    pub(super) fn point_name(&self, point: usize) -> String {
        match self.points.get(point) {
            Some(reading) if !reading.is_empty() => self.study.reading_name(reading),
            _ => self.study.setting.clone(),
        }
    }

    /// The reading under which the most claims hold; of equals the first. None if there is only one.
    #[must_use]
    pub fn best_reading(&self) -> Option<usize> {
        let holds = |point: &usize| self.judgement.tallies[*point].holds;
        let best = (0..self.points.len()).max_by_key(|point| (holds(point), core::cmp::Reverse(*point)));
        best.filter(|_| self.points.len() > 1)
    }

    /// A line a claim for the terminal, and the tallies at the end.
    #[must_use]
    pub fn table(&self) -> String {
        let judged = &self.judgement.judged;
        if judged.is_empty() {
            return String::new();
        }
        let id = |judged: &Judged| &self.study.claims[judged.claim].id;
        let width = judged.iter().map(|judged| id(judged).len()).max().unwrap_or(0);
        let more = if self.points.len() > 1 { "  readings" } else { "" };
        let mut text = format!("{:width$}  verdict  {more}\n", "claim");
        text += &format!("{}\n", "-".repeat(width + 11 + more.len()));
        for judged in judged {
            let verdict = judged.decision.verdict;
            let tally = judged.tally();
            let readings = match self.points.len() {
                0 | 1 => String::new(),
                all => format!("  {:>8}", format!("{}/{all}", tally.holds)),
            };
            text += format!("{:width$}  {verdict:9}{readings}", id(judged)).trim_end();
            text += "\n";
        }
        let line = |point: usize| {
            let Tally { holds, fails, undecided } = self.judgement.tallies[point];
            format!("{holds} hold, {fails} fail, {undecided} undecided ({})\n", self.point_name(point))
        };
        text += &format!("\n{} claims: {}", judged.len(), line(0));
        let open = judged.iter().filter(|judged| !judged.open.is_empty()).count();
        if open > 0 {
            text += &match self.plan.looks(self.study) {
                1 => format!("{open} of the undecided may be decided by more seeds, which a full run has\n"),
                looks => format!("{open} of the undecided need more seeds than {looks} looks may add\n"),
            };
        }
        if let Some(best) = self.best_reading() {
            text += &format!("most hold, of {} readings: {}", self.points.len(), line(best));
            text += "readings: at how many of them the claim holds\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_shown_as_lopsided_as_it_is() {
        let cell = |ours, interval| Cell { ours, interval, ..Cell::empty("t", BTreeMap::new()) };
        let lopsided = cell(Some(57.3), Some([-28.4, 203.2]));
        assert_eq!(lopsided.shown(Center::Mean, false), "57 (-28 to 203)");
        assert_eq!(lopsided.shown(Center::Mean, true), "57.30");
        assert_eq!(
            cell(Some(0.9397), Some([0.9335, 0.9459])).shown(Center::Mean, false),
            "0.9397 (0.9335 to 0.9459)"
        );
        assert_eq!(cell(Some(0.5), Some([0.5, 0.5])).shown(Center::Mean, false), "0.500");
        let some = Cell { ours_text: Some(NOT_ALL.to_owned()), ..cell(None, None) };
        assert_eq!(
            [some.shown(Center::Mean, false), some.shown(Center::Mean, true)],
            ["not in all seeds", "not all"]
        );
        assert_eq!(cell(None, None).shown(Center::Mean, false), "-");
    }
}
