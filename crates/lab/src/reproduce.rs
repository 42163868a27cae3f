//! Reproducing a paper: its experiments, its figures beside ours, and a verdict for each of its claims.
//!
//! A [`Paper`] is a claims file and a [`Method`]. With a [`Grid`] the file's checks are expressions that are evaluated
//! over a grid of what the paper leaves unsaid; with a [`Study`] they are prose, and code decides them from samples of
//! whole sweeps. What was measured is kept on disk by the hash of the scenarios.

mod cache;
mod grid;
mod job;
mod outcome;
mod page;
mod ruling;
mod study;

use core::fmt::Debug;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use base::config::ConfigError;

use crate::claims::{self, Claim, EvaluateError, Tally};
use cache::Cache;
pub use grid::{Experiment as GridExperiment, Grid, Point, Surveyed};
use job::Job;
pub use outcome::{Cell, Outcome, Summary, VerdictRow};
pub use page::write;
pub use ruling::{Criterion, Ruling, Value};
pub use study::{Case, Effort, Experiment, Samples, Study};

/// A paper that can be reproduced.
pub trait Paper: Debug + Sync {
    /// Its short name.
    fn name(&self) -> &'static str;

    /// Authors, title and year.
    fn title(&self) -> &'static str;

    /// Its claims: a TOML file's name and text.
    fn claims(&self) -> (&'static str, &'static str);

    /// How they are decided.
    fn method(&self) -> Method;

    /// Why a claim comes out as it does in a run in full, where we know.
    fn remark(&self, claim: &str) -> Option<&'static str>;
}

/// How a paper's claims are decided.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// By expressions, over a grid.
    Grid(&'static dyn Grid),
    /// By code, from sweeps.
    Study(&'static dyn Study),
}

/// What every experiment is for.
#[derive(Clone, Copy, Debug)]
struct Listing {
    figures: &'static [&'static str],
    claims: &'static [&'static str],
}

/// How much of a paper to reproduce.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Replications, number k with seed `1 + k`; what the paper's experiments choose unless given.
    pub seeds: Option<u32>,
    /// Whether a coarse grid will do.
    pub quick: bool,
    /// Only what this figure or table needs.
    pub figure: Option<String>,
    /// Where measurements are kept between runs.
    pub cache: Option<PathBuf>,
    /// Names the program that measures: what another one kept is not used.
    pub build: String,
}

impl Plan {
    /// Whether everything runs with as many seeds as the paper's experiments choose.
    const fn is_full(&self) -> bool {
        !self.quick && self.seeds.is_none()
    }

    const fn effort(&self) -> Effort {
        if self.quick { Effort::Quick } else { Effort::Full }
    }
}

/// The root seed of every reproduction.
pub const FIRST_SEED: u64 = 1;

/// What can stand in the way of a reproduction.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A scenario or the claims file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No experiment is for this figure.
    #[error("{paper} has no figure or table \"{figure}\"; there are {}", known.listed())]
    NoFigure {
        /// The paper.
        paper: &'static str,
        /// What was asked for.
        figure: String,
        /// What there is.
        known: Known,
    },
    /// A check does not fit what its experiment measures.
    #[error("claim {id}: {error}")]
    Claim {
        /// The claim.
        id: String,
        /// What is wrong with it.
        error: EvaluateError,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The figures and tables that a part of a paper can be asked for by.
#[derive(Clone, Debug)]
pub struct Known {
    /// Those that the report shows.
    pub drawn: Vec<&'static str>,
    /// Those that only decide claims.
    pub undrawn: Vec<&'static str>,
}

impl Known {
    fn of(paper: &dyn Paper, all: &[Listing]) -> Self {
        let names: BTreeSet<_> = all.iter().flat_map(|listing| listing.figures).copied().collect();
        let only_decide = match paper.method() {
            Method::Grid(_) => &[],
            Method::Study(study) => study.undrawn(),
        };
        let (undrawn, drawn) = names.into_iter().partition(|name| only_decide.contains(name));
        Self { drawn, undrawn }
    }

    fn listed(&self) -> String {
        let drawn = self.drawn.join(", ");
        if self.undrawn.is_empty() {
            return drawn;
        }
        format!("{drawn}; and {}, without a figure", self.undrawn.join(", "))
    }
}

/// A reproduction, ready to run.
#[derive(Debug)]
pub struct Reproduction<'a> {
    paper: &'a dyn Paper,
    plan: Plan,
    claims: Vec<Claim>,
    experiments: Vec<&'static str>,
    cache: Cache,
    runs: Runs,
}

/// What is to be run.
#[derive(Debug)]
enum Runs {
    Grid(&'static dyn Grid, Vec<Point>, Vec<Job<grid::Key>>),
    Study(&'static dyn Study, Vec<Job<study::Key>>),
}

/// A claim and what became of it.
#[derive(Debug)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// The verdict and what it rests on.
    pub ruling: Ruling,
    /// How many seeds decide it which way on their own, where each can.
    pub seeds: Option<Tally>,
    /// How many points of a grid decide it which way.
    pub grid: Option<Tally>,
}

/// What was measured.
#[derive(Debug)]
pub enum Evidence {
    /// Over a grid.
    Grid(&'static dyn Grid, Surveyed),
    /// In a study.
    Study(&'static dyn Study, Samples),
}

impl<'a> Reproduction<'a> {
    /// Reads claims and scenarios, and looks up what has been measured before.
    ///
    /// # Errors
    /// There is no such figure, or a file is wrong.
    pub fn prepare(paper: &'a dyn Paper, plan: Plan) -> Result<Self, ReproduceError> {
        let (file, text) = paper.claims();
        let mut claims = match paper.method() {
            Method::Grid(_) => claims::parse(file, text)?,
            Method::Study(_) => claims::parse_prose(file, text)?,
        };
        let cache = Cache::new(plan.cache.clone());
        let (experiments, runs) = match paper.method() {
            Method::Grid(grid) => {
                let all = grid.experiments();
                let listings: Vec<_> = all.iter().map(grid::Experiment::listing).collect();
                let chosen = choose(paper, &listings, &plan, &mut claims)?;
                let experiments: Vec<_> = chosen.iter().map(|&place| &all[place]).collect();
                let points = grid.points(plan.quick);
                let jobs = grid::jobs(&experiments, &points, &plan, &cache)?;
                (experiments.iter().map(|e| e.name).collect(), Runs::Grid(grid, points, jobs))
            }
            Method::Study(study) => {
                let all = study.experiments();
                let listings: Vec<_> = all.iter().map(|experiment| experiment.listing()).collect();
                let chosen = choose(paper, &listings, &plan, &mut claims)?;
                let experiments: Vec<_> = chosen.iter().map(|&place| all[place]).collect();
                let jobs = study::jobs(&experiments, &plan, &cache)?;
                (experiments.iter().map(|e| e.name).collect(), Runs::Study(study, jobs))
            }
        };
        Ok(Self { paper, plan, claims, experiments, cache, runs })
    }

    /// The work that is to be done, in units of the paper's own that take about the same time each.
    #[must_use]
    pub fn work(&self) -> u64 {
        match &self.runs {
            Runs::Grid(_, _, jobs) => job::work(jobs),
            Runs::Study(_, jobs) => job::work(jobs),
        }
    }

    /// Does it, in parallel, and calls `on_done` with the work of each job that it has done; then decides the claims.
    ///
    /// # Errors
    /// A run or the cache failed, or a check does not fit what was measured.
    pub fn run(self, on_done: impl Fn(u64) + Sync) -> Result<Outcome<'a>, ReproduceError> {
        let Self { paper, plan, claims, experiments, cache, runs } = self;
        let (judged, cells, evidence) = match runs {
            Runs::Grid(grid, points, jobs) => {
                let measured = job::run(jobs, &cache, &on_done)?;
                let (judged, surveyed) = grid::judge(claims, points, &plan, measured)?;
                let cells = grid.cells(&surveyed.points[0], &surveyed.runs[0])?;
                (judged, cells, Evidence::Grid(grid, surveyed))
            }
            Runs::Study(study, jobs) => {
                let samples = study::collect(job::run(jobs, &cache, &on_done)?, plan.effort());
                let judge = |claim: Claim| {
                    let ruling = study.rule(&claim.id, &samples);
                    Judged { claim, ruling, seeds: None, grid: None }
                };
                let judged = claims.into_iter().map(judge).collect();
                (judged, study.cells(&samples), Evidence::Study(study, samples))
            }
        };
        let cells = cells.into_iter().filter(|cell| cell.ours.is_some()).collect();
        Ok(Outcome { paper, plan, experiments, evidence, judged, cells })
    }
}

/// The places of the experiments that the plan's figure needs; `claims` keeps those that these decide.
fn choose(
    paper: &dyn Paper,
    all: &[Listing],
    plan: &Plan,
    claims: &mut Vec<Claim>,
) -> Result<Vec<usize>, ReproduceError> {
    let wanted =
        |listing: &Listing| plan.figure.as_deref().is_none_or(|figure| listing.figures.contains(&figure));
    let chosen: Vec<usize> = (0..all.len()).filter(|&place| wanted(&all[place])).collect();
    if chosen.is_empty() {
        let known = Known::of(paper, all);
        let figure = plan.figure.clone().unwrap_or_default();
        return Err(ReproduceError::NoFigure { paper: paper.name(), figure, known });
    }
    // Of a part only those claims that nothing else helps to decide.
    let decided = |id: &str| {
        let mut needed =
            all.iter().enumerate().filter(|(_, listing)| listing.claims.contains(&id)).peekable();
        (plan.figure.is_none() || needed.peek().is_some()) && needed.all(|(place, _)| chosen.contains(&place))
    };
    claims.retain(|claim| decided(&claim.id));
    Ok(chosen)
}
