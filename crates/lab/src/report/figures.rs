//! The figures of a report, as SVG.
//!
//! Blocked intervals of the channel are shaded in every figure that has a time axis, so cause and effect
//! stand in one picture.

use core::ops::Range;

use base::{Duration, Instant};
use kuva::backend::svg::SvgBackend;
use kuva::plot::annotations::ShadedRegion;
use kuva::plot::legend::LegendPosition;
use kuva::plot::{LinePlot, ScatterPlot, StripPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;

use super::{Figure, SchemeRuns, by_scheme, capacity};
use crate::run::Run;
use crate::scenario::{Scenario, Suite};

/// Colours of the schemes, in order: Okabe and Ito's, which colour-blind readers can tell apart; a brown in place of their
/// yellow, which is hard to see on white.
pub(crate) const COLOURS: [&str; 8] =
    ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b"];
/// The physical bound.
pub(crate) const BOUND_COLOUR: &str = "#555555";
/// Blocked intervals.
pub(crate) const BLOCKED_COLOUR: &str = "#888888";
/// How strongly they cover what they shade.
pub(crate) const BLOCKED_OPACITY: f64 = 0.22;
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 360.0;
/// Points that a line keeps: more cannot be told apart at this width.
const POINTS: usize = 4000;

/// Every figure of a suite's report.
pub(super) fn figures(suite: &Suite, runs: &[Run]) -> Vec<Figure> {
    let seed = suite.scenario.seed;
    let shared = suite.same_channels().then_some(&suite.scenario);
    let schemes = by_scheme(suite, runs);
    let mut figures = Vec::new();
    let mut add = |name: &str, title: String, caption, svg: Option<String>| {
        let caption: &str = caption;
        figures.extend(svg.map(|svg| Figure {
            name: name.to_owned(),
            title,
            caption: caption.to_owned(),
            svg,
        }));
    };
    add(
        "goodput",
        "Goodput of every run".to_owned(),
        "One dot a seed, beside the bound: what the channel's open time, less the framing, could carry.",
        Some(goodput_by_seed(&schemes, shared.is_some())),
    );
    add(
        "progress",
        format!("Progress, seed {seed}"),
        "Bytes that the receiver has in order, as the sender learns it.",
        progress(&schemes, shared),
    );
    add(
        "goodput-over-time",
        format!("Goodput over time, seed {seed}"),
        "In sixtieths of the longest run.",
        goodput_over_time(&schemes, shared),
    );
    add(
        "latency",
        format!("Latency, seed {seed}"),
        "The fraction of records and transactions that came within a time; those that never came are left out.",
        latency(&schemes),
    );
    for (number, scheme) in schemes.iter().enumerate() {
        let (Some(run), Some((_, scenario))) = (scheme.runs.first(), suite.schemes.get(number)) else {
            continue;
        };
        add(
            &format!("segments-{}", number + 1),
            format!("{}: every segment, seed {}", scheme.name, run.seed),
            "As the sender's host saw the first connection.",
            sequence(run, scenario),
        );
        for (link, granted) in &run.capacity {
            add(
                &format!("capacity-{link}-{}", number + 1),
                format!("{}: bandwidth on demand on {link}, seed {}", scheme.name, run.seed),
                "By the superframe: the rate or volume that the terminal asked for at its start, the slots that the plan granted, \
                 and those that carried something.",
                capacity::timeline(granted, run, scenario),
            );
        }
    }
    figures
}

/// Goodput of every run, a column a scheme, beside the bounds: one column of them where the channels are the same.
fn goodput_by_seed(schemes: &[SchemeRuns<'_>], same_channels: bool) -> String {
    let kbit = |value: f64| value / 1e3;
    let mut strip = StripPlot::new().with_center().with_point_size(5.0).with_marker_opacity(0.7);
    let mut colours = Vec::new();
    for (index, scheme) in schemes.iter().enumerate() {
        strip = strip.with_group(scheme.name, scheme.runs.iter().map(|run| kbit(run.goodput_bps)));
        colours.push(COLOURS[index % COLOURS.len()]);
    }
    // On the same channels the bounds differ by framing alone: the last scheme's stands for all.
    let bounds =
        if same_channels { schemes.len().saturating_sub(1)..schemes.len() } else { 0..schemes.len() };
    for scheme in &schemes[bounds] {
        let label = if same_channels { "bound".to_owned() } else { format!("bound of {}", scheme.name) };
        strip = strip.with_group(label, scheme.runs.iter().map(|run| kbit(run.bound_bps)));
        colours.push(BOUND_COLOUR);
    }
    let plots = vec![Plot::Strip(strip.with_group_colors(colours))];
    let layout = Layout::auto_from_plots(&plots).with_y_label("goodput (kbit/s)").with_y_axis_min(0.0);
    draw(plots, layout)
}

/// Received bytes against time, a line a scheme. Not what senders were told: a proxy acknowledges before anything has arrived.
fn progress(schemes: &[SchemeRuns<'_>], scenario: Option<&Scenario>) -> Option<String> {
    let mut plots = Vec::new();
    let mut end = 0.0_f64;
    for (index, run) in first_runs(schemes) {
        let mut points = vec![(0.0, 0.0)];
        points.extend(received(run).into_iter().map(|(at, bytes)| (at.as_secs_f64(), bytes as f64 / 1e3)));
        end = end.max(points.last().map_or(0.0, |(at, _)| *at));
        let line = LinePlot::new().with_data(thin(points)).with_step().with_stroke_width(2.0);
        plots.push(Plot::Line(line.with_color(colour(index)).with_legend(run.scheme.as_str())));
    }
    timed(plots, "received in order (kB)", scenario, end, first_seed(schemes)?)
}

/// Goodput over time, in bins of a sixtieth of the longest run.
fn goodput_over_time(schemes: &[SchemeRuns<'_>], scenario: Option<&Scenario>) -> Option<String> {
    let end = first_runs(schemes).map(|(_, run)| end_of(run)).fold(0.0, f64::max);
    let bin = end / 60.0;
    if bin <= 0.0 {
        return None;
    }
    let mut plots = Vec::new();
    for (index, run) in first_runs(schemes) {
        let mut bins = vec![0.0; 61];
        let mut before = 0;
        for (at, bytes) in received(run) {
            let place = ((at.as_secs_f64() / bin) as usize).min(60);
            bins[place] += (bytes - before) as f64 * 8.0 / bin / 1e3;
            before = bytes;
        }
        let points = bins.into_iter().enumerate().map(|(place, kbit)| (place as f64 * bin, kbit));
        let line = LinePlot::new().with_data(points).with_step().with_stroke_width(1.5);
        plots.push(Plot::Line(line.with_color(colour(index)).with_legend(run.scheme.as_str())));
    }
    timed(plots, "goodput (kbit/s)", scenario, end, first_seed(schemes)?)
}

/// The distribution of the latencies of every source and all transactions, a line each and scheme.
fn latency(schemes: &[SchemeRuns<'_>]) -> Option<String> {
    let mut plots = Vec::new();
    for (index, run) in first_runs(schemes) {
        for (place, (name, samples)) in run.latencies.iter().enumerate() {
            let mut seconds: Vec<f64> = samples.iter().map(|sample| sample.latency.as_secs_f64()).collect();
            seconds.sort_by(f64::total_cmp);
            let all = seconds.len() as f64;
            let points = seconds.into_iter().enumerate().map(|(below, at)| (at, (below + 1) as f64 / all));
            let points: Vec<_> = points.collect();
            if points.is_empty() {
                continue;
            }
            let line = LinePlot::new().with_data(thin(points)).with_step().with_stroke_width(1.5);
            let colour = colour(index * run.latencies.len() + place);
            plots.push(Plot::Line(line.with_color(colour).with_legend(format!("{}: {name}", run.scheme))));
        }
    }
    if plots.is_empty() {
        return None;
    }
    let layout = Layout::auto_from_plots(&plots)
        .with_x_label("latency (s)")
        .with_y_label("fraction")
        .with_x_axis_min(0.0)
        .with_y_axis_min(0.0)
        .with_legend_position(LegendPosition::OutsideRightTop);
    Some(draw(plots, layout))
}

/// One run's segments against time: first sendings, retransmissions and the cumulative acknowledgement.
fn sequence(run: &Run, scenario: &Scenario) -> Option<String> {
    let flow = run.flows.first()?;
    let mark = |again: bool| {
        let marks = flow.segments.iter().filter(move |segment| segment.again == again);
        thin(marks.map(|s| (s.at.as_secs_f64(), s.offset as f64 / 1e3)).collect())
    };
    let acks = flow.acks.iter().map(|(at, offset)| (at.as_secs_f64(), *offset as f64 / 1e3)).collect();
    let plots = vec![
        Plot::Line(
            LinePlot::new()
                .with_data(thin(acks))
                .with_step()
                .with_color(COLOURS[2])
                .with_legend("acknowledged"),
        ),
        Plot::Scatter(dots(mark(false), COLOURS[1]).with_legend("sent")),
        Plot::Scatter(dots(mark(true), COLOURS[0]).with_legend("sent again")),
    ];
    timed(plots, "offset in the stream (kB)", Some(scenario), end_of(run), run.seed)
}

fn dots(points: Vec<(f64, f64)>, colour: &str) -> ScatterPlot {
    ScatterPlot::new().with_data(points).with_size(1.8).with_color(colour)
}

/// Bytes that all applications of a run had received, against time.
fn received(run: &Run) -> Vec<(Instant, u64)> {
    let mut steps: Vec<(Instant, u64)> = Vec::new();
    for application in &run.progress {
        let mut before = 0;
        for &(at, bytes) in &application.points {
            steps.push((at, bytes - before));
            before = bytes;
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    let mut total = 0;
    for (_, bytes) in &mut steps {
        total += *bytes;
        *bytes = total;
    }
    steps
}

/// The runs with the first seed, which keep their flows.
fn first_runs<'a>(schemes: &'a [SchemeRuns<'_>]) -> impl Iterator<Item = (usize, &'a Run)> {
    schemes.iter().enumerate().filter_map(|(index, scheme)| scheme.runs.first().map(|run| (index, *run)))
}

/// When a run ended, in seconds of virtual time.
fn end_of(run: &Run) -> f64 {
    run.started + run.seconds
}

fn first_seed(schemes: &[SchemeRuns<'_>]) -> Option<u64> {
    first_runs(schemes).next().map(|(_, run)| run.seed)
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

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

/// A figure with a time axis from 0 to `end` seconds; where one scenario stands for all of it, blocked intervals are shaded.
pub(super) fn timed(
    plots: Vec<Plot>,
    y_label: &str,
    scenario: Option<&Scenario>,
    end: f64,
    seed: u64,
) -> Option<String> {
    if plots.is_empty() || end <= 0.0 {
        return None;
    }
    let mut layout = Layout::auto_from_plots(&plots)
        .with_x_label(if scenario.is_some() { "time (s); shaded: blocked" } else { "time (s)" })
        .with_y_label(y_label)
        .with_x_axis_min(0.0)
        .with_x_axis_max(end)
        .with_y_axis_min(0.0)
        .with_legend_position(LegendPosition::OutsideRightTop);
    for blocked in scenario.map_or_else(Vec::new, |scenario| blocked(scenario, seed, end)) {
        let region = ShadedRegion::vertical(blocked.start.as_secs_f64(), blocked.end.as_secs_f64().min(end));
        layout = layout.with_shaded_region(region.with_color(BLOCKED_COLOUR).with_opacity(BLOCKED_OPACITY));
    }
    Some(draw(plots, layout))
}

/// When any direction of any link of the scenario is blocked.
fn blocked(scenario: &Scenario, seed: u64, end: f64) -> Vec<Range<Instant>> {
    let range = Instant::ZERO..Instant::ZERO + Duration::from_secs_f64(end);
    let mut all: Vec<Range<Instant>> = Vec::new();
    for (name, link) in &scenario.link {
        for (direction, line) in [("down", link.channel.down()), ("up", link.channel.up())] {
            let timeline = line.errors.timeline(&link.channel.streams(seed, name, direction));
            all.extend(timeline.blocked_in(range.clone()));
        }
    }
    all.sort_by_key(|blocked| blocked.start);
    // What is blocked twice is shaded once.
    let mut merged: Vec<Range<Instant>> = Vec::new();
    for blocked in all {
        match merged.last_mut() {
            Some(last) if blocked.start <= last.end => last.end = last.end.max(blocked.end),
            _ => merged.push(blocked),
        }
    }
    merged
}

/// The figure of `plots`, in the size that reports use.
pub(crate) fn draw(plots: Vec<Plot>, layout: Layout) -> String {
    let layout = layout.with_width(WIDTH).with_height(HEIGHT).with_font_family("system-ui, sans-serif");
    SvgBackend.render_scene(&render_multiple(plots, layout))
}
