//! One run of one scheme, and what the experiments read from it.

use std::io;

use base::{Duration, Instant};

use crate::observe::{Aggregate, Flow, WindowTrace, Windows};
use crate::run::{Run, TransferResult, Watch};
use crate::scenario::Scenario;
use crate::study::probe::Trial;

/// A finished run with its traces.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) run: Run,
    /// Twice the one-way delay.
    pub(super) rtt: Duration,
}

impl Traced {
    /// Runs the scheme with this label.
    pub(super) fn of(trial: &Trial<'_>, scheme: &str) -> io::Result<Self> {
        Self::run(trial, trial.scheme(scheme)?)
    }

    /// Runs `scenario`.
    pub(super) fn run(trial: &Trial<'_>, scenario: &Scenario) -> io::Result<Self> {
        let watch = Watch { flows: true, windows: true, ..Watch::default() };
        let run = trial.run(scenario, &watch)?;
        let delay: Duration = scenario.link["satellite"].channel.delay;
        Ok(Self { run, rtt: delay * 2 })
    }

    /// The connections of the transfer called `name`.
    pub(super) fn group(&self, name: &str) -> Vec<&TransferResult> {
        self.run.transfers.iter().filter(|transfer| transfer.name == name).collect()
    }

    /// From the first opening of the group to its last byte, in seconds.
    pub(super) fn group_seconds(&self, name: &str) -> Option<f64> {
        let group = self.group(name);
        let start = group.iter().filter_map(|transfer| transfer.opened).reduce(f64::min)?;
        let ends: Option<Vec<f64>> = group.iter().map(|t| Some(t.opened? + t.seconds?)).collect();
        ends?.into_iter().reduce(f64::max).map(|end| end - start)
    }

    /// When the group's last byte had arrived.
    pub(super) fn group_end(&self, name: &str) -> Option<Instant> {
        let ends: Option<Vec<f64>> = self.group(name).iter().map(|t| Some(t.opened? + t.seconds?)).collect();
        let end = ends?.into_iter().reduce(f64::max)?;
        Some(Instant::ZERO + Duration::from_secs_f64(end))
    }

    /// The data of a connection as its sender saw them.
    pub(super) fn flow(&self, transfer: &TransferResult) -> Option<&Flow> {
        self.run.flows.iter().find(|flow| flow.ports.0 == transfer.port)
    }

    /// The windows of a connection's sender.
    pub(super) fn windows(&self, transfer: &TransferResult) -> Option<&Windows> {
        let trace = self.trace()?;
        trace.connections().iter().find(|windows| windows.ports.0 == transfer.port)
    }

    /// The windows of the only sender.
    pub(super) fn trace(&self) -> Option<&WindowTrace> {
        self.run.windows.first()
    }

    /// The aggregate window; none where nothing is shared.
    pub(super) fn aggregate(&self) -> Option<&Aggregate> {
        self.trace()?.aggregates().first()
    }

    /// When the first data of a connection left.
    pub(super) fn first_data(&self, transfer: &TransferResult) -> Option<Instant> {
        self.flow(transfer)?.segments.first().map(|segment| segment.at)
    }

    /// When the bottleneck's queue dropped data.
    pub(super) fn drops(&self) -> &[Instant] {
        self.run.drops.get("satellite/down").map_or(&[], Vec::as_slice)
    }
}
