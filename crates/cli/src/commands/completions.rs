//! `longhaul completions`: what a shell completes.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use super::outcome::show;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul completions bash > /etc/bash_completion.d/longhaul
  longhaul completions zsh > ~/.zfunc/_longhaul
  longhaul completions fish > ~/.config/fish/completions/longhaul.fish")]
pub(crate) struct Arguments {
    /// Shell to print the script for.
    shell: Shell,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "longhaul", &mut script);
    show(format_args!("{}", String::from_utf8_lossy(&script)));
    ExitCode::SUCCESS
}
