//! Scenarios: read, changed, run.

use std::path::PathBuf;

use lab::bound;
use lab::run::{self, Recordings};
use lab::scenario::{Override, Scenario, Suite as Suites, built_in};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::runs::Runs;
use crate::work::{self, Manner};
use crate::{errors, values};

/// A scenario file with changes laid over it.
#[pyclass(frozen, module = "longhaul._native")]
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    /// What complaints call the file.
    pub(crate) path: PathBuf,
    pub(crate) suite: Suites,
    pub(crate) text: String,
    /// What the last changes do not change.
    pub(crate) notices: Vec<String>,
}

impl Suite {
    pub(crate) fn read(path: PathBuf, text: String, overrides: &[Override]) -> PyResult<Self> {
        let directory = path.parent().map(std::path::Path::to_owned).unwrap_or_default();
        let file = path.display().to_string();
        let suite = Suites::parse(&file, &text, &directory, overrides);
        let suite = suite.map_err(|error| errors::config(&error))?;
        Ok(Self { path, suite, text, notices: Vec::new() })
    }

    /// The scenario of a scheme; of the first if none is named.
    pub(crate) fn scheme(&self, name: Option<&str>) -> PyResult<&(String, Scenario)> {
        let schemes = &self.suite.schemes;
        let Some(name) = name else { return Ok(&schemes[0]) };
        schemes.iter().find(|(known, _)| known == name).ok_or_else(|| {
            let known: Vec<&str> = schemes.iter().map(|(name, _)| name.as_str()).collect();
            errors::wrong(format!("no scheme \"{name}\"; there are {}", known.join(", ")))
        })
    }

    /// The file as it stands with the changes, for a study over it.
    pub(crate) fn toml(&self) -> PyResult<String> {
        toml::to_string(&self.suite.table).map_err(errors::wrong)
    }
}

/// Changes, as pairs of a dotted key and a value.
pub(crate) fn overrides(set: &[(String, Bound<'_, PyAny>)]) -> PyResult<Vec<Override>> {
    let one = |(key, value): &(String, Bound<'_, PyAny>)| {
        let change = Override::at(key, values::toml(value)?);
        change
            .ok_or_else(|| errors::wrong(format!("\"{key}\" is no key, as in link.satellite.channel.delay")))
    };
    set.iter().map(one).collect()
}

#[pymethods]
impl Suite {
    /// Reads a scenario file, or one that is built in.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let text = built_in::read(&path).map_err(|error| errors::config(&error))?;
        Self::read(path, text, &[])
    }

    /// Reads a scenario from what its file would say; `path` says where it would stand.
    #[staticmethod]
    fn parse(path: PathBuf, text: String) -> PyResult<Self> {
        Self::read(path, text, &[])
    }

    /// Makes a scenario of a dict.
    #[staticmethod]
    fn build(path: PathBuf, scenario: &Bound<'_, PyDict>) -> PyResult<Self> {
        let text = toml::to_string(&values::table(scenario)?).map_err(errors::wrong)?;
        Self::read(path, text, &[])
    }

    /// With changes laid over it.
    fn with_set(&self, set: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let changes = overrides(&set)?;
        // As written first, so that a complaint is about the change.
        let changed = Self::read(self.path.clone(), self.text.clone(), &changes)?;
        let notices = changed.suite.ineffective.iter().map(ToString::to_string).collect();
        Ok(Self { notices, ..Self::read(self.path.clone(), changed.toml()?, &[])? })
    }

    /// What the last changes do not change, as the command line says it.
    #[getter]
    fn notices(&self) -> Vec<String> {
        self.notices.clone()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.suite.scenario.name
    }

    #[getter]
    fn schemes(&self) -> Vec<&str> {
        self.suite.schemes.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[getter]
    const fn seed(&self) -> u64 {
        self.suite.scenario.seed
    }

    #[getter]
    const fn seeds(&self) -> u32 {
        self.suite.scenario.seeds
    }

    /// What is odd about it, as the command line says it.
    fn warnings(&self) -> Vec<String> {
        let edges = self.suite.edges().into_iter();
        edges.map(|(link, scheme, edge)| format!("link {link} of {scheme}: {edge}")).collect()
    }

    fn to_toml(&self) -> PyResult<String> {
        self.toml()
    }

    /// A scheme's scenario with every default spelled out.
    fn resolved(&self, scheme: Option<&str>) -> PyResult<String> {
        toml::to_string(&self.scheme(scheme)?.1).map_err(errors::wrong)
    }

    /// What the channel would let through with this seed, in bits per second.
    fn bound(&self, scheme: Option<&str>, seed: u64, completed: bool) -> PyResult<f64> {
        Ok(bound::goodput_bps(&self.scheme(scheme)?.1, seed, completed))
    }

    /// Runs every scheme with every seed.
    fn run(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        calls_python: bool,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Runs> {
        let suite = self.suite.clone();
        let manner = Manner { jobs, calls_python, tell };
        let runs = work::wait_for(py, &manner, |monitor| {
            monitor.add(suite.schemes.len() as u64 * u64::from(suite.scenario.seeds));
            let all = run::run_all(&suite, &Recordings::default(), |_| monitor.advance(1));
            all.map_err(|error| errors::io(&error))
        })?;
        Ok(Runs::new(self.clone(), runs))
    }
}
