//! Bars, boxes and heat maps: something drawn for each value of an axis.

use std::sync::Arc;

use kuva::plot::{BarPlot, BoxPlot, ColorMap, Heatmap};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::super::axis::Axis;
use super::{Curve, Source, told};
use crate::claims::Value;
use crate::drawing::{
    Cells, Drawing, Entry, Look, Row, Sample, Sheet, Size, from_zero, tell_apart_by_mark, with_room_for,
};

/// A group of bars for each value of the abscissa: the curves, what stands beside them, and the bound. A mark above each bar tells
/// it from the others without colour; the bound is the bar without one.
pub(super) fn bars(source: &Source<'_>) -> Result<Option<Drawing>, String> {
    let form = source.form;
    let curves = source.curves();
    let (bars, marked) = bars_of(source, &curves);
    let (mut groups, mut rows, mut range) = (Vec::new(), Vec::new(), (0.0_f64, 0.0_f64));
    let (mut marks, mut whiskers) = (Vec::new(), Vec::new());
    for place in source.places() {
        let Some(first) = curves.first() else { break };
        let scope = source.scope(first, Some(place))?;
        if !source.is_drawn(&scope)? {
            continue;
        }
        let mut values = Vec::new();
        for curve in &curves {
            values.push(told(&source.value(&form.y, &source.scope(curve, Some(place))?)?));
        }
        if values.iter().all(Option::is_none) {
            continue;
        }
        for expression in form.also.iter().map(|also| &also.y).chain(&form.bound) {
            values.push(told(&source.value(expression, &scope)?));
        }
        let group = label(source, place);
        for ((name, _), value) in bars.iter().zip(&values) {
            let row = value
                .map(|(value, interval)| Row { interval, ..Row::new(name, value_at(source, place), value) });
            rows.extend(row);
        }
        let middles = middles(groups.len(), bars.len());
        for ((middle, (_, look)), value) in middles.zip(&bars).zip(&values).take(marked) {
            let Some((value, interval)) = *value else { continue };
            // The mark is above all that is drawn of its bar.
            let (low, high) = interval.unwrap_or((value, value));
            range = (range.0.min(low), range.1.max(high));
            marks.push((*look, middle, high));
            whiskers.extend(interval.filter(|(low, high)| high > low).map(|(low, high)| (middle, low, high)));
        }
        let values = values.iter().map(|value| value.map_or(0.0, |(value, _)| value));
        range.1 = values.clone().fold(range.1, f64::max);
        let values: Vec<_> = values.zip(&bars).map(|(value, (_, look))| (value, look.colour)).collect();
        groups.push((group, values));
    }
    let samples = (0..).map(|place| if place < marked { Sample::MarkedArea } else { Sample::Area });
    let legend: Vec<Entry> =
        bars.iter().zip(samples).map(|((name, look), sample)| Entry::new(name, *look, sample)).collect();
    let axes = Axes::of(source, range, groups.iter().map(|(name, _)| name.clone()).collect());
    Ok((!rows.is_empty()).then(|| {
        Drawing::new(axes.labels(), rows, move |size| {
            let plot =
                groups.iter().cloned().fold(BarPlot::new(), |plot, (name, bars)| plot.with_group(name, bars));
            axes.sheet(size, vec![Plot::Bar(plot)])
                .legend(legend.clone())
                .bar_marks(marks.clone())
                .whiskers(whiskers.clone())
                .svg(size)
        })
    }))
}

/// Name and look of each bar in a group, and how many have marks: all but the bound.
fn bars_of<'a>(source: &Source<'a>, curves: &'a [Curve]) -> (Vec<(&'a str, Look)>, usize) {
    let form = source.form;
    let curve_names = curves.iter().map(|curve| curve.name.as_str());
    let names = curve_names.chain(form.also.iter().map(|also| also.name.as_str()));
    let curve_looks = curves.iter().map(|curve| source.look(curve));
    let mut looks: Vec<Look> =
        curve_looks.chain(form.also.iter().map(|also| source.looks.look(&also.name))).collect();
    tell_apart_by_mark(&mut looks);
    let marked = looks.len();
    let mut bars: Vec<(&str, Look)> = names.zip(looks).collect();
    let bound_name = form.bound_name.as_deref().unwrap_or("bound");
    bars.extend(form.bound.as_ref().map(|_| (bound_name, Look::calculated(0))));
    (bars, marked)
}

/// The abscissae of the middles of a group's bars, as `kuva` places them: group `number` about `number + 1`, its bars together
/// as wide as it draws them.
fn middles(number: usize, bars: usize) -> impl Iterator<Item = f64> {
    let width = BarPlot::new().width;
    let left = number as f64 + 1.0 - width / 2.0;
    (0..bars).map(move |bar| left + width * (bar as f64 + 0.5) / bars as f64)
}

/// Quartiles and extremes over the seeds for each value of the abscissa and each curve.
pub(super) fn boxes(source: &Source<'_>) -> Result<Option<Drawing>, String> {
    let (mut all, mut rows, mut most) = (Vec::new(), Vec::new(), 0.0_f64);
    let curves = source.curves();
    for curve in &curves {
        let mut groups = Vec::new();
        for place in source.places() {
            let scope = source.scope(curve, Some(place))?;
            if let Value::Sample(sample) = source.value(&source.form.y, &scope)? {
                let values: Vec<f64> = sample.values().iter().flatten().copied().collect();
                if !values.is_empty() {
                    let (at, place) = (value_at(source, place), label(source, place));
                    let name = match curves.len() {
                        1 => place.clone(),
                        _ => format!("{} {place}", curve.name),
                    };
                    rows.extend(values.iter().map(|value| Row::new(&curve.name, at.as_str(), *value)));
                    most = values.iter().copied().fold(most, f64::max);
                    groups.push((name, values));
                }
            }
        }
        all.push((source.look(curve).colour, groups));
    }
    let words = all.iter().flat_map(|(_, groups)| groups).map(|(name, _)| name.clone()).collect();
    let axes = Axes::of(source, (0.0, most), words);
    let plot = |(colour, groups): &(&'static str, Vec<(String, Vec<f64>)>)| {
        let empty = BoxPlot::new().with_color(*colour);
        Plot::Box(groups.iter().cloned().fold(empty, |plot, (name, values)| plot.with_group(name, values)))
    };
    Ok((!rows.is_empty()).then(|| {
        Drawing::new(axes.labels(), rows, move |size| {
            axes.sheet(size, all.iter().map(plot).collect()).svg(size)
        })
    }))
}

/// A colour for each value of the abscissa, across, and of the curves, upwards.
pub(super) fn heat(source: &Source<'_>) -> Result<Option<Drawing>, String> {
    let (mut cells, mut names, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let upwards = Upwards::of(source);
    for curve in source.curves() {
        let mut row = Vec::new();
        for place in source.places() {
            let scope = source.scope(&curve, Some(place))?;
            let value = match source.is_drawn(&scope)? {
                true => told(&source.value(&source.form.y, &scope)?),
                false => None,
            };
            rows.extend(value.map(|(value, interval)| Row {
                interval,
                row: Some([upwards.name(&curve), upwards.label.clone()]),
                ..Row::new(&curve.name, value_at(source, place), value)
            }));
            row.push(value.map_or(f64::NAN, |(value, _)| value));
        }
        if row.iter().any(|value| !value.is_nan()) {
            cells.push(row);
            names.push(upwards.name(&curve));
        }
    }
    if cells.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = source.places().into_iter().map(|place| value_at(source, place)).collect();
    let (x, y) = (source.x_label(), upwards.label);
    // The colour is the value; where the study does not say of what, a figure's title does.
    let label = source.form.y_axis.label.clone();
    let value = if label.is_empty() { source.form.title.clone() } else { label.clone() };
    Ok(Some(Drawing::new([x.clone(), value], rows, move |size| {
        let shades = ColorMap::Custom(Arc::new(shade));
        let plot = Heatmap::new().with_data(cells.clone()).with_values().with_color_map(shades);
        let plots = vec![Plot::Heatmap(plot)];
        let layout = Layout::auto_from_plots(&plots)
            .with_x_label(x.clone())
            .with_y_label(y.clone())
            .with_x_categories(words.clone())
            .with_y_categories(names.clone());
        let beside_bar = Size { width: size.width - BAR_OF_COLOURS, ..size };
        let layout = with_room_for(layout, beside_bar, words.iter().map(String::as_str));
        let cells = Cells { ink: INK_ON_CELLS, columns: words.len(), label: label.clone() };
        Sheet::new(plots, layout).cells(cells).svg(size)
    })))
}

/// What a bar of colours takes of a drawing's width, with its words.
const BAR_OF_COLOURS: f64 = 120.0;

/// The axis along which a heat map's rows stand, if it is one.
struct Upwards<'a> {
    axis: Option<&'a Axis>,
    label: String,
}

impl<'a> Upwards<'a> {
    fn of(source: &Source<'a>) -> Self {
        let axes: Vec<_> = source.form.curve.as_slice().iter().filter_map(|name| source.axis(name)).collect();
        let label = axes.iter().map(|(_, axis)| axis.label()).collect::<Vec<_>>().join(", ");
        Self { axis: if let [(_, axis)] = axes[..] { Some(axis) } else { None }, label }
    }

    /// What stands at the row of a curve: the value on its axis without what the axis says, or else the curve's name.
    fn name(&self, curve: &Curve) -> String {
        match (self.axis, &curve.coordinates[..]) {
            (Some(axis), &[(_, place)]) => axis.tick(place),
            _ => curve.name.clone(),
        }
    }
}

/// The values in cells, which are light on a dark page too.
const INK_ON_CELLS: &str = "#111111";

/// The colour of a share of the greatest value: from sand to green, so light that the value in it can be read.
fn shade(share: f64) -> String {
    let mix = |from: f64, to: f64| (from + (to - from) * share.clamp(0.0, 1.0)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(250.0, 87.0), mix(228.0, 187.0), mix(204.0, 138.0))
}

fn label(source: &Source<'_>, place: usize) -> String {
    source.axis(&source.form.x).map_or_else(String::new, |(_, axis)| match &axis.values[place].value {
        Value::Text(text) => text.clone(),
        value => format!("{} {value}", axis.name),
    })
}

/// The value of the abscissa with this place, as a figure's data has it: its unit stands in the axis's label.
fn value_at(source: &Source<'_>, place: usize) -> String {
    source.axis(&source.form.x).map_or_else(String::new, |(_, axis)| axis.tick(place))
}

/// The axes around bars and boxes.
struct Axes {
    x: String,
    y: String,
    log: bool,
    /// The least of zero and what is drawn, and the greatest.
    range: (f64, f64),
    /// What stands below each bar or box.
    words: Vec<String>,
}

impl Axes {
    fn of(source: &Source<'_>, range: (f64, f64), words: Vec<String>) -> Self {
        Self { x: source.x_label(), y: source.y_label(), log: source.form.y_axis.log, range, words }
    }

    fn labels(&self) -> [String; 2] {
        [self.x.clone(), self.y.clone()]
    }

    fn sheet(&self, size: Size, plots: Vec<Plot>) -> Sheet {
        let layout = Layout::auto_from_plots(&plots).with_x_label(self.x.clone());
        let layout = match self.log {
            true => layout.with_y_label(self.y.clone()).with_log_y(),
            false => from_zero(layout, size, &self.y, self.range),
        };
        Sheet::new(plots, with_room_for(layout, size, self.words.iter().map(String::as_str)))
    }
}
