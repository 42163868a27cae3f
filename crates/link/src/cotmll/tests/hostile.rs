//! Frames that no peer should send: nothing panics, and the endpoint goes on.

use super::*;
use crate::line::SHORTEST_FRAME_LIMIT;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Offer(bool, usize),
    Poll,
    Bytes(Vec<u8>),
    /// A trailer that parses, with a payload.
    Fields(u32, usize),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    // Of the 32 bits, the highest three choose one of the known sub-protocols.
    let fields = (0_u32..3 << 29, 0_usize..30);
    // Numbers and counts near those in use, which random ones seldom are.
    let near = (0_u32..3, 0_u32..4, 0_u32..5, 0_u32..20, 0_u32..20, 0_usize..30);
    prop_oneof![
        4 => (any::<bool>(), 1_usize..2000).prop_map(|(once, len)| Step::Offer(once, len)),
        8 => Just(Step::Poll),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Bytes),
        4 => fields.prop_map(|(word, len)| Step::Fields(word, len)),
        6 => near.prop_map(|(protocol, ends, count, tx, ack, len)| {
            Step::Fields(protocol << 29 | ends << 27 | count << 20 | tx << 10 | ack, len)
        }),
        1 => Just(Step::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn anything_may_arrive(
        ordered: bool,
        window in 1_u32..=512,
        frame_limit in SHORTEST_FRAME_LIMIT..600,
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let window = window.try_into().unwrap();
        let line = LineLimits::new(frame_limit, None);
        let mut a = Cotmll::new(Config { window, ordered, ..Config::default() }, &line);
        a.observe();
        for step in steps {
            match step {
                Step::Offer(once, len) => {
                    let treatment = if once { Treatment::Once } else { Treatment::Reliable };
                    let had_room = a.has_room(treatment);
                    prop_assert_eq!(a.offer(NOW, Packet::from_slice(&vec![0; len]), treatment).is_ok(), had_room);
                }
                Step::Poll => {
                    let mut frame = Vec::new();
                    prop_assert!(a.poll_frame(NOW, &mut frame).is_some());
                    prop_assert!(frame.len() <= frame_limit);
                    a.seal_frame(NOW, &mut frame);
                }
                Step::Bytes(bytes) => drop(a.handle_frame(NOW, &bytes)),
                Step::Fields(word, len) => {
                    let frame = [vec![7; len], word.to_be_bytes().to_vec()].concat();
                    let _ = a.handle_frame(NOW, &frame);
                }
                Step::Reset => a.reset(),
            }
            prop_assert!(a.in_flight() <= 512);
            prop_assert_ne!(a.demand(NOW), Demand::Nothing);
            while a.poll_packet().is_some() {}
            while a.poll_event().is_some() {}
        }
        // Afterwards it works as new.
        a.reset();
        arrive(&mut a, 0, 1).unwrap();
        prop_assert_eq!(delivered(&mut a), [vec![1; 3]]);
    }
}
