//! What segments of strangers cost: forged ones, SYN floods, gaps without end, and peers chosen to collide.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::units::Size;
use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{self, Flags, Options};
use base::{Instant, Packet, Rng, SeqNum};
use divan::Bencher;
use divan::counter::ItemsCount;
use longhaul_tcp::{Event, Host, TcpConfig};

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
fn attack(host: &mut Host, packets: &[Packet]) {
    let now = Instant::ZERO;
    for packet in packets {
        let _ = black_box(host.handle_packet(now, packet));
        while let Some(answer) = host.poll_transmit(now) {
            black_box(answer);
        }
    }
}

/// Times an attack on a host as `make` has it.
fn measure(bencher: Bencher<'_, '_>, packets: &[Packet], make: impl Fn() -> Host) {
    let bencher = bencher.counter(ItemsCount::new(packets.len()));
    bencher.with_inputs(make).bench_local_refs(|host| attack(host, packets));
}

/// A host with a connection to `PEER`, which has not sent anything yet.
fn established(config: &TcpConfig) -> (Host, SocketAddr) {
    let config = config.clone().with(|it| it.initial_sequence = Some(ISS));
    let (mut host, peer) = (listening(HOST, &config), SocketAddr::new(PEER, 5000));
    attack(&mut host, &[packet(peer, HOST, Flags::SYN, (0, 0), 0)]);
    attack(&mut host, &[packet(peer, HOST, Flags::ACK, (1, 1), 0)]);
    let accepted = |(_, event)| event == Event::Accepted { local_port: 80 };
    assert!(host.poll_event().is_some_and(accepted), "the handshake is over");
    (host, peer)
}

/// Where the peer of [`established`] is.
fn peer() -> SocketAddr {
    SocketAddr::new(PEER, 5000)
}

#[divan::bench(sample_count = 20)]
fn forged_outside_the_window(bencher: Bencher<'_, '_>) {
    let forged: Vec<Packet> =
        (0..100_000).map(|at| packet(peer(), HOST, Flags::ACK, (1 << 30 | at, 1), 100)).collect();
    measure(bencher, &forged, || established(&TcpConfig::default()).0);
}

fn spoofed(count: u32) -> Vec<Packet> {
    let syn = |at| {
        let peer = SocketAddr::new(Ipv4Addr::from(0x0b00_0000 + at).into(), 5000);
        packet(peer, HOST, Flags::SYN, (at, 0), 0)
    };
    (0..count).map(syn).collect()
}

/// A host that as many have called as may wait.
fn besieged() -> Host {
    let mut host = listening(HOST, &TcpConfig::default());
    attack(&mut host, &spoofed(128));
    host
}

#[divan::bench(sample_count = 20)]
fn spoofed_syn_with_a_full_backlog(bencher: Bencher<'_, '_>) {
    measure(bencher, &spoofed(100_000)[128..], besieged);
}

#[divan::bench(sample_count = 20)]
fn ack_that_guesses_a_cookie(bencher: Bencher<'_, '_>) {
    let guesses: Vec<Packet> =
        (0..100_000).map(|at| packet(peer(), HOST, Flags::ACK, (at, 77 * at), 0)).collect();
    measure(bencher, &guesses, besieged);
}

/// Every second byte of the window comes.
fn one_byte_gaps() -> (Host, Vec<Packet>) {
    let config = TcpConfig::default().with(|it| it.window.receive_buffer = Size(4 << 20));
    let byte = |at: u32| packet(peer(), HOST, Flags::ACK, (at, 1), 1);
    (established(&config).0, (0..GAPS).map(|at| byte(3 + 4 * at)).collect())
}

/// As many gaps of one byte as the window has room for.
const GAPS: u32 = 780_000;

#[divan::bench(sample_count = 3)]
fn one_byte_gap_at_the_end(bencher: Bencher<'_, '_>) {
    let rising = one_byte_gaps().1;
    measure(bencher, &rising, || one_byte_gaps().0);
}

/// What cuts the gaps in the middle in two.
#[divan::bench(sample_count = 3)]
fn one_byte_gap_in_the_middle(bencher: Bencher<'_, '_>) {
    let byte = |at: u32| packet(peer(), HOST, Flags::ACK, (at, 1), 1);
    let middle: Vec<Packet> = (0..2000).map(|at| byte(5 + 4 * (GAPS / 2 + at))).collect();
    measure(bencher, &middle, full_of_gaps);
}

#[divan::bench(sample_count = 3)]
fn byte_that_came_before(bencher: Bencher<'_, '_>) {
    let rising = one_byte_gaps().1;
    measure(bencher, &rising[rising.len() - 2000..], full_of_gaps);
}

/// A host to which all of [`one_byte_gaps`] has come.
fn full_of_gaps() -> Host {
    let (mut host, rising) = one_byte_gaps();
    attack(&mut host, &rising);
    host
}

/// 16,000 peers whose addresses' halves differ by the same bits, which unkeyed hashes like to fold together.
fn crafted() -> (Host, Vec<Packet>) {
    let config = TcpConfig::default().with(|it| it.limits.backlog = 20_000);
    let syn = |at: u64| {
        let half = 0x2001_0db8_0000_0000 + at;
        let address = Ipv6Addr::from(u128::from(half) << 64 | u128::from(half ^ 1));
        packet(SocketAddr::new(address.into(), 5000), HOST_V6, Flags::SYN, (0, 0), 0)
    };
    (listening(HOST_V6, &config), (0..16_000).map(syn).collect())
}

#[divan::bench(sample_count = 20)]
fn syn_of_a_crafted_peer(bencher: Bencher<'_, '_>) {
    measure(bencher, &crafted().1, || crafted().0);
}

#[divan::bench(sample_count = 20)]
fn syn_of_a_crafted_peer_again(bencher: Bencher<'_, '_>) {
    measure(bencher, &crafted().1, || {
        let (mut host, syns) = crafted();
        attack(&mut host, &syns);
        host
    });
}
