//! Random datagrams, and bent real ones, into two hubs. Nothing panics, and only packets whose source is behind the peer come out.

#![no_main]

use std::net::{IpAddr, SocketAddr};

use base::wire::ip::{self, Ecn, Protocol};
use base::{Duration, Instant, Packet, Prefix};
use libfuzzer_sys::fuzz_target;
use tunnel::config::{CarrierLimits, Link};
use tunnel::key::{PresharedKey, PrivateKey};
use tunnel::path::{Address, Path};
use tunnel::random::Random;
use tunnel::session::{KEEP_ALIVE, Peer};
use tunnel::{Config, Hub, Membership, Sent};

/// Of an IPv4 packet without options.
const HEADER_LEN: usize = 20;

fn path(port: u16) -> Path {
    Address::Udp(SocketAddr::from(([127, 0, 0, 1], port))).into()
}

/// What is behind an end: 10.0.0.0/24 or 10.0.1.0/24.
fn network(at: u8) -> Prefix {
    Prefix { address: [10, 0, at, 0].into(), len: 24 }
}

fn config() -> Config {
    let link = Link::parse("link.toml", "protocol = \"plain\"\nrate = \"max\"").expect("a link");
    let pep = pep::Config { enabled: false, ..pep::Config::default() };
    let carrier = CarrierLimits::udp(true, 1500);
    Config { link, pep, mtu: 1400, cuts_trains: false, carrier, ways: vec![], keep_alive: KEEP_ALIVE }
}

/// One end, the first of which calls the other. It has a peer besides that never calls.
fn hub(at: u8) -> Hub {
    let key = |byte| PrivateKey::from_bytes([byte; 32]);
    let mut seed = u64::from(at) << 32;
    let mut hub = Hub::new(key(at + 1), None, move || {
        seed += 1;
        Random::seeded(seed)
    });
    let mut add = |byte, address, network| {
        let membership = Membership {
            key: key(byte).public(),
            preshared: PresharedKey::NONE,
            place: Peer { address, pinned: false },
            allowed: vec![network],
            weight: 1,
            config: config(),
        };
        hub.add(membership).expect("their networks do not overlap");
    };
    add(2 - at, (at == 0).then(|| path(2).peer), network(1 - at));
    add(9, None, network(9));
    hub
}

/// Sends all that `from` has to send, with one byte changed in what `bend` is given.
fn carry(now: Instant, [from, to]: [&mut Hub; 2], port: u16, bend: Option<u8>) {
    while let Some(transmit) = from.poll_transmit(now, 16, false) {
        let datagrams: Vec<_> = transmit.bytes.chunks(transmit.segment).map(<[u8]>::to_vec).collect();
        from.on_sent(now, Sent::Yes);
        for mut datagram in datagrams {
            if let Some(at) = bend {
                let at = usize::from(at) % datagram.len();
                datagram[at] ^= 1;
            }
            let _ = to.handle_datagram(now, path(port), Ecn::NotEct, &mut datagram);
        }
    }
}

/// A packet from one end's network to the other's, or from elsewhere.
fn packet(from: u8, is_elsewhere: bool, payload: &[u8]) -> Packet {
    let src: IpAddr = [10, if is_elsewhere { 7 } else { 0 }, from, 1].into();
    let dst = [10, 0, 1 - from, 1].into();
    let mut packet = Packet::with_capacity(HEADER_LEN + payload.len());
    packet.resize(HEADER_LEN + payload.len());
    ip::Repr::new(src, dst, Protocol(253), Ecn::NotEct, payload.len()).emit(&mut packet);
    packet[HEADER_LEN..].copy_from_slice(payload);
    packet
}

fuzz_target!(|bytes: &[u8]| {
    let [mut caller, mut called] = [0, 1].map(hub);
    let mut now = Instant::ZERO;
    for chunk in bytes.chunks(40) {
        let Some((&control, rest)) = chunk.split_first() else { return };
        now += Duration::from_millis(u64::from(control >> 4) * 100);
        caller.handle_timeout(now);
        called.handle_timeout(now);
        for hub in [&mut caller, &mut called] {
            let _ = hub.handle_datagram(now, path(9), Ecn::Ce, &mut rest.to_vec());
        }
        caller.handle_packet(now, packet(0, control & 4 == 4, rest));
        called.handle_packet(now, packet(1, control & 8 == 8, rest));
        // Real datagrams, one in four with a byte changed.
        let bend = rest.first().copied().filter(|_| control & 3 == 3);
        carry(now, [&mut caller, &mut called], 1, bend);
        carry(now, [&mut called, &mut caller], 2, None);
        for (at, hub) in (0..).zip([&mut caller, &mut called]) {
            while let Some(delivery) = hub.poll_packet(now) {
                let view = ip::View::parse(&delivery.packet).expect("a packet");
                assert!(network(1 - at).contains(view.src()), "from {}", view.src());
            }
            while hub.poll_event().is_some() {}
        }
    }
});
