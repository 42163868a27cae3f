//! What a tunnel makes of its path in a part of a run.

use core::ops::Range;

use base::{Duration, Instant};

use super::{Method, Probe, Trial};
use crate::observe::{QueueTrace, TunnelTrace};
use crate::run::Received;

/// Between two numbers of the experiment's `with`, `from` and `to`, seconds of the run: `rate(name)`: bits a second that the transfers or
/// sources called `name` received, and `rates_jain`: how equal those of all names are; `found(node)`: the rate that the end of a tunnel
/// there takes the path for, the median of its samples, in bit/s; `wait(direction)`: the longest of those times that half of the time a
/// packet at the end of the queue of a direction, such as `'wan/down'`, would have waited, in seconds at the rate of its line, and
/// `wait_95(direction)`: the same of 95 % of the time. The series `found`: seconds, and Mbit/s that the first of all tunnels' ends takes its path for.
pub(super) const PATH: Probe = Probe {
    name: "path",
    version: 1,
    quantities: &["rate", "rates_jain", "found", "wait", "wait_95"],
    series: &["found"],
    method: Method::Run {
        watch: |watch| {
            watch.progress = true;
            watch.queues = true;
            watch.tunnels = true;
        },
        read: |trial, run, measured| {
            let span = span(trial)?;
            let seconds = span.end.saturating_since(span.start).as_secs_f64();
            let mut names: Vec<&str> = run.progress.iter().map(|received| received.name.as_str()).collect();
            names.dedup();
            let mut rates = Vec::new();
            for name in names {
                let of_name = run.progress.iter().filter(|received| received.name == name);
                let bytes: u64 = of_name.map(|received| received_in(received, &span)).sum();
                rates.push(bytes as f64 * 8.0 / seconds);
                measured.set("rate", &[name.into()], bytes as f64 * 8.0 / seconds);
            }
            measured.note("rates_jain", super::sharing::jain(&rates));
            for (node, trace) in &run.tunnels {
                measured.set_or("found", &[node.as_str().into()], found(trace, &span), "it sent nothing");
            }
            for (direction, trace) in &run.queues {
                let (name, down) = direction.split_once('/').unwrap_or((direction, "down"));
                let Some(link) = trial.scenario().link.get(name) else { continue };
                let lines = trial.scenario().lines(link, down != "up");
                let rate = lines.map(|line| line.rate.as_bps() as f64).sum::<f64>();
                for (quantity, part) in [("wait", 0.5), ("wait_95", 0.95)] {
                    let wait = quantile(trace, &span, part) as f64 * 8.0 / rate;
                    measured.set(quantity, &[direction.as_str().into()], wait);
                }
            }
            if let Some(trace) = run.tunnels.values().next().filter(|_| trial.is_first) {
                let points = trace
                    .samples
                    .iter()
                    .filter_map(|sample| Some((sample.at.as_secs_f64(), sample.capacity? as f64 / 1e6)));
                measured.set_series("found", crate::drawing::thin(points.collect()));
            }
            Ok(())
        },
    },
};

fn span(trial: &Trial<'_>) -> std::io::Result<Range<Instant>> {
    let at = |name| Ok::<_, std::io::Error>(Instant::ZERO + Duration::from_secs_f64(trial.number(name)?));
    Ok(at("from")?..at("to")?)
}

/// Bytes that came in a span.
fn received_in(received: &Received, span: &Range<Instant>) -> u64 {
    let by = |at: Instant| {
        let next = received.points.partition_point(|(then, _)| *then <= at);
        received.points[..next].last().map_or(0, |(_, bytes)| *bytes)
    };
    by(span.end) - by(span.start)
}

/// The median of what an end took the path for.
fn found(trace: &TunnelTrace, span: &Range<Instant>) -> Option<f64> {
    let within = trace.samples.iter().filter(|sample| span.contains(&sample.at));
    let mut found: Vec<u64> = within.filter_map(|sample| sample.capacity).collect();
    found.sort_unstable();
    found.get(found.len() / 2).map(|found| *found as f64)
}

/// Bytes than which no more waited for a `part` of the time.
fn quantile(trace: &QueueTrace, span: &Range<Instant>, part: f64) -> u64 {
    let ends = trace.marks.iter().skip(1).map(|mark| mark.at).chain([Instant::MAX]);
    let mut held: Vec<(u64, u64)> = trace
        .marks
        .iter()
        .zip(ends)
        .map(|(mark, end)| (mark.bytes, base::time::overlap(&(mark.at..end), span).as_nanos()))
        .filter(|(_, held)| *held > 0)
        .collect();
    held.sort_unstable();
    let whole = span.end.saturating_since(span.start).as_nanos() as f64;
    // Before the first mark nothing waited.
    let mut sum = whole - held.iter().map(|(_, held)| *held as f64).sum::<f64>();
    for (bytes, time) in held {
        if sum >= part * whole {
            return 0;
        }
        sum += time as f64;
        if sum >= part * whole {
            return bytes;
        }
    }
    0
}
