//! What the nodes and links of a run counted and kept.

use std::collections::BTreeMap;

use base::Instant;

use super::Capacity;
use crate::engine::{Engine, NodeId, Port};
use crate::node::Element;
use crate::observe::{QueueTrace, TunnelTrace};

/// What both directions of every link counted.
pub(super) fn links(
    engine: &Engine<Element>,
    links: &BTreeMap<String, NodeId>,
) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for (name, node) in links {
        for (port, direction) in [(Port(0), "down"), (Port(1), "up")] {
            let counters = match engine.node(*node) {
                Element::Wire(wire) => wire.end(port).report(),
                Element::Link(link) => link.end(port).report(),
                Element::Host(_) | Element::Router(_) | Element::Gateway(_) => continue,
            };
            all.insert(format!("{name}/{direction}"), counters);
        }
    }
    all
}

/// When the queues of every wire dropped packets, as far as that was watched.
pub(super) fn drops(
    engine: &Engine<Element>,
    links: &BTreeMap<String, NodeId>,
) -> BTreeMap<String, Vec<Instant>> {
    let mut all = BTreeMap::new();
    for (name, node) in links {
        let Element::Wire(wire) = engine.node(*node) else { continue };
        for (port, direction) in [(Port(0), "down"), (Port(1), "up")] {
            all.insert(format!("{name}/{direction}"), wire.end(port).dropped().to_vec());
        }
    }
    all
}

/// How long every link's queues were, as far as that was watched.
pub(super) fn queues(
    engine: &Engine<Element>,
    links: &BTreeMap<String, NodeId>,
) -> BTreeMap<String, QueueTrace> {
    let mut all = BTreeMap::new();
    for (name, node) in links {
        for (port, direction) in [(Port(0), "down"), (Port(1), "up")] {
            let trace = match engine.node(*node) {
                Element::Wire(wire) => wire.end(port).queue_trace(),
                Element::Link(link) => link.end(port).queue_trace(),
                Element::Host(_) | Element::Router(_) | Element::Gateway(_) => None,
            };
            all.extend(trace.map(|trace| (format!("{name}/{direction}"), trace.clone())));
        }
    }
    all
}

/// What every end of a tunnel found out, as far as that was watched.
pub(super) fn tunnels(
    engine: &Engine<Element>,
    nodes: &BTreeMap<String, NodeId>,
) -> BTreeMap<String, TunnelTrace> {
    let mut all = BTreeMap::new();
    for (name, node) in nodes {
        let Element::Gateway(gateway) = engine.node(*node) else { continue };
        let is_hub = gateway.traces().len() > 1;
        let named = |tunnel: &str| if is_hub { format!("{name}/{tunnel}") } else { name.clone() };
        all.extend(gateway.traces().map(|(tunnel, trace)| (named(tunnel), trace.clone())));
    }
    all
}

/// What every host and router counted.
pub(super) fn nodes(
    engine: &Engine<Element>,
    nodes: &BTreeMap<String, NodeId>,
) -> BTreeMap<String, BTreeMap<String, u64>> {
    let of_node = |(name, node): (&String, &NodeId)| {
        let counters = match engine.node(*node) {
            Element::Host(host) => BTreeMap::from([("packets-discarded".to_owned(), host.discarded())]),
            Element::Router(router) => router.report(),
            Element::Gateway(gateway) => gateway.report(),
            Element::Wire(_) | Element::Link(_) => return None,
        };
        Some((name.clone(), counters))
    };
    nodes.iter().filter_map(of_node).collect()
}

/// What terminals asked for and were granted, as far as that was watched.
pub(super) fn capacity(
    engine: &Engine<Element>,
    links: &BTreeMap<String, NodeId>,
) -> BTreeMap<String, Capacity> {
    let of_link = |(name, node): (&String, &NodeId)| {
        let Element::Link(link) = engine.node(*node) else { return None };
        let terminal = link.end(Port(1)).terminal()?;
        let cycles: Vec<_> = terminal.cycles().collect();
        (!cycles.is_empty()).then(|| (name.clone(), Capacity { slots: terminal.slots(), cycles }))
    };
    links.iter().filter_map(of_link).collect()
}
