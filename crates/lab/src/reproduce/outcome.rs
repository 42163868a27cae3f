//! What `reproduce --json` prints. Other programs read it: names stay as they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{Criterion, Evidence, FIRST_SEED, Judged, Paper, Plan, Surveyed};
use crate::claims::{Measurements, Tally, Verdict};
use crate::statistics::Spread;

/// What a reproduction measured and decided.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The paper.
    pub paper: &'a dyn Paper,
    /// How it was run.
    pub plan: Plan,
    /// The names of the experiments that ran.
    pub experiments: Vec<&'static str>,
    /// What they measured.
    pub evidence: Evidence,
    /// Every claim that they decide.
    pub judged: Vec<Judged>,
    /// The paper's tables and figures as far as they were run, at the default point of a grid.
    pub cells: Vec<Cell>,
}

/// One number of a paper's table or figure, beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The table or figure.
    pub table: &'static str,
    /// Which of its cells.
    pub row: BTreeMap<&'static str, String>,
    /// What the paper prints there, if it prints a number.
    pub paper: Option<f64>,
    /// Our median over the seeds, or the mean where the paper's is one.
    pub ours: Option<f64>,
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
    /// The cell of the quantity that `call` asks for.
    #[must_use]
    pub fn new(
        table: &'static str,
        row: &[(&'static str, String)],
        runs: &[Measurements],
        call: &str,
    ) -> Self {
        Self::of(table, row, Measurements::spread(runs, call))
    }

    /// The cell of the ratio of two quantities, seed by seed.
    #[must_use]
    pub fn ratio(
        table: &'static str,
        row: &[(&'static str, String)],
        runs: &[Measurements],
        above: &str,
        below: &str,
    ) -> Self {
        let ratio = |run: &Measurements| Some(run.get(above)? / run.get(below)?);
        Self::of(table, row, Spread::of(runs.iter().filter_map(ratio)))
    }

    /// The cell of a paper's mean, with ours over these values.
    #[must_use]
    pub fn of_mean(
        table: &'static str,
        row: &[(&'static str, String)],
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let spread = Spread::of(values);
        Self { ours: spread.map(|spread| spread.mean), ..Self::of(table, row, spread) }
    }

    fn of(table: &'static str, row: &[(&'static str, String)], spread: Option<Spread>) -> Self {
        Self {
            table,
            row: row.iter().cloned().collect(),
            paper: None,
            ours: spread.map(|spread| spread.median),
            p25: spread.map(|spread| spread.p25),
            p75: spread.map(|spread| spread.p75),
            n: spread.map_or(0, |spread| spread.n),
            bound: None,
            calibrated: false,
        }
    }
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
    /// The verdict: of a grid at its default point, at the medians over the seeds.
    pub verdict: Verdict,
    /// Why it is undecided.
    pub reason: Option<&'a str>,
    /// What the verdict rests on, with intervals.
    pub criteria: &'a [Criterion],
    /// The verdicts of the single seeds at the default point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Tally>,
    /// The verdicts over the grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<Tally>,
    /// Where it holds, of the points that decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid_share: Option<f64>,
    /// Why it comes out so in a run in full, where we know.
    pub remark: Option<&'static str>,
}

/// The whole object.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// The paper's short name.
    pub paper: &'a str,
    /// The root seed.
    pub seed: u64,
    /// The paper's tables and figures, at the default point of a grid.
    pub cells: &'a [Cell],
    /// Its claims.
    pub verdicts: Vec<VerdictRow<'a>>,
    /// The default point's name.
    pub point: &'a str,
    /// Points of the grid.
    pub points: usize,
    /// Replications at every point, where there are as many everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    /// Where the report is.
    pub report: Option<PathBuf>,
}

impl<'a> Summary<'a> {
    /// The summary of a reproduction.
    #[must_use]
    pub fn new(outcome: &'a Outcome<'_>, report: Option<PathBuf>) -> Self {
        Self {
            paper: outcome.paper.name(),
            seed: FIRST_SEED,
            cells: &outcome.cells,
            verdicts: outcome.judged.iter().map(|judged| VerdictRow::new(outcome, judged)).collect(),
            point: outcome.setting(),
            points: outcome.surveyed().map_or(1, |surveyed| surveyed.points.len()),
            seeds: outcome.surveyed().map_or(outcome.plan.seeds, |surveyed| Some(surveyed.seeds)),
            report,
        }
    }

    /// As one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary has only names, numbers and lists")
    }
}

impl<'a> VerdictRow<'a> {
    fn new(outcome: &Outcome<'_>, judged: &'a Judged) -> Self {
        let ruling = &judged.ruling;
        Self {
            id: &judged.claim.id,
            claim: &judged.claim.statement,
            paper: judged.claim.paper_value.as_deref(),
            ours: ruling.measured.clone(),
            verdict: ruling.verdict,
            reason: ruling.reason.as_deref(),
            criteria: &ruling.criteria,
            seeds: judged.seeds,
            grid: judged.grid,
            grid_share: judged.grid.and_then(|grid| grid.share()),
            remark: outcome.paper.remark(&judged.claim.id),
        }
    }
}

impl Outcome<'_> {
    /// What was chosen where the paper leaves a choice: the default point's name, or the study's setting.
    #[must_use]
    pub fn setting(&self) -> &str {
        match &self.evidence {
            Evidence::Grid(_, surveyed) => &surveyed.points[0].name,
            Evidence::Study(study, _) => study.setting(),
        }
    }

    /// What was measured over a grid, if it was one.
    #[must_use]
    pub const fn surveyed(&self) -> Option<&Surveyed> {
        match &self.evidence {
            Evidence::Grid(_, surveyed) => Some(surveyed),
            Evidence::Study(..) => None,
        }
    }

    /// A line a claim for the terminal, and the tally at the end.
    #[must_use]
    pub fn table(&self) -> String {
        let width = self.judged.iter().map(|judged| judged.claim.id.len()).max().unwrap_or(0);
        let surveyed = self.surveyed().is_some();
        let more = if surveyed { "  seeds    grid" } else { "" };
        let mut text = format!("{:width$}  verdict  {more}\n", "claim");
        text += &format!("{}\n", "-".repeat(width + 11 + more.len()));
        let mut all = Tally::default();
        for judged in &self.judged {
            let verdict = judged.ruling.verdict;
            all.add(verdict);
            let id = &judged.claim.id;
            let line = match (judged.seeds, judged.grid) {
                (Some(seeds), Some(grid)) => {
                    let seeds = format!("{}/{}", seeds.holds, seeds.total());
                    let grid = format!("{}/{}", grid.holds, grid.holds + grid.fails);
                    format!("{id:width$}  {verdict:9}  {seeds:>5}  {grid:>8}")
                }
                _ => format!("{id:width$}  {verdict}"),
            };
            text += &format!("{line}\n");
        }
        let Tally { holds, fails, undecided } = all;
        text += &format!(
            "\n{} claims ({}): {holds} hold, {fails} fail, {undecided} undecided\n",
            all.total(),
            self.setting(),
        );
        if surveyed {
            text += "seeds: where it holds on one seed's values; grid: at how many of the points that decide it\n";
        }
        text
    }
}
