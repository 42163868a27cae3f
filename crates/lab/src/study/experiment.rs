//! An experiment: its axes, and the cases that they come to.

use std::collections::BTreeMap;
use std::io;

use base::Duration;
use toml::{Table, Value as Toml};

use super::axis::{Axis, AxisValue, product};
use super::form::{ExperimentForm, LengthForm, QuickForm, WhenForm};
use super::probe::{self, Probe};
use super::template::Scope;
use super::{Plan, Study};
use crate::claims::Value;
use crate::metrics;
use crate::scenario::{Base, Scenario};

/// Scenarios to run over some axes, and what to measure of them.
#[derive(Debug)]
pub struct Experiment {
    /// Its name in expressions.
    pub name: String,
    /// What it does and why.
    pub title: String,
    /// What its quantities have coordinates on, in the order in which expressions name them.
    pub axes: Vec<Axis>,
    /// What it measures.
    pub probes: Vec<&'static Probe>,
    /// Axis whose values one measurement covers together.
    together: Option<Axis>,
    base: Option<Base>,
    form: ExperimentForm,
    /// The places of the readings that change it.
    readings: Vec<usize>,
}

/// One combination of an experiment's axes, ready to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its place on each axis.
    pub coordinates: Vec<usize>,
    /// What to run: one scenario, one for each value of the axis that is measured together, or none.
    pub scenarios: Vec<(String, Scenario)>,
    /// The experiment's `with`.
    pub numbers: BTreeMap<String, f64>,
    /// Replications.
    pub seeds: u32,
    /// Whether nothing in it is random, so that one run stands for all.
    pub exact: bool,
    /// About how long one replication takes, in milliseconds of one core.
    pub work: u64,
}

impl Experiment {
    pub(super) fn read(study: &Study, form: ExperimentForm, own: &[&'static Probe]) -> Result<Self, String> {
        let base = match &form.base {
            None => None,
            Some(name) => {
                let (file, text) = study.files.read(&format!("{name}.toml")).map_err(|e| e.to_string())?;
                let base = Base::parse(&file, &text, study.files.directory()).map_err(|e| e.to_string())?;
                if let Some(seed) = base.seed().filter(|&seed| seed != study.seed) {
                    let own = study.seed;
                    return Err(format!(
                        "{file}: seed = {seed}; a study's seeds are its own, from {own} on: write seed = {seed} there"
                    ));
                }
                Some(base)
            }
        };
        let mut axes = Vec::new();
        // The schemes of a scenario file are an axis unless the experiment has its own.
        if let Some(base) = base.as_ref().filter(|base| !base.schemes().is_empty())
            && !form.axes.contains_key("scheme")
        {
            let value = |scheme: &crate::scenario::Scheme| AxisValue {
                value: Value::Text(scheme.name.clone()),
                set: scheme.set.clone(),
            };
            let values = base.schemes().iter().map(value).collect();
            axes.push(Axis { name: "scheme".to_owned(), title: "scheme".to_owned(), values, quick: None });
        }
        for (name, written) in &form.axes {
            let shared = written.as_str().map(|shared| {
                study.axes.get(shared).ok_or_else(|| format!("the study has no axis \"{shared}\" to share"))
            });
            axes.push(Axis::read(name, shared.transpose()?.unwrap_or(written))?);
        }
        for (name, written) in &form.quick.axes {
            let place = axes.iter().position(|axis| axis.name == *name);
            let place = place.ok_or_else(|| format!("quick has an axis \"{name}\" that is not there"))?;
            axes[place] = axes[place].clone().with_quick(written)?;
        }
        let together = match &form.together {
            None => None,
            Some(name) => {
                let place = axes.iter().position(|axis| axis.name == *name);
                Some(axes.remove(place.ok_or_else(|| format!("together = \"{name}\" is not an axis"))?))
            }
        };
        let readings = match &form.readings {
            None => (0..study.readings.len()).collect(),
            Some(names) => names.iter().map(|name| reading(study, name)).collect::<Result<_, _>>()?,
        };
        let probes = form.probes.iter().map(|name| find_probe(name, own)).collect::<Result<_, _>>()?;
        if form.name.chars().any(|c| !(c.is_ascii_alphanumeric() || c == '_')) {
            return Err(format!("\"{}\" is not a name; allowed are letters, digits and _", form.name));
        }
        let (name, title) = (form.name.clone(), form.title.clone());
        let experiment = Self { name, title, axes, probes, together, base, form, readings };
        experiment.check(study)?;
        Ok(experiment)
    }

    /// Resolves the first case, so that a mistake in what all of them set has a place in the file.
    fn check(&self, study: &Study) -> Result<(), String> {
        let first = vec![0; self.axes.len()];
        self.case(study, &Plan::default(), &study.default_reading(), first).map(|_| ())
    }

    /// The quantities of its probes.
    pub(super) fn measures(&self, quantity: &str) -> bool {
        self.probes.iter().any(|probe| probe.quantities.contains(&quantity))
    }

    pub(super) fn has_axis(&self, name: &str) -> bool {
        self.axes.iter().any(|axis| axis.name == name)
    }

    /// Whether a quick run leaves it out.
    pub(super) fn is_skipped(&self, plan: &Plan) -> bool {
        plan.quick && self.form.quick.skip
    }

    /// The reading that its measurements at `reading` are those of: the default one on all axes that do not change it.
    pub(super) fn projected(&self, study: &Study, reading: &[usize]) -> Vec<usize> {
        let place = |(axis, &place): (usize, &usize)| match self.readings.contains(&axis) {
            true => place,
            false => study.readings[axis].default,
        };
        reading.iter().enumerate().map(place).collect()
    }

    /// The places on one of its axes that run under a reading.
    pub(super) fn places(&self, study: &Study, plan: &Plan, reading: &[usize], axis: &Axis) -> Vec<usize> {
        let is_default = self.projected(study, reading) == study.default_reading();
        plan.places_or_fewer(axis, study.readings_form.coarse && !is_default)
    }

    /// The cases that run under a reading.
    pub(super) fn cases(&self, study: &Study, plan: &Plan, reading: &[usize]) -> Result<Vec<Case>, String> {
        let places: Vec<_> = self.axes.iter().map(|axis| self.places(study, plan, reading, axis)).collect();
        let mut cases = Vec::new();
        for coordinates in product(&places) {
            let runs = match &self.form.only {
                Some(only) => self.scope(study, reading, &coordinates)?.is(only)?,
                None => true,
            };
            if runs {
                cases.push(self.case(study, plan, reading, coordinates)?);
            }
        }
        Ok(cases)
    }

    /// Scenarios with every value of every axis, one axis at a time; the same whatever part of the study runs.
    pub(super) fn examples(&self, study: &Study) -> Vec<Scenario> {
        let plan = Plan::default();
        let mut all = vec![vec![0; self.axes.len()]];
        for (axis, values) in self.axes.iter().enumerate() {
            all.extend((1..values.values.len()).map(|place| {
                let mut coordinates = vec![0; self.axes.len()];
                coordinates[axis] = place;
                coordinates
            }));
        }
        // A combination that does not run need not make sense.
        let cases =
            all.into_iter().filter_map(|at| self.case(study, &plan, &study.default_reading(), at).ok());
        cases.flat_map(|case| case.scenarios).map(|(_, scenario)| scenario).collect()
    }

    /// The names that expressions of a case know.
    pub(super) fn scope(
        &self,
        study: &Study,
        reading: &[usize],
        coordinates: &[usize],
    ) -> Result<Scope, String> {
        let mut scope = study.reading_scope(reading);
        for (axis, &place) in self.axes.iter().zip(coordinates) {
            scope.bind(&axis.name, axis.values[place].value.clone());
        }
        scope.bind_all(&self.form.names).map_err(|error| self.complaint(error))?;
        Ok(scope)
    }

    /// The names of its `let`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.form.names.keys().map(String::as_str)
    }

    /// Its `let`.
    pub(super) const fn named(&self) -> &Table {
        &self.form.names
    }

    /// What went wrong in a case.
    pub(super) fn failed(&self, case: &Case, error: &io::Error) -> io::Error {
        let label = self.label(&case.coordinates);
        io::Error::other(format!("experiment \"{}\", {label}: {error}", self.name))
    }

    fn complaint(&self, error: impl core::fmt::Display) -> String {
        format!("experiment \"{}\": {error}", self.name)
    }

    pub(super) fn case(
        &self,
        study: &Study,
        plan: &Plan,
        reading: &[usize],
        coordinates: Vec<usize>,
    ) -> Result<Case, String> {
        let reading = self.projected(study, reading);
        let scope = self.scope(study, &reading, &coordinates)?;
        let quick = |of: fn(&QuickForm) -> Option<f64>| of(&self.form.quick).or_else(|| of(&study.quick));
        let exact = match &self.form.exact {
            None => false,
            Some(Toml::Boolean(exact)) => *exact,
            Some(Toml::String(condition)) => scope.is(condition)?,
            Some(other) => return Err(self.complaint(format!("exact = {other}"))),
        };
        let mut seeds = match &self.form.seeds {
            _ if exact => 1.0,
            None => f64::from(DEFAULT_SEEDS),
            Some(written) => scope.number(written)?,
        };
        if plan.quick && !exact {
            seeds = seeds.min(quick(|quick| quick.seeds.map(f64::from)).unwrap_or(seeds));
        }
        if let Some(chosen) = plan.seeds.filter(|_| !exact) {
            seeds = f64::from(chosen);
        }
        let factor = quick(|quick| quick.length).filter(|_| plan.quick).unwrap_or(1.0);
        let mut numbers = BTreeMap::new();
        let quick_numbers = self.form.quick.with.iter().filter(|_| plan.quick);
        for (name, written) in self.form.with.iter().chain(quick_numbers) {
            numbers.insert(name.clone(), scope.number(written)?);
        }
        let mut scenarios = Vec::new();
        match &self.together {
            None => scenarios.extend(self.scenario(study, &reading, &coordinates, None, &scope, factor)?),
            Some(axis) => {
                for value in &axis.values {
                    let mut scope = scope.clone();
                    scope.bind(&axis.name, value.value.clone());
                    let together = Some(value);
                    let scenario = self.scenario(study, &reading, &coordinates, together, &scope, factor)?;
                    scenarios.extend(scenario);
                }
            }
        }
        let work: f64 = scenarios.iter().map(|(_, scenario)| work_of(scenario)).sum();
        let work = (work * self.form.effort.unwrap_or(1.0)).max(1.0) as u64;
        Ok(Case { coordinates, scenarios, numbers, seeds: seeds as u32, exact, work })
    }

    /// The scenario of a case; none if the experiment is a calculation.
    fn scenario(
        &self,
        study: &Study,
        reading: &[usize],
        coordinates: &[usize],
        together: Option<&AxisValue>,
        scope: &Scope,
        factor: f64,
    ) -> Result<Option<(String, Scenario)>, String> {
        let Some(base) = &self.base else { return Ok(None) };
        let mut sets = Vec::new();
        for &axis in &self.readings {
            let chosen = &study.readings[axis];
            sets.push(scope.fill(&chosen.set)?);
            sets.push(scope.fill(&chosen.axis.values[reading[axis]].set)?);
        }
        sets.push(scope.fill(&self.form.set)?);
        for WhenForm { condition, set } in &self.form.when {
            if scope.is(condition)? {
                sets.push(scope.fill(set)?);
            }
        }
        let values = self.axes.iter().zip(coordinates).map(|(axis, &place)| &axis.values[place]);
        for value in values.chain(together) {
            sets.push(scope.fill(&value.set)?);
        }
        let label = match together {
            Some(value) => value.label(),
            None => self.label(coordinates),
        };
        let complain = |error: base::config::ConfigError| self.complaint(format!("{label}: {error}"));
        let unscaled = base.with(&label, &sets).map_err(complain)?;
        let length = self.length(&unscaled, scope)?;
        let seconds = (length.as_secs_f64() * factor).ceil();
        if (factor - 1.0).abs() > 1e-12 || length != unscaled.duration {
            sets.push(Table::from_iter([("duration".to_owned(), Toml::String(format!("{seconds} s")))]));
        }
        Ok(Some((label.clone(), base.with(&label, &sets).map_err(complain)?)))
    }

    fn length(&self, scenario: &Scenario, scope: &Scope) -> Result<Duration, String> {
        match &self.form.length {
            None => Ok(scenario.duration),
            Some(LengthForm::Fixed(text)) => {
                let text = scope.text(text)?;
                text.parse().map_err(|error| self.complaint(format!("length = \"{text}\": {error}")))
            }
            Some(LengthForm::Periods(form)) => {
                let period = metrics::longest_period(scenario).map_or(0.0, Duration::as_secs_f64);
                let seconds = (form.periods * period).max(form.least.as_secs_f64());
                let seconds = form.most.map_or(seconds, |most| seconds.min(most.as_secs_f64()));
                Ok(Duration::from_secs_f64(seconds.ceil()))
            }
        }
    }

    /// What a combination is called.
    #[must_use]
    pub fn label(&self, coordinates: &[usize]) -> String {
        let part = |(axis, &place): (&Axis, &usize)| match &axis.values[place].value {
            Value::Text(text) => text.clone(),
            value => format!("{} = {value}", axis.name),
        };
        let parts: Vec<String> = self.axes.iter().zip(coordinates).map(part).collect();
        if parts.is_empty() { self.name.clone() } else { parts.join(", ") }
    }
}

/// Replications where an experiment names no number.
const DEFAULT_SEEDS: u32 = 10;

fn reading(study: &Study, name: &str) -> Result<usize, String> {
    let found = study.readings.iter().position(|reading| reading.axis.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = study.readings.iter().map(|reading| reading.axis.name.as_str()).collect();
        format!("no reading \"{name}\"; there are {}", known.join(", "))
    })
}

fn find_probe(name: &str, own: &[&'static Probe]) -> Result<&'static Probe, String> {
    let all = || own.iter().chain(probe::INSTRUMENT).copied();
    all().find(|probe| probe.name == name).ok_or_else(|| {
        let known: Vec<&str> = all().map(|probe| probe.name).collect();
        format!("no probe \"{name}\"; there are {}", known.join(", "))
    })
}

/// Milliseconds of one core, roughly: a link that never stops sending costs some 0.3 ms for each second of it at 262144
/// bit/s, another one a tenth of that.
fn work_of(scenario: &Scenario) -> f64 {
    let per_second = |link: &crate::scenario::Link| {
        let busy = matches!(link.protocol, Some(link::Protocol::CotmllThesis(_)));
        let rate = link.channel.rate.as_bps() as f64 / 262_144.0;
        rate * if busy { 0.3 } else { 0.03 }
    };
    scenario.duration.as_secs_f64() * scenario.link.values().map(per_second).sum::<f64>()
}
