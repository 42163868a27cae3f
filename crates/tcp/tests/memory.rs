//! Segment scripts: a host whose memory is limited.

use std::net::SocketAddr;

use crate::script::*;
use longhaul_tcp::host::Discard;
use longhaul_tcp::{ConnectError, Event, Failure};

const LIMIT: usize = 40_000;

/// RFC 9293 (3.8.6), RFC 2018 (8): a peer fills the window that it was promised. What does not fit is neither kept nor
/// acknowledged, the right edge stays where it is, and all that was acknowledged is delivered.
#[test]
fn nothing_acknowledged_is_lost_at_the_limit() {
    let mut script = Script::established(&plain());
    script.host.limit_memory(LIMIT);
    for (at, len) in [(60_001, 100), (50_001, 1), (1, 1000), (2001, 1000)] {
        script.inject(data(at, len));
    }
    for at in 0..60 {
        script.inject(data(1001 + 1000 * at, 1000));
        assert!(script.host.memory() <= LIMIT, "{} bytes", script.host.memory());
    }
    let kept = script.connection().readable();
    assert!((4096..LIMIT / 2).contains(&kept), "{kept} bytes");
    assert!(script.connection().statistics().memory_drops > 40);
    let last = script.last();
    assert_eq!(last.ack.distance(IRS), 1 + kept as i32);
    let edge = 1 + kept as i64 + i64::from(last.window);
    assert!(edge == 65_536, "{edge}");
    assert_eq!(script.read(LIMIT), kept);
    script.inject(data(1 + kept as i64, 1000));
    assert_eq!(script.read(LIMIT), 1000);
}

/// RFC 9293 (3.8.6): a new connection is offered what there is memory for; without any it is not opened, in either
/// direction.
#[test]
fn no_connection_opens_without_memory() {
    let mut script = Script::listening(&plain());
    script.host.limit_memory(5000);
    assert_eq!(script.try_inject(syn()), Err(Discard::NoMemory(PORT)));
    script.expect_nothing();
    let peer = SocketAddr::new(PEER, PEER_PORT);
    assert_eq!(script.host.connect(script.now, peer, &plain()), Err(ConnectError::Memory(peer)));
    script.host.limit_memory(LIMIT);
    script.inject(syn());
    let answer = script.take();
    assert!((4096..LIMIT as u16 / 2).contains(&answer.window), "{}", answer.window);
    let opened = (0..10).filter(|_| script.host.connect(script.now, peer, &plain()).is_ok()).count();
    assert_eq!(opened, 4);
    assert!(script.host.memory() <= LIMIT);
}

/// RFC 9293 (3.9.1): what an application writes beyond the limit waits with it, and it hears of room.
#[test]
fn writes_wait_for_memory() {
    let mut script = Script::with_window(&plain(), 100);
    script.host.limit_memory(LIMIT);
    let taken = script.write(100_000);
    assert!((4096..LIMIT / 2).contains(&taken) && script.host.memory() <= LIMIT, "{taken}");
    script.take_count();
    assert!(!script.events.contains(&Event::Writable));
    script.inject(ack(1, 1 + taken as i64));
    script.expect_event(Event::Writable);
    assert!(script.write(4096) == 4096);
}

/// RFC 9293 (3.10.7.4): who leaves gaps takes no memory that others need, and gives all of it back.
#[test]
fn gaps_do_not_take_what_others_need() {
    let mut script = Script::established(&plain());
    script.host.limit_memory(LIMIT);
    for at in 0..30_000 {
        script.inject(data(3 + 2 * at, 1));
        assert!(script.host.memory() <= LIMIT, "{} bytes", script.host.memory());
    }
    let other = script.host.connect(script.now, SocketAddr::new(PEER, PEER_PORT), &plain()).unwrap();
    script.abort();
    script.host.abort(script.now, other).unwrap();
    script.at(61_000);
    assert_eq!((script.host.connections().count(), script.host.memory()), (0, 0));
}

/// RFC 9293 (3.9.1): small segments take more memory in flight than in the buffer. Further ones wait for an acknowledgement, and
/// all of them leave in the end, whatever the peer claims to have.
#[test]
fn what_is_in_flight_counts() {
    let mut script = Script::with_window(&plain(), 100);
    script.host.limit_memory(LIMIT);
    for written in 1..=3000 {
        assert_eq!(script.write(1), 1);
        assert!(script.host.memory() <= LIMIT, "{} bytes after {written}", script.host.memory());
    }
    let sent = script.take_count() as u32;
    assert!((50..500).contains(&sent), "{sent} segments");
    for at in 1..sent / 2 {
        script.inject(ack(1, 1).sack(&[(2 * at, 2 * at + 1)]));
        assert!(script.host.memory() <= LIMIT, "{} bytes", script.host.memory());
    }
    while script.connection().unacknowledged() > 0 {
        let end = 1 + script.connection().sender_statistics().bytes_acked + script.connection().flight_size();
        script.inject(ack(1, end as i64));
        assert!(script.host.memory() <= LIMIT, "{} bytes", script.host.memory());
        assert!(script.connection().unacknowledged() == 0 || script.take_count() > 0, "stuck at {end}");
    }
}

/// RFC 9293 (3.9.1): with no memory left one segment after the other still leaves.
#[test]
fn without_memory_one_segment_leaves() {
    let mut script = Script::with_window(&plain(), 100);
    script.host.limit_memory(1);
    assert_eq!(script.write(4000), 4000);
    for segment in 0..4 {
        assert_eq!(script.sent(), [1 + 1000 * segment]);
        script.inject(ack(1, 1001 + 1000 * segment));
    }
    script.expect_nothing();
}

/// RFC 3135 (2.4): a host in others' stead lets go sooner of what is over, but not before all of it is read and told: that was
/// acknowledged.
#[test]
fn what_is_over_is_not_let_go_before_it_is_read_and_told() {
    // As many connections as may stay when they are over, in an eighth of the memory: none, or one.
    for stay in [0, 1] {
        let mut script = Script::standing_in(&plain());
        let mut ids = Vec::new();
        for port in 0..=stay {
            (script.peer_port, script.id) = (5000 + port as u16, None);
            script.inject(syn());
            script.admit();
            script.inject(ack(1, 1));
            script.inject(data(1, 1000));
            ids.push((script.peer_port, script.id.unwrap()));
        }
        script.take_count();
        script.host.limit_memory(8 * (stay + 1) * size_of::<longhaul_tcp::Connection>() - 1);
        for &(port, _) in &ids {
            script.peer_port = port;
            script.inject(rst(1001));
            script.expect_event(Event::Failed(Failure::Reset));
        }
        for (_, id) in ids {
            let read = script.host.read(script.now, id, &mut [0; 2000]);
            assert_eq!(read, Ok(1000), "the end of a stream is lost");
        }
    }
}

/// RFC 9293 (3.6.1): a host of its own keeps TIME-WAIT for its time, whatever memory is left: it is the peer's old segments that it is for.
#[test]
fn a_limit_ends_no_time_wait() {
    let mut script = Script::listening(&plain());
    script.host.limit_memory(8 * size_of::<longhaul_tcp::Connection>() + 30_000);
    for port in 5000..5012 {
        (script.peer_port, script.id, script.acked) = (port, None, 1);
        script.inject(syn());
        script.inject(ack(1, 1));
        script.finish();
        script.inject(fin(1).ack(2));
    }
    assert_eq!(script.host.len(), 12);
    script.at(61_000);
    assert_eq!(script.host.len(), 0);
}
