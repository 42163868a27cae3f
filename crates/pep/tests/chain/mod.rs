//! A client, a proxy or none, a link, a proxy or none, and a server, in virtual time.
//!
//! The link delays, loses and shapes; it takes packets from a proxy when it is free.
#![allow(unreachable_pub, reason = "each test uses a part")]

pub mod order;
pub mod packets;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use base::{Duration, Instant, Packet, Rate, Rng, Serializer};
use longhaul_pep::{Config, ETHERNET_MSS, Peer, Proxy, Side, Verdict};
use order::Order;
use tcp::{ConnectionId, Event, Failure, Host, TcpConfig};

/// Places in the chain, from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Client,
    Near,
    Far,
    Server,
}

/// A way between two neighbours, in one direction.
#[derive(Debug)]
struct Way {
    line: Serializer,
    delay: Duration,
    loss: f64,
    rng: Rng,
    /// What waits where nobody clocks.
    queue: std::collections::VecDeque<Packet>,
    order: Order,
    pub carried: u64,
}

/// What an end has seen of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub id: Option<ConnectionId>,
    pub connected_at: Option<Instant>,
    pub read: Vec<u8>,
    pub finished: bool,
    pub closed: bool,
    pub failed: Option<Failure>,
    pub first_byte_at: Option<Instant>,
    pub last_byte_at: Option<Instant>,
}

/// The chain.
#[derive(Debug)]
pub struct Chain {
    pub now: Instant,
    pub client: Host,
    pub server: Host,
    pub proxies: [Option<Proxy>; 2],
    ways: BTreeMap<(Place, Place), Way>,
    arrivals: BTreeMap<(Instant, u64), (Place, Place, Packet)>,
    number: u64,
    pub client_saw: BTreeMap<ConnectionId, Seen>,
    pub server_saw: BTreeMap<ConnectionId, Seen>,
    /// Connections of which there is news, to be read: the client's and the server's.
    news: [BTreeSet<ConnectionId>; 2],
    /// Whether an end reads what comes.
    pub client_reads: bool,
    pub server_reads: bool,
    pub packets: u64,
}

pub const CLIENT: &str = "10.0.0.2";
pub const SERVER: &str = "192.0.2.7";

pub fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn server_at(port: u16) -> SocketAddr {
    SocketAddr::new(address(SERVER), port)
}

/// What a chain is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    pub near: Option<Config>,
    pub far: Option<Config>,
    pub rate: Rate,
    pub delay: Duration,
    pub loss: f64,
    /// On the LANs.
    pub lan_loss: f64,
    pub seed: u64,
    pub host: TcpConfig,
    /// Bytes of the longest segment between the proxies.
    pub longest_segment: u16,
    /// The order in which the link hands packets out.
    pub order: Order,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            near: Some(Config::default()),
            far: Some(Config::default()),
            rate: Rate::from_bps(10_000_000),
            delay: Duration::from_millis(300),
            loss: 0.0,
            lan_loss: 0.0,
            seed: 1,
            host: TcpConfig::preset("linux").unwrap(),
            longest_segment: ETHERNET_MSS,
            order: Order::Kept,
        }
    }
}

impl Chain {
    pub fn new(setup: &Setup) -> Self {
        let mut rng = Rng::named(setup.seed, "chain");
        let peer = if setup.near.is_some() && setup.far.is_some() { Peer::Known } else { Peer::Nobody };
        let mut proxy = |config: &Option<Config>| {
            let mut proxy = Proxy::new(config.clone()?, &mut rng);
            proxy.set_peer(peer, setup.longest_segment);
            Some(proxy)
        };
        let proxies = [proxy(&setup.near), proxy(&setup.far)];
        let mut ways = BTreeMap::new();
        let places = [Place::Client, Place::Near, Place::Far, Place::Server];
        for pair in places.windows(2) {
            for (from, to) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                let link = from != Place::Client
                    && from != Place::Server
                    && to != Place::Client
                    && to != Place::Server;
                let way = Way {
                    line: Serializer::new(if link { setup.rate } else { Rate::from_bps(1_000_000_000) }),
                    delay: if link { setup.delay } else { Duration::from_millis(1) },
                    loss: if link { setup.loss } else { setup.lan_loss },
                    rng: Rng::named(setup.seed, &format!("{from:?} {to:?}")),
                    queue: Default::default(),
                    order: if link { setup.order } else { Order::Kept },
                    carried: 0,
                };
                ways.insert((from, to), way);
            }
        }
        let host = |name: &str| Host::new(address(name), Rng::named(setup.seed, name));
        Self {
            now: Instant::ZERO,
            client: host(CLIENT),
            server: host(SERVER),
            proxies,
            ways,
            arrivals: BTreeMap::new(),
            number: 0,
            client_saw: BTreeMap::new(),
            server_saw: BTreeMap::new(),
            news: Default::default(),
            client_reads: true,
            server_reads: true,
            packets: 0,
        }
    }

    pub fn connect(&mut self, port: u16, config: &TcpConfig) -> ConnectionId {
        let id = self.client.connect(self.now, server_at(port), config).unwrap();
        self.settle();
        id
    }

    pub fn listen(&mut self, port: u16, config: &TcpConfig) {
        self.server.listen(port, config).unwrap();
    }

    /// The link loses this share of the packets from now on.
    pub fn lose(&mut self, share: f64) {
        for pair in [(Place::Near, Place::Far), (Place::Far, Place::Near)] {
            self.ways.get_mut(&pair).unwrap().loss = share;
        }
    }

    /// Runs until `until`, or until `done`.
    pub fn run(&mut self, until: Duration, done: impl Fn(&Self) -> bool) {
        let until = Instant::ZERO + until;
        self.settle();
        for _ in 0..20_000_000_u64 {
            if done(self) {
                return;
            }
            let next = self.next();
            if next > until {
                self.now = until;
                return;
            }
            self.now = next.max(self.now);
            self.step();
        }
        panic!("it goes on and on at {:?}", self.now);
    }

    fn next(&self) -> Instant {
        let mut next = self.arrivals.first_key_value().map_or(Instant::MAX, |((at, _), _)| *at);
        let hosts = [&self.client, &self.server].map(Host::poll_timeout);
        let proxies = self.proxies.iter().flatten().map(Proxy::poll_timeout);
        next = hosts.into_iter().chain(proxies).flatten().fold(next, Instant::min);
        for (&(from, _), way) in &self.ways {
            let waits = !way.queue.is_empty()
                || (self.clocked(from)).is_some_and(|proxy| proxy.may_transmit(Side::Link));
            if waits && way.delay > Duration::from_millis(1) {
                next = next.min(way.line.free_at());
            }
        }
        next
    }

    fn clocked(&self, place: Place) -> Option<&Proxy> {
        match place {
            Place::Near => self.proxies[0].as_ref(),
            Place::Far => self.proxies[1].as_ref(),
            _ => None,
        }
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(entry) = self.arrivals.first_entry().filter(|entry| entry.key().0 <= now) {
            let (from, to, packet) = entry.remove();
            self.arrive(from, to, packet);
            self.settle();
        }
        for host in [&mut self.client, &mut self.server] {
            if host.poll_timeout().is_some_and(|due| due <= now) {
                host.handle_timeout(now);
            }
        }
        for proxy in self.proxies.iter_mut().flatten() {
            if proxy.poll_timeout().is_some_and(|due| due <= now) {
                proxy.handle_timeout(now);
            }
        }
        self.settle();
    }

    fn arrive(&mut self, from: Place, to: Place, mut packet: Packet) {
        self.packets += 1;
        let now = self.now;
        let (index, side) = match (from, to) {
            (_, Place::Client) => {
                let _ = self.client.handle_packet(now, &packet);
                return;
            }
            (_, Place::Server) => {
                let _ = self.server.handle_packet(now, &packet);
                return;
            }
            (Place::Client, _) => (0, Side::Lan),
            (Place::Far, _) => (0, Side::Link),
            (Place::Near, _) => (1, Side::Link),
            (Place::Server, _) => (1, Side::Lan),
        };
        let verdict = self.proxies[index]
            .as_mut()
            .map_or(Verdict::Pass, |proxy| proxy.handle_packet(now, side, &mut packet));
        if verdict == Verdict::Pass {
            let next = match (from, to) {
                (Place::Client, _) => Place::Far,
                (Place::Server, _) => Place::Near,
                (Place::Near, _) => Place::Server,
                (Place::Far, _) => Place::Client,
            };
            self.pass(to, next, packet);
        }
    }

    fn pass(&mut self, from: Place, to: Place, packet: Packet) {
        let way = self.ways.get_mut(&(from, to)).unwrap();
        way.queue.push_back(packet);
    }

    /// Lets everything happen that takes no time.
    pub fn settle(&mut self) {
        let now = self.now;
        loop {
            let mut quiet = true;
            let Self { client, server, client_saw, server_saw, news: [of_client, of_server], .. } = self;
            quiet &= !applications(client, now, client_saw, of_client, self.client_reads);
            quiet &= !applications(server, now, server_saw, of_server, self.server_reads);
            while let Some(packet) = self.client.poll_transmit(now) {
                self.pass(Place::Client, Place::Near, packet);
                quiet = false;
            }
            while let Some(packet) = self.server.poll_transmit(now) {
                self.pass(Place::Server, Place::Far, packet);
                quiet = false;
            }
            for (index, place, host) in [(0, Place::Near, Place::Client), (1, Place::Far, Place::Server)] {
                while let Some(packet) =
                    self.proxies[index].as_mut().and_then(|it| it.poll_transmit(now, Side::Lan))
                {
                    self.pass(place, host, packet);
                    quiet = false;
                }
            }
            quiet &= !self.transmit();
            if quiet {
                return;
            }
        }
    }

    /// Puts on the lines what may leave.
    fn transmit(&mut self) -> bool {
        let (now, mut moved) = (self.now, false);
        let keys: Vec<_> = self.ways.keys().copied().collect();
        for (from, to) in keys {
            loop {
                let is_link = matches!((from, to), (Place::Near, Place::Far) | (Place::Far, Place::Near));
                let way = self.ways.get_mut(&(from, to)).unwrap();
                if is_link && way.line.free_at() > now {
                    break;
                }
                let proxy = match from {
                    Place::Near if is_link => self.proxies[0].as_mut(),
                    Place::Far if is_link => self.proxies[1].as_mut(),
                    _ => None,
                };
                let packet =
                    way.queue.pop_front().or_else(|| proxy.and_then(|it| it.poll_transmit(now, Side::Link)));
                let Some(packet) = packet else { break };
                moved = true;
                way.line.send(now, packet.len() as u64 * 8);
                way.carried += packet.len() as u64;
                let arrives = way.line.free_at() + way.delay + way.order.lateness(&packet, &mut way.rng);
                if way.rng.unit() >= way.loss {
                    self.number += 1;
                    self.arrivals.insert((arrives, self.number), (from, to, packet));
                }
            }
        }
        moved
    }

    /// A connection that has ended keeps nothing.
    pub fn expect_no_connections(&self) {
        for (at, proxy) in self.proxies.iter().enumerate().filter_map(|(at, it)| Some((at, it.as_ref()?))) {
            for side in Side::ALL {
                if let Some((_, it)) = proxy.host(side).connections().next() {
                    let counted = it.statistics();
                    panic!(
                        "proxy {at}, {side:?}: {:?}, finished {}, window {}, flight {}, timer {:?}, {} unread, {} unacknowledged, {:?}, {counted:?}",
                        it.state(),
                        it.has_finished(),
                        it.peer_window(),
                        it.flight_size(),
                        it.poll_timeout(),
                        it.readable(),
                        it.unacknowledged(),
                        it.failure(),
                    );
                }
            }
            assert_eq!(proxy.memory(), 0);
        }
    }

    pub fn saw(&self, id: ConnectionId) -> Seen {
        self.client_saw.get(&id).cloned().unwrap_or_default()
    }

    /// The only connection that the server has seen.
    pub fn server_saw(&self) -> Seen {
        assert!(self.server_saw.len() <= 1, "{} connections", self.server_saw.len());
        self.server_saw.values().next().cloned().unwrap_or_default()
    }
}

/// Takes events in; whether there were any.
fn applications(
    host: &mut Host,
    now: Instant,
    saw: &mut BTreeMap<ConnectionId, Seen>,
    news: &mut BTreeSet<ConnectionId>,
    reads: bool,
) -> bool {
    let mut any = false;
    while let Some((id, event)) = host.poll_event() {
        any = true;
        news.insert(id);
        let seen = saw.entry(id).or_default();
        seen.id = Some(id);
        match event {
            Event::Connected | Event::Accepted { .. } => seen.connected_at = Some(now),
            Event::Closed => seen.closed = true,
            Event::Failed(failure) => seen.failed = Some(failure),
            _ => {}
        }
    }
    if reads {
        for id in core::mem::take(news) {
            let seen = saw.entry(id).or_default();
            let before = seen.read.len();
            let _ = host.read_with(now, id, |part| seen.read.extend_from_slice(part));
            if seen.read.len() > before {
                any = true;
                seen.first_byte_at.get_or_insert(now);
                seen.last_byte_at = Some(now);
            }
            seen.finished |= host.connection(id).is_some_and(|it| it.peer_finished() && it.readable() == 0);
        }
    }
    any
}

/// Byte `at` of a stream.
pub fn byte_at(stream: u64, at: u64) -> u8 {
    ((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0x2545_f491_4f6c_dd1d)) >> 40) as u8
}

pub fn stream(stream: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| byte_at(stream, at)).collect()
}
