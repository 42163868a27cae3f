//! What the other gateway says of its proxy, in any order and at any time: who has not been asked says nothing for ever.

#![no_main]

#[allow(dead_code)]
#[path = "../../crates/tunnel/src/pairing.rs"]
mod pairing;

use base::{Duration, Instant};
use libfuzzer_sys::fuzz_target;
use pairing::Pairing;
use pep::Peer;

fuzz_target!(|bytes: &[u8]| {
    let (mut pairing, mut now, mut said, mut heard) = (Pairing::new(), Instant::ZERO, 0_u32, 0_u32);
    for [wait, len, body] in bytes.as_chunks().0 {
        now += Duration::from_millis(u64::from(*wait) * 20);
        if len & 1 == 1 {
            pairing.handle(now, &[*body, 0][..usize::from(len >> 1 & 1) + 1]);
            heard += 1;
        }
        if let Some([says]) = pairing.poll(now) {
            said += 1;
            assert!(says <= 3);
        }
        assert_eq!(pairing.peer() == Peer::Known, heard > 0);
        assert!(pairing.poll_timeout().is_none_or(|due| due > now));
    }
    // Two in the first second, then once each doubled wait; and an answer to each question.
    let asked = 64 - (now.as_nanos() / 1_000_000_000 + 1).leading_zeros() + (now.as_nanos() / 64_000_000_000) as u32;
    assert!(said <= asked + heard + 2, "{said} in {now:?}, {heard} heard");
});
