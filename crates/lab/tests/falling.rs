//! A path that becomes ten times as slow for a while, under a download through gateways that found its rate. Who has nothing to do with what overflows then
//! should not wait for its repair.

use crate::gateways::{at, received, run_with};
use lab::run::Run;
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

/// 50, then 5, then 50 Mbit/s at a round trip of 600 ms, in front of a queue of so many packets: short ones are dropped like long ones.
fn falling(packets: u32, seed: u64) -> Run {
    let changes = format!(
        "link.wan.channel={{rate=\"50 Mbit/s\", delay=\"300 ms\", rate-changes=[{{at=\"{FALLS} s\", rate=\"5 Mbit/s\"}}, {{at=\"{RISES} s\", rate=\"50 Mbit/s\"}}]}}"
    );
    let queue = format!("link.wan.queue={{drop-tail={{packets={packets}}}}}");
    run_with(BASE, PINGS, &[&format!("seed={seed}"), "duration=30 s", &changes, &queue])
}

/// The longest one-way latency in seconds of what a source sent between two seconds of the run, and how many arrived.
fn worst(run: &Run, name: &str, from: u64, to: u64) -> (f64, usize) {
    let sent = run.latencies[name].iter().filter(|sample| (at(from)..at(to)).contains(&sample.sent));
    let latencies: Vec<f64> = sent.map(|sample| sample.latency.as_secs_f64()).collect();
    (latencies.iter().copied().fold(0.0, f64::max), latencies.len())
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
            let goodput = received(&run, "download", from, from + 3);
            assert!(goodput > 3.3, "{what}: {goodput} Mbit/s from {from} s on");
        }
        let again = received(&run, "download", RISES + 3, RISES + 6);
        assert!(again > 25.0, "{what}: {again} Mbit/s when the rate has risen");
        let dropped = run.links["wan/down"]["queue-dropped-for-packets"];
        assert!(dropped < 10_000, "{what}: {dropped} dropped");
    }
}

/// At 5 Mbit/s it holds 200 ms, so that without gateways a ping takes 0.8 s.
#[test]
fn others_pass_where_a_short_queue_overflows() {
    assert_that_others_pass(84, 2.1);
}

/// At 5 Mbit/s it holds 600 ms, so that without gateways a ping takes 1.2 s: and one that it drops can be told from others a second after it was sent.
#[test]
fn others_pass_where_a_longer_queue_overflows() {
    assert_that_others_pass(250, 2.4);
}
