//! Section 3.3 and figure 2: connection 1 runs alone and ends, connection 2 follows, connection 3 joins it and stays.
//!
//! Choices where the claims leave one: connection 2 pays at its first call of the allocation after connection 3's SYN
//! has come; its window "before" is the one just before the SYN, "after" the one that it has then paid. What connection 3
//! starts with it has only a round trip later, when its handshake is over; that window is the one at its first data.
//! The round trip after connection 2's close is one without queueing.

use std::io;

use base::Instant;

use super::MSS;
use super::traced::Traced;
use crate::claims::Measurements;
use crate::observe::Windows;
use crate::study::probe::{Method, Probe, Trial};

/// `X(name, ...)`: what the claims about figure 2 name; the series `tcp_1` to `stcp_3`: seconds and kilobytes of each
/// connection's window, from its first segment until all its data were acknowledged.
pub(super) const WINDOWS: Probe = Probe {
    name: "figure-2",
    version: 1,
    quantities: &["X"],
    series: &["tcp_1", "tcp_2", "tcp_3", "stcp_1", "stcp_2", "stcp_3"],
    method: Method::Trial(measure),
};

/// The paper's names of the connections, and ours.
const CONNECTIONS: [(&str, &str); 3] = [("conn 1", "one"), ("conn 2", "two"), ("conn 3", "three")];

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let (tcp, stcp) = (Traced::of(trial, "TCP")?, Traced::of(trial, "STCP")?);
    measured.set("X", &["mss".into()], MSS);
    for (scheme, traced) in [("TCP", &tcp), ("STCP", &stcp)] {
        for (connection, _) in CONNECTIONS {
            let arguments = ["initial_cwnd".into(), scheme.into(), connection.into()];
            measured.set_or("X", &arguments, initial_cwnd(traced, connection), "it sent no data");
        }
    }
    let difference = windows(&tcp, "conn 1").zip(windows(&stcp, "conn 1"));
    let difference = difference.map(|(tcp, stcp)| trace_difference(tcp, stcp));
    measured.set_or("X", &["trace_difference".into(), "conn 1".into()], difference, "it sent no data");
    let at_close = stcp.aggregate().and_then(|aggregate| {
        let closed =
            aggregate.marks.iter().find(|mark| mark.num_connections == 0 && mark.at > Instant::ZERO)?;
        Some(closed.n_cwnd as f64)
    });
    let arguments = ["n_cwnd_at_close".into(), "STCP".into(), "conn 1".into()];
    measured.set_or("X", &arguments, at_close, "it never closed");
    measure_hand_over(measured, &stcp);
    measure_release(measured, &stcp);
    if trial.is_first {
        for (scheme, traced) in [("tcp", &tcp), ("stcp", &stcp)] {
            for (number, (connection, _)) in (1..).zip(CONNECTIONS) {
                let marks = windows(traced, connection).map_or(&[][..], |windows| &windows.marks);
                let points = marks.iter().map(|mark| (mark.at.as_secs_f64(), mark.cwnd as f64 / 1e3));
                measured.set_series(&format!("{scheme}_{number}"), stepped(points));
            }
        }
    }
    Ok(())
}

/// A line through points that holds each ordinate until the next.
fn stepped(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for (x, y) in points {
        if let Some(&(_, before)) = line.last() {
            line.push((x, before));
        }
        line.push((x, y));
    }
    line
}

/// A connection's windows, by the paper's name.
fn windows<'a>(traced: &'a Traced, connection: &str) -> Option<&'a Windows> {
    let (_, name) = CONNECTIONS.into_iter().find(|(paper, _)| *paper == connection)?;
    traced.windows(traced.group(name).first()?)
}

fn first_data(traced: &Traced, connection: &str) -> Option<Instant> {
    let (_, name) = CONNECTIONS.into_iter().find(|(paper, _)| *paper == connection)?;
    traced.first_data(traced.group(name).first()?)
}

fn initial_cwnd(traced: &Traced, connection: &str) -> Option<f64> {
    let mark = windows(traced, connection)?.at(first_data(traced, connection)?)?;
    Some(mark.cwnd as f64)
}

/// The greatest difference between two traces of one window at any time; zero only if they are the same throughout.
fn trace_difference(a: &Windows, b: &Windows) -> f64 {
    let times = a.marks.iter().chain(&b.marks).map(|mark| mark.at);
    let cwnd = |windows: &Windows, time| windows.at(time).map_or(0.0, |mark| mark.cwnd as f64);
    times.map(|time| (cwnd(a, time) - cwnd(b, time)).abs()).fold(0.0, f64::max)
}

fn measure_hand_over(measured: &mut Measurements, stcp: &Traced) {
    let around = || {
        let joins = windows(stcp, "conn 3")?.marks.first()?.at;
        let second = windows(stcp, "conn 2")?;
        let paid = second.marks.iter().find(|mark| mark.at >= joins)?;
        Some((second.before(joins)?.cwnd as f64, paid.cwnd as f64))
    };
    let around = around();
    let reason = "connection 2 had nothing more to send when connection 3 joined";
    for (name, value) in [("cwnd_before", around.map(|(b, _)| b)), ("cwnd_after", around.map(|(_, a)| a))] {
        measured.set_or("X", &[name.into(), "conn 2".into()], value, reason);
    }
}

fn measure_release(measured: &mut Measurements, stcp: &Traced) {
    let around = || {
        let closed = closed_at(stcp)?;
        let third = windows(stcp, "conn 3")?;
        let before = third.before(closed)?.cwnd as f64;
        let later = closed + stcp.rtt;
        // After its last acknowledgement a window says nothing.
        let last = stcp.flow(stcp.group("three").first()?)?.acks.last()?.0;
        (later <= last).then(|| third.at(later)).flatten().map(|after| (before, after.cwnd as f64))
    };
    let around = around();
    let reason = "connection 3 was not alone for a round trip";
    let values = [
        ("cwnd_before_close", around.map(|(before, _)| before)),
        ("cwnd_one_rtt_after_close", around.map(|(_, after)| after)),
    ];
    for (name, value) in values {
        measured.set_or("X", &[name.into(), "conn 3".into()], value, reason);
    }
}

/// When connection 2 left the ensemble and connection 3 stayed: the last time that two members became one.
fn closed_at(stcp: &Traced) -> Option<Instant> {
    let marks = &stcp.aggregate()?.marks;
    let last = marks.windows(2).rfind(|pair| pair[0].num_connections == 2 && pair[1].num_connections == 1)?;
    let [two, three] = ["two", "three"].map(|name| {
        let transfer = stcp.group(name).first().copied()?;
        Some(stcp.flow(transfer)?.acks.last()?.0)
    });
    (two? < three?).then_some(last[1].at)
}
