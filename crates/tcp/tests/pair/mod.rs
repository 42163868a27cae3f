//! Two hosts over a path with virtual latency, loss, duplication and reordering.
#![allow(missing_docs, unreachable_pub)]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use base::wire::ip;
use base::{Duration, Instant, Packet, Rate, Rng, Serializer};
use longhaul_tcp::{ConnectionId, Event, Host, TcpConfig};

pub const PORT: u16 = 80;

/// What the path does to a packet.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub latency: Duration,
    /// Extra delay, uniform up to this: packets overtake each other.
    pub jitter: Duration,
    pub loss: f64,
    pub duplication: f64,
    /// Part of the packets that are capable of it that are marked (RFC 3168).
    pub marks: f64,
    /// The server's packets pass this.
    pub bottleneck: Option<Bottleneck>,
}

/// A line with a drop-tail queue.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    pub rate: Rate,
    /// Packets that wait or are being sent.
    pub queue: usize,
}

impl Path {
    pub fn clean(latency_ms: u64) -> Self {
        Self {
            latency: Duration::from_millis(latency_ms),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            marks: 0.0,
            bottleneck: None,
        }
    }

    /// This path with a bottleneck of `kbps` kbit/s from the server to the client, where up to `queue` packets wait
    /// or are being sent.
    pub fn through(self, kbps: u64, queue: usize) -> Self {
        Self { bottleneck: Some(Bottleneck { rate: Rate::from_bps(kbps * 1000), queue }), ..self }
    }
}

/// One end of a transfer: what it is to send and what it got.
#[derive(Debug, Default)]
pub struct End {
    pub id: Option<ConnectionId>,
    pub to_send: u64,
    pub sent: u64,
    pub finish: bool,
    pub finished: bool,
    pub received: u64,
    pub events: Vec<(Instant, Event)>,
    /// Reads nothing while set.
    pub stalled: bool,
    /// Reads no more than this until it is set again.
    pub appetite: Option<usize>,
    pub corrupt: bool,
}

/// Says whether to drop: (sender, packet, its count among the sender's packets).
pub type DropIf = Box<dyn FnMut(usize, &[u8], u64) -> bool>;
/// What becomes of a packet on its way: (sender, packet) to what arrives in its place.
pub type Alter = Box<dyn FnMut(usize, Vec<u8>) -> Vec<Vec<u8>>>;
/// A packet on its way: arrival, order among equals, receiver, bytes.
type Flying = (Instant, u64, usize, Vec<u8>);

pub struct Pair {
    pub now: Instant,
    pub hosts: [Host; 2],
    pub ends: [End; 2],
    pub path: Path,
    pub rng: Rng,
    pub drop_if: DropIf,
    /// Somebody on the path.
    pub alter: Option<Alter>,
    sent: [u64; 2],
    wire: BinaryHeap<Reverse<Flying>>,
    sequence: u64,
    pub transmitted: u64,
    line: Option<Serializer>,
    /// When each packet in the bottleneck's queue will have left it.
    queued: VecDeque<Instant>,
    /// The most that the queue has held, and what it dropped.
    pub longest_queue: usize,
    pub overflowed: u64,
}

/// The byte at a position of the stream that end `from` sends.
pub fn byte_at(from: usize, position: u64) -> u8 {
    (position.wrapping_add(from as u64 * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub fn address(host: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, host as u8 + 1])
}

impl Pair {
    pub fn new(seed: u64, path: Path, server: &TcpConfig) -> Self {
        let mut hosts = [
            Host::new(address(0), Rng::named(seed, "client")),
            Host::new(address(1), Rng::named(seed, "server")),
        ];
        hosts[1].listen(PORT, server).unwrap();
        Self {
            now: Instant::ZERO,
            hosts,
            ends: [End::default(), End::default()],
            path,
            rng: Rng::named(seed, "path"),
            drop_if: Box::new(|_, _, _| false),
            alter: None,
            sent: [0; 2],
            wire: BinaryHeap::new(),
            sequence: 0,
            transmitted: 0,
            line: path.bottleneck.map(|it| Serializer::new(it.rate)),
            queued: VecDeque::new(),
            longest_queue: 0,
            overflowed: 0,
        }
    }

    /// Packets in the bottleneck's queue.
    pub fn queue(&self) -> usize {
        self.queued.iter().filter(|&&left| left > self.now).count()
    }

    /// When a packet of the server's has left the bottleneck; none if there was no room for it.
    fn through_bottleneck(&mut self, len: usize) -> Option<Instant> {
        let (Some(line), Some(bottleneck)) = (&mut self.line, self.path.bottleneck) else {
            return Some(self.now);
        };
        while self.queued.front().is_some_and(|&left| left <= self.now) {
            self.queued.pop_front();
        }
        if self.queued.len() >= bottleneck.queue {
            self.overflowed += 1;
            return None;
        }
        let left = line.send(self.now, len as u64 * 8).end;
        self.queued.push_back(left);
        self.longest_queue = self.longest_queue.max(self.queued.len());
        Some(left)
    }

    pub fn connect(&mut self, config: &TcpConfig) {
        let remote = SocketAddr::new(address(1), PORT);
        self.ends[0].id = Some(self.hosts[0].connect(self.now, remote, config).unwrap());
        self.drain();
    }

    /// Lets the applications act and the packets leave.
    pub fn drain(&mut self) {
        loop {
            let mut acted = false;
            for side in 0..2 {
                while let Some((id, event)) = self.hosts[side].poll_event() {
                    self.ends[side].id = Some(id);
                    self.ends[side].events.push((self.now, event));
                    acted = true;
                }
                acted |= self.act(side);
                while let Some(packet) = self.hosts[side].poll_transmit(self.now) {
                    self.send(side, &packet);
                    acted = true;
                }
            }
            if !acted {
                break;
            }
        }
    }

    fn act(&mut self, side: usize) -> bool {
        let (end, host, now) = (&mut self.ends[side], &mut self.hosts[side], self.now);
        let Some(id) = end.id else { return false };
        if host.connection(id).is_none() {
            return false;
        }
        let mut acted = false;
        if !end.stalled {
            let (received, corrupt) = (&mut end.received, &mut end.corrupt);
            let mut check = |bytes: &[u8]| {
                for &byte in bytes {
                    *corrupt |= byte != byte_at(1 - side, *received);
                    *received += 1;
                }
            };
            let read = match &mut end.appetite {
                None => host.read_with(now, id, check),
                Some(most) => {
                    let mut bytes = vec![0; *most];
                    let read = host.read(now, id, &mut bytes);
                    let count = read.as_ref().map_or(0, |&count| count);
                    check(&bytes[..count]);
                    *most -= count;
                    read
                }
            };
            acted |= read.is_ok_and(|count| count > 0);
        }
        if end.sent < end.to_send {
            let mut position = end.sent;
            let fill = |out: &mut [u8]| {
                for byte in out {
                    *byte = byte_at(side, position);
                    position += 1;
                }
            };
            if let Ok(taken) = host.write_with(now, id, (end.to_send - end.sent) as usize, fill) {
                end.sent += taken as u64;
                acted |= taken > 0;
            }
        }
        if end.finish && !end.finished && end.sent == end.to_send {
            end.finished = true;
            host.finish(now, id).unwrap();
            acted = true;
        }
        acted
    }

    fn send(&mut self, side: usize, packet: &Packet) {
        self.transmitted += 1;
        let count = self.sent[side];
        self.sent[side] += 1;
        if (self.drop_if)(side, packet, count) || self.rng.chance(self.path.loss) {
            return;
        }
        let leaves = if side == 1 { self.through_bottleneck(packet.len()) } else { Some(self.now) };
        let Some(leaves) = leaves else { return };
        let copies = 1 + u64::from(self.rng.chance(self.path.duplication));
        let mut bytes = packet.to_vec();
        self.mark(&mut bytes);
        for _ in 0..copies {
            let jitter = Duration::from_nanos(self.rng.below(self.path.jitter.as_nanos() + 1));
            let at = leaves + self.path.latency + jitter;
            let arriving = match &mut self.alter {
                Some(alter) => alter(side, bytes.clone()),
                None => vec![bytes.clone()],
            };
            for bytes in arriving {
                self.sequence += 1;
                self.wire.push(Reverse((at, self.sequence, 1 - side, bytes)));
            }
        }
    }

    /// A packet that neither host has sent comes to one.
    pub fn inject(&mut self, side: usize, packet: &[u8]) {
        let _ = self.hosts[side].handle_packet(self.now, packet);
        self.drain();
    }

    fn mark(&mut self, packet: &mut [u8]) {
        let capable = ip::View::parse(packet).is_ok_and(|view| view.ecn().is_capable());
        if self.path.marks > 0.0 && capable && self.rng.chance(self.path.marks) {
            ip::set_ecn(packet, ip::Ecn::Ce).expect("an IP packet");
        }
    }

    /// Goes to the next event; false if nothing more will happen.
    pub fn step(&mut self) -> bool {
        let arrival = self.wire.peek().map(|Reverse((at, ..))| *at);
        let timeouts = self.hosts.iter().filter_map(Host::poll_timeout);
        let Some(next) = timeouts.chain(arrival).min() else { return false };
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        while let Some(Reverse((at, ..))) = self.wire.peek()
            && *at <= self.now
        {
            let Some(Reverse((_, _, side, packet))) = self.wire.pop() else { break };
            let _ = self.hosts[side].handle_packet(self.now, &packet);
            self.drain();
        }
        self.drain();
        true
    }

    /// Lets a timer of one host expire before anything else happens: the clock goes to its deadline, and what should have
    /// arrived by then is late.
    pub fn expire(&mut self, side: usize) {
        let Some(deadline) = self.hosts[side].poll_timeout() else { return };
        self.now = self.now.max(deadline);
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        self.drain();
    }

    /// Runs until `done` or the deadline; whether it was done.
    pub fn run_until(&mut self, deadline: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let deadline = Instant::ZERO + deadline;
        while !done(self) {
            if self.now > deadline || !self.step() {
                return done(self);
            }
        }
        true
    }

    pub fn saw(&self, side: usize, event: Event) -> bool {
        self.ends[side].events.iter().any(|&(_, seen)| seen == event)
    }

    pub fn connection(&self, side: usize) -> &longhaul_tcp::Connection {
        self.hosts[side].connection(self.ends[side].id.unwrap()).unwrap()
    }
}
