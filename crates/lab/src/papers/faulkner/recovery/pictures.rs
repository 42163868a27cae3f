//! Figures 4-5 to 4-7: progress and sequence numbers around blockages.

use core::iter;
use core::ops::Range;
use std::io;

use base::Instant;
use link::FrameKind;

use super::choreography::{self, ENDS, LETTERS, STARTS, blocked_once};
use super::trace::{SEGMENT, Trace, after};
use super::{Window, periodic};
use crate::papers::faulkner::drawing::Curves;
use crate::papers::faulkner::setting::Scheme;
use crate::report::{Figure, thin};
use crate::reproduce::FIRST_SEED;

/// A blockage as a figure shades it.
fn seconds(blockage: &Range<Instant>) -> Range<f64> {
    blockage.start.as_secs_f64()..blockage.end.as_secs_f64()
}

/// Figure 4-5, and 4-6, which is its first blockage seen closely.
pub(super) fn progress() -> io::Result<Vec<Figure>> {
    let mut traces = Vec::new();
    for scheme in [Scheme::Tcp, Scheme::TcpLl] {
        let scenario = periodic::drawn(scheme).map_err(io::Error::other)?;
        traces.push((scheme, Trace::of(scheme.name(), &scenario, FIRST_SEED)?));
    }
    let shaded: Vec<Range<f64>> =
        traces.first().map_or_else(Vec::new, |(_, trace)| trace.blockages().iter().map(seconds).collect());
    let drawing = |part: Range<f64>| {
        let mut drawing = Curves::new("time (s); shaded: blocked", "received in order (kB)");
        let mut bounds = (f64::INFINITY, 0.0_f64);
        for (colour, (scheme, trace)) in traces.iter().enumerate() {
            let by = |seconds: f64| (seconds, trace.received(after(Instant::ZERO, seconds)) as f64 / 1e3);
            let inside = trace.progress().iter().map(|&(at, bytes)| (at.as_secs_f64(), bytes as f64 / 1e3));
            let inside = inside.filter(|(at, _)| part.contains(at));
            let points: Vec<_> = iter::once(by(part.start)).chain(inside).chain([by(part.end)]).collect();
            for (_, kilobytes) in &points {
                bounds = (bounds.0.min(*kilobytes), bounds.1.max(*kilobytes));
            }
            drawing = drawing.line(scheme.name(), colour, thin(points));
        }
        let inside: Vec<Range<f64>> = shaded.iter().filter(|s| s.end <= part.end).cloned().collect();
        drawing.shaded(&inside).between_x(part).between_y(bounds.0..bounds.1).svg()
    };
    Ok(vec![
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
    ])
}

/// The part of the run that figure 4-7 shows.
const SHOWN: Range<f64> = STARTS - 1.0..ENDS + 4.0;

/// Figure 4-7, of TCP and of the link, with the baseline's receive window and with a small one.
pub(super) fn sequences() -> io::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for window in choreography::WINDOWS {
        let scenario = blocked_once(window, false).map_err(io::Error::other)?;
        let trace = Trace::of(Scheme::TcpLl.name(), &scenario, FIRST_SEED)?;
        let Some(blockage) = trace.blockages().into_iter().next() else { continue };
        let events = choreography::events(&trace, &blockage);
        let suffix = if window == Window::Baseline { "" } else { "-64-kib" };
        for (what, svg) in
            [("TCP", of_tcp(&trace, &blockage, &events)), ("link", of_link(&trace, &blockage, &events))]
        {
            figures.push(Figure {
                name: format!("figure-4-7-{}{suffix}", what.to_lowercase()),
                title: format!(
                    "Figure 4-7, {what}: sequence numbers in a blockage of 5 s, receive window {}",
                    window.name()
                ),
                caption: "As the sender's host and the link's sending end saw them; the letters are the thesis's, where the \
                          event happened."
                    .to_owned(),
                svg,
            });
        }
    }
    Ok(figures)
}

/// Points of a trace within the part shown.
fn shown(points: impl Iterator<Item = (Instant, f64)>) -> Vec<(f64, f64)> {
    points.map(|(at, y)| (at.as_secs_f64(), y)).filter(|(at, _)| SHOWN.contains(at)).collect()
}

/// A drawing of what is shown, with these events' letters at the height where they happened.
fn finish(
    drawing: Curves,
    all: &[&[(f64, f64)]],
    blockage: &Range<Instant>,
    events: &[Option<Instant>; 9],
    letters: &str,
) -> String {
    let heights = || all.iter().flat_map(|points| points.iter().map(|point| point.1));
    let (low, high) = (heights().fold(f64::INFINITY, f64::min), heights().fold(0.0, f64::max));
    let mut labels = Vec::new();
    for (letter, at) in LETTERS.into_iter().zip(events) {
        let Some(at) = at.filter(|_| letters.contains(letter)).map(Instant::as_secs_f64) else { continue };
        let points = all.iter().flat_map(|points| points.iter());
        let nearest = points.min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()));
        labels.extend(nearest.map(|&(_, y)| (letter, at, y)));
    }
    let margin = 0.08 * (high - low);
    drawing
        .labels(&labels, margin)
        .shaded(&[seconds(blockage)])
        .between_x(SHOWN)
        .between_y(low - margin..high + 2.0 * margin)
        .svg()
}

fn of_tcp(trace: &Trace, blockage: &Range<Instant>, events: &[Option<Instant>; 9]) -> String {
    let sent = |again: bool| {
        let sent = trace.sent().filter(move |(_, segment)| segment.again == again);
        shown(sent.map(|(at, segment)| (at, segment.seq as f64 / SEGMENT)))
    };
    let (new, again) = (sent(false), sent(true));
    let acknowledged = shown(trace.acknowledged().map(|(at, ack)| (at, ack as f64 / SEGMENT)));
    let drawing = Curves::new("time (s); shaded: blocked", "segment")
        .points("first sent", 1, new.clone())
        .points("sent again", 0, again.clone())
        .points("acknowledged", 2, acknowledged.clone());
    finish(drawing, &[&new, &again, &acknowledged], blockage, events, "ACEI")
}

fn of_link(trace: &Trace, blockage: &Range<Instant>, events: &[Option<Instant>; 9]) -> String {
    // Sequence numbers go around at 1024: a frame's place among all is that of its first sending.
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
    let [new, flagged, over] = marks.map(|marks| shown(marks.into_iter()));
    let drawing = Curves::new("time (s); shaded: blocked", "frame")
        .points("new", 1, new.clone())
        .points("flagged as lost", 0, flagged.clone())
        .points("over again", 4, over.clone());
    finish(drawing, &[&new, &flagged, &over], blockage, events, "BDFG")
}
