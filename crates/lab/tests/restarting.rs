//! Gateways that start anew: what is on its way is lost, and nothing else.

use crate::gateways::{at, received, run_with};
use lab::run::Run;
use longhaul_lab as lab;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

/// A call of 50 packets a second beside the download, and gateways that start anew at 20 s.
fn restarting(gateways: &[&str], proxied: bool) -> Run {
    let call = "[traffic.call.rate]\nfrom = \"server\"\nto = \"client\"\nrate = \"64 kbit/s\"\nrecord = \"160 B\"\ntransport = \"udp\"\n";
    let fates: String =
        gateways.iter().map(|name| format!("[gateway.{name}]\nrestarts = [\"20 s\"]\n")).collect();
    let proxied = format!("tunnel.gateways.pep.enabled={proxied}");
    run_with(BASE, &format!("{call}{fates}"), &["duration=60 s", &proxied])
}

/// The longest time between two packets of the call.
fn longest_gap(run: &Run) -> f64 {
    let call = run.progress.iter().find(|received| received.name == "call").unwrap();
    let times: Vec<_> = call.points.iter().map(|(then, _)| *then).filter(|then| *then > at(5)).collect();
    times.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_secs_f64()).fold(0.0, f64::max)
}

/// Goal: whichever gateway starts anew, or both do, there is a session again after a few round trips (of 100 ms here); datagrams pass, none of
/// them twice, and a connection between hosts goes on as fast as before.
#[test]
fn a_restart_costs_a_few_round_trips() {
    for gateways in [&["west"][..], &["east"], &["west", "east"]] {
        let run = restarting(gateways, false);
        let gap = longest_gap(&run);
        assert!((0.1..0.5).contains(&gap), "{gateways:?}: {gap} s");
        let call = run.sources.iter().find(|source| source.name == "call").unwrap();
        assert_eq!(call.duplicates, 0, "{gateways:?}");
        assert!(call.delivered > 2900, "{gateways:?}: {} packets", call.delivered);
        let (before, after) = (received(&run, "download", 10, 20), received(&run, "download", 30, 60));
        assert!(after > 0.97 * before, "{gateways:?}: {before} and then {after} Mbit/s");
    }
}

/// Goal: what a proxy has acknowledged and not delivered is lost when it forgets; its hosts are told at once, not left to wait.
#[test]
fn a_split_connection_breaks_when_one_of_its_proxies_forgets_it() {
    for gateway in ["west", "east"] {
        let run = restarting(&[gateway], true);
        assert!(run.transfers[0].failed, "{gateway}");
        assert!(longest_gap(&run) < 0.5, "{gateway}");
    }
}

/// Goal: without restarts nothing of this is there, and a restart is part of what a run is a function of.
#[test]
fn a_restart_is_repeatable() {
    let hash = |gateways| restarting(gateways, true).trace_hash;
    assert_eq!(hash(&["east"]), hash(&["east"]));
    assert_ne!(hash(&["east"]), hash(&[]));
}
