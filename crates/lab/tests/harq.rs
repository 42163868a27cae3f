//! LT-TCP's two link-level baselines in whole runs: 10 Mbit/s and 20 ms, with erasures on the way of the data alone.

use std::ops::ControlFlow;
use std::path::Path;

use longhaul_lab::run::{self, Recordings, Run};
use longhaul_lab::scenario::{Override, Suite};

/// The paper's single wireless bottleneck, with segments of 1000 bytes.
const LINK: &str = r#"
name = "LT-TCP's bottleneck"
seed = 1
seeds = 1
duration = "30 s"

[tcp]
mss = 1000

[link.wireless]
ends = ["sender", "receiver"]
protocol = "harq"

[link.wireless.channel]
rate = "10 Mbit/s"
delay = "20 ms"
errors = { erasure = { probability = 0.1 } }
up-errors = "none"
"#;

/// Ten flows, as in the paper: one alone could not fill the line, since it waits for repetitions and half a percent is lost still.
const DOWNLOAD: &str =
    "[traffic.download.bulk]\nfrom = \"sender\"\nto = \"receiver\"\nconnections = 10\njitter = \"1 s\"\n";

/// Datagrams of a kilobyte, far below the line's rate.
const DATAGRAMS: &str = r#"
[traffic.stream.rate]
from = "sender"
to = "receiver"
rate = "5 Mbit/s"
record = "1000 B"
transport = "udp"
"#;

fn run(traffic: &str, changes: &[&str]) -> Run {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("harq.toml", &[LINK, traffic].concat(), Path::new(""), &changes).unwrap();
    let mut runs = run::run_all(&suite, &Recordings::default(), |_| ControlFlow::Continue(())).unwrap();
    runs.remove(0)
}

fn erasing(probability: f64) -> String {
    format!("link.wireless.channel.errors.erasure.probability={probability}")
}

/// Goal: the packets that stay lost are those that the paper's tables fit to, and none of them comes twice or out of order.
#[test]
fn so_many_packets_stay_lost() {
    for (protocol, loss, expected, tolerance) in [
        ("{ harq = { transmissions = 1 } }", 0.1, 0.264, 0.01),
        ("{ harq = { transmissions = 1, data = 6 } }", 0.4, 0.367, 0.015),
        ("harq", 0.1, 0.005, 0.002),
        ("harq", 0.2, 0.152, 0.015),
        ("{ harq = { combine = true } }", 0.2, 0.0, 0.0),
    ] {
        let protocol = format!("link.wireless.protocol={protocol}");
        let run = run(DATAGRAMS, &[&protocol, &erasing(loss), "traffic.stream.rate.rate=3 Mbit/s"]);
        let source = &run.sources[0];
        assert!(source.generated > 10_000 && source.dropped == 0, "{source:?}");
        assert_eq!((source.duplicates, source.late), (0, 0));
        // What is under way at the end is not lost: some 100 ms of 30 s.
        let lost = source.undelivered as f64 / source.generated as f64;
        assert!((lost - expected).abs() <= tolerance + 0.004, "{protocol}: {lost}, not {expected}");
    }
}

/// Goal (section IV-C.2): at the rate of loss that the hybrid scheme is made for TCP keeps at least half of its error-free goodput; the FEC
/// alone loses so many packets that little is left, less than without any (IV-C.1).
#[test]
fn tcp_keeps_its_goodput_at_the_design_rate_over_hybrid_alone() {
    let goodput = |protocol: &str, loss: f64| {
        let run = run(DOWNLOAD, &[&format!("link.wireless.protocol={protocol}"), &erasing(loss)]);
        assert!(run.intact, "{run:?}");
        assert!(run.goodput_bps <= run.bound_bps.max(1e6), "{protocol}: faster than the channel allows");
        run.goodput_bps
    };
    let (clean, lossy) = (goodput("harq", 0.0), goodput("harq", 0.1));
    // 10 Mbit/s, of which 10 % are redundancy, and 12 bytes of 124 a fragment headers: 7.8 Mbit/s of segments.
    assert!(clean > 7.2e6, "{clean}");
    assert!(lossy >= 0.5 * clean, "{lossy} of {clean}");
    let (fec, without) = (goodput("{ harq = { transmissions = 1 } }", 0.1), goodput("plain", 0.1));
    assert!(fec < 0.25 * clean && fec < 0.5 * without, "{fec} over FEC, {without} without");
}

/// Goal: what the line is used for is told apart, and the way back carries reports where blocks may be sent again.
#[test]
fn air_time_is_accounted_for_by_kind() {
    for (protocol, reports, again) in
        [("harq", true, 0.351), ("{ harq = { transmissions = 1 } }", false, 0.0)]
    {
        let run = run(DATAGRAMS, &[&format!("link.wireless.protocol={protocol}")]);
        let down = |name: &str| run.links["wireless/down"][name] as f64;
        let all = down("bits-new") + down("bits-retransmission") + down("bits-repair");
        assert!((down("bits-repair") / all - 0.1).abs() < 0.001, "one of ten frames");
        let measured = down("bits-retransmission") / down("bits-new");
        assert!((measured - again).abs() < 0.03, "{measured}");
        assert_eq!(run.links["wireless/up"]["bits-control"] > 0, reports);
        assert!(down("endpoint-bytes-repair") > 0.0);
    }
}
