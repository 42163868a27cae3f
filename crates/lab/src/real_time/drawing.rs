//! The kernel's points over the lab's curves.

use kuva::plot::legend::LegendPosition;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::{Figure, Point, Scheme};
use crate::report::{BOUND_COLOUR, COLOURS, draw as drawn};
use crate::statistics::Spread;

/// Shift of the kernel's points, as a part of the axis, so that curves of one place do not hide each other's.
const SHIFT: f64 = 0.004;

/// A figure as SVG: the mean of the lab's runs as a line, of the kernel's as dots with bars from the least to the most.
#[must_use]
pub fn draw(figure: Figure, points: &[Point]) -> String {
    let mut curves: Vec<(Scheme, f64)> = Vec::new();
    for point in points {
        if !curves.contains(&(point.scheme, point.d)) {
            curves.push((point.scheme, point.d));
        }
    }
    let several = curves.iter().any(|(_, d)| d.to_bits() != curves[0].1.to_bits());
    let width = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let mut plots = Vec::new();
    for (number, (scheme, d)) in curves.iter().enumerate() {
        let of_curve: Vec<&Point> =
            points.iter().filter(|p| p.scheme == *scheme && p.d.to_bits() == d.to_bits()).collect();
        let name = if several { format!("{}, d = {d} s", scheme.name()) } else { scheme.name().to_owned() };
        let colour = COLOURS[number % COLOURS.len()];
        if number == 0 {
            let bound = spreads(&of_curve, |point| point.bound);
            let line = LinePlot::new().with_data(bound.iter().map(|(x, bound)| (*x, bound.mean)));
            let line = line.with_color(BOUND_COLOUR).with_dashed().with_legend("bound");
            plots.push(Plot::Line(line));
        }
        let lab = spreads(&of_curve, |point| point.lab);
        let line = LinePlot::new().with_data(lab.iter().map(|(x, lab)| (*x, lab.mean))).with_color(colour);
        plots.push(Plot::Line(line.with_stroke_width(2.0).with_legend(format!("{name}, lab"))));
        let kernel = spreads(&of_curve, |point| point.kernel);
        let shift = width * SHIFT * number as f64;
        let dots = ScatterPlot::new()
            .with_data(kernel.iter().map(|(x, kernel)| (x + shift, kernel.mean)))
            .with_y_err_asymmetric(kernel.iter().map(|(_, k)| (k.mean - k.min, k.max - k.mean)))
            .with_color(colour)
            .with_size(5.0);
        plots.push(Plot::Scatter(dots.with_legend(format!("{name}, kernel"))));
    }
    let x_label = match figure {
        Figure::Blockage => "blocked fraction f",
        Figure::Window => "window of the link ARQ (s of line time)",
    };
    let layout = Layout::auto_from_plots(&plots)
        .with_x_label(x_label)
        .with_y_label("throughput / line rate")
        .with_x_axis_min(0.0)
        .with_y_axis_min(0.0)
        .with_legend_position(LegendPosition::OutsideRightTop);
    drawn(plots, layout)
}

/// The spread of a value over the seeds, at each place, from left to right.
fn spreads(points: &[&Point], value: impl Fn(&Point) -> f64) -> Vec<(f64, Spread)> {
    let mut places: Vec<f64> = points.iter().map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let at = |x: f64| {
        let here = points.iter().filter(|point| point.x.to_bits() == x.to_bits());
        Spread::of(here.map(|point| value(point))).map(|spread| (x, spread))
    };
    places.into_iter().filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_drawn_once() {
        let point = |d, x, seed| Point {
            scheme: Scheme::TcpLl,
            x,
            f: 0.3,
            d,
            window: 66,
            seed,
            kernel: 0.5,
            lab: 0.6,
            bound: 0.7,
            seconds: 150.0,
        };
        let points = [point(1.0, 0.5, 1), point(1.0, 1.0, 1), point(1.0, 1.0, 2), point(0.6, 1.0, 1)];
        let svg = draw(Figure::Window, &points);
        for text in ["TCP-LL, d = 1 s, lab", "TCP-LL, d = 0.6 s, kernel", "bound"] {
            assert_eq!(svg.matches(text).count(), 1, "{text}");
        }
        let spreads = spreads(&points.each_ref(), |point| point.x);
        assert_eq!(
            spreads.iter().map(|(x, spread)| (*x, spread.n)).collect::<Vec<_>>(),
            [(0.5, 1), (1.0, 3)]
        );
    }
}
