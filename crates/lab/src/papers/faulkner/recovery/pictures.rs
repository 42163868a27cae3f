//! Figures 4-5 to 4-7: progress and sequence numbers around blockages.
//!
//! What they draw is kept with the measurements of the runs: `keep_*` takes it from a trace, the rest draws it.

use core::iter;
use core::ops::Range;

use base::Instant;
use link::FrameKind;

use super::choreography::{self, ENDS, LETTERS, STARTS};
use super::trace::{SEGMENT, Trace};
use super::{Window, periodic};
use crate::claims::Measurements;
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::Scheme;
use crate::report::{Figure, thin};
use crate::reproduce::Samples;

/// Seconds at which each blockage starts and ends.
const BLOCKED: &str = "blocked";
/// Seconds, and kB that the application had by then.
const PROGRESS: &str = "progress";

fn keep_blockages(trace: &Trace, measured: &mut Measurements) {
    let seconds = |blockage: Range<Instant>| (blockage.start.as_secs_f64(), blockage.end.as_secs_f64());
    measured.set_series(BLOCKED, trace.blockages().into_iter().map(seconds));
}

/// The blockages as a figure shades them.
fn blockages(drawn: &Measurements) -> Vec<Range<f64>> {
    drawn.series(BLOCKED).iter().map(|&(start, end)| start..end).collect()
}

pub(super) fn keep_progress(trace: &Trace, measured: &mut Measurements) {
    keep_blockages(trace, measured);
    let points = trace.progress().iter().map(|&(at, bytes)| (at.as_secs_f64(), bytes as f64 / 1e3));
    measured.set_series(PROGRESS, points);
}

/// Figure 4-5, and 4-6, which is its first blockage seen closely.
pub(super) fn progress(samples: &Samples) -> Vec<Figure> {
    let run = |scheme| Some((scheme, samples.drawn(periodic::NAME, &periodic::drawn(scheme))?));
    let runs: Vec<(Scheme, &Measurements)> =
        [Scheme::Tcp, Scheme::TcpLl].into_iter().filter_map(run).collect();
    let shaded = runs.first().map_or_else(Vec::new, |(_, drawn)| blockages(drawn));
    let drawing = |part: Range<f64>| {
        let mut drawing = Curves::new("time (s); shaded: blocked", "received in order (kB)");
        let mut bounds = (f64::INFINITY, 0.0_f64);
        for (colour, (scheme, drawn)) in runs.iter().enumerate() {
            let all = drawn.series(PROGRESS);
            let by = |seconds: f64| {
                let next = all.partition_point(|(at, _)| *at <= seconds);
                (seconds, all[..next].last().map_or(0.0, |(_, kilobytes)| *kilobytes))
            };
            let inside = all.iter().copied().filter(|(at, _)| part.contains(at));
            let points: Vec<_> = iter::once(by(part.start)).chain(inside).chain([by(part.end)]).collect();
            for (_, kilobytes) in &points {
                bounds = (bounds.0.min(*kilobytes), bounds.1.max(*kilobytes));
            }
            drawing = drawing.line(scheme.name(), colour, thin(points));
        }
        let inside: Vec<Range<f64>> = shaded.iter().filter(|s| s.end <= part.end).cloned().collect();
        drawing.shaded(&inside).between_x(part).between_y(bounds.0..bounds.1).svg()
    };
    vec![
        Figure {
            name: "figure-4-5".to_owned(),
            title: "Figure 4-5: recovery from periodic blockages of 5 s".to_owned(),
            caption:
                "Bytes that the application has; blocked 5 s, open 10 s (the thesis does not say how long)."
                    .to_owned(),
            svg: drawing(0.0..85.0),
        },
        Figure {
            name: "figure-4-6".to_owned(),
            title: "Figure 4-6: the first blockage of figure 4-5".to_owned(),
            caption:
                "The same runs; how far recovery depends on where a blockage meets TCP is in the verdicts."
                    .to_owned(),
            svg: drawing(9.0..22.0),
        },
    ]
}

/// The part of the run that figure 4-7 shows.
const SHOWN: Range<f64> = STARTS - 1.0..ENDS + 4.0;

/// A panel of figure 4-7, and what it has: each series with its colour, and the letters of its events.
#[derive(Debug)]
struct Panel {
    name: &'static str,
    y_label: &'static str,
    series: [(&'static str, usize); 3],
    letters: &'static str,
}

/// In segments.
const OF_TCP: Panel = Panel {
    name: "TCP",
    y_label: "segment",
    series: [("first sent", 1), ("sent again", 0), ("acknowledged", 2)],
    letters: "ACEI",
};

/// In frames.
const OF_LINK: Panel = Panel {
    name: "link",
    y_label: "frame",
    series: [("new", 1), ("flagged as lost", 0), ("over again", 4)],
    letters: "BDFG",
};

pub(super) fn keep_sequences(trace: &Trace, measured: &mut Measurements) {
    keep_blockages(trace, measured);
    let sent = |again: bool| {
        let sent = trace.sent().filter(move |(_, segment)| segment.again == again);
        sent.map(|(at, segment)| (at, segment.seq as f64 / SEGMENT)).collect()
    };
    let acknowledged = trace.acknowledged().map(|(at, ack)| (at, ack as f64 / SEGMENT)).collect();
    for ((name, _), points) in OF_TCP.series.into_iter().zip([sent(false), sent(true), acknowledged]) {
        measured.set_series(name, shown(points));
    }
    for ((name, _), points) in OF_LINK.series.into_iter().zip(frames(trace)) {
        measured.set_series(name, shown(points));
    }
}

/// Points of a trace within the part shown.
fn shown(points: Vec<(Instant, f64)>) -> impl Iterator<Item = (f64, f64)> {
    points.into_iter().map(|(at, y)| (at.as_secs_f64(), y)).filter(|(at, _)| SHOWN.contains(at))
}

/// When frames were sent, new, flagged and over again, each with the place of its first sending among all. Sequence numbers
/// go around at 1024.
fn frames(trace: &Trace) -> [Vec<(Instant, f64)>; 3] {
    let mut places = vec![0.0; 1024];
    let mut next = 0.0;
    let mut marks: [Vec<(Instant, f64)>; 3] = Default::default();
    for frame in trace.down() {
        let Some(trailer) = frame.trailer else { continue };
        let place = &mut places[usize::from(trailer.tx) % 1024];
        let kind = match frame.kind {
            FrameKind::New => {
                *place = next;
                next += 1.0;
                0
            }
            FrameKind::Retransmission => 1,
            FrameKind::Filler => 2,
            FrameKind::Repair | FrameKind::Control => continue,
        };
        marks[kind].push((frame.on_air.start, *place));
    }
    marks
}

/// Figure 4-7, of TCP and of the link, with the baseline's receive window and with a small one.
pub(super) fn sequences(samples: &Samples) -> Vec<Figure> {
    let mut figures = Vec::new();
    for window in choreography::WINDOWS {
        let drawn = samples.drawn(choreography::NAME, &choreography::drawn(window));
        let Some(drawn) = drawn.filter(|drawn| !blockages(drawn).is_empty()) else { continue };
        let suffix = if window == Window::Baseline { "" } else { "-64-kib" };
        for panel in [OF_TCP, OF_LINK] {
            figures.push(Figure {
                name: format!("figure-4-7-{}{suffix}", panel.name.to_lowercase()),
                title: format!(
                    "Figure 4-7, {}: sequence numbers in a blockage of 5 s, receive window {}",
                    panel.name,
                    window.name()
                ),
                caption: "As the sender's host and the link's sending end saw them; the letters are the thesis's, where the \
                          event happened."
                    .to_owned(),
                svg: panel.draw(drawn),
            });
        }
    }
    figures
}

impl Panel {
    /// The panel of a run, with its events' letters at the height where they happened.
    fn draw(&self, drawn: &Measurements) -> String {
        let shaded = blockages(drawn);
        let points = || self.series.iter().flat_map(|(name, _)| drawn.series(name));
        let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let high = points().map(|point| point.1).fold(0.0, f64::max);
        let mut labels = Vec::new();
        for letter in LETTERS.into_iter().filter(|letter| self.letters.contains(letter)) {
            let since = drawn.quantity(letter).zip(shaded.first());
            let Some(at) = since.map(|(since, blockage)| blockage.start + since) else { continue };
            let nearest = points().min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()));
            labels.extend(nearest.map(|&(_, y)| (letter, at, y)));
        }
        let margin = 0.08 * (high - low);
        let drawing = Curves::new("time (s); shaded: blocked", self.y_label);
        let series = self.series.into_iter();
        let drawing = series.fold(drawing, |drawing, (name, colour)| {
            drawing.points(name, colour, drawn.series(name).to_vec())
        });
        drawing
            .labels(&labels, margin)
            .shaded(&shaded)
            .between_x(SHOWN)
            .between_y(low - margin..high + 2.0 * margin)
            .svg()
    }
}
