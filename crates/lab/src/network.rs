//! Building the network of a scenario: nodes, links, addresses, routes, applications.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use base::{Duration, Rng};
use channel::Channel;

use crate::engine::{Engine, NodeId, Port};
use crate::node::{Element, Host, Link, LinkEnd, Router, Stream, Wire, WireEnd};
use crate::scenario::{self, Bulk, Framing, Opener, Scenario, Traffic};
use crate::traffic::{Application, BulkReceiver, BulkSender, Opening, Role};
use base::content::Content;

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

/// The first port that listening applications use.
const FIRST_PORT: u16 = 5001;

impl Network {
    /// Builds the network of `scenario` for the run with `seed`.
    ///
    /// The scenario has been checked: its hosts exist and reach each other.
    #[must_use]
    pub fn build(scenario: &Scenario, seed: u64) -> Self {
        let addresses = addresses(scenario);
        let (mut applications, transfers) = place_applications(scenario, &addresses, seed);
        let mut network = Self {
            engine: Engine::new(),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            transfers: Vec::new(),
        };
        let mut routers = BTreeMap::new();
        for name in scenario.node_names() {
            let node = match addresses.get(name) {
                Some(&address) => {
                    let tcp = tcp::Host::new(address, Rng::named(seed, &format!("host {name}")));
                    let mut host = Host::new(address, tcp, applications.remove(name).unwrap_or_default());
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
        network.transfers = transfers
            .into_iter()
            .map(|(from, to, transfer)| Transfer {
                from: network.nodes[&from],
                to: network.nodes[&to],
                ..transfer
            })
            .collect();
        network
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

type Placed = (BTreeMap<String, Vec<Application>>, Vec<(String, String, Transfer)>);

/// The applications of every host, and the transfers that they make up.
fn place_applications(scenario: &Scenario, addresses: &BTreeMap<String, IpAddr>, seed: u64) -> Placed {
    let content = Arc::new(Content::new(seed));
    let mut applications: BTreeMap<String, Vec<Application>> = BTreeMap::new();
    let mut transfers: Vec<(String, String, Transfer)> = Vec::new();
    for (name, traffic) in &scenario.traffic {
        let Traffic::Bulk(bulk) = traffic;
        let mut jitter = Rng::named(seed, &format!("traffic {name}"));
        for connection in 0..bulk.connections {
            let stream = transfers.len() as u32;
            let late = Duration::from_nanos(jitter.below(bulk.jitter.as_nanos()));
            let delay = bulk.opens_after(connection).saturating_add(late);
            let port = FIRST_PORT + stream as u16;
            let (sender, receiver) = roles(scenario, bulk, delay, port, addresses);
            let size = bulk.size.map(|size| size.0);
            let stream_size = size.unwrap_or(u64::MAX);
            let sender = BulkSender::new(sender, Arc::clone(&content), stream, stream_size);
            let receiver = BulkReceiver::new(receiver, Arc::clone(&content), stream, stream_size);
            let mut place = |host: &String, application| {
                let at_host = applications.entry(host.clone()).or_default();
                at_host.push(application);
                at_host.len() - 1
            };
            let sender = place(&bulk.from, Application::BulkSender(sender));
            let receiver = place(&bulk.to, Application::BulkReceiver(receiver));
            // The hosts get their nodes later.
            let (from, to) = (NodeId(0), NodeId(0));
            let transfer = Transfer { name: name.clone(), from, to, port, sender, receiver, size };
            transfers.push((bulk.from.clone(), bulk.to.clone(), transfer));
        }
    }
    let hosts: BTreeSet<String> = applications.keys().cloned().collect();
    for host in hosts {
        let waits = waits(scenario, &host, &transfers);
        let at_host = applications.get_mut(&host).into_iter().flatten();
        at_host.zip(waits).for_each(|(application, waits_for)| application.wait_for(waits_for));
    }
    (applications, transfers)
}

/// For each application of `host`, which others of it have to end before it opens its connection.
fn waits(scenario: &Scenario, host: &str, transfers: &[(String, String, Transfer)]) -> Vec<Vec<usize>> {
    // An application's number at the host, by its transfer's name, in the order of the connections.
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut all = 0;
    for (from, to, transfer) in transfers {
        let place = if from == host {
            transfer.sender
        } else if to == host {
            transfer.receiver
        } else {
            continue;
        };
        places.entry(&transfer.name).or_default().push(place);
        all = all.max(place + 1);
    }
    let mut waits = vec![Vec::new(); all];
    for (name, own) in &places {
        let Traffic::Bulk(bulk) = &scenario.traffic[*name];
        let before = bulk.after.as_deref().and_then(|after| places.get(after));
        for (connection, &place) in own.iter().enumerate() {
            waits[place] = match connection {
                1.. if bulk.in_turn => vec![own[connection - 1]],
                _ => before.cloned().unwrap_or_default(),
            };
        }
    }
    waits
}

/// How the sender and the receiver of a transfer's connection come by it.
fn roles(
    scenario: &Scenario,
    bulk: &Bulk,
    delay: Duration,
    port: u16,
    addresses: &BTreeMap<String, IpAddr>,
) -> (Role, Role) {
    let opens = |peer: &str| {
        let remote = SocketAddr::new(addresses[peer], port);
        Role::Opens(Box::new(Opening::new(remote, scenario.tcp.clone(), delay)))
    };
    match bulk.opened_by {
        Opener::Receiver => (Role::Listens(port), opens(&bulk.from)),
        Opener::Sender => (opens(&bulk.to), Role::Listens(port)),
    }
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
            let end = |line, direction| {
                let end = LinkEnd::new(queue(), protocol.build(), line, protocol.framing_bits());
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
