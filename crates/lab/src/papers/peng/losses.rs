//! Section 3.3, equations 4 and 5: three members with unequal windows, and one scripted loss of each kind.
//!
//! A run without losses tells which packet to lose: a segment that the first member sends two round trips after the last
//! one has started, which duplicate acknowledgements find, or its very last one, which only the timer does. The queue has room for all, so nothing
//! else is lost. Windows are read at the very acknowledgement or expiry at which the ensemble counts the loss, and just
//! before it; after a time-out our ensemble sets all windows at once.

use std::io;

use base::Instant;
use channel::ErrorModel;

use super::MSS;
use super::traced::Traced;
use crate::claims::Measurements;
use crate::observe::{Aggregate, AggregateMark};
use crate::study::probe::{Method, Probe, Trial};

/// `X(name, ...)`: windows around each loss; `members` and `others`: their names.
pub(super) const LOSSES: Probe = Probe {
    name: "losses",
    version: 1,
    quantities: &["X", "members", "others"],
    series: &[],
    method: Method::Trial(measure),
};

/// The members, the one that is hit first.
const MEMBERS: [&str; 3] = ["hit", "other-1", "other-2"];

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    let clean = Traced::run(trial, scenario)?;
    measured.set("X", &["mss".into()], MSS);
    measured.set_texts("members", &MEMBERS);
    measured.set_texts("others", &MEMBERS[1..]);
    let dup_acks = early_packet(&clean).map(|lost| losing(trial, lost));
    let timeout = last_packet(&clean).map(|lost| losing(trial, lost));
    measure_dup_acks(measured, dup_acks.transpose()?.as_ref());
    measure_timeout(measured, timeout.transpose()?.as_ref());
    Ok(())
}

/// The number of the first packet with data of the first member two round trips after the last member's first data.
fn early_packet(clean: &Traced) -> Option<u64> {
    let starts = MEMBERS.iter().map(|member| clean.first_data(clean.group(member).first()?));
    let last_start = starts.collect::<Option<Vec<Instant>>>()?.into_iter().max()?;
    let time = last_start + clean.rtt * 2;
    let flow = clean.flow(clean.group(MEMBERS[0]).first()?)?;
    flow.segments.iter().find(|segment| segment.at >= time).map(|segment| segment.number)
}

/// The number of the packet with the first member's last data.
fn last_packet(clean: &Traced) -> Option<u64> {
    let flow = clean.flow(clean.group(MEMBERS[0]).first()?)?;
    flow.segments.last().map(|segment| segment.number)
}

/// The run in which packet number `lost` of the server is lost.
fn losing(trial: &Trial<'_>, lost: u64) -> io::Result<Traced> {
    let mut scenario = trial.scenario().clone();
    if let Some(link) = scenario.link.get_mut("satellite") {
        link.channel.errors = ErrorModel::Scripted { lost: vec![lost] };
        link.channel.up_errors = Some(ErrorModel::None);
    }
    Traced::run(trial, &scenario)
}

fn measure_dup_acks(measured: &mut Measurements, traced: Option<&Traced>) {
    let found = traced.and_then(|traced| {
        let (before, after) = step(traced.aggregate()?, |mark| mark.losses)?;
        Some((traced, before, after))
    });
    let reason = "no member found the loss by duplicate acknowledgements while all three were there";
    for member in MEMBERS {
        let windows = found.and_then(|(traced, _, after)| around(traced, member, after.at));
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

fn measure_timeout(measured: &mut Measurements, traced: Option<&Traced>) {
    let found = traced.and_then(|traced| {
        let (_, after) = step(traced.aggregate()?, |mark| mark.timeouts)?;
        Some((traced, after))
    });
    let reason = "no member found the loss by its timer while all three were there";
    for member in MEMBERS {
        let window =
            found.and_then(|(traced, after)| around(traced, member, after.at)).map(|(_, after)| after);
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
fn around(traced: &Traced, member: &str, time: Instant) -> Option<(f64, f64)> {
    let windows = traced.windows(traced.group(member).first()?)?;
    let before = windows.before(time)?.cwnd;
    let after = windows.marks.iter().find(|mark| mark.at == time).map_or(before, |mark| mark.cwnd);
    Some((before as f64, after as f64))
}
