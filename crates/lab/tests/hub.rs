//! A hub and its terminals, which share one carrier: who downloads has its part by weight, and who reads pages does not wait for downloads.
//!
//! `LONGHAUL_HUB_TERMINALS=1000 cargo test --release -p longhaul-lab --test all hub:: -- --nocapture` runs a thousand, for a minute each.

use std::fmt::Write as _;
use std::path::Path;

use base::{Duration, Instant};
use lab::run::{self, Run, Watch};
use lab::scenario::Suite;
use longhaul_lab as lab;

/// Terminals of a usual test.
const TERMINALS: usize = 40;

/// Mbit/s of the carrier for each terminal, whose line carries one: it is shared five times over.
const SHARE: f64 = 0.2;

/// Bytes of a page.
const PAGE: f64 = 8000.0;

/// What a terminal does, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// It reads page after page.
    Pages,
    /// It downloads all the time, with a tunnel of this weight.
    Download(u32),
}

impl Kind {
    fn of(terminal: usize) -> Self {
        match terminal % 10 {
            0..=2 => Self::Pages,
            3 => Self::Download(2),
            4 => Self::Download(4),
            _ => Self::Download(1),
        }
    }
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// A hub with a server behind it, and terminals with a host each; without `downloads` only those that read pages have something to do.
fn scenario(terminals: usize, seconds: u64, downloads: bool) -> Suite {
    let rate = (SHARE * 1e6) as usize * terminals;
    let mut text = format!(
        r#"
name = "A hub and its terminals"
duration = "{seconds} s"
tcp.preset = "linux"
share.hub.rate = "{rate} bit/s"

[link.lan]
ends = ["server", "hub"]
channel = {{ rate = "1 Gbit/s", delay = "100 us" }}
queue = {{ drop-tail = {{ packets = 10000 }} }}

[link.wan]
ends = ["hub", "sky"]
channel = {{ rate = "{rate} bit/s", delay = "300 ms" }}
queue = {{ drop-tail = {{ time = "200 ms" }} }}
"#
    );
    for terminal in 0..terminals {
        let (weight, traffic) = match Kind::of(terminal) {
            Kind::Download(weight) if downloads => {
                (weight, format!("[traffic.download-{terminal}.bulk]\njitter = \"1 s\""))
            }
            Kind::Download(weight) => {
                // Something ends there, so that the tunnel is the same.
                (weight, format!("[traffic.download-{terminal}.bulk]\nsize = \"1 B\""))
            }
            Kind::Pages => {
                let page =
                    format!("request = \"400 B\"\nreply = \"{PAGE} B\"\nthink = \"1 s\"\nexponential = true");
                (1, format!("[traffic.page-{terminal}.transactions]\n{page}"))
            }
        };
        write!(
            text,
            r#"
[link.line-{terminal}]
ends = ["sky", "terminal-{terminal}"]
channel = {{ rate = "1 Mbit/s", delay = "1 ms" }}
queue = {{ drop-tail = {{ time = "200 ms" }} }}
[link.site-{terminal}]
ends = ["terminal-{terminal}", "site-{terminal}"]
channel = {{ rate = "100 Mbit/s", delay = "100 us" }}
[tunnel.to-{terminal}]
ends = ["terminal-{terminal}", "hub"]
weight = {weight}
{traffic}
from = "server"
to = "site-{terminal}"
start = "3 s"
"#
        )
        .expect("text takes text");
    }
    Suite::parse("hub.toml", &text, Path::new(""), &[]).unwrap()
}

fn run(suite: &Suite) -> Run {
    let watch = Watch { progress: true, latencies: true, ..Watch::default() };
    let run = run::run("hub", &suite.schemes[0].1, suite.scenario.seed, &watch).unwrap();
    assert!(run.intact);
    run
}

/// Mbit/s that a terminal downloaded from a second of the run on.
fn downloaded(run: &Run, terminal: usize, from: u64, to: u64) -> f64 {
    let name = format!("download-{terminal}");
    let received = run.progress.iter().find(|received| received.name == name).unwrap();
    let by = |second: u64| {
        let at = Instant::ZERO + Duration::from_secs(second);
        let next = received.points.partition_point(|(then, _)| *then <= at);
        received.points[..next].last().map_or(0, |(_, bytes)| *bytes)
    };
    (by(to) - by(from)) as f64 * 8e-6 / (to - from) as f64
}

/// Jain's index: one if all are equal.
fn jain(parts: &[f64]) -> f64 {
    let (sum, squares) = (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
    sum * sum / (squares * parts.len() as f64)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How long pages took that were asked for from a second of the run on, in order.
fn pages(run: &Run, from: u64) -> Vec<f64> {
    let from = Instant::ZERO + Duration::from_secs(from);
    let of_pages = run.latencies.iter().filter(|(name, _)| name.starts_with("page-"));
    let samples = of_pages.flat_map(|(_, samples)| samples).filter(|sample| sample.sent >= from);
    let mut pages: Vec<f64> = samples.map(|sample| sample.latency.as_secs_f64()).collect();
    pages.sort_by(f64::total_cmp);
    pages
}

/// The most memory that this process has had, as the system says it, where it does.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown").to_owned()
}

/// Goal: what the carrier has is shared by weights, to a twentieth and with a Jain's index of at least .98 among all that download; a page
/// takes no longer than it does alone and at its tunnel's part of the carrier.
#[test]
fn terminals_share_the_carrier_of_their_hub() {
    let terminals = number("LONGHAUL_HUB_TERMINALS").unwrap_or(TERMINALS);
    let (seconds, from) = if terminals > 100 { (60, 15) } else { (20, 8) };
    let busy = run(&scenario(terminals, seconds, true));
    let (mut parts, mut by_weight) = (Vec::new(), [1, 2, 4].map(|weight| (f64::from(weight), Vec::new())));
    let mut sum = 0.0;
    for terminal in 0..terminals {
        let Kind::Download(weight) = Kind::of(terminal) else { continue };
        let rate = downloaded(&busy, terminal, from, seconds);
        let part = rate / f64::from(weight);
        sum += rate;
        parts.push(part);
        let of_weight = by_weight.iter_mut().find(|(other, _)| *other == f64::from(weight));
        of_weight.expect("a weight of three").1.push(part);
    }
    let unit = mean(&parts);
    let index = jain(&parts);
    println!("{terminals} terminals: {sum:.2} Mbit/s of downloads, Jain's index {index:.4}");
    for (weight, parts) in &by_weight {
        let met = mean(parts) / unit;
        println!("weight {weight}: {:.4} of its part, {:.4} Mbit/s", met, mean(parts) * weight);
    }
    println!("{}", peak_memory());
    let loaded = pages(&busy, from);
    let at = |pages: &[f64], part: f64| pages[(pages.len() as f64 * part) as usize];
    println!("{} pages: median {:.3} s, 95 % {:.3} s", loaded.len(), at(&loaded, 0.5), at(&loaded, 0.95));
    for name in ["tunnel-packets-from-elsewhere", "tunnel-packets-without-peer"] {
        assert_eq!(busy.nodes["hub"][name], 0, "{name}");
    }
    let idle = run(&scenario(terminals, seconds, false));
    for (what, run) in [("with downloads", &busy), ("without", &idle)] {
        let sent = |name: &str| run.nodes["hub"][name];
        let (bytes, datagrams) = (sent("tunnel-bytes-sent"), sent("tunnel-datagrams-sent"));
        println!("{what}, the hub sent {bytes} bytes in {datagrams} datagrams; {} events", run.events);
    }
    let alone = pages(&idle, from);
    println!("alone {} pages: median {:.3} s, 95 % {:.3} s", alone.len(), at(&alone, 0.5), at(&alone, 0.95));
    assert!(index >= 0.98, "{parts:?}");
    for (weight, parts) in &by_weight {
        assert!((mean(parts) / unit - 1.0).abs() <= 0.05, "weight {weight}: {parts:?}");
    }
    // The rest is headers, what is repaired before it is missed, and what tunnels say to each other.
    assert!(sum >= 0.7 * SHARE * terminals as f64, "{sum}");
    let own = PAGE * 8e-6 / unit;
    for part in [0.5, 0.95] {
        let (loaded, alone) = (at(&loaded, part), at(&alone, part));
        assert!(loaded <= alone + own, "{loaded} s, alone {alone} s, {own} s at its part");
    }
}

/// Goal: what cannot be is refused in words that say what can.
#[test]
fn what_cannot_be_shared_is_refused() {
    let text = toml::to_string(&scenario(2, 10, true).scenario).unwrap();
    let complaint = |change: &str| {
        let parsed = Suite::parse("hub.toml", &text, Path::new(""), &[change.parse().unwrap()]);
        parsed.map(|_| ()).unwrap_err().to_string()
    };
    for (change, want) in [
        (
            "tunnel.again.ends=[\"hub\", \"terminal-1\"]",
            "tunnels \"again\" and \"to-1\" both join \"terminal-1\" and \"hub\"; allowed is one between two nodes",
        ),
        ("tunnel.to-1.weight=0", "0 is out of range; allowed are 1 to 1000"),
        ("tunnel.to-1.weight=1001", "1001 is out of range; allowed are 1 to 1000"),
        (
            "share.sky.rate=1 Mbit/s",
            "share \"sky\" is of a node at which no tunnel ends; allowed are hub, terminal-0, terminal-1",
        ),
        (
            "share.hub.rate=0 bit/s",
            "share \"hub\" has rate = \"0 bit/s\"; allowed are rates above 0, or no share",
        ),
    ] {
        let complaint = complaint(change);
        assert!(complaint.contains(want), "{complaint}");
    }
}
