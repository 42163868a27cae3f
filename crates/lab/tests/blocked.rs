//! Protocols with long windows on Faulkner's channel: what lies between blockages is used to the end.

use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

const SCENARIO: &str = r#"
name = "blocked"
duration = "1500 s"
[link.satellite]
ends = ["server", "terminal"]
[link.satellite.channel]
rate = "262144 bit/s"
delay = "250 ms"
errors = { gilbert-elliott = { f = 0.7, d = "1 s" } }
[tcp]
preset = "linux"
[traffic.download.bulk]
from = "server"
to = "terminal"
[[scheme]]
name = "coded"
set = { link.satellite.protocol = "coded" }
[[scheme]]
name = "cotmll"
set = { link.satellite.protocol = "cotmll" }
[[scheme]]
name = "default"
set = { link.satellite = { protocol = "coded", pep = {} } }
[[scheme]]
name = "long frames"
set = { link.satellite = { protocol = { coded = { frame-payload = 1500 } }, pep = {} } }
"#;

/// Goal: what a blockage cuts is kept small. Of the capacity less the headers of long frames 0.92 at least are used behind a proxy and 0.9
/// without (nothing exceeds 0.96 with any frames, `docs/coded.md`), coded ARQ is as good as COTMLL, and long frames are worse.
#[test]
fn frames_are_as_long_as_the_time_between_blockages_asks() {
    let suite = Suite::parse("blocked.toml", SCENARIO, Path::new(""), &[]).unwrap();
    let run = |scheme: usize| -> Run {
        let (name, scenario) = &suite.schemes[scheme];
        let run = run::run(name, scenario, 3, &Watch::default()).unwrap();
        assert!(run.intact);
        run
    };
    let [coded, cotmll, default, long] = [0, 1, 2, 3].map(|scheme| {
        let run = run(scheme);
        run.goodput_bps / run.bound_bps
    });
    assert!(coded > 0.9 && cotmll > 0.9 && default > 0.92, "{coded} {cotmll} {default}");
    assert!((coded / cotmll - 1.0).abs() < 0.02, "{coded} {cotmll}");
    assert!(long < 0.98 * default, "{long} {default}");
}

const PROXIES: &str = r#"
name = "proxies"
duration = "600 s"
[tcp]
preset = "linux"
[link.sky]
ends = ["hub", "terminal"]
protocol = "plain"
queue.drop-tail.time = "500 ms"
pep = {}
[link.sky.channel]
rate = "262144 bit/s"
delay = "250 ms"
errors.gilbert-elliott = { f = 0.5, d = "1 s" }
[traffic.download.bulk]
from = "hub"
to = "terminal"
connections = 4
jitter = "1 s"
"#;

/// Found on a link that is blocked half of the time: the answer to a SYN was lost and never came again, for data that followed it put off its
/// time-out; and time-outs that had doubled a few times slept through what was open. These seeds carried 0, 0.02, 0.03 and 0.04 then.
#[test]
fn proxies_use_a_link_that_is_blocked_half_of_the_time() {
    let suite = Suite::parse("proxies.toml", PROXIES, Path::new(""), &[]).unwrap();
    let (name, scenario) = &suite.schemes[0];
    for seed in [7, 20, 26, 27] {
        let run = run::run(name, scenario, seed, &Watch::default()).unwrap();
        assert!(run.intact);
        assert!(run.goodput_bps > 0.75 * run.bound_bps, "seed {seed}: {}", run.goodput_bps / run.bound_bps);
    }
}
