//! Segment scripts: rules that Linux has beyond the RFCs, or against them, where they decide how fast short flows are.

use crate::script::*;
use base::Duration;
use base::wire::tcp::Flags;
use longhaul_tcp::{Recovery, TcpConfig};

fn rack() -> TcpConfig {
    plain().with(|it| it.recovery.scheme = Recovery::Rack)
}

/// A connection with timestamps, a round trip of 20 ms and ten segments out since 20 ms; what its clock said at the start.
fn stamped(config: &TcpConfig) -> (Script, u32) {
    let config = config.clone().with(|it| {
        it.timestamps = true;
        it.window.initial = longhaul_tcp::InitialWindow::Segments(10);
    });
    let mut script = Script::connecting(&config);
    let start = script.take().options.timestamps.expect("a timestamp").value;
    script.at(20);
    script.inject(syn_ack().sack_permitted().ts(1, start));
    assert_eq!(script.take_count(), 1);
    script.write(9880);
    assert_eq!(script.sent().len(), 10);
    (script, start)
}

/// RFC 7323 (4.3): a receiver with a hole echoes the last in-order stamp, which says nothing of a probe above the hole. Its
/// selective acknowledgement starts recovery (Linux, `tcp_rack_advance`): 100 ms, where the time-out would come at 280.
#[test]
fn a_probe_above_a_hole_starts_recovery() {
    let (mut script, start) = stamped(&rack());
    let segment = |number: i64| 1 + 988 * number;
    script.at(40);
    script.inject(ack(1, segment(6)).ts(21, start + 20));
    script.expect_nothing();
    // Two round trips after the last acknowledgement.
    script.at(80);
    assert_eq!(script.sent(), [segment(9)]);
    script.at(100);
    let (low, high) = (segment(9) as u32, segment(10) as u32);
    script.inject(ack(1, segment(6)).sack(&[(low, high)]).ts(81, start + 20));
    assert!(script.connection().recovering());
    assert_eq!(script.sent()[0], segment(6));
    assert_eq!(script.connection().sender_statistics().timeouts, 0);
}

/// What is acknowledged cumulatively tells by its echo that the first copy arrived (RFC 8985, 6.2, step 2): the copy that was
/// sent again says nothing of what was sent before it.
#[test]
fn an_echo_tells_which_copy_arrived() {
    let (mut script, start) = stamped(&rack());
    let segment = |number: i64| 1 + 988 * number;
    script.at(40);
    let (low, high) = (segment(1) as u32, segment(4) as u32);
    script.inject(ack(1, 1).sack(&[(low, high)]).ts(21, start));
    assert_eq!(script.sent()[0], 1);
    // The first copy had only been late: the echo is of 20 ms, the copy is of 40.
    script.at(62);
    script.inject(ack(1, segment(4)).ts(22, start + 20));
    assert!(!script.sent().contains(&segment(4)), "nothing that left at 20 ms is overdue by a copy of 40 ms");
}

/// Linux (`tcp_verify_retransmit_hint`): after a time-out what was lost goes out in order. A probe that left too shortly before to
/// be overdue then, and turns out lost a little later, does not take the lowest one's turn, and nothing below it waits for
/// another time-out.
#[test]
fn after_a_timeout_a_lost_probe_goes_in_its_turn() {
    let config = rack().with(|it| {
        it.window.initial = longhaul_tcp::InitialWindow::Segments(10);
        (it.rto.min, it.rto.margin) = (Duration::from_millis(50), Duration::from_millis(50));
    });
    let mut script = Script::connected(&config, 600, syn_ack().sack_permitted());
    // Twenty exchanges of a segment, until the variation is gone and the time-out is 650 ms.
    let (mut at, mut head) = (600, 1);
    for _ in 0..20 {
        script.write(1000);
        script.take_count();
        at += 600;
        script.at(at);
        head += 1000;
        script.inject(ack(1, head));
    }
    script.write(10_000);
    assert_eq!(script.sent().len(), 10);
    while script.connection().sender_statistics().timeouts == 0 {
        at += 10;
        assert!(at < 20_000);
        script.at(at);
    }
    // The time-out comes before a round trip and a quarter is over since the probe, which may still arrive then.
    assert_eq!(script.sent(), [head + 9000, head]);
    assert_eq!(script.connection().lost(), 9000);
    // What leaves from here on arrives, a round trip a round.
    let (mut acked, end, mut arrived) = (head + 1000, head + 10_000, Vec::new());
    while acked < end {
        at += 600;
        assert!(at < 25_000, "only {acked} of {end} by {at} ms");
        script.at(at);
        let beyond: Vec<_> =
            arrived.iter().filter(|&&it| it > acked).map(|&it| (it as u32, it as u32 + 1000)).collect();
        script.inject(ack(1, acked).sack(&beyond[..beyond.len().min(3)]));
        let sent = script.sent();
        assert!(sent.is_sorted(), "{sent:?} after {acked}");
        arrived.extend(sent);
        while arrived.contains(&acked) {
            acked += 1000;
        }
    }
    assert_eq!(script.connection().sender_statistics().timeouts, 1);
}

/// Linux (`tcp_is_cwnd_limited`): the most that was out in the round counts, so a burst that fills the window doubles it,
/// whatever is still out when the last of it is acknowledged.
#[test]
fn a_burst_that_fills_the_window_doubles_it() {
    let config = rack().with(|it| it.window.byte_counting_limit = 65_535);
    let mut script = Script::with_window(&config, 10);
    script.write(10_000);
    script.at(200);
    for acked in 1..=5 {
        script.inject(ack(1, 1 + 2000 * acked));
    }
    assert_eq!(script.connection().cwnd(), 20_000);
    // Half of that is used: no reason for more. A little more than half is (slow start, cwnd < 2 * max_packets_out).
    script.write(10_000);
    script.at(300);
    script.inject(ack(1, 20_001));
    assert_eq!(script.connection().cwnd(), 20_000);
    script.write(11_000);
    script.at(400);
    script.inject(ack(1, 31_001));
    assert_eq!(script.connection().cwnd(), 31_000);
}

/// Linux 2.4 (`tcp_ack`): the window has to be full at the moment, so that only the first acknowledgement of a burst opens it.
#[test]
fn a_window_in_use_now_is_full_now() {
    let config = rack().with(|it| {
        it.window.byte_counting_limit = 65_535;
        it.window.in_use = longhaul_tcp::InUse::Now;
    });
    let mut script = Script::with_window(&config, 10);
    script.write(10_000);
    script.at(200);
    for acked in 1..=5 {
        script.inject(ack(1, 1 + 2000 * acked));
    }
    assert_eq!(script.connection().cwnd(), 12_000);
}

/// Linux (`tcp_newly_delivered`): what was selectively acknowledged opens the window when that is said, not once more when it is
/// acknowledged cumulatively.
#[test]
fn what_was_sacked_before_does_not_open_the_window_again() {
    let config = rack().with(|it| it.window.byte_counting_limit = 65_535);
    let mut script = Script::with_window(&config, 10);
    script.write(10_000);
    script.at(200);
    script.inject(ack(1, 1).sack(&[(1001, 3001)]));
    assert_eq!(script.connection().cwnd(), 10_000);
    // 1 to 1001 was only late: a segment is new, two are known.
    script.inject(ack(1, 3001));
    assert_eq!(script.connection().cwnd(), 11_000);
}

/// Linux (`tcp_ack_probe`): a window that opens before it is asked for ends the wait, and the data that leave then have a time-out
/// of their own (RFC 6298, 5.1).
#[test]
fn a_window_that_reopens_by_itself_leaves_no_deadline() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(1000);
    script.at(200);
    script.inject(ack(1, 1001).window(0));
    script.take_count();
    script.write(1000);
    script.expect_nothing();
    let persist = script.host.poll_timeout().expect("the persist timer");
    script.at(390);
    assert!(persist > ms(390), "{persist:?}");
    script.inject(ack(1, 1001).window(60_000));
    script.expect(data(1001, 1000));
    // A tail loss probe after 2 * 100 + 200 ms, or the time-out; nothing at the old deadline.
    script.quiet_before(590);
    assert_eq!(script.connection().sender_statistics().window_probes, 0);
}

/// Linux (`tcp_send_probe0`): probes of a closed window come one, two and four time-outs after each other.
#[test]
fn window_probes_back_off_from_one_timeout() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(1000);
    script.at(200);
    script.inject(ack(1, 1001).window(0));
    script.peer_window = 0;
    script.acked = 1001;
    script.take_count();
    script.write(1000);
    let closed_at = 200;
    let mut probes = Vec::new();
    for at in (closed_at..3000).step_by(5) {
        script.at(at);
        if script.take_count() > 0 {
            probes.push(at - closed_at);
            script.inject(ack(1, 1001).window(0));
        }
    }
    let rto = probes[0];
    assert_eq!(probes.len(), 3, "{probes:?}");
    for (probe, due) in probes.iter().zip([rto, 3 * rto, 7 * rto]) {
        assert!(probe.abs_diff(due) <= 10, "{probes:?}");
    }
}

/// Linux (`tcp_retransmit_skb`): a segment goes out again with the flags that it had: the last of what was written is pushed.
#[test]
fn what_was_pushed_is_pushed_again() {
    let mut script = Script::with_window(&rack(), 10);
    script.write(2000);
    let pushed: Vec<bool> = (0..2).map(|_| script.take().flags.has(Flags::PSH)).collect();
    assert_eq!(pushed, [false, true]);
    script.at(400);
    assert!(script.last().flags.has(Flags::PSH), "the probe is the last segment");
    script.at(1500);
    assert!(!script.take().flags.has(Flags::PSH), "the first one was not pushed");
}

/// RFC 7323 (3.2): a reset carries a timestamp where the two ends have agreed on them.
#[test]
fn a_reset_carries_a_timestamp() {
    let (mut script, start) = stamped(&rack());
    script.at(30);
    script.abort();
    let reset = script.last();
    assert!(reset.flags.has(Flags::RST | Flags::ACK));
    assert_eq!(reset.options.timestamps.map(|it| (it.value, it.echo)), Some((start + 30, 1)));
    let mut plain = Script::established(&rack());
    plain.abort();
    assert_eq!(plain.last().options.timestamps, None);
}

/// Linux responds to a lost retransmission after a time-out only; RFC 5681 (4.3) asks for it in fast recovery too.
#[test]
fn a_lost_retransmission_reduces_once_where_told() {
    for (second, expected) in [(false, 1), (true, 2)] {
        let config = rack().with(|it| it.recovery.second_reduction = second);
        let mut script = Script::flying(&config, 10);
        let mut reductions = 0;
        let mut last = script.connection().ssthresh();
        let mut note = |script: &Script| {
            let now = script.connection().ssthresh();
            reductions += u32::from(now != last);
            last = now;
        };
        script.inject(ack(1, 1).sack(&[(1001, 10_001)]));
        note(&script);
        let sent = script.sent();
        assert_eq!((sent[0], sent.last()), (1, Some(&13_001)), "{sent:?}");
        // New data that left after it arrive: it was lost.
        script.at(310);
        script.inject(ack(1, 1).sack(&[(1001, 12_001)]));
        note(&script);
        // A window that is reduced again is full.
        assert_eq!(script.sent().contains(&1), !second);
        assert_eq!(reductions, expected, "{second}");
    }
}
