//! Datagrams of two gateways' sessions, in a capture of UDP packets.

use core::cell::RefCell;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;

use base::wire::ip::{Ecn, Protocol};
use base::wire::{ipv4, udp};
use base::{Duration, Instant};
use channel::Fate;
use lab::observe::FrameCapture;
use lab::observe::events::LinkDirection;
use tunnel::control::Kind;
use tunnel::key::PresharedKey;
use tunnel::path::Address;
use tunnel::random::Random;
use tunnel::session::{HEADER_LEN, Peer, Session, Timing};

/// One datagram, and whether the caller sent it.
pub(crate) type Sent = (bool, Vec<u8>);

/// A handshake with a cookie, which the caller ends with empty data; then data from the caller, 10, 20 and 30 bytes, and a
/// datagram of control from the called side, 5 bytes.
pub(crate) fn exchange() -> Vec<Sent> {
    let now = Instant::ZERO + Duration::from_secs(1);
    let address = |port| Address::Udp(SocketAddr::from(([192, 0, 2, 1], port)));
    let session = |peer: Option<Address>, seed| {
        let peer = Peer { address: peer, pinned: false };
        let key = PresharedKey::from_bytes([7; 32]);
        Session::new(key, peer, "link", Timing::default(), Random::seeded(seed))
    };
    let (mut caller, mut called) = (session(Some(address(2)), 1), session(None, 2));
    let mut sent = Vec::new();
    for _ in 0..4 {
        caller.handle_timeout(now);
        carry(now, &mut caller, &mut called, address(1), true, &mut sent);
        carry(now, &mut called, &mut caller, address(2), false, &mut sent);
    }
    assert!(caller.is_established() && called.is_established());
    for len in [10, 20, 30] {
        let mut datagram = vec![0; HEADER_LEN + len];
        caller.seal(now, &mut datagram, 0);
        called.handle_datagram(now, address(1).into(), &mut datagram.clone()).unwrap();
        sent.push((true, datagram));
    }
    assert!(called.send_control(now, Kind::Report, &[0; 4]));
    carry(now, &mut called, &mut caller, address(2), false, &mut sent);
    sent
}

fn carry(
    now: Instant,
    from: &mut Session,
    to: &mut Session,
    address: Address,
    by_caller: bool,
    sent: &mut Vec<Sent>,
) {
    while let Some((_, datagram)) = from.poll_transmit() {
        to.handle_datagram(now, address.into(), &mut datagram.clone()).unwrap();
        sent.push((by_caller, datagram));
    }
}

/// Writes datagrams between these ports of two hosts to a file.
pub(crate) fn write(file: &Path, datagrams: &[Sent], ports: [u16; 2]) {
    let capture = FrameCapture::new(Box::new(File::create(file).unwrap()), "wan", None).unwrap();
    let capture = Rc::new(RefCell::new(capture));
    for (at, (by_caller, datagram)) in datagrams.iter().enumerate() {
        let direction = if *by_caller { LinkDirection::Up } else { LinkDirection::Down };
        let at = Instant::ZERO + Duration::from_millis(at as u64);
        let packet = packet(datagram, *by_caller, ports);
        FrameCapture::tap(&capture, direction).on_packet(at, at, Fate::Intact, &packet);
    }
    capture.borrow_mut().finish().unwrap();
}

fn packet(datagram: &[u8], by_caller: bool, [caller, called]: [u16; 2]) -> Vec<u8> {
    let (a, b) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let (src, dst) = if by_caller { (a, b) } else { (b, a) };
    let (src_port, dst_port) = if by_caller { (caller, called) } else { (called, caller) };
    let mut body = vec![0; udp::HEADER_LEN];
    body.extend_from_slice(datagram);
    udp::Repr { src_port, dst_port }.emit(&mut body, IpAddr::V4(src), IpAddr::V4(dst));
    let payload_len = body.len();
    let header = ipv4::Repr {
        src,
        dst,
        protocol: Protocol::UDP,
        ttl: 64,
        dscp: 0,
        ecn: Ecn::NotEct,
        ident: 0,
        payload_len,
    };
    let mut packet = vec![0; ipv4::HEADER_LEN];
    packet.extend_from_slice(&body);
    header.emit(&mut packet);
    packet
}
