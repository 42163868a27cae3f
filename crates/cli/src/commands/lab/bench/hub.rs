//! `longhaul bench hub`: a hub and a fleet of terminals.

use std::process::ExitCode;

use base::{Duration, Rate};
use field::fleet::{self, Options, Run};
use field::testbed::TestbedError;
use gateway::signals::Signals;

use crate::commands::outcome::{failure, say};

/// Measure a hub with many terminals: its processor time and memory, and how fast all come back. Needs root.
///
/// The hub is a gateway in a network namespace of its own; the terminals, with real sessions over real sockets, are in this process and
/// share the machine with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench hub --peers 1,10,100,1000
  longhaul bench hub --peers 100 --workers 2
  longhaul bench hub --idle 10000
  longhaul bench hub --storm --peers 1000
  longhaul bench hub --reload --peers 100
  longhaul bench hub --bare --peers 1,1000")]
pub(crate) struct Arguments {
    /// Numbers of terminals, measured one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    peers: Vec<u32>,
    /// What all terminals together are sent, as packets of 1400 bytes.
    #[arg(long, default_value = "100 Mbit/s")]
    rate: Rate,
    /// Measured length of each run, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Measure a hub with so many terminals to which nothing is sent.
    #[arg(long, conflicts_with = "storm", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    idle: Option<u32>,
    /// Have the hub, then all terminals but ten, begin anew at once.
    #[arg(long)]
    storm: bool,
    /// Have other peers come, change and go with reloads of the hub's configuration while all terminals have a transfer.
    #[arg(long, conflicts_with_all = ["storm", "idle"])]
    reload: bool,
    /// Measure what the kernel's part costs, without a gateway: the same packets, read from a device, leave unencrypted in the same batches.
    #[arg(long, conflicts_with_all = ["storm", "idle", "reload"])]
    bare: bool,
    /// Threads of the hub [default: the gateway's own].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16))]
    workers: Option<u32>,
    /// A line of the `[link]` table at both ends; may be repeated.
    #[arg(long, value_name = "KEY = VALUE", default_value = "rate = \"max\"")]
    link: Vec<String>,
    /// Print one JSON array instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let options = Options {
        peers: args.peers.clone(),
        duration: Duration::from_secs(args.seconds.into()),
        rate: args.rate,
        idle: args.idle,
        storm: args.storm,
        reload: args.reload,
        bare: args.bare,
        link: args.link.join("\n"),
        workers: args.workers,
    };
    if !args.json {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        say!("a hub, and its terminals in one process; {cores} cores for all of it\n");
    }
    let progress = |run: &Run| {
        if !args.json {
            show(run);
        }
    };
    let result = Signals::new()
        .map_err(TestbedError::from)
        .and_then(|mut signals| fleet::run(&options, &mut signals, progress));
    match result {
        Ok(runs) if args.json => say!("{:#}", serde_json::json!(runs)),
        Ok(runs) => compare(&runs),
        Err(error) => return failure(error),
    }
    ExitCode::SUCCESS
}

fn show(run: &Run) {
    let Run { peers, connected_seconds, .. } = run;
    if let Some(storm) = &run.storm {
        say!(
            "{peers:6} terminals: connected in {connected_seconds:.1} s; {:.1} s after the hub restarted, {:.1} s after all but ten \
             terminals did, while the longest pause of a transfer to those was {:.0} ms",
            storm.hub_restart_seconds,
            storm.terminals_restart_seconds,
            storm.longest_pause_seconds * 1e3
        );
    } else if let Some(reload) = &run.reload {
        say!(
            "{peers:6} terminals: {} reloads, each with {} peers that came, changed or went; the longest pause of a transfer to the others \
             was {:.0} ms, and {:.0} ms in as much time without",
            reload.times,
            reload.changes,
            reload.longest_pause_seconds * 1e3,
            reload.usual_pause_seconds * 1e3
        );
    } else if let Some(bytes) = run.hub_bytes_per_peer {
        say!(
            "{peers:6} idle terminals: connected in {connected_seconds:.1} s; {:.1} % of a core, {:.1} KB each",
            run.hub_cores * 100.0,
            bytes / 1e3
        );
    } else if run.hub_bytes == 0 {
        say!(
            "{peers:6} destinations: {:.1} of {:.1} Mbit/s left; {:.3} s of a core for a gigabit",
            run.mbps,
            run.offered_mbps,
            run.hub_seconds_per_gbit
        );
    } else {
        say!(
            "{peers:6} terminals: connected in {connected_seconds:.1} s; {:.1} of {:.1} Mbit/s came out; {:.3} s of a core \
             for a gigabit, {:.1} MB",
            run.mbps,
            run.offered_mbps,
            run.hub_seconds_per_gbit,
            run.hub_bytes as f64 / 1e6
        );
    }
}

/// How the processor time for a gigabit grows from the first run on.
fn compare(runs: &[Run]) {
    let active: Vec<&Run> =
        runs.iter().filter(|run| run.mbps > 0.0 && run.hub_bytes_per_peer.is_none()).collect();
    if let [first, .., last] = &active[..] {
        say!(
            "\nfor a gigabit, {} terminals take {:.2} times the processor time of {}",
            last.peers,
            last.hub_seconds_per_gbit / first.hub_seconds_per_gbit,
            first.peers
        );
    }
}
