//! A paper whose claims are decided by code, from samples of many settings: sweeps over channels and parameters.
//!
//! An [`Experiment`] runs [`Case`]s, each with seeds of its own; the samples of all cases decide the claims
//! together. Cases with the same channel and seed meet the same realisation, so their samples are compared in pairs.

use core::fmt::Debug;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use base::config::ConfigError;

use super::cache::{self, Cache};
use super::job::Job;
use super::{Cell, FIRST_SEED, Listing, Plan, Ruling};
use crate::claims::Measurements;
use crate::report::Figure;
use crate::scenario::Scenario;
use crate::statistics::{Interval, Spread};

/// How much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Under a minute for the whole paper on two cores: few seeds, short runs, coarse sweeps.
    Quick,
    /// What the claims ask for.
    Full,
}

impl Effort {
    /// The first if there is little time, else the second.
    #[must_use]
    pub fn choose<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// One setting of an experiment.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called: its place in the sweep, unique in its experiment.
    pub name: String,
    /// What to run, by scheme; none for a calculation.
    pub scenarios: Vec<(String, Scenario)>,
    /// Parameters of the measurement that no scenario holds.
    pub numbers: BTreeMap<&'static str, f64>,
    /// Replications; number k runs with seed `1 + k`.
    pub seeds: u32,
    /// About how long one replication takes, in milliseconds.
    pub work: u64,
}

impl Case {
    /// A case of one scenario. Its work is guessed from the time that it simulates.
    #[must_use]
    pub fn new(name: impl Into<String>, scenario: Scenario, seeds: u32) -> Self {
        let work = work_of(&scenario);
        let scenarios = vec![(scenario.name.clone(), scenario)];
        Self { name: name.into(), scenarios, numbers: BTreeMap::new(), seeds, work }
    }

    /// A case without a scenario.
    #[must_use]
    pub fn calculation(name: impl Into<String>, seeds: u32, work: u64) -> Self {
        Self { name: name.into(), scenarios: Vec::new(), numbers: BTreeMap::new(), seeds, work }
    }

    /// The same case with a parameter of the measurement.
    #[must_use]
    pub fn with(mut self, name: &'static str, number: f64) -> Self {
        self.numbers.insert(name, number);
        self
    }

    /// Its only scenario.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenarios[0].1
    }
}

/// Milliseconds of one core, roughly: a link that never stops sending costs some 0.3 ms for each second of it at 262144
/// bit/s, another one a tenth of that.
fn work_of(scenario: &Scenario) -> u64 {
    let seconds = scenario.duration.as_secs_f64();
    let per_second = |link: &crate::scenario::Link| {
        let busy = matches!(link.protocol, Some(link::Protocol::Cotmll(_)));
        let rate = link.channel.rate.as_bps() as f64 / 262_144.0;
        rate * if busy { 0.3 } else { 0.03 }
    };
    let work = seconds * scenario.link.values().map(per_second).sum::<f64>();
    work.max(1.0) as u64
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
    /// What it runs.
    pub cases: fn(Effort) -> Result<Vec<Case>, ConfigError>,
    /// Runs a case with a seed.
    pub measure: fn(&Case, u64) -> io::Result<Measurements>,
}

impl Experiment {
    pub(super) const fn listing(&self) -> Listing {
        Listing { figures: self.figures, claims: self.claims }
    }
}

/// A paper studied so.
pub trait Study: Debug + Sync {
    /// Its experiments.
    fn experiments(&self) -> Vec<&'static Experiment>;

    /// Where the study stands: what was chosen where the paper leaves a choice, in a line.
    fn setting(&self) -> &'static str;

    /// What became of the claim with this id.
    fn rule(&self, claim: &str, samples: &Samples) -> Ruling;

    /// The numbers of its figures.
    fn cells(&self, samples: &Samples) -> Vec<Cell>;

    /// The names of figures and tables that only choose experiments: nothing is drawn.
    fn undrawn(&self) -> &'static [&'static str];

    /// Its figures, drawn from our samples alone, for those experiments that ran.
    fn figures(&self, samples: &Samples) -> Vec<Figure>;
}

/// What all seeds of all cases measured.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// By experiment and case.
    runs: BTreeMap<(&'static str, String), Vec<Measurements>>,
    effort: Option<Effort>,
}

impl Samples {
    /// How much was done.
    #[must_use]
    pub fn effort(&self) -> Effort {
        self.effort.unwrap_or(Effort::Full)
    }

    /// Whether this experiment ran.
    #[must_use]
    pub fn has(&self, experiment: &str) -> bool {
        self.runs.keys().any(|(name, _)| *name == experiment)
    }

    /// What the seeds of a case measured, in their order; nothing if it did not run.
    #[must_use]
    pub fn runs(&self, experiment: &'static str, case: &str) -> &[Measurements] {
        self.runs.get(&(experiment, case.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The first seed's run of a case, which figures of a single realisation draw; none if it did not run.
    #[must_use]
    pub fn drawn(&self, experiment: &'static str, case: &str) -> Option<&Measurements> {
        self.runs(experiment, case).first()
    }

    /// A quantity of a case, seed by seed; none where it was not measured.
    #[must_use]
    pub fn by_seed(&self, experiment: &'static str, case: &str, quantity: &str) -> Vec<Option<f64>> {
        self.runs(experiment, case).iter().map(|run| run.quantity(quantity)).collect()
    }

    /// The values of a quantity of a case over those seeds that have it.
    #[must_use]
    pub fn values(&self, experiment: &'static str, case: &str, quantity: &str) -> Vec<f64> {
        self.by_seed(experiment, case, quantity).into_iter().flatten().collect()
    }

    /// The mean of a quantity over seeds.
    #[must_use]
    pub fn mean(&self, experiment: &'static str, case: &str, quantity: &str) -> Option<f64> {
        Spread::of(self.values(experiment, case, quantity)).map(|spread| spread.mean)
    }

    /// The mean of a quantity over seeds with its 95 % interval.
    #[must_use]
    pub fn interval(&self, experiment: &'static str, case: &str, quantity: &str) -> Option<Interval> {
        Interval::of(self.values(experiment, case, quantity), 0.95)
    }

    /// The pairs of a quantity in two cases of an experiment, seed by seed, where both have it.
    #[must_use]
    pub fn pairs(&self, experiment: &'static str, cases: [&str; 2], quantity: &str) -> Vec<(f64, f64)> {
        let [a, b] = cases.map(|case| self.by_seed(experiment, case, quantity));
        a.into_iter().zip(b).filter_map(|(a, b)| Some((a?, b?))).collect()
    }

    /// The mean difference, first less second, over the pairs of a quantity.
    #[must_use]
    pub fn difference(&self, experiment: &'static str, cases: [&str; 2], quantity: &str) -> Option<Interval> {
        Interval::of(self.pairs(experiment, cases, quantity).into_iter().map(|(a, b)| a - b), 0.95)
    }

    /// The mean ratio, first over second, over the pairs of a quantity.
    #[must_use]
    pub fn ratio(&self, experiment: &'static str, cases: [&str; 2], quantity: &str) -> Option<Interval> {
        let pairs = self.pairs(experiment, cases, quantity).into_iter();
        Interval::of(pairs.filter(|(_, b)| *b != 0.0).map(|(a, b)| a / b), 0.95)
    }
}

/// Whose a run is: the experiment, the case and the seed's number.
pub(super) type Key = (&'static str, String, u32);

/// Every run of these experiments.
pub(super) fn jobs(
    experiments: &[&Experiment],
    plan: &Plan,
    cache: &Cache,
) -> Result<Vec<Job<Key>>, super::ReproduceError> {
    let mut jobs = Vec::new();
    for experiment in experiments {
        for case in (experiment.cases)(plan.effort())? {
            let case = Arc::new(case);
            for number in 0..plan.seeds.unwrap_or(case.seeds) {
                let seed = FIRST_SEED + u64::from(number);
                let parameters = format!("{} {:?}", case.name, case.numbers);
                let hash = cache::hash(&plan.build, experiment.name, &parameters, &case.scenarios, seed)?;
                let (measure, work) = (experiment.measure, case.work);
                let key = (experiment.name, case.name.clone(), number);
                let case = Arc::clone(&case);
                jobs.push(Job::new(key, hash, work, cache, move || measure(&case, seed)));
            }
        }
    }
    Ok(jobs)
}

/// What the runs measured, seeds in their order.
pub(super) fn collect(mut measured: Vec<(Key, Measurements)>, effort: Effort) -> Samples {
    measured.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut samples = Samples { runs: BTreeMap::new(), effort: Some(effort) };
    for ((experiment, case, _), measurements) in measured {
        samples.runs.entry((experiment, case)).or_default().push(measurements);
    }
    samples
}
