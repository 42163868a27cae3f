//! Section 3.3: many connections at once, whose initial windows add up.

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};

use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, Scheme, normalised, scenario};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Received, Watch};

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &[NAME], claims: &[CLAIM], cases, measure };

pub(super) const CLAIM: &str = "faulkner-many-connections-start-faster";
const NAME: &str = "connections";
const SCHEMES: [Scheme; 2] = [Scheme::TcpLl, Scheme::Tcp];
const FRACTIONS: [f64; 2] = [0.0, 0.3];
/// Mean blockage in seconds.
const D: f64 = 1.0;
const CONNECTIONS: [u32; 5] = [1, 2, 4, MANY, 16];
const MANY: u32 = 8;
const SEEDS: u32 = 20;
const FEW_SEEDS: u32 = 5;
/// Within which each connection opens at random.
const JITTER: &str = "200 ms";
/// Seconds of the start.
const START: f64 = 30.0;

fn name(scheme: Scheme, f: f64, connections: u32) -> String {
    format!("{} f={f} n={connections}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for scheme in SCHEMES {
        for f in FRACTIONS {
            for &connections in effort.choose(&[1, MANY][..], &CONNECTIONS) {
                let channel = Channel::Blockage { f, d: D };
                let set = [
                    format!("traffic.download.bulk.connections={connections}"),
                    format!("traffic.download.bulk.jitter={JITTER}"),
                ];
                let seconds = channel.steady(300.0, effort).max(START + 10.0);
                let scenario = scenario(scheme, &channel, seconds, &set)?;
                // Without blockage only the connections' openings differ.
                let seeds = effort.choose(2, if f > 0.0 { SEEDS } else { FEW_SEEDS });
                cases.push(Case::new(name(scheme, f, connections), scenario, seeds));
            }
        }
    }
    Ok(cases)
}

/// Bytes that a connection had received by then.
fn received_by(received: &Received, time: Instant) -> u64 {
    let after = received.points.partition_point(|(at, _)| *at <= time);
    after.checked_sub(1).map_or(0, |last| received.points[last].1)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch { progress: true, ..Watch::default() })?;
    let started = Instant::ZERO + Duration::from_secs_f64(START);
    let start: u64 = run.progress.iter().map(|received| received_by(received, started)).sum();
    let rest = scenario.duration.as_secs_f64() - START;
    let mut measured = Measurements::new();
    measured.note("start", normalised(start as f64 * 8.0 / START));
    measured.note("steady", normalised((run.bytes - start) as f64 * 8.0 / rest));
    Ok(measured)
}

pub(super) fn start_faster(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    let mut told = Vec::new();
    for scheme in SCHEMES {
        for f in FRACTIONS {
            let [many, one] = [MANY, 1].map(|connections| name(scheme, f, connections));
            let gain = |quantity: &str| samples.difference(NAME, [&many, &one], quantity);
            let at = format!("T({MANY}) - T(1), {}, f = {f}", scheme.name());
            criteria.push(Criterion::surely_above(format!("{at}, first {START} s"), gain("start"), 0.0));
            told.push(Criterion::told(format!("{at}, after that"), gain("steady")));
            let at_once = |quantity: &str| samples.interval(NAME, &one, quantity);
            told.push(Criterion::told(
                format!("T(1), {}, f = {f}, first {START} s", scheme.name()),
                at_once("start"),
            ));
            told.push(Criterion::told(
                format!("T(1), {}, f = {f}, after that", scheme.name()),
                at_once("steady"),
            ));
        }
    }
    criteria.extend(told);
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scheme in SCHEMES {
        for f in FRACTIONS {
            for connections in CONNECTIONS {
                for (quantity, when) in [("start", "first 30 s"), ("steady", "after 30 s")] {
                    let row = [
                        ("scheme", scheme.name().to_owned()),
                        ("f", f.to_string()),
                        ("connections", connections.to_string()),
                        ("when", when.to_owned()),
                    ];
                    let values = samples.values(NAME, &name(scheme, f, connections), quantity);
                    cells.push(Cell { bound: Some(1.0 - f), ..Cell::of_mean(NAME, &row, values) });
                }
            }
        }
    }
    cells
}
