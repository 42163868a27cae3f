//! Two ends that report over a simulated bottleneck with a queue, a delay and losses.

use base::{Duration, Instant, Rate, Rng};

use super::follower::{Finding, Follower};
use super::report::Reports;

const MEGABIT: u64 = 1_000_000;
/// Bytes of a datagram, and what the line adds.
const LEN: u64 = 972;
const HEADER: u64 = 28;
const DELAY: Duration = Duration::from_millis(250);

/// What the path does; by default a megabit, a queue of one round trip's worth, no losses.
#[derive(Clone, Copy)]
struct Path {
    bps: u64,
    queue: Duration,
    loss: f64,
    /// From here on the path is this much longer.
    longer: Option<(Instant, Duration)>,
}

const PATH: Path = Path { bps: MEGABIT, queue: Duration::from_millis(500), loss: 0.0, longer: None };

/// What came of sending as fast as the follower allows.
struct Outcome {
    follower: Follower,
    findings: Vec<Finding>,
    /// Of the second half of the time.
    arrived_bps: f64,
    worst_queueing: Duration,
    lowest_rate: Rate,
}

fn run(configured: Option<u64>, path: Path, seconds: u64) -> Outcome {
    let (mut near, mut far) = (Reports::new(None), Reports::new(None));
    let mut follower = Follower::new(configured.map(Rate::from_bps), HEADER as i64);
    let mut rng = Rng::named(1, "path");
    let line = Rate::from_bps(path.bps);
    let end = Instant::ZERO + Duration::from_secs(seconds);
    let half = Instant::ZERO + Duration::from_secs(seconds / 2);
    let (mut now, mut free_at) = (Instant::ZERO, Instant::ZERO);
    let mut answers = std::collections::VecDeque::new();
    let mut outcome = Outcome {
        findings: Vec::new(),
        arrived_bps: 0.0,
        worst_queueing: Duration::ZERO,
        lowest_rate: Rate::from_bps(u64::MAX),
        follower: Follower::new(None, 0),
    };
    near.restart();
    while now < end {
        near.on_traffic();
        // Where nobody paces, windows and fillers come to this.
        let rate = follower.rate().unwrap_or(Rate::from_bps(5 * MEGABIT));
        outcome.lowest_rate = outcome.lowest_rate.min(rate);
        let report = near.poll_report(now);
        near.on_sent(1, LEN);
        let waits = free_at.saturating_since(now);
        // A full queue drops; the channel loses some of what passed.
        if waits < path.queue {
            free_at = free_at.max(now) + line.time_for((LEN + HEADER) * 8);
            let longer =
                path.longer.map_or(Duration::ZERO, |(from, by)| if now < from { Duration::ZERO } else { by });
            let arrives = free_at + DELAY + longer;
            if now > half {
                outcome.worst_queueing = outcome.worst_queueing.max(waits);
            }
            if rng.unit() >= path.loss {
                far.on_received(LEN);
                far.on_traffic();
                if now > half {
                    outcome.arrived_bps += ((LEN + HEADER) * 8) as f64 / (seconds as f64 / 2.0);
                }
                if let Some(report) = report {
                    far.handle_report(arrives, &report);
                }
                answers.extend(far.poll_report(arrives).map(|answer| (arrives + DELAY, answer)));
            }
        }
        // Jitter, lest the same datagrams are dropped in each round.
        now += Duration::from_secs_f64(
            rate.time_for((LEN + HEADER) * 8).as_secs_f64() * (0.95 + 0.1 * rng.unit()),
        );
        while answers.front().is_some_and(|(at, _)| *at <= now) {
            let (at, answer) = answers.pop_front().unwrap();
            if let Some(sample) = near.handle_report(at, &answer) {
                outcome.findings.extend(follower.on_sample(at, &sample));
            }
        }
    }
    outcome.follower = follower;
    outcome
}

/// Whether `bps` was found, to a twentieth.
fn found(outcome: &Outcome, bps: u64) -> bool {
    let near = |rate: Rate| rate.as_bps().abs_diff(bps) <= bps / 20;
    matches!(outcome.findings[..], [Finding::TooFast { measured, .. }] if near(measured))
}

#[test]
fn a_rate_that_the_carrier_has_stays() {
    for configured in [MEGABIT / 2, MEGABIT * 99 / 100] {
        let outcome = run(Some(configured), PATH, 120);
        assert_eq!((outcome.findings.len(), outcome.follower.followed()), (0, None));
        assert_eq!(outcome.lowest_rate, Rate::from_bps(configured));
    }
}

#[test]
fn twice_what_the_carrier_has_is_followed_down() {
    let outcome = run(Some(2 * MEGABIT), PATH, 240);
    assert!(found(&outcome, MEGABIT), "{:?}", outcome.findings);
    assert!(outcome.arrived_bps >= 0.93 * MEGABIT as f64, "{}", outcome.arrived_bps);
    assert!(outcome.worst_queueing <= Duration::from_millis(400), "{}", outcome.worst_queueing);
}

#[test]
fn without_a_rate_the_carriers_is_found() {
    let outcome = run(None, PATH, 240);
    assert!(found(&outcome, MEGABIT), "{:?}", outcome.findings);
    assert!(outcome.arrived_bps >= 0.93 * MEGABIT as f64, "{}", outcome.arrived_bps);
    assert!(outcome.worst_queueing <= Duration::from_millis(400), "{}", outcome.worst_queueing);
}

#[test]
fn a_carrier_that_drops_instead_of_queueing_is_followed_too() {
    let outcome = run(Some(2 * MEGABIT), Path { queue: Duration::from_millis(30), ..PATH }, 240);
    assert!(found(&outcome, MEGABIT), "{:?}", outcome.findings);
    assert!(outcome.arrived_bps >= 0.93 * MEGABIT as f64, "{}", outcome.arrived_bps);
}

#[test]
fn losses_of_the_channel_do_not_slow_it_down() {
    let lossy = Path { loss: 0.2, ..PATH };
    let outcome = run(Some(MEGABIT * 99 / 100), lossy, 240);
    assert_eq!((outcome.findings.len(), outcome.follower.followed()), (0, None));
    assert!(outcome.arrived_bps >= 0.98 * 0.8 * MEGABIT as f64, "{}", outcome.arrived_bps);
    // And where too much is sent besides, nearly all that the carrier has is used.
    let outcome = run(Some(2 * MEGABIT), lossy, 480);
    assert!(outcome.arrived_bps >= 0.9 * 0.8 * MEGABIT as f64, "{}", outcome.arrived_bps);
}

#[test]
fn a_path_that_becomes_longer_is_no_queue() {
    let longer =
        Path { longer: Some((Instant::ZERO + Duration::from_secs(60), Duration::from_millis(300))), ..PATH };
    let outcome = run(Some(MEGABIT / 2), longer, 240);
    assert_eq!((outcome.findings.len(), outcome.follower.rate()), (0, Some(Rate::from_bps(MEGABIT / 2))));
}

#[test]
fn what_the_carrier_gains_is_used() {
    let slow = run(Some(2 * MEGABIT), PATH, 60);
    assert!(slow.follower.followed().is_some());
    // A carrier of 1.9 Mbit/s that was configured as 2: the rate comes back to nearly that.
    let outcome = run(Some(2 * MEGABIT), Path { bps: 19 * MEGABIT / 10, ..PATH }, 240);
    assert!(outcome.arrived_bps >= 0.9 * 1.9 * MEGABIT as f64, "{}", outcome.arrived_bps);
}
