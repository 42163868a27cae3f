//! What runs came to, and what they are recorded for afterwards: a run is repeated then, and comes out the same.

use std::path::PathBuf;

use lab::observe::events::What;
use lab::observe::series::SERIES;
use lab::report::{self, COLUMN, Summary};
use lab::run::{self, Run, Watch};
use pyo3::prelude::*;

use crate::errors;
use crate::suite::Suite;
use crate::table::Table;
use crate::work::{self, Manner};

/// The runs of a scenario.
#[pyclass(frozen, module = "longhaul._native")]
#[derive(Debug)]
pub(crate) struct Runs {
    suite: Suite,
    runs: Vec<Run>,
}

impl Runs {
    pub(crate) fn new(suite: Suite, runs: Vec<Run>) -> Self {
        let seeds = (runs.len() / suite.suite.schemes.len()) as u32;
        Self { suite: Suite { suite: suite.suite.with_seeds(seeds), ..suite }, runs }
    }

    /// Repeats a run, watched; it has to come out as before.
    fn repeat(
        &self,
        py: Python<'_>,
        (scheme, seed): (Option<&str>, Option<u64>),
        calls_python: bool,
        watch: &Watch,
    ) -> PyResult<Run> {
        let (scheme, scenario) = self.suite.scheme(scheme)?;
        let seed = seed.unwrap_or(scenario.seed);
        let before =
            self.runs.iter().find(|run| run.scheme == *scheme && run.seed == seed).ok_or_else(|| {
                let (first, last) = (scenario.seed, scenario.seed + u64::from(scenario.seeds) - 1);
                errors::wrong(format!("seed {seed} has not run; allowed are {first} to {last}"))
            })?;
        let manner = Manner { jobs: Some(1), calls_python, tell: None };
        work::wait_for(py, &manner, |_| {
            run::again(before, scenario, watch).map_err(|error| errors::io(&error))
        })
    }
}

#[pymethods]
impl Runs {
    #[getter]
    fn trace_hash(&self) -> String {
        run::trace_hash(&self.runs)
    }

    /// A row for each run and flow.
    fn table(&self) -> PyResult<Table> {
        let table = report::by_flow(&self.suite.suite, &self.runs).map_err(|error| errors::io(&error))?;
        Table::new(table)
    }

    /// What `longhaul run --json` prints.
    fn to_json(&self) -> String {
        Summary::new(&self.suite.suite, &self.runs, None).to_json()
    }

    /// What `longhaul run` prints.
    fn text(&self) -> String {
        report::table(&self.suite.suite, &self.runs).to_string()
    }

    /// Writes what `longhaul run --out` writes; the page's path.
    fn write(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        command: &str,
        calls_python: bool,
    ) -> PyResult<PathBuf> {
        let manner = Manner { jobs: None, calls_python, tell: None };
        work::wait_for(py, &manner, |_| {
            let (suite, mut runs) = (&self.suite.suite, self.runs.clone());
            let page = run::keep_for_plots(suite, &mut runs)
                .and_then(|()| report::write(suite, &runs, command, &directory, COLUMN));
            page.map_err(|error| errors::io(&error))
        })
    }

    fn series(
        &self,
        py: Python<'_>,
        name: &str,
        flow: Option<&str>,
        scheme: Option<&str>,
        seed: Option<u64>,
        calls_python: bool,
    ) -> PyResult<Table> {
        let series = SERIES.iter().find(|series| series.name == name).ok_or_else(|| {
            let known: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
            errors::wrong(format!("no series \"{name}\"; there are {}", known.join(", ")))
        })?;
        let traffic = &self.suite.scheme(scheme)?.1.traffic;
        if let Some(flow) = flow.filter(|&flow| !traffic.contains_key(flow)) {
            let known: Vec<&str> = traffic.keys().map(String::as_str).collect();
            return Err(errors::wrong(format!("no flow \"{flow}\"; there are {}", known.join(", "))));
        }
        let mut watch = Watch::default();
        (series.watch)(&mut watch);
        let run = self.repeat(py, (scheme, seed), calls_python, &watch)?;
        let table = (series.read)(&run);
        Table::new(match flow {
            Some(flow) => table.only("flow", |name| name == flow),
            None => table,
        })
    }

    fn events(
        &self,
        py: Python<'_>,
        kinds: Option<Vec<String>>,
        place: Option<&str>,
        scheme: Option<&str>,
        seed: Option<u64>,
        calls_python: bool,
    ) -> PyResult<Table> {
        let is_unknown = |kind: &&String| !What::KINDS.contains(&kind.as_str());
        if let Some(kind) = kinds.iter().flatten().find(is_unknown) {
            let known = What::KINDS.join(", ");
            return Err(errors::wrong(format!("no events of the kind \"{kind}\"; there are {known}")));
        }
        let (_, scenario) = self.suite.scheme(scheme)?;
        if let Some(place) = place
            && !scenario.link.contains_key(place)
            && !scenario.node_names().contains(place)
        {
            return Err(errors::wrong(scenario.no_such_place(place)));
        }
        let watch = Watch { events: true, ..Watch::default() };
        let run = self.repeat(py, (scheme, seed), calls_python, &watch)?;
        if run.log.unkept() > 0 {
            let kept = run.log.events().len();
            return Err(errors::LonghaulError::new_err(format!(
                "{} events are too many to keep, which are {kept}; `log` writes all of them to a file",
                run.log.unkept() + kept as u64
            )));
        }
        let is_at = |at: &str| {
            place.is_none_or(|place| {
                at == place || at.strip_prefix(place).is_some_and(|rest| matches!(rest, "/down" | "/up"))
            })
        };
        let is_asked = |kind: &str| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|it| it == kind));
        let table = py.detach(|| run.log.table(|at, kind| is_at(at) && is_asked(kind)).filled(3));
        Table::new(table)
    }

    fn capture(
        &self,
        py: Python<'_>,
        path: PathBuf,
        at: String,
        scheme: Option<&str>,
        seed: Option<u64>,
        calls_python: bool,
    ) -> PyResult<()> {
        let watch = Watch { capture: Some((at, path)), ..Watch::default() };
        self.repeat(py, (scheme, seed), calls_python, &watch).map(|_| ())
    }

    fn log(
        &self,
        py: Python<'_>,
        path: PathBuf,
        scheme: Option<&str>,
        seed: Option<u64>,
        calls_python: bool,
    ) -> PyResult<()> {
        let watch = Watch { log: Some(path), ..Watch::default() };
        self.repeat(py, (scheme, seed), calls_python, &watch).map(|_| ())
    }
}
