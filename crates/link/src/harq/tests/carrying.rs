//! Whatever the line does: packets may be missing, but none arrives twice, altered, or before another.

use std::collections::BTreeMap;

use base::Rng;
use proptest::prelude::*;

use super::*;

fn any_config() -> impl Strategy<Value = Config> {
    let sizes = (1_u32..=14).prop_flat_map(|all| (Just(all), 1..=all));
    (sizes, 1_u32..5, any::<bool>(), any::<bool>()).prop_map(
        |((fragments, data), transmissions, combine, ordered)| Config {
            fragments: fragments.try_into().unwrap(),
            data: data.try_into().unwrap(),
            transmissions: transmissions.try_into().unwrap(),
            combine,
            ordered: Ordered(ordered),
            window: None,
        },
    )
}

proptest! {
    #[test]
    fn packets_are_never_altered_repeated_or_reordered(
        config in any_config(),
        delay in 1_usize..40,
        lens in prop::collection::vec(32_usize..1000, 1..30),
        fates in prop::collection::vec(0_u8..16, 0..1500),
    ) {
        let mut pair = pair(config, delay);
        let sent: Vec<Packet> = lens.iter().enumerate().map(|(n, len)| packet(1, n as u32, *len)).collect();
        let arrived: Vec<Packet> =
            pair.carry(sent.clone(), 12_000, &mut fated(fates)).into_iter().map(|(_, packet)| packet).collect();
        let order: Vec<u32> = arrived.iter().map(|packet| flow_and_number(packet).1).collect();
        let mut left = sent.clone();
        for packet in &arrived {
            let at = left.iter().position(|other| other == packet);
            prop_assert!(at.is_some(), "altered or twice: {:?}", flow_and_number(packet));
            left.remove(at.unwrap());
        }
        prop_assert!(!config.ordered.0 || order.is_sorted(), "{:?}", order);
        // All that is missing was given up, and nothing is left over.
        let given_up = pair.count(0, "blocks-given-up");
        prop_assert!(!config.repeats() || arrived.len() as u64 + given_up >= sent.len() as u64);
        let end = &pair.ends[0];
        prop_assert_eq!((end.core.sender.in_flight(), end.demand(pair.now)), (0, Demand::Nothing));
        prop_assert_eq!(pair.count(0, "acks-invalid") + pair.count(1, "acks-invalid"), 0);
        prop_assert_eq!((end.poll_timeout(), pair.ends[1].poll_timeout()), (None, None));
        prop_assert!(pair.ends[1].awaited.is_empty(), "fragments wait for nothing");
    }

    /// As long as each transmission keeps K fragments, one transmission is enough, whatever becomes of the reports.
    #[test]
    fn all_packets_arrive_where_the_code_makes_good(
        config in any_config(),
        seed in any::<u64>(),
        lens in prop::collection::vec(32_usize..1000, 1..30),
    ) {
        let mut pair = pair(config, 7);
        let mut rng = Rng::named(seed, "erasures");
        let mut lost = BTreeMap::new();
        let most = config.fragments.get() - config.data.get();
        let mut erasing = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            match (side, latest(line)) {
                (0, Some(header)) => {
                    let serial = header.transmission.map(|transmission| transmission.serial);
                    let count = lost.entry((header.number, serial)).or_insert(0);
                    if *count < most && rng.unit() < 0.6 {
                        *count += 1;
                        lose(line);
                    }
                }
                _ if rng.unit() < 0.3 => lose(line),
                _ => {}
            }
        };
        let sent: Vec<Packet> = lens.iter().enumerate().map(|(n, len)| packet(1, n as u32, *len)).collect();
        let arrived = pair.carry(sent.clone(), 12_000, &mut erasing);
        let arrived: Vec<Packet> = arrived.into_iter().map(|(_, packet)| packet).collect();
        prop_assert_eq!(arrived, sent);
    }
}

/// With FEC alone the other end has nothing to say, and nobody waits for anything.
#[test]
fn fec_alone_needs_no_way_back() {
    let mut pair = pair(config("transmissions = 1"), 5);
    let mut silent = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        assert!(side == 0 || line.back() == Some(&None), "a report");
        if let Some(header) = latest(line) {
            assert_eq!(header.transmission, None);
        }
    };
    let arrived = pair.carry((0..50).map(|number| packet(1, number, 400)), 700, &mut silent);
    assert_eq!(numbers(&arrived), (0..50).collect::<Vec<_>>());
    assert!(pair.ends.iter().all(|end| end.poll_timeout().is_none()));
    assert_eq!(pair.count(0, "blocks-once"), 50);
}

/// A frame is a header and a K-th of the packet, and its kind says what it costs the line for.
#[test]
fn a_packet_is_cut_into_equal_fragments() {
    for (text, header, sent) in [("", 7, 4), ("transmissions = 1", 4, 1)] {
        let mut end = Harq::new(config(text), &LINE);
        end.offer(Instant::ZERO, packet(1, 0, 500), Treatment::Reliable).unwrap();
        let mut kinds = Vec::new();
        let mut frame = Vec::new();
        let mut now = Instant::ZERO;
        for _ in 0..30_000 {
            now += MS;
            end.handle_timeout(now);
            frame.clear();
            if end.demand(now) > Demand::Nothing
                && let Some(info) = end.poll_frame(now, &mut frame)
                && info.kind != FrameKind::Control
            {
                assert_eq!(frame.len(), header + 501_usize.div_ceil(9));
                kinds.push(info.kind);
            }
        }
        let again = [[FrameKind::Retransmission; 9].as_slice(), &[FrameKind::Repair]].concat();
        let mut expected = [[FrameKind::New; 9].as_slice(), &[FrameKind::Repair]].concat();
        (1..sent).for_each(|_| expected.extend(&again));
        assert_eq!(kinds, expected);
    }
}

#[test]
fn a_super_segment_takes_several_blocks() {
    for text in ["", "transmissions = 1", "ordered = false", "fragments = 3\ndata = 2\ncombine = true"] {
        let mut pair = pair(config(text), 5);
        let sent: Vec<Packet> = (0..3).map(|number| packet(1, number, crate::MAX_PACKET - 7)).collect();
        let arrived = pair.carry(sent.clone(), 10_000, &mut intact);
        assert_eq!(arrived.into_iter().map(|(_, packet)| packet).collect::<Vec<_>>(), sent, "{text}");
    }
}

/// Blocks that overtake each other: where order does not matter nothing is lost for that.
#[test]
fn blocks_that_are_sent_once_may_overtake_each_other() {
    for (ordered, expected) in [(true, 10), (false, 20)] {
        let config =
            Config { ordered: Ordered(ordered), ..config("fragments = 1\ndata = 1\ntransmissions = 1") };
        let mut pair = pair(config, 5);
        let mut count = 0;
        let mut swapping = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            let len = line.len();
            count += usize::from(side == 0 && latest(line).is_some());
            if side == 0 && latest(line).is_some() && count % 2 == 0 {
                line.swap(len - 1, len - 2);
            }
        };
        let arrived = pair.carry((0..20).map(|number| packet(1, number, 60)), 100, &mut swapping);
        assert_eq!(arrived.len(), expected);
    }
}
