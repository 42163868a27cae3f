//! Placing the applications of a scenario's traffic on its hosts.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::content::Content;
use base::{Duration, Instant, Rng};

use super::{Exchanges, Source, Transfer};
use crate::engine::NodeId;
use crate::scenario::{Bulk, Opener, RateSource, Scenario, Traffic, Transactions, Transport};
use crate::traffic::transactions::{Exchange, Pace};
use crate::traffic::{
    Application, BulkReceiver, BulkSender, Client, DatagramReceiver, DatagramSender, Opening, RateReceiver,
    RateSender, Role, Schedule, Server,
};

/// The first port that applications wait at.
const FIRST_PORT: u16 = 5001;
/// The node of a host that has none yet.
const LATER: NodeId = NodeId(0);

/// The applications of every host, and what they make up, with the names of its two hosts.
pub(super) struct Placement {
    pub(super) applications: BTreeMap<String, Vec<Application>>,
    pub(super) transfers: Vec<([String; 2], Transfer)>,
    pub(super) sources: Vec<([String; 2], Source)>,
    pub(super) exchanges: Vec<([String; 2], Exchanges)>,
    content: Arc<Content>,
    /// Streams of content handed out: their number is also that of their port.
    streams: u32,
}

impl Placement {
    /// Places everything that `scenario` has, in the order of the names of its traffic.
    pub(super) fn new(scenario: &Scenario, addresses: &BTreeMap<String, IpAddr>, seed: u64) -> Self {
        let mut placement = Self {
            applications: BTreeMap::new(),
            transfers: Vec::new(),
            sources: Vec::new(),
            exchanges: Vec::new(),
            content: Arc::new(Content::new(seed)),
            streams: 0,
        };
        for (name, traffic) in &scenario.traffic {
            let rng = Rng::named(seed, &format!("traffic {name}"));
            let place = Place { name, scenario, addresses };
            match traffic {
                Traffic::Bulk(bulk) => placement.bulk(&place, bulk, rng),
                Traffic::Rate(source) => placement.source(&place, source, rng),
                Traffic::Transactions(transactions) => placement.transactions(&place, transactions, rng),
            }
        }
        let hosts: BTreeSet<String> = placement.applications.keys().cloned().collect();
        for host in hosts {
            let waits = waits(scenario, &host, &placement.transfers);
            let at_host = placement.applications.get_mut(&host).into_iter().flatten();
            at_host.zip(waits).for_each(|(application, waits_for)| application.wait_for(waits_for));
        }
        placement
    }

    fn bulk(&mut self, place: &Place<'_>, bulk: &Bulk, mut rng: Rng) {
        for connection in 0..bulk.connections {
            let (stream, port) = self.next_stream();
            let delay = bulk.opens_after(connection).saturating_add(jitter(&mut rng, bulk.jitter));
            let (sender, receiver) = place.roles(bulk.opened_by, [&bulk.from, &bulk.to], delay, port);
            let size = bulk.size.map(|size| size.0);
            let stream_size = size.unwrap_or(u64::MAX);
            let sender = BulkSender::new(sender, Arc::clone(&self.content), stream, stream_size);
            let receiver = BulkReceiver::new(receiver, Arc::clone(&self.content), stream, stream_size);
            let sender = self.add(&bulk.from, Application::BulkSender(sender));
            let receiver = self.add(&bulk.to, Application::BulkReceiver(receiver));
            let name = place.name.to_owned();
            let transfer = Transfer { name, from: LATER, to: LATER, port, sender, receiver, size };
            self.transfers.push(([bulk.from.clone(), bulk.to.clone()], transfer));
        }
    }

    fn source(&mut self, place: &Place<'_>, source: &RateSource, mut rng: Rng) {
        // A checked scenario's records are short enough.
        let record = source.record.0 as u32;
        for connection in 0..source.connections {
            let (stream, port) = self.next_stream();
            let delay = source.opens_after(connection).saturating_add(jitter(&mut rng, source.jitter));
            let schedule = Schedule::new(source.rate, record, source.duration);
            let content = || Arc::clone(&self.content);
            let (sender, receiver) = match source.transport {
                Transport::Tcp => {
                    let opener = source.opened_by.unwrap_or_default();
                    let (sender, receiver) = place.roles(opener, [&source.from, &source.to], delay, port);
                    let sender = RateSender::new(sender, content(), stream, schedule);
                    let receiver = RateReceiver::new(receiver, content(), stream, record);
                    (Application::RateSender(Box::new(sender)), Application::RateReceiver(Box::new(receiver)))
                }
                Transport::Udp => {
                    let ends = [&source.from, &source.to].map(|host| place.address(host, port));
                    let at = Instant::ZERO.saturating_add(delay);
                    let sender = DatagramSender::new(ends, content(), stream, schedule, at)
                        .with_dscp(source.dscp.get() as u8);
                    let receiver = DatagramReceiver::new(port, content(), stream, record);
                    let sender = Application::DatagramSender(Box::new(sender));
                    (sender, Application::DatagramReceiver(Box::new(receiver)))
                }
            };
            let sender = self.add(&source.from, sender);
            let receiver = self.add(&source.to, receiver);
            let name = place.name.to_owned();
            // That the last datagrams are lost cannot be seen.
            let ends = source.duration.is_some() && source.transport == Transport::Tcp;
            let placed = Source { name, from: LATER, to: LATER, port, sender, receiver, ends };
            self.sources.push(([source.from.clone(), source.to.clone()], placed));
        }
    }

    fn transactions(&mut self, place: &Place<'_>, transactions: &Transactions, rng: Rng) {
        let (stream, port) = self.next_stream();
        // The replies' stream.
        self.next_stream();
        let (request, reply) = (transactions.request.0, transactions.reply.0);
        let exchange = Exchange::new(Arc::clone(&self.content), stream, request, reply);
        let pace = Pace {
            start: transactions.start,
            pause: transactions.interval.or(transactions.think).unwrap_or(Duration::ZERO),
            from_start: transactions.interval.is_some(),
            exponential: transactions.exponential,
            most_at_once: transactions.most_at_once(),
            count: transactions.count,
        };
        let server =
            self.add(&transactions.from, Application::Server(Box::new(Server::new(port, exchange.clone()))));
        let config = place.scenario.tcp.clone();
        let client = Client::new(place.address(&transactions.from, port), config, exchange, pace, rng);
        let client = self.add(&transactions.to, Application::Client(Box::new(client)));
        let (name, count) = (place.name.to_owned(), transactions.count);
        let placed = Exchanges { name, from: LATER, to: LATER, server, client, count };
        self.exchanges.push(([transactions.from.clone(), transactions.to.clone()], placed));
    }

    fn next_stream(&mut self) -> (u32, u16) {
        let stream = self.streams;
        self.streams += 1;
        (stream, FIRST_PORT + stream as u16)
    }

    /// The place of `application` among its host's.
    fn add(&mut self, host: &str, application: Application) -> usize {
        let at_host = self.applications.entry(host.to_owned()).or_default();
        at_host.push(application);
        at_host.len() - 1
    }
}

/// What is being placed, and where.
struct Place<'a> {
    name: &'a str,
    scenario: &'a Scenario,
    addresses: &'a BTreeMap<String, IpAddr>,
}

impl Place<'_> {
    fn address(&self, host: &str, port: u16) -> SocketAddr {
        SocketAddr::new(self.addresses[host], port)
    }

    /// How the sender and the receiver of a connection come by it.
    fn roles(&self, opener: Opener, [from, to]: [&str; 2], delay: Duration, port: u16) -> (Role, Role) {
        let opens = |peer: &str| {
            let remote = self.address(peer, port);
            Role::Opens(Box::new(Opening::new(remote, self.scenario.tcp.clone(), delay)))
        };
        match opener {
            Opener::Receiver => (Role::Listens(port), opens(from)),
            Opener::Sender => (opens(to), Role::Listens(port)),
        }
    }
}

fn jitter(rng: &mut Rng, most: Duration) -> Duration {
    Duration::from_nanos(rng.below(most.as_nanos()))
}

/// For each application of `host`, which others of it have to end before it opens its connection.
fn waits(scenario: &Scenario, host: &str, transfers: &[([String; 2], Transfer)]) -> Vec<Vec<usize>> {
    // An application's number at the host, by its transfer's name, in the order of the connections.
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut all = 0;
    for ([from, to], transfer) in transfers {
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
        let Traffic::Bulk(bulk) = &scenario.traffic[*name] else { continue };
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
