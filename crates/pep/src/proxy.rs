//! The proxy: packets in, packets out, and the pairs of connections between.

mod opening;
mod places;
mod relaying;
mod reports;
mod turns;

use core::net::SocketAddr;
use std::collections::VecDeque;

use base::wire::tcp::{self as wire, Flags};
use base::wire::{ip, tcp as segment};
use base::{Instant, Packet, Rng};
use tcp::{Connection, ConnectionId, Event, Host, State, TcpConfig};

use crate::config::{Acknowledgement, Config};
use crate::counters::Counters;
use crate::known::KnownServers;
use crate::rules::{self, Action};

/// Where a packet comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The hosts near by.
    Lan,
    /// The link, and what lies beyond.
    Link,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Lan, Self::Link];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Lan => Self::Link,
            Self::Link => Self::Lan,
        }
    }
}

/// Whether there is a proxy of ours beyond the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Peer {
    /// There is none: SYNs say nothing of proxies.
    #[default]
    Nobody,
    /// There may be one: this one says in its SYNs what it is, and believes nobody else who does.
    Possible,
    /// There is one, as its owner has proved.
    Known,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is none of the proxy's: it goes on as it is.
    Pass,
    /// The proxy has dealt with it.
    Taken,
}

/// A proxy between a LAN and a link.
#[derive(Debug)]
pub struct Proxy {
    config: Config,
    peer: Peer,
    /// By side: the TCP there.
    tcp: [TcpConfig; 2],
    hosts: [Host; 2],
    /// By side and place of a connection: what belongs to it.
    halves: [Vec<Option<Half>>; 2],
    known: KnownServers,
    /// By side: what routers said to one end, for the other.
    reports: [VecDeque<Packet>; 2],
    /// The code point of the SYN that came last: `Host` tells of a caller without it, at once (`on_asked`).
    calling_dscp: u8,
    /// Callers whose twins are to be opened, and when at the latest: those that were answered early, with or without a first word, and
    /// those whose ends have a connection that is not over yet.
    waiting: VecDeque<(Instant, Side, ConnectionId)>,
    /// Bytes that it has sent to the link more than what passes, while both had something to send.
    lead: i64,
    counters: Counters,
}

/// One of the two connections of a pair.
#[derive(Clone, Copy, Debug)]
struct Half {
    id: ConnectionId,
    /// The other one, once there is one.
    twin: Option<ConnectionId>,
    /// Whether its peer is the one who called, or has answered a call.
    is_open: bool,
    /// The code point of what it received last.
    dscp: u8,
    /// It is to be reset once the peer has all that was written.
    ends_in_reset: bool,
}

/// How a host is given a packet.
type Give = fn(&mut Host, Instant, &[u8]) -> Result<(), tcp::host::Discard>;

impl Proxy {
    /// A proxy without connections; `rng` is for initial sequence numbers.
    #[must_use]
    pub fn new(config: Config, rng: &mut Rng) -> Self {
        let mut host = |name: &str| {
            let mut host = Host::standing_in(Rng::named(rng.bits(), name));
            host.limit_memory((config.memory.0 / 2) as usize);
            host
        };
        let hosts = [host("lan"), host("link")];
        let tcp = [config.lan_tcp(), config.link_tcp()];
        let mut proxy = Self {
            config,
            peer: Peer::default(),
            tcp,
            hosts,
            halves: [Vec::new(), Vec::new()],
            known: KnownServers::default(),
            reports: [VecDeque::new(), VecDeque::new()],
            calling_dscp: 0,
            waiting: VecDeque::new(),
            lead: 0,
            counters: Counters::default(),
        };
        proxy.listen();
        proxy
    }

    /// Packets have at most `bytes` on both sides, from the next connection on.
    pub fn set_mtu(&mut self, bytes: u16) {
        for tcp in &mut self.tcp {
            tcp.mtu = Some(bytes);
        }
        self.listen();
    }

    /// Whether there is a proxy of ours beyond the link, from the next connection on, and how long the segments are that the
    /// link carries whole between the two. At first there is nobody.
    pub fn set_peer(&mut self, peer: Peer, longest_segment: u16) {
        self.peer = peer;
        let known = peer == Peer::Known;
        let tcp = if known { self.config.paired_link_tcp() } else { self.config.link_tcp() };
        self.tcp[Side::Link as usize] = tcp.with(|it| {
            it.mtu = self.tcp[Side::Link as usize].mtu;
            it.proxy_mss = (peer != Peer::Nobody).then(|| it.mss.unwrap_or(longest_segment));
        });
        self.listen();
    }

    /// Whether there is a proxy of ours beyond the link.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    fn listen(&mut self) {
        for side in Side::ALL {
            self.hosts[side as usize].listen_everywhere(&self.tcp[side as usize]);
        }
    }

    /// What it counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The TCP of one side, for its connections.
    #[must_use]
    pub const fn host(&self, side: Side) -> &Host {
        &self.hosts[side as usize]
    }

    /// Its connections may take so many bytes of memory from now on, and never more than is configured. Those that have more keep it.
    pub fn limit_memory(&mut self, bytes: usize) {
        let each = bytes.min(self.config.memory.0 as usize) / 2;
        self.hosts.iter_mut().for_each(|host| host.limit_memory(each));
    }

    /// The link has several lines: what opens from now on lets more wait for them.
    pub fn expect_several_lines(&mut self) {
        self.config = self.config.clone().for_several_lines();
    }

    /// Bytes of memory that its connections take.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.hosts[0].memory() + self.hosts[1].memory()
    }

    /// Whether connections end with the peer at the other end of the link, so that nothing is lost if this proxy forgets
    /// them.
    const fn is_end_to_end(&self) -> bool {
        matches!(self.config.ack, Acknowledgement::EndToEnd)
    }

    /// Takes a whole IP packet that came from one side, if it is the proxy's. A packet that passes has lost what it said of being a
    /// proxy's.
    pub fn handle_packet(&mut self, now: Instant, from: Side, packet: &mut [u8]) -> Verdict {
        self.sift(now, from, packet, Host::handle_packet)
    }

    /// Takes a whole IP packet that came from one side, if it is the proxy's, and whose TCP checksum somebody else
    /// has verified, or vouches for. A packet that passes has lost what it said of being a proxy's.
    pub fn handle_verified_packet(&mut self, now: Instant, from: Side, packet: &mut [u8]) -> Verdict {
        self.sift(now, from, packet, Host::handle_verified_packet)
    }

    /// Decides about a packet, and takes from it what it may not say of being a proxy's. Nobody on the LAN is a proxy, and beyond the
    /// link only the one that has been announced: he believes what comes from here, as this one believes him. Nor is the LAN told of
    /// proxies: somebody there may drop what he does not know.
    fn sift(&mut self, now: Instant, from: Side, packet: &mut [u8], give: Give) -> Verdict {
        let is_believed = from == Side::Link && self.peer == Peer::Known;
        if !is_believed {
            hide_proxy(packet);
        }
        let verdict = self.handle(now, from, packet, give);
        if is_believed && verdict == Verdict::Pass {
            hide_proxy(packet);
        }
        verdict
    }

    fn handle(&mut self, now: Instant, from: Side, packet: &[u8], give: Give) -> Verdict {
        let Ok(view) = ip::View::parse(packet) else { return Verdict::Pass };
        match view.protocol() {
            ip::Protocol::TCP => {}
            ip::Protocol::ICMP | ip::Protocol::ICMPV6 => return self.handle_report(now, from, &view, packet),
            _ => return Verdict::Pass,
        }
        if let ip::View::V4(v4) = &view
            && v4.is_fragment()
        {
            return Verdict::Pass;
        }
        let Ok(tcp) = segment::View::parse(view.payload()) else { return Verdict::Pass };
        let remote = SocketAddr::new(view.src(), tcp.src_port());
        let local = SocketAddr::new(view.dst(), tcp.dst_port());
        let flags = tcp.flags();
        let kind = flags.0 & (Flags::SYN | Flags::ACK | Flags::RST).0;
        // A SYN may begin a new connection between the ends of one that is over.
        let found = self.hosts[from as usize].find(local, remote);
        match found.filter(|&id| kind != Flags::SYN.0 || !self.is_over(from, id)) {
            Some(id) => {
                self.note_dscp(from, id, view.dscp(), &tcp);
                self.hand_on_keep_alive(now, from, id, &tcp);
            }
            None if kind == Flags::SYN.0 => {
                if !self.takes_up(from, remote, local, &tcp) {
                    self.make_way(from, (local, remote));
                    return Verdict::Pass;
                }
                self.calling_dscp = view.dscp();
            }
            None => return Verdict::Pass,
        }
        let mut result = give(&mut self.hosts[from as usize], now, packet);
        if matches!(result, Err(tcp::host::Discard::BacklogFull(_)))
            && self.make_place(now, from, remote.ip())
        {
            result = give(&mut self.hosts[from as usize], now, packet);
        }
        let taken = match result {
            Err(tcp::host::Discard::NoConnection(_)) => Verdict::Pass,
            Err(tcp::host::Discard::BacklogFull(_) | tcp::host::Discard::NoMemory(_)) => {
                self.counters.passed_for_want_of_room += 1;
                self.make_way(from, (local, remote));
                Verdict::Pass
            }
            _ => Verdict::Taken,
        };
        self.work(now);
        taken
    }

    /// A new connection between these passes: what is left of one that is over would take its packets.
    fn make_way(&mut self, from: Side, (local, remote): (SocketAddr, SocketAddr)) {
        for (side, ends) in [(from, (local, remote)), (from.other(), (remote, local))] {
            if let Some(id) = self.hosts[side as usize].find(ends.0, ends.1)
                && self.is_over(side, id)
            {
                self.hosts[side as usize].forget(id);
            }
        }
    }

    fn is_over(&self, side: Side, id: ConnectionId) -> bool {
        let state = self.hosts[side as usize].connection(id).map(Connection::state);
        matches!(state, None | Some(State::Closed | State::TimeWait))
    }

    /// Whether the proxy takes up a connection that begins with this SYN.
    fn takes_up(&mut self, from: Side, caller: SocketAddr, called: SocketAddr, syn: &wire::View<'_>) -> bool {
        if rules::decide(&self.config.rule, caller, called) == Action::Pass || syn.options().authenticated {
            self.counters.passed_by_rule += 1;
            return false;
        }
        self.has_place(from, caller.ip())
    }

    /// What comes on one side goes out on the other with the same mark.
    fn note_dscp(&mut self, from: Side, id: ConnectionId, dscp: u8, tcp: &wire::View<'_>) {
        let Some(half) = self.half(from, id) else { return };
        if half.dscp == dscp || tcp.payload().is_empty() {
            return;
        }
        half.dscp = dscp;
        if let Some(twin) = half.twin {
            // Err is a twin that has gone.
            let _ = self.hosts[from.other() as usize].steer(twin, |it| it.set_dscp(dscp));
        }
    }

    /// The proxy at the other end of the link has started afresh, or is taken for dead: it knows of no connection. What was acknowledged end to end
    /// the hosts can go on with by themselves, and who was not answered yet asks again; other connections have lost what it held, and break.
    ///
    /// How many hosts on the LAN had a connection.
    pub fn on_peer_lost(&mut self, now: Instant) -> usize {
        let lan = &self.hosts[Side::Lan as usize];
        let had = lan.live() - lan.connections().filter(|(_, connection)| connection.is_held()).count();
        for side in Side::ALL {
            let host = &mut self.hosts[side as usize];
            let all: Vec<ConnectionId> = host.connections().map(|(id, _)| id).collect();
            for id in all {
                let connection = host.connection(id);
                if self.config.ack == Acknowledgement::EndToEnd || connection.is_some_and(Connection::is_held)
                {
                    host.forget(id);
                } else if connection.is_some_and(|it| it.state() != State::Closed) {
                    // Err is a connection that has gone.
                    let _ = host.abort(now, id);
                }
            }
        }
        self.work(now);
        had
    }

    /// Lets time-outs due by `now` happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        for host in &mut self.hosts {
            host.handle_timeout(now);
        }
        self.open_waiting(now);
        self.work(now);
    }

    /// When [`Proxy::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.waiting.front().map(|&(at, ..)| at);
        let [lan, link] = &self.hosts;
        [waiting, lan.poll_timeout(), link.poll_timeout()].into_iter().flatten().min()
    }

    /// The next packet to send to one side.
    pub fn poll_transmit(&mut self, now: Instant, to: Side) -> Option<Packet> {
        self.poll_transmit_train(now, to, 0).map(|(packet, _)| packet)
    }

    /// The next packet to send to one side. Full segments in a row may come in one packet of up to `most` bytes of
    /// data, as [`Host::poll_transmit_train`] has it; the number with such a packet is the bytes of each segment.
    pub fn poll_transmit_train(
        &mut self,
        now: Instant,
        to: Side,
        most: u32,
    ) -> Option<(Packet, Option<u16>)> {
        if let Some(report) = self.reports[to as usize].pop_front() {
            return Some((report, None));
        }
        let train = self.hosts[to as usize].poll_transmit_train(now, most);
        // Room that this has made is filled.
        self.work(now);
        train
    }

    /// Whether [`Proxy::poll_transmit`] may have something.
    #[must_use]
    pub fn may_transmit(&self, to: Side) -> bool {
        !self.reports[to as usize].is_empty() || self.hosts[to as usize].may_transmit()
    }

    /// Bytes of streams that wait to be sent to a side; [`u32::MAX`] where there is much.
    #[must_use]
    pub fn waiting(&self, to: Side) -> u64 {
        self.hosts[to as usize].waiting_bytes()
    }

    fn half(&mut self, side: Side, id: ConnectionId) -> Option<&mut Half> {
        let half = self.halves[side as usize].get_mut(id.place())?;
        half.as_mut().filter(|half| half.id == id)
    }

    fn twin(&mut self, side: Side, id: ConnectionId) -> Option<ConnectionId> {
        self.half(side, id)?.twin
    }

    fn add(&mut self, side: Side, half: Half) {
        let halves = &mut self.halves[side as usize];
        let place = half.id.place();
        if place >= halves.len() {
            halves.resize(place + 1, None);
        }
        halves[place] = Some(half);
    }

    /// Acts on what has happened to connections, until nothing happens any more.
    fn work(&mut self, now: Instant) {
        loop {
            let next =
                Side::ALL.into_iter().find_map(|side| Some((side, self.hosts[side as usize].poll_event()?)));
            let Some((side, (id, event))) = next else { return };
            match event {
                Event::Asked => self.on_asked(now, side, id),
                Event::Connected => self.on_connected(now, side, id),
                Event::Accepted { .. } => self.on_accepted(now, side, id),
                Event::Readable | Event::PeerFinished => self.relay(now, side, id),
                Event::Writable => self.refill(now, side, id),
                Event::Acknowledged => self.on_acknowledged(now, side, id),
                Event::Closed => {}
                Event::Failed(failure) => self.on_failed(now, side, id, failure),
            }
        }
    }
}

/// Of a SYN.
fn hide_proxy(packet: &mut [u8]) {
    let Ok(view) = ip::View::parse(packet) else { return };
    let Ok(tcp) = segment::View::parse(view.payload()) else { return };
    if view.protocol() == ip::Protocol::TCP && tcp.flags().has(Flags::SYN) {
        let header_len = ip::header_len(&view);
        segment::hide_proxy(&mut packet[header_len..]);
    }
}
