//! Segment scripts: what congestion controllers let out, and when.

mod script;

use longhaul_tcp::{Congestion, SlowStart, TcpConfig};
use script::*;

fn with(congestion: Congestion) -> TcpConfig {
    TcpConfig { congestion, ..plain() }
}

/// Linux, `tcp_pacing_ss_ratio`: in slow start twice a window a round trip. 10,000 bytes and 100 ms: 1.6 Mbit/s, so
/// bursts of two segments every 10 ms.
#[test]
fn a_paced_window_leaves_in_bursts_over_half_a_round_trip() {
    let mut script = Script::with_window(&TcpConfig { pacing: true, ..plain() }, 10);
    script.write(20_000);
    for burst in 0..5 {
        script.at(100 + 10 * burst);
        for segment in 0..2 {
            script.expect(data(1 + (2 * burst as i64 + segment) * 1000, 1000));
        }
        script.expect_nothing();
    }
    // The window is full: there is nothing to wait for but the retransmission timer.
    script.quiet_before(400);
}

/// A pacing deadline stands only while data could go.
#[test]
fn a_full_window_has_no_pacing_deadline() {
    let mut script = Script::with_window(&TcpConfig { pacing: true, ..plain() }, 10);
    script.write(20_000);
    assert_eq!(script.connection().poll_timeout(), Some(ms(110)));
    script.at(140);
    assert_eq!(script.take_count(), 10);
    // The pacer is free again at 150 ms, and the window is full.
    assert_eq!(script.connection().poll_timeout(), Some(ms(400)));
    script.at(145);
    script.inject(ack(1, 1001));
    script.quiet_before(150);
    script.at(150);
    assert_eq!(script.take_count(), 2);
    assert!(script.connection().poll_timeout() > Some(ms(400)));
}

/// Retransmissions are paced too.
#[test]
fn retransmissions_are_paced() {
    let mut script = Script::with_window(&TcpConfig { pacing: true, ..plain() }, 10);
    script.write(10_000);
    script.at(200);
    assert_eq!(script.take_count(), 10);
    script.inject(ack(1, 1).sack(&[(8001, 10_001)]));
    script.inject(ack(1, 1).sack(&[(7001, 10_001)]));
    // Fast retransmit goes at once; its rate is 5000 bytes in 100 ms times 1.2.
    script.inject(ack(1, 1).sack(&[(6001, 10_001)]));
    script.expect(data(1, 1000));
    script.expect_nothing();
    // The window has room for more, at 1.2 windows of 5000 bytes in a round trip of a little less than 100 ms.
    script.quiet_before(216);
    script.at(217);
    assert_eq!(script.take().seq, ISS + 1001);
    script.expect_nothing();
}

/// RFC 9438 (4.6) over RFC 6675: three tenths are taken.
#[test]
fn cubic_takes_three_tenths_for_a_loss() {
    let mut script = Script::with_window(&with(Congestion::Cubic), 10);
    script.write(40_000);
    assert_eq!(script.take_count(), 10);
    script.at(200);
    for end in [2001, 3001, 4001] {
        script.inject(ack(1, 1).sack(&[(1001, end)]));
    }
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (7000, Some(7000)));
    script.expect(data(10_001, 1000));
    script.expect(data(11_001, 1000));
    script.expect(data(1, 1000));
}

/// RFC 9438 (4.8).
#[test]
fn cubic_starts_from_one_segment_after_a_timeout() {
    let mut script = Script::with_window(&with(Congestion::Cubic), 10);
    script.write(40_000);
    assert_eq!(script.take_count(), 10);
    script.expect_at(400, data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(7000)));
}

/// RFC 9406 (4.2) and (4.3): from a round trip of 100 ms to one of 120 ms, growth falls to a quarter.
#[test]
fn hystart_plus_plus_slows_down_when_the_round_trip_lengthens() {
    for (slow_start, cwnd) in [(SlowStart::Standard, 34_000), (SlowStart::HyStartPlusPlus, 29_500)] {
        let config = TcpConfig { slow_start, ..plain() };
        let mut script = Script::with_window(&config, 10);
        script.write(100_000);
        script.at(200);
        for segment in 1..=8 {
            script.inject(ack(1, 1 + 1000 * segment));
        }
        assert_eq!(script.connection().cwnd(), 18_000);
        // The last two of the first window and eight of the second are late: then six count for a quarter.
        script.at(320);
        for segment in 9..=18 {
            script.inject(ack(1, 1 + 1000 * segment));
        }
        script.at(340);
        for segment in 19..=24 {
            script.inject(ack(1, 1 + 1000 * segment));
        }
        assert_eq!(script.connection().cwnd(), cwnd, "{slow_start:?}");
    }
}

/// draft-cardwell-iccrg-bbr-congestion-control-00 (4.2.1) and (4.3.2.1): the initial window at 2.885 times its rate,
/// 10,000 bytes in 100 ms: 2.31 Mbit/s, two segments every 6.9 ms.
#[test]
fn bbr_paces_the_initial_window() {
    let mut script = Script::with_window(&with(Congestion::Bbr), 10);
    script.write(20_000);
    assert_eq!(script.take_count(), 2);
    for (at, count) in [(106, 0), (107, 2), (114, 2), (121, 2), (128, 2), (200, 0)] {
        script.at(at);
        assert_eq!(script.take_count(), count, "at {at} ms");
    }
}

/// The same, (4.2.3.3): one segment after a time-out, and no threshold.
#[test]
fn bbr_sends_one_segment_after_a_timeout() {
    let mut script = Script::with_window(&with(Congestion::Bbr), 10);
    script.write(10_000);
    script.at(399);
    assert_eq!(script.take_count(), 10);
    script.expect_at(400, data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, None));
}
