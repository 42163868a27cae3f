//! Any bytes as an IP packet of either version; hops and marks on whatever parses.

#![no_main]

use base::wire::ip::{self, Ecn};
use base::wire::{ipv4, ipv6};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = ip::View::parse(bytes) else { return };
    assert!(view.payload().len() <= bytes.len());
    match view {
        ip::View::V4(view) => drop(ipv4::Repr::parse(&view)),
        ip::View::V6(view) => drop(ipv6::Repr::parse(&view)),
    }
    let mut packet = bytes.to_vec();
    ip::set_ecn(&mut packet, Ecn::Ce).expect("it parsed before");
    ip::decrement_hops(&mut packet).expect("it parsed before");
    assert_eq!(ip::View::parse(&packet).map(|view| view.ecn()), Ok(Ecn::Ce));
});
