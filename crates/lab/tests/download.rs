//! Whole runs: a download over each protocol, checked byte for byte.

use std::ops::ControlFlow;
use std::path::Path;

use base::Instant;
use longhaul_lab::engine::Port;
use longhaul_lab::network::Network;
use longhaul_lab::node::{Element, LinkCounters as Counters};
use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::{Override, Suite, Traffic};

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");

/// The demo with some keys set: small enough for a test unless told otherwise.
fn suite(changes: &[&str]) -> Suite {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("download.toml", DEMO, Path::new(""), &changes).unwrap()
}

fn runs(changes: &[&str]) -> Vec<Run> {
    run::run_all(&suite(changes), &run::Recordings::default(), |_| ControlFlow::Continue(())).unwrap()
}

fn intact_and_complete(runs: &[Run], bytes: u64) {
    for run in runs {
        assert!(run.intact && run.complete && run.bytes == bytes, "{run:?}");
        assert!(run.goodput_bps <= run.bound_bps, "faster than the channel allows: {run:?}");
    }
}

/// Goal: every byte arrives over both protocols through blockages, and ARQ is faster on every realisation.
#[test]
fn arq_beats_plain_tcp_through_blockages() {
    let runs = runs(&["seeds=4", "traffic.download.bulk.size=200 kB"]);
    intact_and_complete(&runs, 200_000);
    let (plain, cotmll) = runs.split_at(4);
    for (plain, cotmll) in plain.iter().zip(cotmll) {
        assert_eq!(plain.seed, cotmll.seed);
        assert!(cotmll.seconds < plain.seconds, "{} s against {} s", cotmll.seconds, plain.seconds);
    }
}

/// Goal: without errors both protocols come close to the bound, and `plain` is ahead by its smaller framing.
#[test]
fn a_clean_channel_is_filled() {
    let runs = runs(&["seeds=1", "link.satellite.channel.errors=none"]);
    intact_and_complete(&runs, 1_000_000);
    for run in &runs {
        assert!(run.goodput_bps > 0.85 * run.bound_bps, "{run:?}");
    }
    assert!(runs[0].bound_bps > runs[1].bound_bps);
}

/// Goal: each kind of channel lets a transfer end with the right bytes, over IPv4 and IPv6, uploads as well.
#[test]
fn every_channel_carries_a_transfer() {
    let channels = [
        "errors.bit-errors.ber=1e-5",
        "errors.erasure.probability=0.02",
        "errors.periodic={open=\"3 s\", blocked=\"1 s\"}",
        "errors.gilbert-elliott={f=0.1, d=\"200 ms\", c=1e-6}",
    ];
    for channel in channels {
        for network in ["ipv4", "ipv6"] {
            let channel = format!("link.satellite.channel.{channel}");
            let changes = [
                channel.as_str(),
                &format!("network={network}"),
                "seeds=1",
                "traffic.download.bulk.size=60 kB",
                "traffic.download.bulk.opened-by=sender",
            ];
            intact_and_complete(&runs(&changes), 60_000);
        }
    }
}

/// Goal: many connections share a link, each with its own stream.
#[test]
fn connections_share_a_link() {
    let changes = ["seeds=1", "traffic.download.bulk.size=50 kB", "traffic.download.bulk.connections=5"];
    let runs = runs(&changes);
    intact_and_complete(&runs, 250_000);
    assert!(
        runs.iter().all(|run| run.transfers.len() == 5 && run.transfers.iter().all(|t| t.bytes == 50_000))
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let hashes = |seed: &str| -> Vec<String> {
        let changes = [seed, "seeds=2", "traffic.download.bulk.size=50 kB"];
        runs(&changes).into_iter().map(|run| run.trace_hash).collect()
    };
    let first = hashes("seed=1");
    assert_eq!(first, hashes("seed=1"));
    assert_ne!(first, hashes("seed=5"));
    // Watching changes nothing.
    let suite = suite(&["traffic.download.bulk.size=50 kB"]);
    let (name, scenario) = &suite.schemes[0];
    let unwatched = run::run(name, scenario, 1, &Watch::default()).unwrap();
    assert_eq!(unwatched.trace_hash, first[0]);
}

/// Goal: these runs are the same on every machine and with every compiler. A change of behaviour changes the hashes:
/// it is then said so in the changelog, and every published figure is made again.
#[test]
fn runs_are_pinned() {
    let changes = [
        "seeds=1",
        "traffic.download.bulk.size=100 kB",
        "link.satellite.channel.errors.gilbert-elliott.c=1e-6",
    ];
    let hashes: Vec<String> = runs(&changes).into_iter().map(|run| run.trace_hash).collect();
    assert_eq!(hashes, PINNED);
}

const PINNED: [&str; 5] =
    ["694b6bcb36a7a73d", "6341891cfb4de50c", "671399142452905f", "1e49c1895ce1e827", "be6cd6295dbd901a"];

/// Goal: an upload's time counts from its opening, so that it cannot beat the channel.
#[test]
fn an_upload_is_timed_from_its_opening() {
    let changes = [
        "seeds=1",
        "link.satellite.channel.errors=none",
        "traffic.download.bulk.size=2 kB",
        "traffic.download.bulk.opened-by=sender",
        "traffic.download.bulk.start=100 s",
    ];
    let runs = runs(&changes);
    intact_and_complete(&runs, 2_000);
    for run in &runs {
        // Handshake and data: three times 250 ms at least.
        assert!(run.started == 100.0 && (0.75..2.0).contains(&run.seconds), "{run:?}");
        assert!(run.transfers[0].segments_sent >= 2 && !run.transfers[0].failed);
    }
}

/// Goal: a transfer that cannot work says so, on whichever side it breaks.
#[test]
fn a_broken_transfer_is_told() {
    for opener in ["sender", "receiver"] {
        let opener = format!("traffic.download.bulk.opened-by={opener}");
        let changes = [
            "seeds=1",
            "link.satellite.channel.errors.erasure.probability=1.0",
            "tcp.limits.syn-retries=2",
            &opener,
        ];
        for run in runs(&changes) {
            assert!(!run.complete && run.transfers[0].failed && run.bytes == 0, "{run:?}");
        }
    }
}

/// Goal: an unlimited transfer goes on until the run's end.
#[test]
fn a_transfer_without_a_size_fills_the_run() {
    let mut suite = suite(&["duration=30 s", "link.satellite.channel.errors=none"]);
    for (_, scenario) in &mut suite.schemes {
        let Some(Traffic::Bulk(bulk)) = scenario.traffic.get_mut("download") else { panic!("no download") };
        bulk.size = None;
    }
    let (name, scenario) = &suite.schemes[1];
    let run = run::run(name, scenario, 1, &Watch::default()).unwrap();
    assert!(run.seconds == 30.0 && run.intact && run.complete, "{run:?}");
    assert!(run.goodput_bps > 0.8 * run.bound_bps && run.goodput_bps <= run.bound_bps, "{run:?}");
}

/// Goal: a link that sleeps while it has nothing to say behaves to the bit as one that does not.
#[test]
fn a_sleeping_link_misses_nothing() {
    let changes = ["traffic.later.bulk={from=\"terminal\", to=\"server\", size=\"30 kB\", start=\"61.3 s\"}"];
    for errors in
        ["gilbert-elliott={f=0.3, d=\"500 ms\", c=1e-5}", "erasure.probability=0.1", "bit-errors.ber=1e-5"]
    {
        let errors = format!("link.satellite.channel.errors.{errors}");
        let size = "traffic.download.bulk.size=30 kB";
        let suite = suite(&[changes[0], &errors, size]);
        let outcome = |may_sleep| {
            let (_, scenario) = &suite.schemes[1];
            let mut network = Network::build(scenario, 3);
            let link = network.links["satellite"];
            let Element::Link(node) = network.engine.node_mut(link) else {
                panic!("the satellite is a link")
            };
            node.set_may_sleep(may_sleep);
            network.engine.run(Instant::ZERO + scenario.duration, 2);
            let Element::Link(node) = network.engine.node(link) else { panic!("the satellite is a link") };
            let counters =
                [0, 1].map(|port| Counters { slept_through: 0, ..node.end(Port(port)).counters() });
            (
                network.engine.now(),
                network.engine.trace_hash(),
                counters.map(|c| (c.frames, c.bits, c.lost)),
                network.engine.events(),
            )
        };
        let (slept, awake) = (outcome(true), outcome(false));
        assert_eq!((slept.0, slept.1, slept.2), (awake.0, awake.1, awake.2));
        assert!(slept.3 * 4 < awake.3, "{} events against {}", slept.3, awake.3);
    }
}
