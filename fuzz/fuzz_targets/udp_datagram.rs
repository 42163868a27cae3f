//! Any bytes as a UDP datagram.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use base::wire::udp::{Repr, View};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    if let Ok(view) = View::parse(bytes) {
        assert!(view.payload().len() + 8 <= bytes.len());
        assert_eq!(Repr::parse(&view, here, here).is_ok(), view.checksum_ok(here, here));
    }
});
