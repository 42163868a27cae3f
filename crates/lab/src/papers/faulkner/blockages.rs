//! When the downlink is blocked, and what records and readers meet of it.

use core::ops::Range;
use std::io;

use base::Instant;

use crate::claims::Measurements;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::statistics::Spread;
use crate::study::probe::{Method, Probe, Trial};
use crate::traffic::latency::Sample;

/// `met(k)`: of the records that meet a blockage, the share of those that meet at least k. A record can meet blockages
/// from when it could first be at the terminal, where the obstacles are, until it is read.
pub(super) const MET: Probe = Probe {
    name: "blockages-met",
    version: 1,
    quantities: &["met"],
    series: &[],
    method: Method::Run { watch: |watch| watch.latencies = true, read: measure_met },
};

/// `resumption`: the median time in seconds from the end of a blockage until an application reads again; until the run
/// ends where none does. Blockages before the first data do not count.
pub(super) const RESUMPTION: Probe = Probe {
    name: "resumption",
    version: 1,
    quantities: &["resumption"],
    series: &[],
    method: Method::Run { watch: |watch| watch.progress = true, read: measure_resumption },
};

/// When the downlink of the satellite link is blocked in a run, at the terminal, where the obstacles are.
pub(super) fn blockages(scenario: &Scenario, seed: u64) -> Vec<Range<Instant>> {
    let channel = &scenario.link["satellite"].channel;
    let timeline = channel.down().errors.timeline(&channel.streams(seed, "satellite", "down"));
    timeline.blocked_in(Instant::ZERO..Instant::ZERO + scenario.duration).collect()
}

/// When a record was read.
pub(super) fn read_at(record: &Sample) -> Instant {
    record.sent.saturating_add(record.latency)
}

/// The numbers of blockages up to which [`MET`] counts.
const MOST_MET: usize = 4;

fn measure_met(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let blocked = blockages(trial.scenario(), trial.seed);
    let delay = trial.scenario().link["satellite"].channel.delay;
    let met = |record: &Sample| {
        let there = record.sent.saturating_add(delay);
        let over = blocked.partition_point(|blocked| blocked.end <= there);
        blocked.partition_point(|blocked| blocked.start < read_at(record)).saturating_sub(over)
    };
    let counts: Vec<usize> = run.latencies.values().flatten().map(met).filter(|&count| count > 0).collect();
    for k in 2..=MOST_MET {
        let share = counts.iter().filter(|&&count| count >= k).count() as f64 / counts.len() as f64;
        let share = (!counts.is_empty()).then_some(share);
        measured.set_or("met", &[(k as f64).into()], share, "no record met a blockage");
    }
    Ok(())
}

fn measure_resumption(trial: &Trial<'_>, run: &Run, measured: &mut Measurements) -> io::Result<()> {
    let mut reads: Vec<Instant> =
        run.progress.iter().flat_map(|received| received.points.iter().map(|(at, _)| *at)).collect();
    reads.sort_unstable();
    let end = Instant::ZERO + trial.scenario().duration;
    let first = reads.first().copied().unwrap_or(end);
    let resumption = |blocked: Range<Instant>| {
        let next = reads.partition_point(|&at| at <= blocked.end);
        reads.get(next).unwrap_or(&end).saturating_since(blocked.end).as_secs_f64()
    };
    let met = blockages(trial.scenario(), trial.seed).into_iter();
    let met = met.filter(|blocked| blocked.start > first && blocked.end < end);
    let median = Spread::of(met.map(resumption)).map(|spread| spread.median);
    measured.set_or("resumption", &[], median, "no blockage ended within the run");
    Ok(())
}
