//! How much of the line's time bare acknowledgements take under a TCP bulk transfer.
//!
//! What leaves in the first second, the handshake's, is taken off: a second run of the same realisation that ends there
//! counts it.

use std::io;

use base::Duration;
use base::config::ConfigError;

use super::{FIGURE, LINK};
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, RATE, Scheme, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Run, Watch};
use crate::scenario::Scenario;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-bare-acknowledgements-rare"],
    cases,
    measure,
};

const NAME: &str = "bare acknowledgements";
/// The baseline delivers in order; the other is told beside it.
const SCHEMES: [Scheme; 2] = [Scheme::TcpLl, Scheme::Unordered];
const FRACTIONS: [f64; 3] = [0.0, 0.3, 0.7];
/// Mean blockage in seconds.
const BLOCKED: f64 = 1.0;
const SEEDS: u32 = 10;
const DIRECTIONS: [&str; 2] = ["down", "up"];
const FIRST: Duration = Duration::from_secs(1);

fn name(scheme: Scheme, f: f64) -> String {
    format!("{} f={f}", scheme.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for scheme in SCHEMES {
        for f in FRACTIONS {
            let channel = Channel::Blockage { f, d: BLOCKED };
            let seconds = effort.choose(60.0, channel.steady(300.0, effort));
            // Without blockages every seed is the same.
            let seeds = if f == 0.0 { 1 } else { effort.choose(1, SEEDS) };
            cases.push(Case::new(name(scheme, f), scenario(scheme, &channel, seconds, &[])?, seeds));
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let scenario = case.scenario();
    let first = Scenario { duration: FIRST, ..scenario.clone() };
    let run = |scenario: &Scenario| run::run(NAME, scenario, seed, &Watch::default());
    let (whole, first) = (run(scenario)?, run(&first)?);
    let seconds = (scenario.duration - FIRST).as_secs_f64();
    let mut measured = Measurements::new();
    for direction in DIRECTIONS {
        let bits = |run: &Run, kind: &str| run.links[&format!("{LINK}/{direction}")][&format!("bits-{kind}")];
        for kind in ["new", "retransmission", "filler", "control"] {
            let share = (bits(&whole, kind) - bits(&first, kind)) as f64 / RATE / seconds;
            measured.note(&format!("{direction}: {kind}"), share);
        }
    }
    Ok(measured)
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for f in FRACTIONS {
        for direction in DIRECTIONS {
            let mean = |scheme, kind| samples.mean(NAME, &name(scheme, f), &format!("{direction}: {kind}"));
            let interval = samples.interval(NAME, &name(Scheme::TcpLl, f), &format!("{direction}: control"));
            let of = format!("/ run time, {direction}, f = {f}");
            let what = format!("air time of bare acknowledgements {of}");
            criteria.push(match interval {
                Some(interval) => Criterion::at_most(what, interval, 0.05),
                None => Criterion::at_most(what, mean(Scheme::TcpLl, "control"), 0.05),
            });
            criteria
                .push(Criterion::told(format!("air time of fillers {of}"), mean(Scheme::TcpLl, "filler")));
            let what = format!("bare acknowledgements with delivery out of order {of}");
            criteria.push(Criterion::told(what, mean(Scheme::Unordered, "control")));
        }
    }
    Ruling::all(criteria)
}
