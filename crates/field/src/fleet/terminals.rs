//! The terminals: gateways without devices, on one thread and one socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, Sender};

use base::wire::ip::{self, Ecn, Protocol};
use base::{Deadlines, Duration, Instant, Packet, Prefix};
use gateway::carrier::UdpCarrier;
use gateway::clock::Clock;
use gateway::readiness::{Interest, wait, wake_exactly};
use tunnel::config::{CarrierLimits, Config, Link};
use tunnel::key::{PresharedKey, PrivateKey, PublicKey};
use tunnel::path::{Address, CarrierId, Path};
use tunnel::session::{KEEP_ALIVE, Peer};
use tunnel::{Hub, Membership};

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Where the hub listens.
    pub(super) hub: SocketAddr,
    /// The address of a terminal.
    pub(super) terminal: fn(u32) -> Ipv4Addr,
    /// The number of the terminal with an address.
    pub(super) number: fn(Ipv4Addr) -> u32,
    /// The address of the host behind a terminal.
    pub(super) host: fn(u32) -> Ipv4Addr,
    /// A host behind the hub.
    pub(super) far: Ipv4Addr,
}

/// What the fleet is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// All send a small packet this often.
    Speak(Duration),
    /// The pauses of so many count from now on.
    Watch(u32),
    /// All others lose what they know.
    Restart,
    /// What has happened is asked for.
    Tell,
    /// They end.
    End,
}

/// What the fleet tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// How many hear the hub, in a session that was begun since the last order to restart.
    pub(super) connected: u32,
    /// Bytes of packets that came out.
    pub(super) bytes: u64,
    /// The longest pause between packets at a terminal that is watched.
    pub(super) longest_pause: Duration,
}

struct Terminal {
    hub: Hub,
    received: Option<Instant>,
    /// When it begins to call.
    calls_at: Option<Instant>,
    speaks_at: Instant,
}

pub(super) struct Fleet {
    places: Places,
    carrier: UdpCarrier,
    clock: Clock,
    keys: Vec<PrivateKey>,
    hub_key: PublicKey,
    link: Link,
    terminals: Vec<Terminal>,
    deadlines: Deadlines,
    /// Between two words of each.
    interval: Option<Duration>,
    told: Told,
    /// Terminals below this number count for pauses.
    steady: u32,
}

const MTU: usize = 1500;

impl Fleet {
    pub(super) fn new(
        places: Places,
        keys: Vec<PrivateKey>,
        hub_key: PublicKey,
        link: Link,
    ) -> io::Result<Self> {
        wake_exactly();
        let carrier = UdpCarrier::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, places.hub.port())))?;
        let mut fleet = Self {
            places,
            carrier,
            clock: Clock::start(),
            keys,
            hub_key,
            link,
            terminals: Vec::new(),
            deadlines: Deadlines::new(),
            interval: None,
            told: Told::default(),
            steady: 0,
        };
        for number in 0..fleet.keys.len() {
            // They share a processor, which makes so many handshakes.
            let calls_at = Instant::ZERO + HANDSHAKE * number as u64;
            let terminal = fleet.terminal(number, calls_at);
            fleet.terminals.push(terminal);
            fleet.deadlines.add(Some(calls_at));
        }
        Ok(fleet)
    }

    fn terminal(&self, number: usize, calls_at: Instant) -> Terminal {
        let mut hub = Hub::new(self.keys[number].clone(), None, gateway::random::system);
        let config = Config {
            link: self.link,
            pep: pep::Config { enabled: false, ..pep::Config::default() },
            mtu: 1400,
            cuts_trains: false,
            carrier: CarrierLimits::udp(true, MTU),
            ways: Vec::new(),
            keep_alive: KEEP_ALIVE,
        };
        let membership = Membership {
            key: self.hub_key,
            preshared: PresharedKey::NONE,
            place: Peer::default(),
            allowed: Prefix::EVERYTHING.to_vec(),
            weight: 1,
            config,
        };
        hub.add(membership).expect("a terminal has one peer");
        Terminal { hub, received: None, calls_at: Some(calls_at), speaks_at: self.clock.now() }
    }

    /// Runs until it is told to end.
    pub(super) fn run(&mut self, orders: &Receiver<Order>, told: &Sender<Told>) -> io::Result<()> {
        loop {
            match orders.try_recv() {
                Ok(Order::End) => return Ok(()),
                Ok(Order::Tell) => {
                    self.told.connected = self.connected();
                    self.count_pauses();
                    if told.send(self.told).is_err() {
                        return Ok(());
                    }
                }
                Ok(Order::Speak(interval)) => self.interval = Some(interval),
                Ok(Order::Watch(steady)) => self.watch(steady),
                Ok(Order::Restart) => self.restart(),
                Err(_) => {}
            }
            let now = self.clock.now();
            self.receive(now)?;
            // Arrivals have their turn, however many timers are late.
            for _ in 0..TURNS {
                match self.deadlines.first() {
                    Some((due, number)) if due <= self.clock.now() => self.serve(number)?,
                    _ => break,
                }
            }
            let now = self.clock.now();
            let next = self.deadlines.first().map_or(MOST_WAIT, |(due, _)| due.saturating_since(now));
            wait([Interest::read(self.carrier.as_fd())], Some(next.min(MOST_WAIT)))?;
        }
    }

    fn connected(&self) -> u32 {
        let now = self.clock.now();
        let is_heard = |it: &&Terminal| it.hub.peers().all(|(_, tunnel)| tunnel.session().is_heard(now));
        self.terminals.iter().filter(is_heard).count() as u32
    }

    fn watch(&mut self, steady: u32) {
        self.told.longest_pause = Duration::ZERO;
        self.steady = steady;
        let now = self.clock.now();
        self.terminals.iter_mut().for_each(|terminal| terminal.received = Some(now));
    }

    /// Pauses that last still count too.
    fn count_pauses(&mut self) {
        let now = self.clock.now();
        let watched = self.terminals.iter().take(self.steady as usize);
        let pauses = watched.filter_map(|terminal| Some(now.saturating_since(terminal.received?)));
        self.told.longest_pause = pauses.fold(self.told.longest_pause, Duration::max);
    }

    fn restart(&mut self) {
        for number in self.steady as usize..self.terminals.len() {
            let now = self.clock.now();
            self.terminals[number] = self.terminal(number, now);
            self.deadlines.set(number as u32, Some(now));
        }
    }

    fn receive(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..BATCHES {
            let Self { carrier, terminals, deadlines, places, .. } = self;
            let is_more = carrier.receive(|peer, local, ecn, datagram| {
                let Some(IpAddr::V4(address)) = local else { return };
                let number = (places.number)(address);
                if let Some(terminal) = terminals.get_mut(number as usize) {
                    let from = Path { via: CarrierId::FIRST, peer: Address::Udp(peer), local };
                    // What is refused is counted there.
                    let _ = terminal.hub.handle_datagram(now, from, ecn, datagram);
                    deadlines.set(number, Some(now));
                }
            })?;
            if !is_more {
                break;
            }
        }
        Ok(())
    }

    /// All that a terminal can do now.
    fn serve(&mut self, number: u32) -> io::Result<()> {
        let (now, places) = (self.clock.now(), &self.places);
        let terminal = &mut self.terminals[number as usize];
        if terminal.calls_at.take_if(|at| *at <= now).is_some() {
            let id = terminal.hub.find(&self.hub_key);
            if let Some(tunnel) = id.and_then(|id| terminal.hub.tunnel_mut(id)) {
                tunnel.call_at(now, Address::Udp(places.hub));
            }
        }
        if let Some(interval) = self.interval
            && terminal.speaks_at <= now
        {
            terminal.speaks_at = now + interval;
            terminal.hub.handle_packet(now, word((places.host)(number), places.far));
        }
        terminal.hub.handle_timeout(now);
        while let Some(delivery) = terminal.hub.poll_packet(now) {
            self.told.bytes += delivery.packet.len() as u64;
            let before = terminal.received.replace(now).unwrap_or(now);
            if number < self.steady {
                self.told.longest_pause = self.told.longest_pause.max(now.saturating_since(before));
            }
        }
        let from = Some(IpAddr::V4((places.terminal)(number)));
        while let Some(transmit) = terminal.hub.poll_transmit(now, self.carrier.batch_limit(), false) {
            let Address::Udp(to) = transmit.to.peer else { break };
            let sent = self.carrier.send(to, from, transmit.marks, transmit.bytes, transmit.segment);
            terminal.hub.on_sent(now, sent);
        }
        if terminal.hub.is_blocked() {
            // The next look is soon enough.
            terminal.hub.on_writable();
        }
        while terminal.hub.poll_event().is_some() {}
        let speaks = self.interval.map(|_| terminal.speaks_at);
        let due = [terminal.hub.poll_timeout(now), speaks, terminal.calls_at].into_iter().flatten().min();
        // What is due at once waits for the others.
        self.deadlines.set(number, due.map(|due| due.max(now + PAUSE)));
        Ok(())
    }
}

/// A small packet, of a protocol that nobody has.
fn word(from: Ipv4Addr, to: Ipv4Addr) -> Packet {
    const LEN: usize = 100;
    let mut packet = Packet::with_capacity(LEN);
    packet.resize(LEN);
    let header = ip::Repr::new(from.into(), to.into(), Protocol(253), Ecn::NotEct, LEN - 20);
    header.emit(&mut packet);
    packet
}

/// Terminals that are served before arrivals are looked at again.
const TURNS: u32 = 256;
/// Batches that are received before timers have their turn.
const BATCHES: usize = 64;
/// Between the first calls of two terminals.
const HANDSHAKE: Duration = Duration::from_millis(2);
/// Before a terminal has its turn again.
const PAUSE: Duration = Duration::from_micros(100);
/// Before orders are looked at again.
const MOST_WAIT: Duration = Duration::from_millis(20);
