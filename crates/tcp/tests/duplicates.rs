//! Segment scripts: recovery from cumulative acknowledgements and their duplicates (RFC 5681, RFC 6582, RFC 3042).

use crate::script::*;
use base::{Duration, Instant};
use longhaul_tcp::{ExitWindow, InitialWindow, PartialAcks, Recovery, TcpConfig};

fn reno() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::Reno;
        it.recovery.limited_transmit = false;
    })
}

fn newreno() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::NewReno;
        it.recovery.limited_transmit = false;
    })
}

fn ten_out(config: &TcpConfig) -> Script {
    Script::flying(config, 10)
}

fn duplicates(script: &mut Script, at: i64, count: usize) {
    for _ in 0..count {
        script.inject(ack(1, at));
    }
}

/// RFC 5681 (3.2), steps 2 to 4: retransmit, ssthresh and three segments, a segment for each further duplicate.
#[test]
fn reno_retransmits_and_inflates() {
    let mut script = ten_out(&reno());
    duplicates(&mut script, 1, 2);
    script.expect_nothing();
    duplicates(&mut script, 1, 1);
    script.expect(data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
    duplicates(&mut script, 1, 2);
    script.expect_nothing();
    duplicates(&mut script, 1, 2);
    assert_eq!(script.sent(), [10_001, 11_001]);
}

/// RFC 5681 (3.2), step 6: any new acknowledgement ends fast recovery; the second hole waits.
#[test]
fn reno_leaves_at_the_first_new_acknowledgement() {
    let mut script = ten_out(&reno());
    duplicates(&mut script, 1, 4);
    script.expect(data(1, 1000));
    script.at(300);
    script.inject(ack(1, 3001));
    assert!(!script.connection().recovering());
    assert_eq!(script.connection().cwnd(), 5000);
    script.expect_nothing();
}

/// RFC 5681 (3.2): a second loss of the window is found, and halves, again.
#[test]
fn reno_halves_for_each_loss_of_a_window() {
    let mut script = ten_out(&reno());
    duplicates(&mut script, 1, 3);
    script.expect(data(1, 1000));
    script.at(300);
    script.inject(ack(1, 3001));
    duplicates(&mut script, 3001, 3);
    script.expect(data(3001, 1000));
    assert_eq!(script.connection().ssthresh(), Some(3500));
    assert_eq!(script.connection().sender_statistics().recoveries, 2);
}

/// RFC 6582 (1): what it cures. Reno takes the echo of segments sent twice for a loss.
#[test]
fn reno_recovers_after_a_timeout_without_need() {
    let mut script = ten_out(&reno());
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [2001, 3001]);
    duplicates(&mut script, 2001, 3);
    script.expect(data(2001, 1000));
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
    // What the time-out left to send again is still sent again: ssthresh, 2, and three segments.
    assert_eq!(script.sent(), [4001, 5001, 6001]);
    script.at(600);
    script.inject(ack(1, 6001));
    assert!(!script.connection().recovering());
    assert_eq!(script.sent(), [7001]);
}

/// RFC 5681 (3.2), RFC 6582 (3.2): the third duplicate retransmits, halves, and inflates.
#[test]
fn newreno_retransmits_on_the_third_duplicate() {
    let mut script = ten_out(&newreno());
    script.inject(ack(1, 1));
    script.inject(ack(1, 1));
    script.expect_nothing();
    script.inject(ack(1, 1));
    script.expect(data(1, 1000));
    script.expect_nothing();
    assert!(script.connection().recovering());
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
    // 5 + 3 segments are allowed and 10 are out: the third further duplicate lets one go.
    script.inject(ack(1, 1));
    script.inject(ack(1, 1));
    script.expect_nothing();
    script.inject(ack(1, 1));
    script.expect(data(10_001, 1000));
    // All is acknowledged: min(ssthresh, max(FlightSize, SMSS) + SMSS) = 2 segments.
    script.at(300);
    script.inject(ack(1, 10_001));
    assert!(!script.connection().recovering());
    script.expect(data(11_001, 1000));
    script.expect_nothing();
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (2000, Some(5000)));
}

/// RFC 6582 (3.2, step 3): a partial acknowledgement repairs the next hole at once and deflates.
#[test]
fn newreno_repairs_a_hole_per_round_trip() {
    let mut script = ten_out(&newreno());
    for _ in 0..8 {
        script.inject(ack(1, 1));
    }
    script.expect(data(1, 1000));
    // Window 5 + 8: three new segments.
    for at in [10_001, 11_001, 12_001] {
        script.expect(data(at, 1000));
    }
    script.expect_nothing();
    script.at(300);
    // 3 segments acknowledged: 13 - 3 + 1 = 11 allowed; 10 are out.
    script.inject(ack(1, 3001));
    script.expect(data(3001, 1000));
    script.expect(data(13_001, 1000));
    script.expect_nothing();
    assert!(script.connection().recovering());
    script.at(400);
    script.inject(ack(1, 13_001));
    assert!(!script.connection().recovering());
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
    assert_eq!(script.connection().sender_statistics().retransmissions, 2);
}

/// RFC 6582 (3.2, step 3), "impatient": only the first partial acknowledgement restarts the timer.
#[test]
fn newreno_is_impatient() {
    let mut script = ten_out(&newreno());
    for _ in 0..3 {
        script.inject(ack(1, 1));
    }
    script.expect(data(1, 1000));
    script.at(300);
    script.inject(ack(1, 2001));
    script.expect(data(2001, 1000));
    // No sample since the handshake: RTO 300 ms from the first partial acknowledgement on.
    script.at(400);
    script.inject(ack(1, 3001));
    script.expect(data(3001, 1000));
    script.expect_at(600, data(3001, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
}

/// RFC 6582 (3.2, step 3), "slow but steady": every partial acknowledgement does.
#[test]
fn newreno_can_be_slow_but_steady() {
    let mut script = ten_out(&newreno().with(|it| it.recovery.partial_acks = PartialAcks::SlowButSteady));
    duplicates(&mut script, 1, 3);
    script.expect(data(1, 1000));
    for (at, acked) in [(300, 2001), (400, 3001), (500, 4001)] {
        script.at(at);
        script.inject(ack(1, acked));
        script.expect(data(acked, 1000));
        script.take_count();
    }
    script.expect_at(800, data(4001, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
}

/// RFC 6582 (3.2, step 3): thirty losses in a window take thirty round trips, or a time-out and slow start.
#[test]
fn thirty_losses_part_the_impatient_from_the_steady() {
    let took = |partial_acks| {
        let config = TcpConfig::default().with(|it| {
            it.recovery.scheme = Recovery::NewReno;
            it.recovery.partial_acks = partial_acks;
            it.window.initial = InitialWindow::Segments(64);
            it.mss = Some(1000);
            it.timestamps = false;
        });
        let mut pair = crate::pair::Pair::new(3, crate::pair::Path::clean(250), &config);
        // The client's packets: SYN, ACK, and then data. Every other one of sixty is lost.
        pair.drop_if = Box::new(|side, _, count| side == 0 && (2..62).contains(&count) && count % 2 == 0);
        pair.connect(&config);
        pair.ends[0].to_send = 64_000;
        pair.drain();
        assert!(pair.run_until(Duration::from_secs(60), |pair| pair.ends[1].received == 64_000));
        (pair.now.saturating_since(Instant::ZERO), pair.connection(0).sender_statistics().timeouts)
    };
    let (impatient, timeouts) = took(PartialAcks::Impatient);
    assert!(timeouts > 0 && impatient < Duration::from_secs(7), "{impatient}, {timeouts} time-outs");
    let (steady, timeouts) = took(PartialAcks::SlowButSteady);
    assert!(timeouts == 0 && steady > Duration::from_secs(15), "{steady}, {timeouts} time-outs");
}

/// RFC 6582 (3.2, step 3), full acknowledgement, option 2.
#[test]
fn newreno_can_leave_with_ssthresh() {
    let mut script = ten_out(&newreno().with(|it| it.recovery.exit_window = ExitWindow::Ssthresh));
    duplicates(&mut script, 1, 3);
    script.expect(data(1, 1000));
    script.at(300);
    script.inject(ack(1, 10_001));
    assert_eq!((script.connection().cwnd(), script.take_count()), (5000, 5));
}

/// RFC 6582 (3.2, step 3), full acknowledgement, option 1: what is out and a segment, up to ssthresh.
#[test]
fn newreno_leaves_with_what_is_out() {
    let mut script = ten_out(&newreno());
    duplicates(&mut script, 1, 9);
    assert_eq!(script.sent(), [1, 10_001, 11_001, 12_001, 13_001]);
    script.at(300);
    script.inject(ack(1, 10_001));
    assert_eq!(script.connection().cwnd(), 5000, "each recovery costs the window");
}

/// RFC 2018 (2): blocks of a peer that has not agreed to them say nothing.
#[test]
fn blocks_that_were_not_agreed_on_are_not_believed() {
    let config = newreno().with(|it| it.window.initial = InitialWindow::Segments(10));
    let mut script = Script::connected(&config, 100, syn_ack());
    script.write(10_000);
    assert_eq!(script.take_count(), 10);
    script.inject(ack(1, 1).sack(&[(1001, 9001)]));
    assert_eq!(script.connection().in_flight(), 10_000);
    script.expect_nothing();
}

/// RFC 6582 (4.1): after a time-out, duplicates that follow a small advance are a loss.
#[test]
fn the_acknowledgement_heuristic_finds_a_loss_after_a_timeout() {
    let mut script = ten_out(&newreno().with(|it| it.recovery.ack_heuristic = true));
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [2001, 3001]);
    duplicates(&mut script, 2001, 3);
    script.expect(data(2001, 1000));
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// RFC 6582 (4.1): nor at a window of one segment: there duplicates can be of nothing else than what was sent twice.
#[test]
fn the_acknowledgement_heuristic_needs_a_window() {
    let config = newreno().with(|it| it.recovery.ack_heuristic = true);
    let mut script = ten_out(&config);
    script.expect_at(400, data(1, 1000));
    assert_eq!(script.connection().cwnd(), 1000);
    duplicates(&mut script, 1, 3);
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 6582 (4.1): after an advance of more than four segments they are not.
#[test]
fn the_acknowledgement_heuristic_knows_echoes() {
    let mut script = ten_out(&newreno().with(|it| it.recovery.ack_heuristic = true));
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 7001));
    script.take_count();
    duplicates(&mut script, 7001, 3);
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 5681 (3.1): after a time-out the window is one segment, whatever duplicates had added to it.
#[test]
fn a_timeout_takes_what_duplicates_added() {
    let mut script = ten_out(&reno());
    duplicates(&mut script, 1, 6);
    script.take_count();
    while script.connection().sender_statistics().timeouts == 0 {
        script.at(script.now.as_nanos() / 1_000_000 + 10);
    }
    assert_eq!(script.sent(), [1], "a burst");
}

/// RFC 5681 (2): what is not a duplicate does not count.
#[test]
fn acknowledgements_with_data_or_another_window_are_no_duplicates() {
    let mut script = ten_out(&newreno());
    for at in 0..4 {
        script.inject(ack(1 + i64::from(at) * 10, 1).window(50_000 + at));
        script.inject(data(1 + i64::from(at) * 10, 10).window(50_000 + at));
    }
    assert_eq!(script.take_count(), 2, "acknowledgements of the data");
    assert_eq!(script.connection().sender_statistics().duplicate_acks, 0);
    assert!(!script.connection().recovering());
}

/// RFC 6582 (3.2, step 2; 4): after a time-out, duplicates of old data start no second recovery.
#[test]
fn newreno_does_not_recover_twice_for_one_loss() {
    let mut script = ten_out(&newreno());
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 2001));
    script.expect(data(2001, 1000));
    script.expect(data(3001, 1000));
    for _ in 0..6 {
        script.inject(ack(1, 2001));
    }
    script.expect_nothing();
    script.inject(ack(1, 10_001));
    script.take_count();
    for _ in 0..6 {
        script.inject(ack(1, 10_001));
    }
    script.expect_nothing();
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 6298 (5.4), RFC 5681 (3.1): after a time-out all is sent again in order, as slow start allows.
#[test]
fn a_timeout_sends_everything_again() {
    let mut script = ten_out(&newreno());
    script.expect_at(400, data(1, 1000));
    let mut acked = 1;
    let mut resent = 1;
    for round in 0..4 {
        script.at(500 + 100 * round);
        acked += 1000 * resent;
        script.inject(ack(1, acked.min(10_001)));
        resent = script.take_count() as i64;
    }
    assert_eq!(script.connection().sender_statistics().retransmissions, 10);
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
}

/// RFC 3042 (2): each of the first two duplicates lets a new segment out, and `FlightSize` does not count them
/// (RFC 5681, 3.2, 2).
#[test]
fn limited_transmit_answers_the_first_two_duplicates() {
    for config in [newreno(), reno()] {
        let mut script = ten_out(&config.with(|it| it.recovery.limited_transmit = true));
        duplicates(&mut script, 1, 1);
        script.expect(data(10_001, 1000));
        duplicates(&mut script, 1, 1);
        script.expect(data(11_001, 1000));
        duplicates(&mut script, 1, 1);
        script.expect(data(1, 1000));
        script.expect_nothing();
        assert_eq!(script.connection().ssthresh(), Some(5000));
    }
}

/// RFC 3042 (2): not beyond the peer's window.
#[test]
fn limited_transmit_keeps_to_the_peers_window() {
    let mut script = Script::with_window(&newreno().with(|it| it.recovery.limited_transmit = true), 10);
    script.peer_window = 11_000;
    script.inject(ack(1, 1));
    script.write(40_000);
    assert_eq!(script.take_count(), 10);
    duplicates(&mut script, 1, 2);
    assert_eq!(script.sent(), [10_001]);
}

/// RFC 3042 (2): outstanding data never exceed the window by more than two segments.
#[test]
fn limited_transmit_sends_two_segments_at_most() {
    let mut script = ten_out(&newreno().with(|it| it.recovery.limited_transmit = true));
    script.expect_at(400, data(1, 1000));
    script.at(500);
    script.inject(ack(1, 10_001));
    let sent = script.sent();
    // The duplicates do not cover more than `recover`: they start nothing (RFC 6582, 3.2, step 2).
    duplicates(&mut script, 10_001, 6);
    assert_eq!((sent.len(), script.sent().len()), (2, 2));
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 3042 (2): with nothing new to send, duplicates send nothing.
#[test]
fn limited_transmit_needs_new_data() {
    let mut script = Script::with_window(&newreno().with(|it| it.recovery.limited_transmit = true), 10);
    script.write(10_000);
    assert_eq!(script.take_count(), 10);
    duplicates(&mut script, 1, 2);
    script.expect_nothing();
}

/// RFC 3042: new acknowledgements take back what duplicates allowed.
#[test]
fn limited_transmit_ends_with_the_duplicates() {
    let mut script = ten_out(&newreno().with(|it| it.recovery.limited_transmit = true));
    duplicates(&mut script, 1, 2);
    assert_eq!(script.take_count(), 2);
    // A slow-start step of one segment: 11 are allowed and 10 are out after two were acknowledged.
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [12_001]);
}
