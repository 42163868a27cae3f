//! What a run is watched for: who is told to keep what, before it begins.

use core::cell::RefCell;
use fs_err::File;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use base::Instant;

use super::Watch;
use crate::engine::NodeId;
use crate::network::Network;
use crate::node::Element;
use crate::observe::events::{LinkDirection, Recorder, SenderWatch};
use crate::observe::{Capture, EventLog, Flow, FlowTrace, Format};
use crate::scenario::Scenario;

/// The observers that are outside the nodes that they observe.
#[derive(Debug)]
pub(super) struct Watched {
    traces: Vec<Rc<RefCell<FlowTrace>>>,
    recorder: Option<Rc<RefCell<Recorder>>>,
    capture: Option<Rc<RefCell<Capture>>>,
}

impl Watched {
    /// Has everything in `network` kept that is asked for.
    ///
    /// # Errors
    /// A capture or log file that cannot be written, or a node or link to capture at that does not exist.
    pub(super) fn begin(network: &mut Network, scenario: &Scenario, watch: &Watch) -> io::Result<Self> {
        let traces = if watch.flows { watch_senders(network) } else { Vec::new() };
        if watch.windows {
            watch_windows(network);
        }
        let recorder = match (watch.events || watch.host_events, &watch.log) {
            (false, None) => None,
            (keeps, path) => Some(record_hosts(network, keeps, path.as_deref())?),
        };
        if let Some(recorder) = recorder.as_ref().filter(|_| watch.events || watch.log.is_some()) {
            record_links(network, recorder);
        }
        if watch.progress {
            watch_progress(network);
        }
        if watch.queues {
            watch_queues(network);
        }
        if watch.tunnels {
            watch_tunnels(network);
        }
        if watch.capacity {
            watch_capacity(network);
        }
        let capture = match &watch.capture {
            None => None,
            Some((name, path)) => Some(capture(network, scenario, name, path)?),
        };
        Ok(Self { traces, recorder, capture })
    }

    /// What connections sent, by those who sent it.
    pub(super) fn flows(&self) -> Vec<Flow> {
        self.traces.iter().flat_map(|trace| trace.borrow().flows().to_vec()).collect()
    }

    /// The run has ended: files are complete.
    pub(super) fn finish(self, ended: Instant) -> io::Result<EventLog> {
        if let Some(capture) = self.capture {
            capture.borrow_mut().finish()?;
        }
        match self.recorder {
            Some(recorder) => recorder.borrow_mut().finish(ended),
            None => Ok(EventLog::default()),
        }
    }
}

/// Starts a capture: at a node, or else of a link.
fn capture(
    network: &mut Network,
    scenario: &Scenario,
    name: &str,
    path: &Path,
) -> io::Result<Rc<RefCell<Capture>>> {
    let create = || File::create(path).map(|file| Box::new(BufWriter::new(file)));
    if let Some(&node) = network.nodes.get(name) {
        let capture = Rc::new(RefCell::new(Capture::of_node(create()?, name)?));
        network.engine.observe(node, Rc::clone(&capture));
        return Ok(capture);
    }
    let (Some(&node), Some(link)) = (network.links.get(name), scenario.link.get(name)) else {
        return Err(io::Error::other(scenario.no_such_place(name)));
    };
    let capture = Capture::of_link(create()?, name, Format::of(link))?;
    let capture = Rc::new(RefCell::new(capture));
    let taps = [LinkDirection::Down, LinkDirection::Up].map(|direction| Capture::tap(&capture, direction));
    match network.engine.node_mut(node) {
        Element::Wire(wire) => wire.capture(taps),
        Element::Link(link) => link.capture(taps),
        Element::Host(_) | Element::Router(_) | Element::Gateway(_) => {}
    }
    Ok(capture)
}

/// Has every host report to a recorder.
fn record_hosts(
    network: &mut Network,
    keeps: bool,
    path: Option<&Path>,
) -> io::Result<Rc<RefCell<Recorder>>> {
    let out: Option<Box<dyn Write>> = match path {
        None => None,
        Some(path) => Some(Box::new(BufWriter::new(File::create(path)?))),
    };
    let recorder = Rc::new(RefCell::new(Recorder::new(keeps, out)));
    for (name, &node) in &network.nodes {
        if let Element::Host(host) = network.engine.node_mut(node) {
            let probe = Recorder::probe(&recorder, name);
            host.watch_senders(SenderWatch::new(probe.clone()));
            network.engine.observe(node, probe);
        }
    }
    Ok(recorder)
}

/// Has every link report to a recorder as well.
fn record_links(network: &mut Network, recorder: &Rc<RefCell<Recorder>>) {
    for (name, &node) in &network.links {
        let probe = |direction: LinkDirection| Recorder::probe(recorder, &direction.of(name));
        let probes = [probe(LinkDirection::Down), probe(LinkDirection::Up)];
        match network.engine.node_mut(node) {
            Element::Wire(wire) => wire.log_events(probes),
            Element::Link(link) => link.log_events(probes),
            Element::Host(_) | Element::Router(_) | Element::Gateway(_) => {}
        }
    }
}

/// The hosts that send.
pub(super) fn senders(network: &Network) -> BTreeSet<NodeId> {
    let of_transfers = network.transfers.iter().map(|transfer| transfer.from);
    let of_sources = network.sources.iter().map(|source| source.from);
    of_transfers.chain(of_sources).chain(network.exchanges.iter().map(|exchanges| exchanges.from)).collect()
}

fn watch_progress(network: &mut Network) {
    for &node in network.nodes.values() {
        if let Element::Host(host) = network.engine.node_mut(node) {
            host.watch_progress();
        }
    }
}

fn watch_queues(network: &mut Network) {
    for &link in network.links.values() {
        match network.engine.node_mut(link) {
            Element::Wire(wire) => wire.watch_queues(),
            Element::Link(link) => link.watch_queues(),
            Element::Host(_) | Element::Router(_) | Element::Gateway(_) => {}
        }
    }
}

fn watch_tunnels(network: &mut Network) {
    for &node in network.nodes.values() {
        if let Element::Gateway(gateway) = network.engine.node_mut(node) {
            gateway.watch_tunnels();
        }
    }
}

fn watch_capacity(network: &mut Network) {
    for &link in network.links.values() {
        if let Element::Link(link) = network.engine.node_mut(link) {
            link.keep_cycles();
        }
    }
}

fn watch_windows(network: &mut Network) {
    for node in senders(network) {
        if let Element::Host(host) = network.engine.node_mut(node) {
            host.watch_windows();
        }
    }
    for &link in network.links.values() {
        if let Element::Wire(wire) = network.engine.node_mut(link) {
            wire.watch_drops();
        }
    }
}

/// Watches each sending host once.
fn watch_senders(network: &mut Network) -> Vec<Rc<RefCell<FlowTrace>>> {
    let senders = senders(network);
    let watch = |node| {
        let trace = Rc::new(RefCell::new(FlowTrace::default()));
        network.engine.observe(node, Rc::clone(&trace));
        trace
    };
    senders.into_iter().map(watch).collect()
}
