//! Somebody on the path, who can copy, drop and hold back datagrams, and tells control datagrams by their length. Mbit/s, seconds.

use base::Duration;

use super::path::{Attack, Outcome, Path, World};
use crate::survey::rate::Aim;

/// 20 Mbit/s at 200 ms with somebody on the path from 10 s to 30 s.
fn attacked(attack: Attack) -> [Outcome; 4] {
    let path = Path { attacker: Some((attack, 10.0, 30.0)), ..Path::new(20.0, 200) };
    [1, 2, 3, 4].map(|seed| World::new(Aim::Find, path.clone(), seed).run(60))
}

/// The least of any two seconds in a row.
fn least(outcome: &Outcome, from: u32, to: u32) -> f64 {
    let passed = (from..to - 1).map(|second| outcome.passed(second.into(), f64::from(second) + 2.0));
    passed.fold(f64::INFINITY, f64::min)
}

/// A plain minimum of delays would hold what no other confirms for a minute or two.
#[test]
fn early_copies_of_some_datagrams_change_nothing() {
    for part in [0.02, 0.1, 0.2] {
        for outcome in attacked(Attack::Copies(part, Duration::from_millis(93))) {
            assert!(outcome.passed(10.0, 30.0) > 19.0, "{part}: {}", outcome.passed(10.0, 30.0));
            assert!(least(&outcome, 30, 60) > 18.0, "{part}: {}", least(&outcome, 30, 60));
        }
    }
}

/// While all come early, the path is shorter. When they no longer do, it has become longer, which takes a while to tell from a queue.
#[test]
fn early_copies_of_all_datagrams_cost_a_third_for_ten_seconds() {
    for outcome in attacked(Attack::Copies(1.0, Duration::from_millis(93))) {
        assert!(least(&outcome, 10, 30) > 19.5, "{}", least(&outcome, 10, 30));
        assert!(least(&outcome, 30, 40) > 12.0, "{}", least(&outcome, 30, 40));
        assert!(least(&outcome, 40, 60) > 18.0, "{}", least(&outcome, 40, 60));
    }
}

#[test]
fn control_datagrams_that_are_held_back_tell_nothing() {
    for late in [100, 300, 1000, 5000] {
        for outcome in attacked(Attack::DelaysControl(Duration::from_millis(late))) {
            assert!(least(&outcome, 10, 60) > 17.0, "{late} ms: {}", least(&outcome, 10, 60));
            assert!(outcome.passed(32.0, 60.0) > 19.5, "{late} ms: {}", outcome.passed(32.0, 60.0));
        }
    }
}

/// What frames acknowledge keeps the circuit breaker closed.
#[test]
fn control_datagrams_that_are_dropped_cost_nothing_while_frames_pass() {
    for outcome in attacked(Attack::DropsControl) {
        assert!(least(&outcome, 10, 60) > 17.0, "{}", least(&outcome, 10, 60));
        assert!(outcome.passed(32.0, 60.0) > 19.5, "{}", outcome.passed(32.0, 60.0));
    }
}
