//! Lines over an axis, with 95 % intervals.

use super::{Curve, Source, told};
use crate::claims::Value;
use crate::drawing::{self, Chart, Drawing, Look};
use crate::statistics::Interval;

pub(super) fn lines(source: &Source<'_>) -> Result<Option<Drawing>, String> {
    let curves: Vec<Curve> = source.curves();
    Ok(chart(source, &curves.iter().collect::<Vec<_>>())?.map(Chart::drawing))
}

/// Lines over an axis, in a panel for each combination of values of the curves' axes beside the first.
pub(super) fn panels(source: &Source<'_>) -> Result<Option<Drawing>, String> {
    let mut all: Vec<(String, Vec<Curve>)> = Vec::new();
    for (name, curve) in source.curves_in_panels() {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, curves)) => curves.push(curve),
            None => all.push((name, vec![curve])),
        }
    }
    let mut charts = Vec::new();
    for (name, curves) in &all {
        let chart = chart(source, &curves.iter().collect::<Vec<_>>())?;
        charts.extend(chart.map(|chart| (name.clone(), chart)));
    }
    Ok((!charts.is_empty()).then(|| drawing::panels(charts)))
}

/// A chart of these curves; none if nothing of them is known.
fn chart(source: &Source<'_>, all: &[&Curve]) -> Result<Option<Chart>, String> {
    let form = source.form;
    let mut chart = Chart::new(&source.x_label(), &source.y_label());
    chart = if form.x_axis.log { chart.log_x() } else { chart };
    chart = if form.y_axis.log { chart.log_y() } else { chart };
    if let (Some(from), Some(to)) = (form.x_axis.from, form.x_axis.to) {
        chart = chart.between_x(from..to);
    }
    if let (Some(from), Some(to)) = (form.y_axis.from, form.y_axis.to) {
        chart = chart.between_y(from..to);
    }
    let mut drawn = 0;
    for &curve in all.iter().filter(|_| !form.y.is_empty()) {
        let look = source.look(curve);
        if form.each {
            for (seed, points) in runs(source, curve)?.into_iter().enumerate() {
                drawn += 1;
                let is_one_of_many = all.len() > 1;
                let name = if is_one_of_many && seed == 0 { curve.name.as_str() } else { "" };
                let of_seed = Look { dashes: None, ..Look::numbered(seed) };
                chart = chart.trace(name, if is_one_of_many { look } else { of_seed }, points);
            }
            continue;
        }
        let points = points(source, curve, &form.y)?;
        if !points.is_empty() {
            drawn += 1;
            chart = chart.measured(&curve.name, look, &points);
        }
    }
    for also in &form.also {
        let Some(first) = all.first() else { break };
        let points = points(source, first, &also.y)?;
        drawn += usize::from(!points.is_empty());
        chart = chart.measured(&also.name, source.looks.look(&also.name), &points);
    }
    let chart = with_bounds(chart, source, all)?;
    Ok((drawn > 0).then_some(chart))
}

/// Abscissa and ordinate.
type Point = (f64, f64);

/// The chart with its bound, if there is one: once where it is that of all curves. Where it is not, the bound of a single curve has that
/// curve's colour, and one of several is grey.
fn with_bounds(mut chart: Chart, source: &Source<'_>, all: &[&Curve]) -> Result<Chart, String> {
    let Some(bound) = &source.form.bound else { return Ok(chart) };
    let mut lines: Vec<(Vec<Point>, Vec<&Curve>)> = Vec::new();
    for &curve in all {
        let line: Vec<_> = points(source, curve, bound)?.into_iter().map(|(x, y)| (x, y.mean)).collect();
        match lines.iter_mut().find(|(known, _)| *known == line) {
            Some((_, curves)) => curves.push(curve),
            None if line.is_empty() => {}
            None => lines.push((line, vec![curve])),
        }
    }
    let name = source.form.bound_name.as_deref().unwrap_or("bound");
    if lines.len() == 1 {
        return Ok(lines.into_iter().fold(chart, |chart, (line, _)| chart.calculated(name, line)));
    }
    let listed = format!("{name}, in the colour of its curve");
    for (number, (line, curves)) in lines.into_iter().enumerate() {
        let look = match curves[..] {
            [one] => Look { colour: source.look(one).colour, ..Look::calculated(0) },
            _ => Look::calculated(number),
        };
        let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
        chart = chart.bound_among(&listed, &format!("{name} of {}", names.join(", ")), look, line);
    }
    Ok(chart)
}

/// The points of a curve that are known, as far as its axes can show them.
fn points(source: &Source<'_>, curve: &Curve, expression: &str) -> Result<Vec<(f64, Interval)>, String> {
    let mut points = Vec::new();
    for (scope, x) in source.abscissae(curve)? {
        if let Some((mean, interval)) = told(&source.value(expression, &scope)?) {
            let (low, high) = interval.unwrap_or((mean, mean));
            let is_shown = |value: f64, log: bool| !log || value > 0.0;
            if is_shown(x, source.form.x_axis.log) && is_shown(mean, source.form.y_axis.log) {
                points.push((x, Interval { mean, low, high, n: 0 }));
            }
        }
    }
    // A line goes from left to right, in whatever order the axis names its values.
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Ok(points)
}

/// The points of every seed's run.
fn runs(source: &Source<'_>, curve: &Curve) -> Result<Vec<Vec<(f64, f64)>>, String> {
    let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
    for (scope, x) in source.abscissae(curve)? {
        let Value::Sample(sample) = source.value(&source.form.y, &scope)? else { continue };
        runs.resize(runs.len().max(sample.values().len()), Vec::new());
        for (run, value) in runs.iter_mut().zip(sample.values()) {
            run.extend(value.filter(|value| value.is_finite()).map(|value| (x, value)));
        }
    }
    Ok(runs)
}
