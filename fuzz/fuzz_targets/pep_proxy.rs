//! A proxy between packets made of random bytes, with mended checksums, on both sides: no panic, bounded memory, silence in the end.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use base::wire::checksum::Sum;
use base::wire::ip::{Ecn, Protocol, Repr as IpRepr};
use base::{Duration, Instant, Rng};
use libfuzzer_sys::fuzz_target;
use pep::{Acknowledgement, Answer, Config, Peer, Proxy, Side};

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    let config = Config {
        ack: if kind & 1 == 0 { Acknowledgement::Local } else { Acknowledgement::EndToEnd },
        answer: [Answer::Never, Answer::Known, Answer::Always][usize::from(kind >> 1 & 3).min(2)],
        half_open: 3,
        connections: 6,
        memory: base::units::Size(1 << 16),
        ..Config::default()
    };
    let mut proxy = Proxy::new(config, &mut Rng::named(1, "fuzz"));
    proxy.set_peer([Peer::Known, Peer::Possible, Peer::Nobody][usize::from(kind >> 3 & 3).min(2)], 1440);
    let mut now = Instant::ZERO;
    for chunk in bytes.chunks(48) {
        let Some((&control, rest)) = chunk.split_first() else { return };
        now += Duration::from_millis(u64::from(control));
        let (side, [from, to]) = match control & 1 {
            0 => (Side::Lan, [1_u8, 2]),
            _ => (Side::Link, [2, 1]),
        };
        let address = |host: u8| IpAddr::from(Ipv4Addr::new(10, 0, 0, host));
        let mut segment = vec![0; 20];
        segment.extend_from_slice(rest.get(20..).unwrap_or(&[]));
        let head = rest.len().min(20);
        segment[..head].copy_from_slice(&rest[..head]);
        // Mostly hit few connections.
        segment[..2].copy_from_slice(&(80 + u16::from(control >> 1 & 3)).to_be_bytes());
        segment[2..4].copy_from_slice(&(80 + u16::from(control >> 3 & 1)).to_be_bytes());
        segment[16..18].fill(0);
        let sum = Sum::pseudo_header(address(from), address(to), 6, segment.len()).and(Sum::of(&segment));
        segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
        let ip = IpRepr::new(address(from), address(to), Protocol::TCP, Ecn::NotEct, segment.len());
        let mut packet = vec![0; ip.header_len()];
        ip.emit(&mut packet);
        packet.extend_from_slice(&segment);
        let _ = proxy.handle_packet(now, side, &mut packet);
        if proxy.poll_timeout().is_some_and(|due| due <= now) {
            proxy.handle_timeout(now);
        }
        // A proxy that never falls silent is a bug that the fuzzer's time limit finds.
        for side in Side::ALL {
            while proxy.poll_transmit(now, side).is_some() {}
        }
        if control == 255 {
            proxy.on_peer_lost(now);
        }
        assert!(proxy.memory() < 1 << 18, "{} bytes", proxy.memory());
    }
});
