//! Gateways that start anew: what is on its way is lost, and nothing else.

use crate::gateways::{at, received, run_with};
use lab::run::Run;
use longhaul_lab as lab;

const BASE: &str = include_str!("../../../scenarios/rate/base.toml");

/// A call of 50 packets a second, beside what the base has.
const CALL: &str = "[traffic.call.rate]\nfrom = \"server\"\nto = \"client\"\nrate = \"64 kbit/s\"\nrecord = \"160 B\"\ntransport = \"udp\"\n";

/// The longest time between two arrivals of a source in some seconds of the run.
fn longest_gap(run: &Run, name: &str, from: u64, to: u64) -> f64 {
    let received = run.progress.iter().find(|received| received.name == name).unwrap();
    let times: Vec<_> = received.points.iter().map(|(then, _)| *then).filter(|then| (at(from)..at(to)).contains(then)).collect();
    times.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_secs_f64()).fold(0.0, f64::max)
}

#[test]
fn probe() {
    for (name, extra) in [("east", "[gateway.east]\nrestarts = [\"20 s\"]\n"), ("west", "[gateway.west]\nrestarts = [\"20 s\"]\n"), ("both", "[gateway.west]\nrestarts = [\"20 s\"]\n[gateway.east]\nrestarts = [\"20 s\"]\n")] {
        for pep in ["true", "false"] {
            let enabled = format!("tunnel.gateways.pep.enabled={pep}");
            let run = run_with(BASE, &format!("{CALL}{extra}"), &["duration=60 s", &enabled]);
            println!("{name} pep {pep}: gap {:.2} before {:.2}, download {:.2} then {:.2}, failed {:?}", longest_gap(&run, "call", 15, 60), longest_gap(&run, "call", 5, 15), received(&run, "download", 10, 20), received(&run, "download", 30, 60), run.transfers.iter().map(|t| (t.failed, t.bytes)).collect::<Vec<_>>());
            println!("{:?}", run.tunnels["west"].events);
        }
    }
}
