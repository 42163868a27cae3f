//! How many blockages a record meets on its way, and what each costs when the line has to start again.
//!
//! The cost of a start is measured where there is always something to send, at a load of 1.1: it is the open time that
//! did not carry what was read, over the number of blockages. The first half minute is left out, so that slow start does
//! not count; nor do the time-outs in it, which the same run up to there has alone.

use std::io;

use base::Duration;
use base::config::ConfigError;

use super::duration::{self, DURATIONS, F, LENGTHY, SHORT};
use super::{PACKET_BITS, RECORD, SECONDS, Source, at, blockages, offered};
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, RATE};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &["4-12"],
    claims: &["faulkner-blockages-met-while-queued"],
    cases,
    measure,
};

const NAME: &str = "cost of a restart";
/// Tenths of the capacity: more than it carries.
const OVERLOAD: u32 = 11;
const SEEDS: u32 = 20;
/// Seconds until slow start is over.
const SETTLED: f64 = 30.0;
/// Blockages that a run has to meet on average.
const MET: f64 = 20.0;

/// The transports: TCP, and datagrams to tell what the link alone loses.
const TRANSPORTS: [&str; 2] = ["tcp", "udp"];

fn name(transport: &str, d: f64) -> String {
    format!("{transport} d={d}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for transport in TRANSPORTS {
        for d in DURATIONS.into_iter().filter(|&d| transport == "tcp" || d == SHORT || d == LENGTHY) {
            let channel = Channel::Blockage { f: F, d };
            let measured = (MET * d / F).max(SECONDS - SETTLED);
            let source = Source { transport, ..Source::tcp(offered(&channel, OVERLOAD)) };
            let scenario = source.over(&channel, SETTLED + effort.choose(measured / 8.0, measured))?;
            cases.push(Case::new(name(transport, d), scenario, effort.choose(2, SEEDS)));
        }
    }
    Ok(cases)
}

/// Bits on the line of the packet with a record: a datagram's headers are 24 bytes shorter than a segment's.
fn packet_bits(transport: &str) -> f64 {
    if transport == "udp" { PACKET_BITS - 24.0 * 8.0 } else { PACKET_BITS }
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { progress: true, ..Watch::default() })?;
    let settled = at(SETTLED);
    let all = run.progress.first().map_or(&[][..], |received| &received.points);
    let before = all.partition_point(|(read, _)| *read <= settled);
    let skipped = before.checked_sub(1).map_or(0, |last| all[last].1);
    let bytes = all.last().map_or(0, |(_, bytes)| bytes.saturating_sub(skipped));
    let mut open = scenario.duration.as_secs_f64() - SETTLED;
    let mut met = 0;
    for blocked in blockages(scenario, seed).filter(|blocked| blocked.end > settled) {
        open -= blocked.end.saturating_since(blocked.start.max(settled)).as_secs_f64();
        met += 1;
    }
    let used = bytes as f64 / f64::from(RECORD) * packet_bits(run.sources[0].transport) / RATE;
    let mut measured = Measurements::new();
    measured.note("cost", (met > 0).then(|| (open - used) / f64::from(met)));
    let mut start = scenario.clone();
    start.duration = Duration::from_secs_f64(SETTLED);
    let before = run::run(scheme, &start, seed, &Watch::default())?.sources[0].timeouts;
    let timeouts = run.sources[0].timeouts.saturating_sub(before);
    measured.note("timeouts", (met > 0).then(|| timeouts as f64 / f64::from(met)));
    Ok(measured)
}

pub(super) fn met_while_queued(samples: &Samples) -> Ruling {
    let met = |tenths| {
        let runs = samples.values(duration::NAME, &duration::name(SHORT, tenths), "met");
        crate::statistics::Spread::of(runs).map(|runs| runs.median)
    };
    let costs = DURATIONS.map(|d| samples.interval(NAME, &name("tcp", d), "cost"));
    let extreme = |pick: fn(f64, f64) -> f64| {
        let means: Option<Vec<f64>> = costs.iter().map(|cost| cost.map(|cost| cost.mean)).collect();
        means?.into_iter().reduce(pick)
    };
    let least = extreme(f64::min);
    let ratio = extreme(f64::max).zip(least).map(|(most, least)| most / least);
    let mut criteria = vec![
        Criterion::within(format!("blockages met at load 0.2, d = {SHORT} s, median"), met(2), 1.0, 1.0),
        Criterion::at_least(format!("blockages met at load 0.9, d = {SHORT} s, median"), met(9), 3.0),
        Criterion::new(
            format!("greatest over least cost of a restart, d = {SHORT} to {LENGTHY} s"),
            "below 2, and all above 0",
            ratio,
            ratio.zip(least).map(|(ratio, least)| ratio < 2.0 && least > 0.0),
        ),
    ];
    for (d, cost) in DURATIONS.into_iter().zip(costs) {
        criteria.push(Criterion::told(format!("open seconds that a blockage costs at d = {d} s"), cost));
    }
    for d in [SHORT, LENGTHY] {
        let over = |transport, quantity| samples.interval(NAME, &name(transport, d), quantity);
        criteria.push(Criterion::told(format!("the same over UDP at d = {d} s"), over("udp", "cost")));
        let timeouts = over("tcp", "timeouts");
        criteria.push(Criterion::told(format!("TCP's time-outs for each blockage at d = {d} s"), timeouts));
    }
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let cell = |d: f64| {
        let row = [("d", format!("{d} s"))];
        Cell::of_mean("cost of a restart, s", &row, samples.values(NAME, &name("tcp", d), "cost"))
    };
    DURATIONS.into_iter().map(cell).collect()
}
