//! What a proxy leaves alone, keeps or hands on.

use crate::chain::packets::{NOW, packet, plain_syn, sent, syn};
use crate::chain::{CLIENT, Chain, Setup, address, stream};
use base::wire::icmp::{Cause, Report};
use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{Flags, Options, View};
use base::{Duration, Instant, Rng};
use longhaul_pep::{Acknowledgement, Config, Proxy, Side, Verdict};
use tcp::{Failure, TcpConfig};

fn proxy(config: Config) -> Proxy {
    Proxy::new(config, &mut Rng::named(1, "proxy"))
}

#[test]
fn what_is_no_tcp_passes() {
    let mut proxy = proxy(Config::default());
    let mut fragment = plain_syn(5);
    fragment[6] = 0x20;
    let others = [
        packet(Protocol::UDP, &[0; 40]),
        packet(Protocol(50), &[0; 40]),
        packet(Protocol(51), &[0; 40]),
        packet(Protocol::ICMP, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]),
        packet(Protocol::TCP, &[0; 10]),
        fragment,
        vec![0x45; 10],
        Vec::new(),
    ];
    for side in Side::ALL {
        for other in &others {
            assert_eq!(proxy.handle_packet(NOW, side, &mut other.clone()), Verdict::Pass, "{other:?}");
            assert!(sent(&mut proxy, side).is_empty() && sent(&mut proxy, side.other()).is_empty());
        }
    }
}

#[test]
fn segments_fit_the_devices_packets() {
    let mut proxy = proxy(Config::default());
    proxy.set_mtu(1000);
    assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut plain_syn(7)), Verdict::Taken);
    let call = sent(&mut proxy, Side::Link).remove(0);
    assert_eq!(View::parse(&call[20..]).unwrap().options().mss, Some(960));
    assert!(proxy.memory() > 1000, "{}", proxy.memory());
}

/// Segments of connections that began before the proxy, and resets for nobody.
#[test]
fn connections_that_it_does_not_know_pass() {
    let mut proxy = proxy(Config::default());
    for flags in
        [Flags::ACK, Flags::ACK | Flags::PSH, Flags::FIN | Flags::ACK, Flags::RST, Flags::SYN | Flags::ACK]
    {
        let mut packet = plain_syn(7);
        packet[20 + 13] = flags.0;
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut packet), Verdict::Pass, "{flags:?}");
    }
    assert!(sent(&mut proxy, Side::Lan).is_empty() && proxy.host(Side::Lan).is_empty());
}

/// RFC 2385 and RFC 5925: whoever signs segments would find others' signatures missing.
#[test]
fn authenticated_connections_pass() {
    let mut proxy = proxy(Config::default());
    for kind in [19, 29] {
        let mut packet =
            syn(CLIENT, 9, Options { mss: Some(1460), window_scale: Some(7), ..Options::default() });
        // In place of the window scale: an option of that kind and no value.
        packet[44..48].copy_from_slice(&[kind, 2, 1, 1]);
        assert!(View::parse(&packet[20..]).unwrap().options().authenticated);
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut packet), Verdict::Pass);
    }
    assert_eq!(proxy.counters().passed_by_rule, 2);
}

#[test]
fn rules_and_limits_let_pass() {
    let config: Config = base::config::parse(
        "t",
        "half-open = 3\nconnections = 100\n[[rule]]\naction = \"pass\"\nnetworks = [\"10.9.0.0/16\"]",
    )
    .unwrap();
    let mut proxy = proxy(config);
    let other = syn("10.9.0.1", 5, Options::default());
    assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut other.clone()), Verdict::Pass);
    // A flood of SYNs holds three places and nothing else.
    let verdicts: Vec<Verdict> =
        (1..=1000).map(|port| proxy.handle_packet(NOW, Side::Lan, &mut plain_syn(port))).collect();
    assert!(verdicts[..3].iter().all(|it| *it == Verdict::Taken));
    assert!(verdicts[3..].iter().all(|it| *it == Verdict::Pass));
    assert_eq!(proxy.counters().passed_for_want_of_room, 997);
    assert_eq!(sent(&mut proxy, Side::Link).len(), 3, "three SYNs cross the link for the proxy");
    assert!(proxy.memory() < 100_000, "{}", proxy.memory());
    // Nobody answers; in time the places are free again.
    let mut now = NOW;
    while let Some(due) = proxy.poll_timeout().filter(|due| *due < NOW + Duration::from_secs(1000)) {
        now = due.max(now);
        proxy.handle_timeout(now);
        while proxy.poll_transmit(now, Side::Link).is_some() || proxy.poll_transmit(now, Side::Lan).is_some()
        {
        }
    }
    assert_eq!((proxy.memory(), proxy.host(Side::Lan).len()), (0, 0));
    assert_eq!(proxy.handle_packet(now, Side::Lan, &mut plain_syn(5000)), Verdict::Taken);
}

/// A hub gives each link's proxy a part of its memory: less than is configured is split, and not all passes.
#[test]
fn a_limit_from_outside_bounds_memory() {
    let mut proxy = proxy(Config::default());
    proxy.limit_memory(1 << 20);
    let split = (1..4000)
        .take_while(|&port| proxy.handle_packet(NOW, Side::Lan, &mut plain_syn(port)) == Verdict::Taken);
    let split = split.count();
    assert_eq!(proxy.counters().passed_for_want_of_room, 1);
    // Half of it for each side, where a connection is taken to need some KiB.
    let each = (1 << 19) / split.max(1);
    assert!((6 << 10..16 << 10).contains(&each), "{split} split in 1 MiB");
}

#[test]
fn memory_is_bounded_in_total() {
    let setup = Setup {
        near: Some(Config { memory: base::units::Size(1 << 20), ..Config::default() }),
        far: Some(Config { memory: base::units::Size(1 << 20), ..Config::default() }),
        ..Setup::default()
    };
    let mut chain = Chain::new(&setup);
    chain.listen(80, &setup.host);
    chain.server_reads = false;
    let ids: Vec<_> = (0..20).map(|_| chain.connect(80, &setup.host)).collect();
    let data = stream(1, 4 << 20);
    let mut sent = vec![0; ids.len()];
    for second in 1..60 {
        for (id, sent) in ids.iter().zip(&mut sent) {
            *sent += chain.client.write(chain.now, *id, &data[*sent..]).unwrap_or(0);
        }
        chain.run(Duration::from_secs(second), |_| false);
        for proxy in chain.proxies.iter().flatten() {
            // What a packet may hold beyond what is granted, for each connection.
            assert!(proxy.memory() < (1 << 20) + 20 * 2 * 8192, "{}", proxy.memory());
        }
    }
    chain.server_reads = true;
    chain.run(Duration::from_secs(600), |_| false);
    for (seen, sent) in chain.server_saw.values().zip(&sent) {
        assert!(
            seen.read.len() > 100_000 && data.starts_with(&seen.read),
            "{sent} sent, {}",
            seen.read.len()
        );
    }
}

/// Both families at once, each end under its real address; marks stay on what carries data.
#[test]
fn addresses_and_marks_are_kept() {
    let mut proxy = proxy(Config::default());
    for from in [CLIENT, "2001:db8:1::2"] {
        let mut packet = syn(from, 4000, Options { mss: Some(1460), ..Options::default() });
        if let ip::View::V4(_) = ip::View::parse(&packet).unwrap() {
            packet[1] = 46 << 2;
            packet[10..12].fill(0);
            let sum = base::wire::checksum::Sum::of(&packet[..20]).finish();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        assert_eq!(proxy.handle_packet(NOW, Side::Lan, &mut packet), Verdict::Taken);
        let out = sent(&mut proxy, Side::Link);
        let (before, after) = (ip::View::parse(&packet).unwrap(), ip::View::parse(&out[0]).unwrap());
        assert_eq!((before.src(), before.dst()), (after.src(), after.dst()));
        assert_eq!(before.dscp(), after.dscp());
        let ports = |packet: &ip::View<'_>| packet.payload()[..4].to_vec();
        assert_eq!(ports(&before), ports(&after));
    }
    assert_eq!(proxy.host(Side::Lan).len(), 2);
}

/// A router beyond the far proxy says that there is no way: the caller is told, of its own segment.
#[test]
fn who_waits_is_told_that_there_is_no_way() {
    let (mut near, mut far) = (proxy(Config::default()), proxy(Config::default()));
    let call = plain_syn(4000);
    assert_eq!(near.handle_packet(NOW, Side::Lan, &mut call.clone()), Verdict::Taken);
    let over = sent(&mut near, Side::Link);
    assert_eq!(far.handle_packet(NOW, Side::Link, &mut over[0].clone()), Verdict::Taken);
    let out = sent(&mut far, Side::Lan);
    assert_ne!(out[0][24..28], call[24..28], "a number of the proxy's own");
    // Host unreachable, quoting the header and 8 bytes.
    let mut message = vec![3, 1, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(&out[0][..28]);
    let sum = base::wire::checksum::Sum::of(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header =
        ip::Repr::new(address("192.0.2.1"), address(CLIENT), Protocol::ICMP, Ecn::NotEct, message.len());
    let mut report = vec![0; 20];
    header.emit(&mut report);
    report.extend(message);
    assert_eq!(far.handle_packet(NOW, Side::Lan, &mut report), Verdict::Taken);
    let back = sent(&mut far, Side::Link);
    assert_eq!(near.handle_packet(NOW, Side::Link, &mut back[0].clone()), Verdict::Taken);
    let told = sent(&mut near, Side::Lan);
    let view = ip::View::parse(&told[0]).unwrap();
    let told = Report::parse(&view).unwrap().unwrap();
    assert_eq!((told.cause, &told.start[4..8]), (Cause::Unreachable, &call[24..28]));
    // A report about somebody else's segment is none of the proxy's.
    let mut other = report.clone();
    other[20 + 8 + 24] ^= 1;
    other[22..24].fill(0);
    let sum = base::wire::checksum::Sum::of(&other[20..]).finish();
    other[22..24].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(far.handle_packet(NOW, Side::Lan, &mut other.clone()), Verdict::Pass);
}

/// A client asks by keep-alives whether a silent server is still there; when it is not, the client learns it.
#[test]
fn keep_alives_reach_the_other_end() {
    for ack in [Acknowledgement::Local, Acknowledgement::EndToEnd] {
        let config = Config { ack, ..Config::default() };
        let setup = Setup { near: Some(config.clone()), far: Some(config), ..Setup::default() };
        let host = TcpConfig::preset("linux").unwrap().with(|it| {
            it.limits.keep_alive = Some(Duration::from_secs(60));
        });
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &host);
        chain.run(Duration::from_secs(500), |_| false);
        assert!(chain.saw(id).connected_at.is_some() && chain.saw(id).failed.is_none());
        // The server is gone without a word.
        chain.server = tcp::Host::new(address("192.0.2.99"), Rng::named(5, "another"));
        chain.server_saw.clear();
        chain.run(Duration::from_secs(3000), |chain| chain.saw(id).failed.is_some());
        let failed = chain.saw(id).failed;
        assert!(matches!(failed, Some(Failure::Reset | Failure::TimedOut)), "{ack:?}: {failed:?}");
        assert!(chain.now < Instant::ZERO + Duration::from_secs(1500), "{:?}", chain.now);
    }
}
