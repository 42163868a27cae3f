//! Timed segment scripts: a host on one side, and on the other a peer whose every segment is written out.
//!
//! Sequence numbers count from each side's SYN, which is 0. Times are milliseconds from the start of the script.
// Segments are passed by value: scripts read better so.
#![allow(missing_docs, unreachable_pub, clippy::needless_pass_by_value)]

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{self, Flags, Options, SackBlock, SackBlocks, Timestamps};
use base::{Duration, Instant, Packet, Rng, SeqNum};
use longhaul_tcp::host::Discard;
use longhaul_tcp::{Connection, ConnectionId, Event, Host, InitialWindow, TcpConfig};

pub const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub const PEER_PORT: u16 = 5000;
pub const PORT: u16 = 80;
/// The host's initial sequence number: everything wraps early.
pub const ISS: SeqNum = SeqNum(u32::MAX - 1500);
/// The peer's.
pub const IRS: SeqNum = SeqNum(u32::MAX - 700);

pub const ACK: Flags = Flags::ACK;
pub const SYN: Flags = Flags::SYN;
pub const FIN: Flags = Flags::FIN;
pub const RST: Flags = Flags::RST;

/// A segment of the peer's, or what is expected of the host's; `None` is "whatever".
#[derive(Clone, Debug, Default)]
pub struct Seg {
    pub flags: Flags,
    pub seq: i64,
    pub ack: Option<i64>,
    pub len: usize,
    pub window: Option<u16>,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Option<Vec<(u32, u32)>>,
    pub ecn: Option<Ecn>,
}

impl Seg {
    pub fn window(mut self, window: u16) -> Self {
        self.window = Some(window);
        self
    }
    pub fn sack(mut self, blocks: &[(u32, u32)]) -> Self {
        self.sack = Some(blocks.to_vec());
        self
    }
    pub fn ts(mut self, value: u32, echo: u32) -> Self {
        self.timestamps = Some((value, echo));
        self
    }
    pub fn ecn(mut self, codepoint: Ecn) -> Self {
        self.ecn = Some(codepoint);
        self
    }
    pub fn mss(mut self, mss: u16) -> Self {
        self.mss = Some(mss);
        self
    }
    pub fn scale(mut self, shift: u8) -> Self {
        self.scale = Some(shift);
        self
    }
    pub fn sack_permitted(mut self) -> Self {
        self.sack_permitted = true;
        self
    }
    pub fn and(mut self, flags: Flags) -> Self {
        self.flags = self.flags | flags;
        self
    }
    pub fn ack(mut self, ack: i64) -> Self {
        self.ack = Some(ack);
        self.flags = self.flags | ACK;
        self
    }
}

pub fn syn() -> Seg {
    Seg { flags: SYN, mss: Some(1000), window: Some(60_000), ..Seg::default() }
}
pub fn syn_ack() -> Seg {
    syn().ack(1)
}
/// A bare acknowledgement whose own sequence number is `seq`.
pub fn ack(seq: i64, ack: i64) -> Seg {
    Seg { flags: ACK, seq, ack: Some(ack), ..Seg::default() }
}
/// `len` bytes from `seq` on.
pub fn data(seq: i64, len: usize) -> Seg {
    Seg { flags: ACK, seq, len, ..Seg::default() }
}
pub fn fin(seq: i64) -> Seg {
    Seg { flags: FIN | ACK, seq, ..Seg::default() }
}
pub fn rst(seq: i64) -> Seg {
    Seg { flags: RST, seq, ..Seg::default() }
}

pub fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Settings that make scripts readable: segments of 1000 bytes, no timestamps, no Nagle.
pub fn plain() -> TcpConfig {
    TcpConfig {
        mss: Some(1000),
        timestamps: false,
        nagle: false,
        initial_sequence: Some(ISS),
        ..TcpConfig::default()
    }
}

/// The byte at a position of either stream; the SYN is 0.
pub fn byte_at(position: i64) -> u8 {
    (position.wrapping_mul(37) >> 3) as u8
}

pub struct Script {
    pub host: Host,
    pub now: Instant,
    pub id: Option<ConnectionId>,
    port: u16,
    pub peer_port: u16,
    /// The host's initial sequence number, where it is not the usual one.
    pub iss: SeqNum,
    /// What the peer acknowledges, and its window, where a script leaves them out.
    pub acked: i64,
    pub peer_window: u16,
    out: VecDeque<(Instant, tcp::Repr, Vec<u8>, Ecn)>,
    pub events: Vec<Event>,
    written: i64,
    read: i64,
}

impl Script {
    fn new(config: &TcpConfig) -> Self {
        let mut host = Host::new(HOST, Rng::named(1, "script"));
        host.listen(PORT, config).unwrap();
        Self {
            host,
            now: Instant::ZERO,
            id: None,
            port: PORT,
            peer_port: PEER_PORT,
            iss: ISS,
            acked: 1,
            peer_window: 60_000,
            out: VecDeque::new(),
            events: Vec::new(),
            written: 1,
            read: 1,
        }
    }

    /// A host that listens on [`PORT`].
    pub fn listening(config: &TcpConfig) -> Self {
        Self::new(config)
    }

    /// A host in somebody's stead, which listens on all ports.
    pub fn standing_in(config: &TcpConfig) -> Self {
        let mut script = Self::new(config);
        script.host = Host::standing_in(Rng::named(1, "script"));
        script.host.listen_everywhere(config);
        script
    }

    /// A host that has begun to connect to the peer; its SYN is still to be expected.
    pub fn connecting(config: &TcpConfig) -> Self {
        let mut script = Self::new(config);
        let remote = SocketAddr::new(PEER, PEER_PORT);
        let id = script.host.connect(script.now, remote, config).unwrap();
        script.port = script.host.connection(id).unwrap().local().port();
        script.id = Some(id);
        script.drain();
        script
    }

    /// An established connection that the host opened, with a round trip of `rtt` milliseconds.
    pub fn connected(config: &TcpConfig, rtt: u64, answer: Seg) -> Self {
        let mut script = Self::connecting(config);
        script.expect(Seg { ack: None, ..Seg { flags: SYN, ..Seg::default() } });
        script.at(rtt);
        script.inject(answer);
        script.expect(ack(1, 1));
        script.expect_event(Event::Connected);
        script
    }

    /// The usual one: 100 ms, a peer with selective acknowledgements, a window of 60,000 bytes.
    pub fn established(config: &TcpConfig) -> Self {
        Self::connected(config, 100, syn_ack().sack_permitted())
    }

    /// An established connection whose initial window is `segments`, all written data unsent so far.
    pub fn with_window(config: &TcpConfig, segments: u32) -> Self {
        Self::established(&config.clone().with(|it| it.window.initial = InitialWindow::Segments(segments)))
    }

    /// As [`Script::with_window`], with `segments` segments out since 100 ms, at 200 ms; the first ends at 1001.
    pub fn flying(config: &TcpConfig, segments: u32) -> Self {
        let mut script = Self::with_window(config, segments);
        script.write(40_000);
        assert_eq!(script.take_count(), segments as usize);
        script.at(200);
        script
    }

    pub fn connection(&self) -> &Connection {
        self.host.connection(self.id.unwrap()).unwrap()
    }

    fn drain(&mut self) {
        while let Some((id, event)) = self.host.poll_event() {
            self.id = self.id.or(Some(id));
            if matches!(event, Event::Accepted { .. }) {
                self.id = Some(id);
            }
            self.events.push(event);
        }
        while let Some(packet) = self.host.poll_transmit(self.now) {
            let (repr, payload, codepoint) = parse(&packet);
            self.out.push_back((self.now, repr, payload, codepoint));
        }
    }

    /// Goes to `at`; time-outs on the way happen when they are due.
    pub fn at(&mut self, at: u64) {
        self.run_to(ms(at));
    }

    fn run_to(&mut self, at: Instant) {
        assert!(at >= self.now, "the script goes back in time");
        while let Some(due) = self.host.poll_timeout().filter(|&due| due <= at) {
            self.now = self.now.max(due);
            self.host.handle_timeout(self.now);
            self.drain();
        }
        self.now = at;
    }

    pub fn inject(&mut self, seg: Seg) {
        let _ = self.try_inject(seg);
    }

    /// Gives the host a segment of the peer's.
    pub fn try_inject(&mut self, seg: Seg) -> Result<(), Discard> {
        let packet = self.packet(&seg);
        self.inject_packet(&packet)
    }

    pub fn inject_packet(&mut self, packet: &[u8]) -> Result<(), Discard> {
        let result = self.host.handle_packet(self.now, packet);
        self.drain();
        result
    }

    /// The packet that a segment of the peer's is.
    pub fn packet(&self, seg: &Seg) -> Packet {
        let ack = if seg.flags.has(ACK) { seg.ack.unwrap_or(self.acked) } else { 0 };
        let mut sack = SackBlocks::default();
        for &(start, end) in seg.sack.iter().flatten() {
            sack.push(SackBlock { start: self.iss + start, end: self.iss + end });
        }
        let repr = tcp::Repr {
            src_port: self.peer_port,
            dst_port: self.port,
            seq: number(IRS, seg.seq),
            ack: if seg.flags.has(ACK) { number(self.iss, ack) } else { SeqNum(0) },
            flags: seg.flags,
            window: seg.window.unwrap_or(self.peer_window),
            urgent: 0,
            options: Options {
                mss: seg.mss,
                window_scale: seg.scale,
                sack_permitted: seg.sack_permitted,
                timestamps: seg.timestamps.map(|(value, echo)| Timestamps { value, echo }),
                sack,
                ..Options::default()
            },
        };
        let payload: Vec<u8> = (0..seg.len as i64).map(|at| byte_at(seg.seq + at)).collect();
        let mut packet = packet_of(&repr, &payload);
        ip::set_ecn(&mut packet, seg.ecn.unwrap_or_default()).expect("an IP packet");
        packet
    }

    pub fn write(&mut self, len: usize) -> usize {
        let bytes: Vec<u8> = (0..len as i64).map(|at| byte_at(self.written + at)).collect();
        let taken = self.host.write(self.now, self.id.unwrap(), &bytes).unwrap();
        self.written += taken as i64;
        self.drain();
        taken
    }

    /// Reads up to `len` bytes, which are the peer's stream; how many there were.
    pub fn read(&mut self, len: usize) -> usize {
        let mut bytes = vec![0; len];
        let count = self.host.read(self.now, self.id.unwrap(), &mut bytes).unwrap();
        for &byte in &bytes[..count] {
            assert_eq!(byte, byte_at(self.read), "byte {} of the stream", self.read);
            self.read += 1;
        }
        self.drain();
        count
    }

    pub fn finish(&mut self) {
        self.host.finish(self.now, self.id.unwrap()).unwrap();
        self.drain();
    }

    pub fn close(&mut self) {
        self.host.close(self.now, self.id.unwrap()).unwrap();
        self.drain();
    }

    pub fn abort(&mut self) {
        self.host.abort(self.now, self.id.unwrap()).unwrap();
        self.drain();
    }

    /// What the owner of the connection says to it, as a proxy does.
    pub fn steer(&mut self, steer: impl FnOnce(&mut Connection)) {
        self.host.steer(self.id.unwrap(), steer).unwrap();
        self.drain();
    }

    /// A host in somebody's stead answers the SYN that it holds.
    pub fn admit(&mut self) {
        self.steer(|it| it.admit(None));
    }

    /// The host's next segment left just now and is like this.
    #[track_caller]
    pub fn expect(&mut self, seg: Seg) {
        let Some((at, got, payload, codepoint)) = self.out.pop_front() else {
            panic!("nothing was sent; expected {seg:?}")
        };
        let flags = Flags(got.flags.0 & !Flags::PSH.0);
        let shown = (
            flags,
            got.seq.distance(self.iss),
            got.ack.distance(IRS),
            payload.len(),
            got.window,
            got.options,
        );
        assert_eq!(at, self.now, "sent at another time: {shown:?}, expected {seg:?}");
        assert_eq!(
            (flags, i64::from(got.seq.distance(self.iss)), payload.len()),
            (seg.flags, seg.seq, seg.len),
            "got {shown:?}, expected {seg:?}"
        );
        if let Some(ecn) = seg.ecn {
            assert_eq!(codepoint, ecn, "got {shown:?}, expected {seg:?}");
        }
        if let Some(ack) = seg.ack {
            assert_eq!(i64::from(got.ack.distance(IRS)), ack, "got {shown:?}, expected {seg:?}");
        }
        if let Some(window) = seg.window {
            assert_eq!(got.window, window, "got {shown:?}, expected {seg:?}");
        }
        if let Some(sack) = &seg.sack {
            let blocks = got.options.sack;
            let got: Vec<(u32, u32)> = blocks
                .as_slice()
                .iter()
                .map(|b| (b.start.0.wrapping_sub(IRS.0), b.end.0.wrapping_sub(IRS.0)))
                .collect();
            assert_eq!(&got, sack);
        }
        if let Some((value, echo)) = seg.timestamps {
            let got = got.options.timestamps.expect("a timestamp");
            assert_eq!(got.echo, echo, "expected {seg:?}");
            let _ = value;
        }
        for (at, &byte) in payload.iter().enumerate() {
            assert_eq!(byte, byte_at(seg.seq + at as i64), "payload of {seg:?}");
        }
    }

    /// Nothing else was sent since the last expectation.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        assert!(self.out.is_empty(), "unexpected: {:?}", self.out.front().map(|(at, repr, ..)| (at, repr)));
    }

    /// Nothing is sent before `at`, and then this is.
    #[track_caller]
    pub fn expect_at(&mut self, at: u64, seg: Seg) {
        self.quiet_before(at);
        self.at(at);
        self.expect(seg);
    }

    /// Nothing is sent before `at`.
    #[track_caller]
    pub fn quiet_before(&mut self, at: u64) {
        self.expect_nothing();
        self.run_to(Instant::from_nanos(ms(at).as_nanos() - 1));
        self.expect_nothing();
    }

    /// The option fields of the host's next segment.
    #[track_caller]
    pub fn take(&mut self) -> tcp::Repr {
        self.out.pop_front().expect("a segment").1
    }

    /// How many segments were sent since the last expectation.
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// The header of what the host sent last; all of it is taken.
    #[track_caller]
    pub fn last(&mut self) -> tcp::Repr {
        self.out.drain(..).next_back().expect("a segment").1
    }

    /// How many segments were sent since the last expectation; they are dropped.
    pub fn take_count(&mut self) -> usize {
        let count = self.out.len();
        self.out.clear();
        count
    }

    /// Where the segments began that were sent since the last expectation.
    pub fn sent(&mut self) -> Vec<i64> {
        self.out.drain(..).map(|(_, repr, ..)| i64::from(repr.seq.distance(ISS))).collect()
    }

    #[track_caller]
    pub fn expect_event(&mut self, event: Event) {
        assert!(self.events.contains(&event), "no {event:?} in {:?}", self.events);
        self.events.retain(|&seen| seen != event);
    }
}

fn number(initial: SeqNum, position: i64) -> SeqNum {
    SeqNum(initial.0.wrapping_add(position as u32))
}

pub fn packet_of(repr: &tcp::Repr, payload: &[u8]) -> Packet {
    let header_len = repr.header_len();
    let header = ip::Repr::new(PEER, HOST, Protocol::TCP, Ecn::NotEct, header_len + payload.len());
    let mut packet = Packet::default();
    packet.resize(header.header_len() + header_len);
    packet.extend_from_slice(payload);
    header.emit(&mut packet);
    repr.emit(&mut packet[header.header_len()..], PEER, HOST);
    packet
}

fn parse(packet: &[u8]) -> (tcp::Repr, Vec<u8>, Ecn) {
    let view = ip::View::parse(packet).expect("an IP packet");
    if let ip::View::V4(v4) = &view {
        assert!(v4.checksum_ok());
    }
    assert_eq!((view.src(), view.dst()), (HOST, PEER));
    let segment = tcp::View::parse(view.payload()).expect("a TCP segment");
    let repr = tcp::Repr::parse(&segment, HOST, PEER).expect("a valid checksum");
    (repr, segment.payload().to_vec(), view.ecn())
}
