//! Segment scripts: fine-grained expiry (Brakmo and Peterson 1995, 3.1).

use crate::script::*;
use longhaul_tcp::config::VegasConfig;
use longhaul_tcp::{Congestion, Recovery, TcpConfig};

fn vegas(recovery: Recovery) -> TcpConfig {
    coarse().with(|it| {
        it.recovery.scheme = recovery;
        it.recovery.fine_grained_expiry = Some(true);
    })
}

fn coarse() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::NewReno;
        it.recovery.limited_transmit = false;
    })
}

/// Six round trips of 100 ms have made the fine-grained time-out about 140 ms, where the coarse one is 300 ms; then
/// ten segments leave at 800 ms, the first ending at 7001.
fn flight(config: &TcpConfig) -> Script {
    let mut script = Script::with_window(config, 10);
    for at in 0..6 {
        script.write(1000);
        script.at(200 + 100 * at);
        script.inject(ack(1, 1001 + 1000 * at as i64));
    }
    script.at(800);
    script.take_count();
    script.write(10_000);
    assert_eq!(script.take_count(), 10);
    script
}

/// Brakmo and Peterson 1995 (3.1): the first duplicate is enough if the segment is overdue.
#[test]
fn the_first_duplicate_sends_an_overdue_segment_again() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut script = flight(&vegas(recovery));
        script.at(960);
        script.inject(ack(1, 6001));
        assert_eq!(script.sent(), [6001]);
        assert_eq!((script.connection().ssthresh(), script.connection().recovering()), (Some(5000), true));
    }
}

/// Brakmo and Peterson 1995 (3.1): the same with selective acknowledgements.
#[test]
fn the_first_selective_acknowledgement_does_too() {
    for recovery in [Recovery::Sack, Recovery::Fack] {
        let mut script = flight(&vegas(recovery));
        script.at(960);
        script.inject(ack(1, 6001).sack(&[(7001, 8001)]));
        assert_eq!(script.sent(), [6001]);
        assert_eq!(script.connection().sender_statistics().recoveries, 1);
    }
}

/// Brakmo and Peterson 1995 (3.1): Vegas has it unless told otherwise, whatever preset it runs with; Reno has not.
#[test]
fn vegas_looks_for_expiry_by_itself() {
    let sent = |fine_grained_expiry, congestion| {
        let mut script = flight(&coarse().with(|it| {
            it.recovery.fine_grained_expiry = fine_grained_expiry;
            it.congestion = congestion;
        }));
        script.at(960);
        script.inject(ack(1, 6001));
        script.take_count()
    };
    assert_eq!(sent(None, Congestion::Vegas(VegasConfig::default())), 1);
    assert_eq!(sent(Some(false), Congestion::Vegas(VegasConfig::default())), 0);
    assert_eq!(sent(None, Congestion::Reno), 0);
    assert_eq!(sent(Some(true), Congestion::Reno), 1);
    for preset in ["linux", "rfc", "reference", "enhanced"] {
        let preset = TcpConfig::preset(preset).expect("a preset");
        assert!(!preset.expires_finely());
        assert!(
            TcpConfig { congestion: Congestion::Vegas(VegasConfig::default()), ..preset }.expires_finely()
        );
    }
}

/// With selective acknowledgements the first duplicate (RFC 6675, 2) may advance SND.UNA as well.
#[test]
fn a_first_duplicate_that_advances_looks() {
    let mut script = flight(&vegas(Recovery::Sack));
    script.at(910);
    script.inject(ack(1, 6001).sack(&[(8001, 12_001), (13_001, 16_001)]));
    assert_eq!(script.sent(), [6001, 7001, 12_001]);
    script.at(920);
    script.write(4000);
    assert_eq!(script.sent(), [16_001, 17_001]);
    // The two new acknowledgements after a retransmission.
    script.at(1010);
    script.inject(ack(1, 7001).sack(&[(8001, 12_001), (13_001, 16_001)]));
    script.inject(ack(1, 12_001).sack(&[(13_001, 16_001)]));
    assert_eq!(script.sent(), [18_001, 19_001]);
    // Recovery ends; 16001 left 180 ms ago.
    script.at(1100);
    script.inject(ack(1, 16_001).sack(&[(17_001, 18_001)]));
    assert_eq!(script.sent(), [16_001]);
    assert_eq!(script.connection().sender_statistics().recoveries, 2);
}

/// What follows the first duplicate without being one is no reason: here a report of data that came twice (RFC 2883).
#[test]
fn what_is_no_duplicate_does_not_look() {
    for recovery in [Recovery::Sack, Recovery::Fack] {
        let mut script = flight(&vegas(recovery));
        script.at(910);
        script.inject(ack(1, 6001).sack(&[(7001, 8001)]));
        script.expect_nothing();
        script.at(990);
        script.inject(ack(1, 6001).sack(&[(5001, 6001), (7001, 8001)]));
        script.expect_nothing();
        assert_eq!(script.connection().sender_statistics().dsacks_received, 1);
    }
}

/// Brakmo and Peterson 1995 (3.1): a young segment waits for three duplicates, and without the setting an old one does
/// too.
#[test]
fn three_duplicates_otherwise() {
    let mut young = flight(&vegas(Recovery::NewReno));
    young.at(910);
    young.inject(ack(1, 6001));
    young.inject(ack(1, 6001));
    young.expect_nothing();
    young.inject(ack(1, 6001));
    assert_eq!(young.sent(), [6001]);
    let mut coarse =
        flight(&vegas(Recovery::NewReno).with(|it| it.recovery.fine_grained_expiry = Some(false)));
    coarse.at(960);
    coarse.inject(ack(1, 6001));
    coarse.expect_nothing();
}

/// Brakmo and Peterson 1995 (3.1): the second duplicate is no reason to look again.
#[test]
fn the_second_duplicate_does_not_look() {
    let mut script = flight(&vegas(Recovery::NewReno));
    script.at(910);
    script.inject(ack(1, 6001));
    script.at(990);
    script.inject(ack(1, 6001));
    script.expect_nothing();
}

/// Brakmo and Peterson 1995 (3.1): the first and the second new acknowledgement after a retransmission look at the next
/// segment: Reno repairs three losses of a window without a time-out.
#[test]
fn two_acknowledgements_after_a_retransmission_look() {
    let mut script = flight(&vegas(Recovery::Reno));
    script.at(960);
    script.inject(ack(1, 6001));
    assert_eq!(script.sent(), [6001]);
    script.at(1060);
    script.inject(ack(1, 8001));
    assert_eq!(script.sent(), [8001]);
    script.at(1160);
    script.inject(ack(1, 10_001));
    assert_eq!(script.sent(), [10_001]);
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
    // All had been sent before the controller's response: it is not told again.
    assert_eq!(script.connection().ssthresh(), Some(5000));
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// Brakmo and Peterson 1995 (3.1): the third new acknowledgement after a retransmission does not look.
#[test]
fn the_third_acknowledgement_does_not_look() {
    let mut script = flight(&vegas(Recovery::Reno));
    script.at(910);
    for _ in 0..3 {
        script.inject(ack(1, 6001));
    }
    assert_eq!(script.sent(), [6001]);
    // Two come while the next segment is young, the third late.
    script.at(920);
    script.inject(ack(1, 7001));
    script.inject(ack(1, 8001));
    script.at(1000);
    script.inject(ack(1, 9001));
    script.expect_nothing();
}

/// Brakmo and Peterson 1995 (3.1): a segment that left after the controller's response is news to it.
#[test]
fn a_later_loss_is_told() {
    let mut script = flight(&vegas(Recovery::NewReno));
    script.at(960);
    script.inject(ack(1, 6001));
    assert_eq!(script.sent(), [6001]);
    script.at(1060);
    script.inject(ack(1, 16_001));
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
    script.write(2000);
    assert_eq!(script.take_count(), 2);
    script.at(1260);
    script.inject(ack(1, 16_001));
    assert_eq!(script.sent(), [16_001]);
    assert_eq!(script.connection().sender_statistics().recoveries, 2);
}

/// Brakmo and Peterson 1995 (3.1): nothing is sent twice because of it: a segment that a partial acknowledgement sends
/// again goes out once.
#[test]
fn newreno_and_expiry_do_not_send_twice() {
    let mut script = flight(&vegas(Recovery::NewReno));
    script.at(960);
    script.inject(ack(1, 6001));
    assert_eq!(script.sent(), [6001]);
    script.at(1060);
    script.inject(ack(1, 8001));
    assert_eq!(script.sent(), [8001]);
    assert_eq!(script.connection().ssthresh(), Some(5000));
}
