use super::*;
use crate::{Fate, Line, duplex};
use base::Rate;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The line towards the terminal of a fast channel with a delay of 100 ms.
fn line(extra: &str) -> Line {
    let text = format!("rate = \"1 Gbit/s\"\ndelay = \"100 ms\"\n{extra}");
    base::config::parse::<duplex::Config>("channel.toml", &text).unwrap().build(1, "sat").down
}

/// How long packets take that are sent at these times, in ms.
fn delays(line: &mut Line, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let delay = |ms| line.send(at(ms), 8).arrives_at.saturating_since(at(ms)).as_millis();
    times.into_iter().map(delay).collect()
}

#[test]
fn a_delay_changes_in_steps_and_slowly() {
    let mut line = line(
        "delay-changes = [{ at = \"1 s\", delay = \"200 ms\" }, { at = \"2 s\", delay = \"300 ms\", over = \"10 s\" }, \
         { at = \"12 s\", delay = \"250 ms\", over = \"1 s\" }]",
    );
    let times = [0, 999, 1000, 1999, 2000, 3000, 7000, 11_999, 12_000, 12_500, 13_000, 60_000];
    assert_eq!(delays(&mut line, times), [100, 100, 200, 200, 200, 210, 250, 299, 300, 275, 250, 250]);
}

#[test]
fn slots_add_to_the_delay_and_start_with_silence() {
    let mut line =
        line("delay-slots = { every = \"15 s\", more = [\"5 ms\", \"20 ms\", \"0 ms\"], gap = \"60 ms\" }");
    let sent = |line: &mut Line, ms| {
        let transit = line.send(at(ms), 8);
        (transit.arrives_at.saturating_since(at(ms)).as_millis(), transit.fate)
    };
    for (ms, expected) in [
        (0, (105, Fate::Intact)),
        (14_999, (105, Fate::Intact)),
        (15_000, (120, Fate::Lost)),
        (15_059, (120, Fate::Lost)),
        (15_060, (120, Fate::Intact)),
        (30_059, (100, Fate::Lost)),
        (30_061, (100, Fate::Intact)),
        (45_061, (105, Fate::Intact)),
        (60_061, (120, Fate::Intact)),
    ] {
        assert_eq!(sent(&mut line, ms), expected, "{ms}");
    }
    assert_eq!(line.path_counters().unwrap().silenced, 3);
}

/// A change holds for what has left at its very moment, and a slow one is over at the end of its time.
#[test]
fn a_change_holds_from_its_moment_on() {
    let change = |at, delay, over| DelayChange {
        at: Duration::from_secs(at),
        delay: Duration::from_millis(delay),
        over: Duration::from_secs(over),
    };
    let mut course = Course::new(Duration::from_millis(100), &[change(1, 200, 0), change(2, 300, 10)], None);
    let delays = [999, 1000, 2000, 7000, 12_000].map(|ms| course.delay(at(ms)).as_millis());
    assert_eq!(delays, [100, 200, 200, 250, 300]);
}

#[test]
fn slots_without_a_gap_lose_nothing() {
    let mut line = line("delay-slots = { every = \"15 s\", more = [\"5 ms\", \"20 ms\"] }");
    for ms in [14_999, 15_000, 15_001, 30_000] {
        assert!(line.send(at(ms), 8).fate.is_intact(), "{ms}");
    }
    assert_eq!(line.path_counters().unwrap().silenced, 0);
}

/// A slow packet whose time on the air reaches into a gap is lost, whether it ends in the gap or beyond.
#[test]
fn silence_hits_what_is_on_the_air() {
    for (bits, ms, intact) in
        [(1000, 13_900, true), (1000, 14_500, false), (2000, 14_000, false), (1000, 15_060, true)]
    {
        let text = "rate = \"1 kbit/s\"\ndelay = \"100 ms\"\n\
                    delay-slots = { every = \"15 s\", more = [\"0 s\"], gap = \"60 ms\" }";
        let mut line = base::config::parse::<duplex::Config>("c", text).unwrap().build(1, "sat").down;
        assert_eq!(line.send(at(ms), bits).fate.is_intact(), intact, "{bits} {ms}");
    }
}

#[test]
fn order_is_kept_when_the_delay_falls_unless_told() {
    let fall = "delay-changes = [{ at = \"1 s\", delay = \"20 ms\" }]\n";
    let times = [990, 1000, 1050, 1100];
    assert_eq!(delays(&mut line(fall), times), [100, 90, 40, 20]);
    assert_eq!(delays(&mut line(&format!("{fall}overtaking = true")), times), [100, 20, 20, 20]);
}

#[test]
fn jitter_in_order_delays_and_never_overtakes() {
    let mut line = line("jitter = { in-order = { up-to = \"50 ms\" } }");
    let (mut last, mut delays) = (Instant::ZERO, Vec::new());
    for n in 0..1000 {
        let transit = line.send(at(n * 10), 8);
        assert!(transit.arrives_at >= last);
        last = transit.arrives_at;
        delays.push(transit.arrives_at.saturating_since(at(n * 10)).as_millis());
    }
    let (least, most) = (*delays.iter().min().unwrap(), *delays.iter().max().unwrap());
    assert!((100..105).contains(&least) && (145..=150).contains(&most), "{least} {most}");
    // Packets that are far apart do not wait for each other: 25 ms on average, within five standard errors.
    let mean = (1000..2000)
        .map(|n| line.send(at(n * 1000), 8).arrives_at.saturating_since(at(n * 1000)).as_micros());
    let mean = mean.sum::<u64>() / 1000;
    assert!((122_700..127_300).contains(&mean), "{mean}");
}

#[test]
fn a_part_of_the_packets_is_late_and_is_overtaken() {
    let mut line = line("jitter = { overtaking = { probability = 0.1, from = \"15 ms\", to = \"40 ms\" } }");
    let arrivals: Vec<_> = (0..2000).map(|n| line.send(at(n * 10), 8).arrives_at).collect();
    let late = arrivals.iter().zip(0..).filter(|(arrival, n)| **arrival > at(n * 10 + 101));
    let late: Vec<_> =
        late.map(|(arrival, n)| arrival.saturating_since(at(n * 10 + 100)).as_millis()).collect();
    // Five standard errors of 2000 trials.
    assert!((133..267).contains(&late.len()), "{}", late.len());
    assert!(late.iter().all(|late| (15..=40).contains(late)), "{late:?}");
    assert!(late.iter().any(|late| *late < 20) && late.iter().any(|late| *late > 35));
    assert!(arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count() > 100);
    assert_eq!(line.path_counters().unwrap().late, late.len() as u64);
}

#[test]
fn a_path_changes_no_errors() {
    let errors = "errors = { any = [{ erasure = { probability = 0.2 } }, { gilbert-elliott = { f = 0.3, d = \"1 s\" } }] }\n";
    let fates = |extra: &str| {
        let mut line = line(&format!("{errors}{extra}"));
        (0..500).map(|n| line.send(at(n * 10), 8).fate.is_intact()).collect::<Vec<_>>()
    };
    let without = fates("");
    assert!(without.contains(&true) && without.contains(&false));
    assert_eq!(fates("jitter = { in-order = { up-to = \"50 ms\" } }"), without);
    assert_eq!(fates("delay-changes = [{ at = \"1 s\", delay = \"1 ms\" }]"), without);
}

#[test]
fn directions_have_jitter_of_their_own() {
    let text = "rate = \"1 Gbit/s\"\ndelay = \"100 ms\"\njitter = { in-order = { up-to = \"50 ms\" } }\n";
    let channel = |extra: &str| {
        base::config::parse::<duplex::Config>("c", &format!("{text}{extra}")).unwrap().build(1, "sat")
    };
    let mut both = channel("");
    let [down, up] = [&mut both.down, &mut both.up].map(|line| delays(line, (0..20).map(|n| n * 1000)));
    assert_ne!(down, up);
    let mut apart = channel("up-jitter = \"none\"");
    assert_eq!(delays(&mut apart.down, (0..20).map(|n| n * 1000)), down);
    assert_eq!(delays(&mut apart.up, [0, 1000]), [100, 100]);
}

#[test]
fn long_packets_are_refused_for_a_time() {
    let mut line = line("largest-packet = { bytes = 1280, from = \"10 s\", until = \"20 s\", says = true }");
    let mut admit = |ms, len| line.admit(at(ms), len);
    assert_eq!(admit(9_999, 1500), Admission::Admitted);
    assert_eq!(admit(10_000, 1280), Admission::Admitted);
    assert_eq!(admit(10_000, 1281), Admission::TooLong(Some(1280)));
    assert_eq!(admit(19_999, 1281), Admission::TooLong(Some(1280)));
    assert_eq!(admit(20_000, 1500), Admission::Admitted);
    assert_eq!(line.path_counters().unwrap().too_long, 2);
}

#[test]
fn a_silent_path_says_nothing() {
    assert_eq!(line("largest-packet = { bytes = 1280 }").admit(at(0), 1281), Admission::TooLong(None));
    for bytes in [68, 65_535] {
        assert_eq!(PacketLength::try_from(bytes).map(u32::from), Ok(bytes));
    }
    for bytes in ["67", "65536"] {
        let text = format!("rate = \"1 bit/s\"\ndelay = \"0 s\"\nlargest-packet = {{ bytes = {bytes} }}");
        let error = base::config::parse::<duplex::Config>("c", &text).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{bytes} is not a largest packet; allowed are 68 to 65535 bytes")),
            "{error}"
        );
    }
}

#[test]
fn a_policer_lets_a_burst_pass_and_then_its_rate() {
    // 1000 bytes each ms.
    let mut line = line("policer = { rate = \"8 Mbit/s\", burst = \"3 kB\" }");
    let burst = (0..5).filter(|_| line.admit(at(0), 1000) == Admission::Admitted).count();
    assert_eq!(burst, 3);
    let passed = (1..=1000).filter(|half| {
        let now = Instant::ZERO + Duration::from_micros(half * 500);
        line.admit(now, 1000) == Admission::Admitted
    });
    assert_eq!(passed.count(), 500);
    // After a pause no more than the burst; what is refused costs nothing.
    assert_eq!(line.admit(at(9000), 3001), Admission::Policed);
    assert_eq!(line.admit(at(9000), 3000), Admission::Admitted);
    assert_eq!(line.path_counters().unwrap().policed, 2 + 500 + 1);
}

/// Tokens of a third of a byte are not lost, however often the bucket is looked at.
#[test]
fn a_policer_drops_no_fraction_of_a_token() {
    let mut line = line("policer = { rate = \"1 kbit/s\", burst = \"125 B\" }");
    assert_eq!(line.admit(at(0), 125), Admission::Admitted);
    for micros in 1..1000 {
        assert_eq!(line.admit(Instant::ZERO + Duration::from_micros(micros * 1001), 126), Admission::Policed);
    }
    assert_eq!(line.admit(at(999), 125), Admission::Policed);
    assert_eq!(line.admit(at(1000), 125), Admission::Admitted);
}

#[test]
fn frames_that_a_path_refuses_take_their_time() {
    let text = "rate = \"8 kbit/s\"\ndelay = \"1 s\"\nlargest-packet = { bytes = 100 }";
    let mut line = base::config::parse::<duplex::Config>("c", text).unwrap().build(1, "sat").down;
    let long = line.send_unasked(at(0), 808);
    assert_eq!((long.on_air, long.fate), (at(0)..at(101), Fate::Lost));
    let short = line.send_unasked(at(0), 800);
    assert_eq!((short.on_air, short.fate), (at(101)..at(201), Fate::Intact));
}

#[test]
fn a_line_without_any_of_this_has_no_path() {
    assert_eq!(line("").path_counters(), None);
    assert_eq!(Line::error_free(Rate::from_bps(1), Duration::ZERO).path_counters(), None);
    assert_eq!(line("").admit(at(0), u64::MAX), Admission::Admitted);
}
