//! Bars, boxes and heat maps: one mark for each value of an axis.

use std::sync::Arc;

use kuva::plot::legend::LegendPosition;
use kuva::plot::{BarPlot, BoxPlot, ColorMap, Heatmap};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::{Drawing, told};
use crate::claims::Value;
use crate::report::{BOUND_COLOUR, COLOURS, draw};

/// A group of bars for each value of the abscissa: the curves, what stands beside them, and the bound.
pub(super) fn bars(drawing: &Drawing<'_>) -> Result<Option<String>, String> {
    let form = drawing.form;
    let curves = drawing.curves();
    let mut legend: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    legend.extend(form.also.iter().map(|also| also.name.as_str()));
    legend.extend(form.bound.as_ref().map(|_| form.bound_name.as_deref().unwrap_or("bound")));
    let (mut plot, mut drawn) = (BarPlot::new(), 0);
    for place in drawing.places() {
        let (mut values, mut known) = (Vec::new(), false);
        if !drawing.is_drawn(&drawing.scope(&curves[0], Some(place))?)? {
            continue;
        }
        for (colour, curve) in curves.iter().enumerate() {
            let scope = drawing.scope(curve, Some(place))?;
            let value = told(&drawing.value(&form.y, &scope)?);
            known |= value.is_some();
            values.push((value.map_or(0.0, |(value, _)| value), COLOURS[colour % COLOURS.len()]));
        }
        let Some(first) = curves.first() else { break };
        let scope = drawing.scope(first, Some(place))?;
        for (number, also) in form.also.iter().enumerate() {
            let value = told(&drawing.value(&also.y, &scope)?).map_or(0.0, |(value, _)| value);
            values.push((value, COLOURS[(curves.len() + number) % COLOURS.len()]));
        }
        if let Some(bound) = &form.bound {
            values.push((told(&drawing.value(bound, &scope)?).map_or(0.0, |(value, _)| value), BOUND_COLOUR));
        }
        if known {
            drawn += 1;
            plot = plot.with_group(label(drawing, place), values);
        }
    }
    let plots = vec![Plot::Bar(plot.with_legend(legend))];
    Ok((drawn > 0).then(|| finish(drawing, plots)))
}

/// Quartiles and extremes over the seeds for each value of the abscissa and each curve.
pub(super) fn boxes(drawing: &Drawing<'_>) -> Result<Option<String>, String> {
    let (mut plots, mut drawn) = (Vec::new(), 0);
    let curves = drawing.curves();
    for (colour, curve) in curves.iter().enumerate() {
        let mut plot = BoxPlot::new().with_color(COLOURS[colour % COLOURS.len()]);
        for place in drawing.places() {
            let scope = drawing.scope(curve, Some(place))?;
            if let Value::Sample(sample) = drawing.value(&drawing.form.y, &scope)? {
                let values: Vec<f64> = sample.values().iter().flatten().copied().collect();
                if !values.is_empty() {
                    let name = match curves.len() {
                        1 => label(drawing, place),
                        _ => format!("{} {}", curve.name, label(drawing, place)),
                    };
                    plot = plot.with_group(name, values);
                    drawn += 1;
                }
            }
        }
        plots.push(Plot::Box(plot));
    }
    Ok((drawn > 0).then(|| finish(drawing, plots)))
}

/// A colour for each value of the abscissa, across, and of the curves, upwards.
pub(super) fn heat(drawing: &Drawing<'_>) -> Result<Option<String>, String> {
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    for curve in drawing.curves() {
        let mut row = Vec::new();
        for place in drawing.places() {
            let scope = drawing.scope(&curve, Some(place))?;
            let value = match drawing.is_drawn(&scope)? {
                true => told(&drawing.value(&drawing.form.y, &scope)?),
                false => None,
            };
            row.push(value.map_or(f64::NAN, |(value, _)| value));
        }
        if row.iter().any(|value| !value.is_nan()) {
            rows.push(row);
            names.push(curve.name);
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let labels: Vec<String> = drawing.places().into_iter().map(|place| label(drawing, place)).collect();
    let plot = Heatmap::new().with_data(rows).with_values().with_color_map(ColorMap::Custom(Arc::new(shade)));
    let plots = vec![Plot::Heatmap(plot)];
    let layout = layout(drawing, &plots).with_x_categories(labels).with_y_categories(names);
    Ok(Some(draw(plots, layout.with_x_tick_rotate(-40.0))))
}

/// The colour of a share of the greatest value: from sand to green, so light that the value in it can be read.
fn shade(share: f64) -> String {
    let mix = |from: f64, to: f64| (from + (to - from) * share.clamp(0.0, 1.0)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(250.0, 87.0), mix(228.0, 187.0), mix(204.0, 138.0))
}

fn label(drawing: &Drawing<'_>, place: usize) -> String {
    drawing.axis(&drawing.form.x).map_or_else(String::new, |(_, axis)| match &axis.values[place].value {
        Value::Text(text) => text.clone(),
        value => format!("{} {value}", axis.name),
    })
}

fn finish(drawing: &Drawing<'_>, plots: Vec<Plot>) -> String {
    let layout = layout(drawing, &plots);
    draw(plots, layout)
}

fn layout(drawing: &Drawing<'_>, plots: &[Plot]) -> Layout {
    let layout = Layout::auto_from_plots(plots)
        .with_x_label(drawing.form.x_axis.label.clone())
        .with_y_label(drawing.form.y_axis.label.clone())
        .with_legend_position(LegendPosition::OutsideRightTop);
    if drawing.form.y_axis.log { layout.with_log_y() } else { layout }
}
