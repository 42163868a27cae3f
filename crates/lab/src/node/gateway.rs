//! A gateway: a router at which a tunnel ends.
//!
//! Packets that are routed into the tunnel enter it as they would a TUN device, and what comes out is routed on. The tunnel's datagrams are
//! UDP over IP, sent without leave to fragment them, to the address of the gateway at the other end.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use base::wire::{icmp, ip, udp};
use base::{Instant, Packet};
use link::Marks;
use tunnel::path::{Address, Path};
use tunnel::{Hub, Sent, Transmit, Tunnel};

use super::{Router, named};
use crate::engine::{Context, Input, Node, Port};
use crate::observe::TunnelTrace;

/// The UDP port of gateways.
pub const UDP_PORT: u16 = 51_900;

/// A router with one end of a tunnel.
#[derive(Debug)]
pub struct Gateway {
    router: Router,
    address: IpAddr,
    hub: Hub,
    /// The port that routes name for what enters the tunnel.
    into_tunnel: Port,
    /// The longest packet that the path carries, as far as routers said.
    path_mtu: usize,
    /// When the tunnel wants to be woken.
    due: Option<Instant>,
    counters: Counters,
    trace: Option<Box<TunnelTrace>>,
}

/// What did not pass.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Longer than what may enter the tunnel.
    too_long: u64,
    /// For the gateway itself, and neither a datagram of its tunnel nor a report that concerns it.
    discarded: u64,
    /// Datagrams that were longer than the path carries.
    refused: u64,
}

impl Gateway {
    /// A router at `address` that hands what it routes to port `into_tunnel` to `hub`, which has one peer.
    #[must_use]
    pub fn new(router: Router, address: IpAddr, hub: Hub, into_tunnel: Port) -> Self {
        Self {
            router,
            address,
            hub,
            into_tunnel,
            path_mtu: usize::MAX,
            // A session is begun at once.
            due: Some(Instant::ZERO),
            counters: Counters::default(),
            trace: None,
        }
    }

    /// The tunnel's end.
    #[must_use]
    pub fn tunnel(&self) -> &Tunnel {
        self.hub.peers().next().expect("a gateway of the lab has a peer").1
    }

    /// Keeps what the tunnel finds out from now on.
    pub fn watch_tunnel(&mut self) {
        self.trace.get_or_insert_default();
    }

    /// What the tunnel found out, if that is watched.
    #[must_use]
    pub fn trace(&self) -> Option<&TunnelTrace> {
        self.trace.as_deref()
    }

    /// What passed and what did not, by name.
    #[must_use]
    pub fn report(&self) -> BTreeMap<String, u64> {
        let Counters { too_long, discarded, refused } = self.counters;
        let own = [
            ("packets-too-long", too_long),
            ("packets-discarded", discarded),
            ("datagrams-longer-than-path", refused),
        ];
        let counters = self.tunnel().counters().into_iter().chain(self.hub.counters());
        let tunnel = counters.map(|(name, count)| (format!("tunnel-{name}"), count));
        self.router.report().into_iter().chain(named("", &own)).chain(tunnel).collect()
    }

    /// Takes a packet that came in at some port, or out of the tunnel.
    fn forward(&mut self, cx: &mut Context<'_>, mut packet: Packet) {
        let Some(port) = self.router.route(&mut packet) else { return };
        if port != self.into_tunnel {
            cx.send(port, packet);
        } else if packet.len() > self.tunnel().config().mtu as usize {
            self.counters.too_long += 1;
        } else {
            self.hub.handle_packet(cx.now(), packet);
        }
    }

    /// Takes a packet for the gateway itself.
    fn receive(&mut self, now: Instant, mut packet: Packet) {
        if self.take_datagram(now, &mut packet).is_none() && self.take_report(&packet).is_none() {
            self.counters.discarded += 1;
        }
    }

    /// Takes a datagram of the tunnel; `None` if the packet is none.
    fn take_datagram(&mut self, now: Instant, packet: &mut Packet) -> Option<()> {
        let view = ip::View::parse(packet).ok()?;
        let (src, ecn, header_len) = (view.src(), view.ecn(), ip::header_len(&view));
        let datagram =
            udp::View::parse(view.payload()).ok().filter(|_| view.protocol() == ip::Protocol::UDP)?;
        if datagram.dst_port() != UDP_PORT {
            return None;
        }
        let peer = SocketAddr::new(src, datagram.src_port());
        let from = Path { peer: Address::Udp(peer), local: Some(self.address) };
        let start = header_len + udp::HEADER_LEN;
        // What is refused is counted in the tunnel.
        let _ = self.hub.handle_datagram(now, from, ecn, &mut packet[start..]);
        Some(())
    }

    /// Takes a router's report that a datagram was too long; `None` if the packet is none.
    fn take_report(&mut self, packet: &Packet) -> Option<()> {
        let view = ip::View::parse(packet).ok()?;
        let report = icmp::Report::parse(&view).ok()??;
        let icmp::Cause::TooBig(mtu) = report.cause else { return None };
        // One that does not say is taken to mean what every path carries.
        let mtu = if mtu == 0 { 576 } else { mtu as usize };
        self.path_mtu = self.path_mtu.min(mtu);
        Some(())
    }

    /// Moves all that can move: out of the tunnel to the LAN, and its datagrams to the network below.
    fn pump(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        loop {
            while let Some(delivery) = self.hub.poll_packet(now) {
                debug_assert!(delivery.train.is_none(), "packets in the lab are not cut up");
                self.forward(cx, delivery.packet);
            }
            let Some(transmit) = self.hub.poll_transmit(now, 1, false) else { break };
            let (sent, packet) = packet_of(&transmit, &self.router, self.address, self.path_mtu);
            self.counters.refused += u64::from(sent == Sent::TooLong);
            self.hub.on_sent(now, sent);
            if let Some((port, packet)) = packet {
                cx.send(port, packet);
            }
        }
        if let Some(trace) = &mut self.trace {
            while let Some((_, event)) = self.hub.poll_event() {
                trace.events.push((now, event));
            }
            let Some((_, tunnel)) = self.hub.peers().next() else { return };
            trace.note(now, tunnel);
        } else {
            while self.hub.poll_event().is_some() {}
        }
        self.due = self.hub.poll_timeout(now);
    }
}

/// What becomes of a datagram: the packet and where it goes, if it leaves.
fn packet_of(
    transmit: &Transmit<'_>,
    router: &Router,
    address: IpAddr,
    path_mtu: usize,
) -> (Sent, Option<(Port, Packet)>) {
    let Address::Udp(to) = transmit.to.peer else { return (Sent::Refused, None) };
    let Some(port) = router.port_for(to.ip()) else { return (Sent::Refused, None) };
    let packet = udp_packet(SocketAddr::new(address, UDP_PORT), to, transmit.marks, transmit.bytes);
    if packet.len() > path_mtu {
        return (Sent::TooLong, None);
    }
    (Sent::Yes, Some((port, packet)))
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
        self.hub.handle_timeout(now);
        if let Input::Arrival(_, packet) = input {
            let is_own = ip::View::parse(&packet).is_ok_and(|view| view.dst() == self.address);
            if is_own { self.receive(now, packet) } else { self.forward(cx, packet) }
        }
        self.pump(cx);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}
