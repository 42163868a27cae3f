//! One look for each scheme throughout a study.

use super::super::Study;
use super::super::axis::{Axis, product};
use crate::claims::Value;
use crate::drawing::Looks;
use crate::study::experiment::Experiment;
use crate::study::form::{FigureForm, Kind};

/// Looks for all that curves of the study's figures are called after, whatever of it is drawn.
pub(super) fn of(study: &Study) -> Looks {
    let named = |form: &FigureForm| {
        let experiment = study.experiment(&form.from).map(|place| &study.experiments[place]);
        experiment.map(|experiment| names(form, experiment))
    };
    Looks::of(&study.figures.iter().filter_map(named).collect::<Vec<_>>())
}

/// What the curves of a figure are called after, in their order.
fn names(form: &FigureForm, experiment: &Experiment) -> Vec<String> {
    let mut names = Vec::new();
    let axes = curve_axes(form, experiment);
    let all: Vec<Vec<usize>> = axes.iter().map(|axis| (0..axis.values.len()).collect()).collect();
    for combination in product(&all) {
        let curve = named_after(form, &axes, &combination);
        if form.kind == Kind::Trace {
            let series = form.y.split(',').map(str::trim).filter(|name| !name.is_empty());
            let series: Vec<&str> =
                series.chain(form.points.iter().chain(&form.strokes).map(String::as_str)).collect();
            names.extend(series.iter().map(|name| series_name(&curve, name, series.len())));
        } else {
            names.push(curve);
        }
    }
    names.extend(form.also.iter().map(|also| also.name.clone()));
    names.dedup();
    names
}

/// The axes that tell a figure's curves apart.
pub(super) fn curve_axes<'a>(form: &FigureForm, experiment: &'a Experiment) -> Vec<&'a Axis> {
    let axis = |name: &String| experiment.axes.iter().find(|axis| axis.name == *name);
    form.curve.as_slice().iter().filter_map(axis).collect()
}

/// What gives a curve its colour: its value on the first axis of names, such as a scheme or protocol; where there are numbers
/// only, all of them.
pub(super) fn named_after(form: &FigureForm, axes: &[&Axis], combination: &[usize]) -> String {
    let values =
        axes.iter().zip(combination).map(|(axis, &place)| (axis.name.as_str(), &axis.values[place].value));
    let first = values.clone().find_map(|(_, value)| match value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    let all = || values.map(|(axis, value)| format!("{axis} = {value}")).collect::<Vec<_>>().join(", ");
    first.unwrap_or_else(|| if axes.is_empty() { form.y_name.clone() } else { all() })
}

/// What a series of a curve is called after: the curve, or itself where a curve has several or no name.
pub(super) fn series_name(curve: &str, series: &str, count: usize) -> String {
    if curve.is_empty() || count > 1 { series.replace('_', " ") } else { curve.to_owned() }
}
