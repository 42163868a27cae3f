//! Any bytes as a packet with an ICMP message: no panic, and what is quoted has the eight bytes that a transport needs.

#![no_main]

use base::SeqNum;
use base::wire::icmp::{Report, renumber_quoted};
use base::wire::ip::View;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = View::parse(bytes) else { return };
    if let Ok(Some(message)) = Report::parse(&view) {
        assert!(message.start.len() >= 8);
    }
    let mut packet = bytes.to_vec();
    if renumber_quoted(&mut packet, SeqNum(7)) {
        let view = View::parse(&packet).expect("as before");
        assert!(matches!(Report::parse(&view), Ok(Some(report)) if report.start[4..8] == [0, 0, 0, 7]));
    }
});
