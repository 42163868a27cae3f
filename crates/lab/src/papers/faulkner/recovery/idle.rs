//! How long plain TCP leaves a reopened line idle, and whether short open periods are worse for it.

use std::io;

use base::config::ConfigError;

use super::periodic;
use super::{JITTERED, Window};
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, Scheme, scenario, throughput_per_capacity};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};
use crate::statistics::{Interval, Spread};

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-5"], claims: &[CLAIM], cases, measure };

const NAME: &str = "plain TCP over blockages half of the time";
pub(super) const CLAIM: &str = "faulkner-tcp-idles-after-blockage";
const FRACTION: f64 = 0.5;
/// Mean blockages and, at this fraction, mean open periods in seconds.
const DURATIONS: [f64; 3] = [SHORT, 1.0, LONG];
const SHORT: f64 = 0.2;
const LONG: f64 = 5.0;

fn name(d: f64) -> String {
    format!("d={d}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let case = |d: f64| {
        let channel = Channel::Blockage { f: FRACTION, d };
        let scenario = scenario(Scheme::Tcp, &channel, channel.steady(300.0, effort), &[])?;
        Ok(Case::new(name(d), scenario, effort.choose(4, JITTERED)))
    };
    DURATIONS.into_iter().map(case).collect()
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let (scheme, scenario) = &case.scenarios[0];
    let run = run::run(scheme, scenario, seed, &Watch::default())?;
    let mut measured = Measurements::new();
    measured.note("T/C", throughput_per_capacity(&run, FRACTION));
    Ok(measured)
}

pub(super) fn idles(samples: &Samples) -> Ruling {
    let waits = |window| {
        let case = periodic::jittered(Scheme::Tcp, window);
        Spread::of(periodic::at_all(samples, &case, "data"))
    };
    let spread = waits(Window::Baseline);
    let difference = samples.difference(NAME, [&name(SHORT), &name(LONG)], "T/C");
    let mut criteria = vec![
        Criterion::at_least(
            "end of a blockage to the first TCP data delivered, median, s",
            spread.map(|spread| spread.median),
            2.0,
        ),
        Criterion::new(
            "T / C at d = 0.2 s less that at 5 s",
            "below 0",
            difference,
            difference.map(|difference| difference.mean < 0.0),
        ),
        Criterion::told("the first quartile of the wait, s", spread.map(|spread| spread.p25)),
        Criterion::told("the third, s", spread.map(|spread| spread.p75)),
    ];
    for k in 1..=periodic::RECOVERIES {
        let case = periodic::jittered(Scheme::Tcp, Window::Baseline);
        let values = samples.values(periodic::NAME, &case, &format!("data {k}"));
        let median = Spread::of(values).map(|spread| spread.median);
        criteria.push(Criterion::told(format!("the median after blockage {k}, s"), median));
    }
    let small = waits(Window::Small).map(|spread| spread.median);
    criteria.push(Criterion::told("median wait with 64 KiB, s", small));
    for d in DURATIONS {
        let share: Option<Interval> = samples.interval(NAME, &name(d), "T/C");
        criteria.push(Criterion::told(format!("T / C at f = 0.5, d = {d} s"), share));
    }
    Ruling::all(criteria)
}
