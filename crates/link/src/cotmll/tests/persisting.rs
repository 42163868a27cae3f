//! Packets that are given up, and what the receiver is told of it.

use super::*;
use FrameKind::{Filler, New};

fn limited(persistence: Option<u64>, attempts: Option<u32>) -> Cotmll {
    with(Config {
        persistence: persistence.map(|secs| Duration::from_secs(secs).try_into().unwrap()),
        attempts: attempts.map(|attempts| attempts.try_into().unwrap()),
        ..Config::default()
    })
}

fn next_at(endpoint: &mut Cotmll, secs: u64) -> Sent {
    let mut frame = Vec::new();
    let info = endpoint.poll_frame(Instant::from_nanos(secs * 1_000_000_000), &mut frame).unwrap();
    endpoint.seal_frame(NOW, &mut frame);
    let (trailer, payload) = Trailer::parse(&frame).unwrap();
    Sent { kind: info.kind, trailer, payload: payload.to_vec() }
}

fn skip(endpoint: &mut Cotmll, start: u16, count: u16) -> Result<(), Discard> {
    let trailer =
        Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack: cumulative(0) };
    deliver(endpoint, trailer, &Skip { start, count }.emit())
}

#[test]
fn a_packet_is_given_up_when_its_time_is_over() {
    let mut a = limited(Some(2), None);
    offer(&mut a, 1, 1000);
    (0..3).for_each(|_| drop(next_at(&mut a, 0)));
    offer(&mut a, 2, 100);
    assert_eq!(next_at(&mut a, 1).kind, New);
    assert_eq!(next_at(&mut a, 1).kind, Filler);
    assert_eq!(a.poll_timeout(), None);
    let told = next_at(&mut a, 2);
    assert_eq!(Skip::parse(&told.payload), Ok(Skip { start: 0, count: 3 }));
    assert_eq!((count(&a, "packets-given-up"), count(&a, "skips-sent")), (1, 1));
    // Never twice in a row, and again until it is acknowledged.
    assert_eq!(next_at(&mut a, 2).trailer.tx, 3);
    assert_eq!(next_at(&mut a, 2).payload, told.payload);
    ack(&mut a, cumulative(3));
    assert_eq!((next_at(&mut a, 2).kind, a.in_flight()), (Filler, 1));
}

#[test]
fn a_packet_is_given_up_instead_of_one_sending_more() {
    let mut a = limited(None, Some(2));
    send_new(&mut a, 1);
    assert_eq!(next(&mut a).kind, Filler);
    assert_eq!(Skip::parse(&next(&mut a).payload), Ok(Skip { start: 0, count: 1 }));
    assert!(!a.is_at_rest(NOW));
    ack(&mut a, cumulative(1));
    next(&mut a);
    assert!(a.is_at_rest(NOW));
}

/// What was given up is news until it was told: the line is asked for at once.
#[test]
fn what_is_given_up_is_told_soon() {
    let mut a = limited(Some(2), None);
    offer(&mut a, 1, 100);
    next_at(&mut a, 0);
    offer(&mut a, 2, 100);
    next_at(&mut a, 1);
    let at = |secs: u64| Instant::from_nanos(secs * 1_000_000_000);
    assert_eq!(Skip::parse(&next_at(&mut a, 2).payload), Ok(Skip { start: 0, count: 1 }));
    assert_eq!(a.demand(at(2)), Demand::Filler);
    // The second one's time is over when it is not this message's turn.
    assert!(next_at(&mut a, 3).payload.is_empty());
    assert_eq!(a.demand(at(3)), Demand::Fresh);
    assert_eq!(Skip::parse(&next_at(&mut a, 3).payload), Ok(Skip { start: 0, count: 2 }));
    assert_eq!(a.demand(at(3)), Demand::Filler);
}

#[test]
fn the_receiver_moves_on_over_what_is_skipped() {
    for ordered in [true, false] {
        let mut b = with(Config { ordered, ..Config::default() });
        fragment(&mut b, 0, true, false, 9).unwrap();
        arrive(&mut b, 3, 3).unwrap();
        skip(&mut b, 0, 3).unwrap();
        assert_eq!(delivered(&mut b), [vec![3; 3]]);
        assert_eq!((next(&mut b).trailer.ack, count(&b, "frames-skipped")), (cumulative(4), 2));
        assert_eq!(count(&b, "packets-incomplete"), 0);
        // Old ones, and those that no sender can mean.
        assert_eq!(skip(&mut b, 0, 3), Err(Discard::Duplicate(0)));
        assert_eq!(skip(&mut b, 5, 512), Err(Discard::OutsideWindow(5)));
        assert_eq!((next(&mut b).trailer.ack, count(&b, "frames-skipped")), (cumulative(4), 2));
        // Half of it old, across the wrap.
        for start in (0..10_u16).map(|round| (2 + round * 500) % 1024) {
            skip(&mut b, start, 502).unwrap();
            assert_eq!(next(&mut b).trailer.ack, cumulative((start + 502) % 1024));
        }
    }
}
