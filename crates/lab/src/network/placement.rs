//! Placing the applications of a scenario's traffic on its hosts.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;
use std::sync::Arc;

use base::content::Content;
use base::{Duration, Instant, Rng};
use tcp::TcpConfig;

use super::{Exchanges, Source, Transfer};
use crate::engine::NodeId;
use crate::scenario::topology::Topology;
use crate::scenario::{
    Bulk, FIRST_PORT, Opener, PORTS, RateSource, Scenario, Traffic, Transactions, Transport,
};
use crate::traffic::transactions::{Exchange, Pace};
use crate::traffic::{
    Application, BulkReceiver, BulkSender, Client, DatagramReceiver, DatagramSender, Opening, RateReceiver,
    RateSender, Role, Schedule, Server, Turn,
};

/// The applications of every host, and what they make up.
pub(super) struct Placement<'a> {
    scenario: &'a Scenario,
    topology: &'a Topology<'a>,
    /// By node; routers have none.
    addresses: &'a [Option<IpAddr>],
    /// By node.
    configs: Vec<Arc<TcpConfig>>,
    /// By node.
    pub(super) applications: Vec<Vec<Application>>,
    /// By node: who opens a connection only when others have ended.
    pub(super) turns: Vec<Vec<Turn>>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) sources: Vec<Source>,
    pub(super) exchanges: Vec<Exchanges>,
    content: Arc<Content>,
    /// Streams of content handed out.
    streams: u32,
}

impl<'a> Placement<'a> {
    /// Places everything that `scenario` has, in the order of the names of its traffic.
    pub(super) fn new(
        scenario: &'a Scenario,
        topology: &'a Topology<'a>,
        addresses: &'a [Option<IpAddr>],
        seed: u64,
    ) -> Self {
        let nodes = addresses.len();
        let mut placement = Self {
            scenario,
            topology,
            addresses,
            configs: configs(scenario, topology),
            applications: core::iter::repeat_with(Vec::new).take(nodes).collect(),
            turns: core::iter::repeat_with(Vec::new).take(nodes).collect(),
            transfers: Vec::new(),
            sources: Vec::new(),
            exchanges: Vec::new(),
            content: Arc::new(Content::new(seed)),
            streams: 0,
        };
        for (name, traffic) in &scenario.traffic {
            let rng = Rng::named(seed, &format!("traffic {name}"));
            match traffic {
                Traffic::Bulk(bulk) => placement.bulk(name, bulk, rng),
                Traffic::Rate(source) => placement.source(name, source, rng),
                Traffic::Transactions(transactions) => placement.transactions(name, transactions, rng),
            }
        }
        placement.order();
        placement
    }

    fn bulk(&mut self, name: &str, bulk: &Bulk, mut rng: Rng) {
        let [from, to] = [&bulk.from, &bulk.to].map(|host| self.node(host));
        for connection in 0..bulk.connections {
            let (stream, port) = self.next_stream();
            let delay = bulk.opens_after(connection).saturating_add(jitter(&mut rng, bulk.jitter));
            let (sender, receiver) = self.roles(bulk.opened_by, [from, to], delay, port);
            let size = bulk.size_of(connection);
            let stream_size = size.unwrap_or(u64::MAX);
            let sender = BulkSender::new(sender, &self.content, stream, stream_size);
            let receiver = BulkReceiver::new(receiver, Arc::clone(&self.content), stream, stream_size);
            let sender = self.add(from, Application::BulkSender(sender));
            let receiver = self.add(to, Application::BulkReceiver(receiver));
            self.transfers.push(Transfer { name: name.to_owned(), from, to, port, sender, receiver, size });
        }
    }

    fn source(&mut self, name: &str, source: &RateSource, mut rng: Rng) {
        let [from, to] = [&source.from, &source.to].map(|host| self.node(host));
        // A checked scenario's records are short enough.
        let record = source.record.0 as u32;
        for connection in 0..source.connections {
            let (stream, port) = self.next_stream();
            let delay = source.opens_after(connection).saturating_add(jitter(&mut rng, source.jitter));
            let schedule = Schedule::new(source.rate, record, source.duration);
            let content = Arc::clone(&self.content);
            let content = || Arc::clone(&content);
            let (sender, receiver) = match source.transport {
                Transport::Tcp => {
                    let opener = source.opened_by.unwrap_or_default();
                    let (sender, receiver) = self.roles(opener, [from, to], delay, port);
                    let sender = RateSender::new(sender, content(), stream, schedule);
                    let receiver = RateReceiver::new(receiver, content(), stream, record);
                    (Application::RateSender(Box::new(sender)), Application::RateReceiver(Box::new(receiver)))
                }
                Transport::Udp => {
                    let ends = [from, to].map(|host| self.address(host, port));
                    let at = Instant::ZERO.saturating_add(delay);
                    let sender = DatagramSender::new(ends, content(), stream, schedule, at)
                        .with_dscp(source.dscp.get() as u8);
                    let receiver = DatagramReceiver::new(port, content(), stream, record);
                    let sender = Application::DatagramSender(Box::new(sender));
                    (sender, Application::DatagramReceiver(Box::new(receiver)))
                }
            };
            let sender = self.add(from, sender);
            let receiver = self.add(to, receiver);
            // That the last datagrams are lost cannot be seen.
            let ends = source.duration.is_some() && source.transport == Transport::Tcp;
            self.sources.push(Source { name: name.to_owned(), from, to, port, sender, receiver, ends });
        }
    }

    fn transactions(&mut self, name: &str, transactions: &Transactions, rng: Rng) {
        let [from, to] = [&transactions.from, &transactions.to].map(|host| self.node(host));
        let (stream, port) = self.next_stream();
        // The replies' stream.
        self.next_stream();
        let (request, reply) = (transactions.request.0, transactions.reply.0);
        let exchange = Exchange::new(&self.content, stream, request, reply);
        let pace = Pace {
            start: transactions.start,
            pause: transactions.interval.or(transactions.think).unwrap_or(Duration::ZERO),
            from_start: transactions.interval.is_some(),
            exponential: transactions.exponential,
            most_at_once: transactions.most_at_once(),
            count: transactions.count,
        };
        let server = Application::Server(Box::new(Server::new(port, exchange.clone())));
        let server = self.add(from, server);
        let config = Arc::clone(&self.configs[to.0 as usize]);
        let client = Client::new(self.address(from, port), config, exchange, pace, rng);
        let client = self.add(to, Application::Client(Box::new(client)));
        let (name, count) = (name.to_owned(), transactions.count);
        self.exchanges.push(Exchanges { name, from, to, server, client, count });
    }

    fn next_stream(&mut self) -> (u32, u16) {
        let stream = self.streams;
        self.streams += 1;
        (stream, FIRST_PORT + (stream % PORTS) as u16)
    }

    /// The place of `application` among its host's.
    fn add(&mut self, host: NodeId, application: Application) -> usize {
        let at_host = &mut self.applications[host.0 as usize];
        at_host.push(application);
        at_host.len() - 1
    }

    fn node(&self, host: &str) -> NodeId {
        let number = self.topology.number(host);
        NodeId(number.unwrap_or_else(|| unreachable!("a checked scenario's hosts exist")) as u32)
    }

    fn address(&self, host: NodeId, port: u16) -> SocketAddr {
        let address = self.addresses[host.0 as usize];
        SocketAddr::new(address.unwrap_or_else(|| unreachable!("a host has an address")), port)
    }

    /// How the sender and the receiver of a connection come by it.
    fn roles(&self, opener: Opener, [from, to]: [NodeId; 2], delay: Duration, port: u16) -> (Role, Role) {
        let opens = |own: NodeId, peer| {
            let config = Arc::clone(&self.configs[own.0 as usize]);
            let opening = Opening::new(self.address(peer, port), config, delay);
            Role::Opens(Box::new(opening))
        };
        match opener {
            Opener::Receiver => (Role::Listens(port), opens(to, from)),
            Opener::Sender => (opens(from, to), Role::Listens(port)),
        }
    }

    /// Lets transfers wait for each other at the host that opens them.
    fn order(&mut self) {
        let mut groups: BTreeMap<&str, &[Transfer]> = BTreeMap::new();
        for group in self.transfers.chunk_by(|a, b| a.name == b.name) {
            groups.insert(&group[0].name, group);
        }
        for (&name, own) in &groups {
            let Traffic::Bulk(bulk) = &self.scenario.traffic[name] else { continue };
            let host = match bulk.opened_by {
                Opener::Receiver => own[0].to,
                Opener::Sender => own[0].from,
            };
            let places = |group: &[Transfer]| -> Vec<usize> {
                let place = |it: &Transfer| if it.from == host { it.sender } else { it.receiver };
                group.iter().map(place).collect()
            };
            let own = places(own);
            // Of those that take turns, only the first wait for the group before.
            let at_once = bulk.at_once.map_or(own.len(), |most| (most.get() as usize).min(own.len()));
            let (first, others) = own.split_at(at_once);
            let before = bulk.after.as_deref().and_then(|after| groups.get(after));
            let turns = &mut self.turns[host.0 as usize];
            if let Some(before) = before {
                turns.push(Turn { before: places(before), behind: first.to_vec() });
            }
            for (&before, &behind) in own.iter().zip(others) {
                turns.push(Turn { before: vec![before], behind: vec![behind] });
            }
        }
    }
}

/// By node: its TCP, shared by all that have the same.
fn configs(scenario: &Scenario, topology: &Topology<'_>) -> Vec<Arc<TcpConfig>> {
    let usual = Arc::new(scenario.tcp.clone());
    let of = |name: &&str| {
        let special = scenario.host.get(*name).map(|host| Arc::new(host.tcp.clone()));
        special.unwrap_or_else(|| Arc::clone(&usual))
    };
    topology.names().iter().map(of).collect()
}

fn jitter(rng: &mut Rng, most: Duration) -> Duration {
    Duration::from_nanos(rng.below(most.as_nanos()))
}
