//! Which blockages are too short for TCP's timer to notice.
//!
//! Each run has one blockage, a minute into the transfer, when the timer has adapted to what the queue and the link add to
//! the round trip.

use std::io;

use base::config::ConfigError;
use base::{Duration, Instant};

use super::{Window, setup};
use crate::claims::Measurements;
use crate::network::Network;
use crate::node::Element;
use crate::papers::faulkner::setting::{Channel, Scheme};
use crate::reproduce::{Case, Criterion, Effort, Experiment, Ruling, Samples};
use crate::statistics::mean;

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: NAME, figures: &["4-7"], claims: &[CLAIM], cases, measure };

const NAME: &str = "single blockages";
pub(super) const CLAIM: &str = "faulkner-short-blockage-hidden";
/// Seconds of the blockages.
const LENGTHS: [f64; 5] = [0.1, 0.3, 1.0, 2.0, 5.0];
/// When the blockage starts, and how long a run goes on after it; more than any time-out by then.
const STARTS: f64 = 60.0;
const RECOVERY: f64 = 20.0;
/// Blockages of each length, and of each with the small window.
const BLOCKAGES: u32 = 50;
const BLOCKAGES_SMALL: u32 = 20;

fn name(length: f64, window: Window) -> String {
    format!("{length} s, {}", window.name())
}

fn cases(effort: Effort) -> Result<Vec<Case>, ConfigError> {
    let mut cases = Vec::new();
    let windows = [(Window::Baseline, BLOCKAGES), (Window::Small, BLOCKAGES_SMALL)];
    for &(window, blockages) in effort.choose(&windows[..1], &windows) {
        for length in LENGTHS {
            let end = STARTS + length + RECOVERY;
            let channel = Channel::Periodic { blocked: length, open: 2.0 * end, first: STARTS };
            let scenario = setup(Scheme::TcpLl, window, true, &channel, end)?;
            let case = Case::new(name(length, window), scenario, effort.choose(2, blockages));
            cases.push(case.with("length", length));
        }
    }
    Ok(cases)
}

/// A sender's time-outs so far, its RTO and its smoothed round-trip time in seconds.
fn sender(network: &Network) -> Option<(u32, f64, f64)> {
    let Element::Host(host) = network.engine.node(network.nodes["server"]) else { return None };
    let (_, connection) = host.tcp().connections().next()?;
    let srtt = connection.srtt()?.as_secs_f64();
    Some((connection.statistics().timeouts, connection.rto().as_secs_f64(), srtt))
}

fn measure(case: &Case, seed: u64) -> io::Result<Measurements> {
    let scenario = case.scenario();
    let mut network = Network::build(scenario, seed);
    network.engine.run(Instant::ZERO + Duration::from_secs_f64(STARTS), 0);
    let before = sender(&network);
    network.engine.run(Instant::ZERO + scenario.duration, 0);
    let after = sender(&network);
    let mut measured = Measurements::new();
    if let (Some((before, rto, srtt)), Some((after, ..))) = (before, after) {
        measured.note("hidden", f64::from(u8::from(after == before)));
        measured.note("rto", rto);
        measured.note("slack", rto - srtt);
    }
    Ok(measured)
}

/// Whether each blockage was hidden, of those shorter than RTO - SRTT as they started.
fn short_ones(samples: &Samples) -> Vec<f64> {
    let of = |length: f64| {
        let runs = samples.runs(NAME, &name(length, Window::Baseline)).iter();
        runs.filter(move |run| run.quantity("slack").is_some_and(|slack| length < slack))
            .filter_map(|run| run.quantity("hidden"))
    };
    LENGTHS.into_iter().flat_map(of).collect()
}

fn share(samples: &Samples, length: f64, window: Window) -> Option<f64> {
    mean(&samples.values(NAME, &name(length, window), "hidden"))
}

pub(super) fn hides(samples: &Samples) -> Ruling {
    let short = short_ones(samples);
    let shares: Vec<Option<f64>> =
        LENGTHS.iter().map(|&length| share(samples, length, Window::Baseline)).collect();
    let steps: Option<Vec<f64>> = shares.windows(2).map(|pair| Some(pair[1]? - pair[0]?)).collect();
    let rise = steps.map(|steps| steps.into_iter().fold(f64::NEG_INFINITY, f64::max));
    let mut criteria = vec![
        Criterion::at_least("share without time-out, of those shorter than RTO - SRTT", mean(&short), 0.9),
        Criterion::at_most("greatest rise of the share with the length", rise, 0.0),
        Criterion::told("blockages shorter than RTO - SRTT", short.len() as f64),
    ];
    for window in [Window::Baseline, Window::Small] {
        for length in LENGTHS {
            let what = format!("share at {length} s, {}", window.name());
            criteria.push(Criterion::told(what, share(samples, length, window)));
        }
        let slack = samples.interval(NAME, &name(LENGTHS[0], window), "slack");
        criteria.push(Criterion::told(format!("RTO - SRTT as they start, {}, s", window.name()), slack));
    }
    Ruling::all(criteria)
}
