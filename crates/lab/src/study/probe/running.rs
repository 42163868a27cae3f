//! How a mean settles as a run goes on.

use base::{Duration, Instant};

use super::{Method, Probe, Trial};
use crate::metrics;
use crate::run::Run;

/// `T_by(k)`: normalised throughput of the run's first `k` mean periods of the channel; `open_by(k)`: the share of that time
/// in which the bottleneck's line is open; `lengths`: every fifth `k` up to 400, then every 25th, as far as the run goes.
/// Source: Faulkner 2004, 3.4.2.
pub(super) const RUNNING_MEAN: Probe = Probe {
    name: "running-mean",
    version: 1,
    quantities: &["T_by", "open_by", "lengths"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.progress = true,
        read: |trial, run, measured| {
            let period = metrics::longest_period(trial.scenario()).filter(|period| !period.is_zero());
            let (Some(bottleneck), Some(period)) = (metrics::bottleneck(trial.scenario()), period) else {
                measured.set_numbers("lengths", [], "the channel has no period");
                return Ok(());
            };
            let reached = (trial.scenario().duration.as_nanos() / period.as_nanos()) as u32;
            let lengths = || (5..=400).step_by(5).chain((425..).step_by(25)).take_while(|k| *k <= reached);
            for k in lengths() {
                let (arguments, length) = ([f64::from(k).into()], period * u64::from(k));
                let bps = received_by(run, Instant::ZERO + length) as f64 * 8.0 / length.as_secs_f64();
                let throughput = metrics::normalised_throughput(bps, bottleneck.rate);
                measured.set_or("T_by", &arguments, throughput, "the line has no rate");
                measured.set("open_by", &arguments, open_share(trial, &bottleneck.direction, length));
            }
            measured.set_numbers("lengths", lengths().map(f64::from), "the run is too short");
            Ok(())
        },
    },
};

/// Bytes that all applications had received by `end`.
fn received_by(run: &Run, end: Instant) -> u64 {
    let by_end = |points: &[(Instant, u64)]| match points.partition_point(|(at, _)| *at <= end) {
        0 => 0,
        next => points[next - 1].1,
    };
    run.progress.iter().map(|received| by_end(&received.points)).sum()
}

/// The share of the realisation's first `length` in which a direction of a link, such as `satellite/down`, is open.
fn open_share(trial: &Trial<'_>, direction: &str, length: Duration) -> f64 {
    let (name, direction) = direction.split_once('/').unwrap_or((direction, "down"));
    let channel = &trial.scenario().link[name].channel;
    let line = if direction == "up" { channel.up() } else { channel.down() };
    let timeline = line.errors.timeline(&channel.streams(trial.seed, name, direction));
    1.0 - timeline.blocked_time(Instant::ZERO..Instant::ZERO + length).as_secs_f64() / length.as_secs_f64()
}
