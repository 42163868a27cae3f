//! What a measurement is kept under: all that it asks, and all that answers.

use std::collections::BTreeMap;
use std::io;
use std::sync::PoisonError;

use base::Duration;
use rayon::prelude::*;

use super::Study;
use super::experiment::{Case, Experiment};
use crate::run::{self, Watch};
use crate::scenario::Scenario;

/// The seed of the first replication unless a study or a plan says otherwise.
pub(super) const FIRST_SEED: u64 = 1;

/// The hash of all that a case asks: its scenarios as they resolve, and its numbers.
pub(super) fn identity(experiment: &Experiment, case: &Case) -> u64 {
    let mut text = format!("{:?}\n", case.numbers);
    if case.scenarios.is_empty() {
        text += &experiment.label(&case.coordinates);
    }
    for (label, scenario) in &case.scenarios {
        text += label;
        let whole = toml::to_string(scenario).expect("a scenario that was read can be written");
        whole
            .split_inclusive('\n')
            .filter(|line| !LATER.contains(&line.trim_end()))
            .for_each(|line| text += line);
    }
    base::random::fnv1a(text.as_bytes())
}

/// What a replication of a case is kept under. A seed is the same measurement wherever it stands, but only the first has series.
pub(super) fn key(identity: u64, first_seed: u64, number: u32) -> u64 {
    let ahead = first_seed.wrapping_sub(FIRST_SEED).wrapping_add(number.into());
    let first = if number == 0 && ahead > 0 { " first" } else { "" };
    base::random::fnv1a(format!("{identity:016x} {ahead}{first}").as_bytes())
}

/// Keys that are younger than measurements that are kept, with the value that everybody had before: they ask nothing new.
const LATER: [&str; 3] = ["offload = false", "pushed = false", "exit-growth = false"];
/// Scenarios of an experiment that are tried for its stamp, at most.
const TRIED: usize = 6;
/// How much of each, in simulated seconds.
const TRIED_LENGTH: Duration = Duration::from_secs(20);

/// The stamps of experiments.
pub(super) fn stamps(study: &Study, places: Vec<usize>) -> io::Result<BTreeMap<usize, u64>> {
    places.into_par_iter().map(|place| Ok((place, study.stamp(place)?))).collect()
}

impl Study {
    /// The stamp of an experiment, which is found out once.
    pub(super) fn stamp(&self, place: usize) -> io::Result<u64> {
        let known = || self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&stamp) = known().get(&place) {
            return Ok(stamp);
        }
        let stamp = stamp(self, &self.experiments[place])?;
        known().insert(place, stamp);
        Ok(stamp)
    }
}

/// The hash of what answers: the probes' versions, and the traces of the beginnings of some of the experiment's own
/// scenarios. What does not change a trace does not change what was measured.
fn stamp(study: &Study, experiment: &Experiment) -> io::Result<u64> {
    let mut text = format!("{:?}\n", experiment.probes);
    let mut tried: Vec<String> = Vec::new();
    for scenario in experiment.examples(study) {
        let shape = shape(&scenario);
        if tried.len() == TRIED || tried.contains(&shape) {
            continue;
        }
        tried.push(shape);
        let short = Scenario { duration: scenario.duration.min(TRIED_LENGTH), ..scenario };
        text += &run::run("stamp", &short, FIRST_SEED, &Watch::default())?.trace_hash;
    }
    if tried.is_empty() {
        text += &reference()?;
    }
    Ok(base::random::fnv1a(text.as_bytes()))
}

/// What tells scenarios with different machines apart: the settings of TCP, and of the links' protocols, queues and proxies.
fn shape(scenario: &Scenario) -> String {
    let links: Vec<_> =
        scenario.link.values().map(|link| (&link.protocol, &link.queue, &link.framing, &link.pep)).collect();
    format!("{:?} {:?} {links:?}", scenario.tcp, scenario.host)
}

/// The trace of a run with most of the machines in it, for what is calculated without a scenario. Hosts are the papers': what is known of
/// today's TCPs changes no calculation.
fn reference() -> io::Result<String> {
    const TEXT: &str = include_str!("../../../../scenarios/demo/download.toml");
    let hosts = "tcp.preset=reference".parse().map_err(io::Error::other)?;
    let suite = crate::scenario::Suite::parse("download.toml", TEXT, std::path::Path::new(""), &[hosts]);
    let suite = suite.map_err(io::Error::other)?;
    let mut hashes = String::new();
    for (name, scenario) in &suite.schemes {
        let short = Scenario { duration: TRIED_LENGTH, ..scenario.clone() };
        hashes += &run::run(name, &short, FIRST_SEED, &Watch::default())?.trace_hash;
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_measured_once_wherever_it_stands() {
        assert_eq!(key(5, 1, 4), key(5, 4, 1));
        // Only the first has series.
        assert_ne!(key(5, 1, 4), key(5, 5, 0));
        assert_ne!(key(5, 1, 0), key(6, 1, 0));
    }
}
