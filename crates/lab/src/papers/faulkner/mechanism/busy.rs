//! No timer, a line that is never silent, and nothing lost: an hour of it.
//!
//! The packets of a direction leave the link in the order in which they entered it, so that all that had been accepted some
//! time before the end has been delivered if as many have come out by then. A second run of the same realisation that ends
//! earlier counts those.

use std::io;

use base::config::ConfigError;

use super::{FIGURE, LINK};
use crate::claims::Measurements;
use crate::papers::faulkner::setting::{Channel, FRAME_BITS, RATE, Scheme, saturated, scenario};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::run::{self, Run, Watch};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    figures: &[FIGURE],
    claims: &["faulkner-no-timer-line-always-busy"],
    cases,
    measure,
};

const NAME: &str = "always busy";
const SOURCES: [&str; 2] = ["saturated", "bulk"];
const FRACTIONS: [f64; 3] = [0.0, 0.3, 0.7];
/// Mean blockage in seconds.
const BLOCKED: f64 = 1.0;
const DIRECTIONS: [&str; 2] = ["down", "up"];
/// Seconds before the end by which a packet must have been accepted, to be delivered by the end.
const GRACE: f64 = 60.0;

fn name(source: &str, f: f64) -> String {
    format!("{source} f={f}")
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let seconds = effort.choose(2.0 * GRACE, 3600.0);
    let mut cases = Vec::new();
    for source in SOURCES {
        for f in FRACTIONS {
            let channel = Channel::Blockage { f, d: BLOCKED };
            let lasting = |seconds: f64| match source {
                "bulk" => scenario(Scheme::TcpLl, &channel, seconds, &[]),
                _ => saturated("window = 512", &channel, seconds, &[]),
            };
            let whole = Case::new(name(source, f), lasting(seconds)?, effort.choose(1, 3));
            let earlier = lasting(seconds - GRACE)?;
            let mut scenarios = whole.scenarios;
            scenarios.push(("earlier".to_owned(), earlier));
            cases.push(Case { scenarios, work: 2 * whole.work, ..whole });
        }
    }
    Ok(cases)
}

fn counter(run: &Run, direction: &str, name: &str) -> f64 {
    run.links[&format!("{LINK}/{direction}")][name] as f64
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let run = |(name, scenario): &(String, _)| run::run(name, scenario, seed, &Watch::default());
    let (whole, earlier) = (run(&case.scenarios[0])?, run(&case.scenarios[1])?);
    let seconds = case.scenario().duration.as_secs_f64();
    let mut measured = Measurements::new();
    for direction in DIRECTIONS {
        let of = |name: &str| counter(&whole, direction, name);
        let kinds = ["new", "retransmission", "filler", "repair", "control"];
        let bits: f64 = kinds.iter().map(|kind| of(&format!("bits-{kind}"))).sum();
        measured.note(&format!("{direction}: timers"), of("steps-with-timer"));
        measured.note(&format!("{direction}: air"), bits / RATE / seconds);
        let accepted = counter(&earlier, direction, "queue-passed");
        measured.note(&format!("{direction}: missing"), (accepted - of("packets-delivered")).max(0.0));
        measured.note(&format!("{direction}: accepted"), accepted);
    }
    // Only the data that applications got can tell whether packets were damaged.
    measured.note("damaged", f64::from(u8::from(!(whole.intact && earlier.intact))));
    Ok(measured)
}

pub(super) fn rule(samples: &Samples) -> Ruling {
    let seconds = samples.effort().choose(2.0 * GRACE, 3600.0);
    let frame = FRAME_BITS / RATE / seconds;
    let mut criteria = Vec::new();
    for source in SOURCES {
        for f in FRACTIONS {
            let case = name(source, f);
            let all = |quantity: &str| samples.values(NAME, &case, quantity);
            let worst = |quantity: &str| all(quantity).into_iter().reduce(f64::max);
            for direction in DIRECTIONS {
                let of = format!("{source}, f = {f}, {direction}");
                let at = |what: &str| format!("{direction}: {what}");
                let timers = worst(&at("timers"));
                criteria.push(Criterion::at_most(format!("steps with a timer, {of}"), timers, 0.0));
                let least = all(&at("air")).into_iter().reduce(f64::min);
                let holds =
                    least.zip(worst(&at("air"))).map(|(low, high)| low >= 1.0 && high <= 1.0 + frame + 1e-12);
                let required = "1, and at most a frame beyond the end";
                criteria.push(Criterion::new(format!("air time / run time, {of}"), required, least, holds));
                let missing = worst(&at("missing"));
                let what = format!("accepted {GRACE} s before the end and not delivered, {of}");
                criteria.push(Criterion::at_most(what, missing, 0.0));
                let accepted = samples.mean(NAME, &case, &at("accepted"));
                criteria.push(Criterion::told(format!("packets accepted by then, {of}"), accepted));
            }
            criteria.push(Criterion::at_most(format!("damage, {source}, f = {f}"), worst("damaged"), 0.0));
        }
    }
    Ruling::all(criteria)
}
