//! What a suite's runs did over time: bytes received, and goodput.
//!
//! Blocked intervals of the channel are shaded in every figure that has a time axis, so cause and effect
//! stand in one picture.

use core::ops::Range;

use base::{Duration, Instant};

use super::figures::Shown;
use crate::drawing::{Chart, Drawing, thin};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::{bound, metrics};

/// Received bytes against time, a line a scheme, beside the bound. Not what senders were told: a proxy acknowledges before
/// anything has arrived.
pub(super) fn progress(shown: &Shown<'_>) -> Option<Drawing> {
    let mut chart = Chart::new("", "received in order (kB)");
    let mut end = 0.0_f64;
    for run in &shown.runs {
        let mut points = vec![(0.0, 0.0)];
        points.extend(received(run).into_iter().map(|(at, bytes)| (at.as_secs_f64(), bytes as f64 / 1e3)));
        end = end.max(points.last().map_or(0.0, |(at, _)| *at));
        chart = chart.steps(&run.scheme, shown.look(run), thin(points));
    }
    if let Some(scenario) = shown.bounding {
        let share = |k: u32| end * f64::from(k) / f64::from(BOUND_POINTS);
        let times: Vec<f64> = (0..=BOUND_POINTS).map(share).collect();
        let instants: Vec<Instant> =
            times.iter().map(|at| Instant::ZERO + Duration::from_secs_f64(*at)).collect();
        let bytes = bound::most_bytes(scenario, shown.typical.seed, &instants);
        let most = shown.runs.iter().map(|run| run.bytes as f64).fold(0.0, f64::max);
        let is_needed = |(_, bytes): &(f64, f64)| *bytes < most;
        let points: Vec<_> = times.into_iter().zip(bytes).collect();
        let needed = points.iter().take_while(|point| is_needed(point)).count() + 1;
        let points = points.into_iter().take(needed).map(|(at, bytes)| (at, bytes / 1e3)).collect();
        chart = chart.calculated("bound", points);
    }
    timed(chart, shown.shared, end, shown.typical.seed)
}

/// Of how many points the bound is drawn.
const BOUND_POINTS: u32 = 600;

/// Goodput over time, in sixtieths of the longest run, beside the line's rate.
pub(super) fn goodput(shown: &Shown<'_>) -> Option<Drawing> {
    let longest = shown.runs.iter().map(|run| end_of(run)).fold(0.0, f64::max);
    let mut chart = Chart::new("", "goodput (kbit/s)");
    let mut rates: Vec<f64> = Vec::new();
    for run in &shown.runs {
        let rate = shown.scenario(run).and_then(line_rate);
        rates.extend(rate.filter(|rate| !rates.contains(rate)));
        let steps: Vec<_> =
            received(run).into_iter().map(|(at, b)| (at.as_secs_f64(), b as f64 * 8.0)).collect();
        let end = end_of(run);
        let bins = (BINS * end / longest).round().max(1.0);
        let width = end / bins;
        let crossed = |edge: f64| crossed_by(&steps, edge, rate);
        let mut points: Vec<(f64, f64)> = Vec::new();
        for bin in 0..bins as u32 {
            let from = f64::from(bin) * width;
            points.push((from, (crossed(from + width) - crossed(from)) / width / 1e3));
        }
        points.extend(points.last().map(|(_, last)| (end, *last)));
        chart = chart.steps(&run.scheme, shown.look(run), points);
    }
    for rate in rates {
        chart = chart.calculated("rate of the line", vec![(0.0, rate / 1e3), (longest, rate / 1e3)]);
    }
    timed(chart, shown.shared, longest, shown.typical.seed)
}

/// Bins of the longest run.
const BINS: f64 = 60.0;

/// How the goodput was counted.
pub(super) fn goodput_caption(shown: &Shown<'_>) -> String {
    let mut caption = "Means over sixtieths of the longest run.".to_owned();
    if shown.runs.iter().any(|run| shown.scenario(run).and_then(line_rate).is_some()) {
        caption += " A receiver hands over at once what waited behind a lost packet, which can be more than the line carries in \
                    that time; so each byte counts at the latest time at which it can have crossed the line.";
    }
    caption
}

/// Bits per second of the line that limits all that a scenario sends, if one does.
fn line_rate(scenario: &Scenario) -> Option<f64> {
    metrics::bottleneck(scenario).map(|narrow| narrow.rate.as_bps() as f64).filter(|rate| *rate > 0.0)
}

/// The bits that must have crossed a line with this `rate` by `at`, so that all could be received when it was. `steps` are times,
/// each with all bits received by then; without a rate they cross when they are received.
fn crossed_by(steps: &[(f64, f64)], at: f64, rate: Option<f64>) -> f64 {
    let next = steps.partition_point(|(time, _)| *time <= at);
    let received = next.checked_sub(1).map_or(0.0, |last| steps[last].1);
    let Some(rate) = rate else { return received };
    steps[next..].iter().map(|(time, bits)| bits - rate * (time - at)).fold(received, f64::max)
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

/// When a run ended, in seconds of virtual time.
pub(super) fn end_of(run: &Run) -> f64 {
    run.started + run.seconds
}

/// A figure with a time axis from 0 to `end` seconds; where one scenario stands for all of it, blocked intervals are shaded.
pub(super) fn timed(chart: Chart, scenario: Option<&Scenario>, end: f64, seed: u64) -> Option<Drawing> {
    if chart.is_empty() || end <= 0.0 {
        return None;
    }
    let blocked = scenario.map_or_else(Vec::new, |scenario| blocked(scenario, seed, end));
    let label = if blocked.is_empty() { "time (s)" } else { "time (s); shaded: blocked" };
    let seconds = |blocked: Range<Instant>| blocked.start.as_secs_f64()..blocked.end.as_secs_f64().min(end);
    let chart = chart.x_label(label).between_x(0.0..end);
    Some(chart.shaded(blocked.into_iter().map(seconds).collect()).drawing())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_counts_over_the_time_that_the_line_took_for_it() {
        // 10 bit/s; 5 bits at 1 s, and at 4 s 20 bits at once, which took the line two seconds.
        let steps = [(1.0, 5.0), (4.0, 25.0)];
        let crossed = |at| crossed_by(&steps, at, Some(10.0));
        assert_eq!([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 9.0].map(crossed), [0.0, 0.0, 5.0, 5.0, 15.0, 25.0, 25.0]);
        assert_eq!(crossed_by(&steps, 3.0, None), 5.0);
        for tenth in 0..90 {
            let at = f64::from(tenth) / 10.0;
            assert!(crossed(at + 0.1) - crossed(at) <= 1.0 + 1e-9, "at {at}");
        }
    }
}
