//! Running a study: every case with every seed, once, in parallel, and not again if it was kept.

use core::ops::{ControlFlow, Range};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

use super::axis::Axis;
use super::experiment::Case;
use super::identity::{identity, key, stamps};
use super::looks::Growth;
use super::probe::Trial;
use super::results::Place;
use super::store::Store;
use super::task::Task;
use super::{Judgement, Results, Study, StudyError, judge};
use crate::claims::{Measurements, Value};

/// How much of a study to run, and how.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Replications of everything that is random; what each experiment names unless given.
    pub seeds: Option<u32>,
    /// The seed of the first; the study's unless given. The next has the next seed.
    pub seed: Option<u64>,
    /// Less of everything: as the study's `quick` says.
    pub quick: bool,
    /// Only what this figure, table or experiment needs.
    pub figure: Option<String>,
    /// Only the default reading.
    pub default_reading_only: bool,
    /// Only these values of the axes with these names.
    pub axes: Vec<(String, Vec<Value>)>,
    /// Where measurements are kept between runs.
    pub store: Option<PathBuf>,
    /// Where other runs have kept theirs.
    pub merge: Vec<PathBuf>,
    /// This part of so many, from 1, if several machines share the work.
    pub shard: Option<(u32, u32)>,
}

impl Plan {
    /// Whether all of the study runs with as many seeds as it names.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.quick
            && self.seeds.is_none()
            && self.seed.is_none()
            && self.axes.is_empty()
            && self.shard.is_none()
    }

    /// Whether all of the study runs, or all of its quick version.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        Self { quick: false, ..self.clone() }.is_full() && self.figure.is_none() && !self.default_reading_only
    }

    /// How often the claims are looked at: once where seeds were chosen, or where others have theirs.
    pub(super) const fn looks(&self, study: &Study) -> u32 {
        if self.seeds.is_some() || self.quick || self.shard.is_some() { 1 } else { study.looks }
    }

    /// The places on an axis that run under the default reading.
    pub(super) fn places(&self, axis: &Axis) -> Vec<usize> {
        self.places_or_fewer(axis, false)
    }

    /// The places on an axis that run: those that the plan names, otherwise all of them, or those of a quick run if
    /// the plan is quick or `fewer` is set.
    pub(super) fn places_or_fewer(&self, axis: &Axis, fewer: bool) -> Vec<usize> {
        match self.axes.iter().find(|(name, _)| *name == axis.name) {
            Some((_, values)) => values.iter().filter_map(|value| axis.place(value)).collect(),
            None => axis.places(self.quick || fewer),
        }
    }
}

/// A study's runs, ready to go.
#[derive(Debug)]
pub struct Sweep<'a> {
    study: &'a Study,
    plan: Plan,
    /// The seed of each experiment's first replication.
    seed: u64,
    /// The readings, the default one first.
    points: Vec<Vec<usize>>,
    experiments: Vec<usize>,
    stores: BTreeMap<usize, Store>,
    /// Each experiment's stamp, by which results that are kept are known to be this program's; of none where nothing is kept.
    stamps: BTreeMap<usize, u64>,
    jobs: Vec<Job>,
}

/// One replication of one case, for all places where it counts.
#[derive(Debug)]
pub(super) struct Job {
    key: u64,
    experiment: usize,
    pub(super) case: Arc<Case>,
    pub(super) number: u32,
    pub(super) places: Vec<Place>,
}

/// What happens to the work of a run, in milliseconds of one core, roughly.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// So much is done.
    Done(u64),
    /// So much has been added.
    Added(u64),
}

/// What a study's runs came to.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The study.
    pub study: &'a Study,
    /// How it was run.
    pub plan: Plan,
    /// The readings that ran, the default one first.
    pub points: Vec<Vec<usize>>,
    /// The places of the experiments that ran.
    pub experiments: Vec<usize>,
    /// What they measured.
    pub results: Results,
    /// Every claim that they decide.
    pub judgement: Judgement,
    /// What answered, by experiment, where it had to be known.
    stamps: BTreeMap<usize, u64>,
}

impl<'a> Sweep<'a> {
    /// Spells out what `plan` asks for, and looks up what has been measured before.
    ///
    /// # Errors
    /// There is no such figure or axis value, a case is wrong, or the store cannot be opened.
    pub fn prepare(study: &'a Study, plan: Plan) -> Result<Self, StudyError> {
        let wrong = |message: String| StudyError::Expression { place: study.name.clone(), message };
        let experiments = Self::chosen(study, &plan)?;
        let points = study.reading_points(&plan).map_err(wrong)?;
        let cases: Vec<_> = experiments
            .par_iter()
            .map(|&place| Ok((place, cases_of(study, place, &plan, &points)?)))
            .collect::<Result<_, String>>()
            .map_err(wrong)?;
        let stamps = match plan.store {
            Some(_) => stamps(study, experiments.clone())?,
            None => BTreeMap::new(),
        };
        let jobs = Vec::new();
        let seed = plan.seed.unwrap_or(study.seed);
        let mut sweep =
            Self { study, plan, seed, points, experiments, stores: BTreeMap::new(), stamps, jobs };
        let open = |&place: &usize| Ok((place, sweep.open(place)?));
        sweep.stores = sweep.experiments.iter().map(open).collect::<io::Result<_>>()?;
        for (experiment, cases) in cases {
            sweep.add(experiment, cases);
        }
        // Cheap and dear jobs are spread evenly, so that the time left can be told from the work done.
        sweep.jobs.sort_by_key(|job| base::random::fnv1a(&job.key.to_le_bytes()));
        Ok(sweep)
    }

    /// Whether the study has what `plan` asks for; nothing is read or written.
    ///
    /// # Errors
    /// A figure or an axis's value that the study lacks, with those that it has.
    pub fn check(study: &Study, plan: &Plan) -> Result<(), StudyError> {
        Self::chosen(study, plan).map(|_| ())
    }

    /// The experiments that `plan` asks for.
    fn chosen(study: &Study, plan: &Plan) -> Result<Vec<usize>, StudyError> {
        let wrong = |message: String| StudyError::Expression { place: study.name.clone(), message };
        check_axes(study, plan).map_err(wrong)?;
        chosen(study, plan)
    }

    fn open(&self, place: usize) -> io::Result<Store> {
        let name = &self.study.experiments[place].name;
        match &self.plan.store {
            None => Ok(Store::memory()),
            Some(directory) => Store::open(directory, &self.plan.merge, name, self.stamps[&place]),
        }
    }

    /// Adds the jobs of an experiment: the same case and seed is one job, at however many readings it counts.
    fn add(&mut self, experiment: usize, cases: Vec<(Vec<usize>, Case)>) {
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut default_seeds: HashMap<u64, u32> = HashMap::new();
        for (reading, mut case) in cases {
            let identity = identity(&self.study.experiments[experiment], &case);
            if reading == self.points[0] {
                default_seeds.insert(identity, case.seeds);
            } else if let Some(&seeds) = default_seeds.get(&identity) {
                // What the default reading runs anyway counts here in full.
                case.seeds = seeds;
            } else if let Some(most) = self.study.readings_form.seeds {
                case.seeds = case.seeds.min(most);
            }
            let case = Arc::new(case);
            for number in 0..case.seeds {
                let key = key(identity, self.seed, number);
                let coordinates = case.coordinates.clone();
                let place = Place { reading: reading.clone(), experiment, coordinates };
                match known.get(&key) {
                    Some(&job) => self.jobs[job].places.push(place),
                    None => {
                        known.insert(key, self.jobs.len());
                        let case = Arc::clone(&case);
                        self.jobs.push(Job { key, experiment, case, number, places: vec![place] });
                    }
                }
            }
        }
    }

    fn is_ours(&self, job: &Job) -> bool {
        self.plan.shard.is_none_or(|(part, of)| job.key % u64::from(of) == u64::from(part - 1))
    }

    fn is_kept(&self, job: &Job) -> bool {
        self.stores[&job.experiment].get(job.key).is_some()
    }

    /// The work that is left, in milliseconds of one core, roughly.
    #[must_use]
    pub fn work(&self) -> u64 {
        let left = self.jobs.iter().filter(|job| self.is_ours(job) && !self.is_kept(job));
        left.map(|job| job.case.work).sum()
    }

    /// What is left, for other processes to measure.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        let left = self.jobs.iter().filter(|job| self.is_ours(job) && !self.is_kept(job));
        let task = |job: &Job| {
            let Place { reading, experiment, coordinates } = job.places[0].clone();
            Task { reading, experiment, coordinates, number: job.number, work: job.case.work }
        };
        left.map(task).collect()
    }

    /// Does it, in parallel; then decides the claims, and looks again with more seeds for those that are undecided, where the plan allows it.
    /// Tells `tell` of work that is done, and that has been added.
    ///
    /// # Errors
    /// A run or the store failed, or a claim does not fit what was measured.
    pub fn run(self, tell: impl Fn(Progress) + Sync) -> Result<Outcome<'a>, StudyError> {
        self.run_while(|step| {
            tell(step);
            ControlFlow::Continue(())
        })
    }

    /// Does the runs in parallel and decides the claims, as [`Sweep::run`] does, until `tell` breaks it off: then
    /// runs that have begun end, and what they measure is kept.
    ///
    /// # Errors
    /// As [`Sweep::run`]; [`io::ErrorKind::Interrupted`] if it was broken off.
    pub fn run_while(
        mut self,
        tell: impl Fn(Progress) -> ControlFlow<()> + Sync,
    ) -> Result<Outcome<'a>, StudyError> {
        let mut growth =
            Growth::new(self.plan.looks(self.study), self.jobs.iter().map(|job| job.case.work).sum());
        let mut results = Results::from_seed(self.seed);
        let mut done = 0;
        let judgement = loop {
            self.measure_from(done, &mut results, &tell)?;
            done = self.jobs.len();
            let Self { study, plan, points, experiments, .. } = &self;
            let level = growth.level();
            let judged = |points| judge::judge(study, plan, points, experiments, (&results, level));
            // Only the default reading asks for more.
            let more = growth.next(&self.jobs, &judged(&points[..1])?);
            if more.is_empty() {
                break judged(points)?;
            }
            let before = self.work();
            more.into_iter().for_each(|(job, numbers)| self.add_seeds(job, numbers));
            going_on(tell(Progress::Added(self.work() - before)))?;
        };
        let Self { study, plan, points, experiments, stamps, .. } = self;
        Ok(Outcome { study, plan, points, experiments, results, judgement, stamps })
    }

    /// Measures the jobs from one on, and puts what they measured where it counts.
    fn measure_from(
        &self,
        first: usize,
        results: &mut Results,
        tell: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> io::Result<()> {
        let measured = |job: &Job| -> io::Result<Option<Arc<Measurements>>> {
            let store = &self.stores[&job.experiment];
            if let Some(known) = store.get(job.key) {
                return Ok(Some(Arc::new(known.clone())));
            }
            if !self.is_ours(job) {
                return Ok(None);
            }
            let new = self.measure(job)?;
            store.keep(job.key, &new)?;
            going_on(tell(Progress::Done(job.case.work)))?;
            Ok(Some(Arc::new(new)))
        };
        let jobs = &self.jobs[first..];
        let records: Vec<_> = jobs.par_iter().with_max_len(1).map(measured).collect::<io::Result<_>>()?;
        for (job, record) in jobs.iter().zip(records) {
            let Some(record) = record else { continue };
            for place in &job.places {
                results.set(place, job.case.exact, job.number, Arc::clone(&record));
            }
        }
        Ok(())
    }

    /// Adds replications of what a job is the first of.
    fn add_seeds(&mut self, first: usize, numbers: Range<u32>) {
        let Job { experiment, ref case, ref places, .. } = self.jobs[first];
        let (case, places) = (Arc::clone(case), places.clone());
        let identity = identity(&self.study.experiments[experiment], &case);
        self.jobs.extend(numbers.map(|number| Job {
            key: key(identity, self.seed, number),
            experiment,
            case: Arc::clone(&case),
            number,
            places: places.clone(),
        }));
    }

    fn measure(&self, job: &Job) -> io::Result<Measurements> {
        let experiment = &self.study.experiments[job.experiment];
        let trial = Trial {
            scenarios: &job.case.scenarios,
            numbers: &job.case.numbers,
            seed: self.seed.wrapping_add(job.number.into()),
            is_first: job.number == 0,
        };
        trial.measure(&experiment.probes).map_err(|error| experiment.failed(&job.case, &error))
    }
}

impl Outcome<'_> {
    /// The hash of what a full run asks and of what answers today: while it stays, so does what the run comes to.
    ///
    /// # Errors
    /// A case is wrong, or a run for an experiment's stamp failed.
    pub(super) fn identity(&self) -> Result<u64, StudyError> {
        let study = self.study;
        let full = Sweep::prepare(study, Plan::default())?;
        let mut asked: Vec<u64> = full.jobs.iter().map(|job| job.key).collect();
        asked.sort_unstable();
        let missing = (0..study.experiments.len()).filter(|place| !self.stamps.contains_key(place)).collect();
        let mut answers = stamps(study, missing)?;
        answers.extend(&self.stamps);
        let checks: Vec<_> =
            study.claims.iter().map(|claim| (&claim.id, &claim.check, &claim.paper_value)).collect();
        let shown = (&study.figures, &study.tables);
        let judging = (judge::VERSION, study.looks);
        let text = format!("{asked:?} {answers:?} {checks:?} {shown:?} {judging:?}");
        Ok(base::random::fnv1a(text.as_bytes()))
    }
}

fn going_on(flow: ControlFlow<()>) -> io::Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// Seeds of what a claim rests on, at least. Ours: with two, an interval is 13 times the standard error to either side.
const FEWEST_SEEDS: u32 = 3;

/// The cases of an experiment under each reading that changes it, the default one first.
fn cases_of(
    study: &Study,
    place: usize,
    plan: &Plan,
    points: &[Vec<usize>],
) -> Result<Vec<(Vec<usize>, Case)>, String> {
    let experiment = &study.experiments[place];
    let mut readings: Vec<Vec<usize>> = Vec::new();
    // Figures, tables and what is told beside a claim show the default reading alone.
    let decides = study.claims.is_empty() || study.asked.iter().any(|asked| asked.by_check.contains(&place));
    for point in if decides { points } else { &points[..1] } {
        let projected = experiment.projected(study, point);
        if !readings.contains(&projected) {
            readings.push(projected);
        }
    }
    let mut all = Vec::new();
    for reading in readings {
        let cases = experiment.cases(study, plan, &reading)?;
        let few = cases.iter().find(|case| !case.exact && case.seeds < FEWEST_SEEDS);
        if let Some(Case { seeds, .. }) = few
            && plan.looks(study) > 1
            && study.asked.iter().any(|asked| asked.by_check.contains(&place))
        {
            return Err(format!(
                "experiment \"{}\": seeds = {seeds}; claims rest on it: allowed are {FEWEST_SEEDS} or more, or exact = true",
                experiment.name
            ));
        }
        all.extend(cases.into_iter().map(|case| (reading.clone(), case)));
    }
    Ok(all)
}

/// The experiments that the plan's figure, table or experiment needs; all unless it names one.
fn chosen(study: &Study, plan: &Plan) -> Result<Vec<usize>, StudyError> {
    let all = (0..study.experiments.len()).filter(|&place| !study.experiments[place].is_skipped(plan));
    let Some(asked) = &plan.figure else { return Ok(all.collect()) };
    let of_figure = study.figures.iter().filter(|figure| figure.id == *asked).map(|figure| &figure.from);
    let of_table = study.tables.iter().filter(|table| table.id == *asked).map(|table| &table.from);
    let names: Vec<&String> = of_figure.chain(of_table).chain([asked]).collect();
    let chosen: Vec<usize> = (0..study.experiments.len())
        .filter(|&place| names.contains(&&study.experiments[place].name))
        .collect();
    if chosen.is_empty() {
        let known = study.figures.iter().map(|figure| &figure.id);
        let known = known.chain(study.tables.iter().map(|table| &table.id));
        let known = known.chain(study.experiments.iter().map(|e| &e.name));
        let mut known: Vec<String> = known.map(|name| format!("\"{name}\"")).collect();
        known.sort();
        known.dedup();
        let (study, asked) = (study.name.clone(), asked.clone());
        return Err(StudyError::Unknown { study, asked, known: known.join(", ") });
    }
    Ok(chosen)
}

/// Every axis that the plan names has to be one of the study's, with these values.
fn check_axes(study: &Study, plan: &Plan) -> Result<(), String> {
    for (name, values) in &plan.axes {
        let mut axes =
            study.experiments.iter().flat_map(|e| &e.axes).filter(|axis| axis.name == *name).peekable();
        if axes.peek().is_none() {
            let mut known: Vec<&str> =
                study.experiments.iter().flat_map(|e| &e.axes).map(|axis| axis.name.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(format!("no axis \"{name}\"; there are {}", known.join(", ")));
        }
        let axes: Vec<&Axis> = axes.collect();
        if let Some(value) = values.iter().find(|value| axes.iter().all(|axis| axis.place(value).is_none())) {
            return Err(axes[0].unknown(value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::probe::{Method, Probe};
    use crate::study::{Files, Study};

    const SEEDS: Probe = Probe {
        name: "seeds",
        version: 1,
        quantities: &["seed"],
        series: &[],
        method: Method::Trial(|trial, measured| {
            measured.set("seed", &[], trial.seed as f64);
            Ok(())
        }),
    };

    const EXPERIMENT: &str = "[[experiment]]\nname = 'e'\naxes.a = [1]\nseeds = 2\nprobes = ['seeds']\n";

    fn load(files: &'static [(&'static str, &'static str)]) -> Result<Study, base::config::ConfigError> {
        Study::load(Files::Embedded("study", files), "experiments.toml", &[&SEEDS])
    }

    fn rows(study: &Study, seed: Option<u64>) -> String {
        let plan = Plan { seed, ..Plan::default() };
        let outcome = Sweep::prepare(study, plan).unwrap().run(|_| {}).unwrap();
        let mut table = Vec::new();
        outcome.results.write_csv(study, &mut table).unwrap();
        String::from_utf8(table)
            .unwrap()
            .lines()
            .skip(1)
            .map(|row| row.replace("e,1,", "").trim_end_matches(',').to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn seeds_begin_where_the_plan_or_the_study_says() {
        let text = |head: &str| -> &'static str {
            Box::leak(format!("name = 't'\ntitle = ''\n{head}\n{EXPERIMENT}").into_boxed_str())
        };
        let study = |head: &str| load(Box::leak(Box::new([("experiments.toml", text(head))]))).unwrap();
        assert_eq!(rows(&study(""), None), "1,seed,1 2,seed,2");
        assert_eq!(rows(&study("seed = 7"), None), "7,seed,7 8,seed,8");
        assert_eq!(rows(&study("seed = 7"), Some(40)), "40,seed,40 41,seed,41");
    }

    /// Goal: nothing that was measured is lost, and nothing is measured again.
    #[test]
    fn a_sweep_that_was_broken_off_goes_on() {
        let text = "name = 't'\ntitle = ''\n[[experiment]]\nname = 'e'\naxes.a = [1, 2, 3, 4, 5, 6]\nseeds = 5\nprobes = ['seeds']\n";
        let files: &'static [(&'static str, &'static str)] =
            Box::leak(Box::new([("experiments.toml", text)]));
        let study = load(files).unwrap();
        let store = std::env::temp_dir().join(format!("longhaul-broken-off-{}", std::process::id()));
        let plan = || Plan { store: Some(store.clone()), ..Plan::default() };
        let done = std::sync::atomic::AtomicUsize::new(0);
        let count = |step| {
            if let Progress::Done(_) = step {
                done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            done.load(std::sync::atomic::Ordering::Relaxed)
        };
        let broken = Sweep::prepare(&study, plan()).unwrap().run_while(|step| match count(step) {
            ..7 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        let Err(StudyError::Io(error)) = broken else { panic!("it ran on") };
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        let before = count(Progress::Added(0));
        assert!((7..30).contains(&before), "{before} of 30");
        let outcome = Sweep::prepare(&study, plan()).unwrap().run(|step| _ = count(step)).unwrap();
        assert_eq!((count(Progress::Added(0)), outcome.results.cells.len()), (30, 6));
        std::fs::remove_dir_all(store).unwrap();
    }

    /// A study over a scenario file that names another seed would run other seeds than its reader thinks.
    #[test]
    fn a_base_with_a_seed_of_its_own_is_refused() {
        const BASE: &str = include_str!("../../../../scenarios/casoni/base.toml");
        let text = "name = 't'\ntitle = ''\n[[experiment]]\nname = 'e'\nbase = 'base'\nseeds = 2\nprobes = ['seeds']\n";
        let other: &'static str = Box::leak(BASE.replacen("seed = 1\n", "seed = 9\n", 1).into_boxed_str());
        let files = |base, head: &'static str| -> &'static [(&'static str, &'static str)] {
            Box::leak(Box::new([("experiments.toml", head), ("base.toml", base)]))
        };
        assert!(load(files(BASE, text)).is_ok());
        let complaint = load(files(other, text)).unwrap_err().to_string();
        assert!(
            complaint.contains("base.toml: seed = 9; a study's seeds are its own, from 1 on"),
            "{complaint}"
        );
        assert!(load(files(other, Box::leak(format!("seed = 9\n{text}").into_boxed_str()))).is_ok());
    }
}
