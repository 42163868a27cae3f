//! How often chance alone makes a false statement hold.
//!
//! Each test runs a study so many times over with other seeds, each time of something whose truth is known. A statement that is false should
//! hold in 5 % of studies at most, and in a fortieth where it can be wrong on one side only.

use base::Rng;

use super::*;

/// Samples by name.
struct Drawn<'a>(&'a [(&'a str, Vec<f64>)]);

impl Environment for Drawn<'_> {
    fn name(&self, name: &str) -> Option<Value> {
        if name == "list" {
            return Some(Value::List(self.0.iter().map(|(name, values)| sample(name, values)).collect()));
        }
        self.0.iter().find(|(known, _)| *known == name).map(|(_, values)| sample(name, values))
    }

    fn call(&self, _: &str, _: &[Value], _: &[(String, Value)]) -> Option<Value> {
        None
    }
}

/// Of datagrams one of twenty is a step, and of what is so or not one.
fn sample(name: &str, values: &[f64]) -> Value {
    let step = match name {
        "lost" => 0.05,
        "so" => 1.0,
        _ => 0.0,
    };
    Sample::of(values.iter().copied().map(Some)).with_step(step).into()
}

/// Seeds that a study may use.
const SEEDS: [usize; 9] = [2, 3, 4, 5, 8, 10, 16, 20, 40];

/// At most 4 of 150 may come out wrongly on one side; of as many as here, chance adds two standard errors.
const STUDIES: usize = 600;
const WRONG: usize = 16 + 8;

/// Of how many studies with so many seeds a check comes out so.
fn count(
    check: &str,
    verdict: Verdict,
    studies: usize,
    mut draw: impl FnMut() -> Vec<(&'static str, Vec<f64>)>,
) -> usize {
    let check = Check::parse(check).unwrap();
    (0..studies).filter(|_| check.decide(&Drawn(&draw())).unwrap().verdict == verdict).count()
}

/// Twenty datagrams, of which one in fifty is lost: most seeds lose none.
#[test]
fn seeds_that_agree_by_chance_do_not_hold() {
    let mut rng = Rng::named(1, "lost");
    for seeds in SEEDS {
        for check in ["lost == 0", "lost < 0.02", "lost > 0.02", "lost <= 0.0199", "median(lost) > 0"] {
            let held = count(check, Verdict::Holds, STUDIES, || {
                let mut one = || (0..20).filter(|_| rng.chance(0.02)).count() as f64 / 20.0;
                vec![("lost", (0..seeds).map(|_| one()).collect())]
            });
            assert!(held <= WRONG, "{check} with {seeds} seeds: held {held} times");
        }
    }
}

/// What is so or not with each seed, as often as not or seldom.
#[test]
fn what_is_so_with_few_seeds_may_not_be_so_with_more() {
    let mut rng = Rng::named(2, "so");
    for seeds in SEEDS {
        for (share, check) in [(0.5, "so > 0.5"), (0.5, "so < 0.5"), (0.1, "so < 0.1"), (0.9, "so > 0.9")] {
            let held = count(check, Verdict::Holds, STUDIES, || {
                vec![("so", (0..seeds).map(|_| f64::from(u8::from(rng.chance(share)))).collect())]
            });
            assert!(held <= WRONG, "{check} with {seeds} seeds: held {held} times");
        }
    }
}

/// Times between events have a mean that few large ones make. Student's interval of ten misses it in 98 of 1000 studies.
#[test]
fn skewed_values_are_nearly_covered() {
    let mut rng = Rng::named(3, "times");
    let missed = ["time < 1", "time > 1"].map(|check| {
        count(check, Verdict::Holds, 1000, || {
            vec![("time", (0..10).map(|_| -libm::log(1.0 - rng.unit())).collect())]
        })
    });
    assert!(missed[0] + missed[1] <= 80, "{missed:?}");
}

/// A normal value with mean 0 and deviation 1.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

const TEN: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Ten equal links: the one that came out best is no better than all of them.
#[test]
fn the_greatest_of_equals_is_not_greater() {
    let mut rng = Rng::named(4, "links");
    for (check, most) in [
        ("max(list) > 10", 5),
        ("min(list) < 10", 5),
        ("sorted(list)[9] > 10", 5),
        ("max(list) - min(list) > 0", 5),
        ("max(list) / mean(list) > 1", 5),
        ("2 * max(list) - 20 > 0", 5),
        ("max(a, 9.9) > 10", 5),
        ("max(list) < 10", 0),
    ] {
        let held = count(check, Verdict::Holds, 100, || {
            TEN.iter().map(|name| (*name, (0..10).map(|_| 10.0 + normal(&mut rng)).collect())).collect()
        });
        assert!(held <= most, "{check}: held {held} times");
    }
}

/// What is plainly the greatest is found to be, and what nothing exceeds is not exceeded.
#[test]
fn a_greatest_that_stands_out_is_told() {
    let mut rng = Rng::named(5, "links");
    for check in [
        "max(list) > 18.5",
        "max(list) < 21.5",
        "max(list) - min(list) > 7",
        "max(max(a, b), min(j, 40)) > 18.5",
        "sorted(list)[8] < 13.5",
        "max(list) / 20 > 0.9 and min(list) > 7.5",
    ] {
        let held = count(check, Verdict::Holds, 100, || {
            let mean = |name: &str| if name == "j" { 20.0 } else { 10.0 };
            TEN.iter().map(|name| (*name, (0..10).map(|_| mean(name) + normal(&mut rng)).collect())).collect()
        });
        assert!(held >= 95, "{check}: held {held} times");
    }
}

/// Nested choices multiply.
#[test]
fn more_choices_than_can_be_followed_are_refused() {
    let links: Vec<_> = TEN.iter().map(|name| (*name, (0..10).map(f64::from).collect())).collect();
    let decision =
        Check::parse("max(list) * max(list) * max(list) * min(list) > 0").unwrap().decide(&Drawn(&links));
    assert!(decision.unwrap().reason.unwrap().contains("10000 ways to choose what is the greatest"));
}

/// Three looks, with twice as many seeds each time, until it is decided whether a mean of zero is above or below zero.
#[test]
fn looking_again_does_not_make_chance_count_for_more() {
    let mut rng = Rng::named(6, "looks");
    let check = Check::parse("x > 0").unwrap();
    let decided = (0..400).filter(|_| {
        let values: Vec<f64> = (0..20).map(|_| normal(&mut rng)).collect();
        let look = |seeds: usize| {
            let drawn = [("x", values[..seeds].to_vec())];
            check.decide_at(&Drawn(&drawn), 1.0 - 0.05 / 3.0).unwrap().verdict
        };
        [5, 10, 20].into_iter().any(|seeds| look(seeds) != Verdict::Undecided)
    });
    // 5 % of 400, and two standard errors.
    let decided = decided.count();
    assert!(decided <= 29, "{decided}");
}
