//! Section 3.3, equations 4 and 5: three members with unequal windows, and one scripted loss of each kind.
//!
//! A run without losses tells which packet to lose: a segment that the first member sends two round trips after the last
//! one has started, which duplicate acknowledgements find, or its very last one, which only the timer does. The queue has room for all, so nothing
//! else is lost. Windows are read at the very acknowledgement or expiry at which the ensemble counts the loss, and just
//! before it; after a time-out our ensemble sets all windows at once.

use std::io;

use base::Instant;
use base::config::ConfigError;
use channel::ErrorModel;

use super::MSS;
use super::trial::Trial;
use crate::claims::Measurements;
use crate::observe::{Aggregate, AggregateMark};
use crate::reproduce::Point;
use crate::scenario::{Scenario, Suite};

const SCENARIO: &str = include_str!("../../../../../scenarios/peng/losses.toml");

/// The members, the one that is hit first.
const MEMBERS: [&str; 3] = ["hit", "other-1", "other-2"];

/// The point without its queue.
pub(super) fn scenarios(point: &Point) -> Result<Vec<Suite>, ConfigError> {
    let queue = |key: &String| key.starts_with("link.satellite.queue");
    let overrides = point.overrides.iter().filter(|change| !queue(&change.to_string())).cloned().collect();
    let point = Point { overrides, ..point.clone() };
    Ok(vec![super::scenario("losses", SCENARIO, &point, &[])?])
}

/// The quantities of the claim about the two kinds of loss.
pub(super) fn measure(suites: &[Suite], seed: u64) -> io::Result<Measurements> {
    let (name, scenario) = &suites[0].schemes[0];
    let clean = Trial::run(name, scenario, seed)?;
    let mut measured = Measurements::new();
    measured.set("X", &["mss".into()], MSS);
    measured.set_texts("members", &MEMBERS);
    measured.set_texts("others", &MEMBERS[1..]);
    let dup_acks = early_packet(&clean).map(|lost| losing(name, scenario, seed, lost));
    let timeout = last_packet(&clean).map(|lost| losing(name, scenario, seed, lost));
    measure_dup_acks(&mut measured, dup_acks.transpose()?.as_ref());
    measure_timeout(&mut measured, timeout.transpose()?.as_ref());
    Ok(measured)
}

/// The number of the first packet with data of the first member two round trips after the last member's first data.
fn early_packet(clean: &Trial) -> Option<u64> {
    let starts = MEMBERS.iter().map(|member| clean.first_data(clean.group(member).first()?));
    let last_start = starts.collect::<Option<Vec<Instant>>>()?.into_iter().max()?;
    let time = last_start + clean.rtt * 2;
    let flow = clean.flow(clean.group(MEMBERS[0]).first()?)?;
    flow.segments.iter().find(|segment| segment.at >= time).map(|segment| segment.number)
}

/// The number of the packet with the first member's last data.
fn last_packet(clean: &Trial) -> Option<u64> {
    let flow = clean.flow(clean.group(MEMBERS[0]).first()?)?;
    flow.segments.last().map(|segment| segment.number)
}

/// The run in which packet number `lost` of the server is lost.
fn losing(name: &str, scenario: &Scenario, seed: u64, lost: u64) -> io::Result<Trial> {
    let mut scenario = scenario.clone();
    if let Some(link) = scenario.link.get_mut("satellite") {
        link.channel.errors = ErrorModel::Scripted { lost: vec![lost] };
        link.channel.up_errors = Some(ErrorModel::None);
    }
    Trial::run(name, &scenario, seed)
}

fn measure_dup_acks(measured: &mut Measurements, trial: Option<&Trial>) {
    let found = trial.and_then(|trial| {
        let (before, after) = step(trial.aggregate()?, |mark| mark.losses)?;
        Some((trial, before, after))
    });
    let reason = "no member found the loss by duplicate acknowledgements while all three were there";
    for member in MEMBERS {
        let windows = found.and_then(|(trial, _, after)| around(trial, member, after.at));
        measured.set_or("X", &["cwnd_before".into(), member.into()], windows.map(|(b, _)| b), reason);
        measured.set_or("X", &["cwnd_after_dupack".into(), member.into()], windows.map(|(_, a)| a), reason);
    }
    let n_cwnd = [
        ("n_cwnd_before", found.map(|(_, before, _)| before.n_cwnd as f64)),
        ("n_cwnd_after_dupack", found.map(|(_, _, after)| after.n_cwnd as f64)),
    ];
    for (name, value) in n_cwnd {
        measured.set_or("X", &[name.into()], value, reason);
    }
}

fn measure_timeout(measured: &mut Measurements, trial: Option<&Trial>) {
    let found = trial.and_then(|trial| {
        let (_, after) = step(trial.aggregate()?, |mark| mark.timeouts)?;
        Some((trial, after))
    });
    let reason = "no member found the loss by its timer while all three were there";
    for member in MEMBERS {
        let window = found.and_then(|(trial, after)| around(trial, member, after.at)).map(|(_, after)| after);
        measured.set_or("X", &["cwnd_after_timeout".into(), member.into()], window, reason);
    }
    let n_cwnd = found.map(|(_, after)| after.n_cwnd as f64);
    measured.set_or("X", &["n_cwnd_after_timeout".into()], n_cwnd, reason);
}

/// The marks around the first step of a counter, if all members were there.
fn step(aggregate: &Aggregate, counter: fn(&AggregateMark) -> u64) -> Option<(AggregateMark, AggregateMark)> {
    let pair = aggregate.marks.windows(2).find(|pair| counter(&pair[1]) > counter(&pair[0]))?;
    (pair[1].num_connections as usize == MEMBERS.len()).then_some((pair[0], pair[1]))
}

/// A member's window just before a time, and what it then first became: an acknowledgement may come in the same instant.
fn around(trial: &Trial, member: &str, time: Instant) -> Option<(f64, f64)> {
    let windows = trial.windows(trial.group(member).first()?)?;
    let before = windows.before(time)?.cwnd;
    let after = windows.marks.iter().find(|mark| mark.at == time).map_or(before, |mark| mark.cwnd);
    Some((before as f64, after as f64))
}
