//! `longhaul bench gateway`: one TCP stream through two encrypted gateways.

use std::process::ExitCode;

use base::Duration;
use field::bench::{self, Options, Report, Scheme};
use field::testbed::TestbedError;
use gateway::signals::Signals;

use crate::commands::outcome::{failure, say};

/// Measure one TCP stream through two encrypted gateways, and through wireguard-go if it is installed. Needs root.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul bench gateway --runs 5 --seconds 4")]
pub(crate) struct Arguments {
    /// Runs of each scheme; schemes take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Measured length of each run, in seconds, after one second of warm-up.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Only these schemes; may be repeated [default: all that this machine can run].
    #[arg(long, value_enum)]
    scheme: Vec<SchemeName>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SchemeName {
    Plain,
    Cotmll,
    Coded,
    PlainPep,
    CotmllPep,
    CodedPep,
    Default,
    WireguardGo,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let scheme = |name: &SchemeName| match name {
        SchemeName::Plain => Scheme::Plain,
        SchemeName::Cotmll => Scheme::Cotmll,
        SchemeName::PlainPep => Scheme::PlainPep,
        SchemeName::Coded => Scheme::Coded,
        SchemeName::CotmllPep => Scheme::CotmllPep,
        SchemeName::CodedPep => Scheme::CodedPep,
        SchemeName::Default => Scheme::Default,
        SchemeName::WireguardGo => Scheme::WireguardGo,
    };
    let options = Options {
        duration: Duration::from_secs(args.seconds.into()),
        repetitions: args.runs,
        schemes: args.scheme.iter().map(scheme).collect(),
    };
    let progress = |run: &bench::Run| {
        if !args.json {
            say!("{:13} {:6.2} Gbit/s", run.scheme.name(), run.gbps);
        }
    };
    let result = Signals::new()
        .map_err(TestbedError::from)
        .and_then(|mut signals| bench::run(&options, &mut signals, progress));
    match result {
        Ok(report) if args.json => say!("{}", serde_json::json!(report)),
        Ok(report) => print(&report),
        Err(error) => return failure(error),
    }
    ExitCode::SUCCESS
}

fn print(report: &Report) {
    say!("\none TCP stream through two encrypted gateways; {} cores for all of it\n", report.cores);
    say!("scheme         median    min    max  Gbit/s  runs  vs wireguard-go");
    for summary in &report.summaries {
        let ratio = summary.to_wireguard_go.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        say!(
            "{:13} {:7.2} {:6.2} {:6.2}          {:4}  {ratio:>15}",
            summary.scheme.name(),
            summary.median_gbps,
            summary.min_gbps,
            summary.max_gbps,
            summary.runs,
        );
    }
}
