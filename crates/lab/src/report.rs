//! What a suite's runs came to: a table for the terminal, figures as SVG, one self-contained HTML page, and JSON.

mod applications;
mod dama;
pub mod destination;
mod figures;
pub(crate) mod html;
mod measures;
mod over_time;
mod page;
mod rate;
pub(crate) mod table;

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use fs_err::File;

use serde::Serialize;

use crate::run::{self, Run};
use crate::scenario::Suite;
use crate::statistics::Spread;
use crate::study::tidy::ByFlow;
use crate::table::Table;

pub use crate::drawing::print::{COLUMN, NotAWidth, Points};
pub use measures::Measures;
pub use table::table;

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// The root seed.
    pub seed: u64,
    /// One hash over all runs.
    pub trace_hash: String,
    /// What the runs of each scheme come to together, in their order.
    pub schemes: Vec<Measures<'a>>,
    /// Every run, in the order of schemes and seeds.
    pub runs: &'a [Run],
    /// Where the report is.
    pub report: Option<PathBuf>,
}

impl<'a> Summary<'a> {
    /// The summary of a suite's runs.
    #[must_use]
    pub fn new(suite: &'a Suite, runs: &'a [Run], report: Option<PathBuf>) -> Self {
        let trace_hash = run::trace_hash(runs);
        let schemes = by_scheme(suite, runs).iter().map(Measures::of).collect();
        Self { scenario: &suite.scenario.name, seed: suite.scenario.seed, trace_hash, schemes, runs, report }
    }

    /// The summary as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary has only names, numbers and lists")
    }
}

/// Writes `report.html`, its figures as SVG with their data as CSV, `runs.json`, `runs.csv` and the resolved scenario of every scheme to `directory`; the
/// path of the page. Figures for print are so wide.
///
/// # Errors
/// The directory or a file in it cannot be written.
pub fn write(
    suite: &Suite,
    runs: &[Run],
    command: &str,
    directory: &Path,
    figure_width: Points,
) -> io::Result<PathBuf> {
    fs_err::create_dir_all(directory)?;
    let page = directory.join("report.html");
    let figures = figures::figures(suite, runs);
    fs_err::write(&page, page::page(suite, runs, &figures, command))?;
    figures.iter().try_for_each(|figure| figure.write(directory, figure_width))?;
    let summary = Summary::new(suite, runs, Some(page.clone()));
    fs_err::write(directory.join("runs.json"), summary.to_json())?;
    by_flow(suite, runs)?.write_csv(BufWriter::new(File::create(directory.join("runs.csv"))?))?;
    for (number, (name, scenario)) in suite.schemes.iter().enumerate() {
        let text = toml::to_string(scenario).map_err(io::Error::other)?;
        let name = name.replace(char::is_control, " ");
        let heading = format!("# {name}: the scenario as it was run, every default spelled out.\n");
        fs_err::write(directory.join(format!("scenario-{}.toml", number + 1)), heading + &text)?;
    }
    Ok(page)
}

/// A row for each run and flow, as in `runs.csv`.
///
/// # Errors
/// A run is not of this suite.
pub fn by_flow(suite: &Suite, runs: &[Run]) -> io::Result<Table> {
    Ok(ByFlow::of_runs(suite, runs)?.table())
}

/// One scheme's runs.
struct SchemeRuns<'a> {
    name: &'a str,
    runs: Vec<&'a Run>,
    goodput: Spread,
    bound: Spread,
    seconds: Spread,
}

/// The runs by scheme, in the suite's order.
fn by_scheme<'a>(suite: &'a Suite, runs: &'a [Run]) -> Vec<SchemeRuns<'a>> {
    let of = |name: &'a str| -> Option<SchemeRuns<'a>> {
        let runs: Vec<&Run> = runs.iter().filter(|run| run.scheme == name).collect();
        let spread = |value: fn(&Run) -> f64| Spread::of(runs.iter().map(|run| value(run)));
        let (goodput, bound) = (spread(|run| run.goodput_bps)?, spread(|run| run.bound_bps)?);
        let seconds = spread(|run| run.seconds)?;
        Some(SchemeRuns { name, goodput, bound, seconds, runs })
    };
    suite.schemes.iter().filter_map(|(name, _)| of(name)).collect()
}

impl SchemeRuns<'_> {
    /// Goodput over bound, run by run: the median in per cent; a dash where nothing could be carried at all.
    fn of_bound(&self) -> String {
        let open = self.runs.iter().filter(|run| run.bound_bps > 0.0);
        let ratio = Spread::of(open.map(|run| run.goodput_bps / run.bound_bps));
        ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.0} %", ratio.median * 100.0))
    }

    fn completed(&self) -> usize {
        self.runs.iter().filter(|run| run.complete).count()
    }

    fn is_intact(&self) -> bool {
        self.runs.iter().all(|run| run.intact)
    }
}

/// In what the rates of all schemes are given.
fn rate_unit(schemes: &[SchemeRuns<'_>]) -> rate::RateUnit {
    rate::RateUnit::of(schemes.iter().flat_map(|scheme| [scheme.goodput.p75, scheme.bound.median]))
}

/// What two schemes' runs with one seed have in common.
fn what_is_same(suite: &Suite) -> &'static str {
    if suite.same_channels() {
        "on the same channel realisations"
    } else {
        "with the same seeds on different channels"
    }
}

/// How many times faster `b` was than `a`, seed by seed: the spread of the ratios.
fn paired_ratio(a: &SchemeRuns<'_>, b: &SchemeRuns<'_>) -> Option<Spread> {
    let of_seed = |runs: &[&Run], seed| runs.iter().find(|run| run.seed == seed).map(|run| run.goodput_bps);
    let ratio = |run: &&Run| {
        let slower = of_seed(&a.runs, run.seed).filter(|goodput| *goodput > 0.0)?;
        Some(run.goodput_bps / slower)
    };
    Spread::of(b.runs.iter().filter_map(ratio))
}
