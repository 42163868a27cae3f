//! Lines over an axis, with 95 % intervals.

use super::{Drawing, told};
use crate::claims::Value;
use crate::report::Curves;
use crate::statistics::Interval;

pub(super) fn lines(drawing: &Drawing<'_>) -> Result<Option<String>, String> {
    let form = drawing.form;
    let mut curves = Curves::new(&form.x_axis.label, &form.y_axis.label);
    curves = if form.x_axis.log { curves.log_x() } else { curves };
    curves = if form.y_axis.log { curves.log_y() } else { curves };
    if let (Some(from), Some(to)) = (form.x_axis.from, form.x_axis.to) {
        curves = curves.between_x(from..to);
    }
    if let (Some(from), Some(to)) = (form.y_axis.from, form.y_axis.to) {
        curves = curves.between_y(from..to);
    }
    let all = drawing.curves();
    let mut drawn = 0;
    for (colour, curve) in all.iter().enumerate().filter(|_| !form.y.is_empty()) {
        if form.each {
            for (seed, points) in runs(drawing, curve)?.into_iter().enumerate() {
                drawn += 1;
                curves = curves.trace(if all.len() > 1 { colour } else { seed }, points);
            }
            continue;
        }
        let points = points(drawing, curve, &form.y)?;
        if !points.is_empty() {
            drawn += 1;
            curves = curves.measured(&curve.name, colour, &points);
        }
    }
    for (number, also) in form.also.iter().enumerate() {
        let Some(first) = all.first() else { break };
        let points = points(drawing, first, &also.y)?;
        drawn += usize::from(!points.is_empty());
        curves = curves.measured(&also.name, all.len() + number, &points);
    }
    if let Some(bound) = &form.bound {
        let mut lines: Vec<Vec<(f64, f64)>> = Vec::new();
        for curve in &all {
            let line: Vec<_> = points(drawing, curve, bound)?.into_iter().map(|(x, y)| (x, y.mean)).collect();
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let name = form.bound_name.as_deref().unwrap_or("bound");
        for (number, line) in lines.into_iter().enumerate() {
            curves = curves.calculated(if number == 0 { name } else { "" }, line);
        }
    }
    Ok((drawn > 0).then(|| curves.svg()))
}

/// The points of a curve that are known.
fn points(
    drawing: &Drawing<'_>,
    curve: &super::Curve,
    expression: &str,
) -> Result<Vec<(f64, Interval)>, String> {
    let mut points = Vec::new();
    for (scope, x) in drawing.abscissae(curve)? {
        if let Some((mean, interval)) = told(&drawing.value(expression, &scope)?) {
            let (low, high) = interval.unwrap_or((mean, mean));
            let is_positive = |value: f64, log: bool| !log || value > 0.0;
            if is_positive(x, drawing.form.x_axis.log) && is_positive(low, drawing.form.y_axis.log) {
                points.push((x, Interval { mean, low, high, n: 0 }));
            } else if is_positive(x, drawing.form.x_axis.log) && is_positive(mean, drawing.form.y_axis.log) {
                points.push((x, Interval { mean, low: mean, high: mean, n: 0 }));
            }
        }
    }
    Ok(points)
}

/// The points of every seed's run.
fn runs(drawing: &Drawing<'_>, curve: &super::Curve) -> Result<Vec<Vec<(f64, f64)>>, String> {
    let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
    for (scope, x) in drawing.abscissae(curve)? {
        let Value::Sample(sample) = drawing.value(&drawing.form.y, &scope)? else { continue };
        runs.resize(runs.len().max(sample.values().len()), Vec::new());
        for (run, value) in runs.iter_mut().zip(sample.values()) {
            run.extend(value.filter(|value| value.is_finite()).map(|value| (x, value)));
        }
    }
    Ok(runs)
}
