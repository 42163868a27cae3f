//! Split connections in the lab: many at once, and pages.

use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

fn runs(text: &str, overrides: &[&str]) -> Vec<(String, Run)> {
    let overrides: Vec<_> = overrides.iter().map(|set| set.parse().unwrap()).collect();
    let suite = Suite::parse("s.toml", text, Path::new(""), &overrides).unwrap();
    let run = |(name, scenario): &(String, _)| {
        (name.clone(), run::run(name, scenario, 1, &Watch::default()).unwrap())
    };
    suite.schemes.iter().map(run).collect()
}

/// 10,000 connections at once, byte-exact, none of which waits much longer than the others.
#[test]
fn ten_thousand_connections_at_once() {
    let text = r#"
name = "many"
duration = "120 s"
tcp.preset = "linux"
link.lan = { ends = ["server", "hub"], channel = { rate = "1 Gbit/s", delay = "1 ms" }, queue = { drop-tail = { packets = 200000 } } }
link.home = { ends = ["terminal", "client"], channel = { rate = "1 Gbit/s", delay = "1 ms" }, queue = { drop-tail = { packets = 200000 } } }
[link.satellite]
ends = ["hub", "terminal"]
protocol = "cotmll"
channel = { rate = "100 Mbit/s", delay = "300 ms", errors = { erasure = { probability = 0.01 } } }
pep = { connections = 20000, half-open = 20000, memory = "1 GiB" }
[traffic.files.bulk]
from = "server"
to = "client"
size = "10 kB"
connections = 10000
"#;
    let (_, run) = runs(text, &[]).remove(0);
    assert!(run.complete && run.intact);
    for end in ["satellite/down", "satellite/up"] {
        assert_eq!(run.links[end]["pep-split"], 10_000, "{end}");
    }
    let mut seconds: Vec<f64> = run.transfers.iter().map(|it| it.seconds.unwrap()).collect();
    seconds.sort_by(f64::total_cmp);
    let (median, last) = (seconds[5000], seconds[9999]);
    assert!(last < 2.0 * median, "the last took {last:.1} s, the median {median:.1} s");
}

/// A page of 40 objects loads in at most 0.6 of the time with proxies, with and without losses.
#[test]
fn pages_load_faster() {
    let text = include_str!("../../../scenarios/demo/page.toml");
    for errors in ["none", "{ erasure = { probability = 0.01 } }"] {
        let set =
            format!("link.satellite.channel.errors={}", if errors == "none" { "\"none\"" } else { errors });
        let runs = runs(text, &[&set]);
        let seconds = |scheme: &str| {
            let run = &runs.iter().find(|(name, _)| name == scheme).unwrap().1;
            assert!(run.complete && run.intact, "{scheme}");
            run.seconds
        };
        let (plain, repaired, split) =
            (seconds("TCP"), seconds("TCP over COTMLL"), seconds("split, over COTMLL"));
        assert!(split < 0.6 * plain, "{errors}: {split:.1} s split, {plain:.1} s without");
        assert!(
            split < 0.6 * repaired,
            "{errors}: {split:.1} s split, {repaired:.1} s over the same link without"
        );
    }
}

/// A satellite that loses a fifth of all packets each way, and nothing below TCP that repairs them.
const LOSSY: &str = r#"
name = "lossy"
duration = "30 min"
seed = 1
tcp.preset = "linux"
link.lan = { ends = ["server", "hub"], channel = { rate = "1 Gbit/s", delay = "1 ms" } }
link.home = { ends = ["terminal", "client"], channel = { rate = "1 Gbit/s", delay = "1 ms" } }
[link.satellite]
ends = ["hub", "terminal"]
protocol = "plain"
channel = { rate = "10 Mbit/s", delay = "300 ms", errors = { erasure = { probability = 0.2 } } }
# Times of a gateway with this round trip.
queue = { fq-codel = { interval = "1800 ms" } }
[traffic.file.bulk]
from = "server"
to = "client"
size = "40 MB"
"#;

/// Loss-Tolerant TCP between the proxies: at least half of what the channel lets through, both ways; CUBIC end to end, a hundredth.
#[test]
fn a_coded_proxy_pair_crosses_a_lossy_satellite() {
    let coded = "link.satellite.pep.link.preset=\"proxy-link-lossy\"";
    for ends in [["server", "client"], ["client", "server"]] {
        let (from, to) =
            (format!("traffic.file.bulk.from={:?}", ends[0]), format!("traffic.file.bulk.to={:?}", ends[1]));
        let goodput = |more: &[&str]| {
            let (_, run) = runs(LOSSY, &[&[from.as_str(), to.as_str()], more].concat()).remove(0);
            assert!(run.intact, "{ends:?}");
            (run.complete, run.goodput_bps)
        };
        let (complete, bps) = goodput(&[coded]);
        assert!(complete && bps > 0.5 * 0.8 * 10e6, "{ends:?}: {bps:.0} bit/s");
        let (_, plain) = goodput(&["duration=\"120 s\""]);
        assert!(plain < bps / 50.0, "{ends:?}: {plain:.0} bit/s end to end, {bps:.0} split");
    }
}

/// What is acknowledged end to end is coded as well: the numbers that the proxies took over from the hosts are those of the checks.
#[test]
fn a_coded_pair_may_acknowledge_end_to_end() {
    let coded = "link.satellite.pep={ ack = \"end-to-end\", link = { preset = \"proxy-link-lossy\" } }";
    let (_, run) = runs(LOSSY, &[coded, "traffic.file.bulk.size=\"4 MB\""]).remove(0);
    assert!(run.complete && run.intact);
    assert!(run.goodput_bps > 400e3, "{:.0} bit/s", run.goodput_bps);
}
