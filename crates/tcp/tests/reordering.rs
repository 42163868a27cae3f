//! Segment scripts: how RACK's reordering window follows what is reported, and when a lost retransmission counts (RFC 8985, 6.2; RFC 5681,
//! 4.3).

use crate::script::*;
use longhaul_tcp::{Recovery, TcpConfig};

fn rack() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::Rack;
        it.recovery.limited_transmit = false;
    })
}

/// A segment from `first` on at `at`, and another 10 ms later.
fn two(script: &mut Script, at: u64, first: i64) {
    for number in 0..2 {
        script.at(at + 10 * number as u64);
        script.write(1000);
        script.expect(data(first + 1000 * number, 1000));
    }
}

/// The second of two segments from `first` on, the first of which left at `sent`, is acknowledged after a round trip of 100 ms: the first
/// goes out again when it is as old as that and `window` more. Then all is acknowledged.
#[track_caller]
fn expect_window(script: &mut Script, sent: u64, first: i64, window: u64) {
    script.at(sent + 110);
    script.inject(ack(1, first).sack(&[(first as u32 + 1000, first as u32 + 2000)]));
    script.expect_at(sent + 100 + window, data(first, 1000));
    script.at(sent + 220);
    script.inject(ack(1, first + 2000));
    script.expect_nothing();
}

/// RFC 8985 (6.2, step 4, `RACK.dsack_round`): all D-SACKs of one round trip widen the reordering window once; one of the next round trip
/// widens it again.
#[test]
fn a_round_trip_of_dsacks_widens_the_reordering_window_once() {
    let mut script = Script::with_window(&rack(), 20);
    two(&mut script, 100, 1);
    script.at(210);
    script.inject(ack(1, 2001));
    two(&mut script, 300, 2001);
    for at in [320, 330] {
        script.at(at);
        script.inject(ack(1, 2001).sack(&[(1, 1001)]));
    }
    assert_eq!(script.connection().sender_statistics().dsacks_received, 2);
    expect_window(&mut script, 300, 2001, 50);
    script.at(530);
    script.inject(ack(1, 4001).sack(&[(2001, 3001)]));
    two(&mut script, 600, 4001);
    expect_window(&mut script, 600, 4001, 75);
}

/// RFC 8985 (6.2, step 4): the round ends when what was sent by then is acknowledged, and not sooner.
#[test]
fn the_round_of_a_dsack_ends_with_what_was_outstanding() {
    let mut script = Script::with_window(&rack(), 20);
    two(&mut script, 100, 1);
    script.at(210);
    script.inject(ack(1, 2001));
    two(&mut script, 300, 2001);
    script.at(320);
    script.inject(ack(1, 2001).sack(&[(1, 1001)]));
    // A part of what was outstanding is acknowledged, then all of it: the last D-SACK is of the next round.
    script.at(400);
    script.inject(ack(1, 3001).sack(&[(1, 1001)]));
    script.at(410);
    script.inject(ack(1, 4001).sack(&[(1, 1001)]));
    assert_eq!(script.connection().sender_statistics().dsacks_received, 3);
    two(&mut script, 600, 4001);
    expect_window(&mut script, 600, 4001, 75);
}

/// RFC 8985 (6.2, step 4): the reordering window is a smoothed round trip at most, however often a segment came twice.
#[test]
fn the_reordering_window_is_bounded_by_the_round_trip() {
    let mut script = Script::with_window(&rack(), 20);
    let mut first = 1;
    for round in 0..7 {
        let at = 200 * (round + 1);
        script.at(at);
        script.write(1000);
        script.expect(data(first, 1000));
        first += 1000;
        script.at(at + 100);
        script.inject(ack(1, first).sack(&[(1, 1001)]));
    }
    assert_eq!(script.connection().sender_statistics().dsacks_received, 7);
    // Eight quarters of the least round trip would be two.
    two(&mut script, 2000, first);
    expect_window(&mut script, 2000, first, 100);
}

/// RFC 5681 (4.3): a lost retransmission is a second indication of congestion. Of two that left before the window was lowered for the first,
/// the second tells nothing new, although it is found later.
#[test]
fn retransmissions_before_a_response_are_one_indication() {
    let mut script = Script::with_window(&rack(), 50);
    for number in 0..40 {
        script.at(100 + 2 * number);
        script.write(1000);
    }
    assert_eq!(script.take_count(), 40);
    // The network reorders, by 2 ms.
    script.at(202);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.at(203);
    script.inject(ack(1, 2001));
    // The third segment and the thirteenth are lost; the second of these is found 9 ms later, when it is old enough.
    script.at(240);
    script.inject(ack(1, 2001).sack(&[(3001, 12_001), (13_001, 21_001)]));
    assert_eq!(script.sent(), [2001]);
    script.write(80_000);
    script.at(258);
    script.inject(ack(1, 2001).sack(&[(3001, 12_001), (13_001, 30_001)]));
    let sent = script.sent();
    assert_eq!(sent[..2], [12_001, 40_001], "{sent:?}");
    let end = *sent.last().unwrap() as u32 + 1000;
    script.at(278);
    script.inject(ack(1, 2001).sack(&[(3001, 12_001), (13_001, 40_001)]));
    assert!(script.take_count() > 5);
    let before = script.connection().ssthresh();
    // What was sent behind both retransmissions arrives. A round trip and a quarter of one since the first: 365 ms.
    script.at(358);
    script.inject(ack(1, 2001).sack(&[(13_001, 43_001), (3001, 12_001)]));
    script.at(364);
    assert_eq!(script.connection().ssthresh(), before);
    script.at(366);
    let lowered = script.connection().ssthresh();
    assert!(lowered < before, "{lowered:?} from {before:?}");
    // New data arrive, so that less is in the network when the second one is found.
    for (at, end) in [(368, end), (378, end + 6000)] {
        script.at(at);
        script.inject(ack(1, 2001).sack(&[(13_001, end), (3001, 12_001)]));
    }
    script.at(390);
    assert_eq!(script.connection().ssthresh(), lowered);
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}
