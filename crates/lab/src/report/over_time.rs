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
    if shown.runs.iter().all(|run| received(run).is_empty()) {
        return None;
    }
    let longest = shown.runs.iter().map(|run| end_of(run)).fold(0.0, f64::max);
    let mut chart = Chart::new("", "goodput (kbit/s)");
    let (mut rates, mut are_limited): (Vec<f64>, bool) = (Vec::new(), true);
    for run in &shown.runs {
        let line = shown.scenario(run).and_then(|scenario| Line::new(scenario, run.seed, longest));
        rates.extend(line.as_ref().map(|line| line.rate).filter(|rate| !rates.contains(rate)));
        are_limited &= line.is_some();
        let steps = received(run).into_iter().map(|(at, bytes)| (at.as_secs_f64(), bytes as f64 * 8.0));
        let crossing = Crossing::new(steps.collect(), line);
        let end = end_of(run);
        let bins = (BINS * end / longest).round().max(1.0);
        let width = end / bins;
        let mut points: Vec<(f64, f64)> = Vec::new();
        for bin in 0..bins as u32 {
            let from = f64::from(bin) * width;
            points.push((from, (crossing.bits_by(from + width) - crossing.bits_by(from)) / width / 1e3));
        }
        points.extend(points.last().map(|(_, last)| (end, *last)));
        chart = chart.steps(&run.scheme, shown.look(run), points);
    }
    let most = rates.iter().copied().fold(0.0, f64::max) / 1e3;
    if are_limited {
        // So that the line does not hide on the frame.
        chart = chart.between_y(0.0..1.08 * most);
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
    let mut caption = "Each point is the mean over a sixtieth of the longest run.".to_owned();
    let is_limited =
        |run: &&Run| shown.scenario(run).is_some_and(|scenario| metrics::bottleneck(scenario).is_some());
    if shown.runs.iter().any(is_limited) {
        caption += " A receiver hands over at once what waited behind a lost packet, which can be more than the line carries in \
                    that time; so each byte counts at the latest time at which the open line can have carried it.";
    }
    caption
}

/// The line that limits all that a scenario sends.
struct Line {
    /// Bits per second.
    rate: f64,
    /// When nothing arrives from it, in seconds: blockages, later by the propagation delay.
    silent: Vec<Range<f64>>,
}

impl Line {
    fn new(scenario: &Scenario, seed: u64, end: f64) -> Option<Self> {
        let narrow = metrics::bottleneck(scenario).filter(|narrow| narrow.rate.as_bps() > 0)?;
        let delay = scenario.link.iter().find(|(name, _)| narrow.direction.starts_with(&format!("{name}/")));
        let delay = delay.map_or(0.0, |(_, link)| link.channel.delay.as_secs_f64());
        let blocked = blocked(scenario, seed, end, |direction| direction == narrow.direction);
        let later =
            |blocked: Range<Instant>| blocked.start.as_secs_f64() + delay..blocked.end.as_secs_f64() + delay;
        Some(Self { rate: narrow.rate.as_bps() as f64, silent: blocked.into_iter().map(later).collect() })
    }

    /// The most bits that arrive from it by `at`.
    fn most_by(&self, at: f64) -> f64 {
        let silent = self.silent.iter().take_while(|silent| silent.start < at);
        self.rate * (at - silent.map(|silent| silent.end.min(at) - silent.start).sum::<f64>())
    }
}

/// What was received, by when it must have crossed a line for all of it to be received when it was.
struct Crossing {
    /// Times, each with all bits received by then.
    steps: Vec<(f64, f64)>,
    line: Option<Line>,
    /// For each step, the most bits by which it or a later one is ahead of the line.
    ahead: Vec<f64>,
}

impl Crossing {
    /// Without a line, bits cross when they are received.
    fn new(steps: Vec<(f64, f64)>, line: Option<Line>) -> Self {
        let ahead_of = |line: &Line| {
            let mut most = f64::NEG_INFINITY;
            let ahead = steps.iter().rev().map(|(at, bits)| {
                most = most.max(bits - line.most_by(*at));
                most
            });
            let mut ahead: Vec<f64> = ahead.collect();
            ahead.reverse();
            ahead
        };
        let ahead = line.as_ref().map_or_else(Vec::new, ahead_of);
        Self { steps, line, ahead }
    }

    fn bits_by(&self, at: f64) -> f64 {
        let next = self.steps.partition_point(|(time, _)| *time <= at);
        let received = next.checked_sub(1).map_or(0.0, |last| self.steps[last].1);
        let needed =
            self.ahead.get(next).zip(self.line.as_ref()).map(|(ahead, line)| ahead + line.most_by(at));
        needed.map_or(received, |needed| needed.max(received))
    }
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
    let blocked = scenario.map_or_else(Vec::new, |scenario| blocked(scenario, seed, end, |_| true));
    let seconds = |blocked: Range<Instant>| blocked.start.as_secs_f64()..blocked.end.as_secs_f64().min(end);
    let chart = chart.x_label("time (s)").between_x(0.0..end);
    Some(chart.shaded(blocked.into_iter().map(seconds).collect()).drawing())
}

/// When any of those directions of links of the scenario that are `wanted` is blocked.
fn blocked(scenario: &Scenario, seed: u64, end: f64, wanted: impl Fn(&str) -> bool) -> Vec<Range<Instant>> {
    let range = Instant::ZERO..Instant::ZERO + Duration::from_secs_f64(end);
    let mut all: Vec<Range<Instant>> = Vec::new();
    for (name, link) in &scenario.link {
        for way in link.ways(name) {
            for (direction, line) in [("down", way.channel.down()), ("up", way.channel.up())] {
                if wanted(&format!("{name}/{direction}")) {
                    let timeline = line.errors.timeline(&way.streams(seed, direction));
                    all.extend(timeline.blocked_in(range.clone()));
                }
            }
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
        let steps = || vec![(1.0, 5.0), (4.0, 25.0)];
        let crossing = Crossing::new(steps(), Some(Line { rate: 10.0, silent: Vec::new() }));
        let times = [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 9.0];
        assert_eq!(times.map(|at| crossing.bits_by(at)), [0.0, 0.0, 5.0, 5.0, 15.0, 25.0, 25.0]);
        // Nothing came from 2.5 to 3.5 s.
        let crossing = Crossing::new(steps(), Some(Line { rate: 10.0, silent: vec![2.5..3.5] }));
        assert_eq!(times.map(|at| crossing.bits_by(at)), [0.0, 0.0, 5.0, 15.0, 20.0, 25.0, 25.0]);
        for tenth in 0..90 {
            let at = f64::from(tenth) / 10.0;
            assert!(crossing.bits_by(at + 0.1) - crossing.bits_by(at) <= 1.0 + 1e-9, "at {at}");
        }
        assert_eq!(Crossing::new(steps(), None).bits_by(3.0), 5.0);
    }
}
