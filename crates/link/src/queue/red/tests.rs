use base::wire::ip::{Ecn, Protocol, Repr, View};
use proptest::prelude::*;

use super::*;
use crate::marks::Marks;

/// At 8 Mbit/s a byte takes a microsecond, so a mean packet of 500 bytes takes 500.
const RATE: Rate = Rate::from_bps(8_000_000);

fn config(text: &str) -> Config {
    base::config::parse("queue.toml", text).unwrap()
}

fn red(text: &str) -> Red {
    Red::new(config(text), &Site { rate: Some(RATE), seed: 1, name: "l" }, "queue")
}

fn micros(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn packet(ecn: Ecn) -> Packet {
    let mut packet = vec![0; 500];
    Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::UDP, ecn, 480).emit(&mut packet);
    Packet::from_slice(&packet)
}

/// Why the queue dropped the packet, if it did.
fn push(red: &mut Red, now: Instant, ecn: Ecn) -> Option<Refusal> {
    let mut why = None;
    red.push(now, packet(ecn), &mut |_, reason| assert_eq!(why.replace(reason), None));
    why
}

fn pop(red: &mut Red, now: Instant) -> Option<Packet> {
    red.pop(now, &mut |packet, _| panic!("{packet:?} dropped"))
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn the_defaults_are_in_proportion() {
    let shape = |text: &str| {
        let config = config(text);
        (config.packets().get(), config.min(), config.max(), config.end())
    };
    assert_eq!(shape(""), (500, 75.0, 225.0, 450.0));
    assert_eq!(shape("packets = 100"), (100, 15.0, 45.0, 90.0));
    assert_eq!(shape("min = 5"), (500, 5.0, 15.0, 30.0));
    assert_eq!(shape("max = 15"), (500, 5.0, 15.0, 30.0));
    assert_eq!(shape("min = 7.5\nmax = 20\ngentle = false"), (500, 7.5, 20.0, 20.0));
    let config = Config::default();
    assert_eq!((config.ecn(), config.wait(), config.mean_packet()), (true, false, Size(500)));
    assert_close(config.weight(), 0.002);
    assert_close(config.base_probability(225.0), 0.1);
    assert!(super::super::Config::Red(config).needs_rate());
}

#[test]
fn what_is_written_is_what_is_read() {
    for text in ["", "packets = 50\nmax = 30\nwait = true\necn = false", "weight = 1\nmax-p = 1.0\nmin = 0.5"]
    {
        let config = config(text);
        let written = toml::to_string(&config).unwrap();
        assert_eq!(base::config::parse::<Config>("again.toml", &written).unwrap(), config, "{written}");
    }
}

#[test]
fn wrong_values_are_named_with_what_is_allowed() {
    for (text, complaint) in [
        ("min = 0", "min = 0; allowed are numbers above 0"),
        ("min = nan", "min = NaN; allowed are numbers above 0"),
        ("min = 20\nmax = 20", "max = 20; allowed are numbers above 20 and up to 500, the limit in packets"),
        ("packets = 40\nmax = 41", "max = 41; allowed are numbers above 13.6"),
        ("packets = 40\nmin = 20", "max = 60; allowed are numbers above 20 and up to 40"),
        ("max-p = 0", "max-p = 0; allowed are numbers above 0 and up to 1"),
        ("max-p = 1.5", "1.5 is not a probability; allowed are 0 to 1"),
        ("weight = 0.0", "weight = 0; allowed are numbers above 0 and up to 1"),
        ("mean-packet = \"0 B\"", "mean-packet = 0; allowed are numbers above 0"),
        ("packets = 0", "packets"),
        ("limit = 3", "limit"),
    ] {
        let error = base::config::parse::<Config>("queue.toml", text).unwrap_err().to_string();
        assert!(error.contains(complaint), "{text}: {error}");
    }
}

/// Each arrival moves it by a quarter of its distance to what it finds.
#[test]
fn the_average_follows_what_arrivals_find() {
    let mut red = red("weight = 0.25\nmin = 100\nmax = 200");
    let mut averages = Vec::new();
    for _ in 0..4 {
        assert_eq!(push(&mut red, Instant::ZERO, Ecn::NotEct), None);
        averages.push(red.average().unwrap());
    }
    // Found: 0, 1, 2, 3.
    assert_eq!(averages, [0.0, 0.25, 0.6875, 1.265_625]);
    // Departures change nothing.
    assert!(pop(&mut red, micros(10)).is_some());
    assert_close(red.average().unwrap(), 1.265_625);
    assert_eq!(push(&mut red, micros(20), Ecn::NotEct), None);
    assert_close(red.average().unwrap(), 0.75 * 1.265_625 + 0.25 * 3.0);
}

/// A queue with `waiting` packets and this average.
fn loaded(text: &str, waiting: usize, average: f64) -> Red {
    let mut red = red(text);
    (0..waiting).for_each(|_| red.waiting.push_back(packet(Ecn::NotEct)));
    red.buffers = red.waiting.iter().map(Packet::capacity).sum();
    (red.bytes, red.average, red.idle_since, red.was_above) = (500 * waiting as u64, average, None, true);
    red
}

#[test]
fn while_the_line_is_idle_the_average_decays() {
    let decayed = |idle_micros: u64| {
        let mut red = loaded("weight = 0.25", 1, 8.0);
        assert!(pop(&mut red, micros(1000)).is_some());
        // The last packet takes 500 us to leave; only then is the line idle.
        push(&mut red, micros(1500 + idle_micros), Ecn::NotEct);
        red.average().unwrap()
    };
    assert_close(decayed(0), 8.0 * 0.75);
    assert_close(decayed(499), 8.0 * 0.75);
    assert_close(decayed(500), 8.0 * 0.75 * 0.75);
    assert_close(decayed(5_250), 8.0 * 0.75_f64.powi(11));
    let mut red = loaded("weight = 0.25", 1, 8.0);
    assert!(pop(&mut red, micros(1000)).is_some());
    push(&mut red, micros(1100), Ecn::NotEct);
    assert_close(red.average().unwrap(), 6.0);
    // It was never empty since.
    push(&mut red, micros(90_000), Ecn::NotEct);
    assert_close(red.average().unwrap(), 0.75 * 6.0 + 0.25);
}

#[test]
fn who_passes_by_counts_and_makes_the_line_busy() {
    let mut red = loaded("weight = 0.25", 1, 8.0);
    assert!(pop(&mut red, micros(0)).is_some());
    // Idle for 1000 us since 500: two packets, and the arrival itself.
    red.pass_by(micros(1500), 500);
    assert_close(red.average().unwrap(), 8.0 * 0.75_f64.powi(3));
    // Idle from 2000 on.
    push(&mut red, micros(2499), Ecn::NotEct);
    assert_close(red.average().unwrap(), 8.0 * 0.75_f64.powi(4));
    assert_eq!(red.len(), 1);
}

#[test]
fn without_a_rate_nothing_decays() {
    let site = Site { rate: None, seed: 1, name: "l" };
    let mut red = Red::new(config("weight = 0.25"), &site, "queue");
    red.average = 8.0;
    push(&mut red, micros(1_000_000), Ecn::NotEct);
    assert_close(red.average().unwrap(), 6.0);
}

/// Of `arrivals` that find the queue as it is set up, with the average held there, the numbers of those that were chosen.
fn chosen(text: &str, average: f64, arrivals: u64) -> Vec<u64> {
    let mut red = loaded(text, 20, average);
    let mut chosen = Vec::new();
    for number in 0..arrivals {
        red.average = average;
        if red.judge() == Verdict::Signal {
            chosen.push(number);
        }
    }
    chosen
}

/// Floyd and Jacobson, section 7: the number of packets from one mark to the next is uniform. Their figure 2 and ns-2 count the packet
/// itself too, so it is from 1 to 1/p - 1; with `wait`, from 1/p to 2/p - 1.
#[test]
fn marks_are_spread_evenly() {
    // Halfway between the thresholds the probability is a tenth.
    let shape = "min = 10\nmax = 30\nmax-p = 0.2";
    assert_close(config(shape).base_probability(20.0), 0.1);
    for (wait, allowed) in [("", 1..=9), ("\nwait = true", 10..=19)] {
        let chosen = chosen(&format!("{shape}{wait}"), 20.0, 200_000);
        let mut counts = [0_u32; 22];
        chosen.windows(2).for_each(|pair| counts[(pair[1] - pair[0]).min(21) as usize] += 1);
        let total: u32 = counts.iter().sum();
        for (gap, &count) in counts.iter().enumerate() {
            let share = f64::from(count) / f64::from(total);
            if allowed.contains(&gap) {
                let even = 1.0 / allowed.clone().count() as f64;
                assert!((share - even).abs() < 0.005, "wait: {wait}, {gap} apart: {share}");
            } else {
                assert_eq!(count, 0, "wait: {wait}, {gap} apart");
            }
        }
    }
}

/// The mean distance of two marks is half of 1/p.
#[test]
fn the_probability_grows_with_the_average_and_gently_beyond_max() {
    let shape = "min = 10\nmax = 30\nmax-p = 0.1";
    let per_mark = |average: f64| 200_000.0 / chosen(shape, average, 200_000).len() as f64;
    for (average, probability) in
        [(12.0, 0.01), (20.0, 0.05), (29.9, 0.0995), (30.0, 0.1), (45.0, 0.55), (59.0, 0.97)]
    {
        assert_close(config(shape).base_probability(average), probability);
        // Above a half, none is spared.
        let expected = (0.5 / probability).max(1.0);
        let found = per_mark(average);
        assert!((found / expected - 1.0).abs() < 0.05, "{average}: {found}, not {expected}");
    }
    assert!(chosen(shape, 9.99, 1000).is_empty());
    // Beyond the gentle region, or max where it is not gentle, nothing is left to chance.
    let judged = |text, average| loaded(text, 20, average).judge();
    let harsh = "min = 10\nmax = 30\ngentle = false";
    assert_ne!(judged(shape, 59.9), Verdict::Refuse);
    assert_eq!(judged(shape, 60.0), Verdict::Refuse);
    assert_ne!(judged(harsh, 29.9), Verdict::Refuse);
    assert_eq!(judged(harsh, 30.0), Verdict::Refuse);
}

/// As in ns-2, so that a sender's only packet is never dropped early.
#[test]
fn who_finds_hardly_anybody_is_let_in() {
    for (waiting, expected) in [(0, Verdict::Take), (1, Verdict::Take), (2, Verdict::Refuse)] {
        let mut red = loaded("", waiting, 1000.0);
        assert_eq!(red.judge(), expected, "{waiting} wait");
    }
}

#[test]
fn the_packet_that_crosses_the_threshold_starts_the_count() {
    let mut red = loaded("min = 1\nmax = 2\nmax-p = 1", 20, 1.999);
    red.was_above = false;
    red.count = 1000;
    // Otherwise it would be certain.
    assert_eq!((red.judge(), red.count), (Verdict::Take, 1));
    assert_eq!((red.judge(), red.count), (Verdict::Signal, 0));
}

#[test]
fn what_understands_is_marked_and_the_rest_dropped() {
    // Every packet is chosen.
    let certain = "min = 1\nmax = 2\nmax-p = 1\nweight = 0.0001";
    for (ecn, text, expected) in [
        (Ecn::Ect0, "", None),
        (Ecn::Ect1, "", None),
        (Ecn::Ce, "", None),
        (Ecn::NotEct, "", Some(Refusal::Early)),
        (Ecn::Ect0, "\necn = false", Some(Refusal::Early)),
    ] {
        let mut red = loaded(&format!("{certain}{text}"), 20, 2.0);
        assert_eq!(push(&mut red, Instant::ZERO, ecn), expected, "{ecn:?}");
        let counters = red.counters();
        let (marked, dropped) = (u64::from(expected.is_none()), u64::from(expected.is_some()));
        let expected =
            [("passed", 0), ("marked", marked), ("dropped-early", dropped), ("dropped-for-packets", 0)];
        assert_eq!(counters, expected);
        if marked > 0 {
            let last = red.waiting.back().unwrap();
            assert_eq!(Marks::of(last).ecn(), Ecn::Ce);
            assert!(View::parse(last).is_ok(), "its checksum is right");
        }
    }
    // Beyond all bounds marks do not help.
    let mut red = loaded(certain, 20, 5.0);
    assert_eq!(push(&mut red, Instant::ZERO, Ecn::Ect0), Some(Refusal::Packets));
    assert_eq!(red.counters()[3], ("dropped-for-packets", 1));
}

#[test]
fn a_full_queue_drops_whatever_the_average() {
    let mut red = red("packets = 10\nmin = 9\nmax = 10");
    let outcomes: Vec<_> = (0..11).map(|_| push(&mut red, Instant::ZERO, Ecn::Ect0)).collect();
    assert_eq!(outcomes[..10], [None; 10]);
    assert_eq!(outcomes[10], Some(Refusal::Packets));
    assert_eq!((red.len(), red.bytes()), (10, 5000));
}

#[test]
fn other_limits_hold_from_then_on_and_other_kinds_change_nothing() {
    let mut red = loaded("", 20, 5.0);
    let site = Site { rate: Some(RATE), seed: 1, name: "l" };
    assert!(!red.set_limits(&super::super::Config::default(), &site));
    assert_eq!(push(&mut red, Instant::ZERO, Ecn::Ect0), None);
    assert!(red.set_limits(&super::super::Config::Red(config("packets = 20")), &site));
    assert_eq!(push(&mut red, Instant::ZERO, Ecn::Ect0), Some(Refusal::Packets));
    assert_eq!((red.drain().len(), red.len(), red.bytes()), (21, 0, 0));
}

proptest! {
    /// Whatever comes and goes, everything is somewhere.
    #[test]
    fn nothing_is_lost_in_silence(steps in proptest::collection::vec((0_u8..4, 0_u64..3000), 1..600), weight in 0.001..1.0) {
        let mut red = red(&format!("packets = 12\nmin = 1\nmax = 4\nmax-p = 0.5\nweight = {weight}"));
        let (mut pushed, mut popped, mut dropped, mut now) = (0_usize, 0, 0, Instant::ZERO);
        for (action, micros) in steps {
            now += Duration::from_micros(micros);
            match action {
                0 => popped += usize::from(pop(&mut red, now).is_some()),
                1 if red.is_empty() => red.pass_by(now, 500),
                _ => {
                    pushed += 1;
                    let ecn = if action == 2 { Ecn::Ect0 } else { Ecn::NotEct };
                    dropped += usize::from(push(&mut red, now, ecn).is_some());
                }
            }
            prop_assert_eq!(pushed, popped + dropped + red.len());
            prop_assert_eq!(red.bytes(), red.len() as u64 * 500);
            prop_assert!(red.len() <= 12 && (0.0..=12.0).contains(&red.average().unwrap()));
        }
        let count = |name| red.counters().iter().find(|(of, _)| *of == name).unwrap().1 as usize;
        prop_assert_eq!(count("passed"), popped);
        prop_assert_eq!(count("dropped-early") + count("dropped-for-packets"), dropped);
    }
}
