//! What a study measured, as expressions ask for it: by experiment, coordinates, seed and quantity.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use base::config::ConfigError;

use super::axis::Axis;
use super::experiment::Experiment;
use super::template::Scope;
use super::tidy::{ByFlow, ByQuantity};
use super::{Plan, Study};
use crate::claims::{Environment, Formula, Measurements, Sample, Value, Vocabulary};
use crate::table::{Table, Writer};

/// Where a measurement counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The reading, as far as it changes the experiment.
    pub(super) reading: Vec<usize>,
    pub(super) experiment: usize,
    /// The place on each of its axes.
    pub(super) coordinates: Vec<usize>,
}

/// What the seeds of a case measured.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    exact: bool,
    /// By the number of the seed.
    seeds: Vec<Option<Arc<Measurements>>>,
}

impl Cell {
    const fn new(exact: bool) -> Self {
        Self { exact, seeds: Vec::new() }
    }

    fn set(&mut self, number: u32, measured: Arc<Measurements>) {
        let place = number as usize;
        if self.seeds.len() <= place {
            self.seeds.resize(place + 1, None);
        }
        self.seeds[place] = Some(measured);
    }

    /// What was measured, with the number of its seed.
    pub(super) fn measured(&self) -> impl Iterator<Item = (u64, &Measurements)> {
        let numbered = (0..).zip(&self.seeds);
        numbered.filter_map(|(number, measured)| Some((number, measured.as_deref()?)))
    }

    /// What the first seed measured, with its series.
    pub(super) fn first(&self) -> Option<&Measurements> {
        self.seeds.first()?.as_deref()
    }

    /// The values of a quantity, seed by seed.
    fn sample(&self, call: &str) -> Sample {
        let of = |seed: &Option<Arc<Measurements>>| seed.as_ref().and_then(|measured| measured.get(call));
        let sample = match (self.exact, &self.seeds[..]) {
            (true, [only]) => Sample::exact(of(only)),
            (_, seeds) => Sample::of(seeds.iter().map(of)),
        };
        let reason = self.seeds.iter().flatten().find_map(|measured| measured.reason(call));
        match reason {
            Some(reason) => sample.because(reason),
            None => sample.because(&format!("{call} was not measured")),
        }
    }

    /// The items of a list that all seeds have.
    fn list(&self, name: &str) -> Option<Value> {
        let mut lists = self.seeds.iter().flatten().map(|measured| measured.list(name));
        let first = lists.next()??;
        let others: Vec<Vec<Value>> = lists.map(Option::unwrap_or_default).collect();
        let common: Vec<Value> =
            first.into_iter().filter(|item| others.iter().all(|other| other.contains(item))).collect();
        Some(match common.is_empty() {
            true => Value::Unknown(format!("{name}: nothing that all seeds have")),
            false => Value::List(common),
        })
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub(super) cells: BTreeMap<Place, Cell>,
    /// The seed of each cell's first measurement.
    pub(super) first_seed: u64,
    /// Steps of quantities, of which one was asked for: each takes a look at all cells.
    steps: Arc<Mutex<HashMap<(usize, String), f64>>>,
}

impl Results {
    /// Nothing yet.
    pub(super) fn from_seed(first_seed: u64) -> Self {
        Self { first_seed, ..Self::default() }
    }

    /// What the seeds of one case measured.
    pub(super) fn cell(&self, place: &Place) -> Option<&Cell> {
        self.cells.get(place)
    }

    /// Takes in what a replication of a case measured.
    pub(super) fn set(&mut self, place: &Place, exact: bool, number: u32, measured: Arc<Measurements>) {
        self.cells.entry(place.clone()).or_insert_with(|| Cell::new(exact)).set(number, measured);
        self.steps = Arc::default();
    }

    /// The least by which values of a quantity differ in an experiment; 1 if all are whole, and 0 if there is only one.
    fn step(&self, experiment: usize, call: &str) -> f64 {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        *steps.entry((experiment, call.to_owned())).or_insert_with(|| self.find_step(experiment, call))
    }

    fn find_step(&self, experiment: usize, call: &str) -> f64 {
        let cells = self.cells.iter().filter(|(place, _)| place.experiment == experiment);
        let seeds = cells.flat_map(|(_, cell)| cell.seeds.iter().flatten());
        let mut values: Vec<f64> =
            seeds.filter_map(|measured| measured.get(call)).filter(|value| value.is_finite()).collect();
        if values.iter().all(|value| value.fract() == 0.0) {
            return 1.0;
        }
        values.sort_by(f64::total_cmp);
        let steps = values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
        steps.reduce(f64::min).unwrap_or(0.0)
    }

    /// All measurements as a tidy table, as CSV.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_csv(&self, study: &Study, out: impl Write) -> io::Result<()> {
        let table = ByQuantity::of(study, self);
        table.write(&mut Writer::csv(table.columns(), out)?)
    }

    /// All measurements as a tidy table, as JSON lines.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_json(&self, study: &Study, out: impl Write) -> io::Result<()> {
        let table = ByQuantity::of(study, self);
        table.write(&mut Writer::json(table.columns(), out))
    }

    /// All measurements as a tidy table.
    #[must_use]
    pub fn measurements(&self, study: &Study) -> Table {
        let rows = ByQuantity::of(study, self);
        let mut table = Table::new(rows.columns());
        rows.write(&mut table).expect("a table takes every row");
        table
    }

    /// A row for each run and flow.
    #[must_use]
    pub fn runs(&self, study: &Study) -> Table {
        ByFlow::of(study, self).table()
    }
}

/// What expressions see: the results of one reading, through the experiments that are in view.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) study: &'a Study,
    pub(super) plan: &'a Plan,
    pub(super) results: &'a Results,
    pub(super) reading: &'a [usize],
    /// The experiments that a bare name means: all, or those that a claim names.
    pub(super) experiments: &'a [usize],
    /// Further names: those of a figure's point.
    pub(super) scope: Option<&'a Scope>,
    /// Only the first seed counts, and for exact.
    pub(super) single: bool,
    /// What was asked for, in order.
    pub(super) asked: RefCell<Vec<Place>>,
}

impl<'a> View<'a> {
    /// The results of a reading, of all seeds.
    pub(super) const fn new(
        study: &'a Study,
        plan: &'a Plan,
        results: &'a Results,
        reading: &'a [usize],
        experiments: &'a [usize],
    ) -> Self {
        let asked = RefCell::new(Vec::new());
        Self { study, plan, results, reading, experiments, scope: None, single: false, asked }
    }

    fn lookup(&self, name: &str, arguments: &[Value], options: &[(String, Value)]) -> Option<Value> {
        let (place, quantity) = find(self.study, self.experiments, name)?;
        let experiment = &self.study.experiments[place];
        let (coordinates, inner) = match coordinates(experiment, arguments, options) {
            Ok(found) => found,
            Err(complaint) => return Some(Value::Unknown(complaint)),
        };
        let call = crate::claims::written(quantity, inner, &[]);
        let reading = experiment.projected(self.study, self.reading);
        let at = Place { reading, experiment: place, coordinates };
        let cell = self.results.cell(&at);
        self.asked.borrow_mut().push(at);
        let Some(cell) = cell else {
            return Some(Value::Unknown(format!("{name} was not run there")));
        };
        if self.single {
            let value = cell.first().and_then(|measured| measured.get(&call));
            return Some(Value::Sample(Sample::exact(value)));
        }
        let sample = cell.sample(&call);
        let step = match sample.agreed() {
            Some(_) if !sample.is_exact() => self.results.step(place, &call),
            _ => 0.0,
        };
        Some(Value::Sample(sample.with_step(step)))
    }

    /// A list that the cases of an experiment measured, as far as all of them have it in common.
    fn measured_list(&self, name: &str) -> Option<Value> {
        let (place, list) = find(self.study, self.experiments, name)?;
        let reading = self.study.experiments[place].projected(self.study, self.reading);
        let cells = self.results.cells.iter();
        let mut lists = cells
            .filter(|(at, _)| at.experiment == place && at.reading == reading)
            .filter_map(|(_, cell)| cell.list(list));
        let first = lists.next()?;
        Some(lists.fold(first, |all, next| match (all, next) {
            (Value::List(all), Value::List(next)) => {
                Value::List(all.into_iter().filter(|item| next.contains(item)).collect())
            }
            (unknown @ Value::Unknown(_), _) | (_, unknown) => unknown,
        }))
    }
}

impl Environment for View<'_> {
    fn name(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.scope.and_then(|scope| scope.name(name)) {
            return Some(value);
        }
        if let Some(value) = self.study.reading_value(self.reading, name) {
            return Some(value);
        }
        if let Some((experiment, axis)) = find_axis(self.study, self.experiments, name) {
            let places = experiment.places(self.study, self.plan, self.reading, axis);
            return Some(Value::List(places.into_iter().map(|at| axis.values[at].value.clone()).collect()));
        }
        self.measured_list(name).or_else(|| {
            let (place, _) = find(self.study, self.experiments, name)?;
            self.study.experiments[place].axes.is_empty().then(|| self.lookup(name, &[], &[]))?
        })
    }

    fn call(&self, name: &str, arguments: &[Value], options: &[(String, Value)]) -> Option<Value> {
        self.lookup(name, arguments, options)
    }

    fn asked(&self) -> usize {
        self.asked.borrow().len()
    }
}

/// Splits `experiment.name`, and finds the experiments that it may mean.
fn candidates<'a>(study: &Study, experiments: &'a [usize], name: &'a str) -> (Vec<usize>, &'a str) {
    match name.split_once('.') {
        Some((experiment, name)) => (study.experiment(experiment).into_iter().collect(), name),
        None => (experiments.to_vec(), name),
    }
}

/// The experiment and the quantity that a name means.
fn find<'a>(study: &Study, experiments: &'a [usize], name: &'a str) -> Option<(usize, &'a str)> {
    let (places, quantity) = candidates(study, experiments, name);
    let place = places.into_iter().find(|&place| study.experiments[place].measures(quantity))?;
    Some((place, quantity))
}

/// The axis whose values a name in capital letters means, and its experiment.
fn find_axis<'a>(study: &'a Study, experiments: &[usize], name: &str) -> Option<(&'a Experiment, &'a Axis)> {
    let (places, list) = candidates(study, experiments, name);
    places.into_iter().map(|place| &study.experiments[place]).find_map(|experiment| {
        let axis = experiment.axes.iter().find(|axis| axis.list_name() == list)?;
        Some((experiment, axis))
    })
}

/// The coordinates that a call names, by place or by name, and what is left of its arguments.
fn coordinates<'a>(
    experiment: &Experiment,
    arguments: &'a [Value],
    options: &[(String, Value)],
) -> Result<(Vec<usize>, &'a [Value]), String> {
    let (mut coordinates, mut used) = (Vec::new(), 0);
    for axis in &experiment.axes {
        let named = options.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| value);
        let value = match named {
            Some(value) => value,
            None => {
                used += 1;
                arguments.get(used - 1).ok_or_else(|| {
                    let axes: Vec<&str> = experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
                    format!("experiment {} has the axes {}", experiment.name, axes.join(", "))
                })?
            }
        };
        coordinates.push(axis.place(value).ok_or_else(|| axis.unknown(value))?);
    }
    Ok((coordinates, &arguments[used..]))
}

/// What expressions may say, known before anything has run.
pub(super) struct Words<'a> {
    pub(super) study: &'a Study,
    pub(super) experiments: &'a [usize],
    /// Further names.
    names: &'a [String],
    /// The experiments that were asked for so far.
    used: RefCell<BTreeSet<usize>>,
}

impl<'a> Words<'a> {
    pub(super) const fn new(study: &'a Study, experiments: &'a [usize], names: &'a [String]) -> Self {
        Self { study, experiments, names, used: RefCell::new(BTreeSet::new()) }
    }
}

impl Vocabulary for Words<'_> {
    fn name(&self, name: &str) -> bool {
        if self.names.iter().any(|known| known == name)
            || self.study.reading_value(&self.study.default_reading(), name).is_some()
            || find_axis(self.study, self.experiments, name).is_some()
        {
            return true;
        }
        let measured = find(self.study, self.experiments, name);
        self.used.borrow_mut().extend(measured.map(|(place, _)| place));
        measured.is_some()
    }

    fn call(&self, name: &str, arguments: &[Option<Value>]) -> Result<(), String> {
        self.call_with(name, arguments, &[])
    }

    fn call_with(
        &self,
        name: &str,
        arguments: &[Option<Value>],
        options: &[(String, Option<Value>)],
    ) -> Result<(), String> {
        let (places, quantity) = candidates(self.study, self.experiments, name);
        let measuring: Vec<usize> = places
            .iter()
            .copied()
            .filter(|&place| self.study.experiments[place].measures(quantity))
            .collect();
        let place = match measuring[..] {
            [place] => place,
            [] => {
                let known: Vec<&str> = places
                    .iter()
                    .flat_map(|&place| &self.study.experiments[place].probes)
                    .flat_map(|probe| probe.quantities)
                    .copied()
                    .collect();
                return Err(format!("nothing measures {name}; there are {}", known.join(", ")));
            }
            _ => {
                let names: Vec<&str> =
                    measuring.iter().map(|&place| self.study.experiments[place].name.as_str()).collect();
                return Err(format!("{name} is measured by {}; write which", names.join(" and ")));
            }
        };
        self.used.borrow_mut().insert(place);
        let axes = &self.study.experiments[place].axes;
        if let Some((option, _)) = options.iter().find(|(name, _)| axes.iter().all(|axis| axis.name != *name))
        {
            return Err(format!("{name} has no coordinate {option}"));
        }
        let mut by_place = arguments.iter();
        for axis in axes {
            let named = options.iter().find(|(name, _)| *name == axis.name).map(|(_, value)| value);
            let Some(argument) = named.or_else(|| by_place.next()) else {
                let axes: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
                return Err(format!("{name} has the coordinates {}", axes.join(", ")));
            };
            if let Some(value) = argument.as_ref().filter(|value| axis.place(value).is_none()) {
                return Err(axis.unknown(value));
            }
        }
        Ok(())
    }
}

/// The experiments that a claim's bare names mean.
pub(super) fn in_view(study: &Study, from: &[String]) -> Result<Vec<usize>, String> {
    if from.is_empty() {
        return Ok((0..study.experiments.len()).collect());
    }
    let place = |name: &String| study.experiment(name).ok_or_else(|| format!("no experiment \"{name}\""));
    from.iter().map(place).collect()
}

/// The experiments that a claim asks.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// By its check and by what is told beside it.
    pub(super) all: Vec<usize>,
    /// By its check.
    pub(super) by_check: BTreeSet<usize>,
}

/// Checks that every claim asks only for what its experiments measure, and returns which experiments each asks.
pub(super) fn verify_claims(study: &Study, file: &str, text: &str) -> Result<Vec<Asked>, ConfigError> {
    let mut all = Vec::new();
    for claim in &study.claims {
        let complain = |message: String| {
            let at = text.find(&format!("\"{}\"", claim.id)).unwrap_or(0);
            ConfigError::at(file, text, at..at, message)
        };
        let experiments = in_view(study, &claim.from).map_err(complain)?;
        let words = Words::new(study, &experiments, &[]);
        claim.check.verify(&words).map_err(|error| complain(error.to_string()))?;
        let by_check = words.used.borrow().clone();
        for told in &claim.told {
            told.verify(&words).map_err(|error| complain(format!("{}: {error}", told.source())))?;
        }
        all.push(Asked { all: words.used.into_inner().into_iter().collect(), by_check });
    }
    Ok(all)
}

/// Checks one expression.
pub(super) fn verify(expression: &str, words: &Words<'_>) -> Result<(), String> {
    let complain = |error| format!("\"{expression}\": {error}");
    Formula::parse(expression).map_err(complain)?.verify(words).map_err(complain)
}
