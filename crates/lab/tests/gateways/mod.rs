//! A pair of gateways in virtual time, as `scenarios/rate` has them, and what a run of theirs came to.

use std::path::Path;

use base::{Duration, Instant};
use lab::run::{self, Run, Watch};
use lab::scenario::{Override, Suite};
use longhaul_lab as lab;

/// A second of the run.
pub(crate) fn at(second: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(second)
}

/// Runs a scenario with some keys set, and more tables behind it.
pub(crate) fn run_with(text: &str, more: &str, changes: &[&str]) -> Run {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("base.toml", &format!("{text}\n{more}"), Path::new(""), &changes).unwrap();
    let watch = Watch { progress: true, tunnels: true, queues: true, latencies: true, ..Watch::default() };
    let run = run::run("tunnel", &suite.schemes[0].1, suite.scenario.seed, &watch).unwrap();
    assert!(run.intact);
    run
}

/// Mbit/s that the transfers or sources of a name received between two seconds of the run.
pub(crate) fn received(run: &Run, name: &str, from: u64, to: u64) -> f64 {
    let by = |second: u64| -> u64 {
        let received = run.progress.iter().filter(|received| received.name == name);
        let bytes = received.map(|received| {
            let next = received.points.partition_point(|(then, _)| *then <= at(second));
            received.points[..next].last().map_or(0, |(_, bytes)| *bytes)
        });
        bytes.sum()
    };
    (by(to) - by(from)) as f64 * 8e-6 / (to - from) as f64
}
