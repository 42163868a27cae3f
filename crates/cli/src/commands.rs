//! One file per subcommand: its arguments and what it prints.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// TCP/IP over satellite and lossy wireless links: a gateway, and a laboratory that runs the same machines.
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {}

/// Runs the chosen subcommand.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    match cli.command {}
}
