//! Where each claim holds, over the readings of what a paper leaves unsaid.

use core::fmt::Write as _;

use super::Outcome;
use super::judge::Judged;
use crate::claims::{Tally, Verdict};
use crate::drawing::{AS_WIDE_AS_ITS_PLACE, BACKGROUND, BOUND, Drawing, Figure, GRID, INK, Row};
use crate::report::html::escape;

const WIDTH: f64 = 860.0;
/// Room for the claims' names on the left, and for their shares on the right.
const NAMES: f64 = 270.0;
const SHARES: f64 = 60.0;
const ROW: f64 = 20.0;
/// A line of headings.
const HEADING: f64 = 16.0;

/// Green and vermilion, which colour-blind readers can tell apart, and a grey.
const fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "#008a65",
        Verdict::Fails => "#d55e00",
        Verdict::Undecided => GRID,
    }
}

/// The matrix: a row a claim, a column a reading in the order of the axes, the default one framed.
pub(super) fn matrix(outcome: &Outcome<'_>) -> Option<Figure> {
    if outcome.points.len() < 2 || outcome.judgement.judged.is_empty() {
        return None;
    }
    let mut order: Vec<usize> = (0..outcome.points.len()).collect();
    order.sort_by_key(|&point| &outcome.points[point]);
    let judged = &outcome.judgement.judged;
    let top = HEADING * outcome.study.readings.len() as f64 + 6.0;
    let height = top + ROW * judged.len() as f64 + 8.0;
    let column = (WIDTH - NAMES - SHARES) / order.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\"{AS_WIDE_AS_ITS_PLACE} \
         font-family=\"system-ui, sans-serif\" font-size=\"10\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{BACKGROUND}\"/>\n"
    );
    headings(&mut svg, outcome, &order, column);
    for (row, judged) in judged.iter().enumerate() {
        write_row(&mut svg, outcome, judged, &order, (top + ROW * row as f64, column));
    }
    if let Some(place) = order.iter().position(|&point| point == 0) {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{}\" width=\"{column:.2}\" height=\"{}\" fill=\"none\" stroke=\"{INK}\" stroke-width=\"1.5\"/>",
            NAMES + column * place as f64,
            top - 2.0,
            ROW * judged.len() as f64 + 2.0
        );
    }
    svg += "</svg>\n";
    Some(Figure {
        name: "readings".to_owned(),
        title: "Where each claim holds".to_owned(),
        caption: "One column per reading of what the paper leaves unsaid; the default is framed. Green: holds; red: fails; \
                  grey: undecided. On the right: the share of the deciding readings under which it holds."
            .to_owned(),
        drawing: Drawing::new(["reading", "holds"].map(str::to_owned), rows(outcome, &order), move |_| svg.clone()),
    })
}

/// A row a cell: 1 where the claim holds, 0 where it fails; cells that are undecided are left out.
fn rows(outcome: &Outcome<'_>, order: &[usize]) -> Vec<Row> {
    let mut rows = Vec::new();
    for judged in &outcome.judgement.judged {
        let claim = &outcome.study.claims[judged.claim].id;
        for &point in order {
            let holds = match judged.verdicts[point] {
                Verdict::Holds => 1.0,
                Verdict::Fails => 0.0,
                Verdict::Undecided => continue,
            };
            rows.push(Row::new(claim, outcome.study.reading_name(&outcome.points[point]), holds));
        }
    }
    rows
}

fn write_row(svg: &mut String, outcome: &Outcome<'_>, judged: &Judged, order: &[usize], place: (f64, f64)) {
    let (y, column) = place;
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        NAMES - 6.0,
        y + 14.0,
        escape(&outcome.study.claims[judged.claim].id)
    );
    for (place, &point) in order.iter().enumerate() {
        let verdict = judged.verdicts[point];
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" fill=\"{}\"><title>{}: {verdict}</title></rect>",
            NAMES + column * place as f64,
            column + 0.2,
            ROW - 2.0,
            colour(verdict),
            escape(&outcome.study.reading_name(&outcome.points[point]))
        );
    }
    let share = share(judged.tally(), " %");
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{share}</text>", WIDTH - SHARES + 6.0, y + 14.0);
}

fn share(tally: Tally, unit: &str) -> String {
    tally.share().map_or_else(|| "-".to_owned(), |share| format!("{:.0}{unit}", share * 100.0))
}

/// Above the columns, a line an axis: each value over the columns that share it, as far as there is room for it.
fn headings(svg: &mut String, outcome: &Outcome<'_>, order: &[usize], column: f64) {
    for (axis, reading) in outcome.study.readings.iter().enumerate() {
        let y = HEADING * axis as f64 + 12.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\" fill=\"{BOUND}\">{}</text>",
            NAMES - 6.0,
            escape(&reading.axis.name.replace('_', " "))
        );
        let value = |place: usize| &outcome.points[order[place]][..=axis];
        let mut start = 0;
        for place in 1..=order.len() {
            if place < order.len() && value(place) == value(start) {
                continue;
            }
            let (from, width) = (NAMES + column * start as f64, column * (place - start) as f64);
            let text = reading.axis.values[value(start)[axis]].label();
            if width > 5.5 * text.len() as f64 {
                let x = from + width / 2.0;
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"{BOUND}\">{}</text>",
                    escape(&text)
                );
            }
            let _ = writeln!(
                svg,
                "<path d=\"M{from:.1} {}v{}\" stroke=\"{GRID}\" stroke-width=\"0.5\"/>",
                y - 10.0,
                HEADING - 2.0
            );
            start = place;
        }
    }
}

/// For each claim, the share of the deciding readings under which it holds, for every value of every axis: an HTML table.
pub(super) fn margins(outcome: &Outcome<'_>) -> String {
    let readings = &outcome.study.readings;
    let mut table = String::from("<table><thead><tr><th>% of deciding readings under which it holds</th>");
    for reading in readings {
        for value in &reading.axis.values {
            let _ = write!(table, "<th>{}<br>{}</th>", escape(&reading.axis.name), escape(&value.label()));
        }
    }
    table += "</tr></thead><tbody>\n";
    for judged in &outcome.judgement.judged {
        let _ = write!(table, "<tr><th>{}</th>", escape(&outcome.study.claims[judged.claim].id));
        for (axis, reading) in readings.iter().enumerate() {
            for value in 0..reading.axis.values.len() {
                let mut tally = Tally::default();
                let at = outcome.points.iter().zip(&judged.verdicts);
                at.filter(|(point, _)| point[axis] == value).for_each(|(_, verdict)| tally.add(*verdict));
                let _ = write!(table, "<td>{}</td>", share(tally, ""));
            }
        }
        table += "</tr>\n";
    }
    table + "</tbody></table>"
}
