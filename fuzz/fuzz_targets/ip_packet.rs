//! Any bytes as an IP packet of either version; hops and marks on whatever parses.

#![no_main]

use base::wire::ip::{self, Ecn};
use base::wire::{ipv4, ipv6};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = ip::View::parse(bytes) else { return };
    assert!(view.payload().len() <= bytes.len());
    match view {
        ip::View::V4(view) => assert!(ipv4::Repr::parse(&view).is_ok() == view.checksum_ok()),
        ip::View::V6(view) => assert_eq!(ipv6::Repr::parse(&view).payload_len, view.payload().len()),
    }
    let mut packet = bytes.to_vec();
    ip::set_ecn(&mut packet, Ecn::Ce).expect("it parsed before");
    ip::decrement_hops(&mut packet).expect("it parsed before");
    assert_eq!(ip::View::parse(&packet).map(|view| view.ecn()), Ok(Ecn::Ce));
});
