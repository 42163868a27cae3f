//! What sending packets once, as their marks ask, brings a call beside a transfer, and what it costs.

use std::path::Path;

use base::{Duration, Instant};
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

/// The first scheme repeats all packets, the second sends the voice once.
const SCENARIO: &str = include_str!("../../../scenarios/demo/voice.toml");

fn suite(changes: &[&str]) -> Result<Suite, String> {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("voice.toml", SCENARIO, Path::new(""), &changes).map_err(|error| error.to_string())
}

/// Both schemes with one seed for ten minutes.
fn runs(changes: &[&str], seed: u64) -> [Run; 2] {
    let suite = suite(changes).unwrap();
    let watch = Watch { latencies: true, ..Watch::default() };
    [0, 1].map(|scheme| {
        let (name, scenario) = &suite.schemes[scheme];
        let run = run::run(name, scenario, seed, &watch).unwrap();
        assert!(run.intact && run.goodput_bps <= run.bound_bps, "{run:?}");
        run
    })
}

/// The latency in seconds that this part of the voice's records that came did not exceed.
fn within(run: &Run, part: f64) -> f64 {
    let mut latencies: Vec<Duration> = run.latencies["voice"].iter().map(|sample| sample.latency).collect();
    latencies.sort_unstable();
    latencies[(part * (latencies.len() - 1) as f64) as usize].as_secs_f64()
}

/// Goal: a voice that is sent once comes in time or not at all; what is lost is the voice's alone, and about as much as the
/// channel is blocked. The transfer loses nothing to TCP, and little of its goodput.
#[test]
fn a_voice_that_is_sent_once_is_in_time_and_alone_loses() {
    for seed in 1..=3 {
        let [all, once] = runs(&[], seed);
        let (late, timely) = (within(&all, 0.95), within(&once, 0.95));
        // Seconds of a blockage, against 250 ms and a few frames.
        assert!(late > 1.0 && timely < 0.35, "{late} s against {timely} s");
        assert!(within(&once, 1.0) < 0.5 && within(&once, 1.0) < within(&all, 1.0));

        let lost = |run: &Run| run.sources[0].undelivered as f64 / run.sources[0].generated as f64;
        assert!(lost(&all) < 0.01, "{}", lost(&all));
        let blocked = 1.0 - open(seed);
        assert!((lost(&once) - blocked).abs() < 0.03, "{} lost, {blocked} blocked", lost(&once));
        assert_eq!((once.sources[0].duplicates, once.sources[0].late), (0, 0));

        let file = |run: &Run| run.transfers[0].bytes as f64;
        assert!(file(&once) > 0.9 * file(&all), "{} against {}", file(&once), file(&all));
        let given_up = once.links["satellite/down"]["endpoint-packets-given-up"];
        assert_eq!((given_up, once.transfers[0].failed), (0, false));
    }
}

/// The part of ten minutes in which this realisation is open.
fn open(seed: u64) -> f64 {
    let scenario = suite(&[]).unwrap().scenario;
    let channel = &scenario.link["satellite"].channel;
    let timeline = channel.errors.timeline(&channel.streams(seed, "satellite", "down"));
    channel::capacity::open_fraction(timeline, Instant::ZERO..Instant::ZERO + scenario.duration)
}

/// Goal: where nothing is repeated anyway, marks change nothing.
#[test]
fn marks_change_nothing_on_a_plain_link() {
    let [unmarked, marked] = runs(&["link.satellite.protocol=plain", "duration=60 s"], 1);
    assert_eq!(unmarked.trace_hash, marked.trace_hash);
}

/// Goal: other marks than the listed ones are repeated, over IPv6 too.
#[test]
fn only_listed_marks_are_sent_once() {
    for network in ["ipv4", "ipv6"] {
        let changes = [&format!("network={network}"), "duration=60 s"];
        let unreliable = |run: &Run| run.links["satellite/down"]["endpoint-frames-unreliable"];
        let [all, once] = runs(&changes, 1);
        assert!(unreliable(&all) == 0 && unreliable(&once) >= once.sources[0].delivered, "{once:?}");
        let [all, other] = runs(&[&changes[..], &["traffic.voice.rate.dscp=34"]].concat(), 1);
        assert_eq!(unreliable(&other), 0);
        assert_eq!(all.sources[0].delivered, other.sources[0].delivered);
    }
}

/// Goal: what makes no sense is refused in words.
#[test]
fn impossible_marks_are_refused() {
    for (change, want) in [
        ("link.satellite.once-dscp=[64]", "64 is not a DSCP; allowed are 0 to 63"),
        ("traffic.voice.rate.dscp=64", "64 is out of range; allowed are 0 to 63"),
        ("traffic.voice.rate.transport=tcp", "has dscp = 46; allowed is UDP, or no dscp"),
    ] {
        let complaint = suite(&[change]).unwrap_err();
        assert!(complaint.contains(want), "{complaint}");
    }
    let wire = SCENARIO.replace("protocol = \"cotmll-thesis\"\n", "once-dscp = [46]\n");
    let complaint = Suite::parse("voice.toml", &wire, Path::new(""), &[]).unwrap_err().to_string();
    assert!(complaint.contains("has once-dscp but no protocol"), "{complaint}");
}
