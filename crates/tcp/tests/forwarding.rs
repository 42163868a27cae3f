//! Segment scripts: forward acknowledgement (Mathis and Mahdavi 1996; Linux 2.4).

use crate::script::*;
use longhaul_tcp::{Recovery, TcpConfig};

fn fack() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::Fack;
        it.recovery.limited_transmit = false;
    })
}

/// Mathis and Mahdavi 1996 (3.1): one selective acknowledgement more than three segments ahead starts recovery, where
/// RFC 6675 waits for three segments' worth of them.
#[test]
fn a_forward_acknowledgement_starts_recovery() {
    let mut script = Script::flying(&fack(), 10);
    script.inject(ack(1, 1).sack(&[(4001, 5001)]));
    assert!(script.connection().recovering());
    assert_eq!(script.sent()[0], 1);
    let mut sack = Script::flying(&fack().with(|it| it.recovery.scheme = Recovery::Sack), 10);
    sack.inject(ack(1, 1).sack(&[(4001, 5001)]));
    assert!(!sack.connection().recovering());
}

/// Mathis and Mahdavi 1996 (3.1): exactly three segments ahead is not enough; the third duplicate is.
#[test]
fn three_segments_ahead_are_not_enough() {
    let mut script = Script::flying(&fack(), 10);
    script.inject(ack(1, 1).sack(&[(2001, 3001)]));
    script.expect_nothing();
    let mut script = Script::flying(&fack(), 10);
    for end in [2001, 3001] {
        script.inject(ack(1, 1).sack(&[(1001, end)]));
    }
    script.expect_nothing();
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    assert_eq!(script.sent(), [1]);
}

/// Linux 2.4, `tcp_update_scoreboard`: all holes more than three segments below `snd.fack` are lost at once.
#[test]
fn everything_well_below_the_forward_acknowledgement_is_lost() {
    let mut script = Script::flying(&fack(), 10);
    script.inject(ack(1, 1).sack(&[(7001, 8001)]));
    // 1 to 4001 are lost; 5001 and 6001 are within three segments; 8001 and 9001 beyond. The window is 5.
    assert_eq!(script.sent(), [1]);
    assert_eq!(script.connection().in_flight(), 5000);
    script.inject(ack(1, 1).sack(&[(7001, 9001)]));
    // 5001 is lost now, and 8001 has arrived.
    assert_eq!(script.sent(), [1001, 2001]);
    assert_eq!(script.connection().in_flight(), 5000);
}

/// Linux 2.4, `tcp_update_reordering`: reordering by more than three segments ends it; RFC 6675 is left.
#[test]
fn reordering_ends_it() {
    let mut script = Script::flying(&fack(), 12);
    script.inject(ack(1, 1).sack(&[(5001, 6001)]));
    assert_eq!(script.sent(), [1]);
    // 1001 comes late, four segments behind 5001's end, and was never sent again.
    script.inject(ack(1, 1).sack(&[(1001, 2001), (5001, 6001)]));
    script.at(300);
    script.inject(ack(1, 12_001));
    let sent = script.sent();
    let first = sent[0];
    script.at(400);
    // A single segment far ahead is no loss any more.
    script.inject(ack(1, first).sack(&[(first as u32 + 4000, first as u32 + 5000)]));
    assert_eq!(script.connection().sender_statistics().recoveries, 1, "{sent:?}");
}

/// Linux 2.4: reordering within the three segments changes nothing.
#[test]
fn slight_reordering_does_not() {
    let mut script = Script::flying(&fack(), 12);
    script.inject(ack(1, 1).sack(&[(2001, 3001)]));
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    script.inject(ack(1, 3001));
    script.take_count();
    script.inject(ack(1, 3001).sack(&[(7001, 8001)]));
    assert!(script.connection().recovering());
}

/// Recovery goes on as with RFC 6675: one halving, and the window ruled by what is in the network.
#[test]
fn a_recovery_halves_once() {
    let mut script = Script::flying(&fack(), 10);
    script.inject(ack(1, 1).sack(&[(4001, 5001)]));
    for end in 6..=10 {
        script.inject(ack(1, 1).sack(&[(4001, 1000 * end + 1)]));
    }
    script.at(300);
    script.inject(ack(1, 10_001));
    assert!(!script.connection().recovering());
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// Kojo et al. 2005, Enhanced TCP: FACK with rate halving sends for every second acknowledgement of a recovery.
#[test]
fn it_goes_with_rate_halving() {
    let config = fack().with(|it| it.recovery.reduction = longhaul_tcp::Reduction::RateHalving);
    let mut script = Script::flying(&config, 10);
    let mut sent = Vec::new();
    for end in 2..=10 {
        script.inject(ack(1, 1).sack(&[(1001, 1000 * end + 1)]));
        sent.push(script.take_count());
    }
    assert_eq!(sent, [0, 0, 1, 0, 1, 0, 1, 0, 1]);
}
