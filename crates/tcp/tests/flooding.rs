//! Segment scripts: a listener in a flood of SYNs whose senders never go on (RFC 4987).

use crate::script::*;
use base::wire::tcp::{Flags, Options, Repr};
use base::{Rng, SeqNum};
use longhaul_tcp::host::Discard;
use longhaul_tcp::{EcnUse, Event, Host, State, TcpConfig};

/// A listener whose backlog others have filled.
fn flooded(config: &TcpConfig) -> Script {
    let config = config.clone().with(|it| {
        it.initial_sequence = None;
        it.limits.backlog = 3;
        it.window.initial = longhaul_tcp::InitialWindow::Segments(10);
    });
    let mut script = Script::listening(&config);
    for port in 6000..6003 {
        script.peer_port = port;
        script.inject(syn());
        script.take();
    }
    script.peer_port = PEER_PORT;
    script
}

fn stamped() -> TcpConfig {
    plain().with(|it| (it.timestamps, it.ecn) = (true, EcnUse::Passive))
}

/// RFC 4987 (2.2): the backlog limits half-open connections. Whoever completes the handshake leaves it: ten in turn need no cookie,
/// though only three may be half-open.
#[test]
fn an_established_connection_leaves_the_backlog() {
    let config = plain().with(|it| {
        it.initial_sequence = None;
        it.limits.backlog = 3;
    });
    let mut script = Script::listening(&config);
    for port in 6000..6010 {
        script.peer_port = port;
        script.inject(syn());
        script.iss = script.take().seq;
        script.inject(ack(1, 1));
        script.expect_event(Event::Accepted { local_port: PORT });
    }
    assert_eq!(script.host.cookies().sent, 0);
}

/// RFC 4987 (3.6): with a full backlog a SYN is answered and forgotten; the acknowledgement opens the connection, with the
/// options that the timestamp brings back.
#[test]
fn a_cookie_opens_a_connection() {
    let mut script = flooded(&stamped());
    script.at(5000);
    script.take_count();
    let offer = syn().and(Flags::ECE | Flags::CWR).sack_permitted().scale(9).mss(1470).ts(700, 0);
    script.inject(offer);
    let answer = script.take();
    assert_eq!(answer.flags, SYN | ACK | Flags::ECE);
    assert_eq!((answer.options.window_scale, answer.options.sack_permitted), (Some(3), true));
    assert_eq!(script.host.connections().count(), 3);
    let stamp = answer.options.timestamps.expect("a timestamp");
    assert_eq!(stamp.echo, 700);
    // The first data come with the acknowledgement, from a peer 200 ms away.
    script.at(5200);
    script.iss = answer.seq;
    script.inject(data(1, 100).ts(900, stamp.value).window(100));
    script.expect_event(Event::Accepted { local_port: PORT });
    let connection = script.connection();
    assert_eq!((connection.state(), connection.mss()), (State::Established, 988));
    assert!(connection.uses_sack() && connection.uses_timestamps() && connection.uses_ecn());
    assert_eq!(connection.peer_window(), 100 << 9);
    // The timestamp was rounded down by at most 63 ms; nothing went back to one segment for that.
    let srtt = connection.srtt().expect("a sample").as_millis();
    assert!((200..264).contains(&srtt), "{srtt}");
    assert_eq!(connection.cwnd(), 10 * 988);
    assert_eq!(script.read(1000), 100);
    script.write(988);
    let sent = script.last();
    let later = sent.options.timestamps.expect("a timestamp").value.wrapping_sub(stamp.value);
    assert!((200..264).contains(&later), "{later}");
    let cookies = script.host.cookies();
    assert_eq!((cookies.sent, cookies.accepted, cookies.refused), (1, 1, 0));
}

/// RFC 4987 (3.6): without timestamps only the segment size is remembered.
#[test]
fn a_cookie_without_timestamps_remembers_the_segment_size() {
    for (offered, remembered) in [(100, 64), (512, 512), (535, 512), (536, 536), (900, 536)] {
        let mut script = flooded(&plain());
        script.inject(syn().mss(offered).sack_permitted().scale(5));
        let answer = script.take();
        script.iss = answer.seq;
        script.inject(ack(1, 1).window(3000));
        let connection = script.connection();
        assert_eq!(connection.mss(), remembered);
        assert!(!connection.uses_sack() && connection.srtt().is_none());
        assert_eq!(connection.peer_window(), 3000);
    }
}

/// RFC 7323 (2.2), RFC 2018 (2): what a cookie does not remember is not agreed on, or the peer would scale its window and ours
/// and neither side would know what the other means.
#[test]
fn a_cookie_agrees_on_what_it_remembers() {
    for timestamps in [false, true] {
        let mut script = flooded(&stamped().with(|it| it.timestamps = timestamps));
        script.inject(syn().and(Flags::ECE | Flags::CWR).mss(1000).sack_permitted().scale(7));
        let answer = script.take();
        assert_eq!(answer.flags, SYN | ACK);
        let offered = answer.options;
        assert_eq!((offered.window_scale, offered.sack_permitted, offered.timestamps), (None, false, None));
        script.iss = answer.seq;
        script.inject(ack(1, 1).window(100));
        assert_eq!(script.connection().peer_window(), 100);
        script.write(10);
        assert_eq!(script.last().window, 65_535);
    }
}

/// RFC 2018 (2), RFC 3168 (6.1.1): nor is what the SYN did not offer, though it had timestamps.
#[test]
fn a_cookie_agrees_on_nothing_that_was_not_offered() {
    let mut script = flooded(&stamped());
    script.inject(syn().ts(9000, 0));
    let answer = script.take();
    assert!(!answer.options.sack_permitted && !answer.flags.has(Flags::ECE));
    let stamp = answer.options.timestamps.unwrap().value;
    script.iss = answer.seq;
    script.inject(ack(1, 1).ts(9010, stamp));
    script.expect_event(Event::Accepted { local_port: PORT });
    assert_eq!(script.host.cookies().accepted, 1);
    assert!(!script.connection().uses_sack() && !script.connection().uses_ecn());
}

/// RFC 7323 (3.2): a peer may offer timestamps to a listener that has none; it gets a cookie without.
#[test]
fn a_cookie_ignores_timestamps_that_are_not_agreed_on() {
    let mut script = flooded(&plain());
    script.inject(syn().mss(1000).sack_permitted().ts(700, 0));
    let answer = script.take();
    assert_eq!(answer.options.timestamps, None);
    script.iss = answer.seq;
    script.inject(ack(1, 1));
    script.expect_event(Event::Accepted { local_port: PORT });
    assert_eq!((script.connection().mss(), script.connection().uses_sack()), (536, false));
}

/// A listener with room for three, with which the peer has opened a connection and closed it, whose backlog others fill then.
fn in_time_wait(config: &TcpConfig) -> Script {
    let config = config.clone().with(|it| (it.initial_sequence, it.limits.backlog) = (None, 3));
    let mut script = Script::listening(&config);
    let stamp = |value, echo| move |seg: Seg| if config.timestamps { seg.ts(value, echo) } else { seg };
    script.inject(stamp(700, 0)(syn()));
    let answer = script.take();
    script.iss = answer.seq;
    let stamp = stamp(701, answer.options.timestamps.map_or(0, |it| it.value));
    script.inject(stamp(ack(1, 1)));
    script.close();
    script.inject(stamp(Seg { ack: Some(2), ..fin(1) }));
    assert_eq!(script.connection().state(), State::TimeWait);
    for port in 6000..6003 {
        script.peer_port = port;
        script.inject(syn());
    }
    script.peer_port = PEER_PORT;
    script.take_count();
    script
}

/// RFC 6191 (2), RFC 4987 (3.6): a SYN that may follow a connection in TIME-WAIT is answered with a cookie, and the
/// acknowledgement of that opens the new connection, as the SYN would have.
#[test]
fn a_cookie_opens_a_connection_after_time_wait() {
    for timestamps in [false, true] {
        let mut script = in_time_wait(&plain().with(|it| it.timestamps = timestamps));
        let stamp = |seg: Seg, value, echo| if timestamps { seg.ts(value, echo) } else { seg };
        // Acknowledgements of the old connection stay its own.
        assert_eq!(script.try_inject(stamp(ack(2, 2), 702, 0)), Ok(()));
        assert_eq!(script.host.cookies().refused, 0);
        let old = script.id;
        script.inject(stamp(Seg { seq: 5000, ..syn() }, 800, 0));
        let answer = script.last();
        assert_eq!((answer.flags, script.host.cookies().sent), (SYN | ACK, 1));
        script.iss = answer.seq;
        let echo = answer.options.timestamps.map_or(0, |it| it.value);
        script.inject(stamp(ack(5001, 1), 801, echo));
        script.expect_event(Event::Accepted { local_port: PORT });
        assert_eq!((script.connection().state(), script.host.cookies().accepted), (State::Established, 1));
        assert!(script.id != old && script.host.connection(old.unwrap()).is_some());
    }
}

/// RFC 9293 (3.6.1): an old duplicate of the acknowledgement that had brought the old connection's own cookie opens nothing,
/// although that is still true.
#[test]
fn an_old_cookie_does_not_end_time_wait() {
    for timestamps in [false, true] {
        let mut script = flooded(&plain().with(|it| it.timestamps = timestamps));
        let stamp = |seg: Seg, value, echo| if timestamps { seg.ts(value, echo) } else { seg };
        script.inject(stamp(syn(), 700, 0));
        let answer = script.take();
        script.iss = answer.seq;
        let echo = answer.options.timestamps.map_or(0, |it| it.value);
        script.inject(stamp(ack(1, 1), 701, echo));
        script.close();
        script.inject(stamp(Seg { ack: Some(2), ..fin(1) }, 702, echo));
        assert_eq!(script.connection().state(), State::TimeWait);
        script.inject(stamp(ack(1, 1), 701, echo));
        assert_eq!((script.host.cookies().accepted, script.connection().state()), (1, State::TimeWait));
    }
}

/// RFC 4987 (3.6): what nobody sent opens nothing: another's cookie, one for other options, one of the past, one that was
/// made when there were none to be made.
#[test]
fn false_cookies_are_reset_and_move_nothing() {
    let mut script = flooded(&stamped());
    script.inject(syn().ts(700, 0));
    let answer = script.take();
    script.iss = answer.seq;
    let echo = answer.options.timestamps.expect("a timestamp").value;
    let refuse = |script: &mut Script, seg: Seg| {
        assert_eq!(script.try_inject(seg), Err(Discard::NoConnection(PORT)));
        assert_eq!(script.last().flags, RST);
        assert_eq!(script.host.connections().count(), 3);
    };
    refuse(&mut script, ack(1, 2).ts(701, echo));
    refuse(&mut script, ack(2, 1).ts(701, echo));
    refuse(&mut script, ack(1, 1).ts(701, echo ^ 0x10));
    refuse(&mut script, ack(1, 1));
    script.peer_port += 1;
    refuse(&mut script, ack(1, 1).ts(701, echo));
    script.peer_port -= 1;
    assert_eq!(script.host.cookies().refused, 5);
    script.now += base::Duration::from_secs(129);
    refuse(&mut script, ack(1, 1).ts(701, echo));
    assert_eq!(script.host.cookies().refused, 5, "none is true any more");
}

/// RFC 4987 (3.6): a cookie is good for one whole period, 64 s, whenever it was made.
#[test]
fn a_cookie_lasts_for_a_minute() {
    for made_at in [0, 30_000, 63_999] {
        let mut script = flooded(&plain().with(|it| it.limits.syn_retries = 9));
        script.at(made_at);
        script.take_count();
        script.inject(syn());
        script.iss = script.take().seq;
        script.at(made_at + 64_000);
        script.take_count();
        script.inject(ack(1, 1));
        script.expect_event(Event::Accepted { local_port: PORT });
    }
}

/// RFC 4987 (2.1): a million SYNs cost neither memory nor places, and answers that nobody takes are dropped and said so.
#[test]
fn a_flood_keeps_no_state() {
    let mut script = flooded(&plain());
    let memory = script.host.memory();
    for port in 10_000..20_000 {
        script.peer_port = port;
        script.inject(syn());
        assert_eq!(script.take_count(), 1);
    }
    assert_eq!((script.host.connections().count(), script.host.memory()), (3, memory));
    let packet = script.packet(&syn());
    let results: Vec<_> = (0..70).map(|_| script.host.handle_packet(script.now, &packet)).collect();
    assert_eq!(results.iter().filter(|it| it.is_ok()).count(), 64);
    assert_eq!(results[69], Err(Discard::BacklogFull(PORT)));
    // The first ones time out without an event, and there is room again.
    script.at(200_000);
    assert!(script.events.is_empty());
    assert_eq!(script.host.connections().count(), 0);
}

/// RFC 4987 (3.6): the secret is the host's own.
#[test]
fn cookies_differ_by_host() {
    let config = plain().with(|it| (it.initial_sequence, it.limits.backlog) = (None, 1));
    let numbers = [1, 2].map(|seed| {
        let mut script = Script::listening(&config);
        script.host = Host::new(HOST, Rng::named(seed, "host"));
        script.host.listen(PORT, &config).unwrap();
        script.inject(syn());
        script.peer_port += 1;
        script.inject(syn());
        script.last().seq
    });
    assert_ne!(numbers[0], numbers[1]);
}

/// RFC 7323 (2.3): a scale beyond 14 counts as 14, and in a cookie it is not to look like none. None stays none.
#[test]
fn a_cookie_remembers_the_window_scale() {
    for (offered, unit) in [(None, 1), (Some(0), 1), (Some(3), 8), (Some(14), 1 << 14), (Some(15), 1 << 14)] {
        let mut script = flooded(&stamped());
        script.inject(Seg { scale: offered, ..syn().ts(700, 0) });
        let answer = script.take();
        assert_eq!(answer.options.window_scale.is_some(), offered.is_some());
        script.iss = answer.seq;
        let echo = answer.options.timestamps.expect("a timestamp").value;
        script.inject(ack(1, 1).ts(701, echo).window(100));
        assert_eq!(script.connection().peer_window(), 100 * unit, "{offered:?}");
    }
}

/// RFC 9293 (3.10.7.1): strangers' segments are answered by resets, but no more of these wait than a network would queue.
#[test]
fn resets_for_strangers_are_bounded() {
    let mut script = Script::listening(&plain());
    script.peer_port = 7;
    let packet = script.packet(&ack(1, 1));
    for _ in 0..1000 {
        let result = script.host.handle_packet(script.now, &packet);
        assert_eq!(result, Err(Discard::NoConnection(PORT)));
    }
    let mut answers = 0;
    while script.host.poll_transmit(script.now).is_some() {
        answers += 1;
    }
    assert_eq!(answers, 64);
}

/// RFC 4987 (2.2): a caller that has not acknowledged the answer may be forged, also where a proxy goes on without that.
#[test]
fn an_unconfirmed_caller_keeps_its_place_in_the_backlog() {
    let config = plain().with(|it| {
        it.limits.backlog = 1;
        it.proxy_mss = Some(9000);
    });
    let mut script = Script::standing_in(&config);
    let syn = |port| {
        let options = Options { mss: Some(1000), proxy_mss: Some(9000), ..Options::default() };
        packet_of(
            &Repr {
                src_port: port,
                dst_port: PORT,
                seq: IRS,
                ack: SeqNum(0),
                flags: SYN,
                window: 60_000,
                urgent: 0,
                options,
            },
            &[],
        )
    };
    script.inject_packet(&syn(5000)).unwrap();
    script.admit();
    script.expect(Seg { flags: SYN | ACK, ..Seg::default() });
    assert_eq!(script.connection().state(), State::Established);
    script.inject_packet(&syn(5000)).unwrap();
    assert_eq!(
        script.inject_packet(&syn(5001)),
        Err(Discard::BacklogFull(PORT)),
        "a flood passes the backlog"
    );
    script.inject(ack(1, 1));
    assert_eq!(script.inject_packet(&syn(5001)), Ok(()));
}
