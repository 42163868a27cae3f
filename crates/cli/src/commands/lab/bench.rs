//! `longhaul bench`: the project's own benchmarks.

mod channels;
mod code;
mod faulkner;
mod gateway;
mod hub;
mod latency;
mod pages;
mod paths;
mod scale;
mod tcp;

use std::process::ExitCode;
use std::time::Instant;

use clap::Subcommand;
use lab::bench::{Bottleneck, Passed};
use lab::statistics::Spread;

use crate::commands::outcome::say;

/// Measure the engine, the gateway or TCP on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul bench engine --runs 9")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Measure how many packets per second of one core the engine simulates: ten SACK flows through one bottleneck.
    Engine(Engine),
    Channels(channels::Arguments),
    Code(code::Arguments),
    Faulkner(faulkner::Arguments),
    Gateway(gateway::Arguments),
    Hub(hub::Arguments),
    Latency(latency::Arguments),
    Pages(pages::Arguments),
    Paths(paths::Arguments),
    Scale(scale::Arguments),
    Tcp(tcp::Arguments),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul bench engine --runs 9 --erasure 1")]
struct Engine {
    /// Timed runs of each setting; settings take turns.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Only this frame erasure rate, in percent [default: all].
    #[arg(long, value_parser = percent)]
    erasure: Option<f64>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("allowed are 0 to 100".to_owned()),
    }
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    match &arguments.benchmark {
        Benchmark::Engine(engine) => {
            bench_engine(engine);
            ExitCode::SUCCESS
        }
        Benchmark::Channels(channels) => channels::execute(channels),
        Benchmark::Code(code) => code::execute(code),
        Benchmark::Faulkner(faulkner) => faulkner::execute(faulkner),
        Benchmark::Gateway(gateway) => gateway::execute(gateway),
        Benchmark::Hub(hub) => hub::execute(hub),
        Benchmark::Latency(latency) => latency::execute(latency),
        Benchmark::Pages(pages) => pages::execute(pages),
        Benchmark::Paths(paths) => paths::execute(paths),
        Benchmark::Scale(scale) => scale::execute(scale),
        Benchmark::Tcp(tcp) => tcp::execute(tcp),
    }
}

/// Frame erasures of the benchmark, in percent.
const ERASURES: [f64; 3] = [0.0, 1.0, 10.0];

/// One setting's runs.
struct Measured {
    erasure: f64,
    passed: Passed,
    /// Million packets a second.
    rate: Spread,
}

fn bench_engine(arguments: &Engine) {
    let erasures = arguments.erasure.map_or(ERASURES.to_vec(), |only| vec![only]);
    let measured: Vec<_> =
        erasures.into_iter().filter_map(|erasure| measure(erasure, arguments.runs)).collect();
    if arguments.json {
        say!("{:#}", json(&measured));
    } else {
        print_table(&measured);
    }
}

fn measure(erasure: f64, runs: u32) -> Option<Measured> {
    let mut rates = Vec::new();
    let mut passed = None;
    for _ in 0..runs {
        let mut network = Bottleneck::new(erasure / 100.0, 1);
        let (result, seconds) = timed(|| network.run());
        rates.push(result.packets as f64 / seconds / 1e6);
        passed = Some(result);
    }
    Some(Measured { erasure, passed: passed?, rate: Spread::of(rates)? })
}

fn print_table(measured: &[Measured]) {
    say!("ten SACK flows, 500-byte segments, 100 simulated seconds; one core\n");
    say!("erasure  packets  events/packet  million packets/s: median (min - max)  trace");
    for Measured { erasure, passed, rate } in measured {
        say!(
            "{erasure:>5} %  {:>7}  {:>13.2}  {:>17.2} ({:.2} - {:.2})             {:016x}",
            passed.packets,
            passed.events as f64 / passed.packets as f64,
            rate.median,
            rate.min,
            rate.max,
            passed.trace_hash
        );
    }
    if let Some(peak) = peak_memory_mb() {
        say!("\npeak memory of this process: {peak:.1} MB");
    }
}

fn json(measured: &[Measured]) -> serde_json::Value {
    let setting = |Measured { erasure, passed, rate }: &Measured| {
        serde_json::json!({
            "erasure_percent": erasure,
            "packets": passed.packets,
            "events": passed.events,
            "million_packets_per_second": rate,
            "trace_hash": format!("{:016x}", passed.trace_hash),
        })
    };
    serde_json::json!({
        "settings": measured.iter().map(setting).collect::<Vec<_>>(),
        "peak_memory_mb": peak_memory_mb(),
    })
}

/// What `work` returns, and the seconds of one core that it took: what else the machine does does not count, where the
/// system tells.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let (start, ran_before) = (Instant::now(), seconds_on_processor());
    let result = work();
    let elapsed = start.elapsed().as_secs_f64();
    let ran = seconds_on_processor().zip(ran_before).map(|(after, before)| after - before);
    // The kernel brings its count up to date a few hundred times a second.
    (result, ran.filter(|_| elapsed > 0.1).unwrap_or(elapsed))
}

/// How long this thread has run, where the system tells (proc(5), `schedstat`).
fn seconds_on_processor() -> Option<f64> {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = counted.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

/// The largest resident size of this process so far, where the system tells.
pub(crate) fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
