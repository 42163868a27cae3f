//! A paper whose claims are decided by the expressions of its claims file, over a grid of what it leaves unsaid.
//!
//! Every [`Experiment`] runs at every [`Point`] of the grid with every seed; a claim is decided at the paper's default
//! point, the first, and at every other one, so that a report can tell where it holds.

pub(super) mod matrix;

use core::fmt::Debug;
use std::io;
use std::sync::Arc;

use base::config::ConfigError;

use super::cache::{self, Cache};
use super::job::Job;
use super::{Cell, FIRST_SEED, Judged, Listing, Outcome, Plan, ReproduceError, Ruling};
use crate::claims::{Claim, Measurements, Replicated, Tally};
use crate::report::Figure;
use crate::scenario::{Override, Suite};

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

impl Experiment {
    pub(super) const fn listing(&self) -> Listing {
        Listing { figures: self.figures, claims: self.claims }
    }
}

/// A paper reproduced so.
pub trait Grid: Debug + Sync {
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
    fn figures(&self, outcome: &Outcome<'_>, surveyed: &Surveyed) -> io::Result<Vec<Figure>>;
}

/// What was measured over a grid.
#[derive(Debug)]
pub struct Surveyed {
    /// The grid, the default point first.
    pub points: Vec<Point>,
    /// Replications at every point.
    pub seeds: u32,
    /// For each point, what each seed measured.
    pub runs: Vec<Vec<Measurements>>,
    /// For each claim, in the order of the rulings, what was decided at each point.
    pub decided: Vec<Vec<Replicated>>,
}

/// Whose a run is: the point and the seed's number.
pub(super) type Key = (usize, u32);

/// Replications at every point, unless told.
const SEEDS: u32 = 5;
/// The same if there is little time.
const QUICK_SEEDS: u32 = 3;

fn seeds(plan: &Plan) -> u32 {
    plan.seeds.unwrap_or(if plan.quick { QUICK_SEEDS } else { SEEDS })
}

/// Every run of these experiments over `points`.
pub(super) fn jobs(
    experiments: &[&'static Experiment],
    points: &[Point],
    plan: &Plan,
    cache: &Cache,
) -> Result<Vec<Job<Key>>, ReproduceError> {
    let mut jobs = Vec::new();
    for experiment in experiments {
        for (place, point) in points.iter().enumerate() {
            let suites = Arc::new((experiment.scenarios)(point)?);
            let schemes: Vec<_> = suites.iter().flat_map(|suite| suite.schemes.clone()).collect();
            for number in 0..seeds(plan) {
                let seed = FIRST_SEED + u64::from(number);
                let hash = cache::hash(&plan.build, experiment.name, "", &schemes, seed)?;
                let (measure, suites) = (experiment.measure, Arc::clone(&suites));
                let key = (place, number);
                jobs.push(Job::new(key, hash, experiment.work, cache, move || measure(&suites, seed)));
            }
        }
    }
    Ok(jobs)
}

/// Decides the claims from what the runs measured.
pub(super) fn judge(
    claims: Vec<Claim>,
    points: Vec<Point>,
    plan: &Plan,
    measured: Vec<(Key, Measurements)>,
) -> Result<(Vec<Judged>, Surveyed), ReproduceError> {
    let seeds = seeds(plan);
    let mut runs = vec![vec![Measurements::new(); seeds as usize]; points.len()];
    for ((point, number), measurements) in measured {
        runs[point][number as usize].extend(measurements);
    }
    let mut judged = Vec::new();
    let mut decided = Vec::new();
    for claim in claims {
        let unsound = |error| ReproduceError::Claim { id: claim.id.clone(), error };
        let at = runs.iter().map(|seeds| claim.check.decide_over(seeds)).collect::<Result<Vec<_>, _>>();
        let at = at.map_err(unsound)?;
        let mut grid = Tally::default();
        at.iter().for_each(|decided| grid.add(decided.decision.verdict));
        let ruling = Ruling::from(&at[0].decision);
        judged.push(Judged { claim, ruling, seeds: Some(at[0].seeds), grid: Some(grid) });
        decided.push(at);
    }
    Ok((judged, Surveyed { points, seeds, runs, decided }))
}
