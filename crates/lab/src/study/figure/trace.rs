//! What single runs recorded, over time, with blockages shaded.

use super::{Source, looks, told};
use crate::drawing::{Chart, Drawing, Look, thin};
use crate::study::results::Place;

pub(super) fn trace(source: &Source<'_>) -> Result<Option<Drawing>, String> {
    let form = source.form;
    let mut chart = Chart::new(&form.x_axis.label, &form.y_axis.label);
    let names: Vec<&str> = form.y.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let count = names.len() + form.points.len() + form.strokes.len();
    let mut drawn = Vec::new();
    for curve in source.curves() {
        let experiment = source.experiment();
        let coordinates = experiment.axes.iter().enumerate().map(|(place, axis)| {
            let on_curve = curve.coordinates.iter().find(|(axis, _)| *axis == place).map(|(_, at)| *at);
            let fixed = || axis.place(&crate::study::axis::plain(form.at.get(&axis.name)?).ok()?);
            on_curve.or_else(fixed).unwrap_or(0)
        });
        let reading = experiment.projected(source.outcome.study, source.reading);
        let place = Place { reading, experiment: source.experiment, coordinates: coordinates.collect() };
        let Some(record) = source.outcome.results.cell(&place).and_then(|cell| cell.first()) else {
            continue;
        };
        let called = |series: &str| match (curve.name.is_empty(), count) {
            (true, _) => series.replace('_', " "),
            (false, 1) => curve.name.clone(),
            (false, _) => format!("{}, {}", curve.name, series.replace('_', " ")),
        };
        let look = |series: &str| -> Look {
            let name = looks::series_name(&curve.after, series, count);
            source.looks.look(&name).varied(curve.variant)
        };
        for &name in &names {
            let points = clipped(record.series(name), form.x_axis.from, form.x_axis.to);
            drawn.extend_from_slice(&points);
            chart = chart.line(&called(name), look(name), thin(points));
        }
        for name in &form.points {
            let points = cut(record.series(name), form.x_axis.from, form.x_axis.to);
            drawn.extend_from_slice(&points);
            chart = chart.points(&called(name), look(name), thin(points));
        }
        for name in &form.strokes {
            let ends = shown(record.series(name), form.x_axis.from, form.x_axis.to);
            drawn.extend_from_slice(&ends);
            chart = chart.strokes(&called(name), look(name), &ends);
        }
        if let Some(shade) = &form.shade {
            let shaded: Vec<_> = record.series(shade).iter().map(|&(from, to)| from..to).collect();
            chart = chart.shaded(shaded);
        }
    }
    let (low, high) = drawn.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &(_, y)| (a.min(y), b.max(y)));
    if form.y_axis.fit && low < high {
        let margin = MARGIN * (high - low);
        chart = chart.between_y(low - margin..high + 2.0 * margin);
    }
    let labels = labels(source, &drawn)?;
    chart = chart.words(&labels);
    if let (Some(from), Some(to)) = (form.x_axis.from, form.x_axis.to) {
        chart = chart.between_x(from..to);
    }
    if let (Some(from), Some(to)) = (form.y_axis.from, form.y_axis.to) {
        chart = chart.between_y(from..to);
    }
    Ok((!drawn.is_empty()).then(|| chart.drawing()))
}

/// How far a fitted axis goes beyond what it shows, as a part of that.
const MARGIN: f64 = 0.08;

/// A word and where it stands.
type Label<'a> = (&'a str, f64, f64);

/// The words of a figure, each at its abscissa and as high as the nearest of `points`; those at a known abscissa.
fn labels<'a>(source: &Source<'a>, points: &[(f64, f64)]) -> Result<Vec<Label<'a>>, String> {
    let mut labels = Vec::new();
    let Some(curve) = source.curves().into_iter().next() else { return Ok(labels) };
    let scope = source.scope(&curve, None)?;
    for (text, expression) in &source.form.labels {
        let Some((x, _)) = told(&source.value(expression, &scope)?) else { continue };
        let nearest = points.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs()));
        labels.extend(nearest.map(|&(_, y)| (text.as_str(), x, y)));
    }
    Ok(labels)
}

/// The ends of the strokes of which a part is between two abscissae.
fn shown(ends: &[(f64, f64)], from: Option<f64>, to: Option<f64>) -> Vec<(f64, f64)> {
    let is_shown = |stroke: &&[(f64, f64)]| {
        to.is_none_or(|to| stroke[0].0 <= to) && from.is_none_or(|from| stroke[1].0 >= from)
    };
    ends.chunks_exact(2).filter(is_shown).flatten().copied().collect()
}

/// The points between two abscissae.
fn cut(points: &[(f64, f64)], from: Option<f64>, to: Option<f64>) -> Vec<(f64, f64)> {
    let is_shown = |(x, _): &&(f64, f64)| from.is_none_or(|from| *x >= from) && to.is_none_or(|to| *x <= to);
    points.iter().filter(is_shown).copied().collect()
}

/// The part of a line between two abscissae, up to both.
fn clipped(points: &[(f64, f64)], from: Option<f64>, to: Option<f64>) -> Vec<(f64, f64)> {
    let crossing = |edge: f64| {
        let pair = points.windows(2).find(|pair| pair[0].0 < edge && edge < pair[1].0)?;
        let part = (edge - pair[0].0) / (pair[1].0 - pair[0].0);
        Some((edge, pair[0].1 + part * (pair[1].1 - pair[0].1)))
    };
    let mut line: Vec<_> = from.and_then(crossing).into_iter().collect();
    line.extend(cut(points, from, to));
    line.extend(to.and_then(crossing));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_on_to_the_edges() {
        let line = [(0.0, 0.0), (4.0, 8.0), (8.0, 8.0)];
        assert_eq!(clipped(&line, Some(1.0), Some(6.0)), [(1.0, 2.0), (4.0, 8.0), (6.0, 8.0)]);
        assert_eq!(clipped(&line, Some(5.0), Some(6.0)), [(5.0, 8.0), (6.0, 8.0)]);
        assert_eq!(clipped(&line, Some(4.0), None), [(4.0, 8.0), (8.0, 8.0)]);
        assert_eq!(clipped(&line, Some(9.0), None), []);
    }

    #[test]
    fn strokes_outside_the_abscissae_are_not_drawn() {
        let ends = [(0.0, 1.0), (1.0, 1.0), (1.0, 2.0), (3.0, 2.0), (8.0, 3.0), (9.0, 3.0)];
        assert_eq!(shown(&ends, Some(2.0), Some(7.0)), [(1.0, 2.0), (3.0, 2.0)]);
        assert_eq!(shown(&ends, None, Some(1.0)), ends[..4]);
        assert_eq!(shown(&ends, None, None), ends);
    }
}
