//! What segments of strangers cost: forged ones, SYN floods, gaps without end, and peers chosen to collide.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::units::Size;
use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{self, Flags, Options};
use base::{Instant, Packet, Rng, SeqNum};
use longhaul_tcp::{Event, Host, TcpConfig};

use super::Meter;

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const HOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const ISS: SeqNum = SeqNum(1000);
const IRS: SeqNum = SeqNum(2000);

/// A segment from `peer` to port 80 of `host`, `seq` and `ack` counted from the two SYNs.
fn packet(peer: SocketAddr, host: IpAddr, flags: Flags, (seq, ack): (u32, u32), len: usize) -> Packet {
    let repr = tcp::Repr {
        src_port: peer.port(),
        dst_port: 80,
        seq: IRS + seq,
        ack: if flags.has(Flags::ACK) { ISS + ack } else { SeqNum(0) },
        flags,
        window: 60_000,
        urgent: 0,
        options: Options {
            mss: flags.has(Flags::SYN).then_some(1460),
            sack_permitted: flags.has(Flags::SYN),
            window_scale: flags.has(Flags::SYN).then_some(7),
            ..Options::default()
        },
    };
    let header = ip::Repr::new(peer.ip(), host, Protocol::TCP, Ecn::NotEct, repr.header_len() + len);
    let mut packet = Packet::default();
    packet.resize(header.header_len() + repr.header_len() + len);
    header.emit(&mut packet);
    repr.emit(&mut packet[header.header_len()..], peer.ip(), host);
    packet
}

fn listening(address: IpAddr, config: &TcpConfig) -> Host {
    let mut host = Host::new(address, Rng::named(1, "host"));
    host.listen(80, config).expect("the port is free");
    host
}

/// Hands the host each packet and takes its answers.
fn attack(meter: &mut Meter, host: &mut Host, packets: &[Packet]) {
    let now = Instant::ZERO;
    for batch in packets.chunks(64) {
        meter.measure(|| {
            for packet in batch {
                let _ = black_box(host.handle_packet(now, packet));
                while let Some(answer) = host.poll_transmit(now) {
                    black_box(answer);
                }
            }
            ((), batch.len() as u64)
        });
    }
}

/// A host with a connection to `PEER`, which has not sent anything yet.
fn established(config: &TcpConfig) -> (Host, SocketAddr) {
    let config = config.clone().with(|it| it.initial_sequence = Some(ISS));
    let (mut host, peer) = (listening(HOST, &config), SocketAddr::new(PEER, 5000));
    attack(&mut Meter::default(), &mut host, &[packet(peer, HOST, Flags::SYN, (0, 0), 0)]);
    attack(&mut Meter::default(), &mut host, &[packet(peer, HOST, Flags::ACK, (1, 1), 0)]);
    let accepted = |(_, event)| event == Event::Accepted { local_port: 80 };
    assert!(host.poll_event().is_some_and(accepted), "the handshake is over");
    (host, peer)
}

fn outside_the_window() {
    let (mut host, peer) = established(&TcpConfig::default());
    let forged: Vec<Packet> =
        (0..100_000).map(|at| packet(peer, HOST, Flags::ACK, (1 << 30 | at, 1), 100)).collect();
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &forged);
    meter.report("  forged segment outside the window");
}

fn full_backlog() {
    let mut host = listening(HOST, &TcpConfig::default());
    let spoofed: Vec<Packet> = (0..100_000_u32)
        .map(|at| {
            let peer = SocketAddr::new(Ipv4Addr::from(0x0b00_0000 + at).into(), 5000);
            packet(peer, HOST, Flags::SYN, (at, 0), 0)
        })
        .collect();
    let (first, rest) = spoofed.split_at(128);
    attack(&mut Meter::default(), &mut host, first);
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, rest);
    meter.report("  spoofed SYN with a full backlog");
    let peer = SocketAddr::new(PEER, 5000);
    let guesses: Vec<Packet> =
        (0..100_000).map(|at| packet(peer, HOST, Flags::ACK, (at, 77 * at), 0)).collect();
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &guesses);
    meter.report("  ACK that guesses a cookie");
}

/// Every second byte of the window comes, and then what cuts the gaps in the middle in two.
fn one_byte_gaps() {
    const GAPS: u32 = 780_000;
    let config = TcpConfig::default().with(|it| it.window.receive_buffer = Size(4 << 20));
    let (mut host, peer) = established(&config);
    let byte = |at: u32| packet(peer, HOST, Flags::ACK, (at, 1), 1);
    let rising: Vec<Packet> = (0..GAPS).map(|at| byte(3 + 4 * at)).collect();
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &rising);
    meter.report("  one-byte gap at the end");
    let middle: Vec<Packet> = (0..2000).map(|at| byte(5 + 4 * (GAPS / 2 + at))).collect();
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &middle);
    meter.report("  one-byte gap in the middle");
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &rising[rising.len() - 2000..]);
    meter.report("  a byte that came before");
}

/// 16,000 peers whose addresses' halves differ by the same bits, which unkeyed hashes like to fold together.
fn crafted_peers() {
    let config = TcpConfig::default().with(|it| it.limits.backlog = 20_000);
    let mut host = listening(HOST_V6, &config);
    let syns: Vec<Packet> = (0..16_000_u64)
        .map(|at| {
            let half = 0x2001_0db8_0000_0000 + at;
            let address = Ipv6Addr::from(u128::from(half) << 64 | u128::from(half ^ 1));
            packet(SocketAddr::new(address.into(), 5000), HOST_V6, Flags::SYN, (0, 0), 0)
        })
        .collect();
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &syns);
    meter.report("  SYN of a crafted peer");
    let mut meter = Meter::default();
    attack(&mut meter, &mut host, &syns);
    meter.report("  SYN of a crafted peer, again");
}

/// All of them.
pub(super) fn run() {
    println!("hostile");
    outside_the_window();
    full_backlog();
    one_byte_gaps();
    crafted_peers();
}
