//! What holds for every controller, whatever happens to it.

use base::{Duration, Instant};
use proptest::prelude::*;

use super::samples::start;
use super::{AckSample, Cause, Congestion, Delivery, Start, build};
use crate::config::{
    self, CubicConfig, CubicVariant, FastConfig, HyblaConfig, SlowStart, TcpConfig, VegasConfig,
};

/// Something that a connection tells its controller.
#[derive(Clone, Debug)]
enum Event {
    Ack(AckSample),
    Congestion { cause: Cause, flight_size: u64, age: Option<Duration>, resent: bool },
    Send { in_flight: u64 },
    RecoveryExit,
    Set { window: u64, ssthresh: Option<u64> },
    Spurious { window: u64, ssthresh: u64 },
    Restart,
}

/// Every controller, those that have parameters with these.
const fn controllers(vegas: VegasConfig, fast: FastConfig, hybla: HyblaConfig) -> [config::Congestion; 9] {
    [
        config::Congestion::Reno,
        config::Congestion::Cubic(CubicConfig { variant: CubicVariant::Rfc9438 }),
        config::Congestion::Cubic(CubicConfig { variant: CubicVariant::Linux }),
        config::Congestion::Bbr,
        config::Congestion::WestwoodEre,
        config::Congestion::WestwoodPlus,
        config::Congestion::Vegas(vegas),
        config::Congestion::Fast(fast),
        config::Congestion::Hybla(hybla),
    ]
}

fn with_defaults() -> [TcpConfig; 9] {
    controllers(VegasConfig::default(), FastConfig::default(), HyblaConfig::default())
        .map(|congestion| TcpConfig { congestion, ..TcpConfig::default() })
}

/// Spans from nothing to ten minutes.
fn span() -> impl Strategy<Value = Duration> {
    (0_u32..41, 0_u64..600_000_000_000).prop_map(|(shift, nanos)| Duration::from_nanos(nanos >> shift))
}

/// Bytes from none to four gigabytes.
fn bytes() -> impl Strategy<Value = u64> {
    (0_u32..33, 0_u64..1 << 32).prop_map(|(shift, bytes)| bytes >> shift)
}

fn acknowledgement() -> impl Strategy<Value = Event> {
    let rates = (proptest::option::of(span()), proptest::option::of(span()), span(), 0_u64..2);
    let delivery = proptest::option::of((bytes(), span(), any::<bool>()));
    let flight = (bytes(), bytes(), bytes());
    (rates, delivery, flight, any::<bool>(), any::<bool>()).prop_map(
        |((rtt, srtt, rtt_min, round), delivery, (bytes, sacked, in_flight), recovering, duplicate)| {
            let bytes = if duplicate { 0 } else { bytes };
            let delivered_bytes = bytes + sacked;
            Event::Ack(AckSample {
                now: Instant::ZERO,
                bytes,
                delivered_bytes,
                rtt,
                srtt,
                rtt_min: if rtt.is_some() { rtt_min } else { Duration::MAX },
                in_flight,
                prior_in_flight: in_flight + delivered_bytes,
                limited_by_window: round == 1,
                most_outstanding: in_flight + delivered_bytes,
                delivery: delivery.map(|(bytes, interval, app_limited)| Delivery {
                    bytes,
                    interval: interval.max(Duration::from_nanos(1)),
                    app_limited,
                }),
                round,
                recovering,
                duplicate,
            })
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let cause = prop_oneof![Just(Cause::Loss), Just(Cause::Ecn), Just(Cause::Timeout)];
    let congestion = (cause, bytes(), proptest::option::of(span()), any::<bool>())
        .prop_map(|(cause, flight_size, age, resent)| Event::Congestion { cause, flight_size, age, resent });
    prop_oneof![
        12 => acknowledgement(),
        3 => congestion,
        1 => bytes().prop_map(|in_flight| Event::Send { in_flight }),
        1 => Just(Event::RecoveryExit),
        1 => (bytes(), proptest::option::of(prop_oneof![bytes(), Just(u64::MAX)]))
            .prop_map(|(window, ssthresh)| Event::Set { window, ssthresh }),
        1 => (bytes(), prop_oneof![bytes(), Just(u64::MAX)])
            .prop_map(|(window, ssthresh)| Event::Spurious { window, ssthresh }),
        1 => Just(Event::Restart),
    ]
}

fn beginning() -> impl Strategy<Value = ([config::Congestion; 9], Start)> {
    let slow_start =
        prop_oneof![Just(SlowStart::Standard), Just(SlowStart::HyStartPlusPlus), Just(SlowStart::HyStart)];
    let ssthresh = prop_oneof![bytes(), Just(u64::MAX)];
    let parameters = (1_u32..=10_000, 1_u32..=10_000, 0.01_f64..=1.0, 1_u64..10_000);
    let shape = (64_u64..65_496, 1_u64..200, 1_u64..10, any::<bool>());
    (slow_start, ssthresh, proptest::option::of(span()), parameters, shape).prop_map(
        |(slow_start, ssthresh, srtt, (alpha, beta, gamma, rtt0), (mss, segments, limit, paced))| {
            let controllers = controllers(
                VegasConfig { alpha, beta, ..VegasConfig::default() },
                FastConfig { alpha, gamma },
                HyblaConfig { rtt0: Duration::from_millis(rtt0) },
            );
            let start = Start {
                paired: false,
                mss,
                initial_window: mss * segments,
                byte_counting_limit: limit,
                ssthresh,
                srtt,
                slow_start,
                paced,
            };
            (controllers, start)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No sequence of events makes a controller panic, or report a window below a segment or beyond reason, or a rate
    /// of zero.
    #[test]
    fn windows_stay_reasonable(
        beginning in beginning(),
        events in proptest::collection::vec((event(), span()), 1..200),
    ) {
        let (controllers, start) = beginning;
        for congestion in controllers {
            let config = TcpConfig { congestion: congestion.clone(), ..TcpConfig::default() };
            let mut controller = build(&config, &start);
            let (mut now, mut round) = (Instant::ZERO, 0);
            for (event, pause) in &events {
                now += *pause;
                match *event {
                    Event::Ack(ack) => {
                        round += ack.round;
                        controller.on_ack(&AckSample { now, round, ..ack });
                    }
                    Event::Congestion { cause, flight_size, age, resent } => {
                        let sent_at = age.map(|age| now.saturating_sub(age));
                        controller.on_congestion(&Congestion { now, flight_size, cause, sent_at, resent });
                    }
                    Event::Send { in_flight } => controller.on_send_opportunity(now, in_flight),
                    Event::RecoveryExit => controller.on_recovery_exit(now),
                    Event::Set { window, ssthresh } => controller.set_window(window, ssthresh),
                    Event::Spurious { window, ssthresh } => controller.on_spurious_congestion(now, window, ssthresh),
                    Event::Restart => controller.on_restart(now),
                }
                let window = controller.window();
                prop_assert!((start.mss..=1 << 40).contains(&window), "{congestion:?}: {window} after {event:?}");
                prop_assert!(controller.pacing_rate().is_none_or(|rate| rate.as_bps() > 0), "{congestion:?}");
            }
        }
    }
}

/// Every controller that has a threshold begins with the one that it is given (RFC 9040, 6).
#[test]
fn a_given_threshold_is_taken() {
    for config in with_defaults() {
        let congestion = config.congestion.clone();
        let controller = build(&config, &Start { ssthresh: 7000, ..start(2) });
        let expected = (congestion != config::Congestion::Bbr).then_some(7000);
        assert_eq!(controller.ssthresh(), expected, "{congestion:?}");
    }
}

/// A controller's window and threshold after a spurious time-out are those that the response allows.
#[test]
fn the_response_to_a_spurious_timeout_is_taken() {
    for config in with_defaults() {
        let congestion = config.congestion.clone();
        let mut controller = build(&config, &start(20));
        let timeout = Congestion { resent: false, ..super::samples::congestion(20_000, Cause::Timeout) };
        controller.on_congestion(&timeout);
        assert!(controller.window() <= 2000, "{congestion:?}");
        controller.on_spurious_congestion(Instant::ZERO, 16_000, 12_000);
        assert_eq!(controller.window(), 16_000, "{congestion:?}");
        assert!(controller.ssthresh().is_none_or(|ssthresh| ssthresh == 12_000), "{congestion:?}");
    }
}

/// Every controller but BBR starts again from its initial window after an idle time (RFC 5681, 4.1).
#[test]
fn an_idle_time_costs_the_window() {
    for config in with_defaults() {
        let congestion = config.congestion.clone();
        let mut controller = build(&config, &start(4));
        controller.on_spurious_congestion(Instant::ZERO, 50_000, 50_000);
        controller.on_restart(Instant::ZERO);
        let expected = if congestion == config::Congestion::Bbr { 50_000 } else { 4000 };
        assert_eq!(controller.window(), expected, "{congestion:?}");
    }
}
