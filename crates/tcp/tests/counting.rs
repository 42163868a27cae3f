//! Segment scripts: what a connection counts.

use std::sync::Arc;

use crate::script::*;
use base::wire::{ip, tcp};
use longhaul_tcp::{Host, Source};

/// RFC 4898 (`tcpEStatsPerf`): segments received, each kind of those that were of no use, and what was new.
#[test]
fn segments_are_counted_by_what_they_bring() {
    let mut script = Script::with_window(&plain(), 10);
    script.write(3000);
    script.at(200);
    script.inject(ack(1, 1001));
    script.inject(data(1, 100));
    script.inject(data(301, 100));
    script.inject(data(301, 100));
    script.inject(data(1, 100));
    script.inject(ack(401, 9001));
    script.inject(data(101, 200));
    let (counted, sent) = (script.connection().statistics(), script.connection().sender_statistics());
    assert_eq!((counted.segments_received, sent.data_segments_sent), (8, 3));
    assert_eq!((sent.bytes_acked, counted.bytes_received), (1000, 400));
    assert_eq!((counted.out_of_order_received, counted.duplicates_received), (1, 2));
    assert_eq!((counted.discarded, counted.challenge_acks), (2, 1));
}

/// RFC 4898 (`tcpEStatsPerfSegsRetrans`), RFC 6298 (5.5): a SYN that goes again, and again, and data that do.
#[test]
fn what_goes_again_is_counted() {
    let mut script = Script::connecting(&plain());
    script.at(3500);
    assert_eq!(script.take_count(), 3);
    script.inject(syn_ack());
    script.take_count();
    script.write(500);
    let sent_at = script.now;
    while script.connection().sender_statistics().timeouts < 3 {
        let due = script.host.poll_timeout().expect("the timer");
        script.at(due.as_nanos().div_ceil(1_000_000));
    }
    assert!(script.now > sent_at);
    let sent = script.connection().sender_statistics();
    assert_eq!((sent.syn_retransmissions, sent.retransmissions), (2, 3));
    assert_eq!((sent.bytes_retransmitted, sent.data_segments_sent), (1500, 1));
    assert_eq!(script.connection().backoff(), 3);
}

/// RFC 4898 (`tcpEStatsPerfSegsOut`): a SYN, data, a bare acknowledgement and a reset are one segment each.
#[test]
fn every_segment_that_leaves_is_counted() {
    let mut script = Script::connecting(&plain());
    let sent = |script: &Script| script.connection().statistics().segments_sent;
    script.take_count();
    assert_eq!(sent(&script), 1);
    script.inject(syn_ack());
    script.take_count();
    assert_eq!(sent(&script), 2);
    script.write(1500);
    assert_eq!((script.take_count(), sent(&script)), (2, 4));
    script.inject(data(301, 100));
    assert_eq!((script.take_count(), sent(&script)), (1, 5));
    script.abort();
    assert_eq!((script.take_count(), sent(&script)), (1, 6));
}

/// RFC 9293 (3.3.2): what a host has and holds, from nothing through a half-open connection to one that has ended and is forgotten at last.
#[test]
fn a_host_counts_its_connections() {
    let counts = |host: &Host| (host.len(), host.live(), host.may_transmit());
    let mut script = Script::listening(&plain());
    script.host.limit_memory(1 << 20);
    assert_eq!((counts(&script.host), script.host.memory()), ((0, 0, false), 0));
    assert!(script.host.is_empty() && script.host.has_room());
    let call = script.packet(&syn());
    script.host.handle_packet(script.now, &call).unwrap();
    assert_eq!((counts(&script.host), script.host.is_empty()), ((1, 1, true), false));
    assert!(
        script.host.poll_transmit(script.now).is_some() && script.host.poll_transmit(script.now).is_none()
    );
    assert_eq!(counts(&script.host), (1, 1, false));
    script.inject(ack(1, 1));
    assert_eq!(counts(&script.host), (1, 1, false));
    let least = script.host.memory();
    assert!((size_of::<longhaul_tcp::Connection>()..8192).contains(&least), "{least}");
    script.inject(data(1, 1000));
    assert!((4096..5000).contains(&(script.host.memory() - least)), "{least}, {}", script.host.memory());
    script.abort();
    assert_eq!(counts(&script.host), (1, 0, false));
    script.at(61_000);
    assert_eq!((counts(&script.host), script.host.memory()), ((0, 0, false), 0));
    script.host.limit_memory(5000);
    assert!(!script.host.has_room());
}

#[derive(Debug)]
struct Content(Vec<u8>);

impl Source for Content {
    fn slice(&self, offset: u64, len: usize) -> &[u8] {
        let rest = &self.0[offset as usize..];
        &rest[..len.min(rest.len())]
    }
}

/// RFC 9293 (3.9.1): what is written as a stretch of a source leaves as what it says there, and counts as bytes that were written.
#[test]
fn stretches_of_a_source_are_sent_and_counted() {
    let mut script = Script::with_window(&plain(), 10);
    let content = Content((0..5000).map(|at: i64| byte_at(7 * at)).collect());
    let source: Arc<dyn Source> = Arc::new(content);
    let id = script.id.unwrap();
    let mut write = |offset, len| script.host.write_from(script.now, id, &source, offset, len);
    assert_eq!((write(500, 1500), write(2000, 700)), (Ok(1500), Ok(700)));
    let connection = script.host.connection(id).unwrap();
    assert_eq!((connection.unsent(), connection.unacknowledged()), (2200, 2200));
    let mut sent = Vec::new();
    while let Some(packet) = script.host.poll_transmit(script.now) {
        sent.extend_from_slice(
            tcp::View::parse(ip::View::parse(&packet).unwrap().payload()).unwrap().payload(),
        );
    }
    assert_eq!(sent, (500..2700).map(|at| byte_at(7 * at)).collect::<Vec<_>>());
    let connection = script.connection();
    assert_eq!((connection.unsent(), connection.unacknowledged()), (0, 2200));
    // What can be read lies where it came, until it is consumed.
    script.inject(data(1, 1000));
    let (first, second) = script.host.peek(id).unwrap();
    assert_eq!((first.len() + second.len(), first[999]), (1000, byte_at(1000)));
    script.host.consume(script.now, id, 400).unwrap();
    assert_eq!(script.host.peek(id).unwrap().0[0], byte_at(401));
    assert_eq!(script.connection().readable(), 600);
}
