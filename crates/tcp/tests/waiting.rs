//! Segment scripts: what waits for a window, and for how long.

use crate::script::*;
use base::Duration;
use longhaul_tcp::{Event, Failure, Recovery, TcpConfig};

const GIVEN_UP: Event = Event::Failed(Failure::TimedOut);

/// Gives a peer up that makes no progress for 700 ms: between two expirations of the timer, which come 300 and 900 ms after the start.
fn impatient() -> TcpConfig {
    plain().with(|it| it.limits.user_timeout = Some(Duration::from_millis(700)))
}

fn reno() -> TcpConfig {
    plain().with(|it| {
        it.recovery.scheme = Recovery::Reno;
        it.recovery.limited_transmit = false;
    })
}

/// Linux counts its window in segments (`tcp_cwnd_test`): a short segment is one, so a fraction of a segment in the window lets none out,
/// although RFC 5681 (3.1), in bytes, would.
#[test]
fn a_short_segment_needs_the_room_of_a_full_one() {
    let mut script = Script::with_window(&reno(), 5);
    script.write(5000);
    assert_eq!(script.take_count(), 5);
    script.at(200);
    for _ in 0..3 {
        script.inject(ack(1, 1));
    }
    script.expect(data(1, 1000));
    script.at(300);
    script.inject(ack(1, 5001));
    assert_eq!((script.connection().cwnd(), script.connection().recovering()), (2500, false));
    script.write(2000);
    assert_eq!(script.take_count(), 2);
    // 500 bytes are free.
    script.write(100);
    script.expect_nothing();
    script.at(400);
    script.inject(ack(1, 6001));
    script.expect(data(7001, 100));
}

/// RFC 9293 (3.8.6.2.1): what the override time-out sent into a small window is data like any other. A window that opens further
/// lets more out, and sends nothing again.
#[test]
fn what_the_override_sent_is_in_flight() {
    let mut script = Script::with_window(&plain(), 10);
    script.inject(ack(1, 1).window(400));
    script.write(3000);
    script.expect_at(400, data(1, 400));
    script.inject(ack(1, 1).window(1400));
    script.expect(data(401, 1000));
    script.expect_nothing();
    script.at(500);
    script.inject(ack(1, 1401).window(5000));
    script.expect(data(1401, 1000));
    script.expect(data(2401, 600));
    assert_eq!(script.connection().sender_statistics().retransmissions, 0);
}

/// RFC 9293 (3.8.6.1), RFC 6298 (5.1): the probes' back-off is theirs. Once the window is open, data have a time-out that is not
/// backed off, and every wait after that begins anew.
#[test]
fn an_open_window_ends_the_back_off() {
    let mut script = Script::with_window(&plain(), 10);
    script.inject(ack(1, 1).window(0));
    script.write(1000);
    for at in [400, 1000, 2200] {
        script.expect_at(at, data(1, 1));
        script.inject(ack(1, 1).window(0));
    }
    assert_eq!(script.connection().backoff(), 3);
    script.at(2300);
    script.inject(ack(1, 1).window(5000));
    assert_eq!((script.connection().backoff(), script.connection().rto()), (0, Duration::from_millis(300)));
    assert_eq!(script.sent(), [1, 2]);
    script.expect_at(2600, data(1, 1));
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
}

/// RFC 9293 (3.8.6.1): probing is over when the window opens; a probe that was due is not sent any more, and new data do not
/// wait for another answer.
#[test]
fn after_the_window_has_opened_nothing_probes() {
    let mut script = Script::with_window(&plain(), 10);
    script.inject(ack(1, 1).window(0));
    script.write(1000);
    script.expect_at(400, data(1, 1));
    script.at(450);
    script.inject(ack(1, 2).window(5000));
    script.expect(data(2, 999));
    script.write(1000);
    script.expect(data(1001, 1000));
    script.at(550);
    script.inject(ack(1, 2001).window(5000));
    script.write(1000);
    script.expect(data(2001, 1000));
    assert_eq!(script.connection().sender_statistics().window_probes, 1);
}

/// RFC 9293 (3.8.6.1): a probe that has not left when the window opens is none any more: what leaves then are data.
#[test]
fn a_probe_that_has_not_left_is_none_in_an_open_window() {
    let mut script = Script::with_window(&plain(), 10);
    script.inject(ack(1, 1).window(0));
    script.write(1000);
    // Nobody takes what there is to send.
    script.now = ms(400);
    script.host.handle_timeout(script.now);
    script.inject(ack(1, 1).window(5000));
    script.expect(data(1, 1000));
    assert_eq!(script.connection().sender_statistics().window_probes, 0);
}

/// RFC 9293 (3.8.3): the user time-out does not wait for the next retransmission, however late that is.
#[test]
fn the_user_timeout_comes_between_retransmissions() {
    let mut script = Script::established(&impatient());
    script.write(100);
    script.expect(data(1, 100));
    script.expect_at(400, data(1, 100));
    script.quiet_before(800);
    assert!(!script.events.contains(&GIVEN_UP));
    script.at(800);
    script.expect_nothing();
    script.expect_event(GIVEN_UP);
}

/// RFC 9293 (3.8.3): it counts from when something had to be acknowledged: an idle time before does not count, nor what came before an
/// acknowledgement of a part.
#[test]
fn the_user_timeout_counts_from_progress() {
    let mut script = Script::established(&impatient());
    script.at(5000);
    script.write(2000);
    script.expect(data(1, 1000));
    script.expect(data(1001, 1000));
    script.expect_at(5300, data(1, 1000));
    script.at(5500);
    script.inject(ack(1, 1001));
    script.take_count();
    script.at(6199);
    assert!(!script.events.contains(&GIVEN_UP));
    script.at(6200);
    script.expect_event(GIVEN_UP);
}

/// RFC 9293 (3.8.3, 3.8.6.1): so it does where data have to wait for a window, and each answer to a probe is progress, as long as there
/// is an application to wait.
#[test]
fn the_user_timeout_counts_from_answers_to_probes() {
    let mut script = Script::established(&impatient());
    script.inject(ack(1, 1).window(0));
    script.peer_window = 0;
    script.at(5000);
    script.write(100);
    script.expect_at(5300, data(1, 1));
    script.at(5400);
    script.inject(ack(1, 1));
    // The timer looks whether 700 ms are over since progress began; they are not, so it asks again.
    script.expect_at(5700, data(1, 1));
    script.at(6000);
    script.inject(ack(1, 1));
    script.expect_at(6100, data(1, 1));
    script.at(6699);
    assert!(!script.events.contains(&GIVEN_UP));
    script.at(6700);
    script.expect_event(GIVEN_UP);
}

/// RFC 9293 (3.4, 3.8.6): a FIN takes a number, so it waits where the data before it have filled the window, and goes with them where
/// there is room for one more.
#[test]
fn a_fin_needs_a_number_in_the_window() {
    for (window, together) in [(1000, false), (1001, true)] {
        let mut script = Script::connecting(&plain());
        script.take();
        script.write(1000);
        script.finish();
        script.at(100);
        script.inject(syn_ack().window(window));
        if together {
            script.expect(Seg { len: 1000, ..fin(1) });
            continue;
        }
        script.expect(data(1, 1000));
        script.expect_nothing();
        script.at(200);
        script.inject(ack(1, 1001).window(0));
        script.expect_nothing();
        script.inject(ack(1, 1001).window(1));
        script.expect(fin(1001));
    }
}

/// RFC 9293 (3.8.6.1): a probe has one byte beyond the window, so that a FIN behind it waits for its own.
#[test]
fn a_fin_does_not_ride_on_a_probe() {
    let mut script = Script::established(&plain());
    script.inject(ack(1, 1).window(0));
    script.write(1);
    script.finish();
    script.expect_at(400, data(1, 1));
    script.at(500);
    script.inject(ack(1, 2).window(0));
    // Nothing is outstanding, so the wait begins anew; the FIN is a probe of its own.
    script.expect_at(800, fin(2));
}

/// RFC 5681 (3.2): duplicates before a time-out do not count after it: three more mean a loss, and fewer do not.
#[test]
fn duplicates_are_counted_anew_after_a_timeout() {
    let mut script = Script::flying(&reno(), 10);
    script.inject(ack(1, 1));
    script.inject(ack(1, 1));
    script.expect_at(400, data(1, 1000));
    script.inject(ack(1, 1));
    script.inject(ack(1, 1));
    assert!(!script.connection().recovering());
    script.inject(ack(1, 1));
    assert!(script.connection().recovering());
}
