//! Curves with intervals, beside calculated ones.

use core::ops::Range;

use kuva::plot::annotations::{ShadedRegion, TextAnnotation};
use kuva::plot::legend::LegendPosition;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::{BLOCKED_COLOUR, BLOCKED_OPACITY, BOUND_COLOUR, COLOURS, draw};
use crate::statistics::Interval;

/// A figure of curves.
#[derive(Default)]
pub(crate) struct Curves {
    plots: Vec<Plot>,
    x_label: String,
    y_label: String,
    log_x: bool,
    log_y: bool,
    shaded: Vec<Range<f64>>,
    x: Option<Range<f64>>,
    y: Option<Range<f64>>,
    labels: Vec<TextAnnotation>,
}

impl Curves {
    /// An empty figure.
    pub(crate) fn new(x_label: &str, y_label: &str) -> Self {
        Self { x_label: x_label.to_owned(), y_label: y_label.to_owned(), ..Self::default() }
    }

    /// With a logarithmic axis of abscissae.
    pub(crate) fn log_x(self) -> Self {
        Self { log_x: true, ..self }
    }

    /// With a logarithmic axis of ordinates.
    pub(crate) fn log_y(self) -> Self {
        Self { log_y: true, ..self }
    }

    /// With this part of the axis of abscissae only.
    pub(crate) fn between_x(self, x: Range<f64>) -> Self {
        Self { x: Some(x), ..self }
    }

    /// With this part of the axis of ordinates only.
    pub(crate) fn between_y(self, y: Range<f64>) -> Self {
        Self { y: Some(y), ..self }
    }

    /// With these intervals of the abscissa shaded, such as blockages over time.
    pub(crate) fn shaded(self, shaded: &[Range<f64>]) -> Self {
        Self { shaded: shaded.to_vec(), ..self }
    }

    /// With words at points, each so much above its own.
    pub(crate) fn labels(self, labels: &[(&str, f64, f64)], above: f64) -> Self {
        let label = |&(text, x, y): &(&str, f64, f64)| TextAnnotation::new(text, x, y + above);
        Self { labels: labels.iter().map(label).collect(), ..self }
    }

    /// With a measured curve in the colour with this number; the bars are the intervals.
    pub(crate) fn measured(mut self, name: &str, colour: usize, points: &[(f64, Interval)]) -> Self {
        let data: Vec<(f64, f64)> = points.iter().map(|(x, interval)| (*x, interval.mean)).collect();
        let errors: Vec<(f64, f64)> = points.iter().map(|(_, i)| (i.mean - i.low, i.high - i.mean)).collect();
        let line = LinePlot::new().with_data(data).with_y_err_asymmetric(errors).with_stroke_width(2.0);
        self.plots.push(Plot::Line(line.with_color(COLOURS[colour % COLOURS.len()]).with_legend(name)));
        self
    }

    /// With a line without intervals, such as a single trace.
    pub(crate) fn line(mut self, name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        let line = LinePlot::new().with_data(points).with_stroke_width(1.6);
        self.plots.push(Plot::Line(line.with_color(COLOURS[colour % COLOURS.len()]).with_legend(name)));
        self
    }

    /// With one of many traces, thin and without a name.
    pub(crate) fn trace(mut self, colour: usize, points: Vec<(f64, f64)>) -> Self {
        let line = LinePlot::new().with_data(points).with_stroke_width(0.8);
        self.plots.push(Plot::Line(line.with_color(COLOURS[colour % COLOURS.len()])));
        self
    }

    /// With a calculated curve or a bound, dashed and grey; one without a name is not in the legend.
    pub(crate) fn calculated(mut self, name: &str, points: Vec<(f64, f64)>) -> Self {
        let line = LinePlot::new().with_data(points).with_dashed().with_stroke_width(1.4);
        let line = line.with_color(BOUND_COLOUR);
        self.plots.push(Plot::Line(if name.is_empty() { line } else { line.with_legend(name) }));
        self
    }

    /// With single values, not joined.
    pub(crate) fn points(mut self, name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        let scatter = ScatterPlot::new().with_data(points).with_size(3.0);
        self.plots.push(Plot::Scatter(scatter.with_color(COLOURS[colour % COLOURS.len()]).with_legend(name)));
        self
    }

    /// With thin straight strokes: the two ends of each, in turn.
    pub(crate) fn strokes(mut self, name: &str, colour: usize, ends: &[(f64, f64)]) -> Self {
        for (number, stroke) in ends.chunks_exact(2).enumerate() {
            let line = LinePlot::new().with_data(stroke.to_vec()).with_stroke_width(0.8);
            let line = line.with_color(COLOURS[colour % COLOURS.len()]);
            self.plots.push(Plot::Line(if number == 0 { line.with_legend(name) } else { line }));
        }
        self
    }

    /// The drawing; from zero unless the axis is logarithmic or told otherwise.
    pub(crate) fn svg(self) -> String {
        let mut layout = Layout::auto_from_plots(&self.plots)
            .with_x_label(self.x_label)
            .with_y_label(self.y_label)
            .with_legend_position(LegendPosition::OutsideRightTop);
        layout = if self.log_x { layout.with_log_x() } else { layout.with_x_axis_min(0.0) };
        layout = if self.log_y { layout.with_log_y() } else { layout.with_y_axis_min(0.0) };
        if let Some(x) = self.x {
            layout = layout.with_x_axis_min(x.start).with_x_axis_max(x.end);
        }
        if let Some(y) = self.y {
            layout = layout.with_y_axis_min(y.start).with_y_axis_max(y.end);
        }
        layout = self.labels.into_iter().fold(layout, Layout::with_annotation);
        for shaded in self.shaded {
            let region = ShadedRegion::vertical(shaded.start, shaded.end);
            layout =
                layout.with_shaded_region(region.with_color(BLOCKED_COLOUR).with_opacity(BLOCKED_OPACITY));
        }
        draw(self.plots, layout)
    }
}
