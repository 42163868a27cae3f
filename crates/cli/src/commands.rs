//! One file per subcommand: its arguments and what it prints.

mod bench;
mod demo;
mod run;
mod suite;

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
enum Command {
    Demo(demo::Arguments),
    Run(run::Arguments),
    Bench(bench::Arguments),
}

/// Runs the chosen subcommand.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    match &cli.command {
        Command::Demo(arguments) => demo::execute(arguments),
        Command::Run(arguments) => run::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
    }
}
