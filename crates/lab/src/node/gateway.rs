//! A gateway: a router at which tunnels end, one or the many of a hub.
//!
//! Packets that are routed into a tunnel enter it as they would a TUN device, and what comes out is routed on. The tunnels' datagrams are
//! UDP over IP, sent without leave to fragment them, to the address of the gateway at the other end.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use base::wire::{icmp, ip, udp};
use base::{Instant, Packet};
use link::Marks;
use tunnel::hub::PeerId;
use tunnel::path::{Address, CarrierId, Path};
use tunnel::{Hub, Sent, Transmit, Tunnel};

use super::{Router, named};
use crate::engine::{Context, Input, Node, Port};
use crate::observe::TunnelTrace;

/// The UDP port of gateways.
pub const UDP_PORT: u16 = 51_900;

/// A router with an end of each of its tunnels.
#[derive(Debug)]
pub struct Gateway {
    router: Router,
    /// By the numbers of carriers: the address of each, and the port over which it sends if that is not what routes say.
    carriers: Vec<(IpAddr, Option<Port>)>,
    hub: Hub,
    /// The ports that routes name for what enters the tunnels begin here, one for each.
    first_tunnel: Port,
    /// Their names and the hub's peers, whose numbers count up.
    tunnels: Vec<(String, PeerId)>,
    /// When the tunnels want to be woken.
    due: Option<Instant>,
    counters: Counters,
    /// Of each tunnel, or none.
    traces: Vec<TunnelTrace>,
    /// Its later lives and when they begin, latest first.
    lives: Vec<(Instant, Hub)>,
    /// What its tunnels counted in lives that are over.
    past: BTreeMap<String, u64>,
}

/// What did not pass.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Longer than what may enter the tunnel.
    too_long: u64,
    /// For the gateway itself, and no datagram of a tunnel.
    discarded: u64,
}

impl Gateway {
    /// A router at the addresses of its `carriers`, which may have ports of their own, that hands what it routes to ports from `first_tunnel` on to
    /// `hub`. Its peers are those of `tunnels`, by name and in the order of their numbers, and each has the next port.
    ///
    /// # Panics
    /// Without a carrier.
    #[must_use]
    pub fn new(
        router: Router,
        carriers: Vec<(IpAddr, Option<Port>)>,
        hub: Hub,
        first_tunnel: Port,
        tunnels: Vec<(String, PeerId)>,
    ) -> Self {
        assert!(!carriers.is_empty(), "a gateway has a carrier");
        Self {
            router,
            carriers,
            hub,
            first_tunnel,
            tunnels,
            // Sessions are begun at once.
            due: Some(Instant::ZERO),
            counters: Counters::default(),
            traces: Vec::new(),
            lives: Vec::new(),
            past: BTreeMap::new(),
        }
    }

    /// It starts anew at this time, which is later than all that were said before, with this hub: that has its peers in their order, and
    /// knows of nothing else.
    pub fn restart_at(&mut self, at: Instant, hub: Hub) {
        self.lives.insert(0, (at, hub));
    }

    /// Begins lives whose time has come.
    fn restart(&mut self, now: Instant) {
        while let Some((_, hub)) = self.lives.pop_if(|(at, _)| *at <= now) {
            self.past = self.tunnel_counters();
            self.hub = hub;
        }
    }

    /// What tunnels have counted, of all together.
    fn tunnel_counters(&self) -> BTreeMap<String, u64> {
        let mut counters = self.past.clone();
        let of_tunnels = self.tunnels().flat_map(|(_, tunnel)| tunnel.counters());
        for (name, count) in of_tunnels.chain(self.hub.counters()) {
            *counters.entry(name).or_default() += count;
        }
        counters
    }

    /// Its ends of tunnels, with their names.
    pub fn tunnels(&self) -> impl Iterator<Item = (&str, &Tunnel)> {
        self.tunnels.iter().filter_map(|(name, id)| Some((name.as_str(), self.hub.tunnel(*id)?)))
    }

    /// Keeps what the tunnels find out from now on.
    pub fn watch_tunnels(&mut self) {
        self.traces.resize_with(self.tunnels.len(), TunnelTrace::default);
    }

    /// What the tunnels found out, by their names, if that is watched.
    pub fn traces(&self) -> impl ExactSizeIterator<Item = (&str, &TunnelTrace)> {
        self.tunnels.iter().map(|(name, _)| name.as_str()).zip(&self.traces)
    }

    /// What passed and what did not, by name; what tunnels count, of all together.
    #[must_use]
    pub fn report(&self) -> BTreeMap<String, u64> {
        let Counters { too_long, discarded } = self.counters;
        let own = [("packets-too-long", too_long), ("packets-discarded", discarded)];
        let mut report: BTreeMap<String, u64> =
            self.router.report().into_iter().chain(named("", &own)).collect();
        report.extend(
            self.tunnel_counters().into_iter().map(|(name, count)| (format!("tunnel-{name}"), count)),
        );
        report
    }

    /// Takes a packet that came in at some port, or out of a tunnel.
    fn forward(&mut self, cx: &mut Context<'_>, mut packet: Packet) {
        let Some(port) = self.router.route(&mut packet) else { return };
        let entered =
            port.0.checked_sub(self.first_tunnel.0).and_then(|at| self.tunnels.get(usize::from(at)));
        let Some(tunnel) = entered.and_then(|(_, id)| self.hub.tunnel(*id)) else {
            return cx.send(port, packet);
        };
        let mtu = tunnel.config().mtu;
        if packet.len() > mtu as usize {
            self.counters.too_long += 1;
            // As the kernel does for a TUN device, it tells who sent it.
            let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            if let Some(message) = icmp::too_big(&packet, self.carriers[0].0, mtu) {
                self.forward(cx, Packet::from_slice(&message));
            }
        } else {
            self.hub.handle_packet(cx.now(), packet);
        }
    }

    /// Takes a packet for the gateway itself.
    fn receive(&mut self, now: Instant, mut packet: Packet) {
        // Routers' reports of what was too long too: a gateway's sockets do not heed them (IP_PMTUDISC_PROBE), as anybody may send them.
        if self.take_datagram(now, &mut packet).is_none() {
            self.counters.discarded += 1;
        }
    }

    /// Takes a datagram of a tunnel; `None` if the packet is none.
    fn take_datagram(&mut self, now: Instant, packet: &mut Packet) -> Option<()> {
        let view = ip::View::parse(packet).ok()?;
        let (src, ecn, header_len) = (view.src(), view.ecn(), ip::header_len(&view));
        let datagram =
            udp::View::parse(view.payload()).ok().filter(|_| view.protocol() == ip::Protocol::UDP)?;
        if datagram.dst_port() != UDP_PORT {
            return None;
        }
        let peer = SocketAddr::new(src, datagram.src_port());
        let via = self.carriers.iter().position(|(address, _)| *address == view.dst())?;
        let from = Path { via: CarrierId(via as u8), peer: Address::Udp(peer), local: Some(view.dst()) };
        let start = header_len + udp::HEADER_LEN;
        // What is refused is counted in the tunnel.
        let _ = self.hub.handle_datagram(now, from, ecn, &mut packet[start..]);
        Some(())
    }

    /// Moves all that can move: out of the tunnels to the LAN, and their datagrams to the network below.
    fn pump(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        loop {
            while let Some(delivery) = self.hub.poll_packet(now) {
                debug_assert!(delivery.train.is_none(), "packets in the lab are not cut up");
                self.forward(cx, delivery.packet);
            }
            let Some(transmit) = self.hub.poll_transmit(now, 1, false) else { break };
            let leaving = packet_of(&transmit, &self.router, &self.carriers);
            self.hub.on_sent(now, if leaving.is_some() { Sent::Yes } else { Sent::Refused });
            if let Some((port, packet)) = leaving {
                cx.send(port, packet);
            }
        }
        while let Some((id, event)) = self.hub.poll_event() {
            if let Some(trace) = self.traces.get_mut(id.number() as usize) {
                trace.events.push((now, event));
            }
        }
        // All are sampled at the same time.
        if self.traces.first().is_some_and(|first| first.is_due(now)) {
            for (trace, (_, tunnel)) in self.traces.iter_mut().zip(self.hub.peers()) {
                trace.note(now, tunnel);
            }
        }
        let next_life = self.lives.last().map(|(at, _)| *at);
        self.due = self.hub.poll_timeout(now).into_iter().chain(next_life).min();
    }
}

/// A datagram as a packet, and where it goes; `None` if there is no way.
fn packet_of(
    transmit: &Transmit<'_>,
    router: &Router,
    carriers: &[(IpAddr, Option<Port>)],
) -> Option<(Port, Packet)> {
    let Address::Udp(to) = transmit.to.peer else { return None };
    let &(address, port) = carriers.get(usize::from(transmit.to.via.0))?;
    let port = port.or_else(|| router.port_for(to.ip()))?;
    Some((port, udp_packet(SocketAddr::new(address, UDP_PORT), to, transmit.marks, transmit.bytes)))
}

/// A datagram of UDP over IP.
fn udp_packet(from: SocketAddr, to: SocketAddr, marks: Marks, payload: &[u8]) -> Packet {
    let len = udp::HEADER_LEN + payload.len();
    let header =
        ip::Repr::new(from.ip(), to.ip(), ip::Protocol::UDP, marks.ecn(), len).with_dscp(marks.dscp());
    let header_len = header.header_len();
    let mut packet = Packet::with_capacity(header_len + len);
    packet.resize(header_len + udp::HEADER_LEN);
    packet.extend_from_slice(payload);
    header.emit(&mut packet);
    let ports = udp::Repr { src_port: from.port(), dst_port: to.port() };
    ports.emit(&mut packet[header_len..], from.ip(), to.ip());
    packet
}

impl Node for Gateway {
    fn handle(&mut self, cx: &mut Context<'_>, input: Input) {
        let now = cx.now();
        self.restart(now);
        self.hub.handle_timeout(now);
        if let Input::Arrival(_, packet) = input {
            let own = |view: ip::View<'_>| self.carriers.iter().any(|(address, _)| *address == view.dst());
            let is_own = ip::View::parse(&packet).is_ok_and(own);
            if is_own { self.receive(now, packet) } else { self.forward(cx, packet) }
        }
        self.pump(cx);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}
