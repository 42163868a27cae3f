//! Curves over two axes, with their intervals, beside calculated ones.

use core::ops::Range;

use kuva::plot::annotations::ShadedRegion;
use kuva::plot::line::LineStyle;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::axis::{Axis, Side};
use super::legend::{Entry, Sample};
use super::look::Look;
use super::sheet::{Sheet, Size};
use super::{BLOCKED, BLOCKED_OPACITY, Drawing, Row};
use crate::statistics::Interval;

/// A figure of curves.
pub(crate) struct Chart {
    curves: Vec<Curve>,
    x: Axis,
    y: Axis,
    shaded: Vec<Range<f64>>,
    words: Vec<(String, f64, f64)>,
}

/// What is shown of an axis, if that is told.
type Shown = Option<(f64, f64)>;

/// One curve.
struct Curve {
    /// In the data; empty where it has none.
    name: String,
    /// In the legend, with what it looks like there.
    listed: Option<(String, Look)>,
    look: Look,
    kind: Kind,
    points: Vec<(f64, f64)>,
    /// The intervals of the points, or nothing.
    intervals: Vec<(f64, f64)>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Joined values, each with its mark and interval.
    Measured,
    /// Many values, joined, with a mark now and then.
    Line,
    /// Many values, each holding until the next, with a mark now and then.
    Steps,
    /// One of many, thin.
    Trace,
    /// Without marks.
    Calculated,
    /// Single values.
    Points,
    /// Pairs of ends.
    Strokes,
}

impl Chart {
    /// An empty figure.
    pub(crate) fn new(x_label: &str, y_label: &str) -> Self {
        let (x, y) = (Axis::new(x_label), Axis::new(y_label));
        Self { curves: Vec::new(), x, y, shaded: Vec::new(), words: Vec::new() }
    }

    /// With this under the axis of abscissae.
    pub(crate) fn x_label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.x.label);
        self
    }

    /// With a logarithmic axis of abscissae.
    pub(crate) fn log_x(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// With a logarithmic axis of ordinates.
    pub(crate) fn log_y(mut self) -> Self {
        self.y.log = true;
        self
    }

    /// With this part of the axis of abscissae only.
    pub(crate) fn between_x(mut self, x: Range<f64>) -> Self {
        self.x.range = Some((x.start, x.end));
        self
    }

    /// With this part of the axis of ordinates only.
    pub(crate) fn between_y(mut self, y: Range<f64>) -> Self {
        self.y.range = Some((y.start, y.end));
        self
    }

    /// With these intervals of the abscissa shaded, such as blockages over time.
    pub(crate) fn shaded(self, shaded: Vec<Range<f64>>) -> Self {
        Self { shaded, ..self }
    }

    /// With words about points.
    pub(crate) fn words(self, words: &[(&str, f64, f64)]) -> Self {
        Self { words: words.iter().map(|&(text, x, y)| (text.to_owned(), x, y)).collect(), ..self }
    }

    /// With a measured curve and its intervals.
    pub(crate) fn measured(mut self, name: &str, look: Look, points: &[(f64, Interval)]) -> Self {
        let values = points.iter().map(|(x, interval)| (*x, interval.mean)).collect();
        self = self.curve(name, look, Kind::Measured, values);
        if let Some(curve) = self.curves.last_mut() {
            curve.intervals = points.iter().map(|(_, interval)| (interval.low, interval.high)).collect();
        }
        self
    }

    /// With a line without intervals, such as a single trace.
    pub(crate) fn line(self, name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        self.curve(name, look, Kind::Line, points)
    }

    /// With values of which each holds until the next.
    pub(crate) fn steps(self, name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        self.curve(name, look, Kind::Steps, points)
    }

    /// With one of many traces, thin; one without a name is not in the legend.
    pub(crate) fn trace(self, name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        self.curve(name, look, Kind::Trace, points)
    }

    /// With a calculated curve or a bound, dashed and grey.
    pub(crate) fn calculated(self, name: &str, points: Vec<(f64, f64)>) -> Self {
        let before = self.curves.iter().filter(|curve| curve.kind == Kind::Calculated).count();
        self.curve(name, Look::calculated(before), Kind::Calculated, points)
    }

    /// With one of several bounds, which the legend has together under a name, dashed and grey.
    pub(crate) fn bound_among(
        mut self,
        listed: &str,
        name: &str,
        look: Look,
        points: Vec<(f64, f64)>,
    ) -> Self {
        let is_first = self.curves.iter().all(|curve| curve.kind != Kind::Calculated);
        self = self.curve(name, look, Kind::Calculated, points);
        if let Some(curve) = self.curves.last_mut() {
            curve.listed = is_first.then(|| (listed.to_owned(), Look::calculated(0)));
        }
        self
    }

    /// With single values, not joined.
    pub(crate) fn points(self, name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        self.curve(name, look, Kind::Points, points)
    }

    /// With single values and their intervals, not joined.
    pub(crate) fn samples(mut self, name: &str, look: Look, points: &[(f64, Interval)]) -> Self {
        self = self.measured(name, look, points);
        if let Some(curve) = self.curves.last_mut() {
            curve.kind = Kind::Points;
        }
        self
    }

    /// With thin straight strokes: the two ends of each, in turn.
    pub(crate) fn strokes(self, name: &str, look: Look, ends: &[(f64, f64)]) -> Self {
        self.curve(name, Look { dashes: None, ..look }, Kind::Strokes, ends.to_vec())
    }

    fn curve(mut self, name: &str, look: Look, kind: Kind, points: Vec<(f64, f64)>) -> Self {
        let name = name.to_owned();
        let listed = (!name.is_empty()).then(|| (name.clone(), look));
        self.curves.push(Curve { name, listed, look, kind, points, intervals: Vec::new() });
        self
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.curves.iter().all(|curve| curve.points.is_empty())
    }

    /// The drawing and its data; from zero unless an axis is logarithmic or told otherwise.
    pub(crate) fn drawing(self) -> Drawing {
        Drawing::new(self.labels(), self.rows().collect(), move |size| {
            self.sheet(size).legend(self.entries()).svg(size)
        })
    }

    /// The values in it.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        self.curves.iter().flat_map(Curve::rows)
    }

    /// What stands below it and beside it.
    pub(super) fn labels(&self) -> [String; 2] {
        [self.x.label.clone(), self.y.label.clone()]
    }

    pub(super) fn without_labels(mut self) -> Self {
        self.x.label.clear();
        self.y.label.clear();
        self
    }

    /// The names in its legend.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let shade = (!self.shaded.is_empty()).then(Entry::blocked);
        self.curves.iter().filter_map(Curve::entry).chain(shade).collect()
    }

    /// The drawing without a legend, just as large.
    pub(super) fn svg_without_legend(&self, size: Size) -> String {
        self.sheet(size).svg(size)
    }

    /// The greatest that is drawn over zero; none where the axis of ordinates is logarithmic, or told.
    pub(super) fn height(&self) -> Option<f64> {
        let is_free = !self.y.log && self.y.range.is_none();
        is_free.then(|| self.ordinates().filter(|y| y.is_finite()).fold(0.0, f64::max))
    }

    /// What all of the charts show of their axes, where that is not told.
    pub(super) fn common_ranges<'a>(charts: impl Iterator<Item = &'a Self> + Clone) -> (Shown, Shown) {
        let of = |log: bool, values: &mut dyn Iterator<Item = f64>| -> Shown {
            let values = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
            let start = if log { f64::INFINITY } else { 0.0 };
            let (least, most) = values
                .fold((start, 0.0), |(least, most), value| (f64::min(least, value), f64::max(most, value)));
            // A linear axis goes on to the next tick.
            let beyond = if log { 0.0 } else { 0.02 * (most - least) };
            (least < most).then_some((if least < 0.0 { least - beyond } else { least }, most + beyond))
        };
        let log = charts.clone().next().map_or((false, false), |chart| (chart.x.log, chart.y.log));
        let xs = of(log.0, &mut charts.clone().flat_map(Self::abscissae));
        let ys = of(log.1, &mut charts.flat_map(Self::ordinates));
        (xs, ys)
    }

    /// This chart with these ranges on its axes, where none is told.
    pub(super) fn between(mut self, x: Shown, y: Shown) -> Self {
        self.x.range = self.x.range.or(x);
        self.y.range = self.y.range.or(y);
        self
    }

    fn abscissae(&self) -> impl Iterator<Item = f64> {
        self.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x))
    }

    /// The values and the ends of their intervals.
    fn ordinates(&self) -> impl Iterator<Item = f64> {
        self.curves.iter().flat_map(|curve| {
            let ends = curve.intervals.iter().flat_map(|&(low, high)| [low, high]);
            curve.points.iter().map(|(_, y)| *y).chain(ends)
        })
    }

    fn sheet(&self, size: Size) -> Sheet {
        let is_cloud = self.is_cloud();
        // An interval that reaches zero has no end on a logarithmic axis: it goes to the lowest of all values.
        let lowest = self.ordinates().filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        let floor = if self.y.log { lowest } else { f64::NEG_INFINITY };
        let plots: Vec<Plot> = self.curves.iter().flat_map(|curve| curve.plots(is_cloud, floor)).collect();

        let layout = Layout::auto_from_plots(&plots);
        let layout = self.x.apply(Side::X, size, self.abscissae(), layout);
        let layout = self.y.apply(Side::Y, size, self.ordinates(), layout);
        let shaded = self.shaded.iter().map(|shaded| ShadedRegion::vertical(shaded.start, shaded.end));
        let layout = shaded.fold(layout, |layout, region| {
            layout.with_shaded_region(region.with_color(BLOCKED).with_opacity(BLOCKED_OPACITY))
        });
        Sheet::new(plots, layout).marks(self.marks()).words(self.words.clone())
    }

    /// Whether there are so many single values that their marks have to be small.
    fn is_cloud(&self) -> bool {
        self.curves.iter().any(|curve| curve.kind == Kind::Points && curve.points.len() > CLOUD)
    }

    /// The marks on curves of joined values: on each value if these were measured, or now and then, at other places than those
    /// of the other curves, and at the end.
    fn marks(&self) -> Vec<(Look, f64, f64)> {
        let lines = self.curves.iter().filter(|curve| matches!(curve.kind, Kind::Line | Kind::Steps)).count();
        let ends = |curve: &Curve| Some((curve.points.first()?.0, curve.points.last()?.0));
        let (from, to) = self.x.range.unwrap_or_else(|| {
            let ends = self.curves.iter().filter_map(ends);
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), (first, last)| {
                (from.min(first), to.max(last))
            })
        });
        let (mut marks, mut place) = (Vec::new(), 0_u32);
        for curve in &self.curves {
            match curve.kind {
                Kind::Measured => marks.extend(curve.points.iter().map(|&(x, y)| (curve.look, x, y))),
                Kind::Points if !self.is_cloud() => {
                    marks.extend(curve.points.iter().map(|&(x, y)| (curve.look, x, y)));
                }
                Kind::Line | Kind::Steps => {
                    let shift = (f64::from(place) + 0.5) / lines as f64;
                    let share = |k: u32| (f64::from(k) + shift) / f64::from(MARKS);
                    let at = |k| {
                        if self.x.log {
                            from * (to / from).powf(share(k))
                        } else {
                            from + (to - from) * share(k)
                        }
                    };
                    let on_curve = (0..MARKS).map(at).filter_map(|x| Some((curve.look, x, curve.at(x)?)));
                    marks.extend(on_curve);
                    marks.extend(curve.points.last().map(|&(x, y)| (curve.look, x, y)));
                    place += 1;
                }
                Kind::Points | Kind::Trace | Kind::Calculated | Kind::Strokes => {}
            }
        }
        marks
    }
}

/// How many marks a line has across a figure.
const MARKS: u32 = 9;
/// Single values of which a curve has more are drawn small.
const CLOUD: usize = 60;

impl Curve {
    fn rows(&self) -> impl Iterator<Item = Row> {
        self.points.iter().enumerate().map(move |(place, (x, y))| Row {
            interval: self.intervals.get(place).copied(),
            ..Row::new(&self.name, x.to_string(), *y)
        })
    }

    /// What `kuva` draws of it, with no interval below `floor`; in a cloud, that are the marks of single values too.
    fn plots(&self, is_cloud: bool, floor: f64) -> Vec<Plot> {
        let colour = self.look.colour;
        let line = |points: Vec<(f64, f64)>, width| {
            let line = LinePlot::new().with_data(points).with_stroke_width(width).with_color(colour);
            match self.look.dashes {
                Some(dashes) => line.with_line_style(LineStyle::Custom(dashes.to_owned())),
                None => line,
            }
        };
        let arm = |((low, high), (_, y)): (&(f64, f64), &(f64, f64))| (y - low.max(floor), high - y);
        let arms = || self.intervals.iter().zip(&self.points).map(arm);
        let points = || self.points.clone();
        vec![match self.kind {
            Kind::Measured => Plot::Line(line(points(), 2.0).with_y_err_asymmetric(arms())),
            Kind::Line => Plot::Line(line(points(), 1.6)),
            Kind::Steps => Plot::Line(line(points(), 1.6).with_step()),
            Kind::Trace => Plot::Line(line(points(), 0.8)),
            Kind::Calculated => Plot::Line(line(points(), 1.5)),
            Kind::Points => {
                let dots =
                    ScatterPlot::new().with_data(points()).with_y_err_asymmetric(arms()).with_color(colour);
                // The marks are drawn over them.
                let size = if is_cloud { 2.4 } else { 0.1 };
                Plot::Scatter(dots.with_marker(self.look.mark).with_size(size))
            }
            Kind::Strokes => {
                let stroke = |ends: &[(f64, f64)]| Plot::Line(line(ends.to_vec(), 0.8));
                return self.points.chunks_exact(2).map(stroke).collect();
            }
        }]
    }

    fn entry(&self) -> Option<Entry> {
        let sample = match self.kind {
            Kind::Measured | Kind::Line | Kind::Steps => Sample::MarkedLine,
            Kind::Trace | Kind::Calculated | Kind::Strokes => Sample::Line,
            Kind::Points => Sample::Mark,
        };
        self.listed.as_ref().map(|(name, look)| Entry::new(name, *look, sample))
    }

    /// The ordinate at `x`; `None` outside.
    fn at(&self, x: f64) -> Option<f64> {
        let next = self.points.iter().position(|(at, _)| *at >= x)?;
        let (right, above) = self.points[next];
        let (left, below) = *self.points.get(next.checked_sub(1)?)?;
        Some(match self.kind {
            Kind::Steps => below,
            _ if right > left => below + (above - below) * (x - left) / (right - left),
            _ => above,
        })
    }
}

/// Points that a line keeps: more cannot be told apart at this width.
const POINTS: usize = 4000;

/// At most [`POINTS`] of the points, evenly chosen, the last among them.
pub(crate) fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS).max(1);
    let last = points.last().copied();
    let mut kept: Vec<_> = points.into_iter().step_by(step).collect();
    if kept.last() != last.as_ref() {
        kept.extend(last);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_marked_at_its_end_and_between() {
        let chart = Chart::new("x", "y").steps("a", Look::numbered(0), vec![(0.0, 1.0), (9.0, 2.0)]);
        let marks: Vec<_> = chart.marks().into_iter().map(|(_, x, y)| (x, y)).collect();
        assert_eq!(marks.len(), 10);
        assert!(marks[..9].iter().all(|(x, y)| *x < 9.0 && (*y - 1.0).abs() < 1e-9), "{marks:?}");
        assert_eq!(marks[9], (9.0, 2.0));
    }

    #[test]
    fn the_data_hold_every_value_and_interval() {
        let interval = Interval { mean: 2.0, low: 1.0, high: 4.0, n: 3 };
        let chart = Chart::new("x", "y").measured("a", Look::numbered(0), &[(1.0, interval)]);
        let drawing = chart.calculated("bound", vec![(1.0, 5.0)]).drawing();
        assert_eq!(drawing.rows[0], Row { interval: Some((1.0, 4.0)), ..Row::new("a", "1", 2.0) });
        assert_eq!(drawing.rows[1], Row::new("bound", "1", 5.0));
    }
}
