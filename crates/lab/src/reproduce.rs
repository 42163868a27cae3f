//! Reproducing a paper: its experiments over a grid of what it leaves unsaid, and a verdict for each of its claims.
//!
//! A [`Paper`] is a claims file and a list of [`Experiment`]s. Every experiment runs at every [`Point`] of the grid with
//! every seed; a claim is decided at the paper's default point, the first, and at every other one, so that a report
//! can tell where it holds. What was measured is kept on disk by the hash of the scenarios.

mod cache;
mod grid;
mod outcome;
mod page;

use core::fmt::Debug;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use base::config::ConfigError;
use rayon::prelude::*;

use crate::claims::{self, Claim, EvaluateError, Measurements, Replicated, Tally};
use crate::report::Figure;
use crate::scenario::{Override, Suite};
use cache::Cache;
pub use outcome::{Cell, Summary, VerdictRow};
pub use page::write;

/// One setting of everything that a paper leaves unsaid.
#[derive(Clone, Debug)]
pub struct Point {
    /// What it is called.
    pub name: String,
    /// Its place on each axis of the grid, in the order of the axes.
    pub coordinates: Vec<(&'static str, String)>,
    /// What it sets in every scenario.
    pub overrides: Vec<Override>,
}

/// One of a paper's experiments.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What it is called.
    pub name: &'static str,
    /// The paper's figures and tables that it is for.
    pub figures: &'static [&'static str],
    /// The claims that it helps to decide.
    pub claims: &'static [&'static str],
    /// About how much work it is, in megabytes carried.
    pub work: u64,
    /// The scenarios to run at a point.
    pub scenarios: fn(&Point) -> Result<Vec<Suite>, ConfigError>,
    /// Runs them with a seed.
    pub measure: fn(&[Suite], u64) -> io::Result<Measurements>,
}

/// A paper that can be reproduced.
pub trait Paper: Debug + Sync {
    /// Its short name.
    fn name(&self) -> &'static str;

    /// Authors, title and year.
    fn title(&self) -> &'static str;

    /// Its claims: a TOML file's name and text.
    fn claims(&self) -> (&'static str, &'static str);

    /// Its experiments.
    fn experiments(&self) -> &'static [Experiment];

    /// The grid, the default point first; a coarse one if there is little time.
    fn points(&self, quick: bool) -> Vec<Point>;

    /// The rows of its tables and figures at `point`, from what its seeds measured.
    ///
    /// # Errors
    /// A scenario is wrong.
    fn cells(&self, point: &Point, runs: &[Measurements]) -> Result<Vec<Cell>, ConfigError>;

    /// Its figures, drawn from our runs, for those experiments that ran.
    ///
    /// # Errors
    /// As a run.
    fn figures(&self, outcome: &Outcome<'_>) -> io::Result<Vec<Figure>>;

    /// Why a claim comes out as it does, where we know.
    fn remark(&self, claim: &str) -> Option<&'static str>;
}

/// How much of a paper to reproduce.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Replications at every point; number k runs with seed `1 + k`.
    pub seeds: u32,
    /// Whether the coarse grid will do.
    pub quick: bool,
    /// Only what this figure or table needs.
    pub figure: Option<String>,
    /// Where measurements are kept between runs.
    pub cache: Option<PathBuf>,
    /// Names the program that measures: what another one kept is not used.
    pub build: String,
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
    #[error("{paper} has no figure or table \"{figure}\"; there are {known}")]
    NoFigure {
        /// The paper.
        paper: &'static str,
        /// What was asked for.
        figure: String,
        /// What there is.
        known: String,
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

/// A reproduction, ready to run.
#[derive(Debug)]
pub struct Reproduction<'a> {
    paper: &'a dyn Paper,
    plan: Plan,
    claims: Vec<Claim>,
    experiments: Vec<&'static Experiment>,
    points: Vec<Point>,
    /// One for every experiment, point and seed, in this order.
    jobs: Vec<Job>,
    cache: Cache,
}

/// One experiment at one point with one seed.
#[derive(Debug)]
struct Job {
    experiment: &'static Experiment,
    suites: std::sync::Arc<Vec<Suite>>,
    point: usize,
    seed: u64,
    /// Of everything that the measurements depend on.
    hash: u64,
    known: Option<Measurements>,
}

/// What a reproduction measured and decided.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The paper.
    pub paper: &'a dyn Paper,
    /// How it was run.
    pub plan: Plan,
    /// The grid, the default point first.
    pub points: Vec<Point>,
    /// The names of the experiments that ran.
    pub experiments: Vec<&'static str>,
    /// For each point, what each seed measured.
    pub runs: Vec<Vec<Measurements>>,
    /// Every claim that the experiments decide.
    pub judged: Vec<Judged>,
    /// The paper's tables and figures at the default point, as far as they were run.
    pub cells: Vec<Cell>,
}

/// A claim and what became of it.
#[derive(Debug)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// What was decided at each point, the default point first.
    pub at: Vec<Replicated>,
    /// How many points decide it which way.
    pub grid: Tally,
}

impl Judged {
    /// What was decided at the default point.
    #[must_use]
    pub fn default_point(&self) -> &Replicated {
        &self.at[0]
    }
}

impl<'a> Reproduction<'a> {
    /// Reads claims and scenarios, and looks up what has been measured before.
    ///
    /// # Errors
    /// There is no such figure, or a file is wrong.
    pub fn prepare(paper: &'a dyn Paper, plan: Plan) -> Result<Self, ReproduceError> {
        let (file, text) = paper.claims();
        let all = paper.experiments();
        let wanted = |experiment: &&Experiment| match &plan.figure {
            None => true,
            Some(figure) => experiment.figures.contains(&figure.as_str()),
        };
        let experiments: Vec<&Experiment> = all.iter().filter(wanted).collect();
        if experiments.is_empty() {
            let known: BTreeSet<_> = all.iter().flat_map(|experiment| experiment.figures).copied().collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            let figure = plan.figure.unwrap_or_default();
            return Err(ReproduceError::NoFigure { paper: paper.name(), figure, known });
        }
        let ran = |experiment: &Experiment| experiments.iter().any(|ran| ran.name == experiment.name);
        let decided = |id: &str| all.iter().filter(|experiment| experiment.claims.contains(&id)).all(ran);
        let mut claims = claims::parse(file, text)?;
        claims.retain(|claim| decided(&claim.id));
        let points = paper.points(plan.quick);
        let cache = Cache::new(plan.cache.clone());
        let mut jobs = Vec::new();
        for experiment in &experiments {
            for (point, at) in points.iter().enumerate() {
                let suites = std::sync::Arc::new((experiment.scenarios)(at)?);
                for seed in (FIRST_SEED..).take(plan.seeds as usize) {
                    let hash = cache::hash(&plan.build, experiment.name, &suites, seed)?;
                    let known = cache.load(hash);
                    let suites = std::sync::Arc::clone(&suites);
                    jobs.push(Job { experiment, suites, point, seed, hash, known });
                }
            }
        }
        Ok(Self { paper, plan, claims, experiments, points, jobs, cache })
    }

    /// The work that is to be done, in megabytes carried.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.jobs.iter().filter(|job| job.known.is_none()).map(|job| job.experiment.work).sum()
    }

    /// Does it, in parallel, and calls `on_done` with the work of each job that it has done; then decides the claims.
    ///
    /// # Errors
    /// A run or the cache failed, or a check does not fit what was measured.
    pub fn run(self, on_done: impl Fn(u64) + Sync) -> Result<Outcome<'a>, ReproduceError> {
        let Self { paper, plan, claims, experiments, points, mut jobs, cache } = self;
        // Cheap and dear jobs are spread evenly, so that the time left can be told from the work done.
        jobs.sort_by_key(|job| base::random::fnv1a(&job.hash.to_le_bytes()));
        let measured = jobs
            .into_par_iter()
            .map(|job| {
                let measurements = match job.known {
                    Some(known) => known,
                    None => {
                        let new = (job.experiment.measure)(&job.suites, job.seed)?;
                        cache.store(job.hash, &new)?;
                        on_done(job.experiment.work);
                        new
                    }
                };
                Ok((job.point, job.seed, measurements))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let mut runs = vec![vec![Measurements::new(); plan.seeds as usize]; points.len()];
        for (point, seed, measurements) in measured {
            runs[point][(seed - FIRST_SEED) as usize].extend(measurements);
        }
        let judged = claims.into_iter().map(|claim| judge(claim, &runs)).collect::<Result<_, _>>()?;
        let experiments = experiments.into_iter().map(|experiment| experiment.name).collect();
        let mut cells = paper.cells(&points[0], &runs[0])?;
        cells.retain(|cell| cell.ours.is_some());
        Ok(Outcome { paper, plan, points, experiments, runs, judged, cells })
    }
}

/// Decides a claim at every point.
fn judge(claim: Claim, runs: &[Vec<Measurements>]) -> Result<Judged, ReproduceError> {
    let at = runs.iter().map(|seeds| claim.check.decide_over(seeds)).collect::<Result<Vec<_>, _>>();
    let at = at.map_err(|error| ReproduceError::Claim { id: claim.id.clone(), error })?;
    let mut grid = Tally::default();
    at.iter().for_each(|decided| grid.add(decided.decision.verdict));
    Ok(Judged { claim, at, grid })
}
