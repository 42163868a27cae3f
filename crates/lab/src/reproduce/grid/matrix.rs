//! Where each claim holds: a matrix of claims and grid points, and shares along each axis of the grid.

use core::fmt::Write as _;

use super::Surveyed;
use crate::claims::{Tally, Verdict};
use crate::report::Figure;
use crate::report::html::escape;
use crate::reproduce::Judged;

const WIDTH: f64 = 860.0;
/// Room for the claims' names on the left, and for their shares on the right.
const NAMES: f64 = 270.0;
const SHARES: f64 = 60.0;
const ROW: f64 = 20.0;
/// A line of headings.
const HEADING: f64 = 16.0;
/// Okabe and Ito's green and vermilion, which colour-blind readers can tell apart, and a grey.
const fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "#009e73",
        Verdict::Fails => "#d55e00",
        Verdict::Undecided => "#dddddd",
    }
}

/// The matrix: a row a claim, a column a point in the order of the axes, the default point framed.
pub(in crate::reproduce) fn matrix(judged: &[Judged], surveyed: &Surveyed) -> Figure {
    let order = columns(surveyed);
    let axes = surveyed.points[0].coordinates.len();
    let top = HEADING * axes as f64 + 6.0;
    let height = top + ROW * judged.len() as f64 + 8.0;
    let column = (WIDTH - NAMES - SHARES) / order.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"10\">\n"
    );
    headings(&mut svg, surveyed, &order, column);
    for (row, (judged, decided)) in judged.iter().zip(&surveyed.decided).enumerate() {
        let y = top + ROW * row as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            NAMES - 6.0,
            y + 14.0,
            escape(&judged.claim.id)
        );
        for (place, &point) in order.iter().enumerate() {
            let verdict = decided[point].decision.verdict;
            let _ = writeln!(
                svg,
                "<rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" fill=\"{}\"><title>{}: {verdict}</title></rect>",
                NAMES + column * place as f64,
                column + 0.2,
                ROW - 2.0,
                colour(verdict),
                escape(&surveyed.points[point].name)
            );
        }
        let share = judged
            .grid
            .and_then(|grid| grid.share())
            .map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0));
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{share}</text>", WIDTH - SHARES + 6.0, y + 14.0);
    }
    if let Some(place) = order.iter().position(|&point| point == 0) {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{}\" width=\"{column:.2}\" height=\"{}\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.5\"/>",
            NAMES + column * place as f64,
            top - 2.0,
            ROW * judged.len() as f64 + 2.0
        );
    }
    svg += "</svg>\n";
    Figure {
        name: "grid".to_owned(),
        title: "Where each claim holds".to_owned(),
        caption: "A column a point of the grid, the default point framed. Green: holds; red: fails; grey: undecided. \
                  On the right the share of the points that decide it."
            .to_owned(),
        svg,
    }
}

/// The points in the order of their coordinates, the first axis outermost; values stand in the order in which the grid
/// first has them, apart from the default point's.
fn columns(surveyed: &Surveyed) -> Vec<usize> {
    let axes = axes(surveyed);
    let rank = |point: usize| -> Vec<usize> {
        let coordinates = surveyed.points[point].coordinates.iter();
        coordinates.zip(&axes).map(|((_, value), (_, values))| place(values, value)).collect()
    };
    let mut order: Vec<usize> = (0..surveyed.points.len()).collect();
    order.sort_by_key(|&point| rank(point));
    order
}

fn place(values: &[String], value: &str) -> usize {
    values.iter().position(|known| known == value).unwrap_or(values.len())
}

/// Every axis and its values. The default point may come first and says nothing about the order of values.
fn axes(surveyed: &Surveyed) -> Vec<(&'static str, Vec<String>)> {
    let mut axes: Vec<(&'static str, Vec<String>)> =
        surveyed.points[0].coordinates.iter().map(|(axis, _)| (*axis, Vec::new())).collect();
    for point in surveyed.points.iter().skip(1).chain(&surveyed.points[..1]) {
        for ((_, values), (_, value)) in axes.iter_mut().zip(&point.coordinates) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    }
    axes
}

/// Above the columns, a line an axis: each value over the columns that share it, as far as there is room for it.
fn headings(svg: &mut String, surveyed: &Surveyed, order: &[usize], column: f64) {
    for (axis, (name, _)) in surveyed.points[0].coordinates.iter().enumerate() {
        let y = HEADING * axis as f64 + 12.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\" fill=\"#555\">{name}</text>",
            NAMES - 6.0
        );
        let value = |place: usize| &surveyed.points[order[place]].coordinates[..=axis];
        let mut start = 0;
        for place in 1..=order.len() {
            if place < order.len() && value(place) == value(start) {
                continue;
            }
            let (from, width) = (NAMES + column * start as f64, column * (place - start) as f64);
            let text = &value(start)[axis].1;
            if width > 5.5 * text.len() as f64 {
                let x = from + width / 2.0;
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
                    escape(text)
                );
            }
            let _ = writeln!(
                svg,
                "<path d=\"M{from:.1} {}v{}\" stroke=\"#bbb\" stroke-width=\"0.5\"/>",
                y - 10.0,
                HEADING - 2.0
            );
            start = place;
        }
    }
}

/// For each claim, the share of the deciding points at which it holds, for every value of every axis: an HTML table.
pub(in crate::reproduce) fn margins(judged: &[Judged], surveyed: &Surveyed) -> String {
    let axes = axes(surveyed);
    let mut table = String::from("<table><thead><tr><th>holds at, % of deciding points</th>");
    for (name, values) in &axes {
        for value in values {
            let _ = write!(table, "<th>{}<br>{}</th>", escape(name), escape(value));
        }
    }
    table += "</tr></thead><tbody>\n";
    for (judged, decided) in judged.iter().zip(&surveyed.decided) {
        let _ = write!(table, "<tr><th>{}</th>", escape(&judged.claim.id));
        for (axis, (_, values)) in axes.iter().enumerate() {
            for value in values {
                let mut tally = Tally::default();
                let at = surveyed.points.iter().zip(decided);
                let at = at.filter(|(point, _)| point.coordinates[axis].1 == *value);
                at.for_each(|(_, decided)| tally.add(decided.decision.verdict));
                let share =
                    tally.share().map_or_else(|| "-".to_owned(), |share| format!("{:.0}", share * 100.0));
                let _ = write!(table, "<td>{share}</td>");
            }
        }
        table += "</tr>\n";
    }
    table + "</tbody></table>"
}
