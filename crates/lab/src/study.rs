//! Studies: experiments over axes, figures, tables and claims, all of it data.
//!
//! A study is a folder: `experiments.toml` with what it varies and measures, scenario files that experiments start from,
//! and `claims.toml`. [`Study::load`] reads and checks all of it, [`Sweep`] runs what a [`Plan`] asks for, and an
//! [`Outcome`] is judged, drawn and written. A paper is a study with its verdicts; `longhaul sweep` runs anybody's.
//! `docs/studies.md` explains the files.

mod agreement;
mod axis;
mod experiment;
mod figure;
mod form;
mod identity;
mod judge;
mod looks;
mod markdown;
mod page;
mod pivot;
pub mod probe;
pub mod published;
mod readings;
mod results;
mod scenario;
mod schema;
mod store;
mod summary;
mod sweep;
mod table;
mod task;
mod template;
pub(crate) mod tidy;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base::config::{self, ConfigError};

use crate::scenario::built_in;
use toml::{Spanned, Table};

use crate::claims::{self, Claim, Environment as _, Value};
pub use axis::{Axis, AxisValue, plain};
pub use experiment::{Case, Experiment};
use form::{FigureForm, PartsForm, QuickForm, ReadingForm, ReadingsForm, StudyForm, TableForm};
pub use judge::{Judged, Judgement};
pub use page::write;
use probe::Probe;
use results::Asked;
pub use results::Results;
pub use schema::schema;
pub use summary::{Cell, Summary, VerdictRow};
pub use sweep::{Outcome, Plan, Progress, Sweep};
pub use task::Task;
use template::Scope;

/// Where the files of a study are.
#[derive(Clone, Debug)]
pub enum Files {
    /// In the program: their names and texts.
    Embedded(&'static str, &'static [(&'static str, &'static str)]),
    /// In a folder.
    Folder(PathBuf),
    /// In a folder, but for one whose name and text are here.
    Laid(PathBuf, String, String),
}

impl Files {
    /// The text of a file, and what to call it in complaints.
    fn read(&self, name: &str) -> Result<(String, Cow<'static, str>), ConfigError> {
        match self {
            Self::Embedded(folder, files) => {
                let path = format!("{folder}/{name}");
                let found = files.iter().find(|(known, _)| *known == name);
                let (_, text) =
                    found.ok_or_else(|| ConfigError::about(&path, "no such file in the study"))?;
                Ok((path, Cow::Borrowed(text)))
            }
            Self::Laid(folder, laid, text) if laid == name => {
                Ok((folder.join(name).display().to_string(), Cow::Owned(text.clone())))
            }
            Self::Folder(folder) | Self::Laid(folder, ..) => {
                let path = folder.join(name);
                let file = path.display().to_string();
                match (std::fs::read_to_string(&path), built_in::find(&path)) {
                    (Ok(text), _) => Ok((file, Cow::Owned(text))),
                    (Err(_), Some(text)) => Ok((file, Cow::Borrowed(text))),
                    (Err(error), None) => Err(ConfigError::about(&file, error)),
                }
            }
        }
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Embedded(..) => Path::new(""),
            Self::Folder(folder) | Self::Laid(folder, ..) => folder,
        }
    }
}

/// A study, read and checked.
#[derive(Debug)]
pub struct Study {
    /// Short name of the study.
    pub name: String,
    /// Subject of the study: authors, title and year of a paper.
    pub title: String,
    /// One line on what was chosen where the paper leaves a choice.
    pub setting: String,
    /// The seed of the first replication of everything.
    pub seed: u64,
    /// How often a full run looks at the claims.
    pub looks: u32,
    /// What the paper leaves unsaid.
    pub readings: Vec<Reading>,
    /// What it runs.
    pub experiments: Vec<Experiment>,
    /// What it decides.
    pub claims: Vec<Claim>,
    /// The experiments that each claim asks.
    asked: Vec<Asked>,
    figures: Vec<FigureForm>,
    tables: Vec<TableForm>,
    constants: Scope,
    /// Axes that experiments share.
    axes: Table,
    quick: QuickForm,
    readings_form: ReadingsForm,
    /// Whether what some seeds lack is neither drawn nor averaged.
    whole_only: bool,
    /// The stamps of experiments that are known.
    stamps: Mutex<BTreeMap<usize, u64>>,
    files: Files,
}

/// One thing that a paper leaves unsaid.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What it may mean.
    pub axis: Axis,
    /// The place of the default.
    pub default: usize,
    /// Why it is the default.
    pub reason: String,
    /// Keys that every value sets.
    set: Table,
}

/// What can stand in the way of a study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file of it is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no such figure, table or experiment.
    #[error("{study} has no figure, table or experiment \"{asked}\"; there are {known}")]
    Unknown {
        /// The study.
        study: String,
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// An expression does not fit what was measured.
    #[error("{place}: {message}")]
    Expression {
        /// The claim, figure or table.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// A file cannot be read or written, or a run failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Study {
    /// Reads `experiments.toml` of a study and what belongs to it. `probes` are its own, beside the instrument's.
    ///
    /// # Errors
    /// A file is wrong: with its line. Axes, probes, quantities and coordinates that do not exist are found here.
    pub fn load(files: Files, head: &str, probes: &[&'static Probe]) -> Result<Self, ConfigError> {
        let (file, text) = files.read(head)?;
        Self::parse(files, &file, &text, probes)
    }

    /// Reads a study from the text of its first file, which complaints call `file`.
    fn parse(files: Files, file: &str, text: &str, probes: &[&'static Probe]) -> Result<Self, ConfigError> {
        let form: StudyForm = config::parse(file, text)?;
        let wrong = |message: String| ConfigError::about(file, message);
        if !(1..=looks::MOST).contains(&form.looks) {
            return Err(wrong(format!("looks = {}; allowed are 1 to {}", form.looks, looks::MOST)));
        }
        let mut constants = Scope::default();
        constants.bind_all(&form.constants).map_err(wrong)?;
        let readings = form.reading.into_iter().map(|reading| read_reading(file, text, reading));
        let readings = readings.collect::<Result<Vec<_>, _>>()?;
        let mut study = Self {
            name: form.name,
            title: form.title,
            setting: form.setting,
            seed: form.seed,
            looks: form.looks,
            whole_only: false,
            stamps: Mutex::default(),
            readings,
            experiments: Vec::new(),
            claims: Vec::new(),
            asked: Vec::new(),
            figures: Vec::new(),
            tables: Vec::new(),
            constants,
            axes: form.axes,
            quick: form.quick,
            readings_form: form.readings,
            files,
        };
        let parts = PartsForm { experiment: form.experiment, figure: form.figure, table: form.table };
        study.add(file, text, parts, probes)?;
        for name in &form.include {
            let (file, text) = study.files.read(&format!("{name}.toml"))?;
            let parts = config::parse(&file, &text)?;
            study.add(&file, &text, parts, probes)?;
        }
        if let Some(name) = form.claims {
            let (file, text) = study.files.read(&format!("{name}.toml"))?;
            study.claims = claims::parse(&file, &text)?;
            study.asked = results::verify_claims(&study, &file, &text)?;
        }
        figure::verify_all(&study)?;
        table::verify_all(&study)?;
        Ok(study)
    }

    /// Takes in the parts of one file.
    fn add(
        &mut self,
        file: &str,
        text: &str,
        parts: PartsForm,
        probes: &[&'static Probe],
    ) -> Result<(), ConfigError> {
        for spanned in parts.experiment {
            let span = spanned.span();
            let complain = |message: String| ConfigError::at(file, text, span.clone(), message);
            let experiment = Experiment::read(self, spanned.into_inner(), probes).map_err(complain)?;
            if self.experiments.iter().any(|other| other.name == experiment.name) {
                return Err(complain(format!("two experiments are called \"{}\"", experiment.name)));
            }
            self.experiments.push(experiment);
        }
        for spanned in parts.figure {
            let span = spanned.span();
            let figure = spanned.into_inner();
            if self.figures.iter().any(|other| other.id == figure.id) {
                let message = format!("two figures are called \"{}\"", figure.id);
                return Err(ConfigError::at(file, text, span, message));
            }
            self.figures.push(figure);
        }
        self.tables.extend(parts.table.into_iter().map(Spanned::into_inner));
        Ok(())
    }

    /// The experiment with this name.
    #[must_use]
    pub fn experiment(&self, name: &str) -> Option<usize> {
        self.experiments.iter().position(|experiment| experiment.name == name)
    }

    /// The default reading: a place on each axis.
    #[must_use]
    pub fn default_reading(&self) -> Vec<usize> {
        self.readings.iter().map(|reading| reading.default).collect()
    }

    /// The readings to decide: the default one first.
    fn reading_points(&self, plan: &Plan) -> Result<Vec<Vec<usize>>, String> {
        let default = self.default_reading();
        let mut points = vec![default.clone()];
        if plan.default_reading_only {
            return Ok(points);
        }
        let places: Vec<_> = self.readings.iter().map(|r| r.axis.places(plan.quick)).collect();
        for point in axis::product(&places) {
            let runs = match &self.readings_form.only {
                Some(only) => self.reading_scope(&point).is(only)?,
                None => true,
            };
            if runs && point != default {
                points.push(point);
            }
        }
        Ok(points)
    }

    /// The names that a reading gives to expressions.
    fn reading_scope(&self, point: &[usize]) -> Scope {
        let mut scope = self.constants.clone();
        for (reading, &place) in self.readings.iter().zip(point) {
            scope.bind(&reading.axis.name, reading.axis.values[place].value.clone());
        }
        scope
    }

    /// What a name means under a reading, if it is a reading's or a constant's.
    fn reading_value(&self, point: &[usize], name: &str) -> Option<Value> {
        let mut readings = self.readings.iter().zip(point);
        match readings.find(|(reading, _)| reading.axis.name == name) {
            Some((reading, &place)) => Some(reading.axis.values[place].value.clone()),
            None => self.constants.name(name),
        }
    }

    /// What a reading is called.
    #[must_use]
    pub fn reading_name(&self, point: &[usize]) -> String {
        let name = |(reading, &place): (&Reading, &usize)| {
            format!("{} {}", reading.axis.name.replace('_', " "), reading.axis.values[place].label())
        };
        self.readings.iter().zip(point).map(name).collect::<Vec<_>>().join(", ")
    }
}

fn read_reading(file: &str, text: &str, spanned: Spanned<ReadingForm>) -> Result<Reading, ConfigError> {
    let span = spanned.span();
    let form = spanned.into_inner();
    let complain = |message: String| ConfigError::at(file, text, span.clone(), message);
    let mut axis = Axis::read(&form.name, &form.values).map_err(complain)?;
    let default = axis::plain(&form.default).map_err(complain)?;
    let default = axis.place(&default).ok_or_else(|| complain(axis.unknown(&default)))?;
    if let Some(quick) = &form.quick {
        axis = axis.with_quick(quick).map_err(complain)?;
    }
    Ok(Reading { axis, default, reason: form.reason, set: form.set })
}
