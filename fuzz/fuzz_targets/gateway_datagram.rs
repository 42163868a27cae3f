//! Random datagrams, and bent real ones, into both sides of a session.

#![no_main]

use std::net::SocketAddr;

use base::{Duration, Instant};
use tunnel::path::{Address, Path};
use tunnel::key::PresharedKey;
use tunnel::random::Random;
use tunnel::session::{HEADER_LEN, Peer, Session, Timing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let address = |port| Path::from(Address::Udp(SocketAddr::from(([127, 0, 0, 1], port))));
    let session = |address, seed| {
        let (key, peer) = (PresharedKey::from_bytes([7; 32]), Peer { address, pinned: false });
        Session::new(key, peer, "fuzz", Timing::default(), Random::seeded(seed))
    };
    let (mut caller, mut called) = (session(Some(address(2).peer), 1), session(None, 2));
    let mut now = Instant::ZERO;
    for chunk in bytes.chunks(40) {
        let Some((&control, rest)) = chunk.split_first() else { return };
        now += Duration::from_millis(u64::from(control >> 4) * 100);
        caller.handle_timeout(now);
        called.handle_timeout(now);
        drop(called.handle_datagram(now, address(9), &mut rest.to_vec()));
        drop(caller.handle_datagram(now, address(9), &mut rest.to_vec()));
        // Real datagrams, one in four with a byte changed.
        while let Some((_, mut datagram)) = caller.poll_transmit() {
            if let (3, Some(&at)) = (control & 3, rest.first()) {
                let at = usize::from(at) % datagram.len();
                datagram[at] ^= 1;
            }
            drop(called.handle_datagram(now, address(1), &mut datagram));
        }
        while let Some((_, mut datagram)) = called.poll_transmit() {
            drop(caller.handle_datagram(now, address(2), &mut datagram));
        }
        if caller.is_established() {
            let mut datagram = vec![0; HEADER_LEN];
            datagram.extend_from_slice(rest);
            caller.seal(now, &mut datagram, 0);
            drop(called.handle_datagram(now, address(1), &mut datagram));
        }
        while caller.poll_event().is_some() {}
        while called.poll_event().is_some() {}
    }
});
