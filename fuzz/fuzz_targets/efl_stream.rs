//! Any stream into a deframer, in any pieces, and a frame behind it that must arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;
use link::efl::{Deframer, Framer, Key};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let key = Key::new([choice; 16]);
    let (mut framer, mut deframer) = if choice & 1 == 1 {
        (Framer::keyed(key, [choice; 16]), Deframer::keyed(key))
    } else {
        (Framer::clear(), Deframer::clear())
    };
    while let Some((&head, tail)) = rest.split_first() {
        let (piece, tail) = tail.split_at(usize::from(head >> 3).min(tail.len()));
        rest = tail;
        deframer.handle_bits(piece, (piece.len() * 8).saturating_sub(usize::from(head & 7)), |_| ());
        if head == 0 {
            deframer.handle_silence(|_| ());
        }
    }
    deframer.handle_silence(|_| ());
    assert!(!deframer.is_waiting());
    let mut line = Vec::new();
    framer.frame(&[choice; 100], &mut line).expect("it fits");
    let mut last = Vec::new();
    deframer.handle_bytes(&line, |body| last = body.to_vec());
    deframer.handle_silence(|body| last = body.to_vec());
    assert_eq!(last, [choice; 100]);
});
