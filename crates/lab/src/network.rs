//! Building the network of a scenario: nodes, links, addresses, routes, applications.

mod placement;

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::Rng;
use channel::{Channel, Line};
use link::{Entry, LineLimits, efl};

use crate::engine::{Engine, NodeId, Port};
use crate::node::{Element, Host, Link, LinkEnd, Router, Stream, Wire, WireEnd};
use crate::scenario::{self, Framing, Scenario, Traffic};
use placement::Placement;

/// A scenario's network, ready to run.
#[derive(Debug)]
pub struct Network {
    /// The engine that runs it.
    pub engine: Engine<Element>,
    /// Every node that the scenario names, hosts and routers.
    pub nodes: BTreeMap<String, NodeId>,
    /// The node that stands for each link.
    pub links: BTreeMap<String, NodeId>,
    /// Every connection of every bulk transfer.
    pub transfers: Vec<Transfer>,
    /// Every connection of every rate-controlled source.
    pub sources: Vec<Source>,
    /// Everything that consists of transactions.
    pub exchanges: Vec<Exchanges>,
}

/// One connection of a bulk transfer, and where its two applications are.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The transfer's name in the scenario.
    pub name: String,
    /// The sending host.
    pub from: NodeId,
    /// The receiving host.
    pub to: NodeId,
    /// The port at which one side waits for the other.
    pub port: u16,
    /// The place of the sending application among its host's.
    pub sender: usize,
    /// The place of the receiving application among its host's.
    pub receiver: usize,
    /// Bytes to carry; `None` means until the run ends.
    pub size: Option<u64>,
}

/// One connection of a rate-controlled source, or its datagrams, and where its two applications are.
#[derive(Clone, Debug)]
pub struct Source {
    /// The source's name in the scenario.
    pub name: String,
    /// The sending host.
    pub from: NodeId,
    /// The receiving host.
    pub to: NodeId,
    /// The port at which one side waits for the other.
    pub port: u16,
    /// The place of the sending application among its host's.
    pub sender: usize,
    /// The place of the receiving application among its host's.
    pub receiver: usize,
    /// Whether the source ends before the run, and its end can be seen.
    pub ends: bool,
}

/// Transactions, and where their two applications are.
#[derive(Clone, Debug)]
pub struct Exchanges {
    /// Their name in the scenario.
    pub name: String,
    /// The host that replies.
    pub from: NodeId,
    /// The host that asks.
    pub to: NodeId,
    /// The place of the server among its host's applications.
    pub server: usize,
    /// The place of the client among its host's applications.
    pub client: usize,
    /// Transactions in all; `None` means until the run ends.
    pub count: Option<u64>,
}

impl Network {
    /// Builds the network of `scenario` for the run with `seed`.
    ///
    /// The scenario has been checked: its hosts exist and reach each other.
    #[must_use]
    pub fn build(scenario: &Scenario, seed: u64) -> Self {
        let addresses = addresses(scenario);
        let mut placement = Placement::new(scenario, &addresses, seed);
        let mut network = Self {
            engine: Engine::new(),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            transfers: Vec::new(),
            sources: Vec::new(),
            exchanges: Vec::new(),
        };
        let mut routers = BTreeMap::new();
        for name in scenario.node_names() {
            let node = match addresses.get(name) {
                Some(&address) => {
                    let tcp = tcp::Host::new(address, Rng::named(seed, &format!("host {name}")));
                    let mut host =
                        Host::new(address, tcp, placement.applications.remove(name).unwrap_or_default());
                    host.listen(&scenario.tcp);
                    Element::Host(Box::new(host))
                }
                None => {
                    routers.insert(name.to_owned(), routes(scenario, name, &addresses));
                    Element::Router(Router::new())
                }
            };
            network.nodes.insert(name.to_owned(), network.engine.add(node));
        }
        for (name, link) in &scenario.link {
            let node = network.engine.add(link_node(name, link, seed));
            for end in &link.ends {
                network.engine.connect(node, network.nodes[end]);
            }
            network.links.insert(name.clone(), node);
        }
        for (name, routes) in routers {
            if let Element::Router(router) = network.engine.node_mut(network.nodes[&name]) {
                routes.into_iter().for_each(|(destination, port)| router.add_route(destination, port));
            }
        }
        network.settle(placement);
        network
    }

    /// Whether the run goes on until its end, because something in it does.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.transfers.iter().any(|transfer| transfer.size.is_none())
            || self.sources.iter().any(|source| !source.ends)
            || self.exchanges.iter().any(|exchanges| exchanges.count.is_none())
    }

    /// Goals that the applications reach if everything ends.
    #[must_use]
    pub fn goals(&self) -> u32 {
        (self.transfers.len() + self.sources.len() + self.exchanges.len()) as u32
    }

    /// Gives everything that was placed the nodes of its hosts.
    fn settle(&mut self, placement: Placement) {
        let nodes = |hosts: &[String; 2]| [self.nodes[&hosts[0]], self.nodes[&hosts[1]]];
        for (hosts, transfer) in placement.transfers {
            let [from, to] = nodes(&hosts);
            self.transfers.push(Transfer { from, to, ..transfer });
        }
        for (hosts, source) in placement.sources {
            let [from, to] = nodes(&hosts);
            self.sources.push(Source { from, to, ..source });
        }
        for (hosts, exchanges) in placement.exchanges {
            let [from, to] = nodes(&hosts);
            self.exchanges.push(Exchanges { from, to, ..exchanges });
        }
    }
}

/// Every host's address, in the order of their names.
fn addresses(scenario: &Scenario) -> BTreeMap<String, IpAddr> {
    let hosts: BTreeSet<&str> = scenario.traffic.values().flat_map(Traffic::hosts).collect();
    hosts
        .into_iter()
        .enumerate()
        .map(|(index, name)| (name.to_owned(), scenario.network.address(index)))
        .collect()
}

fn link_node(name: &str, link: &scenario::Link, seed: u64) -> Element {
    let queue = || link.queue.build();
    // The second end is the terminal: down leads there.
    let Channel { down: forward, up: backward } = link.channel.build(seed, name);
    match &link.protocol {
        None => Element::Wire(Box::new(Wire::new([
            WireEnd::new(queue(), forward),
            WireEnd::new(queue(), backward),
        ]))),
        Some(protocol) => {
            let end = |line: Line, direction| {
                let frame_limit = if link.framing == Framing::Ideal { usize::MAX } else { efl::MAX_BODY };
                let endpoint = protocol.build(&LineLimits::new(frame_limit, Some(line.rate())));
                let entry = Entry::new(&link.queue, link.once_dscp, protocol.capabilities());
                let end = LinkEnd::new(entry, endpoint, line, protocol.framing_bits());
                match link.framing {
                    Framing::Ideal => end,
                    Framing::Efl => end.with_stream(Stream::clear()),
                    Framing::EncryptedEfl => {
                        let rng = Rng::named(seed, &format!("{name}/{direction}/efl"));
                        end.with_stream(Stream::encrypted(rng))
                    }
                }
            };
            Element::Link(Box::new(Link::new([end(forward, "down"), end(backward, "up")])))
        }
    }
}

/// Where the router called `name` sends packets for each host: along a shortest path, the first by link name among equals.
fn routes(scenario: &Scenario, name: &str, addresses: &BTreeMap<String, IpAddr>) -> Vec<(IpAddr, Port)> {
    let mut out_of: BTreeMap<&str, Port> = BTreeMap::new();
    let mut reached = BTreeSet::from([name]);
    let mut frontier = VecDeque::new();
    // A node's ports are numbered in the order of its links' names.
    for (port, (neighbour, _)) in scenario.neighbours(name).enumerate() {
        if reached.insert(neighbour) {
            out_of.insert(neighbour, Port(port as u16));
            frontier.push_back(neighbour);
        }
    }
    while let Some(node) = frontier.pop_front() {
        // Hosts do not forward.
        if addresses.contains_key(node) {
            continue;
        }
        for (neighbour, _) in scenario.neighbours(node) {
            if reached.insert(neighbour) {
                out_of.insert(neighbour, out_of[node]);
                frontier.push_back(neighbour);
            }
        }
    }
    out_of
        .into_iter()
        .filter_map(|(node, port)| addresses.get(node).map(|&address| (address, port)))
        .collect()
}
