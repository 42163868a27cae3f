//! Segment scripts: ending a connection.

use crate::script::*;
use longhaul_tcp::host::Discard;
use longhaul_tcp::{Connection, ConnectionError, Event, Failure, State};

/// RFC 9293, figure 12, this side first; TIME-WAIT lasts its time.
#[test]
fn an_active_close_ends_in_time_wait() {
    let mut script = Script::established(&plain());
    script.finish();
    script.expect(fin(1).ack(1));
    assert_eq!(script.connection().state(), State::FinWait1);
    script.at(200);
    script.inject(ack(1, 2));
    assert_eq!(script.connection().state(), State::FinWait2);
    script.acked = 2;
    script.at(300);
    script.inject(fin(1));
    script.expect(ack(2, 2));
    assert_eq!(script.connection().state(), State::TimeWait);
    script.expect_event(Event::PeerFinished);
    script.expect_event(Event::Closed);
    script.at(60_299);
    assert_eq!(script.connection().state(), State::TimeWait);
    script.at(60_300);
    assert_eq!(script.host.connections().count(), 0);
    assert_eq!(script.host.poll_timeout(), None);
}

/// Data beyond the peer's own FIN are nonsense: in TIME-WAIT nobody is left who could be told (RFC 9293, 3.10.7.4).
#[test]
fn data_beyond_the_fin_reset_nobody_in_time_wait() {
    let mut script = Script::established(&plain());
    script.close();
    script.inject(ack(1, 2));
    script.acked = 2;
    script.inject(fin(1));
    assert_eq!(script.connection().state(), State::TimeWait);
    script.take_count();
    script.inject(data(2, 100));
    script.expect_nothing();
    assert_eq!(script.connection().state(), State::Closed);
}

/// RFC 1122 (4.2.2.13): only new data reset a peer after `close()`: what came before may come again together with the FIN.
#[test]
fn known_data_with_a_fin_are_no_new_data() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 100));
    assert_eq!(script.read(1000), 100);
    script.close();
    script.take_count();
    script.inject(Seg { len: 100, ..fin(1) }.ack(2));
    assert_eq!(script.connection().state(), State::TimeWait, "the connection was reset");
    script.expect_event(Event::Closed);
    script.expect(ack(2, 102));
}

/// RFC 3135 (2.4): a proxy has acknowledged what its other connection may take long to pass on: it keeps it, however its own
/// connection ended, and lets go of it then.
#[test]
fn a_proxy_keeps_what_was_not_read() {
    for last in [fin(1001), rst(1001)] {
        let mut script = Script::standing_in(&plain());
        script.inject(syn());
        script.admit();
        script.inject(ack(1, 1));
        script.inject(data(1, 1000));
        script.finish();
        script.acked = 2;
        script.inject(last);
        script.at(200_000);
        assert_eq!(script.host.connections().count(), 1, "the end of the stream is lost");
        assert_eq!(script.read(2000), 1000);
        script.events.clear();
        assert_eq!(script.host.poll_transmit(script.now), None);
        script.at(400_000);
        assert_eq!((script.host.connections().count(), script.host.memory()), (0, 0));
    }
}

/// RFC 9293, figure 12, the peer first.
#[test]
fn a_passive_close_ends_with_the_last_ack() {
    let mut script = Script::established(&plain());
    script.inject(fin(1));
    script.expect(ack(1, 2));
    script.expect_event(Event::PeerFinished);
    assert_eq!(script.connection().state(), State::CloseWait);
    script.write(500);
    script.expect(data(1, 500).ack(2));
    script.finish();
    script.expect(fin(501).ack(2));
    assert_eq!(script.connection().state(), State::LastAck);
    script.inject(ack(2, 502));
    script.expect_event(Event::Closed);
    assert_eq!(script.connection().state(), State::Closed);
    assert_eq!(script.connection().sender_statistics().bytes_acked, 500);
}

/// RFC 9293, figure 13.
#[test]
fn both_sides_can_close_at_once() {
    let mut script = Script::established(&plain());
    script.finish();
    script.expect(fin(1).ack(1));
    script.inject(fin(1));
    script.expect(ack(2, 2));
    assert_eq!(script.connection().state(), State::Closing);
    script.inject(ack(2, 2));
    assert_eq!(script.connection().state(), State::TimeWait);
    script.expect_event(Event::Closed);
}

/// RFC 9293, figure 12: a FIN that acknowledges ours goes straight to TIME-WAIT.
#[test]
fn a_fin_that_acknowledges_ours_closes_at_once() {
    let mut script = Script::established(&plain());
    script.finish();
    script.expect(fin(1));
    script.inject(fin(1).ack(2));
    script.expect(ack(2, 2));
    assert_eq!(script.connection().state(), State::TimeWait);
}

/// RFC 9293 (3.6): after our FIN the peer's data still come, and after the peer's FIN ours still go.
#[test]
fn each_direction_closes_by_itself() {
    let mut script = Script::established(&plain());
    script.write(300);
    script.finish();
    script.expect(data(1, 300));
    script.expect(fin(301));
    script.acked = 302;
    script.inject(ack(1, 302));
    script.inject(data(1, 1000));
    script.inject(data(1001, 1000));
    script.expect(ack(302, 2001));
    assert_eq!(script.read(5000), 2000);
    assert_eq!(script.host.write(script.now, script.id.unwrap(), b"x"), Err(ConnectionError::Finished));
    script.inject(Seg { len: 10, ..fin(2001) });
    script.expect(ack(302, 2012));
    assert_eq!(script.read(5000), 10);
    assert!(script.connection().peer_finished());
}

/// A FIN is sent again like data (RFC 9293, 3.8.1).
#[test]
fn a_lost_fin_is_sent_again() {
    let mut script = Script::established(&plain());
    script.write(100);
    script.expect(data(1, 100));
    script.finish();
    script.expect(fin(101));
    script.at(150);
    script.inject(ack(1, 101));
    // srtt 93.75, rttvar 50 ms: RTO 293.75 ms, not below srtt + 200 ms.
    let rto = script.connection().rto();
    let due = (script.now + rto).as_nanos().div_ceil(1_000_000);
    script.quiet_before(due - 1);
    script.at(due);
    assert_eq!(script.take_count(), 1);
    script.inject(ack(1, 102));
    assert_eq!(script.connection().state(), State::FinWait2);
    assert_eq!(script.connection().sender_statistics().retransmissions, 1);
}

/// RFC 9293 (3.10.7.4, eighth): in TIME-WAIT a repeated FIN is acknowledged and the time starts anew.
#[test]
fn time_wait_answers_a_repeated_fin() {
    let mut script = Script::established(&plain());
    script.finish();
    script.expect(fin(1));
    script.inject(fin(1).ack(2));
    script.expect(ack(2, 2));
    script.at(30_000);
    script.inject(fin(1).ack(2));
    script.expect(ack(2, 2));
    // Anything else that is old is answered and puts off nothing: somebody could hold ports for ever.
    script.at(60_000);
    script.inject(data(-500, 100).ack(2));
    script.expect(ack(2, 2));
    script.at(89_999);
    assert_eq!(script.connection().state(), State::TimeWait);
    script.at(90_000);
    assert_eq!(script.host.connections().count(), 0);
}

/// RFC 1337: a reset does not end TIME-WAIT.
#[test]
fn time_wait_ignores_resets() {
    let mut script = Script::established(&plain());
    script.finish();
    script.expect(fin(1));
    script.inject(fin(1).ack(2));
    script.expect(ack(2, 2));
    script.inject(rst(2));
    script.expect_nothing();
    assert_eq!(script.connection().state(), State::TimeWait);
}

/// RFC 9293 (3.6.1), RFC 6191: a new SYN beyond the old connection opens a new one; an old one is answered.
#[test]
fn time_wait_gives_way_to_a_new_syn() {
    let mut script = Script::listening(&plain());
    script.inject(syn());
    script.take();
    script.inject(ack(1, 1));
    script.finish();
    script.expect(fin(1));
    script.inject(fin(1).ack(2));
    script.expect(ack(2, 2));
    script.inject(syn());
    script.expect(ack(2, 2));
    let old = script.id.unwrap();
    script.inject(Seg { seq: 50_000, ..syn() });
    script.expect(Seg { flags: SYN | ACK, ack: Some(50_001), ..Seg::default() });
    // The old one stays for questions, and for what was not read.
    assert_eq!(script.host.connection(old).map(Connection::state), Some(State::TimeWait));
    script.at(61_000);
    assert!(script.host.connection(old).is_none());
}

/// RFC 9293 (3.10.7.4, seventh): a FIN beyond a gap counts when the gap is filled.
#[test]
fn a_fin_beyond_a_gap_waits() {
    let mut script = Script::established(&plain());
    script.inject(Seg { len: 500, ..fin(501) });
    script.expect(ack(1, 1).sack(&[(501, 1001)]));
    // A bare one tells of the gap as well.
    script.inject(fin(1001));
    script.expect(ack(1, 1).sack(&[(501, 1001)]));
    assert!(!script.connection().peer_finished());
    script.inject(data(1, 500));
    script.expect(ack(1, 1002));
    script.expect_event(Event::PeerFinished);
    assert_eq!(script.read(2000), 1000);
}

/// RFC 9293 (3.10.7.4): what comes after the peer's FIN is no data.
#[test]
fn data_beyond_the_fin_are_ignored() {
    let mut script = Script::established(&plain());
    script.inject(Seg { len: 100, ..fin(1) });
    script.expect(ack(1, 102));
    script.inject(data(102, 50));
    script.expect(ack(1, 102));
    assert_eq!(script.read(2000), 100);
}

/// RFC 9293 (3.10.7.4): nor is what comes beyond a FIN that itself waits beyond a gap.
#[test]
fn data_beyond_an_early_fin_are_ignored() {
    let mut script = Script::established(&plain());
    script.inject(Seg { len: 100, ..fin(501) });
    script.expect(ack(1, 1).sack(&[(501, 601)]));
    // All of it beyond, and a part.
    script.inject(data(602, 50));
    script.expect(ack(1, 1).sack(&[(501, 601)]));
    script.inject(data(551, 100));
    script.expect(ack(1, 1));
    script.inject(data(1, 500));
    script.expect(ack(1, 602));
    script.expect_event(Event::PeerFinished);
    assert_eq!(script.read(2000), 600);
}

/// RFC 9293 (3.10.5): an abort resets; (3.10.7.1): again, for a peer that has not got it.
#[test]
fn an_abort_sends_a_reset() {
    let mut script = Script::established(&plain());
    script.write(100);
    script.expect(data(1, 100));
    script.abort();
    script.expect(rst(101).ack(1));
    script.expect_event(Event::Failed(Failure::Aborted));
    script.at(5000);
    script.expect_nothing();
    assert!(matches!(script.try_inject(data(1, 10)), Err(Discard::NoConnection(_))));
    script.expect(rst(1));
}

/// RFC 9293 (3.10.7.4, second): a reset ends the connection at once; what had arrived can still be read.
#[test]
fn a_reset_fails_the_connection() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 100));
    script.write(10);
    script.expect(data(1, 10));
    script.inject(rst(101));
    script.expect_event(Event::Failed(Failure::Reset));
    script.expect_nothing();
    assert_eq!(script.read(1000), 100);
    let id = script.id.unwrap();
    assert_eq!(script.host.read(script.now, id, &mut [0; 10]), Err(ConnectionError::Failed(Failure::Reset)));
    assert_eq!(script.host.write(script.now, id, b"x"), Err(ConnectionError::Failed(Failure::Reset)));
}

/// RFC 9293 (3.10.7.4, second): the same where the application takes all there is: first the data, then the failure.
#[test]
fn a_reset_is_told_after_the_data() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 1000));
    script.inject(rst(1001));
    let id = script.id.unwrap();
    assert_eq!(script.host.read_with(script.now, id, |_| ()), Ok(1000));
    assert_eq!(script.host.read_with(script.now, id, |_| ()), Err(ConnectionError::Failed(Failure::Reset)));
}

/// RFC 9293 (3.10.7.4, second): once both ends have closed, a reset takes nothing away, and is no error.
#[test]
fn a_reset_after_both_have_closed_is_the_end() {
    for first in ["peer", "both"] {
        let mut script = Script::established(&plain());
        if first == "peer" {
            script.inject(fin(1));
        }
        script.finish();
        script.take_count();
        if first == "both" {
            script.inject(fin(1));
        }
        let waits = if first == "peer" { State::LastAck } else { State::Closing };
        assert_eq!(script.connection().state(), waits);
        script.expect_event(Event::PeerFinished);
        script.take_count();
        script.inject(rst(2));
        script.expect_event(Event::Closed);
        assert!(script.events.is_empty(), "{:?}", script.events);
        script.expect_nothing();
    }
}

/// R2 of RFC 1122 (4.2.3.5): too many retransmissions without progress fail the connection.
#[test]
fn silence_fails_the_connection() {
    let config = plain().with(|it| it.limits.data_retries = 3);
    let mut script = Script::established(&config);
    script.write(100);
    script.expect(data(1, 100));
    // The handshake's sample of 100 ms: RTO = 100 + max(200, 4 * 50) = 300 ms, doubled each time.
    for at in [400, 1000, 2200] {
        script.expect_at(at, data(1, 100));
    }
    script.quiet_before(4600);
    script.at(4600);
    script.expect_nothing();
    script.expect_event(Event::Failed(Failure::TimedOut));
}

/// RFC 9293 (3.8.3): the user time-out counts from the last progress.
#[test]
fn the_user_timeout_fails_the_connection() {
    let config = plain().with(|it| it.limits.user_timeout = Some(base::Duration::from_millis(900)));
    let mut script = Script::established(&config);
    script.write(100);
    script.expect(data(1, 100));
    script.expect_at(400, data(1, 100));
    script.quiet_before(1000);
    assert!(!script.events.contains(&Event::Failed(Failure::TimedOut)));
    script.at(1000);
    script.expect_nothing();
    script.expect_event(Event::Failed(Failure::TimedOut));
}

/// RFC 9293 (3.10.5, 3.10.7.1): what is closed is closed: nothing is sent or told a second time.
#[test]
fn a_connection_ends_once() {
    let mut script = Script::established(&plain());
    script.abort();
    script.take_count();
    script.events.clear();
    script.abort();
    script.expect_nothing();
    assert_eq!(script.events, []);
}
