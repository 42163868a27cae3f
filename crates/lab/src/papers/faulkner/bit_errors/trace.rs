//! Figure 4-3: one realisation segment by segment, with the link layer and without.
//!
//! The claim speaks of one realisation; it is decided over 25, the first of which is drawn and told beside them. Runs last
//! longer than the 30 s that are looked at, so that what timed out towards their end has the time to arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::LegendPosition;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::figure::Figure as Panels;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::super::setting::{Channel, Scheme, logged, scenario};
use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::{LinkDirection, PacketStep, Segment};
use crate::report::{COLOURS, Figure};
use crate::reproduce::{Case, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::run::Watch;
use crate::statistics::Interval;

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-3"], claims: &["faulkner-bsc-trace"], cases, measure };

const NAME: &str = "trace";
const SCHEMES: [Scheme; 2] = [Scheme::TcpLl, Scheme::Tcp];
const BER: f64 = 1e-5;
const SEEDS: u32 = 25;
/// Seconds that are looked at, and that a run lasts.
const SHOWN: f64 = 30.0;
const SECONDS: f64 = 45.0;
/// From when on the thesis sees widely spaced retransmissions.
const SPREAD_FROM: f64 = 7.0;
/// Bytes of a full segment.
const SEGMENT: f64 = 1448.0;

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let case = |scheme: Scheme| {
        let scenario = scenario(scheme, &Channel::BitErrors(BER), SECONDS, &[])?;
        Ok(Case::new(scheme.name(), scenario, effort.choose(4, SEEDS)))
    };
    SCHEMES.into_iter().map(case).collect()
}

fn shown() -> Instant {
    Instant::ZERO + Duration::from_secs_f64(SHOWN)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let run = logged(NAME, case.scenario(), seed, Watch { progress: true, ..Watch::default() })?;
    let mut measured = Measurements::new();
    let points = run.progress.iter().flat_map(|received| &received.points);
    let bytes = points.filter(|(at, _)| *at <= shown()).map(|(_, bytes)| *bytes).max();
    measured.note("bytes", bytes.unwrap_or(0) as f64);
    let [before, after] = largest_gaps(&run.log);
    measured.note("gap before", before);
    measured.note("gap after", after);
    measured.note("gaps", after.zip(before).map(|(after, before)| after / before));
    let timed_out = TimedOut::of(&run.log);
    measured.note("timed out", timed_out.segments as f64);
    measured.note("original first", timed_out.original_first as f64);
    measured.note("queue dropped", timed_out.queue_dropped as f64);
    measured.note("in recovery", timed_out.in_recovery as f64);
    let states = run.log.sender_states("server").take_while(|(at, _)| *at <= shown());
    measured.note("timeouts", states.last().map(|(_, state)| f64::from(state.timeouts)));
    if seed == FIRST_SEED {
        keep_segments(&run.log, &mut measured);
    }
    Ok(measured)
}

/// The data segments that the server sends again within the time that is looked at.
fn sent_again(log: &EventLog) -> impl Iterator<Item = (Instant, &Segment)> {
    log.segments("server").filter(|(at, segment)| segment.sent && segment.again && *at <= shown())
}

/// The longest time between consecutive retransmissions of which the later one comes before the spread, or after it.
fn largest_gaps(log: &EventLog) -> [Option<f64>; 2] {
    let times: Vec<f64> = sent_again(log).map(|(at, _)| at.as_secs_f64()).collect();
    let largest = |is_late: bool| {
        let gaps = times.windows(2).filter(|pair| (pair[1] >= SPREAD_FROM) == is_late);
        gaps.map(|pair| pair[1] - pair[0]).reduce(f64::max)
    };
    [largest(false), largest(true)]
}

/// What became of the segments that timed out.
#[derive(Debug, Default)]
struct TimedOut {
    segments: usize,
    /// Of those, the ones whose first sending came out of the link before any copy of it did.
    original_first: usize,
    /// Of those, the ones whose first sending the link's queue dropped.
    queue_dropped: usize,
    /// Segments that were sent again in fast recovery alone.
    in_recovery: usize,
}

impl TimedOut {
    /// Packets leave the link in the order in which its queue accepted them, each once, if the link delivers in order. On a
    /// link that loses packets this means nothing.
    fn of(log: &EventLog) -> Self {
        let mut recovering = BTreeMap::new();
        for (at, state) in log.sender_states("server") {
            recovering.insert(at, state.recovering);
        }
        // A state is logged at the same time as the segments that its change sends.
        let in_recovery = |at: Instant| recovering.range(..=at).next_back().is_some_and(|(_, &is)| is);
        let (mut timed_out, mut recovered) = (BTreeSet::new(), BTreeSet::new());
        for (at, segment) in sent_again(log) {
            let of = if in_recovery(at) { &mut recovered } else { &mut timed_out };
            of.insert(segment.seq);
        }
        let [delivered, dropped] = originals(log);
        let original_first = timed_out.iter().filter(|seq| delivered.contains(seq)).count();
        let queue_dropped = timed_out.intersection(&dropped).count();
        let in_recovery = recovered.difference(&timed_out).count();
        Self { segments: timed_out.len(), original_first, queue_dropped, in_recovery }
    }
}

/// The offsets of segments whose first sending came out of the link, and of those whose first sending its queue dropped.
fn originals(log: &EventLog) -> [BTreeSet<u64>; 2] {
    let (mut known, mut accepted, mut out) = (BTreeSet::new(), Vec::new(), 0);
    let mut dropped = BTreeSet::new();
    for (_, packet) in log.packets("satellite", LinkDirection::Down) {
        match packet.step {
            PacketStep::Queued => accepted.push((packet.seq, packet.len > 0 && known.insert(packet.seq))),
            // What the queue drops is what has just come.
            PacketStep::Dropped => {
                let original = accepted.pop().filter(|(_, is_original)| *is_original);
                dropped.extend(original.map(|(seq, _)| seq));
            }
            PacketStep::Delivered => out += 1,
            PacketStep::Taken | PacketStep::Lost => {}
        }
    }
    let delivered = accepted.into_iter().take(out).filter(|(_, is_original)| *is_original);
    [delivered.map(|(seq, _)| seq).collect(), dropped]
}

/// `what` has to be above a bound; an interval that holds it cannot tell.
fn above(what: &str, interval: Option<Interval>, bound: f64) -> Criterion {
    let holds = interval.and_then(|interval| match (interval.is_above(bound), interval.is_below(bound)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    });
    Criterion::new(what, format!("above {bound}"), interval, holds)
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let [ll, tcp] = SCHEMES.map(Scheme::name);
    let first = |scheme, quantity| samples.values(NAME, scheme, quantity).first().copied();
    let sum = |quantity: &str| samples.values(NAME, ll, quantity).iter().sum::<f64>();
    let share = (sum("timed out") > 0.0).then(|| sum("original first") / sum("timed out"));
    let dropped = (sum("timed out") > 0.0).then(|| sum("queue dropped") / sum("timed out"));
    let ratio = first(ll, "bytes").zip(first(tcp, "bytes")).map(|(ll, tcp)| ll / tcp);
    let gaps = samples.values(NAME, tcp, "gaps");
    let spread = gaps.iter().filter(|&&ratio| ratio > 2.0).count() as f64 / gaps.len() as f64;
    Ruling::all(vec![
        above("bytes at 30 s, TCP-LL / TCP", samples.ratio(NAME, [ll, tcp], "bytes"), 2.0),
        Criterion::told("the same in the realisation drawn", ratio),
        above(
            "largest gap between TCP's retransmissions, after 7 s / before",
            samples.interval(NAME, tcp, "gaps"),
            2.0,
        ),
        Criterion::told("realisations in which that is above 2", (!gaps.is_empty()).then_some(spread)),
        Criterion::told("the largest gap after 7 s, in seconds", samples.interval(NAME, tcp, "gap after")),
        Criterion::told("the largest gap before, in seconds", samples.interval(NAME, tcp, "gap before")),
        Criterion::told("the ratio in the realisation drawn", first(tcp, "gaps")),
        Criterion::at_least("timed out under TCP-LL and not overtaken by TCP's copy", share, 0.8),
        Criterion::told("timed out under TCP-LL and dropped by the queue before the link", dropped),
        Criterion::told("segments timed out under TCP-LL", samples.interval(NAME, ll, "timed out")),
        Criterion::told("the same in the realisation drawn", first(ll, "timed out")),
        Criterion::told("segments sent again in fast recovery", samples.interval(NAME, ll, "in recovery")),
        Criterion::told("time-outs under TCP-LL", samples.interval(NAME, ll, "timeouts")),
    ])
}

pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let (mut plots, mut layouts) = (Vec::new(), Vec::new());
    for scheme in SCHEMES {
        let Some(drawn) = samples.drawn(NAME, scheme.name()) else { continue };
        let panel = panel(drawn);
        let layout = Layout::auto_from_plots(&panel)
            .with_title(scheme.name())
            .with_x_label("time (s)")
            .with_y_label("segment number")
            .with_x_axis_min(0.0)
            .with_x_axis_max(SHOWN)
            .with_y_axis_min(0.0)
            .with_font_family("system-ui, sans-serif")
            .with_legend_position(LegendPosition::OutsideRightTop);
        plots.push(panel);
        layouts.push(layout);
    }
    let panels = Panels::new(plots.len(), 1).with_plots(plots).with_layouts(layouts);
    let panels = panels.with_cell_size(WIDTH, HEIGHT);
    vec![Figure {
        name: "figure-4-3".to_owned(),
        title: "Figure 4-3: traces with the link layer and without, at a bit error rate of 1e-5".to_owned(),
        caption: format!(
            "One realisation (seed {FIRST_SEED}) for both. Lines go from the first sending of a segment to its first \
             reception; diamonds are retransmissions as they are sent, crosses are receptions of what was there already."
        ),
        svg: SvgBackend.render_scene(&panels.render()),
    }]
}

/// Of each panel.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 360.0;

/// The series that a figure draws, seconds and segment numbers: where each segment was first sent and, in the same order, first
/// received; what was sent again; what came again.
const SENT: &str = "first sent";
const RECEIVED: &str = "first received";
const SENT_AGAIN: &str = "sent again";
const RECEIVED_AGAIN: &str = "received again";

fn keep_segments(log: &EventLog, measured: &mut Measurements) {
    let place = |at: Instant, seq: u64| (at.as_secs_f64(), seq as f64 / SEGMENT);
    let mut first_sent = BTreeMap::new();
    for (at, segment) in log.segments("server").filter(|(_, segment)| segment.sent && segment.len > 0) {
        first_sent.entry(segment.seq).or_insert(at);
    }
    let received = || {
        let segments = log.segments("terminal");
        segments.filter(|(at, segment)| !segment.sent && segment.len > 0 && *at <= shown())
    };
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    for (at, segment) in received().filter(|(_, segment)| !segment.again) {
        let Some(first) = first_sent.get(&segment.seq) else { continue };
        sent.push(place(*first, segment.seq));
        arrived.push(place(at, segment.seq));
    }
    measured.set_series(SENT, sent);
    measured.set_series(RECEIVED, arrived);
    measured.set_series(SENT_AGAIN, sent_again(log).map(|(at, segment)| place(at, segment.seq)));
    let twice = received().filter(|(_, segment)| segment.again);
    measured.set_series(RECEIVED_AGAIN, twice.map(|(at, segment)| place(at, segment.seq)));
}

/// One scheme's trace.
fn panel(drawn: &Measurements) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (&sent, &received) in drawn.series(SENT).iter().zip(drawn.series(RECEIVED)) {
        let line = LinePlot::new().with_data(vec![sent, received]);
        plots.push(Plot::Line(line.with_color(COLOURS[1]).with_stroke_width(0.8)));
    }
    plots.push(marks(SENT_AGAIN, MarkerShape::Diamond, COLOURS[0], drawn.series(SENT_AGAIN)));
    plots.push(marks(RECEIVED_AGAIN, MarkerShape::Cross, COLOURS[2], drawn.series(RECEIVED_AGAIN)));
    plots
}

fn marks(name: &str, shape: MarkerShape, colour: &str, points: &[(f64, f64)]) -> Plot {
    let scatter = ScatterPlot::new().with_data(points.to_vec()).with_marker(shape).with_size(4.0);
    Plot::Scatter(scatter.with_color(colour).with_legend(name))
}
