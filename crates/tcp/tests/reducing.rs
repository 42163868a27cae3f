//! Segment scripts: how the window goes down during fast recovery (RFC 9937; Linux 2.4's rate halving).

use crate::script::*;
use longhaul_tcp::{Recovery, ReduceFrom, Reduction, TcpConfig};

fn prr() -> TcpConfig {
    plain().with(|it| it.recovery.reduction = Reduction::Prr)
}

fn halving() -> TcpConfig {
    plain().with(|it| it.recovery.reduction = Reduction::RateHalving)
}

/// Ten segments are out and the first is lost; each of the others arrives. What each acknowledgement let out.
fn one_loss(config: &TcpConfig) -> (Script, Vec<usize>) {
    let mut script = Script::flying(config, 10);
    let mut sent = Vec::new();
    for end in 2..=12 {
        script.inject(ack(1, 1).sack(&[(1001, 1000 * end + 1)]));
        sent.push(script.take_count());
    }
    (script, sent)
}

/// RFC 9937 (6.2): one segment for every two that arrive until ssthresh is reached, where the immediate reduction is
/// silent. Limited transmit answers the first two.
#[test]
fn prr_spreads_a_halving_over_the_round_trip() {
    let (_, immediate) = one_loss(&plain());
    assert_eq!(immediate, [1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    let (script, prr) = one_loss(&prr());
    // RecoverFS is 10 segments: half of what is delivered, until 5 are in the network, and then one for one.
    assert_eq!(prr, [1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1]);
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
}

/// RFC 9937 (6.3): at the end the window is ssthresh.
#[test]
fn prr_ends_with_ssthresh() {
    let (mut script, _) = one_loss(&prr());
    script.at(300);
    script.inject(ack(1, 12_001));
    assert!(!script.connection().recovering());
    assert_eq!(script.connection().cwnd(), 5000);
    let sent = script.take_count() as u64;
    assert_eq!((script.connection().in_flight(), sent), (5000, 1));
}

/// RFC 9937 (6.2), conservative bound: below ssthresh, no more goes out than was delivered while losses turn up.
#[test]
fn prr_is_conservative_while_losses_turn_up() {
    let mut script = Script::flying(&prr(), 10);
    // Seven of ten are lost; what is left in the network is far below ssthresh.
    script.inject(ack(1, 1).sack(&[(7001, 10_001)]));
    assert!(script.connection().recovering());
    // Three segments were delivered and pipe is zero: three go out, where the immediate reduction sends five.
    assert_eq!(script.sent(), [1, 1001, 2001]);
    let mut immediate = Script::flying(&plain(), 10);
    immediate.inject(ack(1, 1).sack(&[(7001, 10_001)]));
    assert_eq!(immediate.take_count(), 5);
}

/// RFC 9937 (6.2), slow start bound: an acknowledgement that advances and shows no loss lets one more go (`SafeACK`).
#[test]
fn prr_catches_up_when_recovery_goes_well() {
    let mut script = Script::flying(&prr(), 10);
    script.inject(ack(1, 1).sack(&[(7001, 10_001)]));
    assert_eq!(script.take_count(), 3);
    script.at(300);
    script.inject(ack(1, 1001).sack(&[(7001, 10_001)]));
    assert_eq!(script.sent(), [3001, 4001]);
    script.inject(ack(1, 2001).sack(&[(7001, 10_001)]));
    assert_eq!(script.sent(), [5001, 6001]);
    // ssthresh is reached: from here on one for one.
    script.inject(ack(1, 3001).sack(&[(7001, 10_001)]));
    assert_eq!(script.sent(), [10_001]);
}

/// RFC 9937 (6.2): an advance that exposes a further loss is not safe: one for one.
#[test]
fn prr_does_not_catch_up_while_losses_are_found() {
    let mut script = Script::flying(&prr(), 20);
    // 13 are lost, 4 in the network, ssthresh is 10: three were delivered.
    script.inject(ack(1, 1).sack(&[(13_001, 16_001)]));
    assert_eq!(script.sent(), [1, 1001, 2001]);
    script.at(300);
    // Four more, and 16001 is newly lost.
    script.inject(ack(1, 1001).sack(&[(17_001, 20_001), (13_001, 16_001)]));
    assert_eq!(script.sent(), [3001, 4001, 5001, 6001]);
}

/// RFC 9937 (6.2): whatever the computation says, the fast retransmit goes out.
#[test]
fn prr_always_lets_the_fast_retransmit_out() {
    let config = prr().with(|it| {
        it.recovery.limited_transmit = false;
        it.recovery.scheme = Recovery::NewReno;
    });
    let mut script = Script::flying(&config, 10);
    for _ in 0..3 {
        script.inject(ack(1, 1));
    }
    assert_eq!(script.sent(), [1]);
}

/// RFC 9937 (6.2): without selective acknowledgements a duplicate stands for a segment.
#[test]
fn prr_counts_duplicates_where_nothing_else_tells() {
    let config = prr().with(|it| {
        it.recovery.limited_transmit = false;
        it.recovery.scheme = Recovery::NewReno;
    });
    let mut script = Script::flying(&config, 10);
    let mut sent = Vec::new();
    for _ in 0..9 {
        script.inject(ack(1, 1));
        sent.push(script.take_count());
    }
    assert_eq!(sent, [0, 0, 1, 0, 0, 1, 1, 1, 1]);
    script.at(300);
    script.inject(ack(1, 10_001));
    assert_eq!(script.connection().cwnd(), 5000, "RFC 6582's first option is for the immediate reduction");
}

/// A time-out ends a reduction: the window is the controller's loss window (RFC 5681, 3.1).
#[test]
fn a_timeout_ends_a_reduction() {
    for config in [prr(), halving()] {
        let (mut script, _) = one_loss(&config);
        script.quiet_before(400);
        script.at(400);
        assert_eq!(script.sent(), [1]);
        assert_eq!(script.connection().cwnd(), 1000);
    }
}

/// Linux 2.4, `tcp_cwnd_down`: a segment for every two acknowledgements, from the first on.
#[test]
fn rate_halving_sends_for_every_second_acknowledgement() {
    let (script, sent) = one_loss(&halving());
    assert_eq!(sent, [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(script.connection().ssthresh(), Some(5000));
}

/// Linux 2.4, `tcp_complete_cwr`: the window at the end is what it has come down to, if that is below ssthresh.
#[test]
fn rate_halving_ends_with_the_lower_window() {
    let mut script = Script::flying(&halving(), 10);
    // Seven of ten are lost at once: one segment more than what is left in the network.
    script.inject(ack(1, 1).sack(&[(7001, 10_001)]));
    assert_eq!(script.sent(), [1]);
    script.at(300);
    script.inject(ack(1, 10_001));
    assert!(!script.connection().recovering());
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(5000)));
}

/// Linux 2.4: the window is never more than a segment beyond what is in the network.
#[test]
fn rate_halving_sends_no_bursts() {
    let mut script = Script::flying(&halving(), 10);
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    assert_eq!(script.sent(), [1]);
    script.at(300);
    // Six segments arrive in one acknowledgement.
    script.inject(ack(1, 1).sack(&[(1001, 10_001)]));
    assert_eq!(script.sent().len(), 1);
}

/// NewReno and rate halving, as Linux 2.4 without selective acknowledgements.
#[test]
fn rate_halving_works_from_duplicates() {
    let config = halving().with(|it| {
        it.recovery.limited_transmit = false;
        it.recovery.scheme = Recovery::NewReno;
    });
    let mut script = Script::flying(&config, 10);
    let mut sent = Vec::new();
    for _ in 0..9 {
        script.inject(ack(1, 1));
        sent.push(script.take_count());
    }
    assert_eq!(sent, [0, 0, 1, 0, 1, 0, 1, 0, 1]);
}

/// RFC 5681 (3.1), equation 4, takes half of `FlightSize`; Linux half of cwnd, of which less may have been in use.
#[test]
fn a_reduction_starts_from_flight_size_or_from_cwnd() {
    for (reduce_from, ssthresh) in [(ReduceFrom::FlightSize, 5000), (ReduceFrom::Cwnd, 10_000)] {
        let mut script = Script::with_window(&plain().with(|it| it.recovery.reduce_from = reduce_from), 20);
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.at(200);
        for end in 2..=4 {
            script.inject(ack(1, 1).sack(&[(1001, 1000 * end + 1)]));
        }
        assert_eq!(script.connection().ssthresh(), Some(ssthresh));
    }
}
