//! Studies, and sweeps, which are studies of a scenario.

use std::path::PathBuf;

use lab::claims::Value;
use lab::papers;
use lab::report::{COLUMN, destination};
use lab::study::{self, Plan, Progress, Study as Lab, Summary, Sweep, Task};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::suite::Suite;
use crate::table::Table;
use crate::work::{self, Manner};
use crate::{errors, values};

/// A study.
#[pyclass(frozen, module = "longhaul._native")]
#[derive(Debug)]
pub(crate) struct Study(Lab, Option<PathBuf>);

/// An axis's name, column, and values' labels.
type AxisOf<'a> = (&'a str, String, Vec<String>);

/// What a study's runs came to.
#[pyclass(frozen, module = "longhaul._native", get_all)]
#[derive(Debug)]
pub(crate) struct Outcome {
    /// A row for each measurement.
    measurements: Py<Table>,
    /// A row for each run and flow.
    runs: Py<Table>,
    /// What `--json` prints.
    json: String,
    /// What is printed otherwise.
    text: String,
}

/// How much of a study runs, as Python says it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    seeds: Option<u32>,
    seed: Option<u64>,
    quick: bool,
    figure: Option<String>,
    default_reading_only: bool,
    store: Option<PathBuf>,
}

impl Asked {
    fn plan(self, axes: &Bound<'_, PyDict>) -> PyResult<Plan> {
        let axis = |(name, list): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let values: PyResult<Vec<Value>> = list.try_iter()?.map(|item| value(&item?)).collect();
            Ok((name.extract()?, values?))
        };
        Ok(Plan {
            seeds: self.seeds,
            seed: self.seed,
            quick: self.quick,
            figure: self.figure,
            default_reading_only: self.default_reading_only,
            axes: axes.iter().map(axis).collect::<PyResult<_>>()?,
            store: self.store.map(|folder| folder.join("measured")),
            merge: Vec::new(),
            shard: None,
        })
    }
}

fn value(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    study::plain(&values::toml(item)?).map_err(errors::wrong)
}

#[pymethods]
impl Study {
    /// The study of a scenario over some of its keys.
    #[staticmethod]
    fn of_scenario(suite: &Suite, axes: &Bound<'_, PyDict>) -> PyResult<Self> {
        let axis = |(key, list): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let values: PyResult<Vec<toml::Value>> =
                list.try_iter()?.map(|item| values::toml(&item?)).collect();
            Ok((key.extract::<String>()?, values?))
        };
        let axes: Vec<_> = axes.iter().map(axis).collect::<PyResult<_>>()?;
        let study = Lab::of_text(&suite.path, &suite.toml()?, &axes);
        study.map(|study| Self(study, None)).map_err(|error| errors::config(&error))
    }

    /// A study by its file, its folder, or the short name of a paper.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        let study = papers::study_at(&path).map_err(|error| errors::config(&error))?;
        Ok(Self(study, papers::of(&path).and_then(papers::Paper::edited)))
    }

    /// A file of a paper's study, in the working directory, that says something else than the one that is read.
    #[getter]
    fn edited(&self) -> Option<PathBuf> {
        self.1.clone()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    /// Each experiment with its axes: their names, their columns in tables, and their values' labels.
    #[getter]
    fn experiments(&self) -> Vec<(&str, Vec<AxisOf<'_>>)> {
        let of_axis = |axis: &'_ study::Axis| axis.values.iter().map(study::AxisValue::label).collect();
        let all = self.0.experiments.iter().map(|experiment| {
            let axes = experiment.axes.iter();
            let axes = axes.map(|axis| (axis.name.as_str(), axis.column(), of_axis(axis)));
            (experiment.name.as_str(), axes.collect())
        });
        all.collect()
    }

    /// Runs it; writes what `longhaul sweep --out` writes to `out`, if that is given; another command's results there are
    /// replaced with `force` alone.
    fn run(
        &self,
        py: Python<'_>,
        asked: Asked,
        axes: &Bound<'_, PyDict>,
        out: Option<PathBuf>,
        command: &str,
        force: bool,
        jobs: Option<usize>,
        calls_python: bool,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Outcome> {
        let plan = asked.plan(axes)?;
        if let Some(out) = &out {
            Sweep::check(&self.0, &plan).map_err(errors::study)?;
            destination::claim(out, command, Some(command), force).map_err(errors::refused)?;
        }
        let manner = Manner { jobs, calls_python, tell };
        let (measurements, runs, json, text) = work::wait_for(py, &manner, |monitor| {
            let sweep = Sweep::prepare(&self.0, plan).map_err(errors::study)?;
            monitor.add(sweep.work());
            let outcome = sweep.run_while(|step| match step {
                Progress::Done(work) => monitor.advance(work),
                Progress::Added(work) => {
                    monitor.add(work);
                    monitor.advance(0)
                }
            });
            let outcome = outcome.map_err(errors::study)?;
            let page = match &out {
                Some(out) => Some(study::write(&outcome, command, out, COLUMN).map_err(errors::study)?),
                None => None,
            };
            let summary = Summary::new(&outcome, page).map_err(errors::study)?;
            let text = match self.0.claims.is_empty() {
                true => summary.tables(&self.0),
                false => outcome.table(),
            };
            let measurements = Table::new(outcome.results.measurements(&self.0))?;
            Ok((measurements, Table::new(outcome.results.runs(&self.0))?, summary.to_json(), text))
        })?;
        Ok(Outcome { measurements: Py::new(py, measurements)?, runs: Py::new(py, runs)?, json, text })
    }

    /// What is left to measure, for other processes: each task as text, with the milliseconds of one core that it takes, roughly.
    fn tasks(
        &self,
        py: Python<'_>,
        asked: Asked,
        axes: &Bound<'_, PyDict>,
        calls_python: bool,
    ) -> PyResult<Vec<(String, u64)>> {
        let plan = asked.plan(axes)?;
        let manner = Manner { jobs: None, calls_python, tell: None };
        let tasks = work::wait_for(py, &manner, |_| {
            Ok(Sweep::prepare(&self.0, plan).map_err(errors::study)?.tasks())
        })?;
        let text = |task: &Task| serde_json::to_string(task).map_err(errors::wrong);
        tasks.iter().map(|task| Ok((text(task)?, task.work))).collect()
    }

    /// Measures such tasks one after the other: for each the name of a file of the store, and the line that belongs there.
    fn measure(
        &self,
        py: Python<'_>,
        asked: Asked,
        tasks: Vec<String>,
        calls_python: bool,
    ) -> PyResult<Vec<(String, String)>> {
        let plan = asked.plan(&PyDict::new(py))?;
        let manner = Manner { jobs: Some(1), calls_python, tell: None };
        work::wait_for(py, &manner, |monitor| {
            let one = |text: &String| {
                let task: Task = serde_json::from_str(text).map_err(errors::wrong)?;
                let measured = self.0.measure(&plan, &task).map_err(errors::study)?;
                // Whoever is stopped here has nothing to keep.
                let _ = monitor.advance(1);
                Ok(measured)
            };
            tasks.iter().map(one).collect()
        })
    }
}
