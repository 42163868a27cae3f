//! What `reproduce --json` prints. Other programs read it: names stay as they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{FIRST_SEED, Judged, Outcome};
use crate::claims::{Measurements, Tally, Verdict};
use crate::statistics::Spread;

/// One number of a paper's table or figure, beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The table or figure.
    pub table: &'static str,
    /// Which of its cells.
    pub row: BTreeMap<&'static str, String>,
    /// What the paper prints there, if it prints a number.
    pub paper: Option<f64>,
    /// Our median over the seeds.
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
    /// The verdict at the default point, at the medians over the seeds.
    pub verdict: Verdict,
    /// Why it is undecided.
    pub reason: Option<&'a str>,
    /// The verdicts of the single seeds at the default point.
    pub seeds: Tally,
    /// The verdicts over the grid.
    pub grid: Tally,
    /// Where it holds, of the points that decide it.
    pub grid_share: Option<f64>,
    /// Why it comes out so, where we know.
    pub remark: Option<&'static str>,
}

/// The whole object.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// The paper's short name.
    pub paper: &'a str,
    /// The root seed.
    pub seed: u64,
    /// The paper's tables and figures, at the default point.
    pub cells: &'a [Cell],
    /// Its claims.
    pub verdicts: Vec<VerdictRow<'a>>,
    /// The default point's name.
    pub point: &'a str,
    /// Points of the grid.
    pub points: usize,
    /// Replications at every point.
    pub seeds: u32,
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
            point: &outcome.points[0].name,
            points: outcome.points.len(),
            seeds: outcome.plan.seeds,
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
        let decided = judged.default_point();
        Self {
            id: &judged.claim.id,
            claim: &judged.claim.statement,
            paper: judged.claim.paper_value.as_deref(),
            ours: decided.decision.measured(),
            verdict: decided.decision.verdict,
            reason: decided.decision.reason.as_deref(),
            seeds: decided.seeds,
            grid: judged.grid,
            grid_share: judged.grid.share(),
            remark: outcome.paper.remark(&judged.claim.id),
        }
    }
}

impl Outcome<'_> {
    /// A line a claim for the terminal, and the tally at the end.
    #[must_use]
    pub fn table(&self) -> String {
        let width = self.judged.iter().map(|judged| judged.claim.id.len()).max().unwrap_or(0);
        let mut text = format!("{:width$}  verdict    seeds    grid\n", "claim");
        text += &format!("{}\n", "-".repeat(width + 32));
        let mut all = Tally::default();
        for judged in &self.judged {
            let decided = judged.default_point();
            let verdict = decided.decision.verdict;
            all.add(verdict);
            let seeds = format!("{}/{}", decided.seeds.holds, decided.seeds.total());
            let grid = format!("{}/{}", judged.grid.holds, judged.grid.holds + judged.grid.fails);
            let id = &judged.claim.id;
            text += &format!("{id:width$}  {verdict:9}  {seeds:>5}  {grid:>8}\n");
        }
        let Tally { holds, fails, undecided } = all;
        text += &format!(
            "\n{} claims at the default point ({}): {holds} hold, {fails} fail, {undecided} undecided\n\
             seeds: where it holds on one seed's values; grid: at how many of the points that decide it\n",
            all.total(),
            self.points[0].name,
        );
        text
    }
}
