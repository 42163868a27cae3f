//! Headers and frames that nobody sent.

use super::*;

/// What a forger without the check bits can do: a length that says what it likes, a body, and check bits that belong to
/// another frame or to none; with a key also a true frame that belongs behind other bits. `framer` has sent a frame before.
fn forgery(rng: &mut Rng, framer: &Framer, encrypted: bool) -> (Vec<u8>, usize) {
    // Long enough that hardly any is left as it was.
    let len = 8 + rng.below(MAX_BODY as u64 - 7) as usize;
    let body: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
    let mut line = Vec::new();
    framer.clone().frame(&body, &mut line).unwrap();
    match rng.below(if encrypted { 4 } else { 3 }) {
        // Another length, and other bytes behind it.
        0 => {
            let claimed = rng.below(MAX_BODY as u64 + 1) as usize;
            line.resize(claimed + HEADER_LEN, 0);
            line.iter_mut().skip(2).for_each(|byte| *byte = rng.bits() as u8);
            let head = (claimed as u16) << 7 | u16::from(line[1] & 0x7f);
            line[..2].copy_from_slice(&head.to_be_bytes());
        }
        // The check bits of another body.
        1 => line[2..=len].iter_mut().for_each(|byte| *byte = rng.bits() as u8),
        // Any check bits at all.
        2 => line[len + 2..].iter_mut().for_each(|byte| *byte = rng.bits() as u8),
        // A frame behind a context that is not the line's.
        _ => {
            let context = core::array::from_fn(|_| rng.bits() as u8);
            line.clear();
            Framer::keyed(key(), context).frame(&body, &mut line).unwrap();
            line.drain(..CONTEXT_LEN);
        }
    }
    let claimed = usize::from(u16::from_be_bytes([line[0], line[1]]) >> 7);
    (line, claimed)
}

/// Where a frame is expected, a forged one passes with k check bits once in 2^k, with a key or without.
/// Tolerance: five standard errors of a Poisson count.
#[test]
fn a_forged_frame_passes_as_often_as_the_check_bits_say() {
    for encrypted in [false, true] {
        let mut rng = Rng::named(5, "forger");
        let (mut framer, mut deframer) = ends(encrypted);
        let mut line = Vec::new();
        (0..4).for_each(|_| framer.frame(&[3; 50], &mut line).unwrap());
        deframer.handle_bytes(&line, |_| ());
        // In the preamble there may be a false header.
        deframer.handle_silence(|_| ());
        let before = deframer.counters();
        assert_eq!(before.frames, 4, "in step");
        let forgeries: Vec<_> = (0..50_000).map(|_| forgery(&mut rng, &framer, encrypted)).collect();
        for width in [6, 9, 31] {
            let mut accepted = 0;
            for (line, claimed) in &forgeries {
                let mut deframer = deframer.clone().with_check_bits(width);
                let mut first = None;
                deframer.handle_bytes(line, |body| {
                    first.get_or_insert(body.len());
                });
                // In step, so the first bit begins it.
                let Counters { hunts, fills, .. } = deframer.counters();
                accepted += u64::from(hunts == before.hunts && (first == Some(*claimed) || fills == 1));
            }
            let (accepted, expected) = (accepted as f64, forgeries.len() as f64 / f64::from(width).exp2());
            assert!(
                (accepted - expected).abs() <= 5.0 * expected.sqrt(),
                "{accepted} of {expected} at {width} bits, with a key: {encrypted}"
            );
        }
    }
}

/// A header whose length alone is false, at every length: what it claims is refused, and the true frames behind it arrive.
#[test]
fn a_false_length_never_passes_and_costs_its_frame_alone() {
    for encrypted in [false, true] {
        let (mut framer, deframer) = ends(encrypted);
        let mut line = Vec::new();
        let mut starts = Vec::new();
        for n in 0..20_u8 {
            framer.frame(&[n; 61], &mut line).unwrap();
            starts.push(line.len() - 61 - HEADER_LEN);
        }
        for claimed in (0..=MAX_BODY).filter(|len| *len != 61) {
            let mut wrong = line.clone();
            let at = starts[3];
            let head = (claimed as u16) << 7 | u16::from(wrong[at + 1] & 0x7f);
            wrong[at..at + 2].copy_from_slice(&head.to_be_bytes());
            let mut found = Vec::new();
            let mut deframer = deframer.clone();
            deframer.handle_bytes(&wrong, |body| found.push(body[0]));
            deframer.handle_silence(|body| found.push(body[0]));
            let expected: Vec<u8> = (0..20).filter(|n| *n != 3).collect();
            assert_eq!(found, expected, "a length of {claimed}");
        }
    }
}

proptest! {
    #![proptest_config(fixed(400))]

    /// Behind a burst that is all false headers, one beginning at every few bits and many of them reaching far beyond it,
    /// the receiver is in step within two clean frames, and has taken none of them for a frame.
    #[test]
    fn false_headers_cost_two_frames_at_most(
        headers in prop::collection::vec((0..=MAX_BODY, 0_u32..1 << 31, 0_usize..80), 1..60),
        lens in prop::collection::vec(1..=MAX_BODY, 3..10),
        content: u64,
        encrypted: bool,
        piece in 1_usize..3000,
    ) {
        let (mut framer, mut deframer) = ends(encrypted);
        let mut rng = Rng::named(content, "content");
        // Shorter ones may cost three with a key.
        let bodies: Vec<Vec<u8>> =
            lens.iter().map(|len| (0..(*len).max(3)).map(|_| rng.bits() as u8).collect()).collect();
        let mut line = Vec::new();
        framer.frame(&bodies[0], &mut line).unwrap();
        let mut stream = bits_of(&line);
        for (len, check, gap) in headers {
            stream.extend((0..9).rev().map(|k| len >> k & 1 == 1));
            stream.extend((0..gap).map(|_| rng.chance(0.5)));
            stream.extend((0..31).rev().map(|k| check >> k & 1 == 1));
        }
        line.clear();
        bodies[1..].iter().for_each(|body| framer.frame(body, &mut line).unwrap());
        stream.extend(bits_of(&line));
        let mut found = Vec::new();
        for piece in stream.chunks(piece) {
            deframer.handle_bits(&bytes_of(piece), piece.len(), |body| found.push(body.to_vec()));
        }
        deframer.handle_silence(|body| found.push(body.to_vec()));
        // With a key the line bits in front of the burst's end are not those that the sender knows.
        let lost = if encrypted { bodies.len().saturating_sub(found.len()) } else { 0 };
        prop_assert!(lost <= 2, "{lost} of {}", bodies.len());
        prop_assert_eq!(&found[..1], &bodies[..1]);
        prop_assert_eq!(&found[1..], &bodies[1 + lost..]);
    }
}
