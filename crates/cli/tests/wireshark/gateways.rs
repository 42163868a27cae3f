//! Datagrams of two gateways' sessions, in a capture of UDP packets.

use core::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use base::wire::ip::{Ecn, Protocol};
use base::wire::{ipv4, udp};
use base::{Duration, Instant};
use channel::Fate;
use lab::observe::Capture;
use lab::observe::events::LinkDirection;
use tunnel::control::Kind;
use tunnel::key::{PresharedKey, PrivateKey};
use tunnel::path::Address;
use tunnel::random::Random;
use tunnel::session::{Ends, HEADER_LEN, Indices, Peer, Received, Reception, Session, Timing};

/// One datagram, and whether the caller sent it.
pub(crate) type Sent = (bool, Vec<u8>);

/// A handshake with a cookie, which the caller ends with empty data; then data from the caller, 10, 20 and 30 bytes, and a
/// datagram of control from the called side, 5 bytes; at last a denial of the caller's last one.
pub(crate) fn exchange() -> Vec<Sent> {
    let now = Instant::ZERO + Duration::from_secs(1);
    let (mut caller, mut called) = (End::new(1, Some(address(2))), End::new(2, None));
    let mut sent = Vec::new();
    caller.session.handle_timeout(now);
    for _ in 0..4 {
        carry(now, &mut caller, &mut called, address(1), true, &mut sent);
        carry(now, &mut called, &mut caller, address(2), false, &mut sent);
    }
    assert!(caller.session.is_established() && called.session.is_established());
    for len in [10, 20, 30] {
        let mut datagram = vec![0; HEADER_LEN + len];
        caller.session.seal(now, link::LineId::FIRST, Kind::Frame, &mut datagram, 0);
        called.handle_datagram(now, address(1), &mut datagram.clone());
        sent.push((true, datagram));
    }
    assert!(called.session.send_control(now, link::LineId::FIRST, Kind::Report, &[0; 4]));
    carry(now, &mut called, &mut caller, address(2), false, &mut sent);
    let lost = sent.iter().rev().find(|(by_caller, _)| *by_caller).map(|(_, datagram)| datagram.clone());
    let denial = called.reception.deny(now, address(1).into(), &lost.expect("it has sent something"));
    sent.push((false, denial.expect("it is the first")));
    sent
}

/// A gateway with one peer.
struct End {
    reception: Reception,
    session: Session,
    /// What it sends.
    outbox: VecDeque<Vec<u8>>,
}

/// Of the one peer.
const NUMBER: u32 = 0;

impl End {
    fn new(own: u8, address: Option<Address>) -> Self {
        let [own, peer] = [own, 3 - own].map(|byte| PrivateKey::from_bytes([byte; 32]));
        let own = Arc::new(own);
        let mut random = Random::seeded(own.as_bytes()[0].into());
        let reception = Reception::new(Arc::clone(&own), Random::seeded(7));
        let indices = (Indices::new(&mut random), NUMBER);
        let ends = Ends { own, peer: peer.public(), preshared: PresharedKey::NONE };
        let peer = Peer { address, pinned: false };
        let session = Session::new(ends, peer, "link", Timing::default(), indices, random);
        Self { reception, session, outbox: VecDeque::new() }
    }

    fn handle_datagram(&mut self, now: Instant, from: Address, datagram: &mut [u8]) {
        let Self { reception, session, outbox } = self;
        if datagram[0] != INITIATION {
            session.handle_datagram(now, from.into(), datagram).unwrap();
        } else {
            match reception.handle_initiation(now, from.into(), datagram, |_| None).unwrap() {
                Received::Challenged(challenge) => outbox.push_back(challenge),
                Received::Call(call) => {
                    let reply = reception.reply(now, from.into(), NUMBER);
                    session.answer(now, call, reply).unwrap();
                }
            }
        }
        outbox.extend(core::iter::from_fn(|| Some(session.poll_transmit()?.1)));
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front().or_else(|| Some(self.session.poll_transmit()?.1))
    }
}

/// The first byte of an initiation.
const INITIATION: u8 = 1;

fn address(port: u16) -> Address {
    Address::Udp(SocketAddr::from(([192, 0, 2, 1], port)))
}

fn carry(
    now: Instant,
    from: &mut End,
    to: &mut End,
    address: Address,
    by_caller: bool,
    sent: &mut Vec<Sent>,
) {
    while let Some(datagram) = from.poll_transmit() {
        to.handle_datagram(now, address, &mut datagram.clone());
        sent.push((by_caller, datagram));
    }
}

/// Writes datagrams between these ports of two hosts to a file.
pub(crate) fn write(file: &Path, datagrams: &[Sent], ports: [u16; 2]) {
    let capture = Capture::of_link(Box::new(File::create(file).unwrap()), "wan", None).unwrap();
    let capture = Rc::new(RefCell::new(capture));
    for (at, (by_caller, datagram)) in datagrams.iter().enumerate() {
        let direction = if *by_caller { LinkDirection::Up } else { LinkDirection::Down };
        let at = Instant::ZERO + Duration::from_millis(at as u64);
        let packet = packet(datagram, *by_caller, ports);
        Capture::tap(&capture, direction).on_packet(at, at, Fate::Intact, &packet);
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
