//! Segment scripts: recovery with selective acknowledgements (RFC 6675).

use crate::script::*;
use base::Duration;
use longhaul_tcp::{ForwardRto, Recovery, TcpConfig};

fn ten_out(config: &TcpConfig) -> Script {
    Script::flying(config, 10)
}

/// RFC 6675 (5): three segments beyond a gap, and the window is ruled by `pipe`.
#[test]
fn sack_retransmits_after_three_segments_beyond_a_gap() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    // Limited transmit is part of RFC 6675 (5, step 3): each one that arrived lets a new one go.
    script.expect(data(10_001, 1000));
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    script.expect(data(11_001, 1000));
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    script.expect(data(1, 1000));
    script.expect_nothing();
    assert!(script.connection().recovering());
    // Limited transmit is not in FlightSize (RFC 5681, 3.2, 2).
    assert_eq!((script.connection().cwnd(), script.connection().in_flight()), (5000, 9000));
    for (end, sent) in [(5001, 0), (6001, 0), (7001, 0), (8001, 0), (9001, 1), (10_001, 1)] {
        script.inject(ack(1, 1).sack(&[(1001, end)]));
        assert_eq!(script.take_count(), sent, "after {end}");
    }
    // The hole is filled; up to what was out when recovery began, all is acknowledged.
    script.at(300);
    script.inject(ack(1, 12_001));
    assert!(!script.connection().recovering());
    assert_eq!(script.connection().cwnd(), 5000);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
}

/// `IsLost`, second test (RFC 6675, 4): more than two segments' bytes beyond are enough, in one acknowledgement.
#[test]
fn sack_needs_no_three_duplicates() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    assert!(!script.connection().recovering());
    script.take_count();
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(1001, 3002)]));
    script.expect(data(1, 1000));
    assert!(script.connection().recovering());
}

/// `IsLost`, first test (RFC 6675, 4): three separate runs beyond.
#[test]
fn sack_counts_separate_runs() {
    let config = plain();
    let mut script = Script::with_window(&config, 10);
    for _ in 0..12 {
        script.write(100);
    }
    assert_eq!(script.take_count(), 12);
    script.inject(ack(1, 1).sack(&[(301, 401), (101, 201), (501, 601)]));
    script.expect(data(1, 100));
    assert!(script.connection().recovering());
}

/// `NextSeg` (RFC 6675, 4): lost segments in order, then new data.
#[test]
fn sack_repairs_all_holes_in_one_round_trip() {
    let mut script = ten_out(&plain());
    // 1, 3 and 5 of ten are missing.
    script.inject(ack(1, 1).sack(&[(5001, 10_001), (3001, 4001), (1001, 2001)]));
    script.expect(data(1, 1000));
    script.expect(data(2001, 1000));
    script.expect(data(4001, 1000));
    // pipe is 3 segments, the window 5.
    script.expect(data(10_001, 1000));
    script.expect(data(11_001, 1000));
    script.expect_nothing();
    script.at(300);
    script.inject(ack(1, 2001).sack(&[(5001, 10_001), (3001, 4001)]));
    script.expect(data(12_001, 1000));
    assert_eq!(script.connection().sender_statistics().retransmissions, 3);
}

/// RFC 6675: `NextSeg`, rules 3 and 4: without new data, what is not yet deemed lost, and then the last segment as a
/// rescue.
#[test]
fn sack_uses_an_open_window_for_doubtful_segments() {
    let mut script = Script::with_window(&plain(), 10);
    script.write(10_000);
    assert_eq!(script.take_count(), 10);
    script.at(200);
    // 1 is lost by the bytes beyond it; 5 and 7 are in doubt; 9 and 10 are unknown.
    script.inject(ack(1, 1).sack(&[(1001, 4001), (5001, 6001), (7001, 8001)]));
    script.expect(data(1, 1000));
    // pipe: 5, 7, 9, 10 and the retransmission are 5 segments of 5.
    script.expect_nothing();
    script.inject(ack(1, 1001).sack(&[(1001, 4001), (5001, 6001), (7001, 8001)]));
    script.inject(ack(1, 4001).sack(&[(5001, 6001), (7001, 8001)]));
    script.expect(data(4001, 1000));
    script.inject(ack(1, 6001).sack(&[(7001, 8001)]));
    script.expect(data(6001, 1000));
    script.expect(data(9001, 1000));
    script.expect_nothing();
    // One rescue a recovery.
    script.inject(ack(1, 8001));
    script.expect_nothing();
    script.inject(ack(1, 10_001));
    assert!(!script.connection().recovering());
    assert_eq!(script.connection().flight_size(), 0);
}

/// RFC 6675 (5, step 4.3, and 4, `NextSeg` rule 4): `RescueRxt` keeps the round trip of the first retransmission free
/// of rescues, of what is lost and of the tail.
#[test]
fn no_rescue_before_a_partial_acknowledgement() {
    for recovery in [Recovery::Sack, Recovery::Fack] {
        let mut script = Script::with_window(&plain().with(|it| it.recovery.scheme = recovery), 10);
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.at(200);
        for end in 2..=10 {
            script.inject(ack(1, 1).sack(&[(1001, 1000 * end + 1)]));
        }
        assert_eq!(script.sent(), [1], "{recovery:?}");
        script.at(300);
        script.inject(ack(1, 10_001));
        assert_eq!(script.connection().sender_statistics().retransmissions, 1);
    }
}

/// RFC 6675: the same with an unknown tail: an acknowledgement of the first retransmission alone is not above
/// `RescueRxt` yet, one of more is. There is one rescue a recovery.
#[test]
fn a_rescue_follows_a_partial_acknowledgement() {
    for recovery in [Recovery::Sack, Recovery::Fack] {
        let mut script = Script::with_window(&plain().with(|it| it.recovery.scheme = recovery), 10);
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.at(200);
        for end in 3..=8 {
            script.inject(ack(1, 1).sack(&[(2001, 1000 * end + 1)]));
        }
        // 1 and 1001 are lost, 8001 and 9001 unknown.
        assert_eq!(script.sent(), [1, 1001], "{recovery:?}");
        script.at(300);
        script.inject(ack(1, 1001).sack(&[(2001, 8001)]));
        script.expect_nothing();
        script.inject(ack(1, 8001));
        script.expect(data(9001, 1000));
        script.inject(ack(1, 9001));
        script.expect_nothing();
        script.inject(ack(1, 10_001));
        assert!(!script.connection().recovering());
        assert_eq!(script.connection().sender_statistics().retransmissions, 3);
    }
}

/// RFC 6298 (3), Karn's algorithm: the answer to a rescue may be to the first copy, and is no round trip.
#[test]
fn a_rescue_gives_no_round_trip() {
    let mut script = Script::with_window(&plain(), 10);
    script.write(10_000);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 1).sack(&[(2001, 8001)]));
    assert_eq!(script.sent(), [1, 1001]);
    script.at(300);
    script.inject(ack(1, 8001));
    assert_eq!(script.sent(), [9001], "the rescue");
    script.inject(ack(1, 9001));
    let before = script.connection().srtt();
    script.at(305);
    script.inject(ack(1, 10_001));
    assert_eq!(
        (script.connection().srtt(), script.connection().rtt_min()),
        (before, Some(Duration::from_millis(100)))
    );
}

/// RFC 6675 (4, rule 4): a segment that was sent again just now needs no rescue.
#[test]
fn a_retransmission_is_not_rescued() {
    let mut script = Script::with_window(&plain(), 10);
    script.write(10_000);
    script.take_count();
    script.at(200);
    // 1, 1001 and 5001 are lost; the window of 5 holds them.
    script.inject(ack(1, 1).sack(&[(2001, 5001), (6001, 10_001)]));
    assert_eq!(script.sent(), [1, 1001, 5001]);
    script.at(300);
    script.inject(ack(1, 5001).sack(&[(6001, 10_001)]));
    script.expect_nothing();
    assert!(script.connection().recovering());
}

/// RFC 6675 (4, rule 4): a rescue does not move `HighRxt`: rule 1 sends the segment once more if it is deemed lost.
#[test]
fn a_rescued_segment_that_is_lost_is_sent_again() {
    let mut script = Script::with_window(&plain(), 10);
    script.write(10_000);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 1).sack(&[(2001, 8001)]));
    assert_eq!(script.sent(), [1, 1001]);
    script.at(300);
    script.inject(ack(1, 8001));
    assert_eq!(script.sent(), [9001], "the rescue");
    script.write(3000);
    assert_eq!(script.sent(), [10_001, 11_001, 12_001]);
    script.at(400);
    // 8001 and the rescue are lost.
    script.inject(ack(1, 8001).sack(&[(10_001, 13_001)]));
    assert_eq!(script.sent(), [8001, 9001]);
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
}

/// RFC 6675 (5.1): after a time-out, what the peer has is not sent again.
#[test]
fn a_timeout_spares_what_was_sacked() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(4001, 6001)]));
    script.take_count();
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 1001).sack(&[(4001, 6001)]));
    script.expect(data(1001, 1000));
    script.expect(data(2001, 1000));
    script.inject(ack(1, 3001).sack(&[(4001, 6001)]));
    script.expect(data(3001, 1000));
    script.expect(data(6001, 1000));
}

/// RFC 2018 (8): a peer that takes back what it had acknowledged selectively is served again after a time-out.
#[test]
fn reneging_is_survived() {
    for f_rto in [ForwardRto::Off, ForwardRto::Basic, ForwardRto::Sack] {
        let mut script = Script::with_window(&plain().with(|it| it.recovery.f_rto = f_rto), 4);
        script.write(4000);
        assert_eq!(script.take_count(), 4);
        script.at(200);
        script.inject(ack(1, 1).sack(&[(1001, 3001)]));
        script.inject(ack(1, 1001));
        script.expect_nothing();
        script.expect_at(500, data(1001, 1000));
        script.inject(ack(1, 2001));
        script.expect(data(2001, 1000));
        script.expect(data(3001, 1000));
        script.inject(ack(1, 4001));
        assert_eq!(script.connection().flight_size(), 0);
    }
}

/// Blocks that report duplicates (RFC 2883), or that cannot be, are ignored.
#[test]
fn impossible_blocks_are_ignored() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 3001));
    script.take_count();
    let before = script.connection().in_flight();
    script.inject(ack(1, 3001).sack(&[(1, 1001), (5001, 4001), (20_001, 90_001), (4001, 4001)]));
    script.expect_nothing();
    assert_eq!(script.connection().in_flight(), before);
    assert!(!script.connection().recovering());
    // A block that begins below the cumulative acknowledgement counts from there.
    script.inject(ack(1, 3001).sack(&[(2001, 4001)]));
    assert_eq!(script.connection().in_flight(), before - 1000 + 1000 * script.take_count() as u64);
}

/// RFC 6298 (5.3): repair keeps the timer from expiring.
#[test]
fn sack_recovery_restarts_the_timer() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(1001, 4001), (5001, 9001)]));
    script.expect(data(1, 1000));
    script.expect(data(4001, 1000));
    script.at(390);
    script.inject(ack(1, 4001).sack(&[(5001, 9001)]));
    script.take_count();
    script.at(390 + 299);
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
}

/// RFC 6675: a second loss after recovery is a second halving.
#[test]
fn each_recovery_halves_once() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(1001, 10_001)]));
    assert_eq!(script.connection().cwnd(), 5000);
    let sent = script.take_count() as i64;
    script.at(300);
    script.inject(ack(1, 10_001));
    let edge = 10_001 + 1000 * (sent - 1 + script.take_count() as i64);
    assert_eq!(edge, 15_001);
    script.at(400);
    script.inject(ack(1, 10_001).sack(&[(11_001, 15_001)]));
    assert_eq!(script.connection().cwnd(), 2500);
    assert_eq!(script.connection().sender_statistics().recoveries, 2);
}

/// RFC 6675 (5, step 3): limited transmit can be left out; then what was sacked opens no window before recovery.
#[test]
fn sack_can_do_without_limited_transmit() {
    let mut script = ten_out(&plain().with(|it| it.recovery.limited_transmit = false));
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    script.expect_nothing();
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    assert_eq!(script.sent(), [1]);
}

/// RFC 6675 (5): a cumulative acknowledgement sets `DupAcks` back; separate runs below the bound start nothing.
#[test]
fn duplicates_do_not_add_up_over_an_advance() {
    let mut script = ten_out(&plain());
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    script.inject(ack(1, 3001));
    script.inject(ack(1, 3001).sack(&[(4001, 5001)]));
    script.inject(ack(1, 3001).sack(&[(4001, 6001)]));
    assert!(!script.connection().recovering());
    script.take_count();
    script.inject(ack(1, 3001).sack(&[(4001, 7001)]));
    script.expect(data(3001, 1000));
}

/// RFC 6675 (5.1): no new recovery below the `RecoveryPoint` of a time-out; beyond it there is one.
#[test]
fn sack_starts_no_recovery_below_a_timeouts_recovery_point() {
    let mut script = ten_out(&plain());
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 1001));
    script.take_count();
    script.inject(ack(1, 1001).sack(&[(3001, 9001)]));
    assert!(!script.connection().recovering());
    script.inject(ack(1, 10_001));
    assert_eq!(script.sent(), [10_001, 11_001, 12_001]);
    script.inject(ack(1, 10_001).sack(&[(11_001, 13_001)]));
    assert_eq!(script.sent(), [13_001, 14_001]);
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
    script.inject(ack(1, 10_001).sack(&[(11_001, 14_001)]));
    assert_eq!(script.sent()[0], 10_001);
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}
