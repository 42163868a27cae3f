use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// What a receiver tells once these serials have come, all at one instant.
fn told(serials: impl IntoIterator<Item = u32>) -> Progress {
    let mut receiver = Receiver::new(Order::Flow);
    serials.into_iter().for_each(|serial| receiver.on_serial(at(1), LineId::FIRST, serial));
    receiver.progress(LineId::FIRST)
}

#[test]
fn the_share_of_losses_is_told_and_forgotten() {
    assert_eq!(told(1..=1000).loss, 0);
    // One for every 7 that come: 37 of 256.
    let one_in_eight = told((1..=8000).filter(|serial| serial % 8 != 0)).loss;
    assert!((34..=40).contains(&one_in_eight), "{one_in_eight}");
    let every_other = told((1..=8000).filter(|serial| serial % 2 != 0)).loss;
    assert!(every_other >= 250, "{every_other}");
    let then_none = (1..=8000).filter(|serial| serial % 8 != 0).chain(8001..=8000 + 2 * LOSS_MEMORY);
    assert!((1..one_in_eight / 5).contains(&told(then_none).loss));
}

#[test]
fn a_frame_that_was_only_overtaken_is_no_loss() {
    let mut receiver = Receiver::new(Order::Flow);
    [1, 3].into_iter().for_each(|serial| receiver.on_serial(at(1), LineId::FIRST, serial));
    assert_eq!(receiver.progress(LineId::FIRST).loss, 1);
    receiver.on_serial(at(2), LineId::FIRST, 2);
    assert_eq!(receiver.progress(LineId::FIRST).loss, 0);
}

/// A frame that ends the wait for many overtaken ones counts all of them at once.
#[test]
fn many_losses_at_once_are_no_more_than_all() {
    let mut receiver = Receiver::new(Order::Flow);
    [1, 3].into_iter().for_each(|serial| receiver.on_serial(at(1), LineId::FIRST, serial));
    receiver.on_serial(at(21), LineId::FIRST, 2);
    (0..300).for_each(|number| receiver.on_serial(at(30), LineId::FIRST, 5 + 2 * number));
    assert_eq!(receiver.progress(LineId::FIRST).loss, 0, "each may have been overtaken");
    receiver.on_serial(at(60), LineId::FIRST, 604);
    assert_eq!(receiver.progress(LineId::FIRST).loss, 255);
}

#[test]
fn long_runs_of_losses_are_told_as_such() {
    let in_runs = |lost: u32| told((0..100).map(|number| number * (lost + 1))).in_runs;
    assert!(!in_runs(1) && !in_runs(LONG_RUN - 1));
    assert!(in_runs(LONG_RUN + 1) && in_runs(10 * LONG_RUN));
}

/// One run that takes seconds is forgotten as soon as one of `LONGEST_RUN` is.
#[test]
fn a_single_run_does_not_last() {
    let after = |run: u32| told([run + 1, run + 3, run + 5]);
    assert!(told([LONGEST_RUN as u32 + 1]).in_runs && !told([LONGEST_RUN as u32]).in_runs);
    assert!(told([1_000_001]).in_runs && !after(1_000_000).in_runs);
}

/// A receiver that got the frames with these numbers, of packets of two frames, told with the bytes that come up.
fn take(receiver: &mut Receiver, sequences: &[u32]) -> Vec<Vec<u8>> {
    let mut ready = Ready::holding(10);
    for &sequence in sequences {
        let (first, last) = (sequence % 2 == 0, sequence % 2 == 1);
        let part = Part { first, last, sequence, back: 0, payload: &[sequence as u8] };
        receiver.handle(&part, &mut ready).unwrap();
    }
    core::iter::from_fn(|| ready.pop()).map(|packet| packet.to_vec()).collect()
}

fn raise_floor(receiver: &mut Receiver, floor: u32) -> (bool, usize) {
    let mut ready = Ready::holding(10);
    (receiver.on_floor(floor, &mut ready), core::iter::from_fn(|| ready.pop()).count())
}

#[test]
fn a_floor_beyond_all_that_came_gives_up_the_packet_that_was_begun() {
    let mut receiver = Receiver::new(Order::Flow);
    assert!(take(&mut receiver, &[0]).is_empty());
    assert_eq!(raise_floor(&mut receiver, 5), (true, 0));
    assert_eq!((receiver.next(), receiver.given_up(), receiver.incomplete()), (5, 4, 1));
    assert!(take(&mut receiver, &[5]).is_empty(), "it is no end of what began with 0");
    assert_eq!(take(&mut receiver, &[6, 7]), [[6, 7]]);
    assert_eq!(raise_floor(&mut receiver, 8), (false, 0), "that is no news");
}

/// What lies before the floor and has come goes on, however the packet ends.
#[test]
fn a_floor_within_a_packet_that_has_begun_leaves_it_whole() {
    for order in [Order::Flow, Order::Link, Order::None] {
        let mut receiver = Receiver::new(order);
        assert!(take(&mut receiver, &[2]).is_empty());
        assert_eq!(raise_floor(&mut receiver, 3), (true, 0));
        assert_eq!((receiver.next(), receiver.given_up()), (3, 2));
        assert!(!receiver.has_gap());
        assert_eq!(take(&mut receiver, &[3]), [[2, 3]]);
        assert_eq!(receiver.incomplete(), 0);
    }
}

#[test]
fn what_was_seen_before_the_floor_is_no_gap() {
    let mut receiver = Receiver::new(Order::Flow);
    receiver.see(3);
    assert!(receiver.has_gap());
    assert_eq!(raise_floor(&mut receiver, 5), (true, 0));
    assert!(!receiver.has_gap());
}
