//! Building the network of a scenario: nodes, links, addresses, routes, applications.

mod gateways;
mod placement;

use core::net::IpAddr;
use std::collections::BTreeMap;

use base::{Rate, Rng};
use channel::{Channel, Line};
use link::queue::Site;
use link::{IngressQueues, LineId, LineLimits, Protocol};
use pep::{Peer, Proxy};

use crate::engine::{Engine, NodeId, Port};
use crate::node::{Element, Host, Link, LinkEnd, Router, Stream, Wire, WireEnd};
use crate::scenario::topology::{Routes, Topology};
use crate::scenario::{self, Framing, Networks, Scenario};
use gateways::Gateways;
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
        let topology = Topology::new(scenario);
        let addresses = addresses(scenario, &topology);
        let placement = Placement::new(scenario, &topology, &addresses, seed);
        let Placement { applications, turns, transfers, sources, exchanges, .. } = placement;
        let gateways = Gateways::new(scenario, &topology);
        let mut engine = Engine::new();
        let mut nodes = BTreeMap::new();
        let at_nodes = applications.into_iter().zip(turns).zip(topology.routes());
        // A node's number in the topology is its number in the engine.
        for (number, ((&name, address), ((applications, turns), routes))) in
            topology.names().iter().zip(&addresses).zip(at_nodes).enumerate()
        {
            let node = match *address {
                Some(address) => {
                    let tcp = tcp::Host::new(address, Rng::named(seed, &format!("host {name}")));
                    let mut host = Host::new(address, tcp, applications);
                    host.listen(scenario.tcp_of(name));
                    host.take_turns(turns);
                    Element::Host(Box::new(host))
                }
                None => {
                    let mut router = router(&routes, &addresses);
                    gateways.add_routes(&mut router, number);
                    match gateways.gateway(number, router, (&routes, &addresses), seed) {
                        Ok(gateway) => Element::Gateway(Box::new(gateway)),
                        Err(router) => Element::Router(Box::new(router)),
                    }
                }
            };
            nodes.insert(name.to_owned(), engine.add(node));
        }
        let mut links = BTreeMap::new();
        let networks = Networks::new(scenario);
        for (name, link) in &scenario.link {
            let node = engine.add(link_node(name, link, seed, &networks));
            for end in &link.ends {
                engine.connect(node, nodes[end]);
            }
            links.insert(name.clone(), node);
        }
        Self { engine, nodes, links, transfers, sources, exchanges }
    }

    /// What the scenario calls a node: a host's, a router's or a link's name.
    #[must_use]
    pub fn name_of(&self, node: NodeId) -> Option<&str> {
        let mut named = self.nodes.iter().chain(&self.links);
        named.find(|&(_, &of)| of == node).map(|(name, _)| name.as_str())
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
}

/// By node: the addresses of the hosts, in the order of their names.
fn addresses(scenario: &Scenario, topology: &Topology<'_>) -> Vec<Option<IpAddr>> {
    let mut addresses = vec![None; topology.names().len()];
    for (index, host) in topology.hosts().enumerate() {
        addresses[host] = Some(scenario.network.address(index));
    }
    addresses
}

fn router(routes: &Routes, addresses: &[Option<IpAddr>]) -> Router {
    // A checked scenario's nodes have fewer links than that.
    let port = |port: usize| Port(port as u16);
    let mut router = Router::new(routes.otherwise.map(port));
    for &(host, to) in &routes.to {
        if let Some(address) = addresses[host] {
            router.add_route(address, port(to));
        }
    }
    router
}

fn link_node(name: &str, link: &scenario::Link, seed: u64, networks: &Networks<'_>) -> Element {
    // The second end is the terminal: down leads there.
    let Channel { down: forward, up: backward } = link.channel.build(seed, name);
    let own_name = name;
    let ways = || link.ways(name).skip(1);
    let (downs, ups): (Vec<_>, Vec<_>) = ways()
        .map(|way| {
            let Channel { down, up } = way.build(seed);
            let name = || way.path.unwrap_or_default().to_owned();
            ((name(), down), (name(), up))
        })
        .unzip();
    match &link.protocol {
        None => Element::Wire(Wire::new([
            wire_end(name, link, seed, forward, "down"),
            wire_end(name, link, seed, backward, "up"),
        ])),
        Some(protocol) => {
            let end = |line: Line, others: Vec<(String, Line)>, direction| {
                // What all lines carry together.
                let rates =
                    core::iter::once(&line).chain(others.iter().map(|(_, line)| line)).map(Line::rate);
                let rates: Vec<Rate> = rates.collect();
                let rate =
                    Rate::from_bps(rates.iter().fold(0, |sum, rate| sum.saturating_add(rate.as_bps())));
                let limits = LineLimits::new(link.framing.frame_limit(), Some(rate))
                    .with_overhead(Protocol::FRAMING_BITS as usize / 8);
                let is_buffered = direction == "up" && link.dama.is_some();
                let mut endpoint = protocol.build(&if is_buffered { limits.behind_buffer() } else { limits });
                let name = format!("{name}/{direction}");
                if rates.len() > 1
                    && let Some(lines) = endpoint.lines()
                {
                    for ((way, rate), number) in link.ways(own_name).zip(rates).zip(0..) {
                        LineId::new(number)
                            .into_iter()
                            .for_each(|line| lines.set_line_over(line, way.terms(rate)));
                    }
                }
                let site = Site { rate: Some(rate), seed, name: &name };
                let mut queues =
                    IngressQueues::new(&link.queue, &site, link.by_dscp(), protocol.capabilities());
                if link.sparse_flows {
                    queues = queues.with_sparse_flows(&link.queue, &site);
                }
                let age = link.datagram_age(rate);
                queues.set_datagram_age(age);
                endpoint.set_hold(age);
                let end = LinkEnd::new(queues, endpoint, line, link.frame_cost(direction == "down"))
                    .with_paths(others)
                    .with_proxy(proxy(&name, link, seed, direction));
                match link.framing {
                    Framing::Ideal if direction == "up" => networks.join(link, end),
                    Framing::Ideal => end,
                    Framing::Efl => end.with_stream(Stream::clear()),
                    Framing::EncryptedEfl => {
                        let rng = Rng::named(seed, &format!("{name}/efl"));
                        end.with_stream(Stream::encrypted(rng))
                    }
                }
            };
            Element::Link(Box::new(Link::new([end(forward, downs, "down"), end(backward, ups, "up")])))
        }
    }
}

fn wire_end(name: &str, link: &scenario::Link, seed: u64, line: Line, direction: &str) -> WireEnd {
    let name = format!("{name}/{direction}");
    let site = Site { rate: Some(line.rate()), seed, name: &name };
    WireEnd::new(link.queue.build(&site, "queue"), proxy(&name, link, seed, direction), line)
}

/// The proxy at the end that sends in this direction, if there is one.
fn proxy(name: &str, link: &scenario::Link, seed: u64, direction: &str) -> Option<Proxy> {
    let mut config = link.pep(direction == "down")?.clone();
    if !link.path.is_empty() {
        config = config.for_several_lines();
    }
    config.link_repairs =
        link.protocol.as_ref().is_some_and(|protocol| protocol.capabilities().recovers_losses);
    let mut proxy = Proxy::new(config, &mut Rng::named(seed, &format!("{name}/proxy")));
    let is_pair = [true, false].into_iter().all(|down| link.pep(down).is_some());
    proxy.set_peer(if is_pair { Peer::Known } else { Peer::Nobody }, pep::ETHERNET_MSS);
    Some(proxy)
}
