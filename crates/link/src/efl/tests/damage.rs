//! Bursts of wrong, lost and invented bits.

use super::*;

/// What a burst does to the stream where it has got to.
#[derive(Clone, Debug)]
enum Harm {
    Flip(Vec<bool>),
    Insert(Vec<bool>),
    Delete(usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let bits = || prop::collection::vec(any::<bool>(), 1..600);
    prop_oneof![
        bits().prop_map(Harm::Flip),
        bits().prop_map(Harm::Insert),
        (1_usize..6000).prop_map(Harm::Delete)
    ]
}

/// The stream after a burst of these harms from bit `at` on, and where in the old stream the burst ended.
fn harmed(stream: &[bool], at: usize, harms: &[Harm]) -> (Vec<bool>, usize) {
    let mut new = stream[..at].to_vec();
    let mut old = at;
    for harm in harms {
        let rest = &stream[old..];
        match harm {
            Harm::Flip(pattern) => {
                new.extend(rest.iter().zip(pattern).map(|(bit, wrong)| bit ^ wrong));
                old += pattern.len().min(rest.len());
            }
            Harm::Insert(bits) => new.extend(bits),
            Harm::Delete(count) => old += count.min(&rest.len()),
        }
    }
    new.extend(&stream[old..]);
    (new, old)
}

proptest! {
    #![proptest_config(fixed(400))]

    /// Whatever a burst does, every frame in front of it arrives, and every whole one behind it, with a key from 16 clean
    /// bytes on; none arrives that was not sent.
    #[test]
    fn a_burst_costs_what_it_meets_and_sixteen_bytes(
        lens in prop::collection::vec(prop_oneof![1_usize..=12, 1..=MAX_BODY, Just(491)], 1..16),
        encrypted: bool,
        content: u64,
        at: prop::sample::Index,
        harms in prop::collection::vec(harm(), 1..4),
        piece in 1_usize..5000,
    ) {
        let (mut framer, mut deframer) = ends(encrypted);
        let mut rng = Rng::named(content, "content");
        let mut bodies: Vec<Vec<u8>> = lens.iter().map(|len| (0..*len).map(|_| rng.bits() as u8).collect()).collect();
        // No two are alike.
        bodies.iter_mut().zip(0..).for_each(|(body, index)| body[0] = index);
        let mut line = Vec::new();
        let mut starts = Vec::new();
        for body in &bodies {
            framer.frame(body, &mut line).unwrap();
            starts.push((line.len() - body.len() - HEADER_LEN) * 8);
        }
        let stream = bits_of(&line);
        let at = at.index(stream.len());
        let (harmed, resumed) = harmed(&stream, at, &harms);
        let mut found = Vec::new();
        for piece in harmed.chunks(piece) {
            deframer.handle_bits(&bytes_of(piece), piece.len(), |body| found.push(body.to_vec()));
        }
        // A line that may not fall silent carries empty frames instead.
        let mut fill = Vec::new();
        (0..120).for_each(|_| framer.fill(&mut fill));
        deframer.handle_bytes(&fill, |body| found.push(body.to_vec()));

        let sure_from = resumed + if encrypted { CONTEXT_LEN * 8 } else { 0 };
        let mut found = found.into_iter().peekable();
        for (index, body) in bodies.iter().enumerate() {
            let whole_before = starts[index] + (body.len() + HEADER_LEN) * 8 <= at;
            let arrived = found.next_if_eq(body).is_some();
            prop_assert!(arrived || !(whole_before || starts[index] >= sure_from), "frame {} of {:?}", index, starts);
        }
        prop_assert_eq!(found.next(), None, "a frame that was not sent, or out of order");
    }
}

/// One wrong bit costs its frame, and with a key the next too if it is among the last 128.
#[test]
fn a_wrong_bit_costs_its_frame() {
    for encrypted in [false, true] {
        let (mut framer, deframer) = ends(encrypted);
        let mut line = Vec::new();
        (0..5_u8).for_each(|n| framer.frame(&[n; 60], &mut line).unwrap());
        let preamble = if encrypted { 16 } else { 0 };
        let (start, len) = (preamble + 65, 65);
        for bit in 0..len * 8 {
            let mut deframer = deframer.clone();
            let mut wrong = line.clone();
            wrong[start + bit / 8] ^= 0x80 >> (bit % 8);
            let mut found = Vec::new();
            deframer.handle_bytes(&wrong, |body| found.push(body[0]));
            deframer.handle_silence(|body| found.push(body[0]));
            let next_too = encrypted && bit >= (len - 16) * 8;
            assert_eq!(found, if next_too { vec![0, 3, 4] } else { vec![0, 2, 3, 4] }, "bit {bit}");
            assert_eq!(deframer.counters().hunts, if encrypted { 2 } else { 1 });
        }
    }
}

/// Without a key a receiver that has lost the boundary takes a frame inside a packet for one; in step it does not.
#[test]
fn a_frame_within_a_frame_stays_there_in_step() {
    let mut inner = Vec::new();
    Framer::clear().frame(b"inner", &mut inner).unwrap();
    let (mut framer, mut deframer) = ends(false);
    let mut line = Vec::new();
    framer.frame(&inner, &mut line).unwrap();
    let mut found = Vec::new();
    // Byte by byte, so that the inner frame is there before the outer one.
    line.iter().for_each(|byte| deframer.handle_bytes(&[*byte], |body| found.push(body.to_vec())));
    assert_eq!(found, [inner]);
}
