//! Section 4.1 and figure 3: six 1 MB files in two consecutive groups of three concurrent transfers.
//!
//! Choices where the claims leave one:
//! - round r is looked at (r + 1/2) round-trip times after the group's first data, when the acknowledgements of round
//!   r - 1 have come in;
//! - rounds end before the first drop of any of the compared runs, before the first end of a transfer, and before the
//!   single connection reaches its receiver's window: from there on its congestion window is not what limits it, and
//!   ours does not grow while it does not limit;
//! - a group's drops are those from its first opening to its last byte; where neither scheme drops anything, the
//!   mechanism never came up, and the numbers of drops are unknown.

use core::ops::Range;
use std::io;

use base::{Duration, Instant};

use super::MSS;
use super::traced::Traced;
use crate::bound;
use crate::claims::Measurements;
use crate::run::TransferResult;
use crate::scenario::Scenario;
use crate::study::probe::{Method, Probe, Trial};

/// `ftp(scheme, group)`: seconds of a group of three files; `ftp_bound(group)`: the least that they can take; `X(name, ...)`:
/// what the claims about them name; `rounds`: those that can be compared.
pub(super) const FTP: Probe = Probe {
    name: "ftp",
    version: 1,
    quantities: &["ftp", "ftp_bound", "X", "rounds"],
    series: &[],
    method: Method::Trial(measure),
};

const GROUPS: [(&str, f64); 2] = [("first", 1.0), ("second", 2.0)];
/// Segments of the aggregate from which on rounds are compared: three members start with one each.
const FIRST_COMPARED: f64 = 4.0;

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let [tcp, stcp, single] = ["TCP", "STCP", "single TCP"].map(|scheme| Traced::of(trial, scheme));
    let (tcp, stcp, single) = (tcp?, stcp?, single?);
    measured.set("X", &["mss".into()], MSS);
    for (scheme, traced) in [("TCP", &tcp), ("STCP", &stcp)] {
        for (group, number) in GROUPS {
            let never = "a file did not arrive within the run";
            measured.set_or("ftp", &[scheme.into(), number.into()], traced.group_seconds(group), never);
            let arguments = ["first_rtt_bytes".into(), scheme.into(), number.into()];
            measured.set_or("X", &arguments, first_rtt_bytes(traced, group), "no data were sent");
        }
    }
    for (group, number) in GROUPS {
        let bound = bound::transfer_seconds(trial.scenario(), trial.seed, group);
        measured.set_or("ftp_bound", &[number.into()], bound, "no bound");
    }
    measure_rounds(measured, trial.scenario(), [&tcp, &stcp, &single]);
    measure_drops(measured, &tcp, &stcp);
    measure_sharing(measured, &stcp);
    Ok(())
}

/// Bytes that the group sent before its first acknowledgement of data: in the first round trip of data.
fn first_rtt_bytes(traced: &Traced, group: &str) -> Option<f64> {
    let flows: Vec<_> =
        traced.group(group).into_iter().filter_map(|transfer| traced.flow(transfer)).collect();
    let first_ack = flows.iter().filter_map(|flow| flow.acks.first()).map(|(at, _)| *at).min()?;
    let segments = flows.iter().flat_map(|flow| &flow.segments);
    let sent = segments.filter(|segment| segment.at < first_ack && !segment.again);
    Some(sent.map(|segment| f64::from(segment.len)).sum())
}

/// The sums of the first group's windows, round by round, and over which rounds they can be compared.
fn measure_rounds(measured: &mut Measurements, scenario: &Scenario, all: [&Traced; 3]) {
    let [_, stcp, single] = all;
    let window = scenario.tcp.window.receive_buffer.0 as f64;
    let mut rounds = Vec::new();
    for round in 0.. {
        let at = |traced: &Traced| round_at(traced, round).filter(|&time| is_undisturbed(traced, time));
        let [Some(in_tcp), Some(in_stcp), Some(in_single)] = all.map(at) else { break };
        let sums = [(&all[0], in_tcp), (&stcp, in_stcp), (&single, in_single)]
            .map(|(traced, time)| cwnd_sum(traced, time));
        if sums[2] >= window {
            break;
        }
        let aggregate = stcp.aggregate().and_then(|aggregate| aggregate.at(in_stcp));
        if aggregate.is_none_or(|mark| (mark.n_cwnd as f64) < FIRST_COMPARED * MSS) {
            continue;
        }
        for (scheme, sum) in ["TCP", "STCP", "single TCP"].into_iter().zip(sums) {
            measured.set("X", &["cwnd_sum".into(), scheme.into(), f64::from(round).into()], sum);
        }
        rounds.push(f64::from(round));
    }
    let none = "the first loss, or the receiver's window, comes before the first round to compare";
    measured.set_numbers("rounds", rounds, none);
}

fn round_at(traced: &Traced, round: u32) -> Option<Instant> {
    let starts = traced.group("first").into_iter().filter_map(|transfer| traced.first_data(transfer));
    Some(starts.min()? + traced.rtt * u64::from(round) + traced.rtt / 2)
}

/// Whether nothing was dropped and no transfer had ended before `time`.
fn is_undisturbed(traced: &Traced, time: Instant) -> bool {
    let ended = |transfer: &TransferResult| {
        let end = transfer.opened.zip(transfer.seconds).map(|(opened, seconds)| opened + seconds);
        end.is_some_and(|end| end <= time.as_secs_f64())
    };
    let dropped = traced.drops().first().is_some_and(|&drop| drop <= time);
    !dropped && !traced.group("first").into_iter().any(ended)
}

fn cwnd_sum(traced: &Traced, time: Instant) -> f64 {
    let windows = traced.group("first").into_iter().filter_map(|transfer| traced.windows(transfer)?.at(time));
    windows.map(|mark| mark.cwnd as f64).sum()
}

/// Drops of each group, and those of STCP's second group while it was in slow start.
fn measure_drops(measured: &mut Measurements, tcp: &Traced, stcp: &Traced) {
    for (group, number) in GROUPS {
        let drops = [tcp, stcp].map(|traced| drops_of(traced, group).map(|drops| drops.len() as f64));
        let came_up = drops.iter().flatten().any(|&drops| drops > 0.0);
        for (scheme, drops) in ["TCP", "STCP"].into_iter().zip(drops) {
            let reason = format!("nothing was dropped in group {number}, with TCP or with STCP");
            let arguments = ["drops".into(), scheme.into(), number.into()];
            measured.set_or("X", &arguments, drops.filter(|_| came_up), &reason);
        }
    }
    let in_slow_start = |time: &&Instant| {
        let mark = stcp.aggregate().and_then(|aggregate| aggregate.at(**time));
        mark.is_some_and(|mark| mark.n_cwnd < mark.n_ssthresh)
    };
    let drops = drops_of(stcp, "second").map(|drops| drops.iter().filter(in_slow_start).count() as f64);
    let arguments = ["slow_start_drops".into(), "STCP".into(), 2.0.into()];
    measured.set_or("X", &arguments, drops, "a file did not arrive within the run");
}

/// When data of the group were dropped.
fn drops_of<'a>(traced: &'a Traced, group: &str) -> Option<&'a [Instant]> {
    let opened = traced.group(group).iter().filter_map(|transfer| transfer.opened).reduce(f64::min)?;
    let time: Range<Instant> = Instant::ZERO + Duration::from_secs_f64(opened)..traced.group_end(group)?;
    let drops = traced.drops();
    let place = |at: Instant| drops.partition_point(|&drop| drop < at);
    Some(&drops[place(time.start)..place(time.end)])
}

/// How well the ensemble keeps its sum, and how fairly it shares.
fn measure_sharing(measured: &mut Measurements, stcp: &Traced) {
    let statistics = stcp.aggregate().map(|aggregate| aggregate.statistics);
    let none = "nothing was allocated";
    let excess = statistics.map(|statistics| statistics.max_window_excess as f64);
    measured.set_or("X", &["max_window_excess".into()], excess, none);
    let equal = statistics.filter(|statistics| statistics.allocations > 0);
    let equal = equal.map(|s| s.allocations_balanced as f64 / s.allocations as f64);
    measured.set_or("X", &["share_of_samples_equal".into()], equal, none);
    for (group, number) in GROUPS {
        let arguments = ["jain_bytes".into(), "STCP".into(), number.into()];
        measured.set_or("X", &arguments, jain(stcp, group), "a file did not arrive within the run");
    }
}

/// Jain's index of the bytes acknowledged to the members when the first of them has all of its own.
fn jain(traced: &Traced, group: &str) -> Option<f64> {
    let flows: Vec<_> =
        traced.group(group).into_iter().filter_map(|transfer| traced.flow(transfer)).collect();
    let last_acks: Option<Vec<Instant>> =
        flows.iter().map(|flow| flow.acks.last().map(|(at, _)| *at)).collect();
    let first_end = last_acks?.into_iter().min()?;
    let acked = |flow: &&crate::observe::Flow| {
        let place = flow.acks.partition_point(|(at, _)| *at <= first_end);
        place.checked_sub(1).map_or(0.0, |place| flow.acks[place].1 as f64)
    };
    let bytes: Vec<f64> = flows.iter().map(acked).collect();
    let (sum, squares): (f64, f64) = (bytes.iter().sum(), bytes.iter().map(|bytes| bytes * bytes).sum());
    Some(sum * sum / (bytes.len() as f64 * squares))
}
