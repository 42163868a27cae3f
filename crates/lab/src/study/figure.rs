//! Figures, drawn from what was measured under the default reading.

mod bars;
mod lines;
mod looks;
#[cfg(test)]
mod tests;
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
use crate::drawing::{Drawing, Figure, Look, Looks};

/// All figures of the experiments that ran.
pub(super) fn figures(outcome: &Outcome<'_>) -> Result<Vec<Figure>, StudyError> {
    let looks = looks::of(outcome.study);
    let mut figures = Vec::new();
    for form in &outcome.study.figures {
        let asked = outcome.plan.figure.as_ref();
        let is_wanted = asked.is_none_or(|asked| *asked == form.id || *asked == form.from);
        let Some(experiment) = outcome.study.experiment(&form.from).filter(|_| is_wanted) else { continue };
        if outcome.experiments.contains(&experiment) {
            let complain = |message| StudyError::Expression { place: format!("figure {}", form.id), message };
            let source = Source::new(outcome, form, experiment, &looks).map_err(complain)?;
            figures.extend(source.figure().map_err(complain)?);
        }
    }
    Ok(figures)
}

/// What the files of a figure are called: one of a paper has only a number.
pub(super) fn file_name(id: &str) -> String {
    match id.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("figure-{id}"),
        false => id.to_owned(),
    }
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
        let is_axis = !form.x.is_empty() && form.over.is_none();
        shown.extend(Some(form.x.as_str()).filter(|_| is_axis));
        if form.over.is_some() && (form.kind != Kind::Lines || experiment.has_axis(&form.x)) {
            return Err(complain("over needs lines whose x is not an axis".to_owned()));
        }
        check_axes(experiment, &shown, &form.at).map_err(complain)?;
        let mut names = expression_names(experiment);
        names.extend(form.over.as_ref().map(|_| form.x.clone()));
        let words = Words::new(study, core::slice::from_ref(&place), &names);
        if form.kind == Kind::Trace {
            let series = form.y.split(',').map(str::trim).filter(|name| !name.is_empty());
            let series = series.chain(form.points.iter().chain(&form.strokes).map(String::as_str));
            let series = series.chain(form.shade.as_deref());
            for name in series {
                if !experiment.probes.iter().any(|probe| probe.series.contains(&name)) {
                    return Err(complain(format!("no series \"{name}\"")));
                }
            }
            form.labels.values().try_for_each(|label| verify(label, &words)).map_err(complain)?;
            continue;
        }
        if let Some(over) = &form.over {
            verify(over, &words).map_err(complain)?;
        }
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
        if !experiment.has_axis(name) {
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
struct Source<'a> {
    outcome: &'a Outcome<'a>,
    form: &'a FigureForm,
    experiment: usize,
    reading: &'a [usize],
    looks: &'a Looks,
}

/// A curve's place on the axes that tell curves apart, and what it is called.
struct Curve {
    coordinates: Vec<(usize, usize)>,
    name: String,
    /// What gives it its colour, and how many curves of the figure before it have the same.
    after: String,
    variant: usize,
}

/// A value with its 95 % interval, if it has one.
type Told = (f64, Option<(f64, f64)>);

impl<'a> Source<'a> {
    fn new(
        outcome: &'a Outcome<'a>,
        form: &'a FigureForm,
        experiment: usize,
        looks: &'a Looks,
    ) -> Result<Self, String> {
        let reading = outcome.points.first().ok_or("nothing ran")?;
        Ok(Self { outcome, form, experiment, reading, looks })
    }

    fn figure(&self) -> Result<Option<Figure>, String> {
        let drawing: Option<Drawing> = match self.form.kind {
            Kind::Lines => lines::lines(self)?,
            Kind::Panels => lines::panels(self)?,
            Kind::Bars => bars::bars(self)?,
            Kind::Boxes => bars::boxes(self)?,
            Kind::Heat => bars::heat(self)?,
            Kind::Trace => trace::trace(self)?,
        };
        let id = &self.form.id;
        let name = file_name(id);
        let prefix = if name == *id { String::new() } else { format!("Figure {id}: ") };
        let title = format!("{prefix}{}", self.form.title);
        let caption = self.form.caption.clone();
        Ok(drawing.map(|drawing| Figure { name, title, caption, drawing }))
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
        self.named_curves(usize::MAX).into_iter().map(|(_, curve)| curve).collect()
    }

    /// The curves of small multiples, each with what its panel is called: the values on all axes but the first.
    fn curves_in_panels(&self) -> Vec<(String, Curve)> {
        self.named_curves(1)
    }

    /// The curves, of which the values on the first so many axes are the name; the values on the others stand before them.
    fn named_curves(&self, named_by: usize) -> Vec<(String, Curve)> {
        let axes: Vec<_> = self.form.curve.as_slice().iter().filter_map(|name| self.axis(name)).collect();
        let places: Vec<_> = axes.iter().map(|(_, axis)| self.outcome.plan.places(axis)).collect();
        let only_axes: Vec<&Axis> = axes.iter().map(|(_, axis)| *axis).collect();
        let mut curves: Vec<(String, Curve)> = Vec::new();
        for combination in product(&places) {
            let part = |((_, axis), &place): (&(usize, &Axis), &usize)| {
                let value = &axis.values[place];
                let is_name = matches!(value.value, Value::Text(_)) && axis.scale().is_none();
                if is_name {
                    value.label()
                } else {
                    format!("{} = {}", axis.name.replace('_', " "), value.label())
                }
            };
            let parts: Vec<String> = axes.iter().zip(&combination).map(part).collect();
            let (own, others) = parts.split_at(named_by.min(parts.len()));
            let name = if axes.is_empty() { self.form.y_name.clone() } else { own.join(", ") };
            let after = looks::named_after(self.form, &only_axes, &combination);
            let is_beside =
                |panel: &String, curve: &Curve| *panel == others.join(", ") && curve.after == after;
            let variant = curves.iter().filter(|(panel, curve)| is_beside(panel, curve)).count();
            let coordinates = axes.iter().map(|(place, _)| *place).zip(combination).collect();
            curves.push((others.join(", "), Curve { coordinates, name, after, variant }));
        }
        curves
    }

    fn look(&self, curve: &Curve) -> Look {
        self.looks.look(&curve.after).varied(curve.variant)
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
        let value = evaluate(&text, &self.view(scope))?;
        // The mean of those that came is none of all.
        let lacks = |value: &Value| matches!(value, Value::Sample(sample) if sample.values().iter().any(Option::is_none));
        let is_drawn = !self.outcome.study.whole_only || !lacks(&value);
        Ok(if is_drawn { value } else { Value::Unknown("not in all seeds".to_owned()) })
    }

    fn view<'b>(&'b self, scope: &'b Scope) -> View<'b> {
        let Outcome { study, plan, results, .. } = self.outcome;
        let view = View::new(study, plan, results, self.reading, core::slice::from_ref(&self.experiment));
        // A trace is of the first seed's run.
        View { scope: Some(scope), single: self.form.single || self.form.kind == Kind::Trace, ..view }
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

    /// Where a curve has points that are drawn: the names there, and the abscissa.
    fn abscissae(&self, curve: &Curve) -> Result<Vec<(Scope, f64)>, String> {
        let mut abscissae = Vec::new();
        if let Some(over) = &self.form.over {
            let scope = self.scope(curve, None)?;
            let Value::List(items) = evaluate(over, &self.view(&scope))? else { return Ok(Vec::new()) };
            for x in items.iter().filter_map(Value::as_number) {
                let mut scope = scope.clone();
                scope.bind(&self.form.x, x.into());
                abscissae.push((scope, x));
            }
        } else {
            for place in self.places() {
                let scope = self.scope(curve, Some(place))?;
                let x = self.abscissa(place, &scope)?;
                abscissae.push((scope, x));
            }
        }
        let mut drawn = Vec::new();
        for (scope, x) in abscissae {
            if self.is_drawn(&scope)? {
                drawn.push((scope, x));
            }
        }
        Ok(drawn)
    }

    /// Where a place of the abscissa is drawn.
    fn abscissa(&self, place: usize, scope: &Scope) -> Result<f64, String> {
        let value = match &self.form.x_value {
            Some(expression) => scope.value(expression)?,
            None => match self.axis(&self.form.x) {
                Some((_, axis)) => match axis.scale() {
                    Some(scale) => scale.values[place].into(),
                    None => axis.values[place].value.clone(),
                },
                None => return Err("it has no x".to_owned()),
            },
        };
        Ok(value.as_number().unwrap_or(place as f64))
    }

    /// What stands beside the abscissa: what the study says, or else the axis.
    fn x_label(&self) -> String {
        let (said, form) = (&self.form.x_axis.label, self.form);
        match self.axis(&form.x) {
            Some((_, axis)) if said.is_empty() && form.x_value.is_none() => axis.label(),
            _ if said.is_empty() => form.x.replace('_', " "),
            _ => said.clone(),
        }
    }

    /// What stands beside the ordinate: what the study says, or else what is drawn.
    fn y_label(&self) -> String {
        let said = &self.form.y_axis.label;
        if said.is_empty() { self.form.y.clone() } else { said.clone() }
    }
}

/// A value as it is drawn; none if it is unknown.
pub(super) fn told(value: &Value) -> Option<Told> {
    match value {
        Value::Sample(sample) => told(&sample.mean_value()),
        Value::Estimate(estimate) => {
            Some((estimate.point, estimate.spread(claims::LEVEL))).filter(|(point, _)| point.is_finite())
        }
        other => other.as_number().filter(|number| number.is_finite()).map(|number| (number, None)),
    }
}
