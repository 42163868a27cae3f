//! What the law comes to on each kind of path. Mbit/s are of all that passes the bottleneck; times are in seconds.

use base::{Duration, Rate};

use super::path::{Other, Outcome, Path, World};
use crate::survey::rate::{Aim, Finding};

const SEEDS: [u64; 2] = [1, 2];

/// What comes of finding the rate of this path by oneself.
fn find(path: &Path, seconds: u64) -> [Outcome; SEEDS.len()] {
    run(Aim::Find, path, seconds)
}

fn run(aim: Aim, path: &Path, seconds: u64) -> [Outcome; SEEDS.len()] {
    SEEDS.map(|seed| World::new(aim, path.clone(), seed).run(seconds))
}

const fn known(megabits: u64) -> Aim {
    Aim::Known(Rate::from_bps(megabits * 1_000_000))
}

#[track_caller]
fn assert_at_least(value: f64, least: f64, what: &str) {
    assert!(value >= least, "{what}: {value:.3}, and not at least {least:.3}");
}

#[track_caller]
fn assert_at_most(value: f64, most: f64, what: &str) {
    assert!(value <= most, "{what}: {value:.3}, and not at most {most:.3}");
}

#[test]
fn an_idle_path_is_used_within_three_round_trips_and_kept_full_with_a_short_queue() {
    for (megabits, round_trip, from) in [
        (50.0, 600, 2.0),
        (20.0, 600, 2.0),
        (20.0, 50, 1.0),
        (10.0, 100, 1.0),
        (1.0, 600, 2.0),
        (1000.0, 30, 2.0),
    ] {
        for outcome in find(&Path::new(megabits, round_trip), 20) {
            let what = format!("{megabits} Mbit/s, {round_trip} ms");
            assert_at_least(outcome.passed(from, 20.0), 0.99 * megabits, &what);
            assert_at_most(outcome.median_queue(from, 20.0), 60.0, &what);
            assert_at_most(outcome.drop_share(), 0.05, &what);
        }
    }
}

/// On a short path a queue of a round trip is soon full, and on a slow one the first packets fill it.
#[test]
fn short_and_slow_paths_are_used_too() {
    for (megabits, round_trip) in [(20.0, 20), (1.0, 50), (0.06, 600)] {
        for outcome in find(&Path::new(megabits, round_trip), 60) {
            let what = format!("{megabits} Mbit/s, {round_trip} ms");
            assert_at_least(outcome.passed(5.0, 60.0), 0.9 * megabits, &what);
        }
    }
}

/// What a `ping` waits beside traffic, in ms: in the mean, and from the very start.
#[test]
fn a_slow_line_is_not_filled_for_seconds() {
    for (round_trip, queue) in [(50, 3), (300, 3), (600, 1), (600, 3)] {
        let path = Path { queue: Duration::from_secs(queue), ..Path::new(0.064, round_trip) };
        for outcome in find(&path, 60) {
            let what = format!("{round_trip} ms, {queue} s");
            assert_at_most(Outcome::mean(&outcome.queue, 0.0, 60.0), 600.0, &what);
            assert_at_least(outcome.passed(5.0, 60.0), 0.9 * 0.064, &what);
        }
    }
}

/// Padding that nobody asked for, and nothing else.
#[test]
fn opening_trains_take_a_slow_line_for_less_than_a_quarter_of_a_second() {
    for round_trip in [50, 600] {
        let path = Path { wanted: vec![(0.0, 0.0)], ..Path::new(0.064, round_trip) };
        // The largest packet is looked for later.
        for outcome in find(&path, 1) {
            assert_at_most(outcome.passed.iter().sum::<f64>() * 0.1 / 0.064, 0.25, "seconds of the line");
            let longest = outcome.queue.iter().copied().fold(0.0, f64::max);
            assert_at_most(longest, 200.0, "ms of queue");
        }
    }
}

/// A step by a factor of ten, down and up, with all that a channel does besides.
#[test]
fn steps_by_a_factor_of_ten_are_followed_within_five_seconds() {
    let rates = vec![(0.0, 50.0), (20.0, 5.0), (40.0, 50.0), (60.0, 5.0)];
    for (loss, jitter, queue) in
        [(0.0, 0, 600), (0.01, 0, 200), (0.05, 0, 600), (0.01, 10, 600), (0.0, 0, 2000)]
    {
        let path = Path {
            rates: rates.clone(),
            losses: vec![(0.0, loss)],
            jitter: Duration::from_millis(jitter),
            queue: Duration::from_millis(queue),
            ..Path::new(50.0, 600)
        };
        for seed in 1..=3 {
            let outcome = World::new(Aim::Find, path.clone(), seed).run(80);
            for (from, to, megabits) in
                [(5.0, 20.0, 50.0), (25.0, 40.0, 5.0), (45.0, 60.0, 50.0), (65.0, 80.0, 5.0)]
            {
                let what = format!("loss {loss}, jitter {jitter}, queue {queue}, seed {seed}, from {from}");
                assert_at_least(outcome.passed(from, to), 0.95 * megabits, &what);
                let seconds = (from as u32..to as u32 - 1).map(f64::from);
                let least = seconds.map(|at| outcome.passed(at, at + 2.0)).fold(f64::INFINITY, f64::min);
                assert_at_least(least, 0.7 * megabits, &what);
            }
        }
    }
}

/// What the queue drops must be repaired at a tenth of the rate, and short packets are dropped with the long ones, stamps among them.
#[test]
fn a_step_to_a_tenth_is_noticed_although_the_queue_drops_most_of_what_tells_of_it() {
    // What is too much for 1.2 s: a round trip and a half, two reports and what a full queue holds them up.
    let too_much = 1.2 * 45e6 / 12_000.0;
    for (queue, most) in [(25, 2.0 * too_much), (200, too_much), (600, too_much)] {
        for seed in 1..=10 {
            let rates = vec![(0.0, 50.0), (20.0 + 0.037 * seed as f64, 5.0)];
            let path = Path { rates, queue: Duration::from_millis(queue), ..Path::new(50.0, 600) };
            let outcome = World::new(Aim::Find, path, seed).run(40);
            assert_at_most(
                outcome.dropped as f64,
                most,
                &format!("{queue} ms, seed {seed}: packets dropped"),
            );
        }
    }
}

#[test]
fn what_the_channel_loses_does_not_slow_it_down() {
    for (loss, least) in [(0.01, 0.99), (0.03, 0.97), (0.05, 0.96), (0.1, 0.96), (0.3, 0.94), (0.5, 0.9)] {
        for outcome in find(&Path { losses: vec![(0.0, loss)], ..Path::new(50.0, 600) }, 40) {
            assert_at_least(outcome.passed(10.0, 40.0), least * 50.0, &format!("loss {loss}"));
            assert_at_most(outcome.median_queue(10.0, 40.0), 60.0, &format!("loss {loss}"));
        }
    }
}

#[test]
fn a_fade_costs_a_few_round_trips() {
    let losses = vec![(0.0, 0.0), (20.0, 0.2), (40.0, 0.0)];
    for outcome in find(&Path { losses, ..Path::new(20.0, 600) }, 60) {
        assert_at_least(outcome.passed(20.0, 25.0), 14.0, "as it begins");
        assert_at_least(outcome.passed(25.0, 40.0), 19.0, "while it lasts");
        assert_at_least(outcome.passed(40.0, 60.0), 19.5, "after it");
    }
}

#[test]
fn blockages_are_no_congestion() {
    for every in [2, 4] {
        let blocked = Some((Duration::from_secs(1), Duration::from_secs(every)));
        for outcome in find(&Path { blocked, ..Path::new(20.0, 600) }, 60) {
            assert_at_least(outcome.passed(5.0, 60.0), 19.0, &format!("every {every} s"));
        }
    }
}

#[test]
fn another_rate_is_found_within_three_seconds() {
    let rates = vec![(0.0, 20.0), (20.0, 10.0), (40.0, 40.0)];
    for outcome in find(&Path { rates, losses: vec![(0.0, 0.01)], ..Path::new(20.0, 600) }, 60) {
        for (from, to, megabits) in [(3.0, 20.0, 20.0), (23.0, 40.0, 10.0), (43.0, 60.0, 40.0)] {
            assert_at_least(outcome.passed(from, from + 1.0), 0.9 * megabits, &format!("at {from}"));
            assert_at_least(outcome.passed(from, to), 0.97 * megabits, &format!("from {from}"));
            assert_at_most(outcome.median_queue(from, to), 60.0, &format!("from {from}"));
        }
    }
}

#[test]
fn beside_other_flows_nobody_starves() {
    let least = 20.0 / 3.0;
    for (rival, round_trip) in [(Other::Bbr, 600), (Other::Reno, 100), (Other::Constant(8.0), 100)] {
        for outcome in find(&Path { other: Some((rival, 20.0, 100.0)), ..Path::new(20.0, round_trip) }, 120) {
            let what = format!("{rival:?}");
            assert_at_least(outcome.passed(30.0, 100.0), least, &what);
            if rival == Other::Bbr {
                assert_at_least(Outcome::mean(&outcome.other, 30.0, 100.0), least, &what);
            }
            assert_at_least(outcome.passed(110.0, 120.0), 19.5, &format!("after {what}"));
        }
    }
    let path = Path {
        other: Some((Other::Bbr, 0.0, 100.0)),
        wanted: vec![(0.0, 0.0), (20.0, f64::INFINITY)],
        ..Path::new(20.0, 600)
    };
    for outcome in find(&path, 120) {
        assert_at_least(outcome.passed(40.0, 100.0), least, "after BBR");
        assert_at_least(Outcome::mean(&outcome.other, 40.0, 100.0), least, "BBR, which was first");
    }
}

#[test]
fn a_longer_path_is_taken_for_what_it_is_after_a_while() {
    let longer = Some((20.0, Duration::from_millis(300)));
    for outcome in find(&Path { longer, ..Path::new(20.0, 100) }, 100) {
        assert_at_least(outcome.passed(20.0, 40.0), 8.0, "at first");
        assert_at_least(outcome.passed(50.0, 100.0), 18.5, "later");
    }
}

#[test]
fn jitter_is_no_queue() {
    for (jitter, round_trip, loss) in [(40, 100, 0.0), (20, 600, 0.05)] {
        let path = Path {
            jitter: Duration::from_millis(jitter),
            losses: vec![(0.0, loss)],
            ..Path::new(20.0, round_trip)
        };
        for outcome in find(&path, 40) {
            assert_at_least(outcome.passed(10.0, 40.0), 18.5, &format!("{jitter} ms"));
        }
    }
}

/// In order, so that what leaves in close order comes as late as the latest: all but what leaves alone is delayed by nearly as much.
#[test]
fn jitter_of_half_a_round_trip_is_no_queue() {
    let path = Path { jitter: Duration::from_millis(50), ..Path::new(20.0, 100) };
    for seed in 1..=8 {
        let outcome = World::new(Aim::Find, path.clone(), seed).run(60);
        assert_at_least(outcome.passed(5.0, 60.0), 18.0, &format!("seed {seed}"));
        assert_at_most(outcome.median_queue(5.0, 60.0), 60.0, &format!("seed {seed}"));
    }
}

#[test]
fn where_there_is_no_bottleneck_nothing_is_paced_until_one_shows() {
    for round_trip in [1, 30] {
        let rates = vec![(0.0, 20_000.0), (6.0, 300.0)];
        for outcome in find(&Path { rates, ..Path::new(20_000.0, round_trip) }, 14) {
            let what = format!("{round_trip} ms");
            assert!(outcome.unlimited[30..60].iter().all(|is_unlimited| *is_unlimited), "{what}");
            assert_at_least(outcome.passed(3.0, 6.0), 950.0, &what);
            assert!(outcome.unlimited[75..].iter().all(|is_unlimited| !is_unlimited), "{what}");
            assert_at_least(outcome.passed(8.0, 14.0), 270.0, &what);
            assert_at_most(outcome.median_queue(8.0, 14.0), 30.0, &what);
        }
    }
}

/// Both without a loss that would tell.
#[test]
fn a_queue_and_silence_end_what_is_not_paced() {
    let rates = vec![(0.0, 20_000.0), (4.0, 300.0)];
    for outcome in find(&Path { rates, queue: Duration::from_secs(3), ..Path::new(20_000.0, 2) }, 20) {
        // Reports wait in that queue too, and several must tell.
        assert!(outcome.unlimited[39] && !outcome.unlimited[60..].contains(&true));
        assert_at_most(outcome.median_queue(17.0, 20.0), 60.0, "a long queue");
    }
    let losses = vec![(0.0, 0.0), (4.0, 1.0)];
    for outcome in find(&Path { losses, ..Path::new(20_000.0, 2) }, 16) {
        assert!(outcome.unlimited[39] && !outcome.unlimited[145..].contains(&true), "nobody answers");
    }
}

#[test]
fn where_trains_find_a_bottleneck_all_is_paced() {
    for (megabits, round_trip, jitter) in [(300.0, 30, 0), (900.0, 2, 0), (250.0, 100, 10)] {
        let path = Path { jitter: Duration::from_millis(jitter), ..Path::new(megabits, round_trip) };
        for outcome in find(&path, 12) {
            assert!(!outcome.unlimited.contains(&true), "{megabits} Mbit/s, {round_trip} ms");
        }
    }
}

#[test]
fn what_drops_instead_of_queueing_is_found_too() {
    for outcome in find(&Path { queue: Duration::from_millis(8), ..Path::new(20.0, 600) }, 60) {
        assert_at_least(outcome.passed(5.0, 60.0), 18.0, "a short queue");
        assert_at_most(outcome.drop_share(), 0.12, "a short queue");
    }
    for outcome in find(&Path { policer: Some((200_000.0, 10.0)), ..Path::new(100.0, 100) }, 60) {
        assert_at_least(outcome.passed(5.0, 60.0), 9.5, "a policer");
    }
}

/// RFC 8084: while nothing arrives, nearly nothing is sent; the rest comes back by itself.
#[test]
fn the_circuit_breaker_leaves_a_trickle() {
    let losses = vec![(0.0, 0.0), (20.0, 0.99), (50.0, 0.0)];
    for outcome in find(&Path { losses, ..Path::new(20.0, 600) }, 80) {
        assert_at_most(outcome.passed(40.0, 50.0), 1.5, "while nothing arrives");
        assert_at_least(outcome.passed(60.0, 80.0), 10.0, "afterwards");
    }
}

#[test]
fn who_sends_little_learns_nothing_wrong() {
    let wanted = vec![(0.0, 2.0), (20.0, f64::INFINITY)];
    for outcome in find(&Path { wanted, ..Path::new(20.0, 600) }, 40) {
        assert_at_least(outcome.passed(2.0, 20.0), 1.95, "what there is");
        assert_at_least(outcome.passed(20.0, 40.0), 19.5, "all of a sudden");
    }
}

#[test]
fn a_configured_rate_that_the_path_carries_is_kept() {
    for (losses, jitter) in [(0.0, 0), (0.2, 0), (0.0, 40)] {
        let path = Path {
            losses: vec![(0.0, losses)],
            jitter: Duration::from_millis(jitter),
            ..Path::new(50.0, 600)
        };
        for outcome in run(known(50), &path, 30) {
            let what = format!("loss {losses}, jitter {jitter}");
            assert_at_least(outcome.passed(5.0, 30.0), 48.0, &what);
            assert!(outcome.findings.is_empty(), "{what}: {:?}", outcome.findings);
        }
    }
}

/// What is lost while next to nothing is sent says nothing about the rate.
#[test]
fn a_configured_rate_outlasts_losses_of_a_few_datagrams() {
    for losses in [0.3, 0.6, 0.9] {
        let path = Path {
            losses: vec![(0.0, losses), (3.0, 0.0)],
            wanted: vec![(0.0, 0.1), (6.0, f64::INFINITY)],
            ..Path::new(50.0, 600)
        };
        for outcome in run(known(50), &path, 20) {
            assert_at_least(outcome.passed(6.0, 20.0), 48.0, &format!("loss {losses}"));
            assert!(outcome.findings.is_empty(), "{losses}: {:?}", outcome.findings);
        }
    }
}

#[test]
fn a_configured_rate_that_is_wrong_is_told() {
    for outcome in run(known(100), &Path::new(50.0, 600), 30) {
        assert_at_least(outcome.passed(5.0, 30.0), 49.0, "too fast");
        let [(_, Finding::TooFast { measured, queueing, lost })] = outcome.findings[..] else {
            panic!("{:?}", outcome.findings)
        };
        assert!(measured.as_bps().abs_diff(50_000_000) < 2_500_000, "{measured}");
        // What leaves for a round trip fills the queue, and half of what leaves until it drains does not fit.
        assert!((300..=620).contains(&queueing.as_millis()) && lost <= 50, "{queueing:?}, {lost} %");
    }
    for outcome in run(known(30), &Path::new(50.0, 600), 30) {
        let [(_, Finding::TooSlow { measured })] = outcome.findings[..] else {
            panic!("{:?}", outcome.findings)
        };
        assert!(measured.as_bps().abs_diff(50_000_000) < 2_500_000, "{measured}");
        assert_at_least(outcome.passed(2.0, 30.0), 29.5, "and kept");
    }
}

/// What is lost beyond the channel's losses, as long as more is sent than passes.
#[test]
fn how_much_a_rate_that_is_too_high_loses_is_told() {
    for channel in [0.0, 0.1] {
        let path =
            Path { queue: Duration::from_millis(60), losses: vec![(0.0, channel)], ..Path::new(50.0, 600) };
        for outcome in run(known(100), &path, 30) {
            let [(_, Finding::TooFast { queueing, lost, .. })] = outcome.findings[..] else {
                panic!("{:?}", outcome.findings)
            };
            // Half of what leaves for a round trip, but for what the queue takes; at the start the channel's part is not known yet.
            assert!((5..=60).contains(&lost), "{lost} % beside {channel}");
            assert!((30..=80).contains(&queueing.as_millis()), "{queueing:?}");
        }
    }
}

#[test]
fn what_a_fade_loses_is_not_told_of_a_rate_that_is_too_high() {
    let path = Path {
        rates: vec![(0.0, 50.0), (12.0, 30.0)],
        losses: vec![(0.0, 0.0), (5.0, 0.3)],
        queue: Duration::from_secs(2),
        ..Path::new(50.0, 600)
    };
    for outcome in run(known(50), &path, 40) {
        let [(_, Finding::TooFast { lost, .. })] = outcome.findings[..] else {
            panic!("{:?}", outcome.findings)
        };
        assert!(lost < 15, "{lost} %");
    }
}

#[test]
fn what_was_found_is_told_once() {
    for outcome in find(&Path::new(20.0, 600), 60) {
        let [(at, Finding::Found { measured })] = outcome.findings[..] else {
            panic!("{:?}", outcome.findings)
        };
        assert!(measured.as_bps().abs_diff(20_000_000) < 1_000_000 && at < 30.0, "{measured} at {at}");
    }
}

#[test]
fn a_rate_without_bounds_stays_so() {
    for outcome in run(Aim::Unlimited, &Path { wanted: vec![(0.0, 10.0)], ..Path::new(20.0, 600) }, 20) {
        assert_at_least(outcome.passed(1.0, 20.0), 9.9, "as it comes");
    }
}
