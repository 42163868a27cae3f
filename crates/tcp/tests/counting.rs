//! Segment scripts: what a connection counts.

mod script;

use script::*;

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
    let counted = script.connection().statistics();
    assert_eq!((counted.segments_received, counted.data_segments_sent), (8, 3));
    assert_eq!((counted.bytes_acked, counted.bytes_received), (1000, 400));
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
    while script.connection().statistics().timeouts < 3 {
        let due = script.host.poll_timeout().expect("the timer");
        script.at(due.as_nanos().div_ceil(1_000_000));
    }
    assert!(script.now > sent_at);
    let counted = script.connection().statistics();
    assert_eq!((counted.syn_retransmissions, counted.retransmissions), (2, 3));
    assert_eq!((counted.bytes_retransmitted, counted.data_segments_sent), (1500, 1));
    assert_eq!(script.connection().backoff(), 3);
}
