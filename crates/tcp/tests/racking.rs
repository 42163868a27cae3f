//! Segment scripts: RACK and its tail loss probe (RFC 8985).

use crate::script::*;
use longhaul_tcp::{Recovery, TcpConfig};

fn rack() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::Rack;
        it.recovery.limited_transmit = false;
    })
}

/// Segments of 1000 bytes, one every 10 ms from 100 ms on, the first ending at 1001; a round trip takes 100 ms.
fn spaced(config: &TcpConfig, segments: u64) -> Script {
    let mut script = Script::with_window(config, 20);
    for at in 0..segments {
        script.at(100 + 10 * at);
        script.write(1000);
    }
    assert_eq!(script.take_count() as u64, segments);
    script
}

/// RFC 8985 (6.2, step 5): without reordering seen, three selective acknowledgements leave no reordering window.
#[test]
fn three_segments_beyond_a_gap_are_enough() {
    let mut script = Script::flying(&rack(), 10);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    script.expect_nothing();
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    script.expect(data(1, 1000));
    assert!(script.connection().recovering());
    // FlightSize / 2 (RFC 5681, equation 4).
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
}

/// RFC 8985 (6.2, step 5): fewer start the reordering timer: a quarter of the least round trip after the round trip
/// of the segment in doubt.
#[test]
fn one_segment_beyond_a_gap_is_enough_after_a_while() {
    let mut script = spaced(&rack(), 4);
    script.at(210);
    // 1001 took 100 ms; 1 was sent at 100 ms: 100 + 100 + 25.
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.expect_at(225, data(1, 1000));
    assert!(script.connection().recovering());
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
}

/// RFC 8985 (3.2): what arrives within the reordering window was not lost.
#[test]
fn late_arrivals_within_the_window_are_not_losses() {
    let mut script = spaced(&rack(), 4);
    script.at(210);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.at(220);
    script.inject(ack(1, 2001));
    script.quiet_before(240);
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 8985 (6.2, step 4): once reordering was seen, three selective acknowledgements are not enough.
#[test]
fn seen_reordering_makes_patient() {
    let mut script = Script::flying(&rack(), 10);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.at(205);
    script.inject(ack(1, 2001));
    script.take_count();
    script.at(210);
    // All left at 100 ms: a round trip of 110 ms, and a quarter of the least, 100 ms.
    script.inject(ack(1, 2001).sack(&[(3001, 7001)]));
    script.expect_at(235, data(2001, 1000));
}

/// RFC 8985 (6.2, step 5): only what was sent before something that arrived is in doubt.
#[test]
fn the_tail_is_not_in_doubt() {
    let mut script = spaced(&rack(), 6);
    script.at(230);
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    script.expect(data(1, 1000));
    script.expect_nothing();
    // 5 and 6 were sent later than anything that arrived.
    assert_eq!(script.connection().in_flight(), 3000);
}

/// RFC 8985 (3.1): the time of a retransmission counts too; a lost one is found without a time-out.
#[test]
fn a_lost_retransmission_is_found() {
    let mut script = spaced(&rack(), 8);
    script.at(230);
    script.inject(ack(1, 1).sack(&[(1001, 6001)]));
    script.expect(data(1, 1000));
    script.at(235);
    script.write(1000);
    script.expect(data(8001, 1000));
    // The new segment, sent after the retransmission, arrives.
    script.at(340);
    script.inject(ack(1, 1).sack(&[(8001, 9001), (1001, 8001)]));
    script.expect(data(1, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// RFC 5681 (4.3): a lost retransmission lowers the window a second time.
#[test]
fn a_lost_retransmission_is_a_second_indication_of_congestion() {
    let mut script = spaced(&rack(), 12);
    script.at(230);
    script.inject(ack(1, 1).sack(&[(1001, 10_001)]));
    assert_eq!(script.sent(), [1]);
    assert_eq!(script.connection().ssthresh(), Some(6000));
    script.write(1000);
    assert_eq!(script.sent(), [12_001]);
    script.at(340);
    // Four were in the network: 10001, 11001, 12001 and the retransmission.
    script.inject(ack(1, 1).sack(&[(1001, 13_001)]));
    assert_eq!(script.sent(), [1]);
    assert_eq!(script.connection().ssthresh(), Some(2000));
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// RFC 8985 (6.2, step 2): an acknowledgement sooner than any round trip may be of the first copy: it proves nothing.
#[test]
fn a_quick_answer_to_a_retransmission_proves_nothing() {
    let mut script = spaced(&rack(), 8);
    script.at(230);
    script.inject(ack(1, 1).sack(&[(1001, 4001)]));
    script.expect(data(1, 1000));
    // 1 had only been delayed: its acknowledgement comes 5 ms after the retransmission. 5 to 8 are not lost.
    script.at(235);
    script.inject(ack(1, 4001));
    script.expect_nothing();
    script.at(239);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
}

/// RFC 8985 (6.2, step 4): a D-SACK widens the reordering window by a quarter of the least round trip.
#[test]
fn a_dsack_widens_the_reordering_window() {
    let mut script = spaced(&rack(), 4);
    script.at(210);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.at(225);
    script.expect(data(1, 1000));
    // It was late, not lost: acknowledged, and then reported twice.
    script.inject(ack(1, 4001));
    script.at(230);
    script.inject(ack(1, 4001).sack(&[(1, 1001)]));
    assert_eq!(script.connection().sender_statistics().dsacks_received, 1);
    script.at(300);
    for at in 0..3 {
        script.at(300 + 10 * at);
        script.write(1000);
    }
    script.take_count();
    script.at(410);
    script.inject(ack(1, 4001).sack(&[(5001, 6001)]));
    // 4001 left at 300 ms; a round trip, and two quarters of the least.
    script.expect_at(300 + 100 + 50, data(4001, 1000));
}

/// RFC 8985 (6.2, step 4): the wider window stays for 16 recoveries without another D-SACK, and no longer
/// (`RACK.reo_wnd_persist`).
#[test]
fn sixteen_recoveries_make_the_reordering_window_narrow_again() {
    let mut script = spaced(&rack(), 4);
    script.at(210);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.at(225);
    script.expect(data(1, 1000));
    script.inject(ack(1, 4001));
    script.at(230);
    script.inject(ack(1, 4001).sack(&[(1, 1001)]));
    for round in 0..18 {
        // Two segments, of which the first is lost.
        let (at, first) = (300 + 300 * round, 4001 + 2000 * round as i64);
        script.at(at);
        script.write(2000);
        script.expect(data(first, 1000));
        script.expect(data(first + 1000, 1000));
        script.at(at + 100);
        script.inject(ack(1, first).sack(&[(first as u32 + 1000, first as u32 + 2000)]));
        // A round trip, and two quarters of the least or one.
        script.expect_at(at + if round < 16 { 150 } else { 125 }, data(first, 1000));
        script.at(at + 250);
        script.inject(ack(1, first + 2000));
        assert!(!script.connection().recovering());
    }
}

/// RFC 8985 (6.3): a time-out deems lost the first segment and what is overdue, not what was sent just now.
#[test]
fn a_timeout_spares_what_was_sent_just_now() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(1000);
    script.at(200);
    script.inject(ack(1, 1001));
    script.take_count();
    script.at(300);
    script.write(1000);
    script.expect(data(1001, 1000));
    // The probe, bounded by the time-out, which it puts off to 900 ms.
    script.expect_at(600, data(1001, 1000));
    script.at(850);
    script.write(3000);
    assert_eq!(script.take_count(), 3);
    script.expect_at(900, data(1001, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
    assert_eq!((script.connection().cwnd(), script.connection().in_flight()), (1000, 4000));
    // When it is acknowledged after a round trip, the others, sent before it, are a round trip old too.
    script.at(1000);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [2001, 3001]);
}

/// RFC 8985 (7.2, 7.3): without an acknowledgement for two round trips, new data go out as a probe, beyond the window.
#[test]
fn new_data_probe_the_tail() {
    let mut script = Script::with_window(&rack(), 4);
    script.write(10_000);
    assert_eq!(script.take_count(), 4);
    script.expect_at(300, data(4001, 1000));
    script.quiet_before(400);
    assert_eq!(script.connection().sender_statistics().tail_probes, 1);
}

/// RFC 8985 (7.3): without new data, the last segment goes out again.
#[test]
fn the_last_segment_probes_the_tail() {
    let mut script = Script::with_window(&rack(), 4);
    script.write(4000);
    assert_eq!(script.take_count(), 4);
    script.expect_at(300, data(3001, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
}

/// RFC 8985 (7.2): the peer's data say nothing of the tail, however many come.
#[test]
fn a_talking_peer_does_not_put_the_probe_off() {
    let mut script = Script::with_window(&rack(), 4);
    script.write(4000);
    assert_eq!(script.take_count(), 4);
    for at in 0..7 {
        script.at(125 + 25 * at);
        script.inject(data(1 + 100 * at as i64, 100));
    }
    script.at(299);
    script.take_count();
    script.at(300);
    assert_eq!((script.sent(), script.connection().sender_statistics().tail_probes), (vec![3001], 1));
}

/// RFC 8985 (7.2): one segment may wait for a delayed acknowledgement: 200 ms more, but never beyond the time-out.
#[test]
fn a_single_segment_is_given_the_delay_of_its_acknowledgement() {
    let config = rack().with(|it| it.rto.margin = base::Duration::from_millis(900));
    let mut script = Script::with_window(&config, 4);
    script.write(1000);
    script.take_count();
    script.expect_at(100 + 2 * 100 + 200, data(1, 1000));
    let mut short = Script::with_window(&rack(), 4);
    short.write(1000);
    short.take_count();
    short.expect_at(100 + 300, data(1, 1000));
    assert_eq!(short.connection().sender_statistics().timeouts, 0, "a probe, not the time-out");
}

/// RFC 8985 (7.3): after the probe the retransmission timer runs anew, and there is only one probe.
#[test]
fn one_probe_and_then_the_timeout() {
    let mut script = Script::with_window(&rack(), 4);
    script.write(4000);
    script.take_count();
    script.expect_at(300, data(3001, 1000));
    script.expect_at(600, data(1, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
}

/// RFC 8985 (8.2): the probe's selective acknowledgement exposes the lost tail; recovery, no time-out.
#[test]
fn a_probe_exposes_a_lost_tail() {
    let mut script = Script::with_window(&rack(), 4);
    script.write(4000);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 1001));
    // Two smoothed round trips after the last new acknowledgement.
    script.expect_at(400, data(3001, 1000));
    script.at(500);
    script.inject(ack(1, 1001).sack(&[(3001, 4001)]));
    // 1001 and 2001 left at 100 ms: lost long ago.
    assert_eq!(script.sent(), [1001, 2001]);
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

/// RFC 8985 (7.4.2): a repaired loss of the last segment is a loss for the controller.
#[test]
fn a_repaired_loss_is_congestion() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(10_000);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 9001));
    script.at(201);
    // One segment is left: the time-out bounds the probe's time.
    script.at(700);
    assert_eq!(script.sent()[0], 9001);
    assert_eq!(script.connection().sender_statistics().tail_probes, 1);
    let before = script.connection().cwnd();
    script.inject(ack(1, 10_001));
    assert_eq!(script.connection().cwnd(), before + 1000, "not known yet: it may have been the first copy");
    script.write(1000);
    script.take_count();
    script.at(800);
    script.inject(ack(1, 11_001));
    assert_eq!(script.connection().cwnd(), 2000);
    assert!(!script.connection().recovering());
}

/// RFC 8985 (7.4.2): it takes half of what was out then (RFC 5681, equation 4), not all.
#[test]
fn a_repaired_loss_halves_what_was_out() {
    let mut script = Script::with_window(&rack(), 20);
    script.write(20_000);
    assert_eq!(script.take_count(), 20);
    script.expect_at(300, data(19_001, 1000));
    script.at(310);
    script.inject(ack(1, 20_001));
    script.write(1000);
    script.at(410);
    script.inject(ack(1, 21_001));
    assert_eq!(
        (script.connection().sender_statistics().tail_probes, script.connection().cwnd()),
        (1, 10_000)
    );
}

/// RFC 8985 (7.4.2): a D-SACK tells that the probe repaired nothing.
#[test]
fn a_probe_that_came_twice_is_no_congestion() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(4000);
    script.take_count();
    script.expect_at(300, data(3001, 1000));
    script.at(310);
    script.inject(ack(1, 4001));
    script.at(400);
    script.inject(ack(1, 4001).sack(&[(3001, 4001)]));
    let before = script.connection().cwnd();
    script.write(1000);
    script.take_count();
    script.at(500);
    script.inject(ack(1, 5001));
    assert!(script.connection().cwnd() >= before);
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 8985 (7.4.2): nor does a bare duplicate, from a peer that reports nothing.
#[test]
fn a_bare_duplicate_answers_a_probe() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(4000);
    script.take_count();
    script.expect_at(300, data(3001, 1000));
    script.at(310);
    script.inject(ack(1, 4001));
    script.at(400);
    script.inject(ack(1, 4001));
    script.write(1000);
    script.take_count();
    script.at(500);
    script.inject(ack(1, 5001));
    assert_eq!(script.connection().sender_statistics().recoveries, 0);
}

/// RFC 8985 (7.4.2, case 1): a D-SACK of something else does not answer for the probe.
#[test]
fn a_dsack_of_another_segment_answers_no_probe() {
    for (block, recoveries) in [((3001, 4001), 0), ((1, 1001), 1), ((2001, 3001), 1)] {
        let mut script = Script::with_window(&rack(), 10);
        script.write(4000);
        script.take_count();
        script.expect_at(300, data(3001, 1000));
        script.at(310);
        script.inject(ack(1, 4001));
        script.at(400);
        script.inject(ack(1, 4001).sack(&[block]));
        assert_eq!(script.connection().sender_statistics().dsacks_received, 1);
        script.write(1000);
        script.take_count();
        script.at(500);
        script.inject(ack(1, 5001));
        assert_eq!(script.connection().sender_statistics().recoveries, recoveries, "{block:?}");
    }
}

/// RFC 8985 (7.3): no second probe before the round-trip time was measured again. The retransmission timer goes on, as in Linux.
#[test]
fn a_probe_needs_a_new_round_trip_time() {
    let probed = || {
        let mut script = Script::with_window(&rack(), 10);
        script.write(4000);
        script.take_count();
        script.expect_at(300, data(3001, 1000));
        // The acknowledgement may be of either copy (Karn); the D-SACK ends the probe.
        script.at(310);
        script.inject(ack(1, 4001));
        script.at(400);
        script.inject(ack(1, 4001).sack(&[(3001, 4001)]));
        script.write(2000);
        assert_eq!(script.take_count(), 2);
        script
    };
    let mut unmeasured = probed();
    // A probe would leave at 600 ms; what is written meanwhile puts that off to the time-out at most.
    unmeasured.at(550);
    unmeasured.write(1000);
    assert_eq!(unmeasured.take_count(), 1);
    unmeasured.expect_at(700, data(4001, 1000));
    let statistics = unmeasured.connection().sender_statistics();
    assert_eq!((statistics.tail_probes, statistics.timeouts), (1, 1));
    let mut measured = probed();
    measured.at(500);
    measured.inject(ack(1, 6001));
    measured.write(2000);
    assert_eq!(measured.take_count(), 2);
    measured.expect_at(700, data(7001, 1000));
    assert_eq!(measured.connection().sender_statistics().tail_probes, 2);
}

/// RFC 8985 (7.3): an unsent segment is probe enough, however small; Nagle has no say.
#[test]
fn a_probe_does_not_wait_for_nagle() {
    let mut script = Script::with_window(&TcpConfig { nagle: true, ..rack() }, 10);
    script.write(2500);
    assert_eq!(script.sent(), [1, 1001]);
    script.expect_at(300, data(2001, 500));
    assert_eq!(script.connection().sender_statistics().tail_probes, 1);
}

/// RFC 8985 (7.2): no probe while selective acknowledgements are outstanding: the reordering timer is at work.
#[test]
fn no_probe_while_something_is_in_doubt() {
    let mut script = spaced(&rack(), 4);
    script.at(210);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.at(225);
    script.expect(data(1, 1000));
    script.at(420);
    assert_eq!(script.connection().sender_statistics().tail_probes, 0);
}

/// Without selective acknowledgements there is neither RACK nor probe (RFC 8985, 4), nor FACK: NewReno, which needs no time-out.
#[test]
fn rack_and_fack_need_selective_acknowledgements() {
    for scheme in [Recovery::Rack, Recovery::Fack] {
        let config = rack().with(|it| {
            it.recovery.scheme = scheme;
            it.window.initial = longhaul_tcp::InitialWindow::Segments(10);
        });
        let mut script = Script::connected(&config, 100, syn_ack());
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.quiet_before(399);
        assert_eq!(script.connection().sender_statistics().tail_probes, 0);
        for _ in 0..3 {
            script.inject(ack(1, 1));
        }
        script.expect(data(1, 1000));
    }
}

/// Linux: the retransmission timer starts anew while what is selectively acknowledged left before the first segment
/// last did, so that a queue that grows does not outlast it.
#[test]
fn the_timer_waits_for_answers_to_older_segments() {
    for (recovery, timeouts) in [(Recovery::Sack, 1), (Recovery::Rack, 0)] {
        let mut script = spaced(&rack().with(|it| it.recovery.scheme = recovery), 8);
        for (at, end) in [(210, 2001), (220, 3001), (230, 4001)] {
            script.at(at);
            script.inject(ack(1, 1).sack(&[(1001, end)]));
        }
        assert_eq!(script.take_count(), 1, "the first segment again");
        // The timer began at 100 ms with 300 ms.
        script.at(390);
        script.inject(ack(1, 1).sack(&[(1001, 5001)]));
        script.at(600);
        assert_eq!(script.connection().sender_statistics().timeouts, timeouts, "{recovery:?}");
    }
}

/// RFC 8985 (6.2, step 2): an echo that is as young as the retransmission shows that this arrived: what left before it and is still
/// missing was lost too.
#[test]
fn an_echo_tells_which_copy_arrived() {
    let mut script = Script::connecting(&rack().with(|it| {
        it.timestamps = true;
        it.window.initial = longhaul_tcp::InitialWindow::Segments(10);
    }));
    let offset = script.take().options.timestamps.expect("a timestamp").value;
    script.at(100);
    script.inject(syn_ack().sack_permitted().ts(1, offset));
    script.take();
    script.write(9880);
    assert_eq!(script.take_count(), 10);
    // The first and the last are lost.
    script.at(200);
    script.inject(ack(1, 1).ts(2, offset).sack(&[(989, 8893)]));
    script.expect(data(1, 988));
    script.expect_nothing();
    script.at(300);
    script.inject(ack(1, 8893).ts(3, offset + 200));
    script.expect(data(8893, 988));
    assert_eq!(
        (
            script.connection().sender_statistics().timeouts,
            script.connection().sender_statistics().tail_probes
        ),
        (0, 0)
    );
}

/// RFC 8985 (7.4.2, 6.3): a time-out answers for the probe before it: what comes after is no second loss.
#[test]
fn a_timeout_ends_the_probe() {
    let mut script = Script::with_window(&rack(), 20);
    script.write(20_000);
    assert_eq!(script.take_count(), 20);
    script.expect_at(300, data(19_001, 1000));
    script.expect_at(600, data(1, 1000));
    let recoveries = script.connection().sender_statistics().recoveries;
    script.at(650);
    script.inject(ack(1, 20_001));
    script.write(1000);
    script.take_count();
    script.at(750);
    script.inject(ack(1, 21_001));
    let (window, threshold) = (script.connection().cwnd(), script.connection().ssthresh());
    assert!(window <= 3000 && threshold == Some(10_000), "{window} {threshold:?}");
    assert_eq!(script.connection().sender_statistics().recoveries, recoveries);
}
