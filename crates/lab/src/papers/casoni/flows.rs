//! How the customers' flows share the satellite.

use base::{Duration, Instant};

use crate::run::Received;
use crate::study::probe::sharing::jain;
use crate::study::probe::{Method, Probe};

/// Of all bulk transfers, over the whole run: `T` is the mean goodput of one in kbit/s, `F` the least over the greatest
/// (equation 3), `J` Jain's index, `least` the slowest flow's goodput, and `S` the sum in kbit/s. The same from second `split` of
/// the run on (a number of the experiment's `with`): `T_since`, `F_since`, `J_since`.
pub(super) const FLOWS: Probe = Probe {
    name: "casoni-flows",
    version: 1,
    quantities: &["T", "F", "J", "least", "S", "T_since", "F_since", "J_since"],
    series: &[],
    method: Method::Run {
        watch: |watch| watch.progress = true,
        read: |trial, run, measured| {
            let end = trial.scenario().duration.as_secs_f64();
            // Rate-controlled sources come after the transfers.
            let flows = &run.progress[..run.transfers.len()];
            let whole: Vec<f64> = flows.iter().map(|received| total(received) / end).collect();
            let Shares { mean, fairness, jain, least } = Shares::of(&whole);
            measured.note("T", mean);
            measured.note("F", fairness);
            measured.note("J", jain);
            measured.note("least", least);
            measured.note("S", whole.iter().sum::<f64>());
            let split = trial.number("split")?;
            let at = Instant::ZERO + Duration::from_secs_f64(split);
            let since = |received: &Received| (total(received) - by(received, at)) / (end - split);
            let since = Shares::of(&flows.iter().map(since).collect::<Vec<_>>());
            measured.note("T_since", since.mean);
            measured.note("F_since", since.fairness);
            measured.note("J_since", since.jain);
            Ok(())
        },
    },
};

/// Kilobits that a flow has received in all.
fn total(received: &Received) -> f64 {
    received.points.last().map_or(0.0, |(_, bytes)| kilobits(*bytes))
}

/// Kilobits that it had received by then.
fn by(received: &Received, at: Instant) -> f64 {
    let next = received.points.partition_point(|(then, _)| *then <= at);
    received.points[..next].last().map_or(0.0, |(_, bytes)| kilobits(*bytes))
}

fn kilobits(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 1000.0
}

/// How flows share.
struct Shares {
    mean: f64,
    fairness: f64,
    jain: f64,
    least: f64,
}

impl Shares {
    fn of(rates: &[f64]) -> Self {
        let sum: f64 = rates.iter().sum();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = rates.iter().copied().fold(0.0, f64::max);
        let count = rates.len() as f64;
        // Flows that all carry nothing share equally.
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        Self { mean: sum / count, fairness: ratio(least, greatest), jain: jain(rates).unwrap_or(1.0), least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_papers_and_jains() {
        let Shares { mean, fairness, jain, least } = Shares::of(&[100.0, 300.0]);
        assert!((mean - 200.0).abs() < 1e-9 && (least - 100.0).abs() < 1e-9);
        assert!((fairness - 1.0 / 3.0).abs() < 1e-12 && (jain - 0.8).abs() < 1e-12);
    }
}
