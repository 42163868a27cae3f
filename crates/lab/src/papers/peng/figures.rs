//! Figures 2 to 5, drawn from our runs at the default point.

use std::io;

use kuva::plot::legend::LegendPosition;
use kuva::plot::{BarPlot, LinePlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::delays::DELAYS;
use super::figure_2::{self, CONNECTIONS};
use super::trial::Trial;
use crate::report::{BOUND_COLOUR, COLOURS, Figure, draw, thin};
use crate::reproduce::{Cell, FIRST_SEED, Outcome, Point};

const TCP_COLOUR: &str = COLOURS[0];
const STCP_COLOUR: &str = COLOURS[1];
/// What the paper's words make of our TCP.
const PAPER_COLOUR: &str = COLOURS[5];

/// The figures of the experiments that ran.
pub(super) fn figures(outcome: &Outcome<'_>, point: &Point) -> io::Result<Vec<Figure>> {
    let ran = |experiment| outcome.experiments.contains(&experiment);
    let mut figures = Vec::new();
    if ran("figure-2") {
        figures.extend(windows(point)?);
    }
    if ran("ftp") {
        let paper = |row: &str, tcp: f64| if row == "1" { tcp * 1.05 } else { tcp / 3.0 };
        let caption = "The paper: the first STCP group about 5 % slower than the first TCP group, the second about 3 \
                       times faster.";
        figures.extend(bars(
            outcome,
            "figure 3",
            "group",
            paper,
            "FTP: time of a group of three files",
            caption,
        ));
    }
    if ran("pages") {
        // The second page is only said to lie between the others.
        let paper = |row: &str, tcp: f64| match row {
            "1" => tcp,
            "3" => tcp / 3.0,
            _ => 0.0,
        };
        let caption = "The paper: page 1 the same, page 2 shorter, page 3 almost 3 times faster with STCP.";
        figures.extend(bars(outcome, "figure 4", "page", paper, "HTTP: time of each page", caption));
    }
    if ran("delays") {
        figures.push(second_file(outcome));
    }
    Ok(figures)
}

/// Figure 2: a panel a connection.
fn windows(point: &Point) -> io::Result<Vec<Figure>> {
    let suites = figure_2::scenarios(point).map_err(io::Error::other)?;
    let tcp = Trial::of(&suites[0], "TCP", FIRST_SEED)?;
    let stcp = Trial::of(&suites[0], "STCP", FIRST_SEED)?;
    let panel = |(panel, (connection, _)): (char, (&str, &str))| {
        let line = |trial: &Trial| {
            let marks = figure_2::windows(trial, connection).map_or(&[][..], |windows| &windows.marks);
            let points = marks.iter().map(|mark| (mark.at.as_secs_f64(), mark.cwnd as f64 / 1e3));
            LinePlot::new().with_data(thin(points.collect())).with_step().with_stroke_width(2.0)
        };
        let plots = vec![
            Plot::Line(line(&tcp).with_color(TCP_COLOUR).with_dashed().with_legend("TCP")),
            Plot::Line(line(&stcp).with_color(STCP_COLOUR).with_legend("STCP")),
        ];
        let layout = Layout::auto_from_plots(&plots)
            .with_x_label("time (s)")
            .with_y_label("congestion window (kB)")
            .with_x_axis_min(0.0)
            .with_y_axis_min(0.0)
            .with_legend_position(LegendPosition::OutsideRightTop);
        Figure {
            name: format!("figure-2{panel}"),
            title: format!("Figure 2 ({panel}): congestion window of {connection}, seed {FIRST_SEED}"),
            caption: "From its first segment until all its data were acknowledged.".to_owned(),
            svg: draw(plots, layout),
        }
    };
    Ok(('a'..).zip(CONNECTIONS).map(panel).collect())
}

/// Figures 3 and 4: a group of bars for every value of `key`: TCP, STCP, what the paper says of STCP, and the bound.
fn bars(
    outcome: &Outcome<'_>,
    table: &str,
    key: &str,
    paper: impl Fn(&str, f64) -> f64,
    title: &str,
    caption: &str,
) -> Option<Figure> {
    let cells: Vec<&Cell> = outcome.cells.iter().filter(|cell| cell.table == table).collect();
    let of = |scheme: &str, row: &str| -> Option<&Cell> {
        let is = |cell: &&&Cell| {
            cell.row.get("scheme").is_some_and(|s| s == scheme) && cell.row.get(key).is_some_and(|r| r == row)
        };
        cells.iter().find(is).copied()
    };
    let mut plot = BarPlot::new();
    for row in ["1", "2", "3"] {
        let (Some(tcp), Some(stcp)) = (of("TCP", row), of("STCP", row)) else { continue };
        let (tcp, stcp, bound) = (tcp.ours?, stcp.ours?, tcp.bound.unwrap_or(0.0));
        let values = [tcp, stcp, paper(row, tcp), bound];
        let colours = [TCP_COLOUR, STCP_COLOUR, PAPER_COLOUR, BOUND_COLOUR];
        plot = plot.with_group(format!("{key} {row}"), values.into_iter().zip(colours));
    }
    let plot = plot.with_legend(vec!["TCP", "STCP", "STCP by the paper's words", "bound"]);
    let plots = vec![Plot::Bar(plot)];
    let layout = Layout::auto_from_plots(&plots)
        .with_y_label("time (s)")
        .with_y_axis_min(0.0)
        .with_legend_position(LegendPosition::OutsideRightTop);
    let number = table.replace("figure ", "");
    Some(Figure {
        name: format!("figure-{number}"),
        title: format!("Figure {number}: {title}"),
        caption: caption.to_owned(),
        svg: draw(plots, layout),
    })
}

/// Figure 5: the second file against the delay.
fn second_file(outcome: &Outcome<'_>) -> Figure {
    let cells = |scheme: &'static str| {
        let is = move |cell: &&Cell| {
            let row = |key, value: &str| cell.row.get(key).is_some_and(|found| found == value);
            cell.table == "figure 5" && row("scheme", scheme) && row("file", "2")
        };
        outcome.cells.iter().filter(is)
    };
    let line = |points: Vec<(f64, f64)>| LinePlot::new().with_data(points).with_stroke_width(2.0);
    let ours = |scheme| DELAYS.into_iter().zip(cells(scheme).filter_map(|cell| cell.ours)).collect();
    let bound = DELAYS.into_iter().zip(cells("TCP").filter_map(|cell| cell.bound)).collect();
    let plots = vec![
        Plot::Line(line(ours("TCP")).with_color(TCP_COLOUR).with_legend("TCP")),
        Plot::Line(line(ours("STCP")).with_color(STCP_COLOUR).with_legend("STCP")),
        Plot::Line(line(bound).with_color(BOUND_COLOUR).with_dashed().with_legend("bound")),
    ];
    let layout = Layout::auto_from_plots(&plots)
        .with_x_label("one-way delay (s)")
        .with_y_label("time of the second file (s)")
        .with_x_axis_min(0.0)
        .with_y_axis_min(0.0)
        .with_legend_position(LegendPosition::OutsideRightTop);
    Figure {
        name: "figure-5".to_owned(),
        title: "Figure 5: the second of two 1 MB files".to_owned(),
        caption: "The paper: STCP is faster at every delay, and the more so the longer it is.".to_owned(),
        svg: draw(plots, layout),
    }
}
