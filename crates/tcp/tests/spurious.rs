//! Segment scripts: time-outs that were not needed (RFC 5682, RFC 3522, RFC 4015).

use crate::script::*;
use base::Duration;
use base::units::Size;
use longhaul_tcp::{ForwardRto, InitialWindow, Recovery, ReduceFrom, SpuriousResponse, TcpConfig};

fn basic() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::NewReno;
        it.recovery.f_rto = ForwardRto::Basic;
    })
}

fn sack() -> TcpConfig {
    plain().with(|it| it.recovery.f_rto = ForwardRto::Sack)
}

/// Ten segments are out since 100 ms, and the timer has expired at 400 ms and sent the first again.
fn timed_out(config: &TcpConfig) -> Script {
    let mut script = Script::flying(config, 10);
    script.expect_at(400, data(1, 1000));
    script.at(410);
    script
}

/// RFC 5682 (2.1): two acknowledgements of what was not sent again: the time-out was spurious.
#[test]
fn basic_f_rto_detects_a_spurious_timeout() {
    let mut script = timed_out(&basic());
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [10_001, 11_001], "step 2b");
    script.at(420);
    script.inject(ack(1, 3001));
    let statistics = script.connection().sender_statistics();
    assert_eq!((statistics.timeouts, statistics.spurious_timeouts, statistics.retransmissions), (1, 1, 1));
    // Nothing is deemed lost: what is in flight is what is outstanding.
    assert_eq!(script.connection().in_flight(), script.connection().flight_size());
    script.inject(ack(1, 10_001));
    assert!(script.sent().iter().all(|&at| at >= 12_001));
}

/// RFC 5682 (2.1, step 2a): a duplicate first: the time-out was needed; slow start as ever.
#[test]
fn a_duplicate_first_means_a_loss() {
    let mut script = timed_out(&basic());
    script.inject(ack(1, 1));
    script.expect_nothing();
    script.at(500);
    script.inject(ack(1, 1001));
    assert_eq!(script.sent(), [1001, 2001]);
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
}

/// RFC 5682 (2.1, step 3a): a duplicate after the two new segments: the first that was not sent again goes out.
#[test]
fn a_duplicate_second_means_a_loss() {
    let mut script = timed_out(&basic());
    script.inject(ack(1, 1001));
    assert_eq!(script.sent(), [10_001, 11_001]);
    script.at(500);
    script.inject(ack(1, 1001));
    assert_eq!(script.sent(), [1001]);
    assert!(script.connection().cwnd() <= 3000);
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
    script.at(600);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent()[0], 2001);
}

/// RFC 5682 (2.1, step 2a): the retransmission filled the only gap.
#[test]
fn a_full_acknowledgement_ends_the_doubt() {
    for config in [basic(), sack()] {
        let mut script = timed_out(&config);
        script.inject(ack(1, 10_001));
        assert_eq!(script.sent(), [10_001, 11_001]);
        script.at(500);
        script.inject(ack(1, 12_001));
        assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
        assert_eq!(script.connection().sender_statistics().retransmissions, 1);
    }
}

/// RFC 5682 (3.1, steps 3a and 3b): an acknowledgement of all that was out at the time-out, and of no more, means that
/// nothing of it was lost; one of more may be an answer to the retransmission that filled the only gap.
#[test]
fn sack_enhanced_f_rto_goes_by_the_recovery_point() {
    for (second, blocks, spurious) in [
        (10_001, None, 1),
        (11_001, None, 0),
        (2001, Some((9001, 10_001)), 1),
        (2001, Some((9001, 11_001)), 0),
    ] {
        let mut script = timed_out(&sack());
        script.inject(ack(1, 2001));
        assert_eq!(script.sent(), [10_001, 11_001]);
        script.at(500);
        script.inject(ack(1, second).sack(&blocks.map_or(vec![], |block| vec![block])));
        assert_eq!(
            script.connection().sender_statistics().spurious_timeouts,
            spurious,
            "{second} {blocks:?}"
        );
        assert!(spurious == 1 || script.connection().cwnd() <= 3000);
    }
}

/// RFC 5682 (2.1, step 2b): with nothing new to send, the time-out counts as needed.
#[test]
fn without_new_data_there_is_no_telling() {
    for config in [basic(), sack()] {
        let mut script = Script::with_window(&config, 10);
        script.write(10_000);
        script.take_count();
        script.expect_at(400, data(1, 1000));
        script.at(410);
        script.inject(ack(1, 2001));
        assert_eq!(script.sent(), [2001, 3001]);
    }
}

/// RFC 5682 (2.1, step 2b): nor where the peer's window has no room for it.
#[test]
fn without_a_window_there_is_no_telling() {
    let mut script = timed_out(&basic());
    script.peer_window = 8000;
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [2001, 3001]);
}

/// RFC 5682 (2.1, step 1): a second time-out before the recovery's end is taken as needed.
#[test]
fn a_second_timeout_is_conventional() {
    let mut script = timed_out(&basic());
    script.expect_at(1000, data(1, 1000));
    script.at(1010);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [2001, 3001]);
}

/// RFC 5682 (3.1, step 2): duplicates do not decide; the scoreboard takes them in.
#[test]
fn sack_enhanced_f_rto_waits_out_duplicates() {
    let mut script = timed_out(&sack());
    script.inject(ack(1, 1).sack(&[(4001, 5001)]));
    script.expect_nothing();
    script.at(420);
    script.inject(ack(1, 2001).sack(&[(4001, 5001)]));
    assert_eq!(script.sent(), [10_001, 11_001]);
    script.at(430);
    script.inject(ack(1, 3001).sack(&[(4001, 5001)]));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
}

/// RFC 5682 (3.1, step 3b): a selective acknowledgement of what was not sent again is enough.
#[test]
fn sack_enhanced_f_rto_takes_selective_acknowledgements() {
    let mut script = timed_out(&sack());
    script.inject(ack(1, 2001));
    assert_eq!(script.take_count(), 2);
    script.at(420);
    script.inject(ack(1, 2001).sack(&[(3001, 4001)]));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
}

/// RFC 5682 (3.1, step 3a): new data arrive before the rest: that was lost.
#[test]
fn sack_enhanced_f_rto_sees_new_data_overtake() {
    let mut script = timed_out(&sack());
    script.inject(ack(1, 1001));
    assert_eq!(script.take_count(), 2);
    script.at(510);
    script.inject(ack(1, 1001).sack(&[(10_001, 11_001)]));
    assert_eq!(script.sent()[0], 1001);
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
}

/// RFC 5682 (3.1, step 3a): so does a duplicate that acknowledges nothing new, selectively either.
#[test]
fn sack_enhanced_f_rto_takes_empty_duplicates_for_a_loss() {
    for known in [&[][..], &[(4001, 5001)]] {
        let mut script = timed_out(&sack());
        script.inject(ack(1, 2001).sack(known));
        assert_eq!(script.take_count(), 2);
        script.inject(ack(1, 2001).sack(known));
        assert_eq!(script.sent()[0], 2001);
        script.at(500);
        script.inject(ack(1, 3001).sack(known));
        assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
        assert!(script.connection().cwnd() <= 4000);
    }
}

/// RFC 5682 (3.1, step 3): what is neither a duplicate nor advances the window is ignored: here a window update.
#[test]
fn sack_enhanced_f_rto_ignores_window_updates() {
    let mut script = timed_out(&sack());
    script.inject(ack(1, 2001));
    assert_eq!(script.take_count(), 2);
    script.peer_window = 50_000;
    script.inject(ack(1, 2001));
    script.expect_nothing();
    script.inject(ack(1, 3001));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
}

/// RFC 5682 (3): without selective acknowledgements the SACK-enhanced setting means the basic algorithm.
#[test]
fn sack_enhanced_f_rto_falls_back() {
    let config = sack().with(|it| it.window.initial = InitialWindow::Segments(10));
    let mut script = Script::connected(&config, 100, syn_ack());
    script.write(40_000);
    script.take_count();
    script.expect_at(400, data(1, 1000));
    script.inject(ack(1, 1));
    script.inject(ack(1, 1001));
    assert_eq!(script.sent(), [1001, 2001], "the duplicate decided");
}

/// RFC 5682: a time-out during fast recovery is taken as needed.
#[test]
fn f_rto_leaves_fast_recovery_alone() {
    let mut script = Script::flying(&basic().with(|it| it.recovery.limited_transmit = false), 10);
    for _ in 0..3 {
        script.inject(ack(1, 1));
    }
    script.expect(data(1, 1000));
    script.expect_at(400, data(1, 1000));
    script.at(410);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [2001, 3001]);
}

/// F-RTO goes with RACK, as in Linux: nothing else is deemed lost while it doubts.
#[test]
fn f_rto_goes_with_rack() {
    let config = sack().with(|it| it.recovery.scheme = Recovery::Rack);
    let mut script = Script::flying(&config, 10);
    // The probe at two round trips; the time-out 300 ms later.
    script.at(310);
    assert_eq!(script.sent(), [10_001]);
    script.expect_at(600, data(1, 1000));
    script.at(610);
    script.inject(ack(1, 2001));
    assert_eq!(script.sent(), [11_001, 12_001]);
    script.at(620);
    script.inject(ack(1, 3001));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
}

/// RFC 5681 (3.1): the conservative response: half of what was outstanding, for window and threshold.
#[test]
fn the_conservative_response_halves() {
    let mut script = timed_out(&basic());
    script.inject(ack(1, 2001));
    script.inject(ack(1, 3001));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (5000, Some(5000)));
    script.take_count();
    // Nothing goes out until less than that is in the network.
    script.inject(ack(1, 6001));
    script.expect_nothing();
    // Six segments were acknowledged since: congestion avoidance has added one.
    script.inject(ack(1, 8001));
    assert_eq!(script.sent(), [12_001, 13_001]);
}

/// RFC 4015 (3.2, steps 0 and 6): the threshold as before, a window of what is in flight and what was acknowledged.
#[test]
fn the_eifel_response_restores() {
    let config = basic().with(|it| it.recovery.spurious_response = SpuriousResponse::Eifel);
    let mut script = timed_out(&config);
    script.inject(ack(1, 2001));
    assert_eq!(script.take_count(), 2);
    script.inject(ack(1, 3001));
    // Nine are in flight, one was acknowledged, which counts once.
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (10_000, None));
    assert_eq!(script.sent(), [12_001]);
    // The next opens slow start as ever.
    script.inject(ack(1, 4001));
    assert_eq!(script.connection().cwnd(), 11_000);
}

/// RFC 4015 (3.2, step 0): both responses go by what was outstanding, even where a reduction takes its share of cwnd.
#[test]
fn a_response_goes_by_flight_size() {
    for (response, expected) in
        [(SpuriousResponse::Eifel, (10_000, Some(10_000))), (SpuriousResponse::Halve, (5000, Some(5000)))]
    {
        let config = basic().with(|it| {
            it.recovery.spurious_response = response;
            it.recovery.reduce_from = ReduceFrom::Cwnd;
            it.window.initial_ssthresh = Some(Size(6000));
        });
        let mut script = Script::with_window(&config, 20);
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.expect_at(400, data(1, 1000));
        script.write(10_000);
        script.at(410);
        script.inject(ack(1, 2001));
        assert_eq!(script.sent(), [10_001, 11_001]);
        script.inject(ack(1, 3001));
        assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), expected, "{response:?}");
    }
}

/// RFC 4015 (3.2, step 8): the first round trip of new data sets the timer.
#[test]
fn the_eifel_response_adapts_the_timer() {
    let config = basic().with(|it| it.recovery.spurious_response = SpuriousResponse::Eifel);
    let mut script = timed_out(&config);
    script.inject(ack(1, 2001));
    script.inject(ack(1, 3001));
    script.take_count();
    script.at(500);
    script.inject(ack(1, 10_001));
    script.take_count();
    // 10001 left at 410 ms.
    script.at(700);
    script.inject(ack(1, 11_001));
    assert_eq!(script.connection().srtt(), Some(Duration::from_millis(290)));
    assert_eq!(script.connection().rttvar(), Duration::from_millis(145));
    assert_eq!(script.connection().rto(), Duration::from_millis(290 + 4 * 145));
}

/// `tcp_undo_cwr` of Linux 2.4: the window as before, but for three segments at most beyond what is in flight; as
/// threshold three quarters of it, if that is more than the threshold was.
#[test]
fn linux_undoes() {
    let config = basic().with(|it| {
        it.recovery.spurious_response = SpuriousResponse::Undo;
        it.window.initial_ssthresh = Some(Size(6000));
    });
    for (window, expected) in [(10, (10_000, Some(7500))), (20, (12_000, Some(15_000)))] {
        let mut script = Script::with_window(&config, window);
        script.write(10_000);
        assert_eq!(script.take_count(), 10);
        script.expect_at(400, data(1, 1000));
        script.write(10_000);
        script.at(410);
        script.inject(ack(1, 2001));
        assert_eq!(script.sent(), [10_001, 11_001]);
        script.inject(ack(1, 3001));
        // Nine are in flight, and what was acknowledged does not count again.
        assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), expected, "{window}");
    }
}

/// Linux leaves the timer to the samples: the one of 290 ms, to which the Eifel response sets it, counts as one of many.
#[test]
fn undoing_leaves_the_timer_alone() {
    let config = basic().with(|it| it.recovery.spurious_response = SpuriousResponse::Undo);
    let mut script = timed_out(&config);
    script.inject(ack(1, 2001));
    script.inject(ack(1, 3001));
    script.take_count();
    script.at(500);
    script.inject(ack(1, 10_001));
    script.take_count();
    let before = script.connection().srtt().unwrap();
    script.at(700);
    script.inject(ack(1, 11_001));
    let after = script.connection().srtt().unwrap();
    assert!(after > before && after < before + Duration::from_millis(290 / 8), "{before} {after}");
}

/// RFC 5682: the response can be left out: no retransmissions, and the window as the time-out made it.
#[test]
fn there_need_be_no_response() {
    let config = basic().with(|it| it.recovery.spurious_response = SpuriousResponse::None);
    let mut script = timed_out(&config);
    script.inject(ack(1, 2001));
    script.inject(ack(1, 3001));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert!(script.connection().cwnd() <= 3000);
    assert_eq!(script.connection().ssthresh(), Some(5000));
}

/// A spurious time-out's back-off is forgotten (RFC 5682, 4: the connection goes on as if there had been none).
#[test]
fn the_back_off_is_taken_back() {
    let mut script = timed_out(&basic());
    assert_eq!(script.connection().rto(), Duration::from_millis(600));
    script.inject(ack(1, 2001));
    script.inject(ack(1, 3001));
    let connection = script.connection();
    let margin = Duration::from_millis(200).max(connection.rttvar() * 4);
    assert_eq!(connection.rto(), connection.srtt().unwrap() + margin);
}

/// A loss among what the time-out left alone is found by duplicates (RFC 5682, 2.1, step 3b; RFC 6582, 3.2).
#[test]
fn a_loss_after_a_spurious_timeout_is_found() {
    let mut script = timed_out(&basic());
    script.inject(ack(1, 2001));
    script.inject(ack(1, 3001));
    script.take_count();
    for _ in 0..3 {
        script.inject(ack(1, 3001));
    }
    assert_eq!(script.sent()[0..], [3001]);
    assert_eq!(script.connection().sender_statistics().recoveries, 1);
}

fn with_timestamps(config: &TcpConfig) -> (Script, u32) {
    let config = config.clone().with(|it| {
        it.timestamps = true;
        it.window.initial = InitialWindow::Segments(10);
        it.recovery.eifel_detection = true;
    });
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.unwrap().value;
    script.at(100);
    script.inject(syn_ack().sack_permitted().ts(9000, offset));
    script.take();
    script.write(40_000);
    assert_eq!(script.take_count(), 10);
    (script, offset)
}

/// RFC 3522 (3.2, step 4): the first acknowledgement echoes a timestamp from before the retransmission.
#[test]
fn timestamps_tell_a_spurious_timeout_at_once() {
    let (mut script, offset) = with_timestamps(&plain());
    script.at(400);
    assert_eq!(script.take().options.timestamps.unwrap().value, offset + 400);
    script.at(410);
    script.inject(ack(1, 989).ts(9310, offset + 100));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
    assert_eq!(script.connection().in_flight(), script.connection().flight_size());
}

/// RFC 3522 (3.2, step 4): an echo of the retransmission's own timestamp.
#[test]
fn timestamps_tell_a_needed_timeout() {
    let (mut script, offset) = with_timestamps(&plain());
    script.at(400);
    script.take();
    script.at(500);
    script.inject(ack(1, 989).ts(9400, offset + 400));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
    assert_eq!(script.sent(), [989, 1977]);
}

/// RFC 3522 (3.2, step 2): after repeated time-outs the first retransmission's timestamp counts.
#[test]
fn the_first_retransmissions_timestamp_counts() {
    let (mut script, offset) = with_timestamps(&plain());
    script.at(1000);
    assert_eq!(script.take_count(), 2);
    script.at(1010);
    script.inject(ack(1, 989).ts(9900, offset + 400));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0);
}

/// RFC 3522 (3.2, step 4): only an acknowledgement of something new decides. A duplicate echoes an old timestamp, whatever was lost.
#[test]
fn a_duplicates_timestamp_does_not_make_a_timeout_spurious() {
    let (mut script, offset) = with_timestamps(&plain());
    script.at(400);
    script.take();
    script.at(410);
    script.inject(ack(1, 1).ts(9310, offset + 100));
    assert_eq!(
        script.connection().sender_statistics().spurious_timeouts,
        0,
        "the window is back in the congestion"
    );
    assert_eq!(script.connection().cwnd(), 988);
}

/// RFC 3522 (3), RFC 5682 (1): each is optional: what is switched off finds nothing.
#[test]
fn methods_that_are_off_find_nothing() {
    for (timestamps, eifel) in [(true, false), (false, true)] {
        let config = plain().with(|it| {
            it.timestamps = timestamps;
            it.window.initial = InitialWindow::Segments(10);
            it.recovery.eifel_detection = eifel;
            it.recovery.f_rto = ForwardRto::Off;
        });
        let mut script = Script::connecting(&config);
        let value = script.take().options.timestamps.map_or(0, |it| it.value);
        script.at(100);
        script.inject(syn_ack().sack_permitted().ts(9000, value));
        script.take();
        script.write(40_000);
        script.at(410);
        let end = if timestamps { 989 } else { 1001 };
        script.inject(ack(1, end).ts(9310, value + 100));
        assert_eq!(script.connection().sender_statistics().spurious_timeouts, 0, "{timestamps} {eifel}");
    }
}

/// RFC 5682 (2.1, step 3): a report that the retransmission came twice (RFC 2883) is no duplicate that tells of a loss: rather that there
/// was none.
#[test]
fn a_report_of_the_retransmission_does_not_end_f_rto() {
    for f_rto in [ForwardRto::Basic, ForwardRto::Sack] {
        let mut script = timed_out(&plain().with(|it| it.recovery.f_rto = f_rto));
        script.inject(ack(1, 2001));
        assert_eq!(script.sent(), [10_001, 11_001], "step 2b");
        script.at(420);
        script.inject(ack(1, 2001).sack(&[(1, 1001)]));
        script.inject(ack(1, 10_001));
        assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1, "{f_rto:?}");
    }
}

/// RFC 3522 (3.2, step 4): without F-RTO a bare duplicate decides nothing, and of repeated time-outs each says that all is lost; a needed
/// one leaves the next in doubt.
#[test]
fn the_eifel_detection_waits_for_something_new() {
    let alone = plain().with(|it| it.recovery.f_rto = ForwardRto::Off);
    let (mut script, offset) = with_timestamps(&alone);
    script.at(410);
    script.inject(ack(1, 1).ts(9310, offset + 100));
    script.inject(ack(1, 989).ts(9310, offset + 100));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);

    let (mut script, offset) = with_timestamps(&alone);
    script.at(1010);
    assert_eq!(script.sent(), [1, 1]);
    script.inject(ack(1, 989).ts(9910, offset + 1000));
    assert_eq!(script.sent(), [989, 1977], "all is lost");
    script.at(1110);
    script.inject(ack(1, 9881).ts(9990, offset + 1010));
    script.take_count();
    let end = 9881 + script.connection().flight_size() as i64;
    script.at(1150);
    script.inject(ack(1, end).ts(9995, offset + 1110));
    script.take_count();
    let timeouts = script.connection().sender_statistics().timeouts;
    while script.connection().sender_statistics().timeouts == timeouts {
        script.at(script.now.as_nanos() / 1_000_000 + 10);
    }
    script.inject(ack(1, end + 988).ts(9999, offset + 1150));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1, "a later one is doubted");
}

/// RFC 4015 (3.2), RFC 5681 (equation 4): half of what was out, but two segments at least.
#[test]
fn the_conservative_response_has_a_floor() {
    let config = plain().with(|it| {
        it.timestamps = true;
        it.recovery.eifel_detection = true;
        it.recovery.f_rto = ForwardRto::Off;
        it.recovery.spurious_response = SpuriousResponse::Halve;
    });
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.unwrap().value;
    script.at(100);
    script.inject(syn_ack().sack_permitted().ts(9000, offset));
    script.take();
    script.write(988);
    script.at(410);
    script.inject(ack(1, 989).ts(9310, offset + 100));
    assert_eq!(script.connection().sender_statistics().spurious_timeouts, 1);
    assert_eq!(script.connection().ssthresh(), Some(2 * 988));
}
