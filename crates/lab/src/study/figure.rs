//! Figures, drawn from what was measured under the default reading.

mod bars;
mod lines;
mod trace;

use base::config::ConfigError;
use toml::Table;

use super::axis::{Axis, plain, product};
use super::experiment::Experiment;
use super::form::{FigureForm, Kind};
use super::results::{View, Words, verify};
use super::template::{Scope, evaluate};
use super::{Outcome, Study, StudyError};
use crate::claims::{self, Value};
use crate::report::Figure;

/// All figures of the experiments that ran.
pub(super) fn figures(outcome: &Outcome<'_>) -> Result<Vec<Figure>, StudyError> {
    let mut figures = Vec::new();
    for form in &outcome.study.figures {
        let asked = outcome.plan.figure.as_ref();
        let is_wanted = asked.is_none_or(|asked| *asked == form.id || *asked == form.from);
        let Some(experiment) = outcome.study.experiment(&form.from).filter(|_| is_wanted) else { continue };
        if outcome.experiments.contains(&experiment) {
            let complain = |message| StudyError::Expression { place: format!("figure {}", form.id), message };
            let drawing = Drawing::new(outcome, form, experiment).map_err(complain)?;
            figures.extend(drawing.figure().map_err(complain)?);
        }
    }
    Ok(figures)
}

/// Checks that every figure asks only for what its experiment has.
pub(super) fn verify_all(study: &Study) -> Result<(), ConfigError> {
    for form in &study.figures {
        let complain =
            |message: String| ConfigError::about(&study.name, format!("figure {}: {message}", form.id));
        let place = study.experiment(&form.from);
        let place = place.ok_or_else(|| complain(format!("no experiment \"{}\"", form.from)))?;
        let experiment = &study.experiments[place];
        let mut shown: Vec<&str> = form.curve.as_slice().iter().map(String::as_str).collect();
        shown.extend(form.pool.as_slice().iter().map(String::as_str));
        shown.extend(Some(form.x.as_str()).filter(|x| !x.is_empty()));
        check_axes(experiment, &shown, &form.at).map_err(complain)?;
        if form.kind == Kind::Trace {
            let series = form.y.split(',').map(str::trim).filter(|name| !name.is_empty());
            let series = series.chain(form.points.iter().map(String::as_str)).chain(form.shade.as_deref());
            for name in series {
                if !experiment.probes.iter().any(|probe| probe.series.contains(&name)) {
                    return Err(complain(format!("no series \"{name}\"")));
                }
            }
            continue;
        }
        let names = expression_names(experiment);
        let words = Words::new(study, core::slice::from_ref(&place), &names);
        let expressions = [Some(&form.y), form.bound.as_ref(), form.only.as_ref(), form.x_value.as_ref()];
        let expressions = expressions
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .chain(form.also.iter().map(|also| &also.y));
        for expression in expressions {
            let text = spelled_out(experiment, expression);
            verify(&text, &words).map_err(complain)?;
        }
    }
    Ok(())
}

/// Every axis has to be shown or fixed, once.
pub(super) fn check_axes(experiment: &Experiment, shown: &[&str], at: &Table) -> Result<(), String> {
    for name in shown.iter().copied().chain(at.keys().map(String::as_str)) {
        if !experiment.axes.iter().any(|axis| axis.name == name) {
            return Err(format!("experiment {} has no axis \"{name}\"", experiment.name));
        }
    }
    for axis in &experiment.axes {
        match (shown.contains(&axis.name.as_str()), at.get(&axis.name)) {
            (true, None) => {}
            (false, Some(value)) => {
                let value = plain(value)?;
                axis.place(&value).ok_or_else(|| axis.unknown(&value))?;
            }
            (false, None) => {
                return Err(format!("axis \"{}\" is neither shown nor fixed by `at`", axis.name));
            }
            (true, Some(_)) => return Err(format!("axis \"{}\" is both shown and fixed by `at`", axis.name)),
        }
    }
    Ok(())
}

/// The names that expressions over an experiment's axes know.
pub(super) fn expression_names(experiment: &Experiment) -> Vec<String> {
    let axes = experiment.axes.iter().map(|axis| axis.name.clone());
    axes.chain(experiment.names().map(str::to_owned)).collect()
}

/// An expression, or the name of a quantity that stands for its value at all coordinates.
pub(super) fn spelled_out(experiment: &Experiment, expression: &str) -> String {
    if !experiment.measures(expression) {
        return expression.to_owned();
    }
    let axes: Vec<&str> = experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
    format!("{expression}({})", axes.join(", "))
}

/// One figure, and where its numbers come from.
struct Drawing<'a> {
    outcome: &'a Outcome<'a>,
    form: &'a FigureForm,
    experiment: usize,
    reading: &'a [usize],
}

/// A curve's place on the axes that tell curves apart, and what it is called.
struct Curve {
    coordinates: Vec<(usize, usize)>,
    name: String,
}

/// A value with its 95 % interval, if it has one.
type Told = (f64, Option<(f64, f64)>);

impl<'a> Drawing<'a> {
    fn new(outcome: &'a Outcome<'a>, form: &'a FigureForm, experiment: usize) -> Result<Self, String> {
        let reading = outcome.points.first().ok_or("nothing ran")?;
        Ok(Self { outcome, form, experiment, reading })
    }

    fn figure(&self) -> Result<Option<Figure>, String> {
        let svg = match self.form.kind {
            Kind::Lines => lines::lines(self)?,
            Kind::Bars => bars::bars(self)?,
            Kind::Boxes => bars::boxes(self)?,
            Kind::Heat => bars::heat(self)?,
            Kind::Trace => trace::trace(self)?,
        };
        let id = &self.form.id;
        let (name, prefix) = match id.starts_with(|c: char| c.is_ascii_digit()) {
            true => (format!("figure-{id}"), format!("Figure {id}: ")),
            false => (id.clone(), String::new()),
        };
        let title = format!("{prefix}{}", self.form.title);
        Ok(svg.map(|svg| Figure { name, title, caption: self.form.caption.clone(), svg }))
    }

    fn axis(&self, name: &str) -> Option<(usize, &'a Axis)> {
        let axes = &self.experiment().axes;
        axes.iter().position(|axis| axis.name == name).map(|place| (place, &axes[place]))
    }

    fn experiment(&self) -> &'a Experiment {
        &self.outcome.study.experiments[self.experiment]
    }

    /// The curves, in the order of their axes.
    fn curves(&self) -> Vec<Curve> {
        let axes: Vec<_> = self.form.curve.as_slice().iter().filter_map(|name| self.axis(name)).collect();
        let places: Vec<_> = axes.iter().map(|(_, axis)| self.outcome.plan.places(axis)).collect();
        let curve = |combination: Vec<usize>| {
            let part = |((_, axis), &place): (&(usize, &Axis), &usize)| match &axis.values[place].value {
                Value::Text(text) => text.clone(),
                value => format!("{} = {value}", axis.name),
            };
            let name = axes.iter().zip(&combination).map(part).collect::<Vec<_>>().join(", ");
            let coordinates = axes.iter().map(|(place, _)| *place).zip(combination).collect();
            Curve { coordinates, name }
        };
        product(&places).into_iter().map(curve).collect()
    }

    /// The names of a point: its coordinates on the curve's axes, on the abscissa's and on the fixed ones.
    fn scope(&self, curve: &Curve, x: Option<usize>) -> Result<Scope, String> {
        let experiment = self.experiment();
        let mut scope = self.outcome.study.reading_scope(self.reading);
        let mut bound = 0;
        for (place, axis) in experiment.axes.iter().enumerate() {
            let on_curve = curve.coordinates.iter().find(|(axis, _)| *axis == place).map(|(_, at)| *at);
            let on_x = x.filter(|_| axis.name == self.form.x);
            let fixed = match self.form.at.get(&axis.name) {
                Some(value) => axis.place(&plain(value)?),
                None => None,
            };
            if let Some(at) = on_curve.or(on_x).or(fixed) {
                scope.bind(&axis.name, axis.values[at].value.clone());
                bound += 1;
            }
        }
        if bound == experiment.axes.len() {
            scope.bind_all(experiment.named())?;
        }
        Ok(scope)
    }

    /// The value of an expression at a point, pooled over the axes that are pooled.
    fn value(&self, expression: &str, scope: &Scope) -> Result<Value, String> {
        let experiment = self.experiment();
        let mut text = spelled_out(experiment, expression);
        let pooled: String = self
            .form
            .pool
            .as_slice()
            .iter()
            .filter_map(|name| self.axis(name))
            .map(|(_, axis)| format!(" for {} in {}", axis.name, axis.list_name()))
            .collect();
        if !pooled.is_empty() {
            let only = self.form.only.as_ref().map_or_else(String::new, |only| format!(" if {only}"));
            text = format!("mean([{text}{pooled}{only}])");
        }
        let view = View {
            study: self.outcome.study,
            plan: &self.outcome.plan,
            results: &self.outcome.results,
            reading: self.reading,
            experiments: core::slice::from_ref(&self.experiment),
            scope: Some(scope),
            single: self.form.single,
        };
        evaluate(&text, &view)
    }

    /// Whether the point is drawn.
    fn is_drawn(&self, scope: &Scope) -> Result<bool, String> {
        match &self.form.only {
            Some(only) if self.form.pool.as_slice().is_empty() => scope.is(only),
            _ => Ok(true),
        }
    }

    /// The places of the abscissa.
    fn places(&self) -> Vec<usize> {
        self.axis(&self.form.x).map_or_else(Vec::new, |(_, axis)| self.outcome.plan.places(axis))
    }

    /// Where a place of the abscissa is drawn.
    fn abscissa(&self, place: usize, scope: &Scope) -> Result<f64, String> {
        let value = match &self.form.x_value {
            Some(expression) => scope.value(expression)?,
            None => match self.axis(&self.form.x) {
                Some((_, axis)) => axis.values[place].value.clone(),
                None => return Err("it has no x".to_owned()),
            },
        };
        Ok(value.as_number().unwrap_or(place as f64))
    }
}

/// A value as it is drawn; none if it is unknown.
pub(super) fn told(value: &Value) -> Option<Told> {
    match value {
        Value::Sample(sample) => told(&sample.mean_value()),
        Value::Estimate(estimate) => Some((estimate.point, estimate.interval(claims::LEVEL).ok()))
            .filter(|(point, _)| point.is_finite()),
        other => other.as_number().filter(|number| number.is_finite()).map(|number| (number, None)),
    }
}
