//! The kernel's points over the lab's curves.

use super::{FRAME_BITS, Figure, Point, RATE, Scheme};
use crate::drawing::{Chart, Looks, following};
use crate::statistics::{Interval, Spread};

/// Shift of the kernel's points, as a part of the axis, so that curves of one place do not hide each other's.
const SHIFT: f64 = 0.004;

/// What came of the runs of one place on one curve.
#[derive(Clone, Debug, PartialEq)]
struct Spot {
    /// The curve's name.
    curve: String,
    x: f64,
    /// The kernel's mean, and from the least to the most.
    kernel: Interval,
    /// The lab's mean.
    lab: f64,
    /// The mean of the bounds.
    bound: f64,
}

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
    let mut spots = Vec::new();
    for (scheme, d) in curves {
        let of_curve: Vec<&Point> =
            points.iter().filter(|p| p.scheme == scheme && p.d.to_bits() == d.to_bits()).collect();
        let curve = match several {
            true => format!("{}, d = {d} s", scheme.name()),
            false => scheme.name().to_owned(),
        };
        let lab = spreads(&of_curve, |point| point.lab);
        let bound = spreads(&of_curve, |point| point.bound);
        for (((x, k), (_, lab)), (_, bound)) in
            spreads(&of_curve, |point| point.kernel).into_iter().zip(lab).zip(bound)
        {
            let kernel = Interval { mean: k.mean, low: k.min, high: k.max, n: k.n };
            spots.push(Spot { curve: curve.clone(), x, kernel, lab: lab.mean, bound: bound.mean });
        }
    }
    draw_spots(figure, &spots)
}

/// A figure as SVG from its table in `docs/kernel.md`, which has what runs came to that take hours as root: a row for each place, with
/// scheme, place, kernel, lab, their ratio and the bound; figure 4-15 has one scheme, and names none.
#[must_use]
pub fn draw_table(figure: Figure, page: &str) -> String {
    let columns = match figure {
        Figure::Blockage => "| scheme | f | kernel | lab |",
        Figure::Window => "| frames | kernel | lab |",
    };
    let rows = page.lines().skip_while(|line| !line.starts_with(columns)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let spots: Vec<Spot> = rows.filter_map(|row| spot(figure, row)).collect();
    draw_spots(figure, &spots)
}

fn spot(figure: Figure, row: &str) -> Option<Spot> {
    let mut fields: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    if figure == Figure::Window {
        fields.insert(0, Scheme::TcpLl.name());
    }
    let [curve, place, kernel, lab, _, bound] = fields[..] else { return None };
    let place: f64 = place.parse().ok()?;
    let x = match figure {
        Figure::Blockage => place,
        Figure::Window => place * FRAME_BITS as f64 / RATE.as_bps() as f64,
    };
    let (mean, range) = kernel.split_once(" (")?;
    let (low, high) = range.trim_end_matches(')').split_once(" to ")?;
    let number = |text: &str| text.parse::<f64>().ok();
    let kernel = Interval { mean: number(mean)?, low: number(low)?, high: number(high)?, n: 0 };
    let lab = number(lab.split(' ').next()?)?;
    Some(Spot { curve: curve.to_owned(), x, kernel, lab, bound: number(bound)? })
}

fn draw_spots(figure: Figure, spots: &[Spot]) -> String {
    let mut curves: Vec<String> = Vec::new();
    for spot in spots {
        if !curves.contains(&spot.curve) {
            curves.push(spot.curve.clone());
        }
    }
    let width = spots.iter().map(|spot| spot.x).fold(0.0, f64::max);
    let x_label = match figure {
        Figure::Blockage => "blocked fraction f",
        Figure::Window => "window of the link ARQ (s of line time)",
    };
    let looks = Looks::of(core::slice::from_ref(&curves));
    let mut chart = Chart::new(x_label, "throughput / line rate");
    for (number, curve) in curves.iter().enumerate() {
        let of_curve = || spots.iter().filter(|spot| spot.curve == *curve);
        if number == 0 {
            chart = chart.calculated("bound", of_curve().map(|spot| (spot.x, spot.bound)).collect());
        }
        let look = looks.look(curve);
        let lab = of_curve().map(|spot| (spot.x, spot.lab)).collect();
        chart = chart.trace(&format!("{curve}, lab"), look, lab);
        let shift = width * SHIFT * number as f64;
        let kernel: Vec<_> = of_curve().map(|spot| (spot.x + shift, spot.kernel)).collect();
        chart = chart.samples(&format!("{curve}, kernel"), look, &kernel);
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

    #[test]
    fn a_row_of_the_page_s_tables_is_a_place() {
        let row =
            "| TCP | 0.4 | 0.102 (0.000 to 0.176) | 0.121 (0.032 to 0.205) | 0.64 (0.00 to 1.40) | 0.566 |";
        let kernel = Interval { mean: 0.102, low: 0.0, high: 0.176, n: 0 };
        let expected = Spot { curve: "TCP".to_owned(), x: 0.4, kernel, lab: 0.121, bound: 0.566 };
        assert_eq!(spot(Figure::Blockage, row), Some(expected));
        let row = "| 66 | 0.575 (0.452 to 0.651) | 0.586 (0.518 to 0.619) | 0.99 (0.87 to 1.05) | 0.662 |";
        let spot = spot(Figure::Window, row).unwrap();
        assert!((spot.x - 0.999).abs() < 1e-3 && spot.curve == "TCP-LL", "{spot:?}");
    }

    /// `LONGHAUL_WRITE_IMAGES=1` draws them anew.
    #[test]
    fn the_pictures_of_the_kernel_are_those_of_the_tables() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let page = fs_err::read_to_string(docs.join("kernel.md")).unwrap();
        for figure in Figure::ALL {
            let svg = draw_table(figure, &page);
            assert!(svg.matches("<circle").count() > 7, "{svg}");
            let file = docs.join(format!("images/kernel-{}.svg", figure.number()));
            if std::env::var_os("LONGHAUL_WRITE_IMAGES").is_some() {
                fs_err::write(&file, &svg).unwrap();
            }
            let is_same = fs_err::read_to_string(&file).unwrap() == svg;
            assert!(is_same, "{}: draw it with LONGHAUL_WRITE_IMAGES=1", file.display());
        }
    }
}
