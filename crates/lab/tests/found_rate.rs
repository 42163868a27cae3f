//! The rate that a gateway finds by itself, or is told, where the rate study does not look: what it says, and how it begins and ends. Rates are in Mbit/s.

use crate::gateways::{at, received, run_with};
use lab::run::Run;
use longhaul_lab as lab;
use tunnel::Event;
use tunnel::survey::rate::Finding;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

/// A download from the second second on, over a path with these keys of `link.wan.channel`.
fn run(path: &str, changes: &[&str]) -> Run {
    let channel = format!("link.wan.channel={{{path}}}");
    run_with(BASE, "", &[&[channel.as_str()], changes].concat())
}

/// What was found out about the way to the client, and when in seconds.
fn findings(run: &Run) -> Vec<(f64, Finding)> {
    let events = run.tunnels["west"].events.iter();
    let rates = events.filter_map(|(at, event)| match event {
        Event::Rate { finding, .. } => Some((at.as_secs_f64(), *finding)),
        _ => None,
    });
    rates.collect()
}

/// Of the line's rate this is goodput, at least: the rest are headers, and a queue that runs empty now and then.
const GOODPUT: f64 = 0.87;

#[track_caller]
fn assert_carries(run: &Run, from: u64, to: u64, rate: f64) {
    let goodput = received(run, "download", from, to);
    assert!(goodput >= GOODPUT * rate, "{goodput:.3} of {rate} Mbit/s from {from} s to {to} s");
}

#[test]
fn an_idle_path_is_used_within_a_second_of_traffic() {
    for (path, rate) in [
        ("rate=\"50 Mbit/s\", delay=\"300 ms\"", 50.0),
        ("rate=\"20 Mbit/s\", delay=\"25 ms\"", 20.0),
        ("rate=\"1 Mbit/s\", delay=\"300 ms\"", 1.0),
    ] {
        let run = run(path, &["duration=12 s", "traffic.download.bulk.jitter=0 s"]);
        assert_carries(&run, 4, 12, rate);
        assert!(run.links["wan/down"]["queue-dropped-for-bytes"] < 400, "{path}");
    }
}

/// What waits in front of a line of 64 kbit/s, with a `ping`'s eyes.
#[test]
fn a_slow_line_is_not_filled_for_seconds() {
    for delay in ["25 ms", "300 ms"] {
        let path = format!("rate=\"64 kbit/s\", delay=\"{delay}\"");
        let run = run(&path, &["duration=60 s", "link.wan.queue.drop-tail.time=3 s"]);
        assert_carries(&run, 10, 60, 0.064 * 0.92);
        let samples = &run.tunnels["west"].samples;
        let mean =
            samples.iter().map(|sample| sample.queueing.as_secs_f64()).sum::<f64>() / samples.len() as f64;
        assert!(mean < 0.6, "{delay}: {mean} s");
    }
}

/// A handshake, padding that nobody asked for, and the first probe for long packets.
#[test]
fn what_opens_a_session_takes_a_slow_line_for_half_a_second() {
    let changes =
        ["duration=1 s", "traffic.download.bulk.start=\"900 ms\"", "traffic.download.bulk.jitter=0 s"];
    let run = run("rate=\"64 kbit/s\", delay=\"25 ms\"", &changes);
    let bytes = run.links["wan/down"]["bytes-sent"];
    assert!(bytes > 1000 && bytes < 64_000 / 8 / 2, "{bytes}");
}

#[test]
fn a_line_that_is_blocked_now_and_then_is_used_while_it_is_not() {
    for (f, least) in [(0.1, 0.8), (0.3, 0.65)] {
        let path =
            format!("rate=\"256 kbit/s\", delay=\"250 ms\", errors={{gilbert-elliott={{f={f}, d=\"1 s\"}}}}");
        for (rate, least) in [("\"auto\"", 0.7 * least), ("\"256 kbit/s\"", least)] {
            let changes = [format!("tunnel.gateways.link.rate={rate}"), "duration=200 s".to_owned()];
            let run = run(&path, &[&changes[0], &changes[1]]);
            let goodput = received(&run, "download", 10, 200) / (0.256 * (1.0 - f));
            assert!(goodput > least, "{f} of the time, rate {rate}: {goodput}");
        }
    }
}

/// RFC 8084: while nothing arrives, nearly nothing is sent; the rest comes back by itself.
#[test]
fn the_circuit_breaker_leaves_a_trickle() {
    let changes = "changes=[{at=\"10 s\", probability=0.99}, {at=\"55 s\", probability=0}]";
    let path = |delay| {
        format!("rate=\"20 Mbit/s\", delay=\"{delay}\", errors={{erasure={{probability=0, {changes}}}}}")
    };
    let rate = |seed: u64| {
        let sent = |until: u64| {
            let changes = [format!("duration={until} s"), format!("seed={seed}")];
            run(&path("300 ms"), &[&changes[0], &changes[1]]).links["wan/down"]["bytes-sent"]
        };
        (sent(54) - sent(34)) as f64 * 4e-7
    };
    // One packet in a hundred arrives after all, and with luck some in a row, to which the rate answers.
    let mut rates = [1, 2, 3].map(rate);
    rates.sort_by(f64::total_cmp);
    assert!(rates[1] < 0.6 && rates[2] < 2.5, "{rates:?} while nothing arrives");
    assert_carries(&run(&path("300 ms"), &["duration=80 s"]), 70, 80, 15.0);
}

#[test]
fn who_sends_little_learns_nothing_wrong() {
    let little = "[traffic.call.rate]\nfrom = \"server\"\nto = \"client\"\ntransport = \"udp\"\nrate = \"2 Mbit/s\"\nrecord = \"1000 B\"\nstart = \"2 s\"\n";
    let changes = ["duration=30 s", "link.wan.channel.delay=300 ms", "traffic.download.bulk.start=15 s"];
    let run = run_with(BASE, little, &changes);
    assert!(received(&run, "call", 4, 15) > 1.9, "{}", received(&run, "call", 4, 15));
    assert_carries(&run, 18, 30, 18.0);
}

#[test]
fn a_configured_rate_that_the_path_carries_is_kept() {
    for path in [
        "errors={erasure={probability=0.2}}",
        "jitter={in-order={up-to=\"40 ms\"}}",
        "errors={gilbert-elliott={f=0.05, d=\"200 ms\"}}",
    ] {
        let path = format!("rate=\"10 Mbit/s\", delay=\"300 ms\", {path}");
        let run = run(&path, &["duration=40 s", "tunnel.gateways.link.rate=10 Mbit/s"]);
        let kept = run.tunnels["west"].samples.last().unwrap().capacity.unwrap();
        assert!(kept > 9_500_000, "{path}: {kept}");
        assert!(findings(&run).is_empty(), "{path}: {:?}", findings(&run));
    }
}

#[test]
fn a_configured_rate_that_is_wrong_is_told_once() {
    let path = "rate=\"10 Mbit/s\", delay=\"300 ms\"";
    let changes = ["duration=40 s", "link.wan.queue.drop-tail.time=600 ms"];
    let too_fast = run(path, &[&changes[..], &["tunnel.gateways.link.rate=20 Mbit/s"]].concat());
    let [(_, Finding::TooFast { measured, queueing, lost })] = findings(&too_fast)[..] else {
        panic!("{:?}", findings(&too_fast))
    };
    assert!(measured.as_bps().abs_diff(10_000_000) < 500_000, "{measured}");
    assert!((300..=700).contains(&queueing.as_millis()) && lost <= 60, "{queueing:?} {lost}");
    assert_carries(&too_fast, 10, 40, 10.0);
    let too_slow = run(path, &[&changes[..], &["tunnel.gateways.link.rate=6 Mbit/s"]].concat());
    let [(_, Finding::TooSlow { measured })] = findings(&too_slow)[..] else {
        panic!("{:?}", findings(&too_slow))
    };
    assert!(measured.as_bps().abs_diff(10_000_000) < 500_000, "{measured}");
    assert_carries(&too_slow, 5, 40, 6.0);
}

#[test]
fn what_was_found_is_told_once() {
    let run = run("rate=\"10 Mbit/s\", delay=\"300 ms\"", &["duration=60 s"]);
    let [(at, Finding::Found { measured })] = findings(&run)[..] else { panic!("{:?}", findings(&run)) };
    assert!(measured.as_bps().abs_diff(10_000_000) < 500_000 && at < 30.0, "{measured} at {at}");
}

/// Until one shows: first as a queue that never overflows, then as losses.
#[test]
fn where_there_is_no_bottleneck_nothing_is_paced() {
    for (delay, queue) in [("500 us", "200 ms"), ("15 ms", "200 ms"), ("500 us", "1 ms")] {
        let path = format!(
            "rate=\"20 Gbit/s\", delay=\"{delay}\", rate-changes=[{{at=\"5 s\", rate=\"100 Mbit/s\"}}]"
        );
        let queue = format!("link.wan.queue.drop-tail.time={queue}");
        let run = run(&path, &["duration=13 s", &queue, "traffic.download.bulk.jitter=0 s"]);
        let rates = |from, to| {
            let samples = run.tunnels["west"].samples.iter();
            samples.filter(move |sample| (at(from)..at(to)).contains(&sample.at))
        };
        assert!(rates(4, 5).all(|sample| sample.rate.is_none()), "{delay} {queue}");
        assert!(received(&run, "download", 4, 5) > 900.0, "{delay} {queue}");
        assert!(rates(9, 12).all(|sample| sample.rate.is_some()), "{delay} {queue}");
        assert_carries(&run, 9, 13, 100.0);
    }
}

#[test]
fn a_rate_without_bounds_stays_so() {
    let run =
        run("rate=\"20 Mbit/s\", delay=\"300 ms\"", &["duration=10 s", "tunnel.gateways.link.rate=max"]);
    assert!(run.tunnels["west"].samples.iter().all(|sample| sample.rate.is_none()));
    assert!(findings(&run).is_empty());
}
