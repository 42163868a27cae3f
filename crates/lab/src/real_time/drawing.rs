//! The kernel's points over the lab's curves.

use super::{Figure, Point, Scheme};
use crate::drawing::{Chart, Looks, following};
use crate::statistics::{Interval, Spread};

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
    let x_label = match figure {
        Figure::Blockage => "blocked fraction f",
        Figure::Window => "window of the link ARQ (s of line time)",
    };
    let name = |&(scheme, d): &(Scheme, f64)| match several {
        true => format!("{}, d = {d} s", scheme.name()),
        false => scheme.name().to_owned(),
    };
    let looks = Looks::of(&[curves.iter().map(name).collect()]);
    let mut chart = Chart::new(x_label, "throughput / line rate");
    for (number, curve) in curves.iter().enumerate() {
        let (scheme, d) = curve;
        let of_curve: Vec<&Point> =
            points.iter().filter(|p| p.scheme == *scheme && p.d.to_bits() == d.to_bits()).collect();
        let (name, look) = (name(curve), looks.look(&name(curve)));
        if number == 0 {
            let bound = spreads(&of_curve, |point| point.bound);
            chart = chart.calculated("bound", bound.iter().map(|(x, bound)| (*x, bound.mean)).collect());
        }
        let lab = spreads(&of_curve, |point| point.lab);
        let lab = lab.iter().map(|(x, lab)| (*x, lab.mean)).collect();
        chart = chart.trace(&format!("{name}, lab"), look, lab);
        let shift = width * SHIFT * number as f64;
        let kernel = spreads(&of_curve, |point| point.kernel);
        let bars = kernel
            .iter()
            .map(|(x, k)| (x + shift, Interval { mean: k.mean, low: k.min, high: k.max, n: k.n }));
        chart = chart.samples(&format!("{name}, kernel"), look, &bars.collect::<Vec<_>>());
    }
    following(&chart.drawing().svg())
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
