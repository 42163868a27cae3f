//! What single runs recorded, over time, with blockages shaded.

use super::Drawing;
use crate::report::{Curves, thin};
use crate::study::results::Place;

pub(super) fn trace(drawing: &Drawing<'_>) -> Result<Option<String>, String> {
    let form = drawing.form;
    let mut curves = Curves::new(&form.x_axis.label, &form.y_axis.label);
    let names: Vec<&str> = form.y.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let (mut colour, mut drawn, mut highest) = (0, false, 0.0_f64);
    for curve in drawing.curves() {
        let experiment = drawing.experiment();
        let coordinates = experiment.axes.iter().enumerate().map(|(place, axis)| {
            let on_curve = curve.coordinates.iter().find(|(axis, _)| *axis == place).map(|(_, at)| *at);
            let fixed = || axis.place(&crate::study::axis::plain(form.at.get(&axis.name)?).ok()?);
            on_curve.or_else(fixed).unwrap_or(0)
        });
        let reading = experiment.projected(drawing.outcome.study, drawing.reading);
        let place = Place { reading, experiment: drawing.experiment, coordinates: coordinates.collect() };
        let Some(record) = drawing.outcome.results.cell(&place).and_then(|cell| cell.first()) else {
            continue;
        };
        let called = |series: &str| match (
            curve.name.is_empty(),
            names.len() + form.points.len() + form.strokes.len(),
        ) {
            (true, _) => series.replace('_', " "),
            (false, 1) => curve.name.clone(),
            (false, _) => format!("{}, {}", curve.name, series.replace('_', " ")),
        };
        for &name in &names {
            let points = cut(record.series(name), form.x_axis.from, form.x_axis.to);
            highest = points.iter().map(|(_, y)| *y).fold(highest, f64::max);
            drawn |= !points.is_empty();
            curves = curves.line(&called(name), colour, thin(points));
            colour += 1;
        }
        for name in &form.points {
            let points = cut(record.series(name), form.x_axis.from, form.x_axis.to);
            highest = points.iter().map(|(_, y)| *y).fold(highest, f64::max);
            drawn |= !points.is_empty();
            curves = curves.points(&called(name), colour, thin(points));
            colour += 1;
        }
        for name in &form.strokes {
            let ends = record.series(name);
            highest = ends.iter().map(|(_, y)| *y).fold(highest, f64::max);
            drawn |= !ends.is_empty();
            curves = curves.strokes(&called(name), colour, ends);
            colour += 1;
        }
        if let Some(shade) = &form.shade {
            let shaded: Vec<_> = record.series(shade).iter().map(|&(from, to)| from..to).collect();
            curves = curves.shaded(&shaded);
        }
    }
    if let (Some(from), Some(to)) = (form.x_axis.from, form.x_axis.to) {
        curves = curves.between_x(from..to);
    }
    if let (Some(from), Some(to)) = (form.y_axis.from, form.y_axis.to) {
        curves = curves.between_y(from..to);
    }
    Ok(drawn.then(|| curves.svg()))
}

/// The points between two abscissae.
fn cut(points: &[(f64, f64)], from: Option<f64>, to: Option<f64>) -> Vec<(f64, f64)> {
    let is_shown = |(x, _): &&(f64, f64)| from.is_none_or(|from| *x >= from) && to.is_none_or(|to| *x <= to);
    points.iter().filter(is_shown).copied().collect()
}
