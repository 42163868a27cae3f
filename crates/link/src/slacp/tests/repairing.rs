//! What becomes of frames that are lost.

use super::*;

/// Packets of one flow, one frame each.
fn packets(count: u32) -> impl Iterator<Item = Packet> {
    (0..count).map(|number| packet(1, number, 60))
}

fn all_but(missing: &[u32], count: u32) -> Vec<u32> {
    (0..count).filter(|number| !missing.contains(number)).collect()
}

#[test]
fn a_lost_frame_is_sent_again_and_its_redundancy_after_it() {
    let mut pair = pair(Config::default(), 5);
    let arrived = pair.carry(packets(50), 200, &mut losing(&[(7, 1)]));
    assert_eq!(numbers(&arrived), all_but(&[], 50));
    let counts = ["frames-retransmitted", "frames-repair", "frames-given-up"].map(|name| pair.count(0, name));
    assert_eq!(counts, [1, 1, 0]);
    assert_eq!(pair.count(1, "frames-recovered"), 0);
}

#[test]
fn what_is_lost_again_comes_back_from_redundancy() {
    let lost: Vec<_> = (0..8).map(|frame| (frame, 1)).chain([(0, 2), (2, 2), (3, 2), (6, 2)]).collect();
    let mut pair = pair(config("fec-timer = \"20 ms\""), 5);
    let arrived = pair.carry(packets(50), 200, &mut losing(&lost));
    assert_eq!(numbers(&arrived), all_but(&[], 50));
    assert_eq!(pair.count(0, "frames-retransmitted"), 8);
    assert_eq!(pair.count(0, "frames-repair"), 8);
    assert_eq!((pair.count(1, "frames-recovered"), pair.count(0, "frames-given-up")), (4, 0));
}

/// Without redundancy, and with too little of it, a frame whose only retransmission is lost is given up; what waits for it goes up.
#[test]
fn what_cannot_be_recovered_is_given_up() {
    for (text, retransmissions, lost, missing) in [
        ("fec-ratio = 0", 1, vec![(3, 1), (3, 2)], vec![3]),
        ("max-retransmissions = 0", 0, vec![(3, 1), (9, 1), (20, 1)], vec![3, 9, 20]),
        (
            "fec-ratio = 0.25\nfec-timer = \"20 ms\"\nfec-block = 4",
            4,
            vec![(4, 1), (5, 1), (6, 1), (7, 1), (4, 2), (6, 2)],
            vec![4, 6],
        ),
    ] {
        let mut pair = pair(config(text), 5);
        let arrived = pair.carry(packets(50), 300, &mut losing(&lost));
        assert_eq!(pair.count(0, "frames-retransmitted"), retransmissions, "{text}");
        assert_eq!(numbers(&arrived), all_but(&missing, 50), "{text}");
        let given_up = missing.len() as u64;
        assert_eq!(pair.count(0, "frames-given-up"), given_up, "{text}");
        assert_eq!(pair.count(1, "frames-not-awaited"), given_up, "{text}");
        assert_eq!(pair.ends[0].core.sender.in_flight(), 0, "{text}");
    }
}

/// Nothing follows the last frame that would show its loss: the repeated acknowledgement does. The timer is 25 ms here.
#[test]
fn a_lost_tail_is_found_by_a_repeated_acknowledgement() {
    let mut pair = pair(Config::default(), 5);
    let arrived = pair.carry(packets(10), 1500, &mut losing(&[(8, 1), (9, 1)]));
    assert_eq!(numbers(&arrived), all_but(&[], 10));
    assert_eq!(pair.count(0, "frames-retransmitted"), 2);
    let took = arrived.last().unwrap().0;
    assert!(took < Instant::ZERO + MS.saturating_mul(100), "{took:?}");
}

/// Nine repetitions, and then nothing wakes anybody.
#[test]
fn whoever_has_nothing_to_say_is_silent() {
    let mut pair = pair(Config::default(), 5);
    assert_eq!(pair.carry(packets(1), 20_000, &mut intact).len(), 1);
    assert_eq!((pair.count(1, "acks-repeated"), pair.count(0, "acks-asked-for")), (9, 0));
    assert!(
        pair.ends.iter().all(|end| end.poll_timeout().is_none() && end.demand(pair.now) == Demand::Nothing)
    );
}

/// Nobody has heard anything yet that could be repeated.
#[test]
fn the_loss_of_the_first_frames_is_found_by_asking() {
    let mut pair = pair(Config::default(), 5);
    let arrived = pair.carry(packets(3), 6000, &mut losing(&[(0, 1), (1, 1), (2, 1)]));
    assert_eq!(numbers(&arrived), [0, 1, 2]);
    assert_eq!(pair.count(0, "acks-asked-for"), 1);
}

/// With the floor lost too: the receiver says again what it waits for, and is told again.
#[test]
fn a_lost_floor_is_told_again() {
    let (mut lose, mut floors) = (losing(&[(9, 1), (9, 2)]), 0);
    let mut lose_floors_too = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        lose(side, line);
        if let Some(latest @ Some(_)) = line.back_mut()
            && latest.as_ref().is_some_and(|bytes| Frame::parse(bytes).unwrap().extras.floor.is_some())
        {
            floors += 1;
            if floors < 4 {
                *latest = None;
            }
        }
    };
    let mut pair = pair(config("fec-ratio = 0"), 5);
    let arrived = pair.carry(packets(10), 8000, &mut lose_floors_too);
    assert_eq!(numbers(&arrived), all_but(&[9], 10));
    assert_eq!(pair.count(0, "frames-given-up"), 1);
    assert_eq!(pair.ends[0].core.sender.in_flight(), 0);
}

#[test]
fn a_packet_that_is_sent_once_is_not_sent_again() {
    let mut pair = pair(Config::default(), 5);
    let mut sent = 0;
    let mut line = |side, line: &mut VecDeque<Option<Vec<u8>>>| {
        sent += u32::from(side == 0);
        if (side, sent) == (0, 3) {
            line.pop_back();
            line.push_back(None);
        }
    };
    let mut arrived = Vec::new();
    for number in 0..10 {
        pair.ends[0].offer(pair.now, packet(1, number, 60), Treatment::Once).unwrap();
        arrived.extend(pair.step(&mut line).into_iter().flatten());
    }
    arrived.extend((0..50).flat_map(|_| pair.step(&mut line)).flatten());
    let numbers: Vec<u32> = arrived.iter().map(|packet| flow_and_number(packet).1).collect();
    assert_eq!(numbers, all_but(&[2], 10));
    assert_eq!(pair.count(0, "frames-retransmitted"), 0);
}

/// A block's timer or its size completes it.
#[test]
fn a_block_is_complete_when_it_is_full_or_has_waited() {
    for (text, repairs) in
        [("fec-block = 1", 4), ("fec-block = 3", 4), ("fec-timer = \"20 ms\"\nfec-ratio = 0.25", 1)]
    {
        let mut pair = pair(config(text), 5);
        pair.carry(packets(50), 200, &mut losing(&[(4, 1), (5, 1), (6, 1), (7, 1)]));
        assert_eq!(pair.count(0, "frames-repair"), repairs, "{text}");
    }
    let mut pair = pair(config("fec-timer = \"1 s\"\nfec-block = 64"), 5);
    pair.carry(packets(50), 500, &mut losing(&[(4, 1)]));
    assert_eq!(pair.count(0, "frames-repair"), 0);
    pair.carry([], 700, &mut intact);
    assert_eq!(pair.count(0, "frames-repair"), 1);
}

/// What the peer forgot, this end forgets too, and both go on.
#[test]
fn a_peer_that_starts_afresh_is_understood() {
    let mut pair = pair(Config::default(), 5);
    pair.carry(packets(50), 40, &mut losing(&[(3, 1), (4, 1), (30, 1)]));
    pair.ends.iter_mut().for_each(Endpoint::reset);
    pair.lines.iter_mut().for_each(VecDeque::clear);
    let arrived =
        pair.carry((100..150).map(|number| packet(1, number, 60)), 300, &mut losing(&[(3, 1), (4, 1)]));
    let fresh: Vec<u32> = numbers(&arrived).into_iter().filter(|number| *number >= 100).collect();
    assert_eq!(fresh, (100..150).collect::<Vec<_>>());
}

/// An observer hears of each packet that is given up, once, and that it was the link that lost it.
#[test]
fn packets_that_are_given_up_are_told_of() {
    let mut pair = pair(config("fec-ratio = 0"), 5);
    pair.ends[0].observe();
    // Packets of two frames: both of the second are lost twice, and one of the fourth.
    let lost = [2, 3, 6].map(|frame| [(frame, 1), (frame, 2)]).concat();
    let arrived = pair.carry((0..20).map(|number| packet(1, number, 100)), 300, &mut losing(&lost));
    assert_eq!(numbers(&arrived), all_but(&[1, 3], 20));
    let told = core::iter::from_fn(|| pair.ends[0].poll_event()).map(|event| match event {
        Event::GivenUp(packet) => flow_and_number(&packet).1,
        other => panic!("{other:?}"),
    });
    assert_eq!(told.collect::<Vec<_>>(), [1, 3]);
}

/// New data has redundancy if its class asks: what is lost comes back without a retransmission.
#[test]
fn marked_packets_are_protected_from_the_first() {
    let mut pair = pair(config("protect-dscp = [34]\nfec-block = 4\nfec-timer = \"20 ms\""), 5);
    let marked = |number: u32| {
        let mut packet = packet(1, number, 60);
        packet[1] = if number < 8 { 34 << 2 } else { 0 };
        packet
    };
    let arrived = pair.carry((0..20).map(marked), 300, &mut losing(&[(1, 1), (2, 1), (6, 1)]));
    assert_eq!(numbers(&arrived), all_but(&[], 20));
    assert_eq!(pair.count(1, "frames-recovered"), 3);
    // Two blocks of four; the rest is as it was.
    assert_eq!((pair.count(0, "frames-repair"), pair.count(0, "frames-retransmitted")), (8, 0));
}
