//! Segment scripts: reports of data that came twice (RFC 2883).

use crate::script::*;
use longhaul_tcp::{Recovery, TcpConfig};

/// RFC 2883 (4.1.1): a whole segment that was acknowledged before.
#[test]
fn a_repeated_segment_is_reported() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 500));
    script.inject(data(501, 500));
    script.expect(ack(1, 1001).sack(&[]));
    script.inject(data(501, 500));
    script.expect(ack(1, 1001).sack(&[(501, 1001)]));
}

/// RFC 2883 (4): each duplicate is reported once.
#[test]
fn a_duplicate_is_reported_once() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 500));
    script.inject(data(1, 500));
    script.expect(ack(1, 501).sack(&[(1, 501)]));
    script.inject(data(1001, 500));
    script.expect(ack(1, 501).sack(&[(1001, 1501)]));
}

/// RFC 2883 (4.1.2): the duplicate first, then the runs beyond the gap.
#[test]
fn runs_follow_the_duplicate() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 500));
    script.inject(data(1001, 500));
    script.expect(ack(1, 501).sack(&[(1001, 1501)]));
    script.inject(data(1, 500));
    script.expect(ack(1, 501).sack(&[(1, 501), (1001, 1501)]));
}

/// RFC 2883 (4.2.1): a duplicate beyond the gap is followed by the run around it.
#[test]
fn the_run_around_a_duplicate_comes_second() {
    let mut script = Script::established(&plain());
    script.inject(data(1001, 500));
    script.inject(data(1501, 500));
    script.inject(data(3001, 500));
    script.take_count();
    script.inject(data(1001, 500));
    script.expect(ack(1, 1).sack(&[(1001, 1501), (1001, 2001), (3001, 3501)]));
}

/// RFC 2883 (4.2.2): of a segment that came in part, the part is reported, at once.
#[test]
fn the_repeated_part_of_a_segment_is_reported() {
    let mut script = Script::established(&plain());
    script.inject(data(1, 500));
    script.inject(data(301, 500));
    script.expect(ack(1, 801).sack(&[(301, 501)]));
    script.inject(data(1301, 300));
    script.expect(ack(1, 801).sack(&[(1301, 1601)]));
    script.inject(data(1501, 300));
    script.expect(ack(1, 801).sack(&[(1501, 1601), (1301, 1801)]));
}

/// RFC 2018 (3): three blocks beside timestamps, of which the duplicate is one.
#[test]
fn the_duplicate_takes_the_place_of_a_run() {
    let mut script = Script::connected(
        &TcpConfig { timestamps: true, ..plain() },
        100,
        syn_ack().sack_permitted().ts(7000, 0),
    );
    for at in [1001, 2001, 3001, 4001] {
        script.inject(data(at, 500).ts(7001, 0));
    }
    script.inject(data(2001, 500).ts(7002, 0));
    for _ in 0..4 {
        script.take();
    }
    script.expect(ack(1, 1).sack(&[(2001, 2501), (2001, 2501), (4001, 4501)]));
}

/// RFC 2883: no reports without the setting, or without selective acknowledgements.
#[test]
fn reports_can_be_switched_off() {
    for (config, answer) in [
        (plain().with(|it| it.acknowledgements.dsack = false), syn_ack().sack_permitted()),
        (plain(), syn_ack()),
        (plain().with(|it| it.recovery.scheme = Recovery::NewReno), syn_ack().sack_permitted()),
    ] {
        let mut script = Script::connected(&config, 100, answer);
        script.inject(data(1, 500));
        script.inject(data(1, 500));
        script.expect(ack(1, 501).sack(&[]));
    }
}

/// RFC 2883 (5): a report is no new selective acknowledgement, and no duplicate that means a loss.
#[test]
fn a_report_starts_no_recovery() {
    let mut script = Script::flying(&plain(), 10);
    script.inject(ack(1, 5001));
    script.take_count();
    for at in [1, 1001, 2001, 3001] {
        script.inject(ack(1, 5001).sack(&[(at, at + 1000)]));
    }
    script.expect_nothing();
    let statistics = script.connection().sender_statistics();
    assert_eq!((statistics.dsacks_received, statistics.duplicate_acks), (4, 0));
    assert!(!script.connection().recovering());
}

/// RFC 2883 (4): a report within the second block says nothing new of that block.
#[test]
fn a_report_beyond_the_gap_is_recognised() {
    let mut script = Script::flying(&plain(), 10);
    script.inject(ack(1, 1).sack(&[(1001, 2001)]));
    script.inject(ack(1, 1).sack(&[(1001, 2001), (1001, 3001)]));
    assert_eq!(script.connection().sender_statistics().dsacks_received, 1);
    assert_eq!(script.connection().in_flight(), 8000 + 1000 * script.take_count() as u64);
}
