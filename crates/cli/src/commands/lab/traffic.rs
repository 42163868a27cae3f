//! `longhaul traffic`: test traffic between a server and its clients, over whatever network lies between.

use std::io::IsTerminal as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;

use base::units::Size;
use base::{Duration, Rate};
use clap::Subcommand;
use field::traffic::request::{Congestion, Direction, Extent, Model};
use field::traffic::{self, Distribution, Load, MOST_CONNECTIONS, Options, Report, Server};
use gateway::signals::Signals;
use indicatif::{ProgressBar, ProgressStyle};

use crate::commands::outcome::{complain, failure, misconfigured, say};

/// Generate and measure traffic: bulk transfers, rate-controlled streams, transactions.
///
/// Every byte is checked, and counted at the receiver. Several clients can use one server at the same time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul traffic serve --listen 0.0.0.0:5300
  longhaul traffic bulk 10.77.2.2:5300 --size 10MB --connections 4
  longhaul traffic rate 10.77.2.2:5300 --rate '50 kbit/s' --record 1kB \\
      --duration 60s --up
  longhaul traffic transactions 10.77.2.2:5300 --count 100 --request 200B \\
      --reply 8kB")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    Serve(Serve),
    Bulk(Bulk),
    Rate(RateControlled),
    Transactions(Transactions),
}

/// Serve all traffic models until SIGTERM or SIGINT. Anybody who can reach the address can use it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul traffic serve --listen 0.0.0.0:5300")]
struct Serve {
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Most connections at the same time; further ones are refused.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    connections: u32,
    /// Give up a connection on which no data has moved for this long.
    #[arg(long, value_name = "TIME", default_value_t = traffic::PATIENCE, value_parser = time)]
    patience: Duration,
    /// Print the counters on exit as a JSON object.
    #[arg(long)]
    json: bool,
}

/// Send as fast as TCP allows.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  longhaul traffic bulk 10.77.2.2:5300 --duration 30s --up --congestion bbr"
)]
struct Bulk {
    #[command(flatten)]
    client: Client,
    /// Amount of data on each connection, as in "10 MB".
    #[arg(long, conflicts_with = "duration", required_unless_present = "duration")]
    size: Option<Size>,
    /// Send for this long, instead of a --size.
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// Send to the server, instead of receiving from it.
    #[arg(long)]
    up: bool,
    /// Number of connections at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    connections: u32,
}

/// Send timestamped records at a fixed rate, and measure their latency.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul traffic rate 10.77.2.2:5300 --rate '50 kbit/s' --duration 60s")]
struct RateControlled {
    #[command(flatten)]
    client: Client,
    /// Rate of each connection, record headers included.
    #[arg(long)]
    rate: Rate,
    /// Size of a record, its 12-byte header included.
    #[arg(long, value_name = "SIZE", default_value = "1 kB")]
    record: Size,
    /// How long to send.
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = time)]
    duration: Duration,
    /// Send to the server, instead of receiving from it.
    #[arg(long)]
    up: bool,
    /// Number of connections at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    connections: u32,
}

/// Open many short connections, each with one request and one reply.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  longhaul traffic transactions 10.77.2.2:5300 --count 100 --concurrency 6"
)]
struct Transactions {
    #[command(flatten)]
    client: Client,
    /// Number of transactions.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,
    /// Size of each request; its first 60 bytes are the header.
    #[arg(long, value_name = "SIZE", default_value = "200 B")]
    request: Size,
    /// Size of each reply.
    #[arg(long, value_name = "SIZE", default_value = "8 kB")]
    reply: Size,
    /// Most transactions at the same time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    concurrency: u32,
    /// Time between the starts of consecutive transactions [default: each starts as soon as --concurrency allows].
    #[arg(long, value_name = "TIME")]
    interval: Option<Duration>,
}

#[derive(Debug, clap::Args)]
struct Client {
    /// Address and port of the server.
    #[arg(value_name = "ADDR:PORT")]
    server: String,
    /// Congestion control at both ends, such as cubic or bbr [default: each kernel's own].
    #[arg(long, value_name = "NAME")]
    congestion: Option<Congestion>,
    /// Give up a connection on which no data has moved for this long.
    #[arg(long, value_name = "TIME", default_value_t = traffic::PATIENCE, value_parser = time)]
    patience: Duration,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// A time that is not zero.
fn time(text: &str) -> Result<Duration, String> {
    match text.parse::<Duration>() {
        Ok(time) if time.is_zero() => Err("allowed are times longer than zero".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let direction = |up| if up { Direction::Up } else { Direction::Down };
    match &arguments.part {
        Part::Serve(serve) => execute_serve(serve),
        Part::Bulk(bulk) => {
            let extent = match (bulk.size, bulk.duration) {
                (_, Some(duration)) => Extent::Duration(duration),
                (size, None) => Extent::Size(size.map_or(0, |size| size.0)),
            };
            let model = Model::Bulk { direction: direction(bulk.up), extent };
            execute_client(&bulk.client, &Load::Streams { model, connections: bulk.connections })
        }
        Part::Rate(rate) => {
            let model = Model::Rate {
                direction: direction(rate.up),
                rate: rate.rate,
                record: u32::try_from(rate.record.0).unwrap_or(u32::MAX),
                duration: rate.duration,
            };
            execute_client(&rate.client, &Load::Streams { model, connections: rate.connections })
        }
        Part::Transactions(args) => {
            let model = Model::Transaction { request: args.request.0, reply: args.reply.0 };
            let (count, concurrency, interval) = (args.count, args.concurrency, args.interval);
            execute_client(&args.client, &Load::Transactions { model, count, concurrency, interval })
        }
    }
}

fn execute_serve(args: &Serve) -> ExitCode {
    let result = Signals::new().and_then(|mut signals| {
        let server = Server::new(args.listen, args.connections as usize, args.patience)?;
        if !args.json {
            say!("listening at {}", server.address()?);
        }
        server.run(&mut signals, |complaint| complain(complaint))
    });
    match result {
        Ok(counters) if args.json => say!("{}", serde_json::json!(counters)),
        Ok(counters) => say!(
            "{} connections: {} completed; refused: {} as too many, {} for their request, {} for their congestion \
             control; {} silent, {} broken",
            counters.connections,
            counters.completed,
            counters.refused_busy,
            counters.refused_request,
            counters.refused_congestion,
            counters.silent,
            counters.broken
        ),
        Err(error) => return failure(format_args!("{}: {error}", args.listen)),
    }
    ExitCode::SUCCESS
}

fn execute_client(client: &Client, load: &Load) -> ExitCode {
    let (Load::Streams { model, .. } | Load::Transactions { model, .. }) = load;
    if let Err(error) = model.check() {
        return misconfigured(error);
    }
    let server = match client.server.to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(server)) => server,
        Ok(None) => return misconfigured(format_args!("{}: no address", client.server)),
        Err(error) => return misconfigured(format_args!("{}: {error}", client.server)),
    };
    let options = Options { server, congestion: client.congestion, patience: client.patience };
    // On a terminal only: elsewhere nobody watches.
    let bar =
        if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {bytes}, {elapsed}") {
        bar.set_style(style);
    }
    let result = Signals::new().map_err(traffic::TrafficError::Thread).and_then(|mut signals| {
        traffic::run_until_signal(&options, load, &mut signals, |bytes| bar.set_position(bytes))
    });
    bar.finish_and_clear();
    match result {
        Ok(report) if client.json => say!("{:#}", serde_json::json!(report)),
        Ok(report) => print(load, &report),
        Err(error) => return failure(error),
    }
    ExitCode::SUCCESS
}

/// Lines of a table of throughput over time, at most.
const LINES: usize = 20;

fn print(load: &Load, report: &Report) {
    let whole = matches!(load, Load::Transactions { .. });
    say!(
        "{} bytes on {} connections in {:.3} s: {:.3} Mbit/s at the receiver; all bytes intact\n",
        report.bytes,
        report.connections,
        report.seconds,
        report.mbps
    );
    say!("        time       Mbit/s");
    let together = report.throughput_mbps.len().div_ceil(LINES).max(1);
    for (line, bins) in report.throughput_mbps.chunks(together).enumerate() {
        let from = (line * together) as f64 * report.interval_seconds;
        let until = from + bins.len() as f64 * report.interval_seconds;
        let mean = bins.iter().sum::<f64>() / bins.len() as f64;
        say!("{from:>7.1} - {until:<7.1} {mean:>8.3}");
    }
    say!("\nms                     n       min      mean       p50       p90       p99       max");
    if let Some(connect) = &report.connect_ms {
        row("connecting", connect);
    }
    if let Some(latency) = &report.latency_ms {
        row(if whole { "transaction" } else { "latency" }, latency);
    }
    if let Some(due) = report.records_due
        && report.records < due
    {
        say!("\n{} of {due} records could not be sent before the end", due - report.records);
    }
    match report.clock {
        Some(clock) if !clock.same_clock => say!(
            "\nThe server's clock differs from this one by {:+.3} ms, give or take {:.3} ms; latencies are as uncertain. {} records \
             seem to have arrived before they were sent.",
            clock.offset_ms,
            clock.uncertainty_ms,
            report.before_sent
        ),
        _ => {}
    }
}

fn row(name: &str, times: &Distribution) {
    say!(
        "{name:<14} {:>9} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3}",
        times.n,
        times.min,
        times.mean,
        times.p50,
        times.p90,
        times.p99,
        times.max
    );
}
