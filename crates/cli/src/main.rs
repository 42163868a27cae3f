//! The one binary, `longhaul`: argument parsing and printing only.

#![forbid(unsafe_code)]

mod commands;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    commands::run(&commands::Cli::parse())
}
