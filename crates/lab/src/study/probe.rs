//! Probes: what is measured of a run. Those of the instrument are here, what only one paper needs in [`crate::papers`].

mod channel;
mod exchanges;
mod genie;
mod links;
mod path;
mod running;
pub mod sharing;
mod sources;
mod throughput;

use core::fmt::{self, Debug};
use std::collections::BTreeMap;
use std::io;

use crate::claims::Measurements;
use crate::run::{self, Run, Watch};
use crate::scenario::Scenario;

/// A measurement with a name.
#[derive(Clone, Copy)]
pub struct Probe {
    /// What experiments call it.
    pub name: &'static str,
    /// Counts up when it measures something else than before: what was kept is measured again then.
    pub version: u32,
    /// The quantities that it measures, as expressions call them, and the lists that they may range over.
    pub quantities: &'static [&'static str],
    /// The series that it records of the first seed's run, for figures.
    pub series: &'static [&'static str],
    /// How it measures.
    pub method: Method,
}

/// How a probe measures.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// From a finished run of the trial's only scenario, which it may share with other probes.
    Run {
        /// What the run has to keep for it.
        watch: fn(&mut Watch),
        /// Reads it.
        read: fn(&Trial<'_>, &Run, &mut Measurements) -> io::Result<()>,
    },
    /// By itself: it runs what it needs, or calculates.
    Trial(fn(&Trial<'_>, &mut Measurements) -> io::Result<()>),
}

impl Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (version {})", self.name, self.version)
    }
}

/// One replication of one case.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// What to run, with the labels of the axis whose values are measured together; one without such an axis, none for
    /// a calculation.
    pub scenarios: &'a [(String, Scenario)],
    /// The experiment's `with`.
    pub numbers: &'a BTreeMap<String, f64>,
    /// The root seed.
    pub seed: u64,
    /// Whether this is the first seed, whose series are kept.
    pub is_first: bool,
}

impl Trial<'_> {
    /// The only scenario.
    ///
    /// # Panics
    /// If the experiment is a calculation.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenarios[0].1
    }

    /// The scenario with this label on the axis of what is measured together.
    ///
    /// # Errors
    /// There is none.
    pub fn scheme(&self, label: &str) -> io::Result<&Scenario> {
        let found = self.scenarios.iter().find(|(name, _)| name == label);
        found.map(|(_, scenario)| scenario).ok_or_else(|| io::Error::other(format!("no scheme \"{label}\"")))
    }

    /// The number called so in the experiment's `with`.
    ///
    /// # Errors
    /// There is none.
    pub fn number(&self, name: &str) -> io::Result<f64> {
        let number = self.numbers.get(name).copied();
        number.ok_or_else(|| io::Error::other(format!("the experiment's `with` has no \"{name}\"")))
    }

    /// Runs a scenario, and makes sure that every byte that arrived is the right one and that no event was lost.
    ///
    /// # Errors
    /// The run failed, bytes arrived wrong, or there were more events than a log keeps.
    pub fn run(&self, scenario: &Scenario, watch: &Watch) -> io::Result<Run> {
        let run = run::run(&scenario.name, scenario, self.seed, watch)?;
        let (name, seed) = (&scenario.name, self.seed);
        if !run.intact {
            return Err(io::Error::other(format!(
                "bytes arrived damaged in \"{name}\", seed {seed}, which is a bug in Longhaul"
            )));
        }
        match run.log.unkept() {
            0 => Ok(run),
            unkept => {
                Err(io::Error::other(format!("\"{name}\", seed {seed}: {unkept} events too many to keep")))
            }
        }
    }

    /// Measures with each of `probes`; those that read a run share one.
    pub(super) fn measure(&self, probes: &[&Probe]) -> io::Result<Measurements> {
        let mut measured = Measurements::new();
        let mut watch = Watch::default();
        let readers = probes.iter().filter_map(|probe| match probe.method {
            Method::Run { watch, read } => Some((watch, read)),
            Method::Trial(_) => None,
        });
        let readers: Vec<_> = readers.collect();
        readers.iter().for_each(|(wants, _)| wants(&mut watch));
        if watch.events {
            watch.host_events = false;
        }
        if !readers.is_empty() {
            let run = self.run(self.scenario(), &watch)?;
            for (_, read) in readers {
                read(self, &run, &mut measured)?;
            }
        }
        for probe in probes {
            if let Method::Trial(measure) = probe.method {
                measure(self, &mut measured)?;
            }
        }
        Ok(measured)
    }
}

/// Probes that read any finished run, whatever its traffic.
const OF_FLOWS: [Probe; 5] = [
    throughput::THROUGHPUT,
    throughput::FLOWS,
    throughput::TRANSFERS,
    sources::LATENCY,
    exchanges::TRANSACTIONS,
];

/// What a finished run and each of its flows came to.
pub(super) fn of_flows(trial: &Trial<'_>, run: &Run) -> io::Result<Measurements> {
    let mut measured = Measurements::new();
    for probe in &OF_FLOWS {
        if let Method::Run { read, .. } = probe.method {
            read(trial, run, &mut measured)?;
        }
    }
    Ok(measured)
}

/// Whether a quantity of those takes every single latency, which most runs of `longhaul run` do not keep.
pub(super) fn is_of_samples(quantity: &str) -> bool {
    ["L_sd", "transaction_median"].contains(&quantity)
}

/// Whether a quantity is a flow's, which its first argument names.
pub(super) fn is_of_flow(quantity: &str) -> bool {
    let others = [&throughput::STEADY, &path::PATH, &genie::GENIE];
    let is_in = |probe: &Probe| probe.quantities.contains(&quantity);
    (OF_FLOWS.iter().any(is_in) || others.into_iter().any(is_in))
        && !["found", "wait", "wait_95"].contains(&quantity)
}

/// The unit of a quantity; empty for shares and counts.
pub(super) fn unit(quantity: &str) -> &'static str {
    match quantity {
        "seconds" | "group_seconds" | "L" | "L_sd" | "L_median" | "L_99" | "genie_L" | "genie_L_99"
        | "transaction_median" | "wait" | "wait_95" | "mean_blockage" | "mean_period" | "page"
        | "page_bound" | "file" | "file_bound" | "ftp" | "ftp_bound" => "s",
        "received" => "bytes",
        "goodput" | "bound" | "flow_goodput" | "source_goodput" | "steady" | "rate" | "found" => "bps",
        "queue_length" | "queue_average" => "packets",
        _ => "",
    }
}

/// The instrument's own probes.
pub(super) const INSTRUMENT: &[&Probe] = &[
    &throughput::THROUGHPUT,
    &throughput::SPLIT_THROUGHPUT,
    &throughput::FLOWS,
    &throughput::TRANSFERS,
    &throughput::PROGRESS,
    &throughput::STEADY,
    &running::RUNNING_MEAN,
    &channel::BLOCKAGES,
    &channel::FRAME_LOSS,
    &sharing::SHARING,
    &sources::LATENCY,
    &genie::GENIE,
    &exchanges::TRANSACTIONS,
    &links::COUNTERS,
    &links::AIR,
    &links::COST,
    &links::BLOCKED,
    &links::QUEUES,
    &path::PATH,
];
