use super::*;
use crate::congestion::Delivery;
use crate::congestion::samples::{MSS, ack, at_ms, congestion, start};

const RTT: Duration = Duration::from_millis(100);

fn bbr() -> Bbr {
    Bbr::new(&Start { srtt: Some(RTT), ..start(10) })
}

/// An acknowledgement of one segment in `round`, at 100 ms a round, that says `mbps`.
fn sample(round: u64, mbps: u64, in_flight: u64) -> AckSample {
    let delivery = Some(Delivery { bytes: mbps * 12_500, interval: RTT, app_limited: false });
    let now = at_ms(100 * round);
    let rtt = Some(RTT);
    AckSample { now, round, delivery, rtt, rtt_min: RTT, in_flight, ..ack(MSS, in_flight + MSS) }
}

/// So many bytes were delivered from when a segment was sent until it arrived.
fn delivery(bytes: u64) -> Option<Delivery> {
    Some(Delivery { bytes, interval: RTT, app_limited: false })
}

/// A controller whose pipe of 10 Mbit/s and 100 ms (125 segments) is full, in `ProbeBW`.
fn probing() -> Bbr {
    let mut bbr = bbr();
    for round in 1..=4 {
        bbr.on_ack(&sample(round, 10, 200 * MSS));
    }
    assert_eq!(bbr.mode, Mode::Drain);
    bbr.on_ack(&sample(4, 10, 100 * MSS));
    for _ in 0..400 {
        bbr.on_ack(&sample(4, 10, 100 * MSS));
    }
    bbr
}

fn phase(bbr: &Bbr) -> Option<usize> {
    match bbr.mode {
        Mode::ProbeBw { phase, .. } => Some(phase),
        _ => None,
    }
}

/// 4.2.1: 2.885 times the initial window in a round trip: 10,000 bytes in 100 ms are 800 kbit/s.
#[test]
fn the_first_rate_is_that_of_the_initial_window() {
    let rate = bbr().pacing_rate().unwrap().as_bps();
    assert!((2_305_000..=2_312_500).contains(&rate), "{rate}");
    let blind = Bbr::new(&start(10)).pacing_rate().unwrap().as_bps();
    assert!((230_500_000..=231_250_000).contains(&blind), "{blind}");
}

/// 4.3.2.2: three rounds without a quarter of growth fill the pipe; 4.3.3: then it drains to the product.
#[test]
fn startup_ends_when_the_rate_stops_growing() {
    let mut bbr = bbr();
    for (round, mbps) in [(1, 2), (2, 4), (3, 8), (4, 10), (5, 10), (6, 11)] {
        bbr.on_ack(&sample(round, mbps, 200 * MSS));
        assert_eq!(bbr.mode, Mode::Startup, "round {round}");
    }
    bbr.on_ack(&sample(7, 11, 200 * MSS));
    assert_eq!(bbr.mode, Mode::Drain);
    // 11 Mbit/s * 0.99 / 2.885.
    let rate = bbr.pacing_rate().unwrap().as_bps();
    assert!((3_740_000..=3_785_000).contains(&rate), "{rate}");
    bbr.on_ack(&sample(7, 11, 120 * MSS));
    assert_eq!(phase(&bbr), Some(FIRST_PHASE));
}

/// 4.3.2.2: rounds that the application limits say nothing.
#[test]
fn an_idle_application_does_not_fill_the_pipe() {
    let mut bbr = bbr();
    for round in 1..20 {
        let mut ack = sample(round, 2, 10 * MSS);
        ack.delivery = ack.delivery.map(|delivery| Delivery { app_limited: true, ..delivery });
        bbr.on_ack(&ack);
    }
    assert_eq!(bbr.mode, Mode::Startup);
}

/// 4.1.1.3: an application-limited sample counts only if it is not below the estimate.
#[test]
fn limited_samples_can_only_raise_the_bandwidth() {
    let mut bbr = probing();
    let limited = |round, mbps| {
        let ack = sample(round, mbps, 50 * MSS);
        AckSample { delivery: ack.delivery.map(|d| Delivery { app_limited: true, ..d }), ..ack }
    };
    for round in 5..30 {
        bbr.on_ack(&limited(round, 1));
    }
    assert_eq!(bbr.bandwidth.get(), 10_000_000);
    bbr.on_ack(&limited(30, 12));
    assert_eq!(bbr.bandwidth.get(), 12_000_000);
}

/// 4.2.3.2: twice 125,000 bytes, and three bursts of two segments.
#[test]
fn the_window_is_twice_the_product_and_three_bursts() {
    let bbr = probing();
    assert_eq!(phase(&bbr), Some(FIRST_PHASE));
    assert_eq!(bbr.window(), 250_000 + 3 * 2 * MSS);
    assert_eq!(bbr.pacing_rate().unwrap().as_bps(), 9_900_000);
}

/// 4.3.4.3: each phase lasts a round trip; 5/4 until the flight is that large, 3/4 until it is the product.
#[test]
fn probing_cycles_through_eight_phases() {
    let mut bbr = probing();
    let mut seen = Vec::new();
    for round in 0..18 {
        // 101 ms a round: each is longer than the least round trip.
        let now = at_ms(500 + 101 * round);
        bbr.on_ack(&AckSample { now, ..sample(5 + round, 10, 162 * MSS) });
        seen.push(bbr.pacing_rate().unwrap().as_bps() / 1000);
    }
    for cycle in seen[..16].chunks(8) {
        assert_eq!(cycle, [9900, 9900, 9900, 9900, 9900, 9900, 12_375, 7425]);
    }
}

/// 4.3.4.3: probing goes on while the flight is not five quarters of the product.
#[test]
fn probing_waits_for_the_flight() {
    let mut bbr = probing();
    bbr.mode = Mode::ProbeBw { phase: 0, since: at_ms(400) };
    bbr.on_ack(&AckSample { now: at_ms(800), ..sample(8, 10, 130 * MSS) });
    assert_eq!(phase(&bbr), Some(0));
    bbr.on_ack(&AckSample { now: at_ms(801), ..sample(8, 10, 162 * MSS) });
    assert_eq!(phase(&bbr), Some(1));
}

/// 4.3.5: ten seconds without a smaller round trip, four segments for 200 ms and a round trip, and all as before.
#[test]
fn a_stale_round_trip_is_probed() {
    let mut bbr = probing();
    let window = bbr.window();
    let longer = |ms: u64, in_flight: u64| {
        let rtt = Some(Duration::from_millis(130));
        AckSample { now: at_ms(ms), rtt, ..sample(ms / 100, 10, in_flight) }
    };
    bbr.on_ack(&longer(10_400, 100 * MSS));
    assert_eq!(bbr.window(), window);
    bbr.on_ack(&longer(10_401, 100 * MSS));
    assert_eq!((bbr.mode, bbr.window()), (Mode::ProbeRtt { low: None }, 4 * MSS));
    bbr.on_ack(&longer(10_500, 4 * MSS));
    // What was sent since then: nothing came between.
    let next = |ms: u64| AckSample { delivery: delivery(MSS), ..longer(ms, 4 * MSS) };
    bbr.on_ack(&next(10_699));
    assert_eq!(bbr.window(), 4 * MSS);
    bbr.on_ack(&next(10_700));
    assert_eq!((phase(&bbr), bbr.window()), (Some(FIRST_PHASE), window + MSS));
    assert_eq!(bbr.rtt_min, Duration::from_millis(130));
}

/// 4.2.3.4: on entering recovery what is delivered is what may be sent, for a round; then growth; then all of it.
#[test]
fn recovery_conserves_packets_and_restores_the_window() {
    let mut bbr = probing();
    let window = bbr.window();
    let recovering = |round, in_flight| AckSample { recovering: true, ..sample(round, 10, in_flight) };
    bbr.on_congestion(&congestion(120 * MSS, Cause::Loss));
    bbr.on_ack(&recovering(5, 80 * MSS));
    assert_eq!(bbr.window(), 81 * MSS);
    bbr.on_ack(&recovering(5, 79 * MSS));
    assert_eq!(bbr.window(), 81 * MSS);
    bbr.on_ack(&recovering(6, 80 * MSS));
    assert_eq!(bbr.window(), 82 * MSS);
    bbr.on_recovery_exit(at_ms(700));
    assert_eq!(bbr.window(), window);
}

/// RFC 3168 (5): a mark is answered like a loss.
#[test]
fn a_mark_conserves_packets_for_a_round() {
    let mut bbr = probing();
    let window = bbr.window();
    bbr.on_congestion(&congestion(120 * MSS, Cause::Ecn));
    bbr.on_ack(&sample(5, 10, 80 * MSS));
    assert_eq!(bbr.window(), 81 * MSS);
    bbr.on_ack(&sample(6, 10, 80 * MSS));
    assert_eq!(bbr.window(), window);
}

/// 4.2.3.4: one segment after a time-out, and the old window when all of it is acknowledged.
#[test]
fn a_timeout_is_recovered_from() {
    let mut bbr = probing();
    let window = bbr.window();
    bbr.on_congestion(&congestion(3 * MSS, Cause::Timeout));
    assert_eq!(bbr.window(), MSS);
    bbr.on_ack(&sample(5, 10, 0));
    assert_eq!(bbr.window(), 4 * MSS);
    bbr.on_ack(&sample(6, 10, 0));
    bbr.on_ack(&sample(7, 10, 0));
    assert_eq!(bbr.window(), window);
}

/// 4.3.1: the round trip counts as confirmed when a connection begins, however late that is.
#[test]
fn a_late_connection_does_not_probe_at_once() {
    let mut bbr = bbr();
    bbr.on_send_opportunity(at_ms(99_900), 0);
    bbr.on_ack(&AckSample { rtt: None, ..sample(1000, 10, 5 * MSS) });
    bbr.on_ack(&AckSample { now: at_ms(100_001), ..sample(1000, 10, 5 * MSS) });
    assert_eq!(bbr.mode, Mode::Startup);
}

/// 4.3.4.4: after an idle time data leave at the estimated rate, in whatever phase the cycle was; the window stays.
#[test]
fn an_idle_time_restarts_at_the_estimated_rate() {
    let mut bbr = probing();
    bbr.mode = Mode::ProbeBw { phase: 0, since: at_ms(400) };
    bbr.on_ack(&sample(5, 10, 0));
    assert_eq!(bbr.pacing_rate().unwrap().as_bps(), 12_375_000);
    let window = bbr.window();
    bbr.on_restart(at_ms(30_000));
    bbr.on_send_opportunity(at_ms(30_000), 0);
    assert_eq!((bbr.pacing_rate().unwrap().as_bps(), bbr.window()), (9_900_000, window));
    // A stale round trip is no reason to probe now.
    bbr.on_ack(&AckSample { now: at_ms(30_100), ..sample(6, 10, 10 * MSS) });
    assert_eq!(phase(&bbr), Some(0));
}

/// Linux, `tcp_rate_gen`: what was delivered in less than a round trip is no sample, for acknowledgements may have been merged; in a round
/// trip it is.
#[test]
fn what_took_less_than_a_round_trip_is_no_sample() {
    for (ms, counts) in [(50, false), (99, false), (100, true), (101, true)] {
        let mut bbr = probing();
        let interval = Duration::from_millis(ms);
        let delivery = Some(Delivery { bytes: 250_000, interval, app_limited: false });
        bbr.on_ack(&AckSample { delivery, ..sample(5, 10, 100 * MSS) });
        assert_eq!(bbr.bandwidth.get() > 10_000_000, counts, "{ms} ms");
    }
    // Before there is a round trip to compare with, every sample counts.
    let mut bbr = bbr();
    let delivery = Some(Delivery { bytes: 1000, interval: Duration::from_millis(1), app_limited: false });
    bbr.on_ack(&AckSample { delivery, rtt: None, rtt_min: Duration::MAX, ..sample(1, 10, 5 * MSS) });
    assert_eq!(bbr.bandwidth.get(), 8_000_000);
}

/// 4.3.5: the small flight lasts for 200 ms and a round trip: until something that was sent since it became small has arrived.
#[test]
fn a_probe_of_the_round_trip_lasts_for_one() {
    let mut bbr = probing();
    let longer = |ms: u64, in_its_time: u64, in_flight: u64| {
        let rtt = Some(Duration::from_millis(350));
        AckSample { now: at_ms(ms), rtt, delivery: delivery(in_its_time), ..sample(ms / 100, 10, in_flight) }
    };
    bbr.on_ack(&longer(10_401, 100 * MSS, 100 * MSS));
    bbr.on_ack(&longer(10_500, 50 * MSS, 4 * MSS));
    // 200 ms are over; what arrives had been sent when more was still to come than came since.
    for (came, ms) in (1..=3).zip([10_701, 10_800, 10_849]) {
        bbr.on_ack(&longer(ms, (came + 1) * MSS, 4 * MSS));
        let low = Mode::ProbeRtt { low: Some((at_ms(10_500), came * MSS)) };
        assert_eq!((bbr.mode, bbr.window()), (low, 4 * MSS), "{ms}");
    }
    bbr.on_ack(&longer(10_850, 4 * MSS, 4 * MSS));
    assert_eq!(phase(&bbr), Some(FIRST_PHASE));
}

/// 4.3.5: the small flight ends also where all that arrives was sent twice, which gives no round-trip time.
#[test]
fn a_probe_amid_repairs_ends() {
    let mut bbr = probing();
    let again = |ms: u64, in_flight: u64| {
        let delivery = delivery(4 * MSS);
        AckSample { now: at_ms(ms), rtt: None, delivery, recovering: true, ..sample(ms / 100, 10, in_flight) }
    };
    bbr.on_ack(&again(10_401, 4 * MSS));
    for ms in [10_501, 10_601, 10_651, 10_671] {
        assert!(matches!(bbr.mode, Mode::ProbeRtt { .. }), "{ms}");
        bbr.on_ack(&again(ms, 4 * MSS));
    }
    assert_eq!(phase(&bbr), Some(FIRST_PHASE));
}

/// 4.2.3.4: the window before recovery or `ProbeRTT` is remembered through both: the larger one comes back.
#[test]
fn the_larger_window_comes_back() {
    let mut bbr = probing();
    let window = bbr.window();
    bbr.on_congestion(&congestion(120 * MSS, Cause::Timeout));
    assert_eq!(bbr.window(), MSS);
    // A loss on the way out of the time-out finds a small window.
    bbr.on_congestion(&congestion(4 * MSS, Cause::Loss));
    bbr.on_recovery_exit(at_ms(600));
    assert_eq!(bbr.window(), window);
}

/// 4.2.1: in Startup the rate follows what is found, and falls below the first guess for no low sample.
#[test]
fn startup_paces_by_what_it_finds() {
    let mut bbr = bbr();
    let first = bbr.pacing_rate().unwrap().as_bps();
    bbr.on_ack(&sample(1, 0, 10 * MSS));
    let low = Delivery { bytes: 100, interval: RTT, app_limited: false };
    bbr.on_ack(&AckSample { delivery: Some(low), ..sample(1, 0, 10 * MSS) });
    assert_eq!(bbr.pacing_rate().unwrap().as_bps(), first, "a low first sample slows the start");
    for (round, mbps) in [(2, 4), (3, 8), (4, 16)] {
        bbr.on_ack(&sample(round, mbps, 200 * MSS));
        let rate = bbr.pacing_rate().unwrap().as_bps();
        let found = mbps * 990_000 * 2885 / 1000;
        assert!(rate.abs_diff(found) < found / 100, "{rate} of {found}: the bandwidth is found slowly");
    }
}

/// 4.3.4.3: what probing has queued up is drained no longer than it takes.
#[test]
fn draining_ends_when_the_queue_has_gone() {
    let mut bbr = probing();
    bbr.mode = Mode::ProbeBw { phase: 1, since: at_ms(400) };
    // The round trip is not over; more than the product is out, and then that.
    let at = |in_flight| AckSample { now: at_ms(420), ..sample(4, 10, in_flight) };
    bbr.on_ack(&at(200 * MSS));
    assert_eq!(phase(&bbr), Some(1));
    bbr.on_ack(&at(100 * MSS));
    assert_eq!(phase(&bbr), Some(2));
}

/// 4.2.3.4: a mark in a recovery does not begin another one; and that is BBR's own to steer.
#[test]
fn a_mark_in_a_recovery_changes_nothing() {
    let mut bbr = probing();
    bbr.on_congestion(&congestion(100 * MSS, Cause::Loss));
    let before = format!("{bbr:?}");
    bbr.on_congestion(&congestion(100 * MSS, Cause::Ecn));
    assert_eq!(format!("{bbr:?}"), before);
    // Without selective acknowledgements a duplicate delivers nothing that is known.
    let duplicate = AckSample {
        bytes: 0,
        delivered_bytes: 0,
        duplicate: true,
        delivery: None,
        ..sample(4, 10, 50 * MSS)
    };
    let window = bbr.window();
    bbr.on_ack(&duplicate);
    assert_eq!(bbr.window(), window, "the window falls before the loss is known");
    assert!(bbr.steers_recovery(), "PRR bounds it besides");
}
