//! `longhaul bench`: the project's own benchmarks.

use std::process::ExitCode;
use std::time::Instant;

use clap::Subcommand;
use lab::bench::Bottleneck;
use lab::statistics::Spread;

use super::bench_gateway;

/// Measure the engine or the gateway on this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul bench engine --runs 9")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Ten SACK flows through one bottleneck: packets that pass it per second of one core.
    Engine(Engine),
    Gateway(bench_gateway::Arguments),
}

#[derive(Debug, clap::Args)]
struct Engine {
    /// Timed runs of each setting, in turn.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Only this frame erasure, in percent.
    #[arg(long)]
    erasure: Option<f64>,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    match &arguments.benchmark {
        Benchmark::Engine(engine) => {
            bench_engine(engine);
            ExitCode::SUCCESS
        }
        Benchmark::Gateway(gateway) => bench_gateway::execute(gateway),
    }
}

/// Frame erasures of the benchmark, in percent.
const ERASURES: [f64; 3] = [0.0, 1.0, 10.0];

fn bench_engine(arguments: &Engine) {
    let erasures = arguments.erasure.map_or(ERASURES.to_vec(), |only| vec![only]);
    println!("ten SACK flows, 500-byte segments, 100 simulated seconds; one core\n");
    println!("erasure  packets  events/packet  million packets/s: median (min - max)  trace");
    for erasure in erasures {
        let mut rates = Vec::new();
        let mut passed = None;
        for _ in 0..arguments.runs {
            let mut network = Bottleneck::new(erasure / 100.0, 1);
            let (result, seconds) = timed(|| network.run());
            rates.push(result.packets as f64 / seconds / 1e6);
            passed = Some(result);
        }
        let (Some(passed), Some(rate)) = (passed, Spread::of(rates)) else { continue };
        println!(
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
        println!("\npeak memory of this process: {peak:.1} MB");
    }
}

/// What `work` returns, and the seconds that it took.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// The largest resident size of this process so far, where the system tells.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
