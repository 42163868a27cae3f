//! What is sent again, when, and what is given up.

use super::*;

fn short(count: u32) -> impl Iterator<Item = Packet> {
    (0..count).map(|number| packet(1, number, 60))
}

/// Later transmissions show what is lost: it is sent again after a round trip and three blocks, before what is new.
#[test]
fn a_lost_block_is_sent_again_soon() {
    let mut pair = pair(config(""), 50);
    let arrived = pair.carry(short(40), 2000, &mut losing(&[(3, 1)]));
    assert_eq!(numbers(&arrived), (0..40).collect::<Vec<_>>());
    // The fourth block ends at 40 ms. Then three more, their way there, the way back, and the block once more.
    let of_third = arrived[3].0.saturating_since(Instant::ZERO);
    assert!((180..230).contains(&of_third.as_millis()), "{of_third}");
    assert_eq!((pair.count(0, "time-outs"), pair.count(0, "blocks-retransmitted")), (0, 1));
}

/// Nothing follows that could show the loss: the timer does, by the round trip that was measured, however short beside a block.
#[test]
fn the_last_block_is_sent_again_in_time() {
    for (text, delay, soon, late) in
        [("", 50, 100, 300), ("", 1, 10, 100), ("fragments = 40\ndata = 10", 1, 40, 200)]
    {
        let mut pair = pair(config(text), delay);
        let arrived = pair.carry(short(40), 4000, &mut losing(&[(39, 1)]));
        assert_eq!(arrived.len(), 40);
        let waited = arrived[39].0.saturating_since(arrived[38].0);
        assert!((soon..late).contains(&waited.as_millis()), "{text} {delay}: {waited}");
        assert_eq!((pair.count(0, "time-outs"), pair.count(0, "blocks-retransmitted")), (1, 1));
    }
}

/// No block is ever whole, and no transmission's last fragment comes: reports tell all the same which transmissions are over.
#[test]
fn transmissions_that_fail_are_reported() {
    let mut pair = pair(config(""), 20);
    let mut without_last = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if side == 0 && latest(line).is_some_and(|header| header.index >= 8) {
            lose(line);
        }
    };
    pair.carry(short(100), 2900, &mut without_last);
    assert_eq!(pair.count(0, "time-outs"), 0);
    assert!(pair.count(0, "blocks-given-up") > 20);
}

/// The window is full of blocks on their way: a long round trip costs no throughput.
#[test]
fn the_line_never_waits() {
    let mut pair = pair(config(""), 600);
    let arrived = pair.carry(short(1000), 5600, &mut intact);
    // A block takes 10 steps.
    assert!(arrived.len() >= 490, "{}", arrived.len());
    assert_eq!(pair.count(0, "blocks-retransmitted"), 0);
}

/// What was sent in vain as often as it may be is given up: those after it go up, in order, and an observer hears of it.
#[test]
fn what_is_given_up_holds_up_nobody() {
    let lost = [(3, 1), (3, 2), (3, 3), (3, 4)];
    let mut pair = pair(config(""), 20);
    pair.ends[0].observe();
    let arrived = pair.carry(short(100), 3000, &mut losing(&lost));
    assert_eq!(numbers(&arrived), (0..100).filter(|number| *number != 3).collect::<Vec<_>>());
    assert_eq!(pair.ends[0].poll_event(), Some(Event::GivenUp(packet(1, 3, 60))));
    assert_eq!((pair.count(0, "blocks-given-up"), pair.count(1, "blocks-not-awaited")), (1, 1));
    let waited = arrived[3].0.saturating_since(arrived[2].0);
    assert!(waited < MS * 500, "{waited}");
}

/// A report shows what is to be given up when there is nothing more to send: the receiver hears of it at once.
#[test]
fn the_floor_goes_alone_if_need_be() {
    let mut pair = pair(config("transmissions = 2"), 50);
    let arrived = pair.carry(short(24), 1000, &mut losing(&[(3, 1), (3, 2)]));
    assert_eq!(arrived.len(), 23);
    // The second transmission at 170 ms, that of the third one after it at 200 ms, its way and the report's, and the floor's.
    let of_fourth = arrived[3].0.saturating_since(Instant::ZERO);
    assert!((300..380).contains(&of_fourth.as_millis()), "{of_fourth}");
    assert_eq!((pair.count(0, "time-outs"), pair.count(0, "acks-asked-for")), (0, 0));
}

/// The floor is told again until it is known, with nothing behind it but what waits already, and with up to three
/// control frames lost.
#[test]
fn the_floor_is_told_until_it_is_known() {
    for unlucky in 0..4 {
        let mut losing = losing(&[(3, 1), (3, 2), (3, 3), (3, 4)]);
        let mut control = 0;
        let mut fate = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            let is_control = line.back().is_some_and(Option::is_some) && latest(line).is_none();
            if side == 0 && is_control {
                control += 1;
                if control <= unlucky {
                    lose(line);
                }
            }
            losing(side, line);
        };
        let mut pair = pair(config(""), 20);
        let arrived = pair.carry(short(6), 60_000, &mut fate);
        assert_eq!(numbers(&arrived), [0, 1, 2, 4, 5], "{unlucky}");
        assert_eq!(pair.ends[0].core.sender.in_flight(), 0);
        assert_eq!(pair.count(0, "acks-asked-for"), unlucky, "the first goes unasked");
    }
}

/// An outage fills the window and outlasts all transmissions. Then the sender asks, and goes on.
#[test]
fn no_outage_is_too_long() {
    for blocked in [[true, false], [false, true], [true, true]] {
        let config = Config { window: Some(8.try_into().unwrap()), ..Config::default() };
        let mut pair = pair(config, 5);
        let mut step = 0;
        let mut outage = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            step += usize::from(side == 0);
            if (200..100_000).contains(&step) && blocked[side] {
                lose(line);
            }
        };
        let arrived = pair.carry(short(100), 150_000, &mut outage);
        assert_eq!(numbers(&arrived).last(), Some(&99), "{blocked:?}");
        assert!(arrived.len() as u64 + pair.count(0, "blocks-given-up") >= 100, "{blocked:?}");
        assert!(numbers(&arrived).is_sorted());
    }
}

/// Fragments of different transmissions make a block together, or they do not.
#[test]
fn transmissions_count_together_if_told() {
    for (text, expected) in [("", 0), ("combine = true", 1)] {
        let mut pair = pair(config(text), 5);
        // Of each transmission half comes.
        let mut halving = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            if side == 0 && latest(line).is_some_and(|header| header.index % 2 == 0) {
                lose(line);
            }
        };
        let arrived = pair.carry(short(1), 20_000, &mut halving);
        assert_eq!(arrived.len(), expected, "{text}");
        assert_eq!(pair.count(0, "blocks-retransmitted"), if expected == 1 { 1 } else { 3 });
        assert_eq!(pair.count(0, "blocks-given-up"), 1 - expected as u64);
    }
}

/// What asks to be sent once is coded too, and never repeated nor reported.
#[test]
fn what_is_sent_once_is_sent_once() {
    let mut pair = pair(config(""), 5);
    let mut arrived = Vec::new();
    let mut sent = 0;
    for step in 0..2000_u32 {
        if sent < 50 && pair.ends[0].has_room(Treatment::Once) {
            pair.ends[0].offer(pair.now, packet(1, sent, 60), Treatment::Once).unwrap();
            sent += 1;
        }
        let mut one_in_twenty = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            if side == 0 && (step % 20 < 2) {
                lose(line);
            }
            assert!(side == 0 || line.back() == Some(&None), "a report");
        };
        let [_, there] = pair.step(&mut one_in_twenty);
        arrived.extend(there.iter().map(|packet| flow_and_number(packet).1));
    }
    // Of two fragments in twenty steps, both hit the same block: every second is lost.
    assert_eq!((arrived.len(), arrived.is_sorted()), (25, true), "{arrived:?}");
    assert_eq!((pair.count(0, "blocks-once"), pair.count(0, "blocks-retransmitted")), (50, 0));
    assert_eq!(pair.count(1, "blocks-missing"), 25 - u64::from(arrived[24] != 49));
}

/// Calls and files share the line by bytes.
#[test]
fn what_is_sent_once_does_not_starve_the_rest() {
    let mut pair = pair(config(""), 5);
    let mut counts = [0_u32; 2];
    for number in 0..4000 {
        for (flow, treatment) in [(0, Treatment::Reliable), (1, Treatment::Once)] {
            if pair.ends[0].has_room(treatment) {
                pair.ends[0].offer(pair.now, packet(flow, number, 300), treatment).unwrap();
            }
        }
        let [_, there] = pair.step(&mut intact);
        there.iter().for_each(|packet| counts[usize::from(flow_and_number(packet).0)] += 1);
    }
    assert!(counts[0] + counts[1] >= 395 && counts[0].abs_diff(counts[1]) <= 4, "{counts:?}");
}

/// Behind a buffer a block's time runs from when it has left.
#[test]
fn what_is_still_in_the_buffer_is_not_late() {
    let mut end = Harq::new(config(""), &LINE.behind_buffer());
    end.offer(Instant::ZERO, packet(1, 0, 60), Treatment::Reliable).unwrap();
    let mut frames = 0;
    while end.poll_frame(Instant::ZERO, &mut Vec::new()).is_some() {
        frames += 1;
    }
    assert_eq!((frames, end.poll_timeout()), (10, None));
    let left = Instant::ZERO + Duration::from_secs(20);
    (0..9).for_each(|_| end.handle_departure(left - MS));
    assert_eq!(end.poll_timeout(), None);
    end.handle_departure(left);
    assert_eq!(end.poll_timeout(), Some(left + Duration::from_secs(3)), "no round trip is known");
    end.handle_timeout(left + Duration::from_secs(3));
    let mut frame = Vec::new();
    let info = end.poll_frame(left + Duration::from_secs(3), &mut frame).unwrap();
    assert_eq!(info.kind, FrameKind::Retransmission);
}

/// A report that does not come costs one transmission, which is answered although it says nothing new.
#[test]
fn a_lost_report_costs_a_sending() {
    check_lost_report(&mut pair(config(""), 20));
}

/// Sends a packet of which the report is lost.
pub(super) fn check_lost_report(pair: &mut Pair<Harq>) {
    let count = |pair: &Pair<Harq>| {
        (
            pair.count(0, "blocks-retransmitted"),
            pair.count(0, "blocks-given-up"),
            pair.count(1, "frames-duplicate"),
        )
    };
    let (again, given_up, duplicates) = count(pair);
    let mut lost = 0;
    let mut losing_one = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if side == 1 && lost == 0 && line.back().is_some_and(Option::is_some) {
            lost += 1;
            lose(line);
        }
    };
    let arrived = pair.carry(short(1), 60_000, &mut losing_one);
    assert_eq!((arrived.len(), lost), (1, 1));
    assert_eq!(count(pair), (again + 1, given_up, duplicates + 1));
}
