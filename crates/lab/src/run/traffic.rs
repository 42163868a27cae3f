//! The traffic of a run, whatever kind it is.

use std::collections::BTreeMap;

use base::Instant;

use super::{Received, exchanges, sources, transfers};
use crate::engine::{Engine, NodeId};
use crate::network::Network;
use crate::node::{Element, Host};
use crate::traffic::latency::{Latencies, Sample};
use crate::traffic::progress::ProgressTrace;

/// One connection of a transfer or source, or all transactions of a name, as a run left it.
pub(super) trait Traffic {
    /// Its name in the scenario.
    fn name(&self) -> &str;

    /// When its first connection opened.
    fn opened_at(&self) -> Option<Instant>;

    /// When all of what ends had come.
    fn finished_at(&self) -> Option<Instant>;

    /// Whether all has come of what ends.
    fn is_complete(&self) -> bool;

    /// Whether its transport brings all of it: of datagrams, some may be lost.
    fn is_promised(&self) -> bool {
        true
    }

    /// Whether every byte that came was the right one.
    fn is_intact(&self) -> bool;

    /// Bytes that the application received in order.
    fn received(&self) -> u64;

    /// How long its records or transactions took, if it has any.
    fn latencies(&self) -> Option<&Latencies> {
        None
    }

    /// What was received when, and the port at which one side waited for the other; where that was watched.
    fn progress(&self) -> Option<(u16, &ProgressTrace)> {
        None
    }
}

/// All of it: transfers, sources, transactions.
pub(super) fn of(network: &Network) -> Vec<Box<dyn Traffic + '_>> {
    let engine = &network.engine;
    let mut all: Vec<Box<dyn Traffic + '_>> = Vec::new();
    for transfer in &network.transfers {
        all.push(Box::new(transfers::Observed::new(engine, transfer)));
    }
    for source in &network.sources {
        all.push(Box::new(sources::Observed::new(engine, source)));
    }
    for one in &network.exchanges {
        all.push(Box::new(exchanges::Observed::new(engine, one)));
    }
    all
}

/// Bytes that the applications of the flows whose names `counts` takes have received in order.
pub(super) fn received(network: &Network, counts: impl Fn(&str) -> bool) -> u64 {
    of(network).iter().filter(|flow| counts(flow.name())).map(|flow| flow.received()).sum()
}

/// Every latency sample, by the name of its source or transactions.
pub(super) fn latencies(network: &Network) -> BTreeMap<String, Vec<Sample>> {
    let mut all: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for flow in of(network) {
        if let Some(latencies) = flow.latencies() {
            all.entry(flow.name().to_owned()).or_default().extend(latencies.samples());
        }
    }
    all
}

/// What was received when, as far as that was watched.
pub(super) fn progress(network: &Network) -> Vec<Received> {
    let mut all = Vec::new();
    for flow in of(network) {
        all.extend(flow.progress().map(|(port, trace)| Received {
            name: flow.name().to_owned(),
            port,
            points: trace.points(),
        }));
    }
    all
}

/// The host at this node.
pub(super) fn host(engine: &Engine<Element>, node: NodeId) -> &Host {
    match engine.node(node) {
        Element::Host(host) => host,
        _ => unreachable!("transfers begin and end at hosts"),
    }
}
