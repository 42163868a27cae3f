//! `longhaul peer`: the peers of a gateway.

use std::process::ExitCode;

use super::peer_add;

/// Manage the peers of a gateway.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Action {
    Add(peer_add::Arguments),
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    match &args.action {
        Action::Add(args) => peer_add::execute(args),
    }
}
