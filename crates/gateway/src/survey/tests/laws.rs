use base::{Duration, Rate};

use super::path::{Other, Outcome, Path, World};
use crate::survey::seeker::Aim;

fn find(path: Path, seconds: u64) -> Outcome {
    World::new(Aim::Find, path, 1).run(seconds)
}

fn show(name: &str, path: Path, spans: &[(f64, f64)]) {
    show_aim(name, Aim::Find, path, spans);
}

fn show_aim(name: &str, aim: Aim, path: Path, spans: &[(f64, f64)]) {
    let end = spans.iter().map(|span| span.1).fold(0.0, f64::max) as u64;
    let outcome = World::new(aim, path, 1).run(end + 1);
    eprint!(
        "{name:12} dropped {:6} exp {:2} cap {:7.2} |",
        outcome.dropped, outcome.experiments, outcome.capacity
    );
    for &(from, to) in spans {
        eprint!(
            " {from}-{to}: {:.2}/{:.2}/{:.0}",
            outcome.passed(from, to),
            Outcome::mean(&outcome.other, from, to),
            outcome.median_queue(from, to)
        );
    }
    if std::env::var("SHOW").is_ok_and(|shown| shown == name) {
        for second in 0..end {
            let (from, to) = (second as f64, second as f64 + 1.0);
            eprint!(
                "\n{second}: {:.2}/{:.2}/{:.0}  ",
                outcome.passed(from, to),
                Outcome::mean(&outcome.other, from, to),
                outcome.median_queue(from, to)
            );
            eprint!("cap  {}", outcome.capacities[second as usize]);
        }
    }
    eprintln!(" {:?}", outcome.findings.len());
}

#[test]
fn survey() {
    let early = [(0.0, 1.0), (1.0, 2.0), (2.0, 4.0), (4.0, 10.0), (10.0, 30.0)];
    let thirds = [(0.0, 5.0), (5.0, 20.0), (20.0, 25.0), (25.0, 40.0), (40.0, 45.0), (45.0, 60.0)];
    show("50/600", Path::new(50.0, 600), &early);
    for loss in [0.01, 0.03, 0.05, 0.1, 0.3, 0.5] {
        show(&format!("loss {loss}"), Path { losses: vec![(0.0, loss)], ..Path::new(50.0, 600) }, &early);
    }
    show("20/20", Path::new(20.0, 20), &early);
    show("20/50", Path::new(20.0, 50), &early);
    show("1/50", Path::new(1.0, 50), &early);
    show("10/100", Path::new(10.0, 100), &early);
    show("1/600", Path::new(1.0, 600), &early);
    show("0.06/600", Path::new(0.06, 600), &thirds);
    show("1000/30", Path::new(1000.0, 30), &[(0.0, 1.0), (1.0, 2.0), (2.0, 4.0), (4.0, 8.0)]);
    let steps = vec![(0.0, 20.0), (20.0, 10.0), (40.0, 40.0)];
    show(
        "steps",
        Path { rates: steps, losses: vec![(0.0, 0.01)], ..Path::new(20.0, 600) },
        &[(3.0, 20.0), (23.0, 40.0), (43.0, 60.0)],
    );
    let long = [(0.0, 20.0), (20.0, 40.0), (40.0, 70.0), (70.0, 100.0), (100.0, 105.0), (105.0, 120.0)];
    show("bbr", Path { other: Some((Other::Bbr, 20.0, 100.0)), ..Path::new(20.0, 600) }, &long);
    show(
        "bbr first",
        Path {
            other: Some((Other::Bbr, 0.0, 100.0)),
            wanted: vec![(0.0, 0.0), (20.0, f64::INFINITY)],
            ..Path::new(20.0, 600)
        },
        &long,
    );
    show("reno", Path { other: Some((Other::Reno, 20.0, 100.0)), ..Path::new(20.0, 100) }, &long);
    show(
        "const 8",
        Path { other: Some((Other::Constant(8.0), 20.0, 40.0)), ..Path::new(20.0, 100) },
        &thirds,
    );
    show("longer", Path { longer: Some((20.0, Duration::from_millis(300))), ..Path::new(20.0, 100) }, &long);
    show("jitter", Path { jitter: Duration::from_millis(40), ..Path::new(20.0, 100) }, &early);
    show(
        "jitter lossy",
        Path { jitter: Duration::from_millis(20), losses: vec![(0.0, 0.05)], ..Path::new(20.0, 600) },
        &early,
    );
    show("short queue", Path { queue: Duration::from_millis(8), ..Path::new(20.0, 600) }, &thirds);
    show("policer", Path { policer: Some((200_000.0, 10.0)), ..Path::new(100.0, 100) }, &thirds);
    show(
        "blocked",
        Path { blocked: Some((Duration::from_secs(1), Duration::from_secs(4))), ..Path::new(20.0, 600) },
        &thirds,
    );
    show(
        "blocked half",
        Path { blocked: Some((Duration::from_secs(1), Duration::from_secs(2))), ..Path::new(20.0, 600) },
        &thirds,
    );
    show(
        "fade",
        Path { losses: vec![(0.0, 0.0), (20.0, 0.2), (40.0, 0.0)], ..Path::new(20.0, 600) },
        &thirds,
    );
    show(
        "silence",
        Path { losses: vec![(0.0, 0.0), (20.0, 0.99), (40.0, 0.0)], ..Path::new(20.0, 600) },
        &thirds,
    );
    show(
        "limited",
        Path { wanted: vec![(0.0, 2.0), (20.0, f64::INFINITY)], ..Path::new(20.0, 600) },
        &thirds,
    );
    let known = |rate: u64| Aim::Known(Rate::from_bps(rate));
    show_aim("known 50", known(50_000_000), Path::new(50.0, 600), &early);
    show_aim(
        "known 50 20%",
        known(50_000_000),
        Path { losses: vec![(0.0, 0.2)], ..Path::new(50.0, 600) },
        &early,
    );
    show_aim("known 100", known(100_000_000), Path::new(50.0, 600), &early);
    show_aim(
        "known jitter",
        known(20_000_000),
        Path { jitter: Duration::from_millis(40), ..Path::new(20.0, 100) },
        &early,
    );
    let _ = find;
}
