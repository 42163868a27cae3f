//! What congestion controllers make of a bottleneck: whole transfers, each with its goal.

use crate::pair::{Pair, Path};
use base::Duration;
use base::units::Size;
use longhaul_tcp::config::{FastConfig, HyblaConfig, VegasConfig};
use longhaul_tcp::{Congestion, CubicConfig, DelayedAcks, InitialWindow, Recovery, SlowStart, TcpConfig};

/// Segments of 1000 bytes and room for every window.
fn with(congestion: Congestion) -> TcpConfig {
    TcpConfig::default().with(|it| {
        it.congestion = congestion;
        it.mss = Some(1000);
        it.timestamps = false;
        it.recovery.scheme = Recovery::Sack;
        it.window.initial = InitialWindow::Segments(10);
        it.acknowledgements.delay = DelayedAcks::Off;
        it.window.receive_buffer = Size(4 << 20);
        it.window.send_buffer = Size(4 << 20);
    })
}

/// A server that sends without end to a client over this path.
fn endless(path: Path, config: &TcpConfig) -> Pair {
    let mut pair = Pair::new(1, path, config);
    pair.connect(config);
    pair.ends[1].to_send = u64::MAX;
    pair.drain();
    pair
}

fn run(pair: &mut Pair, until_s: u64) {
    assert!(!pair.run_until(Duration::from_secs(until_s), |_| false));
}

/// Megabits per second that arrive between two seconds.
fn throughput(pair: &mut Pair, from_s: u64, until_s: u64) -> f64 {
    run(pair, from_s);
    let before = pair.ends[0].received;
    run(pair, until_s);
    (pair.ends[0].received - before) as f64 * 8.0 / 1e6 / (until_s - from_s) as f64
}

/// Goal: BBR fills nine tenths of a line that loses 2 % of its packets, where CUBIC and Reno cannot, and keeps its
/// queue below a product of bandwidth and delay
/// (draft-cardwell-iccrg-bbr-congestion-control-00, 1).
#[test]
fn bbr_fills_a_lossy_bottleneck() {
    let path = Path { loss: 0.02, ..Path::clean(50).through(10_000, 500) };
    // 1040 bytes of packet carry 1000.
    let full = 10.0 * 1000.0 / 1040.0;
    let mut bbr = endless(path, &with(Congestion::Bbr));
    let rate = throughput(&mut bbr, 5, 30);
    assert!(rate > 0.9 * full * 0.98, "{rate} Mbit/s");
    assert!(bbr.queue() < 150, "{} packets wait", bbr.queue());
    for congestion in [Congestion::Cubic(CubicConfig::default()), Congestion::Reno] {
        let rate = throughput(&mut endless(path, &with(congestion.clone())), 5, 30);
        assert!(rate < 0.5 * full, "{congestion:?}: {rate} Mbit/s");
    }
}

/// Goal: in steady state BBR's model is the path: its rate and window follow from 10 Mbit/s and 100 ms
/// (draft-cardwell-iccrg-bbr-congestion-control-00).
#[test]
fn bbr_finds_the_path() {
    let mut pair = endless(Path::clean(50).through(10_000, 500), &with(Congestion::Bbr));
    let rate = throughput(&mut pair, 5, 25);
    assert!(rate > 0.93 * 10.0 * 1000.0 / 1040.0, "{rate}");
    let window = pair.connection(1).cwnd();
    // Twice 9.615 Mbit/s * 101 ms / 8 = 243 kB.
    assert!((200_000..280_000).contains(&window) || window == 4000, "{window}");
    assert_eq!(pair.overflowed, 0);
}

/// Goal: CUBIC fills a clean bottleneck with a queue of half a product of bandwidth and delay (RFC 9438).
#[test]
fn cubic_fills_a_clean_bottleneck() {
    let mut pair =
        endless(Path::clean(50).through(10_000, 60), &with(Congestion::Cubic(CubicConfig::default())));
    let rate = throughput(&mut pair, 10, 60);
    assert!(rate > 0.95 * 10.0 * 1000.0 / 1040.0, "{rate}");
    assert!(pair.overflowed > 0);
}

/// Goal: HyStart++ and HyStart drop a small part of what standard slow start does (RFC 9406, 1).
#[test]
fn hystart_spares_the_queue() {
    let dropped = |slow_start| {
        let config =
            with(Congestion::Cubic(CubicConfig::default())).with(|it| it.window.slow_start = slow_start);
        let mut pair = endless(Path::clean(50).through(10_000, 250), &config);
        run(&mut pair, 3);
        pair.overflowed
    };
    let standard = dropped(SlowStart::Standard);
    for slow_start in [SlowStart::HyStartPlusPlus, SlowStart::HyStart] {
        let drops = dropped(slow_start);
        assert!(4 * drops < standard, "{slow_start:?}: {drops} of {standard}");
    }
}

/// Goal: pacing keeps the bursts of slow start out of the queue (Linux's pacing).
#[test]
fn pacing_shortens_the_queue() {
    let longest = |pacing| {
        let config = with(Congestion::Reno).with(|it| {
            it.pacing = pacing;
            it.window.receive_buffer = Size(100_000);
        });
        let mut pair = endless(Path::clean(50).through(10_000, 500), &config);
        run(&mut pair, 2);
        pair.longest_queue
    };
    let (paced, unpaced) = (longest(true), longest(false));
    assert!(2 * paced < unpaced, "{paced} against {unpaced}");
}

/// Goal: Vegas keeps alpha to beta segments in the queue, whatever they are set to, and the line full (Brakmo and
/// Peterson 1995, III.B).
#[test]
fn vegas_keeps_a_few_segments_queued() {
    for (alpha, beta) in [(2, 4), (10, 14)] {
        let config = with(Congestion::Vegas(VegasConfig { alpha, beta, gamma: 1 }));
        let mut pair = endless(Path::clean(50).through(5000, 200), &config);
        let rate = throughput(&mut pair, 20, 40);
        assert!(rate > 0.98 * 5.0 * 1000.0 / 1040.0, "{rate}");
        // What waits and the one that is being sent.
        let queue = pair.queue();
        assert!((alpha as usize..=beta as usize + 2).contains(&queue), "{alpha} to {beta}: {queue}");
        assert_eq!(pair.overflowed, 0);
    }
}

/// Goal: FAST at rest keeps alpha segments in the queue and the line full (Wei et al. 2006, equation 1).
#[test]
fn fast_keeps_alpha_segments_queued() {
    for alpha in [20, 50] {
        let config = with(Congestion::Fast(FastConfig { alpha, ..FastConfig::default() }));
        let mut pair = endless(Path::clean(50).through(5000, 1000), &config);
        let rate = throughput(&mut pair, 30, 40);
        assert!(rate > 0.99 * 5.0 * 1000.0 / 1040.0, "{rate}");
        let queue = pair.queue() as u32;
        assert!((alpha - 2..=alpha + 2).contains(&queue), "{alpha}: {queue}");
    }
}

/// Goal: both Westwoods' threshold after a random loss is what fits into the path, 5 Mbit/s times 100 ms, where
/// Reno's is half of its window (Mascolo et al. 2001, 4.1).
#[test]
fn westwood_estimates_the_bottleneck() {
    // 5 Mbit/s carry 4.81 Mbit/s of payload; 101.7 ms at least with the segment's own time.
    let product = 5e6 / 1.04 / 8.0 * 0.1017;
    for congestion in [Congestion::WestwoodEre, Congestion::WestwoodPlus] {
        let mut pair = endless(Path::clean(50).through(5000, 60), &with(congestion.clone()));
        run(&mut pair, 20);
        let mut dropped = false;
        pair.drop_if = Box::new(move |side, _, _| side == 1 && !core::mem::replace(&mut dropped, true));
        run(&mut pair, 21);
        let ssthresh = pair.connection(1).ssthresh().unwrap() as f64;
        assert!((ssthresh / product - 1.0).abs() < 0.1, "{congestion:?}: {ssthresh} of {product}");
    }
}

/// Goal: random losses cost Westwood much less than Reno, for a lost segment does not change what arrives (Mascolo et
/// al. 2001).
#[test]
fn westwood_bears_random_losses() {
    let path = Path { loss: 0.002, ..Path::clean(50).through(5000, 60) };
    let reno = throughput(&mut endless(path, &with(Congestion::Reno)), 5, 60);
    for congestion in [Congestion::WestwoodEre, Congestion::WestwoodPlus] {
        let rate = throughput(&mut endless(path, &with(congestion.clone())), 5, 60);
        assert!(rate > 1.3 * reno, "{congestion:?}: {rate} against {reno}");
    }
}

/// Goal: after one loss Hybla's rate grows as fast at 200 ms as at 50 ms, and Reno's a sixteenth as fast (Caini and
/// Firrincieli 2004, 3).
#[test]
fn hybla_grows_independently_of_the_round_trip() {
    let growth = |congestion, rtt_ms: u64| {
        let config = with(congestion);
        let mut pair = Pair::new(1, Path::clean(rtt_ms / 2), &config);
        // The second data segment of the server is lost: congestion avoidance begins.
        pair.drop_if = Box::new(|side, _, count| side == 1 && count == 2);
        pair.connect(&config);
        pair.ends[1].to_send = u64::MAX;
        pair.drain();
        let early = throughput(&mut pair, 2, 3);
        (throughput(&mut pair, 8, 9) - early) / 6.0
    };
    // 1 / RTT0^2 = 400 segments a second each second: 3.2 Mbit/s.
    let hybla = Congestion::Hybla(HyblaConfig { rtt0: Duration::from_millis(50) });
    let (near, far) = (growth(hybla.clone(), 50), growth(hybla, 200));
    assert!((near - 3.2).abs() < 0.4, "{near}");
    assert!((far - 3.2).abs() < 0.4, "{far}");
    let (near, far) = (growth(Congestion::Reno, 50), growth(Congestion::Reno, 200));
    assert!((near - 3.2).abs() < 0.4 && far < 0.4, "Reno: {near}, {far}");
}
