//! The erasure rate as the first flow estimates it, while the channel changes.

use std::io;

use base::Instant;

use super::samples::Samples;
use crate::claims::Measurements;
use crate::network::Network;
use crate::study::probe::{Method, Probe, Trial};

/// After the channel's change at second `change` (a number of the experiment's `with`) from the rate `before` to `after`: `settled`, the
/// seconds until the estimate, averaged over the flows, has gone four fifths of the way from where it stood to where the
/// experiment's last fifth has it, `windows`, the blocks that a flow begins in that time, on average, and `near`, the seconds
/// until the estimate is first within 0.05 of the rate `after`; the run's length where it never is.
pub(super) const ESTIMATE: Probe = Probe {
    name: "estimate",
    version: 2,
    quantities: &["settled", "windows", "near"],
    series: &["estimates"],
    method: Method::Trial(measure),
};

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    let (change, after) = (trial.number("change")?, trial.number("after")?);
    let mut network = Network::build(scenario, trial.seed);
    let samples = Samples::take(&mut network, Instant::ZERO + scenario.duration, (0, u32::MAX))?;
    let end = scenario.duration.as_secs_f64();
    let mean = |from: f64, to: f64| {
        let within: Vec<f64> = samples
            .mean_rates
            .iter()
            .filter(|(at, _)| (from..to).contains(at))
            .map(|(_, rate)| *rate)
            .collect();
        within.iter().sum::<f64>() / (within.len() as f64).max(1.0)
    };
    let (start, goal) = (mean(change - 1.0, change), mean(end - (end - change) / 5.0, end));
    let since = |done: &dyn Fn(f64) -> bool| {
        let mut later = samples.mean_rates.iter().filter(|(at, _)| *at >= change);
        later.find(|(_, rate)| done(*rate)).map_or(end - change, |(at, _)| at - change)
    };
    let reached = |rate: f64| (rate - start) * (goal - start).signum() >= 0.8 * (goal - start).abs();
    let settled = since(&reached);
    let blocks = |at: f64| {
        let next = samples.mean_blocks.partition_point(|(then, _)| *then <= at + 1e-9);
        samples.mean_blocks[..next].last().map_or(0.0, |(_, blocks)| *blocks)
    };
    measured.note("settled", settled);
    measured.note("windows", blocks(change + settled) - blocks(change));
    measured.note("near", since(&|rate| (rate - after).abs() <= 0.05));
    if trial.is_first {
        measured.set_series("estimates", samples.mean_rates);
    }
    Ok(())
}
