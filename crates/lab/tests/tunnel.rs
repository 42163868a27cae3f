//! A whole gateway in virtual time: sessions, datagrams of real size, and a rate that nobody told.

use crate::gateways::{at, received, run_with};
use lab::run::Run;
use longhaul_lab as lab;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

const SHARED: &str = include_str!("../../../scenarios/rate/shared.toml");

/// The longest time between two arrivals of a source from a second of the run on.
fn longest_gap(run: &Run, name: &str, from: u64) -> f64 {
    let received = run.progress.iter().find(|received| received.name == name).unwrap();
    let times: Vec<_> =
        received.points.iter().map(|(then, _)| *then).filter(|then| *then >= at(from)).collect();
    assert!(times.len() > 10, "{} arrivals", times.len());
    times.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_secs_f64()).fold(0.0, f64::max)
}

fn counter(run: &Run, node: &str, name: &str) -> u64 {
    *run.nodes[node].get(name).unwrap_or_else(|| panic!("{name} among {:?}", run.nodes[node].keys()))
}

/// Goal: a session is made, the rate found, and the line full of datagrams whose headers are those of a gateway.
#[test]
fn a_gateway_fills_a_path_that_nobody_told_it() {
    let run = run_with(BASE, "", &["duration=12 s"]);
    let goodput = received(&run, "download", 6, 12);
    // Of 1500 bytes 28 are UDP's and IP's, 33 the session's; a few are the frame's and the segment's.
    assert!((0.93 * 20.0..20.0 * 1439.0 / 1500.0).contains(&goodput), "{goodput}");
    let trace = &run.tunnels["west"];
    let found = trace.samples.last().unwrap().capacity.unwrap();
    assert!(found.abs_diff(20_000_000) < 1_000_000, "{found}");
    let events = format!("{:?}", trace.events);
    assert!(events.contains("Established"), "{events}");
    assert_eq!(counter(&run, "east", "tunnel-session-late"), 0);
    let wan = &run.links["wan/down"];
    // What counts as sent is what the line carries, or what still waits for it.
    let waiting = counter(&run, "west", "tunnel-bytes-sent") - wan["bytes-sent"];
    assert!(waiting < 200_000, "{waiting}");
    assert!(wan["packets-sent"] * 1500 >= wan["bytes-sent"]);
}

/// Goal: the same scenario and seed give the same bytes, and another seed others, keys and all.
#[test]
fn a_run_is_a_function_of_its_scenario_and_seed() {
    let run = |seed: &str| run_with(BASE, "", &["duration=5 s", seed]).trace_hash;
    assert_eq!(run("seed=1"), run("seed=1"));
    assert_ne!(run("seed=1"), run("seed=2"));
}

/// Goal: only packets between hosts behind the gateways enter a tunnel; others share the routers and the line.
#[test]
fn cross_traffic_passes_beside_the_tunnel() {
    let run = run_with(SHARED, "", &["duration=20 s", "traffic.rival.bulk.start=\"2 s\""]);
    let (ours, rival) = (received(&run, "download", 5, 20), received(&run, "rival", 5, 20));
    assert!(ours > 3.0 && rival > 3.0, "{ours} {rival}");
    assert!(ours + rival < 20.0, "{ours} {rival}");
    // An idle tunnel says little more than that it lives.
    let idle = counter(&run, "west-2", "tunnel-bytes-sent");
    assert!(idle > 0 && idle < 200_000, "{idle}");
    let received = counter(&run, "east", "tunnel-datagrams-received");
    assert!(received > 3 * 15 * 1_000_000 / 8 / 1500, "{received}");
}

/// Goal: hosts whose segments are longer than what enters the tunnel hear of that, and cut smaller ones, where no proxy does it for them.
#[test]
fn who_sends_packets_that_are_too_long_is_told() {
    for network in ["network=ipv4", "network=ipv6"] {
        let changes = [
            "duration=30 s",
            network,
            "tunnel.gateways.pep.enabled=false",
            "traffic.download.bulk.size=\"200 kB\"",
        ];
        let run = run_with(BASE, "", &changes);
        assert!(
            run.complete && counter(&run, "west", "packets-too-long") > 0,
            "{network}: {:?}",
            run.transfers
        );
    }
}

/// A path that begins to drop packets of more than 1280 bytes in silence, under a download and pings of 64 bytes.
/// Goal: the download flows again within 5 s, and pings never stop.
#[test]
fn a_path_that_begins_to_drop_long_packets_is_survived() {
    let pings = "[traffic.ping.rate]\nfrom = \"server\"\nto = \"client\"\ntransport = \"udp\"\nrate = \"5120 bit/s\"\nrecord = \"64 B\"\nstart = \"2 s\"\n";
    let hole = "link.wan.channel.largest-packet={bytes=1280, from=\"10 s\"}";
    for family in ["ipv4", "ipv6"] {
        let changes =
            ["duration=40 s", "link.wan.channel.delay=100 ms", hole, &format!("network=\"{family}\"")];
        let run = run_with(BASE, pings, &changes);
        assert!(received(&run, "download", 5, 10) > 15.0, "{family}");
        let gap = longest_gap(&run, "ping", 5);
        assert!(gap < 1.0, "{family}: no ping for {gap} s");
        let again = received(&run, "download", 15, 40);
        assert!(again > 13.0, "{family}: {again} Mbit/s afterwards");
        let size = run.tunnels["west"].samples.last().unwrap().mtu.unwrap();
        assert!((1240..=1280).contains(&size), "{family}: {size}");
        assert!(counter(&run, "west", "tunnel-frames-cut") > 0);
    }
}

/// A path that carries less than IPv6 asks for, for ten seconds, whose routers say so.
/// Goal: once it carries everything again the download goes on. A gateway goes by what arrives, and not by what routers say.
#[test]
fn what_routers_said_of_a_path_does_not_outlast_it() {
    let shut = "link.wan.channel.largest-packet={bytes=1000, from=\"5 s\", until=\"15 s\", says=true}";
    let changes = ["duration=60 s", "network=ipv6", "link.wan.channel.delay=100 ms", shut];
    let run = run_with(BASE, "", &changes);
    assert!(received(&run, "download", 8, 15) < 0.1);
    let again = received(&run, "download", 30, 60);
    assert!(again > 13.0, "{again} Mbit/s afterwards");
}
