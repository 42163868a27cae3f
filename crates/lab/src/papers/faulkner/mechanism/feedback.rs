//! How much of a blocked channel a large window fills, with acknowledgements lost like the data or not at all.

use std::io;

use base::config::ConfigError;

use super::FIGURE;
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, PACKET, RATE, RECORD, saturated};
use crate::reproduce::{Case, Cell, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Watch};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-efficient-with-lossy-feedback"],
    cases,
    measure,
};

const NAME: &str = "lossy feedback";
const FRACTIONS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
/// Mean blockage in seconds.
const BLOCKED: f64 = 1.0;
const SEEDS: u32 = 20;
/// The acknowledgements' direction is blocked with the data's, or never.
const FEEDBACK: [&str; 2] = ["blocked", "clean"];
/// Bits of a frame that carry no payload.
const OVERHEAD: f64 = 72.0;

/// The data's direction and the acknowledgements' are blocked, and the receiver tells of the block that came last, which is
/// ours: what the choice of the first one costs.
const LATEST: &str = "blocked, latest block";

fn name(feedback: &str, f: f64) -> String {
    format!("{feedback} f={f}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    for feedback in FEEDBACK.into_iter().chain([LATEST]) {
        let block = if feedback == LATEST { "latest" } else { "first" };
        let protocol = format!("window = 512, block = \"{block}\"");
        for f in FRACTIONS {
            let channel = Channel::Blockage { f, d: BLOCKED };
            let clean = ["link.satellite.channel.up-errors=\"none\"".to_owned()];
            let more = if feedback == "clean" { &clean[..] } else { &[] };
            let seconds = channel.steady(300.0, effort);
            let scenario = saturated(&protocol, &channel, seconds, more)?;
            let seeds = effort.choose(2, if feedback == LATEST { SEEDS / 2 } else { SEEDS });
            cases.push(Case::new(name(feedback, f), scenario, seeds).with("f", f));
        }
    }
    Ok(cases)
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let run = run::run(NAME, case.scenario(), seed, &Watch::default())?;
    let records: f64 = run.sources.iter().filter(|s| s.name == "down").map(|s| s.bytes as f64 / RECORD).sum();
    let mut measured = Measurements::new();
    let seconds = case.scenario().duration.as_secs_f64();
    let most = (1.0 - case.numbers["f"]) * RATE * (1.0 - OVERHEAD / FRAME_BITS);
    measured.note("efficiency", records * PACKET * 8.0 / seconds / most);
    Ok(measured)
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let mut criteria = Vec::new();
    for f in FRACTIONS {
        let [blocked, clean] = FEEDBACK.map(|feedback| name(feedback, f));
        let efficiency = |case: &str| samples.interval(NAME, case, "efficiency");
        for (feedback, case) in [("blocked alike", &blocked), ("error-free", &clean)] {
            let what = format!("delivered / (C R (1 - 72/3968)), feedback {feedback}, f = {f}");
            criteria.push(Criterion::at_least(what, efficiency(case), 0.9));
        }
        let ratio = samples.ratio(NAME, [&blocked, &clean], "efficiency");
        let what = format!("blocked feedback / clean feedback, f = {f}");
        criteria.push(if f <= 0.5 {
            Criterion::at_least(what, ratio, 0.95)
        } else {
            Criterion::told(what, ratio)
        });
        let latest = efficiency(&name(LATEST, f));
        criteria.push(Criterion::told(
            format!("delivered, of the same, if the latest block is told, f = {f}"),
            latest,
        ));
    }
    Ruling::all(criteria)
}

pub(super) fn cells(samples: &Samples) -> Vec<Cell> {
    let cell = |feedback: &'static str, f: f64| {
        let row = [("feedback", feedback.to_owned()), ("f", f.to_string())];
        let values = samples.values(NAME, &name(feedback, f), "efficiency");
        Cell { bound: Some(1.0), ..Cell::of_mean("saturated link, of capacity less framing", &row, values) }
    };
    FEEDBACK.into_iter().chain([LATEST]).flat_map(|feedback| FRACTIONS.map(|f| cell(feedback, f))).collect()
}
