//! Segment scripts: peers that are gone, and connections that nobody needs any more.

use crate::script::*;
use base::Duration;
use longhaul_tcp::host::Discard;
use longhaul_tcp::{ConnectError, Connection, ConnectionError, Event, Failure, State, TcpConfig};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

fn closed(config: &TcpConfig) -> Script {
    let mut script = Script::established(config);
    script.close();
    script.expect(fin(1));
    script.inject(ack(1, 2));
    assert_eq!(script.connection().state(), State::FinWait2);
    script
}

/// RFC 9293 (3.6), Linux's `tcp_fin_timeout`: who has closed for good waits a minute for the peer's FIN; who has only
/// finished waits as long as it takes.
#[test]
fn an_orphan_leaves_fin_wait_2() {
    for config in [plain(), kept_alive()] {
        let mut script = closed(&config);
        // That the peer is there does not help.
        script.at(MINUTE / 2);
        script.inject(ack(1, 2));
        script.at(100 + MINUTE - 1);
        assert_eq!(script.connection().state(), State::FinWait2);
        script.at(100 + MINUTE);
        script.expect_event(Event::Failed(Failure::TimedOut));
        script.at(100 + 2 * MINUTE);
        assert_eq!(script.host.connections().count(), 0);
    }

    let mut script = Script::established(&plain());
    script.finish();
    script.inject(ack(1, 2));
    // Closed later, it has its minute from then on.
    script.at(30 * DAY);
    assert_eq!(script.connection().state(), State::FinWait2);
    script.close();
    script.at(30 * DAY + MINUTE);
    script.expect_event(Event::Failed(Failure::TimedOut));
}

/// RFC 9293 (3.6): the peer's FIN in time ends it as usual.
#[test]
fn an_orphan_ends_in_time_wait() {
    let mut script = closed(&plain());
    script.at(MINUTE);
    script.inject(fin(1).ack(2));
    script.expect(ack(2, 2));
    assert_eq!(script.connection().state(), State::TimeWait);
    script.expect_event(Event::Closed);
    script.at(2 * MINUTE);
    assert_eq!(script.host.connections().count(), 0);
}

/// RFC 1122 (4.2.2.13): data that nobody will read, or nobody has read, are answered with a reset.
#[test]
fn data_for_nobody_are_reset() {
    let mut script = closed(&plain());
    // What had come before says nothing new.
    script.inject(data(0, 1).ack(2));
    assert_eq!(script.connection().state(), State::FinWait2);
    script.take_count();
    script.inject(data(1, 100).ack(2));
    // RFC 9293 (3.10.7.1): its number is the acknowledgement of what it answers.
    script.expect(rst(2));
    script.expect_event(Event::Failed(Failure::Aborted));

    let mut script = Script::established(&plain());
    script.inject(data(1, 100));
    script.close();
    script.expect(rst(1).ack(101));
}

/// RFC 9293 (3.8.6.1), RFC 1122 (4.2.2.17): a peer whose window stays closed holds an application up for ever, but not a
/// connection that has none.
#[test]
fn an_orphan_does_not_wait_for_a_closed_window() {
    let config = plain().with(|it| it.limits.data_retries = 5);
    for orphaned in [false, true] {
        let mut script = Script::established(&config);
        script.inject(ack(1, 1).window(0));
        script.write(1000);
        if orphaned {
            script.close();
        }
        // The peer answers every probe.
        for _ in 0..20 {
            let Some(due) = script.host.poll_timeout() else { break };
            script.at(due.as_nanos().div_ceil(1_000_000));
            if script.take_count() > 0 {
                script.inject(ack(1, 1).window(0));
            }
        }
        assert_eq!(script.events.contains(&Event::Failed(Failure::TimedOut)), orphaned);
    }
}

fn kept_alive() -> TcpConfig {
    plain().with(|it| it.limits.keep_alive = Some(Duration::from_secs(7200)))
}

/// RFC 1122 (4.2.3.6), RFC 9293 (3.8.4): off by default; after two hours a probe from one number before, and what answers
/// starts the time again.
#[test]
fn a_silent_peer_is_asked_if_that_is_wanted() {
    let mut script = Script::established(&plain());
    script.quiet_before(30 * DAY);

    let mut script = Script::established(&kept_alive());
    let hours = 120 * MINUTE;
    script.expect_at(100 + hours, ack(0, 1));
    script.inject(ack(1, 1));
    script.expect_at(100 + 2 * hours, ack(0, 1));
    // Data, too, are a sign of life, and their acknowledgement is none of a probe.
    script.at(100 + 2 * hours + 1000);
    script.inject(data(1, 10));
    script.expect_at(100 + 2 * hours + 1040, ack(1, 11));
}

/// RFC 1122 (4.2.3.6): a peer that answers none of nine probes is gone; one that forged segments imitate, too.
#[test]
fn a_peer_that_is_gone_is_noticed() {
    let mut script = Script::established(&kept_alive());
    let first = 100 + 120 * MINUTE;
    for probe in 0..9 {
        script.at(first + 75_000 * probe);
        script.expect(ack(0, 1));
        let _ = script.try_inject(data(1 << 30, 1));
        script.take_count();
    }
    script.quiet_before(first + 75_000 * 9);
    assert!(script.connection().failure().is_none());
    script.at(first + 75_000 * 9);
    script.expect_event(Event::Failed(Failure::TimedOut));
    script.expect_nothing();
}

/// RFC 1122 (4.2.3.6): what is outstanding has its own timer, and a half-closed connection is asked as well.
#[test]
fn only_silence_is_probed() {
    let mut script = Script::established(&kept_alive().with(|it| it.limits.data_retries = 1000));
    script.write(100);
    script.expect(data(1, 100));
    script.at(130 * MINUTE);
    assert!(script.sent().iter().all(|&start| start == 1), "only retransmissions");

    // What is written just then goes out in place of the probe, and later acknowledgements are none.
    let mut script = Script::established(&kept_alive());
    script.now = ms(100 + 120 * MINUTE);
    script.host.handle_timeout(script.now);
    script.write(100);
    script.expect(data(1, 100));
    script.inject(data(1, 1000).ack(101));
    script.inject(data(1001, 1000).ack(101));
    script.expect(ack(101, 2001));

    let mut script = Script::established(&kept_alive());
    script.finish();
    script.expect(fin(1));
    script.inject(ack(1, 2));
    script.expect_at(100 + 120 * MINUTE, ack(1, 1));
}

/// RFC 6191 (2), `tcp_tw_reuse` of Linux: with every port in TIME-WAIT, one whose timestamps have moved on is used again, and
/// the old connection stays for questions.
#[test]
fn a_port_in_time_wait_is_used_again() {
    for timestamps in [false, true] {
        let config = plain().with(|it| it.timestamps = timestamps);
        let stamp = |seg: Seg| if timestamps { seg.ts(1, 0) } else { seg };
        let mut script = Script::connected(&config, 100, stamp(syn_ack()));
        script.finish();
        script.inject(stamp(fin(1).ack(2)));
        assert_eq!(script.connection().state(), State::TimeWait);
        let peer = std::net::SocketAddr::new(PEER, PEER_PORT);
        let connect = |script: &mut Script| script.host.connect(script.now, peer, &config);
        // All ports but two have listeners; the second is taken, too.
        let used = script.connection().local().port();
        let spare = used ^ 1;
        for port in (49_152..=u16::MAX).filter(|&port| port != used && port != spare) {
            script.host.listen(port, &config).expect("a free port");
        }
        let other = connect(&mut script).expect("a free port");
        assert_eq!(connect(&mut script), Err(ConnectError::PortsExhausted(peer)));
        script.at(1200);
        match connect(&mut script) {
            Ok(id) => {
                assert!(timestamps);
                let old = script.connection();
                assert_eq!(script.host.connection(id).map(Connection::local), Some(old.local()));
                assert_eq!(old.state(), State::TimeWait);
            }
            Err(error) => assert!(!timestamps, "{error}"),
        }
        // So is one whose connection has ended, without waiting.
        script.host.abort(script.now, other).unwrap();
        assert!(connect(&mut script).is_ok());
        assert_eq!(
            script.host.write(script.now, other, b"x"),
            Err(ConnectionError::Failed(Failure::Aborted))
        );
    }
}

/// RFC 6191 (2): which SYNs open a connection in TIME-WAIT anew, by timestamp and by number.
#[test]
fn a_syn_in_time_wait_is_judged_by_its_timestamp() {
    // Whether the old connection had timestamps; the SYN's number, its timestamp, and whether it is honoured.
    for (stamped, seq, stamp, honoured) in [
        (true, 0, Some(6), true),
        (true, 9000, Some(4), false),
        (true, 9000, Some(5), true),
        (true, 0, Some(5), false),
        (true, 9000, None, true),
        (true, 0, None, false),
        (false, 0, Some(u32::MAX), true),
        (false, 9000, None, true),
        (false, 0, None, false),
    ] {
        let mut script = Script::listening(&plain().with(|it| it.timestamps = true));
        let stamp_with = |seg: Seg, stamp: Option<u32>| stamp.map_or(seg.clone(), |value| seg.ts(value, 0));
        let old = stamped.then_some(5);
        script.inject(stamp_with(syn(), old));
        script.take();
        script.inject(stamp_with(ack(1, 1), old));
        script.finish();
        script.take();
        script.inject(stamp_with(fin(1).ack(2), old));
        script.take();
        assert_eq!(script.connection().state(), State::TimeWait);
        script.inject(stamp_with(Seg { seq, ..syn() }, stamp));
        assert_eq!(script.take().flags.has(SYN), honoured, "{stamped} {seq} {stamp:?}");
    }
}

/// RFC 6191 (2), RFC 9293 (3.10.7.1): a SYN for a port where nobody listens ends no TIME-WAIT, and what was not read
/// outlives one that opens a connection.
#[test]
fn time_wait_is_not_cut_short_by_strangers() {
    let mut script = Script::established(&plain());
    script.finish();
    script.inject(fin(1).ack(2));
    script.take_count();
    let challenged = script.try_inject(Seg { seq: 50_000, ..syn() });
    assert_eq!(challenged, Err(Discard::Segment(longhaul_tcp::Discard::SynChallenged)));
    assert_eq!(script.connection().state(), State::TimeWait);

    let mut script = Script::listening(&plain());
    script.inject(syn());
    script.inject(ack(1, 1));
    script.finish();
    script.inject(Seg { len: 100, ..fin(1).ack(2) });
    let old = script.id.unwrap();
    script.take_count();
    script.inject(Seg { seq: 50_000, ..syn() });
    assert_eq!(script.last().flags, SYN | ACK);
    assert_eq!(script.host.read(script.now, old, &mut [0; 200]), Ok(100));
}

/// RFC 3135 (2.2), RFC 9293 (3.6.1): a proxy that has not acknowledged the peer's FIN yet, because the far end has not, stays in TIME-WAIT
/// to do so; but not for ever: 60 times more, an hour.
#[test]
fn time_wait_is_prolonged_for_an_hour_at_most() {
    for (is_withheld, lasts) in [(false, 60), (true, 61 * 60)] {
        let mut script = Script::established(&plain());
        let id = script.id.expect("a connection");
        if is_withheld {
            script.host.steer(id, |it| it.acknowledge_only(0)).expect("it is there");
        }
        script.finish();
        script.inject(ack(1, 2));
        script.acked = 2;
        script.inject(data(1, 100));
        script.inject(fin(101));
        assert_eq!(script.connection().state(), State::TimeWait);
        script.read(100);
        script.at(100 + 1000 * lasts - 1);
        assert_eq!(script.host.connections().count(), 1, "{is_withheld}");
        script.at(100 + 1000 * lasts);
        assert_eq!(script.host.connections().count(), 0, "{is_withheld}");
    }
}

/// RFC 9293 (3.8.4): who asks for another, as a proxy does, asks once while the answer is awaited: else its patience is over sooner.
#[test]
fn asking_again_is_no_second_question() {
    let mut script = Script::established(&plain());
    for at in 1..6 {
        script.at(100 + 10_000 * at);
        let now = script.now;
        script.steer(|it| it.ask_peer(now));
    }
    assert_eq!(script.take_count(), 1);
}

/// RFC 9293 (3.10.7.2): a SYN that was answered is not answered again for nothing.
#[test]
fn a_caller_is_admitted_once() {
    let mut script = Script::standing_in(&plain());
    script.inject(syn());
    script.expect_nothing();
    script.admit();
    assert_eq!(script.take_count(), 1);
    script.admit();
    script.expect_nothing();
}
