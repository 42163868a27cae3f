//! `longhaul run`: any scenario.

use std::path::PathBuf;
use std::process::ExitCode;

use lab::report::{COLUMN, Points};
use lab::run::{Captures, Recordings};
use lab::scenario::{Override, Suite};

use super::captures;
use super::suite::{self, Output};
use crate::commands::outcome::{self, complain, misconfigured, say};

/// Run a scenario in virtual time and compare its schemes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul run scenarios/demo/download.toml
  longhaul run scenarios/demo/download.toml --seeds 20 --out out/download
  longhaul run scenarios/demo/download.toml \\
      --set link.satellite.channel.delay=\"100 ms\"
  longhaul run scenarios/demo/download.toml --seeds 1 --pcap server
  longhaul run scenarios/demo/download.toml --seeds 1 --pcap satellite
  longhaul run scenarios/demo/download.toml --seeds 1 --log events.jsonl \\
      --log-scheme TCP")]
pub(crate) struct Arguments {
    /// Scenario file.
    scenario: PathBuf,
    /// First seed [default: the scenario's].
    #[arg(long, value_parser = clap::value_parser!(u64).range(..1 << 63))]
    seed: Option<u64>,
    /// Number of seeds to run each scheme with [default: the scenario's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Runs at the same time [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Directory to write a report to.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Replace another command's results in --out.
    #[arg(long, requires = "out")]
    force: bool,
    /// Width of figures for print, in pt, in, mm or cm [default: a column of a page with two].
    #[arg(long, value_name = "WIDTH", default_value_t = COLUMN, hide_default_value = true, requires = "out")]
    figure_width: Points,
    /// Capture a node's packets, or a link's frames, in each scheme's first run, for Wireshark (docs/captures.md).
    #[arg(long, value_name = "NODE|LINK")]
    pcap: Option<String>,
    /// Write every event of the first run to this file, one JSON object per line (docs/events.md).
    #[arg(long, value_name = "PATH")]
    log: Option<PathBuf>,
    /// Scheme to log [default: the first].
    #[arg(long, value_name = "SCHEME", requires = "log")]
    log_scheme: Option<String>,
    /// Set a key of the scenario: a dotted path and a TOML value; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Override>,
    /// Check the scenario and the options, print what would run, and exit.
    #[arg(long)]
    check: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let mut overrides = arguments.set.clone();
    overrides.extend(arguments.seed.map(|seed| Override::new("seed", seed)));
    overrides.extend(arguments.seeds.map(|seeds| Override::new("seeds", u64::from(seeds))));
    let suite = match Suite::load(&arguments.scenario, &overrides) {
        Ok(suite) => suite,
        Err(error) => return misconfigured(error),
    };
    let directory = arguments.out.clone().unwrap_or_default();
    let captures = match &arguments.pcap {
        None => Captures::default(),
        Some(name) => match captures::of(&suite, name, &directory) {
            Ok(captures) => captures,
            Err(complaint) => return misconfigured(format!("--pcap: {complaint}")),
        },
    };
    let schemes = || suite.schemes.iter().map(|(name, _)| name);
    if let Some(scheme) = &arguments.log_scheme
        && !schemes().any(|known| known == scheme)
    {
        let known = schemes().cloned().collect::<Vec<_>>().join(", ");
        return misconfigured(format!("--log-scheme {scheme}: no such scheme; allowed are {known}"));
    }
    suite.ineffective.iter().for_each(complain);
    for (link, scheme, edge) in suite.edges() {
        complain(format_args!("link {link} of {scheme}: {edge}"));
    }
    if arguments.check {
        let (schemes, seeds) = (suite.schemes.len(), suite.scenario.seeds);
        say!(
            "{}: ok; {schemes} schemes, {seeds} seeds, {} runs",
            arguments.scenario.display(),
            schemes as u64 * u64::from(seeds)
        );
        return ExitCode::SUCCESS;
    }
    let mut command = format!("longhaul run {}", outcome::quoted(&arguments.scenario.display().to_string()));
    for change in &overrides {
        command += &format!(" --set {}", outcome::quoted(&change.to_string()));
    }
    let logged = arguments.log_scheme.as_ref().unwrap_or(&suite.schemes[0].0);
    let log = arguments.log.clone().map(|path| (logged.clone(), path));
    let recordings = Recordings { plots: arguments.out.is_some(), captures, log };
    let output = Output {
        out: arguments.out.clone(),
        force: arguments.force,
        figure_width: arguments.figure_width,
        jobs: arguments.jobs,
        json: arguments.json,
        recordings,
        command,
    };
    suite::execute(&suite, &output)
}
