//! `longhaul demo`: the main job on an embedded link.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::report::COLUMN;
use lab::run::Recordings;
use lab::scenario::Suite;

use super::suite::{self, Output};
use crate::commands::outcome::misconfigured;

/// Download 1 MB through a blocked satellite link, with TCP alone and with TCP over link-layer ARQ.
///
/// The demo runs in virtual time: it needs neither root nor a network, and takes less than a minute.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  longhaul demo\n  longhaul demo --json | jq '.runs[] | {scheme, seed, seconds}'"
)]
pub(crate) struct Arguments {
    /// Directory to write the report to.
    #[arg(long, default_value = "out/demo")]
    out: PathBuf,
    /// Replace another command's results in --out.
    #[arg(long)]
    force: bool,
    /// Runs at the same time [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

const SCENARIO: &str = include_str!("../../../../../scenarios/demo/download.toml");

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let suite = match Suite::parse("scenarios/demo/download.toml", SCENARIO, Path::new(""), &[]) {
        Ok(suite) => suite,
        Err(error) => return misconfigured(error),
    };
    let output = Output {
        out: Some(arguments.out.clone()),
        force: arguments.force,
        figure_width: COLUMN,
        jobs: arguments.jobs,
        json: arguments.json,
        recordings: Recordings { plots: true, ..Recordings::default() },
        command: "longhaul run scenarios/demo/download.toml".to_owned(),
    };
    suite::execute(&suite, &output)
}
