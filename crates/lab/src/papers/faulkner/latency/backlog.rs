//! Figure 4-13: what a blockage leaves behind, with room to catch up and without.
//!
//! Blockages of 2 s come every 10 s; the thesis does not give its times. The connection opens at another moment of the
//! first second with each seed. A latency counts as back where it was when it is at most 1.2 times the median of the
//! two seconds before the blockage. Reading is faster than offering from when more than that comes within the 100 ms after
//! a record: records are 110 ms apart as they are offered, so that it takes two.

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};
use kuva::plot::LinePlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;

use super::{Source, at, load, offered, rate_of};
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, Scheme, scenario};
use crate::report::{COLOURS, Figure, draw};
use crate::reproduce::{Case, Criterion, Effort, Experiment, FIRST_SEED, Ruling, Samples};
use crate::run::{self, Watch};
use crate::scenario::Scenario;
use crate::statistics::{Spread, mean};
use crate::traffic::latency::Sample;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-13"],
    claims: &["faulkner-headroom-clears-backlog"],
    cases,
    measure,
};

const NAME: &str = "backlog";
const BLOCKED: f64 = 2.0;
const OPEN: f64 = 8.0;
const CHANNEL: Channel = Channel::Periodic { blocked: BLOCKED, open: OPEN, first: 10.0 };
/// Tenths of the capacity.
const HALF: u32 = 5;
const FULL: u32 = 10;
/// When the growth at full load is looked at, in seconds.
const LENGTHS: [f64; 3] = [300.0, 600.0, 1200.0];
const SEEDS: u32 = 10;
/// How much above the latency before the blockage is no backlog (the claim's check).
const CLEARED: f64 = 1.2;
/// Seconds before a blockage in which a latency is taken for that without one.
const BEFORE: f64 = 2.0;
/// A round trip's seconds: twice 250 ms.
const ROUND_TRIP: f64 = 0.5;
/// Seconds over which a rate of reading is taken.
const WINDOW: f64 = 0.1;
/// How much of a run figure 4-13 shows, in seconds: blockages are at 30, 40 and 50 s.
const SHOWN: core::ops::Range<f64> = 28.0..60.0;
/// Lines that can be told apart in the figure.
const LINES: usize = 120;

fn name(tenths: u32) -> String {
    format!("load={}", load(tenths))
}

fn at_load(tenths: u32, seconds: f64) -> Result<Scenario, ConfigError> {
    let source = Source::tcp(offered(&CHANNEL, tenths)).setting(", jitter = \"1 s\" ");
    scenario(Scheme::TcpLl, &CHANNEL, seconds, &[source])
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let seeds = effort.choose(2, SEEDS);
    Ok(vec![
        Case::new(name(HALF), at_load(HALF, effort.choose(SHOWN.end + 10.0, LENGTHS[0]))?, seeds),
        Case::new(name(FULL), at_load(FULL, LENGTHS[2])?, seeds),
    ])
}

fn samples_of(scenario: &Scenario, seed: u64) -> io::Result<Vec<Sample>> {
    let watch = Watch { latencies: true, ..Watch::default() };
    let mut run = run::run(&scenario.name, scenario, seed, &watch)?;
    Ok(run.latencies.remove("download").unwrap_or_default())
}

fn read_at(sample: &Sample) -> Instant {
    sample.sent.saturating_add(sample.latency)
}

/// What followed one blockage.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// From the reopening until a latency was back where it had been, in seconds; none if that took until the next blockage.
    back: Option<f64>,
    /// What was read until then a second, over what was offered; until the next blockage if it was not back.
    speed: f64,
    /// From the reopening until reading gets faster than offering, in seconds.
    faster: Option<f64>,
}

/// What followed each blockage after which the channel stayed open for its whole time; records in the order of their reading.
fn recoveries(scenario: &Scenario, seed: u64, records: &[Sample]) -> Vec<Recovery> {
    let end = Instant::ZERO + scenario.duration;
    let offered = rate_of(scenario);
    let read_in = |from: Instant, to: Instant| {
        let first = records.partition_point(|record| read_at(record) < from);
        &records[first..records.partition_point(|record| read_at(record) < to).max(first)]
    };
    let rate = |from: Instant, to: Instant| {
        let bytes: u64 = read_in(from, to).iter().map(|record| u64::from(record.bytes)).sum();
        bytes as f64 * 8.0 / to.saturating_since(from).as_secs_f64() / offered
    };
    let after = |blocked: core::ops::Range<Instant>| {
        let next = blocked.end + Duration::from_secs_f64(OPEN);
        if next > end {
            return None;
        }
        let calm = read_in(blocked.start - Duration::from_secs_f64(BEFORE), blocked.start);
        let calm = Spread::of(calm.iter().map(|record| record.latency.as_secs_f64()))?.median;
        let is_back = |record: &&Sample| record.latency.as_secs_f64() <= CLEARED * calm;
        let back = read_in(blocked.end, next).iter().find(is_back).map(read_at);
        let window = Duration::from_secs_f64(WINDOW);
        // What comes together is read at one moment: the record itself does not count, others of its moment do.
        let surplus = |record: &&Sample| {
            let from = read_at(record);
            let read = rate(from, from + window) - f64::from(record.bytes) * 8.0 / WINDOW / offered;
            read > 1.0
        };
        let faster = read_in(blocked.end, next).iter().find(surplus).map(read_at);
        let since = |time: Instant| time.saturating_since(blocked.end).as_secs_f64();
        Some(Recovery {
            back: back.map(since),
            speed: rate(blocked.end, back.unwrap_or(next)),
            faster: faster.map(since),
        })
    };
    super::blockages(scenario, seed).filter_map(after).collect()
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let scenario = case.scenario();
    let records = samples_of(scenario, seed)?;
    let mut measured = Measurements::new();
    let recoveries = recoveries(scenario, seed, &records);
    let over = |value: &dyn Fn(&Recovery) -> Option<f64>| {
        mean(&recoveries.iter().filter_map(value).collect::<Vec<_>>())
    };
    measured.note("cleared", over(&|recovery| Some(f64::from(u8::from(recovery.back.is_some())))));
    measured.note("back", over(&|recovery| recovery.back));
    measured.note("first back", recoveries.iter().filter_map(|recovery| recovery.back).reduce(f64::min));
    measured.note("speed", recoveries.iter().map(|recovery| recovery.speed).reduce(f64::min));
    measured.note("faster", over(&|recovery| recovery.faster));
    measured.note("first faster", recoveries.iter().filter_map(|recovery| recovery.faster).reduce(f64::min));
    for seconds in LENGTHS {
        let read = records.iter().filter(|record| read_at(record) <= at(seconds));
        let latencies: Vec<f64> = read.map(|record| record.latency.as_secs_f64()).collect();
        let within = scenario.duration.as_secs_f64() >= seconds;
        measured.note(&format!("L {seconds}"), mean(&latencies).filter(|_| within));
    }
    if seed == FIRST_SEED {
        keep_records(&records, &mut measured);
    }
    Ok(measured)
}

pub(super) fn clears(samples: &Samples) -> Ruling {
    let half = |quantity: &str| samples.interval(NAME, &name(HALF), quantity);
    let grown = |seconds: f64| {
        let [before, after] =
            [LENGTHS[0], seconds].map(|seconds| samples.values(NAME, &name(FULL), &format!("L {seconds}")));
        let ratios = after.into_iter().zip(before).map(|(after, before)| after / before);
        crate::statistics::Interval::of(ratios, 0.95)
    };
    let least = |quantity: &str| samples.values(NAME, &name(HALF), quantity).into_iter().reduce(f64::min);
    let slowest = samples.values(NAME, &name(HALF), "speed").into_iter().reduce(f64::min);
    Ruling::all(vec![
        Criterion::at_least(
            "share of blockages after which latency is back before the next, load 0.5",
            half("cleared"),
            1.0,
        ),
        Criterion::new(
            "rate of reading from reopening until then over what is offered, least",
            "above 1",
            slowest,
            slowest.map(|slowest| slowest > 1.0),
        ),
        Criterion::at_least(
            "seconds from reopening until reading is faster than offering, least",
            least("first faster"),
            ROUND_TRIP,
        ),
        Criterion::told("the same, mean", half("faster")),
        Criterion::told("seconds from reopening until latency is back, least", least("first back")),
        Criterion::told("the same, mean", half("back")),
        Criterion::at_least("L at 1200 s over L at 300 s, load 1.0", grown(LENGTHS[2]), 1.5),
        Criterion::told("L at 600 s over L at 300 s, load 1.0", grown(LENGTHS[1])),
        Criterion::told(
            "share of blockages after which latency is back before the next, load 1.0",
            samples.interval(NAME, &name(FULL), "cleared"),
        ),
    ])
}

/// A line a record, from when it was written to when it was read, for each of the loads.
pub(super) fn figures(samples: &Samples) -> Vec<Figure> {
    if !samples.has(NAME) {
        return Vec::new();
    }
    let panel = |(panel, tenths)| Some(packet_lines(panel, tenths, samples.drawn(NAME, &name(tenths))?));
    [("a", FULL), ("b", HALF)].into_iter().filter_map(panel).collect()
}

/// What the figure draws: seconds and numbers of records as they were written and, in the same order, as they were read, and
/// how many records there are for each that is drawn.
const WRITTEN: &str = "written";
const READ: &str = "read";
const STEP: &str = "records a line";

fn keep_records(records: &[Sample], measured: &mut Measurements) {
    let shown = records.iter().enumerate().filter(|(_, record)| SHOWN.contains(&record.sent.as_secs_f64()));
    let shown: Vec<(usize, &Sample)> = shown.collect();
    let step = shown.len().div_ceil(LINES).max(1);
    let ends = |time: fn(&Sample) -> Instant| {
        let drawn = shown.iter().step_by(step);
        drawn.map(move |(number, record)| (time(record).as_secs_f64(), *number as f64))
    };
    measured.set_series(WRITTEN, ends(|record| record.sent));
    measured.set_series(READ, ends(read_at));
    measured.note(STEP, step as f64);
}

fn packet_lines(panel: &str, tenths: u32, drawn: &Measurements) -> Figure {
    let line = |(&written, &read): (&(f64, f64), &(f64, f64))| {
        let line = LinePlot::new().with_data(vec![written, read]);
        Plot::Line(line.with_stroke_width(1.0).with_color(COLOURS[1]))
    };
    let plots: Vec<Plot> = drawn.series(WRITTEN).iter().zip(drawn.series(READ)).map(line).collect();
    let step = drawn.quantity(STEP).unwrap_or(1.0);
    let layout = Layout::auto_from_plots(&plots).with_x_label("time in s").with_y_label("record");
    let percent = tenths * 10;
    Figure {
        name: format!("figure-4-13{panel}"),
        title: format!("Figure 4-13 ({panel}): {percent} % load on a channel with periodic blockages"),
        caption: format!(
            "A line for every record in {step}, from when it was written to when it was read; the channel is blocked from \
             30, 40, 50 and 60 s on for {BLOCKED} s each. One run."
        ),
        svg: draw(plots, layout),
    }
}
