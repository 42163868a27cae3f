//! Cumulative and block acknowledgements in alternation, as of the trailer's leaving (Faulkner 2004, 2.3).

use super::*;

fn acks(endpoint: &mut Cotmll, count: usize) -> Vec<Ack> {
    (0..count).map(|_| next(endpoint).trailer.ack).collect()
}

/// An endpoint that has received frames before `base`.
fn received_up_to(base: u64) -> Cotmll {
    let mut b = endpoint(512);
    for tx in 0..base {
        arrive(&mut b, tx, 0).unwrap();
        delivered(&mut b);
    }
    next(&mut b);
    b
}

#[test]
fn without_a_gap_only_cumulative_ones_go_out() {
    let mut b = endpoint(512);
    for tx in 0..3000 {
        assert_eq!(acks(&mut b, 2), [cumulative((tx % 1024) as u16); 2]);
        arrive(&mut b, tx, 0).unwrap();
        delivered(&mut b);
    }
}

#[test]
fn with_a_gap_they_alternate() {
    for base in [0, 100, 600, 1000, 1023, 1024, 1500] {
        for gap in [1, 100, 511] {
            for len in [1, 127, 128, 400].into_iter().filter(|len| gap + len <= 512) {
                let mut b = received_up_to(base);
                let start = base + gap;
                for tx in start..start + len {
                    arrive(&mut b, tx, 0).unwrap();
                }
                let first = block((start % 1024) as u16, len.min(127) as u8);
                let still = cumulative((base % 1024) as u16);
                assert_eq!(acks(&mut b, 5), [first, still, first, still, first], "{base} {gap} {len}");
                for tx in base..start {
                    arrive(&mut b, tx, 0).unwrap();
                }
                let all = cumulative(((start + len) % 1024) as u16);
                assert_eq!(acks(&mut b, 3), [all; 3], "{base} {gap} {len}");
            }
        }
    }
}

#[test]
fn the_first_of_several_blocks_is_told() {
    let mut b = received_up_to(1020);
    for tx in [1030, 1031, 1035] {
        arrive(&mut b, tx, 0).unwrap();
    }
    assert_eq!(acks(&mut b, 3), [block(6, 2), cumulative(1020), block(6, 2)]);
    // An earlier frame becomes the first block.
    arrive(&mut b, 1028, 0).unwrap();
    assert_eq!(acks(&mut b, 2), [cumulative(1020), block(4, 1)]);
    // It joins the next.
    arrive(&mut b, 1029, 0).unwrap();
    assert_eq!(acks(&mut b, 2), [cumulative(1020), block(4, 4)]);
    // The gap before it closes; the next block takes its place.
    for tx in 1020..1028 {
        arrive(&mut b, tx, 0).unwrap();
    }
    assert_eq!(acks(&mut b, 2), [cumulative(8), block(11, 1)]);
}

/// If that is chosen, what came last is told with what precedes it; once that lies before the gap, the first block again.
#[test]
fn the_latest_of_several_blocks_may_be_told() {
    let mut b = with(Config { block: ToldBlock::Latest, ..Config::default() });
    for tx in [5, 10, 11, 7] {
        arrive(&mut b, tx, 0).unwrap();
    }
    assert_eq!(acks(&mut b, 3), [block(7, 1), cumulative(0), block(7, 1)]);
    // Again, and old news.
    assert_eq!(arrive(&mut b, 10, 0), Err(Discard::Duplicate(10)));
    assert_eq!(acks(&mut b, 2), [cumulative(0), block(7, 1)]);
    arrive(&mut b, 12, 0).unwrap();
    assert_eq!(acks(&mut b, 2), [cumulative(0), block(10, 3)]);
    for tx in 13..200 {
        arrive(&mut b, tx, 0).unwrap();
    }
    assert_eq!(acks(&mut b, 2), [cumulative(0), block(73, 127)]);
    arrive(&mut b, 6, 0).unwrap();
    for tx in 0..5 {
        arrive(&mut b, tx, 0).unwrap();
    }
    assert_eq!(acks(&mut b, 2), [cumulative(8), block(10, 127)]);
}

/// If that is chosen, each gap opens with the cumulative acknowledgement, whichever was told last.
#[test]
fn a_gap_may_open_with_the_cumulative_acknowledgement() {
    let mut b = with(Config { gap_opens_with: GapOpensWith::Cumulative, ..Config::default() });
    arrive(&mut b, 1, 0).unwrap();
    assert_eq!(acks(&mut b, 2), [cumulative(0), block(1, 1)]);
    arrive(&mut b, 0, 0).unwrap();
    arrive(&mut b, 5, 0).unwrap();
    assert_eq!(acks(&mut b, 3), [cumulative(2), block(5, 1), cumulative(2)]);
    for tx in [2, 3, 4, 8] {
        arrive(&mut b, tx, 0).unwrap();
    }
    // The gap before 8 has opened since: it is not the block's turn.
    assert_eq!(acks(&mut b, 2), [cumulative(6), block(8, 1)]);
}

/// The acknowledgement is of the trailer's moment, not of the frame's start.
#[test]
fn an_acknowledgement_is_just_in_time() {
    let mut b = endpoint(512);
    offer(&mut b, 1, 100);
    let mut frame = Vec::new();
    let info = b.poll_frame(NOW, &mut frame).unwrap();
    arrive(&mut b, 0, 0).unwrap();
    let at = frame.len() - info.late_len;
    b.seal_frame(NOW, &mut frame[at..]);
    let (trailer, payload) = Trailer::parse(&frame).unwrap();
    assert_eq!((trailer.ack, trailer.tx, payload.len()), (cumulative(1), 0, 100));
}

/// For comparison it may be of the frame's start: nothing is left to fill.
#[test]
fn an_acknowledgement_may_be_of_the_start() {
    let mut b = with(Config { acknowledge: Acknowledge::Start, ..Config::default() });
    let mut frame = Vec::new();
    let info = b.poll_frame(NOW, &mut frame).unwrap();
    arrive(&mut b, 0, 0).unwrap();
    b.seal_frame(NOW, &mut frame);
    assert_eq!((info.late_len, Trailer::parse(&frame).unwrap().0.ack), (0, cumulative(0)));
    frame.clear();
    b.poll_frame(NOW, &mut frame).unwrap();
    assert_eq!(Trailer::parse(&frame).unwrap().0.ack, cumulative(1));
}

#[test]
fn the_window_ends_at_half_the_sequence_space() {
    let mut b = received_up_to(1000);
    assert_eq!(arrive(&mut b, 1512, 0), Err(Discard::Duplicate(488)));
    assert_eq!(arrive(&mut b, 999, 0), Err(Discard::Duplicate(999)));
    assert_eq!(arrive(&mut b, 1511, 0), Ok(()));
    assert_eq!(arrive(&mut b, 1511, 0), Err(Discard::Duplicate(487)));
    assert_eq!((count(&b, "frames-old"), count(&b, "frames-duplicate")), (2, 1));
    assert_eq!(acks(&mut b, 2), [block(487, 1), cumulative(1000)]);
}
