//! Segment scripts: what congestion controllers let out, and when.

use crate::script::*;
use base::units::Size;
use longhaul_tcp::config::{FastConfig, HyblaConfig, VegasConfig};
use longhaul_tcp::congestion::{AckSample, Congestion as Congested, Controller, Factory, Start};
use longhaul_tcp::{Congestion, CubicConfig, Recovery, SlowStart, TcpConfig};

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

/// Linux, pacing: a pacing deadline stands only while data could go.
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

/// Linux, pacing: retransmissions are paced too.
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
    let mut script = Script::with_window(&with(Congestion::Cubic(CubicConfig::default())), 10);
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
    let mut script = Script::with_window(&with(Congestion::Cubic(CubicConfig::default())), 10);
    script.write(40_000);
    assert_eq!(script.take_count(), 10);
    script.expect_at(400, data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(7000)));
}

/// RFC 9406 (4.2) and (4.3): from a round trip of 100 ms to one of 120 ms, growth falls to a quarter.
#[test]
fn hystart_plus_plus_slows_down_when_the_round_trip_lengthens() {
    for (slow_start, cwnd) in [(SlowStart::Standard, 34_000), (SlowStart::HyStartPlusPlus, 29_500)] {
        let config = plain().with(|it| it.window.slow_start = slow_start);
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

/// draft-cardwell-iccrg-bbr-congestion-control-00 (4.2.3.4): one segment after a time-out, and no threshold.
#[test]
fn bbr_sends_one_segment_after_a_timeout() {
    let mut script = Script::with_window(&with(Congestion::Bbr), 10);
    script.write(10_000);
    script.at(399);
    assert_eq!(script.take_count(), 10);
    script.expect_at(400, data(1, 1000));
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, None));
}

/// Linux, pacing: acknowledgements do not wait for pacing.
#[test]
fn acknowledgements_are_not_paced() {
    let mut script = Script::with_window(&TcpConfig { pacing: true, ..plain() }, 10);
    script.write(20_000);
    assert_eq!(script.take_count(), 2);
    script.at(105);
    script.inject(data(1, 1000));
    script.inject(data(1001, 1000));
    script.expect(ack(2001, 2001));
    script.expect_nothing();
}

/// RFC 9438 (4.10) and (4.3): from a given threshold on, Reno's growth: 1 / 4 and 1 / 4.25 segments.
#[test]
fn cubic_takes_a_given_threshold() {
    let config = with(Congestion::Cubic(CubicConfig::default()))
        .with(|it| it.window.initial_ssthresh = Some(Size(4000)));
    let mut script = Script::with_window(&config, 3);
    script.write(40_000);
    script.at(200);
    for (acked, cwnd) in [(1001, 4000), (2001, 4250), (3001, 4485)] {
        script.inject(ack(1, acked));
        assert_eq!(script.connection().cwnd(), cwnd);
    }
}

/// Brakmo and Peterson 1995 (III.C): the window doubles in every other round trip.
#[test]
fn vegas_doubles_every_other_round_trip() {
    let mut script = Script::with_window(&with(Congestion::Vegas(VegasConfig::default())), 2);
    script.write(60_000);
    let mut acked = 1;
    for (at, cwnd) in [(200, 4000), (300, 4000), (400, 8000), (500, 8000), (600, 16_000)] {
        let outstanding = script.take_count();
        script.at(at);
        for _ in 0..outstanding {
            acked += 1000;
            script.inject(ack(1, acked));
        }
        assert_eq!(script.connection().cwnd(), cwnd, "at {at} ms");
    }
}

/// Brakmo and Peterson 1995 (III.B): 20 ms more of 100 are a sixth of the window: more than beta of 30 segments,
/// between alpha and beta of 20, and less than alpha of 9; two more by then.
#[test]
fn vegas_follows_the_queue() {
    for (segments, change) in [(30, -1000), (20, 0), (9, 1000)] {
        let config = with(Congestion::Vegas(VegasConfig::default()))
            .with(|it| it.window.initial_ssthresh = Some(Size(2000)));
        let mut script = Script::with_window(&config, segments);
        script.write(200_000);
        let mut acked = 1;
        let mut windows = Vec::new();
        // The round trips of 100 ms set the base; they let the window grow by one.
        for at in [200, 300, 420, 540] {
            let outstanding = script.take_count();
            script.at(at);
            for _ in 0..outstanding {
                acked += 1000;
                script.inject(ack(1, acked));
            }
            windows.push(script.connection().cwnd() as i64);
        }
        assert_eq!(windows[1] - windows[0], 1000);
        assert_eq!(windows[3] - windows[2], change, "{segments}: {windows:?}");
    }
}

/// Brakmo and Peterson 1995 (IV): a quarter for a segment that was sent once, and congestion avoidance afterwards.
#[test]
fn vegas_takes_a_quarter_for_a_loss() {
    let mut script = Script::with_window(&with(Congestion::Vegas(VegasConfig::default())), 20);
    script.write(60_000);
    script.at(200);
    for end in [2001, 3001, 4001] {
        script.inject(ack(1, 1).sack(&[(1001, end)]));
    }
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (15_000, Some(2000)));
}

/// Mascolo et al. 2001 (4.1), Grieco and Mascolo 2004 (3): ten segments arrive in a round trip of 100 ms, and so ten
/// fit.
#[test]
fn westwood_plus_falls_to_what_arrives() {
    let mut script = Script::with_window(&with(Congestion::WestwoodPlus), 10);
    script.write(100_000);
    script.at(200);
    for segment in 1..=10 {
        script.inject(ack(1, 1 + 1000 * segment));
    }
    assert_eq!(script.connection().cwnd(), 20_000);
    script.at(300);
    script.inject(ack(1, 11_001));
    for end in [13_001, 14_001, 15_001] {
        script.inject(ack(1, 11_001).sack(&[(12_001, end)]));
    }
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (10_000, Some(10_000)));
}

/// Mascolo et al. 2001 (4.2): the same threshold after a time-out, and one segment.
#[test]
fn westwood_plus_keeps_its_share_after_a_timeout() {
    let mut script = Script::with_window(&with(Congestion::WestwoodPlus), 10);
    script.write(100_000);
    script.at(200);
    for segment in 1..=10 {
        script.inject(ack(1, 1 + 1000 * segment));
    }
    script.at(300);
    script.inject(ack(1, 11_001));
    script.at(700);
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(10_000)));
}

/// Wang et al. 2002 (3.1): a segment each 10 ms, of a window of 10 or of 20, is 100,000 bytes a second: 10 fit into 100
/// ms.
#[test]
fn westwood_ere_falls_to_what_arrives() {
    for segments in [10, 20] {
        let config = with(Congestion::WestwoodEre).with(|it| it.window.initial_ssthresh = Some(Size(2000)));
        let mut script = Script::with_window(&config, segments);
        script.write(200_000);
        for segment in 1..=80 {
            script.at(190 + 10 * segment as u64);
            script.inject(ack(1, 1 + 1000 * segment));
        }
        for end in [83_001, 84_001, 85_001] {
            script.inject(ack(1, 80_001).sack(&[(82_001, end)]));
        }
        let ssthresh = script.connection().ssthresh().unwrap();
        assert!((9500..=10_500).contains(&ssthresh), "{segments}: {ssthresh}");
    }
}

/// Wei et al. 2006 and FAST's ns-2 module: a segment an acknowledgement while nothing queues.
#[test]
fn fast_fills_an_empty_path() {
    let mut script = Script::with_window(&with(Congestion::Fast(FastConfig::default())), 10);
    script.write(100_000);
    script.at(200);
    for segment in 1..=10 {
        script.inject(ack(1, 1 + 1000 * segment));
    }
    assert_eq!(script.connection().cwnd(), 20_000);
}

/// Equation 1 of Casoni and Luppi, read as in Wei et al. 2006, once a round trip: from 10 segments with alpha 4 and no
/// queue, (10 + 10 + 4) / 2.
#[test]
fn fast_heads_for_alpha_queued_segments() {
    let config = with(Congestion::Fast(FastConfig { alpha: 4, gamma: 0.5 })).with(|it| {
        it.window.initial_ssthresh = Some(Size(10_000));
    });
    let mut script = Script::with_window(&config, 10);
    script.write(100_000);
    script.at(200);
    let mut acked = 1;
    for (at, cwnd) in [(200, 12_000), (300, 14_000), (400, 16_000)] {
        let outstanding = script.take_count();
        script.at(at);
        for _ in 0..outstanding {
            acked += 1000;
            script.inject(ack(1, acked));
        }
        assert_eq!(script.connection().cwnd(), cwnd, "at {at} ms");
    }
}

/// Wei et al. 2006 and FAST's ns-2 module: half for a loss, two segments after a time-out.
#[test]
fn fast_halves() {
    let mut script = Script::with_window(&with(Congestion::Fast(FastConfig::default())), 10);
    script.write(100_000);
    script.at(200);
    for end in [2001, 3001, 4001] {
        script.inject(ack(1, 1).sack(&[(1001, end)]));
    }
    assert_eq!(script.connection().cwnd(), 5000);
    let mut script = Script::with_window(&with(Congestion::Fast(FastConfig::default())), 10);
    script.write(100_000);
    script.at(400);
    assert_eq!(script.connection().cwnd(), 2000);
}

/// Caini and Firrincieli 2004 (3): at 100 ms rho is 4: four initial windows, and 2^4 - 1 segments for one acknowledged.
#[test]
fn hybla_begins_with_rho_windows() {
    let mut script = Script::with_window(&with(Congestion::Hybla(HyblaConfig::default())), 2);
    script.write(100_000);
    assert_eq!(script.take_count(), 8);
    script.at(200);
    script.inject(ack(1, 1001));
    assert_eq!((script.connection().cwnd(), script.take_count()), (23_000, 16));
}

/// Caini and Firrincieli 2004 (3): congestion avoidance adds rho^2 / W: 16 / 8, then 16 / 10 segments.
#[test]
fn hybla_avoids_congestion_by_rho_squared() {
    let config = with(Congestion::Hybla(HyblaConfig::default()))
        .with(|it| it.window.initial_ssthresh = Some(Size(8000)));
    let mut script = Script::with_window(&config, 2);
    script.write(100_000);
    script.at(200);
    for (acked, cwnd) in [(1001, 10_000), (2001, 11_600)] {
        script.inject(ack(1, acked));
        assert_eq!(script.connection().cwnd(), cwnd);
    }
}

/// draft-cardwell-iccrg-bbr-congestion-control-00 (4.2.3.4): entering recovery, the window is what is in the network
/// and a segment.
#[test]
fn bbr_conserves_packets_in_recovery() {
    let mut script = Script::with_window(&with(Congestion::Bbr), 10);
    script.write(10_000);
    script.at(200);
    assert_eq!(script.take_count(), 10);
    for end in [2001, 3001, 4001] {
        script.inject(ack(1, 1).sack(&[(1001, end)]));
    }
    // Ten out, three arrived, one lost.
    assert_eq!((script.connection().in_flight(), script.connection().cwnd()), (7000, 7000));
    script.expect(data(1, 1000));
}

/// Mascolo et al. 2001 (3.3): what two duplicates told of counts once. 21 segments in the second round trip after 10 in
/// the first: filters of 7/8 and 1/8 make it 113,750 and 101,718 bytes a second, and 10,171 bytes in 100 ms. Counted
/// twice, 23 would make it 10,203.
#[test]
fn westwood_counts_duplicates_once() {
    let config = with(Congestion::WestwoodPlus).with(|it| it.recovery.scheme = Recovery::NewReno);
    let mut script = Script::with_window(&config, 10);
    script.write(100_000);
    script.at(200);
    for segment in 1..=10 {
        script.inject(ack(1, 1 + 1000 * segment));
    }
    script.at(300);
    script.inject(ack(1, 11_001));
    script.at(350);
    script.inject(ack(1, 11_001));
    script.inject(ack(1, 11_001));
    script.at(400);
    script.inject(ack(1, 32_001));
    script.at(2000);
    assert_eq!((script.connection().cwnd(), script.connection().ssthresh()), (1000, Some(10_171)));
}

/// draft-cardwell-iccrg-bbr-congestion-control-00 (4.3.4.4): an idle time costs no window, where Reno starts again.
#[test]
fn bbr_keeps_its_window_over_an_idle_time() {
    for (congestion, before, after) in [(Congestion::Bbr, 20_000, 20_000), (Congestion::Reno, 20_000, 10_000)]
    {
        let mut script = Script::with_window(&with(congestion.clone()), 10);
        script.write(10_000);
        script.at(200);
        for segment in 1..=10 {
            script.inject(ack(1, 1 + 1000 * segment));
        }
        assert_eq!(script.connection().cwnd(), before, "{congestion:?}");
        script.at(5000);
        script.write(1000);
        assert_eq!(script.connection().cwnd(), after, "{congestion:?}");
    }
}

/// draft-cheng-iccrg-delivery-rate-estimation-02 (3.2) counts what is delivered: that a gateway on the way cuts segments, so that 980
/// bytes of one are acknowledged before the other 20, makes no path slower. Two segments in 120 ms are 133 kbit/s.
#[test]
fn bbr_counts_parts_of_segments() {
    let mut script = Script::with_window(&with(Congestion::Bbr), 2);
    script.write(100_000);
    let (mut acked, mut now) = (0, 200);
    for _ in 0..30 {
        script.at(now);
        let sent = script.take_count() as i64;
        for segment in 0..sent {
            script.at(now + 100 + 10 * segment as u64);
            script.inject(ack(1, acked + 981));
            script.at(now + 110 + 10 * segment as u64);
            script.inject(ack(1, acked + 1001));
            acked += 1000;
        }
        now += 100 + 10 * sent.max(1) as u64;
    }
    let rate = script.connection().pacing_rate().unwrap();
    assert!(rate.as_bps() > 100_000, "{rate:?} after {acked} bytes");
}

/// Two segments in flight, whatever happens.
#[derive(Debug)]
struct Fixed(u64);

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &AckSample) {}
    fn on_congestion(&mut self, _event: &Congested) {}
    fn window(&self) -> u64 {
        self.0
    }
    fn set_window(&mut self, window: u64, _ssthresh: Option<u64>) {
        self.0 = window;
    }
}

/// RFC 5681 (3): a window, whoever decides about it, is what is in flight at most. Here a user of the crate does, and
/// what a settings file names does not count.
#[test]
fn a_user_brings_a_controller_along() {
    let factory = Factory::new("two segments", |start: &Start| Fixed(2 * start.mss));
    let config = with(Congestion::Bbr).with(|it| it.congestion = Congestion::External(factory));
    let mut script = Script::with_window(&config, 10);
    script.write(20_000);
    assert_eq!(script.take_count(), 2);
    script.inject(ack(1, 2001));
    assert_eq!((script.take_count(), script.connection().cwnd()), (2, 2000));
    assert!(script.connection().ssthresh().is_none() && script.connection().pacing_rate().is_none());
    assert!(format!("{config:?}").contains("two segments"));
    assert_ne!(config, with(Congestion::Bbr));
    assert_eq!(config, config.clone());
}
