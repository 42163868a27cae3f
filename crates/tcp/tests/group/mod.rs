//! Several connections of one host, and peers whose every segment is written out. Segments have 1000 bytes, positions
//! count from the SYN, which is 0, and times are milliseconds.
#![allow(missing_docs, unreachable_pub)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{self, Flags, Options};
use base::{Duration, Instant, Packet, Rng, SeqNum};
use longhaul_tcp::ensemble::EcbState;
use longhaul_tcp::{Connection, ConnectionId, Event, Host, InitialWindow, Sharing, TcpConfig};

pub const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
pub const PORT: u16 = 80;
pub const MSS: u64 = 1000;
const ISS: SeqNum = SeqNum(7000);
const IRS: SeqNum = SeqNum(9000);
/// A window that never limits: 2^16 - 1 segments' worth with the scale below.
const PEER_WINDOW: u16 = u16::MAX;
const PEER_SHIFT: u8 = 10;

/// STCP as the paper has it: no idle release, no decay. No delayed surprises from timestamps or Nagle.
pub fn literal() -> TcpConfig {
    sharing(Sharing::Stcp).with(|it| (it.sharing.idle_release, it.sharing.decay) = (false, false))
}

pub fn sharing(sharing: Sharing) -> TcpConfig {
    TcpConfig::default().with(|it| {
        it.mss = Some(MSS as u16);
        it.timestamps = false;
        it.nagle = false;
        it.initial_sequence = Some(ISS);
        it.sharing.policy = sharing;
    })
}

/// The paper's rules, and members that start with this many segments each.
pub fn literal_from(segments: u32) -> TcpConfig {
    literal().with(|it| it.window.initial = InitialWindow::Segments(segments))
}

/// Two members with 20 segments each in congestion avoidance, all in flight; the aggregate is 40.
pub fn pair_of_twenties(config: &TcpConfig) -> (Group, usize, usize) {
    let mut group = Group::new(&config.clone().with(|it| it.window.initial = InitialWindow::Segments(40)));
    let one = group.connect();
    group.write(one, 400);
    let two = group.open();
    group.ack(one);
    group.after(100);
    group.establish(two);
    group.write(two, 400);
    group.ack_all(one);
    (group, one, two)
}

#[track_caller]
pub fn assert_balanced(group: &Group) {
    let ecb = group.ecb();
    assert_eq!(ecb.used_cwnd, ecb.n_cwnd, "equation 1: {ecb:?}");
}

/// One connection as the peer sees it.
struct Peer {
    id: Option<ConnectionId>,
    address: IpAddr,
    port: u16,
    local_port: u16,
    /// The next position expected of the host, in order.
    highest: u64,
    /// Segments of data since the last question: position and length.
    sent: Vec<(u64, usize)>,
    acked: u64,
    syns: u32,
    fin_at: Option<u64>,
}

pub struct Group {
    pub host: Host,
    pub now: Instant,
    config: TcpConfig,
    peers: Vec<Peer>,
}

impl Group {
    pub fn new(config: &TcpConfig) -> Self {
        let mut host = Host::new(HOST, Rng::named(1, "group"));
        host.listen(PORT, config).unwrap();
        Self { host, now: Instant::ZERO, config: config.clone(), peers: Vec::new() }
    }

    /// The host opens a connection to the usual peer; its SYN is out.
    pub fn open(&mut self) -> usize {
        self.open_to(PEER)
    }

    pub fn open_to(&mut self, address: IpAddr) -> usize {
        let port = 5000 + self.peers.len() as u16;
        let config = self.config.clone();
        let id = self.host.connect(self.now, SocketAddr::new(address, port), &config).unwrap();
        let local_port = self.host.connection(id).unwrap().local().port();
        self.add(address, port, local_port, Some(id))
    }

    /// A peer opens one; its SYN has come.
    pub fn receive_syn(&mut self) -> usize {
        self.receive_syn_from(PEER)
    }

    pub fn receive_syn_from(&mut self, address: IpAddr) -> usize {
        let port = 5000 + self.peers.len() as u16;
        let at = self.add(address, port, PORT, None);
        self.inject(at, Flags::SYN, 0, 0);
        at
    }

    /// Somebody acknowledges `ack` without knowing better.
    pub fn guess(&mut self, at: usize, ack: u64) {
        self.inject(at, Flags::ACK, 1, ack);
    }

    fn add(&mut self, address: IpAddr, port: u16, local_port: u16, id: Option<ConnectionId>) -> usize {
        let (sent, highest, acked) = (Vec::new(), 1, 1);
        self.peers.push(Peer { id, address, port, local_port, highest, sent, acked, syns: 0, fin_at: None });
        self.drain();
        self.peers.len() - 1
    }

    /// The peer answers: the handshake is over.
    pub fn establish(&mut self, at: usize) {
        if self.peers[at].id.is_some() {
            self.inject(at, Flags::SYN | Flags::ACK, 0, 1);
        }
        // The first window that is scaled; a later change of the window would be no duplicate.
        self.inject(at, Flags::ACK, 1, 1);
        assert!(self.peers[at].id.is_some(), "an accepted connection is known");
    }

    /// An established connection: its SYN left now, the answer comes 100 ms later.
    pub fn connect(&mut self) -> usize {
        let at = self.open();
        self.after(100);
        self.establish(at);
        at
    }

    /// Writes this many segments.
    pub fn write(&mut self, at: usize, segments: usize) {
        let bytes = vec![0x5a; segments * MSS as usize];
        let id = self.peers[at].id.unwrap();
        assert_eq!(self.host.write(self.now, id, &bytes).unwrap(), bytes.len());
        self.drain();
    }

    /// How many segments of data left since the last question.
    pub fn sent(&mut self, at: usize) -> usize {
        std::mem::take(&mut self.peers[at].sent).len()
    }

    /// Bytes that the peer was sent and has not acknowledged.
    pub fn outstanding(&self, at: usize) -> u64 {
        self.peers[at].highest - self.peers[at].acked
    }

    /// The peer acknowledges one more segment.
    pub fn ack(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.acked = (peer.acked + MSS).min(peer.highest);
        let acked = peer.acked;
        self.inject(at, Flags::ACK, 1, acked);
    }

    /// The peer acknowledges all that it was sent, segment by segment; how many acknowledgements that took. What is sent
    /// in answer waits for the next call.
    pub fn ack_all(&mut self, at: usize) -> usize {
        let (end, mut count) = (self.peers[at].highest, 0);
        while self.peers[at].acked < end {
            self.ack(at);
            count += 1;
        }
        count
    }

    /// A round trip: 100 ms later everything outstanding is acknowledged, connection by connection.
    pub fn round(&mut self, members: &[usize]) {
        self.after(100);
        let ends: Vec<u64> = members.iter().map(|&at| self.peers[at].highest).collect();
        for (&at, end) in members.iter().zip(ends) {
            while self.peers[at].acked < end {
                self.ack(at);
            }
        }
    }

    /// Duplicate acknowledgements.
    pub fn duplicates(&mut self, at: usize, count: usize) {
        for _ in 0..count {
            let acked = self.peers[at].acked;
            self.inject(at, Flags::ACK, 1, acked);
        }
    }

    /// The host finishes the connection, the peer acknowledges all of it and finishes too.
    pub fn close(&mut self, at: usize) {
        let id = self.peers[at].id.unwrap();
        self.host.finish(self.now, id).unwrap();
        self.drain();
        while self.peers[at].fin_at.is_none() {
            self.round(&[at]);
        }
        self.after(100);
        let end = self.peers[at].fin_at.unwrap() + 1;
        self.inject(at, Flags::ACK, 1, end);
    }

    pub fn abort(&mut self, at: usize) {
        self.host.abort(self.now, self.peers[at].id.unwrap()).unwrap();
        self.drain();
    }

    /// Time passes, with the time-outs that are due.
    pub fn after(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while let Some(due) = self.host.poll_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.host.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    pub fn connection(&self, at: usize) -> &Connection {
        self.host.connection(self.peers[at].id.unwrap()).unwrap()
    }

    /// The connection's window in bytes.
    pub fn cwnd(&self, at: usize) -> u64 {
        self.connection(at).cwnd()
    }

    pub fn ecb(&self) -> EcbState {
        self.host.ensemble().ecb(PEER).expect("an ECB")
    }

    fn inject(&mut self, at: usize, flags: Flags, seq: u32, ack: u64) {
        let peer = &self.peers[at];
        let syn = flags.has(Flags::SYN);
        let repr = tcp::Repr {
            src_port: peer.port,
            dst_port: peer.local_port,
            seq: IRS + seq,
            ack: if flags.has(Flags::ACK) { ISS + ack as u32 } else { SeqNum(0) },
            flags,
            window: PEER_WINDOW,
            urgent: 0,
            options: Options {
                mss: syn.then_some(MSS as u16),
                window_scale: syn.then_some(PEER_SHIFT),
                ..Options::default()
            },
        };
        let header = ip::Repr::new(peer.address, HOST, Protocol::TCP, Ecn::NotEct, repr.header_len());
        let mut packet = Packet::default();
        packet.resize(header.header_len() + repr.header_len());
        header.emit(&mut packet);
        repr.emit(&mut packet[header.header_len()..], peer.address, HOST);
        let _ = self.host.handle_packet(self.now, &packet);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((id, event)) = self.host.poll_event() {
            if matches!(event, Event::Accepted { .. }) {
                let remote = self.host.connection(id).unwrap().remote();
                let peer = self.peers.iter_mut().find(|peer| peer.port == remote.port()).unwrap();
                peer.id = Some(id);
            }
        }
        while let Some(packet) = self.host.poll_transmit(self.now) {
            let view = ip::View::parse(&packet).expect("an IP packet");
            let segment = tcp::View::parse(view.payload()).expect("a TCP segment");
            let repr = tcp::Repr::parse(&segment, view.src(), view.dst()).expect("a valid checksum");
            let len = segment.payload().len();
            let peer = self.peers.iter_mut().find(|peer| peer.port == repr.dst_port).expect("a known peer");
            peer.syns += u32::from(repr.flags.has(Flags::SYN));
            let position = repr.seq.distance(ISS) as u64;
            if len > 0 {
                peer.sent.push((position, len));
                peer.highest = peer.highest.max(position + len as u64);
            }
            if repr.flags.has(Flags::FIN) {
                peer.fin_at = Some(position + len as u64);
            }
        }
    }
}
