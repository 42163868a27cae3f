//! Any bytes as a packet with an ICMP message: no panic, and what is quoted has the eight bytes that a transport needs.

#![no_main]

use base::wire::icmp::TooBig;
use base::wire::ip::View;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = View::parse(bytes) else { return };
    if let Ok(Some(message)) = TooBig::parse(&view) {
        assert!(message.start.len() >= 8);
    }
});
