//! Whatever the line does: packets may be missing, but none arrives twice, altered, or before another of its flow.

use base::Rng;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn packets_are_never_altered_repeated_or_reordered(
        ordered in prop::sample::select(vec![Order::Flow, Order::Link, Order::None]),
        delay in 1_usize..40,
        packets in prop::collection::vec((0_u8..4, 20_usize..400), 1..80),
        fates in prop::collection::vec(0_u8..10, 0..400),
        retransmissions in 0_u32..4,
        ratio in 0_u8..5,
        block in 1_u32..12,
    ) {
        let config = Config {
            ordered,
            max_retransmissions: retransmissions.try_into().unwrap(),
            fec_ratio: (f64::from(ratio) / 2.0).try_into().unwrap(),
            fec_block: block.try_into().unwrap(),
            ..Config::default()
        };
        let mut pair = pair(config, delay);
        let mut fate = fated(fates);
        let sent: Vec<Packet> =
            packets.iter().enumerate().map(|(n, (flow, len))| packet(*flow, n as u32, *len)).collect();
        let arrived = pair.carry(sent.clone(), 15_000, &mut fate);
        let arrived: Vec<Packet> = arrived.into_iter().map(|(_, packet)| packet).collect();
        let mut left = sent.clone();
        for packet in &arrived {
            let at = left.iter().position(|other| other == packet);
            prop_assert!(at.is_some(), "altered or twice: {:?}", flow_and_number(packet));
            left.remove(at.unwrap());
        }
        let order = |packets: &[Packet], flow: Option<u8>| -> Vec<u32> {
            let of_flow = packets.iter().map(flow_and_number).filter(|(of, _)| flow.is_none_or(|flow| *of == flow));
            of_flow.map(|(_, number)| number).collect()
        };
        match ordered {
            Order::Link => prop_assert!(order(&arrived, None).is_sorted()),
            Order::Flow => for flow in 0..4 { prop_assert!(order(&arrived, Some(flow)).is_sorted()); },
            Order::None => {}
        }
        // All that is missing was given up, and nothing is left over.
        let given_up = pair.count(0, "frames-given-up");
        prop_assert!(arrived.len() as u64 + given_up >= sent.len() as u64);
        prop_assert_eq!(pair.ends[0].core.sender.in_flight(), 0);
        prop_assert_eq!(pair.count(0, "acks-invalid") + pair.count(1, "acks-invalid"), 0);
    }
}

/// An outage fills the window and outlasts all repeated acknowledgements. Then the sender asks, and goes on.
#[test]
fn no_outage_is_too_long() {
    for blocked in [[true, false], [false, true], [true, true]] {
        let config = Config { window: Some(8.try_into().unwrap()), ..Config::default() };
        let mut pair = pair(config, 5);
        let mut step = 0;
        let mut outage = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            step += usize::from(side == 0);
            if (20..60_000).contains(&step) && blocked[side] {
                line.pop_back();
                line.push_back(None);
            }
        };
        let arrived = pair.carry((0..100).map(|number| packet(1, number, 60)), 100_000, &mut outage);
        let last = numbers(&arrived).last().copied();
        assert_eq!(last, Some(99), "{blocked:?}");
        assert!(arrived.len() as u64 + pair.count(0, "frames-given-up") == 100, "{blocked:?}");
    }
}

/// Without a rate many frames leave at one instant, and a long gap is told at once: blocks are no longer than they may be.
#[test]
fn a_long_gap_makes_many_blocks() {
    let mut ends = [0, 1].map(|_| Slacp::new(Config::default(), &LineLimits::new(100, None)));
    let mut now = Instant::ZERO;
    let mut arrived = Vec::new();
    let mut number = 0;
    for round in 0..60 {
        now += MS;
        let [a, b] = &mut ends;
        for count in 0..700 {
            if round == 0 && a.has_room(Treatment::Reliable) && number < 700 {
                a.offer(now, packet(1, number, 60), Treatment::Reliable).unwrap();
                number += 1;
            }
            let mut frame = Vec::new();
            if a.demand(now) == Demand::Nothing || a.poll_frame(now, &mut frame).is_none() {
                break;
            }
            if round > 0 || !(10..600).contains(&count) {
                b.handle_frame(now, &frame).unwrap();
            }
        }
        let mut frame = Vec::new();
        if b.demand(now) > Demand::Nothing && b.poll_frame(now, &mut frame).is_some() {
            a.handle_frame(now, &frame).unwrap();
        }
        for end in &mut ends {
            if end.poll_timeout().is_some_and(|due| due <= now) {
                end.handle_timeout(now);
            }
        }
        arrived.extend(core::iter::from_fn(|| ends[1].poll_packet()));
    }
    assert_eq!(arrived.len(), 700);
    let counters = ends[0].counters();
    let count = |name: &str| counters.iter().find(|(counter, _)| *counter == name).unwrap().1;
    assert_eq!((count("frames-retransmitted"), count("frames-repair")), (590, 590));
}

/// Any bytes, and true frames with some of their bytes changed, do no harm to either side of an end.
#[test]
fn noise_does_no_harm() {
    let mut rng = Rng::named(7, "noise");
    let mut pair = pair(Config::default(), 3);
    let mut noise = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if let Some(Some(frame)) = line.back_mut() {
            let kind = rng.unit();
            let at = (rng.unit() * frame.len() as f64) as usize;
            if kind < 0.3 {
                frame[at] = (rng.unit() * 256.0) as u8;
            } else if kind < 0.35 {
                frame.truncate(at);
            } else if kind < 0.4 {
                line.pop_back();
                line.push_back(None);
            }
        }
    };
    pair.carry((0..5000).map(|number| packet((number % 4) as u8, number, 150)), 20_000, &mut noise);
    // A line that is well again carries what is new.
    pair.ends.iter_mut().for_each(Endpoint::reset);
    pair.lines.iter_mut().for_each(VecDeque::clear);
    let arrived = pair.carry((9000..9010).map(|number| packet(1, number, 60)), 100, &mut intact);
    assert_eq!(numbers(&arrived).iter().filter(|number| **number >= 9000).count(), 10);
}

/// The wait for redundancy is told, and a timer asks for it.
#[test]
fn whoever_waits_is_woken() {
    let mut pair = pair(Config { fec_timer: Some(Duration::from_millis(30)), ..Config::default() }, 5);
    pair.carry((0..20).map(|number| packet(1, number, 60)), 30, &mut losing(&[(4, 1)]));
    let end = &mut pair.ends[0];
    let due = end.poll_timeout().unwrap();
    assert!(end.demand(pair.now) == Demand::Nothing && due > pair.now);
    end.handle_timeout(due);
    assert_eq!(end.demand(due), Demand::Fresh);
    let mut frame = Vec::new();
    assert_eq!(end.poll_frame(due, &mut frame).unwrap().kind, FrameKind::Repair);
}
