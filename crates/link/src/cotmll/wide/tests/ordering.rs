//! Who waits for whom.

use super::*;

/// When each packet of three flows arrives if the first frame is lost: flow 1 has packets 0 and 3, flow 2 packet 1, flow 3 packet 2.
fn arrivals(ordered: Order) -> Vec<(u32, u64)> {
    let mut pair = pair(Config { ordered, ..Config::default() }, 10);
    let mut first = true;
    let mut losing = |side: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
        if side == 0 && core::mem::take(&mut first) {
            line.pop_back();
            line.push_back(None);
        }
    };
    let sent = [(1, 0), (2, 1), (3, 2), (1, 3)].map(|(flow, number)| packet(flow, number, 60));
    let arrived = pair.carry(sent, 60, &mut losing);
    let ms = |at: Instant| at.saturating_since(Instant::ZERO).as_nanos() / 1_000_000;
    arrived.iter().map(|(at, packet)| (flow_and_number(packet).1, ms(*at))).collect()
}

#[test]
fn packets_wait_for_their_own_flow_only() {
    let flow = arrivals(Order::Flow);
    assert_eq!((flow[0], flow[1]), ((1, 12), (2, 13)));
    assert_eq!((flow[2].0, flow[3].0), (0, 3));
    assert!(flow[2].1 > 14 && flow[2].1 == flow[3].1, "{flow:?}");
    let link = arrivals(Order::Link);
    assert!(link.iter().map(|(number, _)| *number).eq(0..4));
    assert!(link.iter().all(|(_, at)| *at == link[0].1), "{link:?}");
    let none = arrivals(Order::None);
    assert_eq!(none[..3], [(1, 12), (2, 13), (3, 14)]);
    assert_eq!(none[3].0, 0);
}

/// A chain: each packet waits for the one before, of which one after the other comes.
#[test]
fn those_that_waited_follow_in_turn() {
    let mut receiver = Receiver::new(Order::Flow);
    let mut ready = Ready::holding(10);
    let mut take = |sequence, back, payload: &[u8]| {
        let part = Part { first: true, last: true, sequence, back, payload };
        receiver.handle(&part, &mut ready).unwrap();
        core::iter::from_fn(|| ready.pop()).map(|packet| packet[0]).collect::<Vec<_>>()
    };
    assert!(take(5, 2, &[5]).is_empty());
    assert!(take(3, 2, &[3]).is_empty());
    assert_eq!(take(4, 0, &[4]), [4], "another flow");
    assert_eq!(take(1, 0, &[1]), [1, 3, 5]);
    assert_eq!(take(2, 1, &[2]), [2], "its predecessor has been delivered");
    assert!(take(7, 1, &[7]).is_empty());
    assert_eq!(take(0, 0, &[0]), [0]);
    assert_eq!(take(6, 0, &[6]), [6, 7]);
}

/// A receiver gets a frame with one byte, its own number.
fn arrive(receiver: &mut Receiver, ready: &mut Ready, sequence: u32, first: bool, last: bool) {
    let part = Part { first, last, sequence, back: 0, payload: &[sequence as u8] };
    receiver.handle(&part, ready).unwrap();
}

/// A packet of several frames goes up when the last of them comes, whichever that is.
#[test]
fn a_packet_beyond_a_gap_is_put_together() {
    for last_to_come in 1..4 {
        let mut receiver = Receiver::new(Order::Flow);
        let mut ready = Ready::holding(10);
        for sequence in [1, 2, 3].into_iter().filter(|n| *n != last_to_come).chain([last_to_come]) {
            assert!(ready.pop().is_none());
            arrive(&mut receiver, &mut ready, sequence, sequence == 1, sequence == 3);
        }
        assert_eq!(&*ready.pop().unwrap(), [1, 2, 3]);
    }
}

/// Only a peer that breaks the rules begins a packet within another.
#[test]
fn fragments_that_do_not_fit_together_are_dropped_and_counted() {
    let mut receiver = Receiver::new(Order::Flow);
    let mut ready = Ready::holding(10);
    for (sequence, first, last) in [(1, true, false), (3, true, false), (4, false, true), (2, false, false)] {
        arrive(&mut receiver, &mut ready, sequence, first, last);
    }
    assert_eq!(&*ready.pop().unwrap(), [3, 4]);
    assert!(ready.pop().is_none());
    // The one that began is given up where the other shows, and goes on with nothing behind that.
    for (sequence, first, last) in [(5, false, true), (0, true, true)] {
        arrive(&mut receiver, &mut ready, sequence, first, last);
    }
    assert_eq!(&*ready.pop().unwrap(), [0]);
    assert!(ready.pop().is_none());
    assert_eq!(receiver.incomplete(), 2);
}

/// A window of long frames beyond a gap takes no more memory than there is; the gap's frame always gets in.
#[test]
fn what_is_held_beyond_a_gap_is_bounded_in_bytes() {
    let mut receiver = Receiver::new(Order::Link);
    let mut ready = Ready::holding(10_000);
    let payload = vec![7; 60_000];
    let frame = |sequence| Part { first: true, last: true, sequence, back: 0, payload: &payload };
    let taken = (1..5000).take_while(|sequence| receiver.handle(&frame(*sequence), &mut ready).is_ok());
    let fitting = taken.count() as u32;
    // Buffers are longer than what is in them, and there are notes.
    assert!((3900..(256 << 20) / 66_000).contains(&fitting), "{fitting}");
    let beyond = fitting + 1;
    assert_eq!(receiver.handle(&frame(beyond), &mut ready), Err(Discard::OutsideWindow(beyond.into())));
    receiver.handle(&frame(0), &mut ready).unwrap();
    assert_eq!(std::iter::from_fn(|| ready.pop()).count() as u32, beyond);
    receiver.handle(&frame(beyond + 1), &mut ready).unwrap();
}
