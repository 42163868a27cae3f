//! Why order pays: what TCP sends again too soon without it, and what waiting for order costs.
//!
//! A retransmission counts as fast when the sender is in fast recovery, and as spurious when the receiver gets data
//! that it had. Runs have the baseline's window and its 300 s. The time-out is the mean over time of what TCP would wait
//! without back-off, which follows the round trips alone.
//!
//! Latency across the link is that of datagrams at half of the channel's capacity, which both schemes carry alike.

use std::collections::BTreeMap;
use std::io;

use base::config::ConfigError;

use super::{LEAST, SCHEMES, Setting, WINDOW, settings};
use crate::claims::Measurements;
use crate::observe::EventLog;
use crate::observe::events::Segment;
use crate::papers::faulkner::setting::{RATE, logged, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::{mean, standard_deviation};

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-17"], claims: &[CLAIM], cases, measure };

pub(super) const DATAGRAMS: Experiment = Experiment {
    name: UDP,
    figures: &["4-17"],
    claims: &[CLAIM],
    cases: datagram_cases,
    measure: measure_datagrams,
};

pub(super) const CLAIM: &str = "faulkner-reordering-triggers-fast-retransmit";
const NAME: &str = "ordering and fast retransmissions";
const UDP: &str = "ordering and latency";
const SEEDS: u32 = 10;
/// The share of segments that may be sent again in vain by fast retransmission (the claim's check).
const FEW: f64 = 0.01;

fn channels() -> impl Iterator<Item = Setting> {
    settings().into_iter().filter(|setting| setting.window == WINDOW)
}

fn all_cases(effort: Effort, set: impl Fn(&Setting) -> Vec<String>) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for setting in channels() {
        for scheme in SCHEMES {
            let seconds = effort.choose(LEAST / 8.0, LEAST);
            let scenario = scenario(scheme, &setting.channel, seconds, &set(&setting))?;
            cases.push(Case::new(setting.case(scheme), scenario, effort.choose(2, SEEDS)));
        }
    }
    Ok(cases)
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    all_cases(effort, |_| Vec::new())
}

fn datagram_cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    all_cases(effort, |setting| {
        let bps = 0.5 * setting.channel.capacity() * RATE;
        vec![format!(
            "traffic.download={{ rate = {{ from = \"server\", to = \"terminal\", rate = \"{bps:.0} bit/s\", record = \
             \"1448 B\", transport = \"udp\" }} }}"
        )]
    })
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = logged(scheme, scenario, seed, Watch { host_events: true, ..Watch::default() })?;
    let spurious = spurious_fast_retransmissions(&run.log) as f64;
    let segments: u64 = run.transfers.iter().map(|transfer| transfer.segments_sent).sum();
    let mut measured = Measurements::new();
    measured.note("per MB", (run.bytes > 0).then(|| spurious / (run.bytes as f64 / 1e6)));
    measured.note("share", (segments > 0).then(|| spurious / segments as f64));
    measured.note("rto", mean_rto(&run.log));
    Ok(measured)
}

/// Data segments that the server sent again in fast recovery and that reached the terminal although it had their data.
fn spurious_fast_retransmissions(log: &EventLog) -> u64 {
    let states: Vec<_> = log.sender_states("server").collect();
    // A state is logged at the same time as the segments that its change sends, and before them.
    let fast = |at, segment: &Segment| {
        let known = states.partition_point(|(since, _)| *since <= at);
        let own = states[..known].iter().rev().find(|(_, state)| state.from == segment.from);
        own.is_some_and(|(_, state)| state.recovering)
    };
    let mut resent: BTreeMap<(u16, u64), u64> = BTreeMap::new();
    for (at, segment) in log.segments("server").filter(|(_, segment)| segment.sent && segment.again) {
        if fast(at, segment) {
            *resent.entry((segment.from, segment.seq)).or_default() += 1;
        }
    }
    let mut spurious = 0;
    for (_, segment) in
        log.segments("terminal").filter(|(_, segment)| !segment.sent && segment.len > 0 && segment.again)
    {
        if let Some(left) = resent.get_mut(&(segment.from, segment.seq)).filter(|left| **left > 0) {
            *left -= 1;
            spurious += 1;
        }
    }
    spurious
}

/// The mean over time of the time-out without its doublings, in seconds.
fn mean_rto(log: &EventLog) -> Option<f64> {
    let states: Vec<_> = log.sender_states("server").filter(|(_, state)| state.srtt.is_some()).collect();
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([log.ended_at()]);
    let (mut sum, mut time) = (0.0, 0.0);
    for ((since, state), until) in states.iter().zip(ends) {
        let span = until.saturating_since(*since).as_secs_f64();
        sum += span * state.rto.as_secs_f64() / f64::from(2_u32.saturating_pow(state.backoff));
        time += span;
    }
    (time > 0.0).then(|| sum / time)
}

fn measure_datagrams(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { latencies: true, ..Watch::default() })?;
    let latencies: Vec<f64> =
        run.latencies["download"].iter().map(|sample| sample.latency.as_secs_f64()).collect();
    let mut measured = Measurements::new();
    measured.note("mean", mean(&latencies));
    measured.note("deviation", standard_deviation(&latencies));
    Ok(measured)
}

pub(super) fn triggers(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for setting in channels() {
        let [on, off] = SCHEMES.map(|scheme| setting.case(scheme));
        let on_less_off = |experiment, quantity| samples.difference(experiment, [&on, &off], quantity);
        let channel = &setting.name;
        let vain = samples.difference(NAME, [&off, &on], "per MB");
        let above = |what: String, value: Option<crate::statistics::Interval>| {
            Criterion::new(what, "above 0", value, value.map(|value| value.mean > 0.0))
        };
        criteria.push(above(format!("spurious fast retransmissions per MB, off less on, {channel}"), vain));
        criteria.push(Criterion::at_most(
            format!("share of segments with order on, {channel}"),
            samples.interval(NAME, &on, "share"),
            FEW,
        ));
        let latency = on_less_off(UDP, "mean");
        criteria.push(above(format!("mean latency of packets in s, on less off, {channel}"), latency));
        let deviation = on_less_off(UDP, "deviation");
        criteria.push(above(format!("standard deviation of that in s, on less off, {channel}"), deviation));
        let rto = on_less_off(NAME, "rto");
        criteria.push(Criterion::at_least(format!("mean time-out in s, on less off, {channel}"), rto, 0.0));
        criteria.push(Criterion::told(
            format!("spurious fast retransmissions per MB, off, {channel}"),
            samples.interval(NAME, &off, "per MB"),
        ));
    }
    Ruling::all(criteria)
}
