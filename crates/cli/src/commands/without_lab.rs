//! What a build for gateways alone says where the lab is asked for.

use std::process::ExitCode;

use super::outcome::misconfigured;

/// What needs the lab, but for `demo`.
pub(crate) const COMMANDS: [&str; 8] =
    ["run", "sweep", "reproduce", "bench", "chaos", "emulate", "testbed", "traffic"];

/// Not in this build.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Whatever the command would have taken.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

pub(crate) fn execute() -> ExitCode {
    misconfigured(format_args!(
        "this program was built for gateways alone, without demo, {}; the package longhaul has them, or a build with \
         cargo's default features",
        COMMANDS.join(", ")
    ))
}
