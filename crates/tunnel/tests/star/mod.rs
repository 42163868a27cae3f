//! A hub and its terminals in virtual time, with a wire of its own to each.

mod rogue;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base::wire::ip::{self, Ecn, Protocol};
use base::{Deadlines, Duration, Instant, Packet, Prefix, Rate};
use link::Endpoint;
use link::plain::Plain;
use longhaul_tunnel::config::{CarrierLimits, Link};
use longhaul_tunnel::key::{PresharedKey, PrivateKey, PublicKey};
use longhaul_tunnel::path::{Address, Path};
use longhaul_tunnel::random::Random;
use longhaul_tunnel::session::{KEEP_ALIVE, Peer};
use longhaul_tunnel::{Config, Hub, Membership, PeerId, Sent};
use rogue::Rogue;

/// The hub is end 0; terminal `n` is end `n`.
#[derive(Debug)]
pub(crate) struct Star {
    ends: Vec<Hub>,
    deadlines: Deadlines,
    pub(crate) now: Instant,
    /// Datagrams by when they arrive: where to, where from, and what.
    on_way: BTreeMap<(Instant, u64), (usize, Path, Vec<u8>)>,
    departed: u64,
    /// Of the long datagrams every so manieth is lost, if any.
    pub(crate) loses: Option<u64>,
    delay: Duration,
    /// What came out at each end: when, how many bytes, and from which end's network.
    pub(crate) delivered: Vec<Vec<(Instant, usize, usize)>>,
    link: &'static str,
    lives: u64,
}

/// Headers of UDP over IPv4.
const HEADERS: usize = 28;
const MTU: usize = 1500;

pub(crate) fn key(end: usize) -> PrivateKey {
    let mut bytes = [1; 32];
    // The first bits of a private key do not count (RFC 7748, 5).
    bytes[8..16].copy_from_slice(&(end as u64).to_le_bytes());
    PrivateKey::from_bytes(bytes)
}

/// Where an end is on the carrier: each in a network of its own.
pub(crate) fn path(end: usize) -> Path {
    Address::Udp(SocketAddr::from(([100, (end >> 8) as u8, end as u8, 1], 51_900))).into()
}

/// A host behind an end.
pub(crate) fn host(end: usize) -> [u8; 4] {
    [10, (end >> 8) as u8, end as u8, 1]
}

pub(crate) fn network(end: usize) -> Prefix {
    Prefix { address: host(end).into(), len: 24 }
}

pub(crate) fn packet(from: usize, to: usize, len: usize) -> Packet {
    let mut packet = Packet::with_capacity(len);
    packet.resize(len);
    // Neither a datagram that ages nor TCP, which the proxy would take.
    let header = ip::Repr::new(host(from).into(), host(to).into(), Protocol(253), Ecn::NotEct, len - 20);
    header.emit(&mut packet);
    packet
}

impl Star {
    /// A hub with so many terminals, which call it. All run with this `[link]`; the hub sends no more than `share`.
    pub(crate) fn new(terminals: usize, link: &'static str, share: Option<Rate>) -> Self {
        let mut star = Self {
            ends: Vec::new(),
            deadlines: Deadlines::new(),
            now: Instant::ZERO,
            on_way: BTreeMap::new(),
            departed: 0,
            loses: None,
            delay: Duration::from_millis(20),
            delivered: vec![Vec::new(); terminals + 1],
            link,
            lives: 0,
        };
        let hub = star.hub(terminals, share);
        star.add(hub);
        for end in 1..=terminals {
            let terminal = star.terminal(end);
            star.add(terminal);
        }
        star
    }

    fn add(&mut self, end: Hub) {
        self.ends.push(end);
        self.deadlines.add(Some(self.now));
    }

    fn gateway(&mut self, own: PrivateKey, share: Option<Rate>) -> Hub {
        self.lives += 1;
        let mut seed = self.lives << 32;
        Hub::new(own, share, move || {
            seed += 1;
            Random::seeded(seed)
        })
    }

    fn hub(&mut self, terminals: usize, share: Option<Rate>) -> Hub {
        let mut hub = self.gateway(key(0), share);
        for end in 1..=terminals {
            hub.add(self.member(key(end).public(), network(end), 1, None)).unwrap();
        }
        hub
    }

    fn terminal(&mut self, end: usize) -> Hub {
        let mut terminal = self.gateway(key(end), None);
        terminal.add(self.caller()).unwrap();
        terminal
    }

    /// From now on a terminal stays there, takes nothing in and says nothing of it: its end of the link is of another protocol.
    #[allow(dead_code, reason = "only tests of memory do")]
    pub(crate) fn deafen(&mut self, end: usize) {
        let membership = self.caller();
        let plain = Plain::new(link::plain::Config::default(), &membership.config.first_line());
        self.replace(end, membership, Box::new(plain));
    }

    /// From now on a terminal sends the worst that there is, as fast as `link` says.
    pub(crate) fn turn_hostile(&mut self, end: usize, link: &str) {
        let mut membership = self.caller();
        membership.config.link = Link::parse("link.toml", link).expect("a link");
        self.replace(end, membership, Box::new(Rogue::new()));
    }

    /// A terminal restarts, with a link's end of somebody's own.
    fn replace(&mut self, end: usize, membership: Membership, endpoint: Box<dyn Endpoint>) {
        let mut terminal = self.gateway(key(end), None);
        terminal.add_with_endpoint(membership, endpoint).unwrap();
        self.ends[end] = terminal;
        self.deadlines.set(end as u32, Some(self.now));
    }

    /// The hub as its terminals have it.
    fn caller(&self) -> Membership {
        let mut membership = self.member(key(0).public(), network(0), 1, Some(path(0).peer));
        membership.allowed = Prefix::EVERYTHING.to_vec();
        membership
    }

    pub(crate) fn member(
        &self,
        key: PublicKey,
        network: Prefix,
        weight: u32,
        address: Option<Address>,
    ) -> Membership {
        let link = Link::parse("link.toml", self.link).expect("a link");
        let pep = pep::Config { enabled: false, ..pep::Config::default() };
        let carrier = CarrierLimits::udp(true, MTU);
        let config = Config {
            link,
            pep,
            mtu: MTU as u32,
            cuts_trains: false,
            carrier,
            ways: vec![],
            keep_alive: KEEP_ALIVE,
        };
        let place = Peer { address, pinned: false };
        Membership { key, preshared: PresharedKey::NONE, place, allowed: vec![network], weight, config }
    }

    pub(crate) fn end(&mut self, end: usize) -> &mut Hub {
        self.deadlines.set(end as u32, Some(self.now));
        &mut self.ends[end]
    }

    /// The hub's number for a terminal.
    pub(crate) fn peer(&self, end: usize) -> PeerId {
        self.ends[0].find(&key(end).public()).expect("it is a peer")
    }

    /// An end loses all that it knows.
    pub(crate) fn restart(&mut self, end: usize, share: Option<Rate>) {
        let terminals = self.ends.len() - 1;
        self.ends[end] = if end == 0 { self.hub(terminals, share) } else { self.terminal(end) };
        self.deadlines.set(end as u32, Some(self.now));
    }

    /// A host behind `from` sends a packet to one behind `to`.
    pub(crate) fn send(&mut self, from: usize, to: usize, len: usize) {
        self.offer(from, packet(from, to, len));
    }

    /// A packet comes from the LAN of an end.
    pub(crate) fn offer(&mut self, end: usize, packet: Packet) {
        self.ends[end].handle_packet(self.now, packet);
        self.serve(end);
    }

    /// Somebody has a datagram arrive at an end, as if it came from `from`.
    pub(crate) fn inject(&mut self, to: usize, from: Path, bytes: &[u8]) {
        let _ = self.ends[to].handle_datagram(self.now, from, Ecn::NotEct, &mut bytes.to_vec());
        self.serve(to);
    }

    /// The hub, which is not there any more.
    pub(crate) fn take_hub(self) -> Hub {
        self.ends.into_iter().next().expect("it comes first")
    }

    /// What is on its way to an end now.
    pub(crate) fn seen(&self, to: usize) -> Vec<Vec<u8>> {
        self.on_way.values().filter(|(end, ..)| *end == to).map(|(.., bytes)| bytes.clone()).collect()
    }

    pub(crate) fn is_connected(&self, end: usize) -> bool {
        let hub = &self.ends[0];
        let there = hub.tunnel(self.peer(end)).is_some_and(|tunnel| tunnel.session().is_heard(self.now));
        there && self.ends[end].peers().all(|(_, tunnel)| tunnel.session().is_heard(self.now))
    }

    /// Lets time pass, and all that is due meanwhile happen.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.on_way.first_key_value().map(|((at, _), _)| *at);
            let due = self.deadlines.first();
            let next = [arrival, due.map(|(at, _)| at)].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if arrival.is_some_and(|arrival| arrival <= self.now) {
                let (_, (to, from, mut bytes)) = self.on_way.pop_first().expect("one arrives");
                // What is refused is counted.
                let _ = self.ends[to].handle_datagram(self.now, from, Ecn::NotEct, &mut bytes);
                self.serve(to);
            } else if let Some((_, end)) = due {
                self.serve(end as usize);
            }
        }
        self.now = until;
    }

    /// All that an end can do now, as the drain order has it.
    fn serve(&mut self, at: usize) {
        let (now, end) = (self.now, &mut self.ends[at]);
        end.handle_timeout(now);
        loop {
            while let Some(delivery) = end.poll_packet(now) {
                let view = ip::View::parse(&delivery.packet).expect("an IP packet");
                let core::net::IpAddr::V4(src) = view.src() else { panic!("IPv4") };
                let [_, high, low, _] = src.octets();
                let from = usize::from(high) << 8 | usize::from(low);
                self.delivered[at].push((now, delivery.packet.len(), from));
            }
            let Some(transmit) = end.poll_transmit(now, 16, false) else { break };
            let Address::Udp(to) = transmit.to.peer else { panic!("UDP") };
            let core::net::IpAddr::V4(to) = to.ip() else { panic!("IPv4") };
            let [_, high, low, _] = to.octets();
            let to = usize::from(high) << 8 | usize::from(low);
            for bytes in transmit.bytes.chunks(transmit.segment) {
                assert!(bytes.len() + HEADERS <= MTU);
                self.departed += 1;
                let is_lost =
                    self.loses.is_some_and(|each| bytes.len() > 200 && self.departed.is_multiple_of(each));
                // Beyond the ends there is nobody.
                if is_lost || to >= self.delivered.len() {
                    continue;
                }
                self.on_way.insert((now + self.delay, self.departed), (to, path(at), bytes.to_vec()));
            }
            end.on_sent(now, Sent::Yes);
        }
        while end.poll_event().is_some() {}
        // What an end sends may make something due at once.
        let due = end.poll_timeout(now).map(|due| due.max(now + Duration::from_nanos(1)));
        self.deadlines.set(at as u32, due);
    }

    /// Bytes that came out at an end since `from`.
    pub(crate) fn received(&self, end: usize, from: Instant) -> usize {
        self.delivered[end].iter().filter(|(at, ..)| *at >= from).map(|(_, len, _)| len).sum()
    }

    /// The longest pause between two packets that came out at an end since `from`.
    pub(crate) fn longest_pause(&self, end: usize, from: Instant) -> Duration {
        let times = self.delivered[end].iter().map(|(at, ..)| *at).filter(|at| *at >= from);
        let times: Vec<_> = times.chain([self.now]).collect();
        times.windows(2).map(|pair| pair[1].saturating_since(pair[0])).max().unwrap_or(Duration::MAX)
    }
}
