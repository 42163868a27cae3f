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

use base::config::ConfigError;
use base::{Duration, Instant};

use super::MSS;
use super::trial::Trial;
use crate::bound;
use crate::claims::Measurements;
use crate::reproduce::{Cell, FIRST_SEED, Point};
use crate::run::TransferResult;
use crate::scenario::{Scenario, Suite};

const SCENARIO: &str = include_str!("../../../../../scenarios/peng/ftp.toml");

const GROUPS: [(&str, f64); 2] = [("first", 1.0), ("second", 2.0)];
/// Connections of a group.
const MEMBERS: f64 = 3.0;
/// Segments of the aggregate from which on rounds are compared: three members start with one each.
const FIRST_COMPARED: f64 = 4.0;

pub(super) fn scenarios(point: &Point) -> Result<Vec<Suite>, ConfigError> {
    Ok(vec![super::scenario("ftp", SCENARIO, point, &[])?])
}

/// `ftp(scheme, group)` and the quantities of the FTP claims.
pub(super) fn measure(suites: &[Suite], seed: u64) -> io::Result<Measurements> {
    let [tcp, stcp, single] =
        [0, 1, 2].map(|scheme| Trial::of(&suites[0], &suites[0].schemes[scheme].0, seed));
    let (tcp, stcp, single) = (tcp?, stcp?, single?);
    let mut measured = Measurements::new();
    measured.set("X", &["mss".into()], MSS);
    measured.set("num_connections", &[], MEMBERS);
    for (scheme, trial) in [("TCP", &tcp), ("STCP", &stcp)] {
        for (group, number) in GROUPS {
            let never = "a file did not arrive within the run";
            measured.set_or("ftp", &[scheme.into(), number.into()], trial.group_seconds(group), never);
            let arguments = ["first_rtt_bytes".into(), scheme.into(), number.into()];
            measured.set_or("X", &arguments, first_rtt_bytes(trial, group), "no data were sent");
        }
    }
    measure_rounds(&mut measured, &suites[0].scenario, [&tcp, &stcp, &single]);
    measure_drops(&mut measured, &tcp, &stcp);
    measure_sharing(&mut measured, &stcp);
    Ok(measured)
}

/// Bytes that the group sent before its first acknowledgement of data: in the first round trip of data.
fn first_rtt_bytes(trial: &Trial, group: &str) -> Option<f64> {
    let flows: Vec<_> = trial.group(group).into_iter().filter_map(|transfer| trial.flow(transfer)).collect();
    let first_ack = flows.iter().filter_map(|flow| flow.acks.first()).map(|(at, _)| *at).min()?;
    let segments = flows.iter().flat_map(|flow| &flow.segments);
    let sent = segments.filter(|segment| segment.at < first_ack && !segment.again);
    Some(sent.map(|segment| f64::from(segment.len)).sum())
}

/// The sums of the first group's windows, round by round, and over which rounds they can be compared.
fn measure_rounds(measured: &mut Measurements, scenario: &Scenario, trials: [&Trial; 3]) {
    let [_, stcp, single] = trials;
    let window = scenario.tcp.window.receive_buffer.0 as f64;
    let mut rounds = Vec::new();
    for round in 0.. {
        let at = |trial: &Trial| round_at(trial, round).filter(|&time| is_undisturbed(trial, time));
        let [Some(in_tcp), Some(in_stcp), Some(in_single)] = trials.map(at) else { break };
        let sums = [(&trials[0], in_tcp), (&stcp, in_stcp), (&single, in_single)]
            .map(|(trial, time)| cwnd_sum(trial, time));
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

fn round_at(trial: &Trial, round: u32) -> Option<Instant> {
    let starts = trial.group("first").into_iter().filter_map(|transfer| trial.first_data(transfer));
    Some(starts.min()? + trial.rtt * u64::from(round) + trial.rtt / 2)
}

/// Whether nothing was dropped and no transfer had ended before `time`.
fn is_undisturbed(trial: &Trial, time: Instant) -> bool {
    let ended = |transfer: &TransferResult| {
        let end = transfer.opened.zip(transfer.seconds).map(|(opened, seconds)| opened + seconds);
        end.is_some_and(|end| end <= time.as_secs_f64())
    };
    let dropped = trial.drops().first().is_some_and(|&drop| drop <= time);
    !dropped && !trial.group("first").into_iter().any(ended)
}

fn cwnd_sum(trial: &Trial, time: Instant) -> f64 {
    let windows = trial.group("first").into_iter().filter_map(|transfer| trial.windows(transfer)?.at(time));
    windows.map(|mark| mark.cwnd as f64).sum()
}

/// Drops of each group, and those of STCP's second group while it was in slow start.
fn measure_drops(measured: &mut Measurements, tcp: &Trial, stcp: &Trial) {
    for (group, number) in GROUPS {
        let drops = [tcp, stcp].map(|trial| drops_of(trial, group).map(|drops| drops.len() as f64));
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
fn drops_of<'a>(trial: &'a Trial, group: &str) -> Option<&'a [Instant]> {
    let opened = trial.group(group).iter().filter_map(|transfer| transfer.opened).reduce(f64::min)?;
    let time: Range<Instant> = Instant::ZERO + Duration::from_secs_f64(opened)..trial.group_end(group)?;
    let drops = trial.drops();
    let place = |at: Instant| drops.partition_point(|&drop| drop < at);
    Some(&drops[place(time.start)..place(time.end)])
}

/// How well the ensemble keeps its sum, and how fairly it shares.
fn measure_sharing(measured: &mut Measurements, stcp: &Trial) {
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
fn jain(trial: &Trial, group: &str) -> Option<f64> {
    let flows: Vec<_> = trial.group(group).into_iter().filter_map(|transfer| trial.flow(transfer)).collect();
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

/// Figure 3.
pub(super) fn cells(point: &Point, runs: &[Measurements]) -> Result<Vec<Cell>, ConfigError> {
    let scenario = scenarios(point)?.remove(0).scenario;
    let mut cells = Vec::new();
    for scheme in ["TCP", "STCP"] {
        for (group, number) in GROUPS {
            let row = [("scheme", scheme.to_owned()), ("group", number.to_string())];
            let cell = Cell::new("figure 3", &row, runs, &format!("ftp('{scheme}', {number})"));
            cells.push(Cell { bound: bound::transfer_seconds(&scenario, FIRST_SEED, group), ..cell });
        }
    }
    let ratio = |name: &str, above: &str, below: &str, paper| {
        let cell = Cell::ratio("figure 3", &[("ratio", name.to_owned())], runs, above, below);
        Cell { paper: Some(paper), ..cell }
    };
    cells.push(ratio("group 1, STCP / TCP", "ftp('STCP', 1)", "ftp('TCP', 1)", 1.05));
    cells.push(ratio("group 2, TCP / STCP", "ftp('TCP', 2)", "ftp('STCP', 2)", 3.0));
    Ok(cells)
}
