//! Any bytes as a TCP segment; what parses emits to something that parses to the same.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use base::wire::checksum::Sum;
use base::wire::tcp::{Options, Repr, View};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (src, dst): (IpAddr, IpAddr) = (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
    let Ok(_) = View::parse(bytes) else { return };
    // Mend the checksum, or nothing random would ever get past it.
    let mut segment = bytes.to_vec();
    segment[16..18].fill(0);
    let sum = Sum::pseudo_header(src, dst, 6, segment.len()).and(Sum::of(&segment)).finish();
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    let view = View::parse(&segment).expect("only the checksum changed");
    let mut repr = Repr::parse(&view, src, dst).expect("the checksum was mended");
    // Seen, but never written: only the ends can authenticate.
    repr.options.authenticated = false;
    if repr.options.len() <= 40 && repr.options != Options::default() {
        let mut emitted = vec![0; repr.header_len()];
        emitted.extend_from_slice(view.payload());
        repr.emit(&mut emitted, src, dst);
        let again = View::parse(&emitted).expect("emitted segments parse");
        assert_eq!(Repr::parse(&again, src, dst), Ok(repr));
    }
});
