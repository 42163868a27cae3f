//! A path that becomes ten times as slow for a while, under a download through gateways that found its rate. Who has nothing to do with what overflows then
//! should not wait for its repair.

use std::path::Path;

use base::{Duration, Instant};
use lab::run::{self, Run, Watch};
use lab::scenario::{Override, Suite};
use longhaul_lab as lab;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

/// When the rate falls and rises, in seconds.
const FALLS: u64 = 12;
const RISES: u64 = 24;

/// A datagram ten times a second, unmarked, each way.
const PINGS: &str = r#"
[traffic.ping.rate]
from = "server"
to = "client"
transport = "udp"
rate = "5120 bit/s"
record = "64 B"
start = "2 s"

[traffic.pong.rate]
from = "client"
to = "server"
transport = "udp"
rate = "5120 bit/s"
record = "64 B"
start = "2 s"
"#;

fn at(second: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(second)
}

/// 50, then 5, then 50 Mbit/s at a round trip of 600 ms, in front of a queue of so many packets: short ones are dropped like long ones.
fn falling(packets: u32, seed: u64) -> Run {
    let changes: Vec<Override> = [
        format!("seed={seed}"),
        "duration=30 s".to_owned(),
        "link.wan.channel.rate=50 Mbit/s".to_owned(),
        "link.wan.channel.delay=300 ms".to_owned(),
        format!(
            "link.wan.channel.rate-changes=[{{at=\"{FALLS} s\", rate=\"5 Mbit/s\"}}, {{at=\"{RISES} s\", rate=\"50 Mbit/s\"}}]"
        ),
        format!("link.wan.queue={{drop-tail={{packets={packets}}}}}"),
    ]
    .iter()
    .map(|change| change.parse().unwrap())
    .collect();
    let suite = Suite::parse("base.toml", &format!("{BASE}\n{PINGS}"), Path::new(""), &changes).unwrap();
    let watch = Watch { progress: true, latencies: true, ..Watch::default() };
    let run = run::run("tunnel", &suite.schemes[0].1, suite.scenario.seed, &watch).unwrap();
    assert!(run.intact);
    run
}

/// The longest one-way latency in seconds of what a source sent between two seconds of the run, and how many arrived.
fn worst(run: &Run, name: &str, from: u64, to: u64) -> (f64, usize) {
    let sent = run.latencies[name].iter().filter(|sample| (at(from)..at(to)).contains(&sample.sent));
    let latencies: Vec<f64> = sent.map(|sample| sample.latency.as_secs_f64()).collect();
    (latencies.iter().copied().fold(0.0, f64::max), latencies.len())
}

/// Mbit/s that the download received between two seconds of the run.
fn received(run: &Run, from: u64, to: u64) -> f64 {
    let points = &run.progress.iter().find(|received| received.name == "download").unwrap().points;
    let by = |second| {
        let next = points.partition_point(|(then, _)| *then <= at(second));
        points[..next].last().map_or(0, |(_, bytes)| *bytes)
    };
    (by(to) - by(from)) as f64 * 8e-6 / (to - from) as f64
}

/// Goal: after a fall of the rate to a tenth no ping takes longer than `most` seconds there and back, the download goes on at the new rate, and no more is
/// dropped than what leaves in 2.7 s at the old one.
fn assert_that_others_pass(packets: u32, most: f64) {
    for seed in 1..=5 {
        let run = falling(packets, seed);
        let what = format!("{packets} packets, seed {seed}");
        let (ping, arrived) = worst(&run, "ping", FALLS, RISES);
        let (pong, _) = worst(&run, "pong", FALLS, RISES);
        assert!(ping + pong <= most, "{what}: {ping} and {pong} s");
        assert!(arrived >= 118, "{what}: {arrived} of 120 pings");
        for from in [FALLS + 3, FALLS + 6, FALLS + 9] {
            let goodput = received(&run, from, from + 3);
            assert!(goodput > 3.3, "{what}: {goodput} Mbit/s from {from} s on");
        }
        let again = received(&run, RISES + 3, RISES + 6);
        assert!(again > 25.0, "{what}: {again} Mbit/s when the rate has risen");
        let dropped = run.links["wan/down"]["queue-dropped-for-packets"];
        assert!(dropped < 10_000, "{what}: {dropped} dropped");
    }
}

/// At 5 Mbit/s it holds 200 ms, so that without gateways a ping takes 0.8 s.
#[test]
fn others_pass_where_a_short_queue_overflows() {
    assert_that_others_pass(84, 2.0);
}

/// At 5 Mbit/s it holds 600 ms, so that without gateways a ping takes 1.2 s: and one that it drops can be told from others a second after it was sent.
#[test]
fn others_pass_where_a_longer_queue_overflows() {
    assert_that_others_pass(250, 2.4);
}
