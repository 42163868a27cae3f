//! Segment scripts: Nagle, silly windows, probes, timers, and congestion control.

use std::sync::Arc;

use crate::script::*;
use base::units::Size;
use base::wire::checksum::Sum;
use base::wire::ip::Protocol;
use base::wire::tcp;
use base::{Duration, Packet};
use longhaul_tcp::config::{AfterIdle, Recovery, RtoEstimator};
use longhaul_tcp::{ConnectionError, Event, Failure, Source, TcpConfig};

/// RFC 1122 (4.2.3.4): a small segment waits while anything is unacknowledged.
#[test]
fn nagle_holds_small_segments_back() {
    let mut script = Script::with_window(&TcpConfig { nagle: true, ..plain() }, 10);
    script.write(10);
    script.expect(data(1, 10));
    script.write(20);
    script.write(30);
    script.expect_nothing();
    script.write(2000);
    script.expect(data(11, 1000));
    script.expect(data(1011, 1000));
    script.expect_nothing();
    script.inject(ack(1, 2011));
    script.expect(data(2011, 50));
    // A FIN does not wait.
    script.write(5);
    script.expect_nothing();
    script.finish();
    script.expect(Seg { len: 5, ..fin(2061) });
}

/// RFC 9293 (3.7.4): without Nagle's algorithm small segments go at once.
#[test]
fn without_nagle_small_segments_go_at_once() {
    let mut script = Script::established(&plain());
    script.write(10);
    script.expect(data(1, 10));
    script.write(20);
    script.expect(data(11, 20));
}

/// RFC 9293 (3.8.6.2.1): less than a segment goes only if it is half of the largest window seen; the override
/// time-out sends what fits.
#[test]
fn the_sender_avoids_silly_windows() {
    let mut script = Script::with_window(&plain(), 10);
    script.inject(ack(1, 1).window(400));
    script.write(3000);
    script.expect_nothing();
    // RTO: 100 ms + max(200 ms, 4 * 50 ms).
    script.expect_at(400, data(1, 400));
    script.inject(ack(1, 401).window(400));
    script.expect_nothing();
    script.inject(ack(1, 401).window(1000));
    script.expect(data(401, 1000));
}

/// RFC 9293 (3.8.6.2.1): a peer whose window never exceeds half a segment still gets data at once (Fs = 1/2).
#[test]
fn half_of_the_largest_window_is_not_silly() {
    let mut script = Script::connected(&plain(), 100, syn_ack().window(600));
    script.write(3000);
    script.expect(data(1, 600));
    script.inject(ack(1, 601).window(300));
    script.expect(data(601, 300));
}

/// RFC 9293 (3.8.6.1): a closed window is probed with one byte, ever more rarely, for as long as the peer answers.
#[test]
fn a_closed_window_is_probed() {
    let config = plain().with(|it| {
        it.limits.data_retries = 2;
        it.rto.max = Duration::from_secs(2);
    });
    let mut script = Script::established(&config);
    script.inject(ack(1, 1).window(0));
    script.write(3000);
    let mut at = 100;
    for wait in [300, 600, 1200, 2000, 2000, 2000] {
        at += wait;
        script.expect_at(at, data(1, 1));
        script.inject(ack(1, 1).window(0));
    }
    assert_eq!(script.connection().sender_statistics().window_probes, 6);
    assert_eq!((script.connection().cwnd(), script.connection().sender_statistics().timeouts), (2000, 0));
    // It opens: the probed byte goes again, and what the window allows.
    script.inject(ack(1, 1).window(2001));
    script.expect(data(1, 1));
    script.expect(data(2, 1000));
    script.expect_nothing();
    script.inject(ack(1, 1002).window(5000));
    script.expect(data(1002, 1000));
}

/// RFC 9293 (3.8.6.1): a probe's byte may be accepted.
#[test]
fn an_accepted_probe_moves_the_window() {
    let mut script = Script::established(&plain());
    script.inject(ack(1, 1).window(0));
    script.write(1500);
    script.expect_at(400, data(1, 1));
    script.inject(ack(1, 2).window(5000));
    script.expect(data(2, 1000));
    script.expect(data(1002, 499));
}

/// RFC 9293 (3.8.6.1): a FIN into a closed window is its own probe.
#[test]
fn a_fin_waits_for_a_closed_window() {
    let mut script = Script::established(&plain());
    script.inject(ack(1, 1).window(0));
    script.finish();
    script.expect_nothing();
    script.expect_at(400, fin(1));
    script.inject(ack(1, 2).window(0));
    assert_eq!(script.connection().flight_size(), 0);
}

/// R2 of RFC 1122 (4.2.3.5) holds for probes that nobody answers.
#[test]
fn unanswered_probes_fail_the_connection() {
    let mut script = Script::established(&plain().with(|it| it.limits.data_retries = 2));
    script.inject(ack(1, 1).window(0));
    script.write(10);
    script.expect_at(400, data(1, 1));
    script.expect_at(1000, data(1, 1));
    script.quiet_before(2200);
    script.at(2200);
    script.expect_event(Event::Failed(Failure::TimedOut));
}

/// RFC 9293 (3.8.6): the window closes over data in flight: retransmissions probe it, and congestion control is not
/// told.
#[test]
fn a_window_that_closes_over_data_is_probed_by_retransmission() {
    let mut script = Script::established(&plain());
    script.write(2000);
    script.expect(data(1, 1000));
    script.expect(data(1001, 1000));
    script.at(200);
    script.inject(ack(1, 1).window(0));
    script.expect_at(400, data(1, 1000));
    assert_eq!(script.connection().cwnd(), 2000);
    script.inject(ack(1, 1).window(0));
    script.at(500);
    script.inject(ack(1, 1).window(3000));
    script.expect(data(1, 1000));
    script.expect(data(1001, 1000));
}

/// What is written from it is always the same.
#[derive(Debug)]
struct Content;

impl Source for Content {
    fn slice(&self, _offset: u64, len: usize) -> &[u8] {
        &[5; 8000][..len]
    }
}

/// RFC 9293 (3.9.1): the application hears when there is room again, and only after it was told that there is none.
#[test]
fn writable_follows_a_short_write() {
    type Write = fn(&mut Script, usize) -> usize;
    let ways: [(&str, Write); 3] = [
        ("write", |script, len| script.write(len)),
        ("write_with", |script, len| {
            script.host.write_with(script.now, script.id.unwrap(), len, |part| part.fill(5)).unwrap()
        }),
        ("write_from", |script, len| {
            let source: Arc<dyn Source> = Arc::new(Content);
            script.host.write_from(script.now, script.id.unwrap(), &source, 0, len).unwrap()
        }),
    ];
    for (way, write) in ways {
        let mut script = Script::with_window(&plain().with(|it| it.window.send_buffer = Size(8000)), 4);
        assert_eq!(script.connection().writable(), 8000, "an application that asks first may write");
        script.write(4000);
        assert_eq!(script.connection().writable(), 4000);
        assert_eq!(write(&mut script, 4000), 4000);
        script.take_count();
        script.inject(ack(1, 2001));
        assert!(!script.events.contains(&Event::Writable), "{way}: all of it was taken");
        assert_eq!(write(&mut script, 7000), 2000, "{way}");
        script.inject(ack(1, 2501));
        assert!(!script.events.contains(&Event::Writable), "{way}: less than an eighth is free");
        script.inject(ack(1, 3001));
        assert!(script.events.contains(&Event::Writable), "{way}: who waits for room waits for ever");
    }
}

/// RFC 9293 (3.9.1, CLOSE): no more is taken after the FIN is asked for, though it waits behind data.
#[test]
fn nothing_is_taken_after_finish() {
    let mut script = Script::established(&plain());
    script.inject(ack(1, 1).window(0));
    script.write(1000);
    script.finish();
    assert_eq!(script.connection().writable(), 0);
    let id = script.id.unwrap();
    assert_eq!(script.host.write(script.now, id, b"x"), Err(ConnectionError::Finished));
}

/// RFC 6298 (2.2, 2.3, 5.1 to 5.6): the timer, its restart on progress, and its back-off.
#[test]
fn the_retransmission_timer_follows_the_rfc() {
    let mut script = Script::established(&plain());
    // First sample 100 ms: RTO = 100 + 4 * 50 = 300 ms.
    assert_eq!(script.connection().rto(), Duration::from_millis(300));
    script.write(2000);
    script.expect(data(1, 1000));
    script.expect(data(1001, 1000));
    script.at(200);
    script.inject(ack(1, 1001));
    // Second sample 100 ms: rttvar 37.5 ms, RTO 300 ms by its floor; restarted at 200 ms.
    assert_eq!(script.connection().rto(), Duration::from_millis(300));
    script.expect_at(500, data(1001, 1000));
    script.expect_at(1100, data(1001, 1000));
    script.expect_at(2300, data(1001, 1000));
    assert_eq!(script.connection().sender_statistics().timeouts, 3);
}

/// Karn (RFC 6298, 3 and 5): without timestamps an ambiguous acknowledgement is no sample, and the back-off stays
/// until there is one.
#[test]
fn retransmitted_segments_give_no_sample() {
    let mut script = Script::established(&plain());
    script.write(1000);
    script.expect(data(1, 1000));
    script.expect_at(400, data(1, 1000));
    script.at(410);
    script.inject(ack(1, 1001));
    assert_eq!(script.connection().srtt(), Some(Duration::from_millis(100)));
    assert_eq!(script.connection().rto(), Duration::from_millis(600));
    script.write(1000);
    script.expect(data(1001, 1000));
    script.at(510);
    script.inject(ack(1, 2001));
    assert_eq!(script.connection().rto(), Duration::from_millis(300));
}

/// RFC 7323 (4.1): with timestamps it is one.
#[test]
fn an_echoed_timestamp_gives_a_sample_after_a_retransmission() {
    let config = TcpConfig { timestamps: true, ..plain() };
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.unwrap().value;
    script.at(100);
    script.inject(syn_ack().ts(1, offset));
    script.take_count();
    script.write(988);
    script.expect(data(1, 988));
    script.expect_at(400, data(1, 988));
    script.at(500);
    script.inject(ack(1, 989).ts(2, offset + 100));
    // The echo is of the first transmission, 400 ms ago: srtt = 7/8 * 100 + 1/8 * 400.
    assert_eq!(script.connection().srtt(), Some(Duration::from_micros(137_500)));
}

/// RFC 7323 (5.3, R2 before R3): the answer to a duplicate has the echo of what came before it. That is no round trip, but for Linux.
#[test]
fn the_answer_to_a_duplicate_gives_no_sample() {
    let sampled = |estimator: RtoEstimator| {
        let config = TcpConfig { timestamps: true, ..plain() };
        let config = config.with(|it| (it.recovery.scheme, it.rto.estimator) = (Recovery::Sack, estimator));
        let mut script = Script::connecting(&config);
        let offset = script.take().options.timestamps.unwrap().value;
        script.at(100);
        script.inject(syn_ack().sack_permitted().ts(1, offset));
        script.take_count();
        script.write(988);
        assert_eq!(script.take_count(), 1);
        script.at(450);
        assert_eq!(script.take_count(), 1, "the time-out");
        script.at(500);
        script.inject(ack(1, 989).ts(2, offset + 100).sack(&[(1, 989)]));
        (script.connection().srtt(), script.connection().sender_statistics().dsacks_received)
    };
    assert_eq!(sampled(RtoEstimator::Rfc6298), (Some(Duration::from_millis(100)), 1));
    assert_eq!(sampled(RtoEstimator::Linux), (Some(Duration::from_micros(137_500)), 1));
}

/// RFC 5681 (3.1): the initial window, and slow start by one segment an acknowledgement.
#[test]
fn slow_start_doubles() {
    let mut script = Script::established(&plain());
    script.write(20_000);
    script.expect(data(1, 1000));
    script.expect(data(1001, 1000));
    script.expect_nothing();
    script.at(200);
    script.inject(ack(1, 1001));
    script.expect(data(2001, 1000));
    script.expect(data(3001, 1000));
    script.inject(ack(1, 2001));
    assert_eq!(script.take_count(), 2);
    assert_eq!(script.connection().cwnd(), 4000);
    script.at(300);
    script.inject(ack(1, 4001));
    // One acknowledgement of two segments opens by one (RFC 5681, 2) ...
    assert_eq!(script.take_count(), 3);
}

/// ... or by two with the L of RFC 3465.
#[test]
fn byte_counting_can_open_by_two_segments() {
    let mut script = Script::established(&plain().with(|it| it.window.byte_counting_limit = 2));
    script.write(20_000);
    script.take_count();
    script.at(200);
    script.inject(ack(1, 2001));
    assert_eq!(script.take_count(), 4);
    assert_eq!(script.connection().cwnd(), 4000);
}

/// RFC 5681 (4.1): after an idle RTO the window starts again.
#[test]
fn an_idle_sender_restarts() {
    for (after_idle, first) in [(AfterIdle::Restart, 2), (AfterIdle::Keep, 4)] {
        let mut script = Script::established(&plain().with(|it| it.window.after_idle = after_idle));
        script.write(6000);
        for (at, acked) in [(200, 2001), (300, 5001), (400, 6001)] {
            script.at(at);
            script.inject(ack(1, acked));
        }
        assert_eq!((script.take_count(), script.connection().cwnd()), (6, 4000));
        script.at(2000);
        script.write(20_000);
        assert_eq!(script.take_count(), first);
    }
}

/// RFC 5681 (3.1), equation 4, and the loss window; a second time-out of the same segment leaves `ssthresh` alone.
#[test]
fn a_timeout_collapses_the_window_once() {
    let mut script = Script::with_window(&plain(), 10);
    script.write(20_000);
    assert_eq!(script.take_count(), 10);
    script.expect_at(400, data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(5000)));
    script.expect_at(1000, data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(5000)));
    // Slow start over what was lost, in order.
    script.at(1100);
    script.inject(ack(1, 1001));
    script.expect(data(1001, 1000));
    script.expect(data(2001, 1000));
    script.expect_nothing();
    script.at(1200);
    // The receiver had the rest.
    script.inject(ack(1, 10_001));
    assert_eq!(script.connection().in_flight(), 3000);
    script.expect(data(10_001, 1000));
}

/// RFC 6298 (5.4): a full segment with FIN is one number longer than the loss window, and is sent again all the same.
#[test]
fn a_full_segment_with_fin_is_sent_again_after_a_timeout() {
    let mut script = Script::connecting(&plain());
    script.take();
    script.write(1000);
    script.finish();
    script.at(100);
    script.inject(syn_ack());
    script.expect(Seg { len: 1000, ..fin(1) });
    script.expect_at(400, Seg { len: 1000, ..fin(1) });
    script.expect_at(1000, Seg { len: 1000, ..fin(1) });
    script.inject(ack(1, 1002));
    assert_eq!(script.connection().flight_size(), 0);
}

/// An acknowledgement that is too old to tell the window (RFC 9293, 3.10.7.4, fifth) takes the probe's byte and leaves
/// the window closed: the probing goes on.
#[test]
fn probing_goes_on_when_the_probe_is_taken_and_the_window_stays_closed() {
    let mut script = Script::established(&plain());
    script.inject(data(501, 100).window(0));
    script.expect(ack(1, 1));
    script.write(10);
    script.expect_at(400, data(1, 1));
    script.at(500);
    script.inject(data(1, 500).ack(2).window(5000));
    script.expect(ack(2, 601));
    assert_eq!(script.connection().peer_window(), 0);
    script.expect_at(800, data(2, 1));
    script.inject(ack(601, 3).window(5000));
    script.expect(data(3, 8));
}

/// RFC 9293 (3.8.6.2.1): a peer that has never opened its window gets nothing but probes: no empty segments.
#[test]
fn a_window_that_never_opened_lets_nothing_out() {
    let mut script = Script::connected(&plain(), 100, syn_ack().window(0));
    let id = script.id.unwrap();
    script.host.write(script.now, id, &[0; 1000]).unwrap();
    let sent = script.host.poll_transmit(script.now);
    assert!(sent.is_none(), "empty segments without end: {sent:?}");
    script.at(399);
    assert_eq!(script.connection().sender_statistics().window_probes, 0);
    script.at(400);
    assert_eq!(script.connection().sender_statistics().window_probes, 1);
}

/// Linux, `segmentation-offloads`: a device cuts a packet of full segments; it wants the segments' size, and the sum of the
/// pseudo-header alone as checksum. What is in flight is noted by segments.
#[test]
fn full_segments_leave_in_one_packet() {
    let mut script = Script::with_window(&plain(), 10);
    let id = script.id.unwrap();
    script.host.write(script.now, id, &[0; 6500]).unwrap();
    let train = |script: &mut Script, most| {
        let (packet, size): (Packet, _) = script.host.poll_transmit_train(script.now, most).expect("a train");
        let partial = !Sum::pseudo_header(HOST, PEER, Protocol::TCP.0, packet.len() - 20).finish();
        let is_partial = packet[36..38] == partial.to_be_bytes();
        let is_whole = tcp::Repr::parse(&tcp::View::parse(&packet[20..]).unwrap(), HOST, PEER).is_ok();
        assert_ne!(is_partial, is_whole, "the device completes the checksum, or it is complete");
        (packet.len() - 40, size, is_partial)
    };
    assert_eq!(train(&mut script, 4000), (4000, Some(1000), true));
    assert_eq!(script.connection().flight_size(), 4000);
    assert_eq!(train(&mut script, 0), (1000, None, false));
    assert_eq!(train(&mut script, 4000), (1000, None, false));
    assert_eq!(train(&mut script, 4000), (500, None, false));
    assert!(script.host.poll_transmit_train(script.now, 4000).is_none());
    script.inject(ack(1, 2001));
    assert_eq!(script.connection().flight_size(), 4500);
    assert_eq!(script.connection().sender_statistics().data_segments_sent, 7, "each is noted by itself");
}

/// RFC 7323 (4.1): an echo in an acknowledgement of nothing new is no sample, and ends no back-off.
#[test]
fn a_duplicates_echo_gives_no_sample() {
    let config = TcpConfig { timestamps: true, ..plain() };
    let mut script = Script::connecting(&config);
    let offset = script.take().options.timestamps.unwrap().value;
    script.at(100);
    script.inject(syn_ack().ts(1, offset));
    script.take_count();
    script.write(1976);
    assert_eq!(script.take_count(), 2);
    script.expect_at(400, data(1, 988));
    script.at(500);
    script.inject(ack(1, 1).ts(2, offset + 100));
    assert_eq!(script.connection().sender_statistics().duplicate_acks, 1);
    assert_eq!(
        script.connection().srtt(),
        Some(Duration::from_millis(100)),
        "the time-out swells in each recovery"
    );
    assert_eq!(script.connection().rto(), Duration::from_millis(600), "the back-off goes on");
}

/// RFC 9293 (3.8.6.1): a closed window is asked about, also while the peer talks.
#[test]
fn a_talking_peer_does_not_put_the_persist_timer_off() {
    let mut script = Script::established(&plain());
    script.inject(ack(1, 1).window(0));
    script.write(1000);
    script.peer_window = 0;
    for at in 0..6 {
        script.at(110 + 50 * at);
        script.inject(data(1 + 10 * at as i64, 10));
    }
    script.at(399);
    script.take_count();
    script.at(400);
    assert_eq!((script.sent(), script.connection().sender_statistics().window_probes), (vec![1], 1));
}

/// RFC 9293 (3.9.1): room that comes of sending, where little may wait, is told when it comes.
#[test]
fn what_leaves_makes_room() {
    let mut script = Script::with_window(&plain().with(|it| it.window.unsent_limit = Some(Size(2000))), 4);
    let id = script.id.unwrap();
    assert_eq!(script.host.write(script.now, id, &[0; 5000]), Ok(2000));
    assert_eq!(script.host.poll_event(), None);
    while script.host.poll_transmit(script.now).is_some() {}
    assert_eq!(script.host.poll_event(), Some((id, Event::Writable)));
}

/// RFC 9293 (3.9.1): nobody is woken for room that is not there.
#[test]
fn without_room_nobody_is_told_of_room() {
    let mut script = Script::with_window(&plain().with(|it| it.window.send_buffer = Size(8000)), 10);
    assert_eq!(script.write(9000), 8000);
    assert_eq!(script.take_count(), 8, "all of it is out");
    assert_eq!(script.read(0), 0);
    assert!(!script.events.contains(&Event::Writable), "and none of it is acknowledged");
    script.inject(ack(1, 1001));
    script.expect_event(Event::Writable);
}

/// RFC 1122 (4.2.3.4), RFC 9293 (3.8.6.2.1): half of a small window is no reason to send less than waits while something is out.
#[test]
fn nagle_holds_for_small_windows() {
    let mut script = Script::connected(&TcpConfig { nagle: true, ..plain() }, 100, syn_ack().window(1000));
    script.write(300);
    script.expect(data(1, 300));
    script.write(700);
    script.inject(ack(1, 1).window(900));
    script.expect_nothing();
}

/// RFC 5681 (3.1), RFC 2861 (1): a window that has room for another segment is not full: it does not grow.
#[test]
fn a_window_with_room_for_a_segment_does_not_grow() {
    let config = plain().with(|it| it.window.initial_ssthresh = Some(Size(10_000)));
    let mut script = Script::with_window(&config, 10);
    let mut acked = 1;
    for round in 2..20 {
        script.write(9000);
        assert_eq!(script.take_count(), 9);
        script.at(100 * round);
        acked += 9000;
        script.inject(ack(1, acked));
        assert_eq!(script.connection().cwnd(), 10_000, "an application that never fills it opens it");
    }
}
