//! Figures 4-4, 4-8 and 4-9, and how much of its bound COTMLL reaches.

use super::{DURATIONS, FRACTIONS, MIDDLE, SCHEMES, SWEEP, durations, pooled, values};
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::Scheme;
use crate::report::Figure;
use crate::reproduce::Samples;
use crate::statistics::Interval;

pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(SWEEP) {
        return Vec::new();
    }
    let mut figures = vec![over_fraction(samples)];
    for (number, scheme) in [("8", Scheme::TcpLl), ("9", Scheme::Tcp)] {
        figures.push(single_runs(samples, number, scheme));
    }
    figures.push(of_bound(samples));
    figures
}

fn over_fraction(samples: &Samples) -> Figure {
    let mut curves = Curves::new("blocked fraction f", "normalised throughput");
    for (colour, scheme) in SCHEMES.into_iter().enumerate() {
        let points: Vec<(f64, Interval)> =
            FRACTIONS.into_iter().filter_map(|f| Some((f, pooled(samples, scheme, f)?))).collect();
        curves = curves.measured(scheme.name(), colour, &points);
    }
    Figure {
        name: "figure-4-4".to_owned(),
        title: "Figure 4-4: throughput over blocked fraction".to_owned(),
        caption: format!(
            "Means over all runs at d = {} s, with 95 % intervals, beside the channel's capacity 1 - f.",
            durations(samples.effort()).iter().map(f64::to_string).collect::<Vec<_>>().join(", ")
        ),
        svg: curves.calculated("capacity", FRACTIONS.iter().map(|&f| (f, 1.0 - f)).collect()).svg(),
    }
}

fn single_runs(samples: &Samples, number: &str, scheme: Scheme) -> Figure {
    let mut curves = Curves::new("blocked fraction f", "normalised throughput");
    for (colour, d) in DURATIONS.into_iter().enumerate() {
        let first = |f| values(samples, scheme, f, d, "T").first().copied();
        let points: Vec<_> = FRACTIONS.into_iter().filter_map(|f| Some((f, first(f)?))).collect();
        if !points.is_empty() {
            curves = curves.line(&format!("d = {d} s"), colour, points);
        }
    }
    Figure {
        name: format!("figure-4-{number}"),
        title: format!(
            "Figure 4-{number}: throughput of {} over f, a curve per mean blockage",
            scheme.name()
        ),
        caption: "One run a point, as in the thesis; dashed: capacity.".to_owned(),
        svg: curves.calculated("capacity", FRACTIONS.iter().map(|&f| (f, 1.0 - f)).collect()).svg(),
    }
}

fn of_bound(samples: &Samples) -> Figure {
    let mut curves = Curves::new("blocked fraction f", "goodput / (capacity less framing)");
    for (colour, scheme) in SCHEMES.into_iter().enumerate() {
        let at = |f| Interval::of(values(samples, scheme, f, MIDDLE, "of bound"), 0.95);
        let points: Vec<_> = FRACTIONS.into_iter().filter_map(|f| Some((f, at(f)?))).collect();
        curves = curves.measured(scheme.name(), colour, &points);
    }
    Figure {
        name: "efficiency".to_owned(),
        title: "How much of what the channel can carry becomes goodput, d = 1 s".to_owned(),
        caption: "Each run beside what its own realisation's open time, less headers and framing, could carry; means \
                  with 95 % intervals."
            .to_owned(),
        svg: curves.svg(),
    }
}
