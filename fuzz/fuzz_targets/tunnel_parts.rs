//! Frames in parts: whatever comes, little is kept; and parts that are lost, repeated and overtaken make the frames that were cut or none.

#![no_main]

#[allow(dead_code)]
#[path = "../../crates/tunnel/src/parts.rs"]
mod parts;

use base::wire::ip::Ecn;
use libfuzzer_sys::fuzz_target;
use link::Marks;
use parts::Parts;

/// Frames that wait for parts, at most.
const KEPT: usize = 32;
/// Parts on the way, at most.
const ON_WAY: usize = 64;

/// Bytes that nobody cut.
fn forge(bytes: &[u8]) {
    let mut receiver = Parts::default();
    for body in bytes.split(|byte| *byte == 0xff) {
        let ecn = if body.len() & 1 == 1 { Ecn::Ce } else { Ecn::Ect0 };
        if let Some((frame, _)) = receiver.handle(ecn, body) {
            assert!(frame.len() <= bytes.len());
        }
    }
    assert_bounded(&receiver);
}

fn assert_bounded(receiver: &Parts) {
    assert!(format!("{receiver:?}").matches("Arriving {").count() <= KEPT);
}

/// The frame with this number: its number, and as many bytes as that says.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = number.to_le_bytes().to_vec();
    frame.extend((0..len).map(|at| (number as usize * 7 + at) as u8));
    frame
}

fn join(receiver: &mut Parts, frames: &[usize], body: &[u8], clean: bool) {
    let ecn = if clean { Ecn::Ect0 } else { Ecn::Ce };
    if let Some((whole, _)) = receiver.handle(ecn, body) {
        let number = u32::from_le_bytes(*whole.first_chunk().expect("a number"));
        assert_eq!(whole, frame(number, frames[number as usize]), "frame {number}");
    }
}

/// One frame is cut, and all its parts arrive.
fn pass(sender: &mut Parts, receiver: &mut Parts, frames: &mut Vec<usize>, len: usize, limit: usize) {
    let whole = frame(frames.len() as u32, len);
    frames.push(len);
    sender.cut(&whole, limit, Marks::default());
    let mut joined = None;
    while let Some((body, _)) = sender.pop() {
        assert!(body.len() <= limit && joined.is_none());
        joined = receiver.handle(Ecn::Ect0, &body);
    }
    assert_eq!(joined.map(|(joined, _)| joined), Some(whole));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    if first & 1 == 1 {
        return forge(rest);
    }
    let (mut sender, mut receiver) = (Parts::default(), Parts::default());
    let (mut on_way, mut frames) = (Vec::new(), Vec::new());
    let mut skips = 0;
    for [action, a, b] in rest.as_chunks().0 {
        let (len, limit) = (usize::from(*a) * 16, 80 + usize::from(*b));
        match action % 8 {
            0 | 1 => {
                let whole = frame(frames.len() as u32, len);
                frames.push(len);
                sender.cut(&whole, limit, Marks::default());
                while let Some((body, _)) = sender.pop() {
                    assert!(body.len() <= limit);
                    if on_way.len() < ON_WAY {
                        on_way.push(body);
                    }
                }
            }
            // One arrives, perhaps for the second time later.
            2..=4 if !on_way.is_empty() => {
                let at = usize::from(*a) % on_way.len();
                join(&mut receiver, &frames, &on_way[at], b & 1 == 0);
                if action % 8 != 4 {
                    on_way.swap_remove(at);
                }
            }
            5 if !on_way.is_empty() => drop(on_way.swap_remove(usize::from(*a) % on_way.len())),
            // Much later: most is lost, and numbers come round.
            6 if skips < 3 => {
                skips += 1;
                on_way.clear();
                for _ in 0..64 {
                    pass(&mut sender, &mut receiver, &mut frames, 100, 90);
                    for _ in 0..1023 - u32::from(*a) / 128 {
                        frames.push(0);
                        sender.cut(&[0], 90, Marks::default());
                        sender.pop();
                    }
                }
            }
            _ => {
                on_way.clear();
                pass(&mut sender, &mut receiver, &mut frames, len, limit);
            }
        }
    }
    assert!(!sender.is_leaving());
    assert_bounded(&receiver);
});
