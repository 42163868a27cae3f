//! Two gateways in virtual time and the lines between them, of which the caller decides what becomes of each datagram. A property test and a
//! fuzz target drive them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use base::wire::icmp;
use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{self, Flags};
use base::{Duration, Instant, Packet, Prefix, Rate, SeqNum};
use link::{Treatments, When};
use longhaul_tunnel::config::{CarrierLimits, Link, Usage, Way};
use longhaul_tunnel::key::{PresharedKey, PrivateKey};
use longhaul_tunnel::path::{Address, CarrierId, Path};
use longhaul_tunnel::random::Random;
use longhaul_tunnel::session::{KEEP_ALIVE, Peer};
use longhaul_tunnel::{Config, Event, Hub, Membership, Sent, Tunnel};

/// Two ends, and what is on the way between them.
#[derive(Debug)]
pub(crate) struct Pair {
    ends: [Hub; 2],
    pub(crate) now: Instant,
    /// Datagrams by when they arrive; those of one time in the order in which they left.
    on_way: BTreeMap<(Instant, u64), Flight>,
    /// Datagrams that have left.
    departed: u64,
    /// Of each way, those from each end.
    lines: Vec<[Line; 2]>,
    /// Where the first end is, over each way.
    places: Vec<u8>,
    /// Packets that have come out of each end, by their numbers.
    delivered: [Vec<u32>; 2],
    /// And when.
    delivered_at: [Vec<Instant>; 2],
    /// Packets from the LAN of each end of which an ICMP message has said that there is no way.
    refused: [u32; 2],
    /// What each end has told.
    events: [Vec<Event>; 2],
    /// Bytes that each has sent, headers included.
    sent: [u64; 2],
    /// And that were sent over each way.
    sent_over: Vec<u64>,
    offered: u32,
    /// Lives so far.
    lives: u64,
    setup: Setup,
}

/// What both ends are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The `[link]` table.
    pub(crate) link: &'static str,
    pub(crate) has_proxy: bool,
    /// Carriers of the first end, if there are several, and what the first two are used for.
    pub(crate) ways: usize,
    pub(crate) when: [When; 2],
    /// Whether the first end is to be told where the second is.
    pub(crate) is_named: bool,
}

/// One of each protocol that gateways use, and each kind of rate.
pub(crate) const SETUPS: [Setup; 9] = [
    Setup::of("", true),
    Setup::of("rate = \"2 Mbit/s\"", true),
    Setup::of("rate = \"500 kbit/s\"\nprotocol = \"cotmll\"", false),
    Setup::of("protocol = \"slacp\"", false),
    Setup::of("rate = \"max\"\nprotocol = \"plain\"", false),
    Setup::of("rate = \"max\"", false),
    Setup::of("", true).over(2),
    Setup::of("rate = \"2 Mbit/s\"", false).over(3),
    Setup::of("protocol = \"cotmll\"", false).over(2),
];

/// What becomes of the datagrams that one end sends.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// One letter for each datagram in turn; the first comes again after the last. None: all pass.
    pub(crate) fates: Vec<u8>,
    /// The longest packet that passes; longer ones are dropped.
    pub(crate) longest: usize,
    /// Whether the sender hears that a packet is too long.
    pub(crate) says: bool,
    pub(crate) delay: Duration,
    /// What lets through so much, and for how long datagrams may wait in front of it.
    pub(crate) bottleneck: Option<(Rate, Duration)>,
    /// When that is free.
    free_at: Instant,
}

#[derive(Debug)]
struct Flight {
    to: usize,
    from: Path,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// Headers of UDP over IPv4.
const HEADERS: usize = 28;
const MTU: usize = 1500;
/// Datagrams that one end may send without time passing. Ours: more than any window, with fillers and parts.
const AT_ONCE: u64 = 100_000;
/// Bytes that wait in front of an end: three queues, of which each holds 4 MiB at most.
const MOST_WAITING: u64 = 3 * (4 << 20);
/// Before the number of a packet.
const IP_HEADER: usize = 20;

impl Line {
    pub(crate) const CLEAR: Self = Self {
        fates: Vec::new(),
        longest: MTU,
        says: false,
        delay: Duration::from_millis(20),
        bottleneck: None,
        free_at: Instant::ZERO,
    };

    /// When a packet of so many bytes, which leaves now, has passed; `None` if it is dropped.
    fn pass(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        if bytes > self.longest {
            return None;
        }
        let Some((rate, holds)) = self.bottleneck else { return Some(now + self.delay) };
        let begins = self.free_at.max(now);
        (begins <= now + holds).then(|| {
            self.free_at = begins + rate.time_for(bytes as u64 * 8);
            self.free_at + self.delay
        })
    }

    /// Whether datagram `number` is lost, arrives twice, has a bit inverted, or is marked for congestion; and how much later it arrives.
    fn fate(&self, number: u64) -> u8 {
        if self.fates.is_empty() { 0 } else { self.fates[(number % self.fates.len() as u64) as usize] }
    }
}

impl Pair {
    pub(crate) fn new(setup: Setup) -> Self {
        let ends = [0, 1].map(|at| setup.end(at, at as u64));
        Self {
            ends,
            now: Instant::ZERO,
            on_way: BTreeMap::new(),
            departed: 0,
            lines: vec![[Line::CLEAR, Line::CLEAR]; setup.ways.max(1)],
            delivered: [Vec::new(), Vec::new()],
            delivered_at: [Vec::new(), Vec::new()],
            places: vec![1; setup.ways.max(1)],
            sent_over: vec![0; setup.ways.max(1)],
            refused: [0; 2],
            events: [Vec::new(), Vec::new()],
            sent: [0; 2],
            offered: 0,
            lives: 2,
            setup,
        }
    }

    pub(crate) fn line(&mut self, at: usize) -> &mut Line {
        &mut self.lines[0][at]
    }

    /// What becomes of datagrams from an end, over all ways.
    pub(crate) fn set_fates(&mut self, at: usize, fates: &[u8]) {
        self.lines.iter_mut().for_each(|lines| lines[at].fates = fates.to_vec());
    }

    /// What becomes of datagrams from an end, over one of several ways.
    pub(crate) fn set_fates_over(&mut self, way: usize, at: usize, fates: &[u8]) {
        self.lines[way][at].fates = fates.to_vec();
    }

    /// The first end begins anew, and does not know where the other is.
    pub(crate) fn begin_without_address(&mut self) {
        let setup = Setup { is_named: true, ..self.setup };
        self.ends[0] = setup.end(0, self.lives);
        self.lives += 1;
    }

    /// It hears where that is.
    pub(crate) fn call(&mut self) {
        let (id, now) = (self.ends[0].peers().next().expect("it has a peer").0, self.now);
        self.ends[0].tunnel_mut(id).expect("it has a tunnel").call_at(now, path(1).peer);
        self.serve(0);
    }

    /// Both directions of one of several ways are so from now on.
    pub(crate) fn set_way(&mut self, way: usize, line: &Line) {
        self.lines[way] = [line.clone(), line.clone()];
    }

    /// The first end is elsewhere from now on, over this way.
    pub(crate) fn move_to(&mut self, way: usize, place: u8) {
        self.places[way] = place;
    }

    /// Bytes that have been sent over a way, headers included.
    pub(crate) fn sent_over(&self, way: usize) -> u64 {
        self.sent_over[way]
    }

    /// When each packet came out at an end.
    pub(crate) fn delivered_at(&self, at: usize) -> &[Instant] {
        &self.delivered_at[at]
    }

    /// Where an end is, as the other sees it over this way. Only the first has several carriers.
    fn place(&self, at: usize, way: usize) -> Path {
        let host = if at == 0 { 10 * way as u8 + self.places[way] } else { 2 };
        let peer = Address::Udp(SocketAddr::from(([192, 0, 2, host], 51_900)));
        Path { via: CarrierId(if at == 0 { 0 } else { way as u8 }), peer, local: None }
    }

    /// The way that a datagram takes from an end to a place, if anybody is there.
    fn way_of(&self, at: usize, to: Path) -> Option<usize> {
        (0..self.lines.len()).find(|way| self.place(1 - at, *way) == to)
    }

    /// The tunnel at an end.
    pub(crate) fn end(&self, at: usize) -> &Tunnel {
        only(&self.ends[at])
    }

    /// The numbers of packets that have come out at an end.
    pub(crate) fn delivered(&self, at: usize) -> &[u32] {
        &self.delivered[at]
    }

    /// Packets from the LAN of an end of which an ICMP message has said that there is no way.
    pub(crate) fn refused(&self, at: usize) -> u32 {
        self.refused[at]
    }

    pub(crate) fn hub(&mut self, at: usize) -> &mut Hub {
        &mut self.ends[at]
    }

    /// Bytes that an end has sent, headers included.
    pub(crate) fn sent(&self, at: usize) -> u64 {
        self.sent[at]
    }

    /// What an end has told.
    pub(crate) fn events(&self, at: usize) -> &[Event] {
        &self.events[at]
    }

    /// A packet of `len` bytes comes from the LAN of an end; its number.
    pub(crate) fn offer(&mut self, at: usize, len: usize, dscp: u8, protocol: Protocol) -> u32 {
        let number = self.offered;
        self.offered += 1;
        let packet = packet(number, len, dscp, protocol);
        self.ends[at].handle_packet(self.now, packet);
        self.serve(at);
        number
    }

    /// A TCP segment with these flags comes from the LAN of an end.
    pub(crate) fn offer_segment(&mut self, at: usize, flags: Flags) {
        let mut packet = packet(0, IP_HEADER + 20, 0, Protocol::TCP);
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 1, 1]].map(IpAddr::from);
        ip::Repr::new(src, dst, Protocol::TCP, Ecn::NotEct, 20).emit(&mut packet);
        let segment = tcp::Repr {
            src_port: 7,
            dst_port: 8,
            seq: SeqNum(1),
            ack: SeqNum(1),
            flags,
            window: 1000,
            urgent: 0,
            options: tcp::Options::default(),
        };
        segment.emit(&mut packet[IP_HEADER..], src, dst);
        self.ends[at].handle_packet(self.now, packet);
        self.serve(at);
    }

    /// One thing that the lines or the hosts do.
    pub(crate) fn step(&mut self, [action, a, b, c]: [u8; 4]) {
        let (at, other) = (usize::from(action >> 7), usize::from(a) | usize::from(b) << 8);
        match action % 8 {
            0 | 1 => {
                let protocol = [OTHER, Protocol::UDP, Protocol::TCP][usize::from(c) % 3];
                for _ in 0..=(c >> 3) {
                    self.offer(at, other % MTU, [0, 46, 18, 8][usize::from(action >> 4 & 3)], protocol);
                }
            }
            2 => self.pass(Duration::from_millis(other as u64 / 16)),
            3 => self.pass(Duration::from_millis(u64::from(a))),
            4 => {
                let way = usize::from(action >> 3 & 7) % self.lines.len();
                self.lines[way][at].fates = [a, b, c].into();
            }
            5 => {
                let way = usize::from(a >> 2) % self.lines.len();
                let line = &mut self.lines[way][at];
                line.longest = if a & 1 == 1 { MTU } else { 576 + usize::from(b) * 3 };
                (line.says, line.delay) = (a & 2 == 2, Duration::from_millis(u64::from(c) * 2));
            }
            6 => self.forge(at, &[a, b, c].repeat(1 + usize::from(b))),
            _ if a < 16 => self.restart(at),
            _ => self.lines.iter_mut().for_each(|lines| lines[at].fates = Vec::new()),
        }
    }

    /// An end receives these bytes, which nobody sent.
    pub(crate) fn forge(&mut self, to: usize, bytes: &[u8]) {
        let from = path(1 - to);
        let _ = self.ends[to].handle_datagram(self.now, from, Ecn::NotEct, &mut bytes.to_vec());
        self.serve(to);
    }

    /// An end loses all that it knows.
    pub(crate) fn restart(&mut self, at: usize) {
        self.ends[at] = self.setup.end(at, self.lives);
        self.lives += 1;
        self.serve(at);
    }

    /// An end ends in order.
    pub(crate) fn close(&mut self, at: usize) {
        self.ends[at].close(self.now);
        self.serve(at);
    }

    /// Lets time pass, and all that is due meanwhile happen.
    pub(crate) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let dues = [0, 1].map(|at| self.ends[at].poll_timeout(self.now));
            let arrival = self.on_way.first_key_value().map(|((at, _), _)| *at);
            let next = dues.into_iter().flatten().chain(arrival).min().filter(|next| *next <= until);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            if arrival.is_some_and(|arrival| arrival <= self.now) {
                let (_, mut flight) = self.on_way.pop_first().expect("one arrives");
                let from = flight.from;
                // What is refused is counted.
                let _ = self.ends[flight.to].handle_datagram(self.now, from, flight.ecn, &mut flight.bytes);
                self.serve(flight.to);
            }
            for at in [0, 1] {
                if dues[at].is_some_and(|due| due <= self.now) {
                    self.serve(at);
                }
            }
        }
        self.now = until;
    }

    /// All that an end can do now, as the drain order has it.
    fn serve(&mut self, at: usize) {
        // What it sends may make something due at once (new keys, where something passes again), and that something else, but no more.
        if !self.drain(at) && !self.drain(at) {
            let is_done = self.drain(at);
            let (now, due) = (self.now, self.ends[at].poll_timeout(self.now));
            assert!(is_done, "{due:?} is due at {now:?} after all was served");
        }
    }

    /// Whether nothing is due any more after that.
    fn drain(&mut self, at: usize) -> bool {
        let now = self.now;
        self.ends[at].handle_timeout(now);
        let mut sent = 0;
        loop {
            while let Some(delivery) = self.ends[at].poll_packet(now) {
                match is_refusal(&delivery.packet) {
                    true => self.refused[at] += 1,
                    false => {
                        let number = number(&delivery.packet);
                        self.delivered[at].extend(number);
                        self.delivered_at[at].extend(number.map(|_| now));
                    }
                }
            }
            let Some(transmit) = self.ends[at].poll_transmit(now, 16, false) else { break };
            let (to, ecn) = (transmit.to, transmit.marks.ecn());
            let datagrams: Vec<_> = transmit.bytes.chunks(transmit.segment).map(<[u8]>::to_vec).collect();
            assert!(datagrams.len() <= 16 && datagrams.len() == transmit.datagrams());
            let Some(way) = self.way_of(at, to) else {
                assert!(self.lines.len() > 1, "nobody is at {to:?}");
                self.ends[at].on_sent(now, Sent::Yes);
                continue;
            };
            let from = self.place(at, way);
            let (end, line) = (&mut self.ends[at], &mut self.lines[way][at]);
            let longest = datagrams[0].len() + HEADERS;
            assert!(longest <= MTU, "a packet of {longest} bytes");
            if longest > line.longest && line.says {
                end.on_sent(now, Sent::TooLong);
            } else {
                end.on_sent(now, Sent::Yes);
                for bytes in datagrams {
                    self.departed += 1;
                    self.sent[at] += (bytes.len() + HEADERS) as u64;
                    self.sent_over[way] += (bytes.len() + HEADERS) as u64;
                    let fate = line.fate(self.departed);
                    if let Some(arrives_at) = line.pass(now, bytes.len() + HEADERS) {
                        let flight = Flight { to: 1 - at, from, ecn, bytes };
                        carry(&mut self.on_way, self.departed, arrives_at, fate, flight);
                    }
                }
            }
            sent += 1;
            assert!(sent < AT_ONCE, "an end sends without end");
        }
        let end = &mut self.ends[at];
        while let Some((_, event)) = end.poll_event() {
            self.events[at].push(event);
        }
        let waiting = only(end).ingress().waiting();
        assert!(waiting <= MOST_WAITING || waiting >= u64::from(u32::MAX), "{waiting} bytes wait");
        end.poll_timeout(now).is_none_or(|due| due > now)
    }

    /// Whether each end hears the other.
    pub(crate) fn is_connected(&self) -> bool {
        self.ends.iter().all(|end| only(end).session().is_heard(self.now))
    }

    /// From now on nothing is lost, and after a while a packet from either end comes out at the other.
    pub(crate) fn recovers(&mut self, within: Duration) {
        self.lines.fill([Line::CLEAR, Line::CLEAR]);
        self.pass(Duration::from_secs(40));
        assert!(self.is_connected(), "they do not hear each other");
        let numbers = [0, 1].map(|at| self.offer(at, 700, 0, OTHER));
        self.pass(within);
        for (at, number) in numbers.into_iter().enumerate() {
            let waiting = self.end(at).ingress().waiting();
            assert!(
                self.delivered[1 - at].contains(&number),
                "packet {number} is lost; {waiting} bytes wait"
            );
        }
    }
}

impl Setup {
    /// Two ends with this `[link]` table, and one way between them.
    pub(crate) const fn of(link: &'static str, has_proxy: bool) -> Self {
        Self { link, has_proxy, ways: 0, when: [When::Always; 2], is_named: false }
    }

    /// So many ways.
    pub(crate) const fn over(self, ways: usize) -> Self {
        Self { ways, ..self }
    }

    /// One end, the first of which calls the other.
    pub(crate) fn end(self, at: usize, life: u64) -> Hub {
        let [own, peer] = [at, 1 - at].map(|at| PrivateKey::from_bytes([at as u8 + 1; 32]));
        let mut seed = life << 32;
        let mut hub = Hub::new(own, None, move || {
            seed += 1;
            Random::seeded(seed)
        });
        let membership = Membership {
            key: peer.public(),
            preshared: PresharedKey::NONE,
            place: Peer { address: (at == 0 && !self.is_named).then_some(path(1).peer), pinned: false },
            allowed: Prefix::EVERYTHING.to_vec(),
            weight: 1,
            config: self.config(at),
        };
        hub.add(membership).expect("it is the first");
        hub
    }

    fn config(self, at: usize) -> Config {
        let link = Link::parse("link.toml", self.link).expect("a link");
        let pep = pep::Config { enabled: self.has_proxy, ..pep::Config::default() };
        let carrier = CarrierLimits::udp(true, MTU);
        let way = |number: usize| {
            let usage = Usage { when: self.when[number % 2], carries: Treatments::ALL };
            Way { rate: link.rate, usage, carrier, address: None }
        };
        // The second finds out what the first has.
        let ways = if at == 0 { (0..self.ways).map(way).collect() } else { Vec::new() };
        Config { link, pep, mtu: MTU as u32, cuts_trains: false, carrier, ways, keep_alive: KEEP_ALIVE }
    }
}

fn only(hub: &Hub) -> &Tunnel {
    hub.peers().next().expect("it has a peer").1
}

/// Neither a datagram that ages nor TCP, which the proxy would take.
pub(crate) const OTHER: Protocol = Protocol(253);

pub(crate) fn path(at: usize) -> Path {
    Address::Udp(SocketAddr::from(([192, 0, 2, 1 + at as u8], 51_900))).into()
}

/// Puts a datagram on its way. Of the bits of its fate, in this order: lost; twice; a bit inverted; marked; the rest: how much later it
/// arrives, 4 ms each.
fn carry(
    on_way: &mut BTreeMap<(Instant, u64), Flight>,
    number: u64,
    arrives_at: Instant,
    fate: u8,
    mut flight: Flight,
) {
    if fate & 1 == 1 {
        return;
    }
    let at = arrives_at + Duration::from_millis(u64::from(fate >> 4) * 4);
    if fate & 4 == 4 {
        let len = flight.bytes.len();
        flight.bytes[number as usize % len] ^= 1 << (number % 8);
    }
    if fate & 8 == 8 && flight.ecn != Ecn::NotEct {
        flight.ecn = Ecn::Ce;
    }
    if fate & 2 == 2 {
        let again = Flight { bytes: flight.bytes.clone(), ..flight };
        on_way.insert((at + Duration::from_millis(1), number), again);
    }
    on_way.insert((at, number), flight);
}

pub(crate) fn packet(number: u32, len: usize, dscp: u8, protocol: Protocol) -> Packet {
    let (src, dst) = ([10, 0, 0, number as u8 % 4].into(), [10, 0, 1, 1].into());
    let len = len.clamp(IP_HEADER + 8, MTU);
    let mut packet = Packet::with_capacity(len);
    packet.resize(len);
    ip::Repr::new(src, dst, protocol, Ecn::Ect0, len - IP_HEADER).with_dscp(dscp).emit(&mut packet);
    for (at, byte) in packet[IP_HEADER..].iter_mut().enumerate() {
        *byte = (number as usize + at) as u8;
    }
    packet[IP_HEADER..IP_HEADER + 4].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Whether a packet is a message to the LAN's host that there is no way.
fn is_refusal(packet: &[u8]) -> bool {
    let view = ip::View::parse(packet).expect("an IP packet");
    let report =
        (view.protocol() == Protocol::ICMP).then(|| icmp::Report::parse(&view).expect("a whole message"));
    report
        .flatten()
        .is_some_and(|report| report.cause == icmp::Cause::Unreachable && report.src == view.dst())
}

/// The number of one of these packets, which must be whole.
fn number(packet: &[u8]) -> Option<u32> {
    let number = u32::from_be_bytes(*packet.get(IP_HEADER..)?.first_chunk()?);
    let view = ip::View::parse(packet).expect("an IP packet");
    assert_eq!(view.payload().len(), packet.len() - IP_HEADER);
    let payload = packet[IP_HEADER..].iter().enumerate().skip(4);
    assert!(
        { payload }.all(|(at, byte)| *byte == (number as usize + at) as u8),
        "packet {number} has changed"
    );
    Some(number)
}
