//! `longhaul schema`: what the files of scenarios, studies and gateways may say, for editors.

use std::process::ExitCode;

use base::config::schema::of;
use clap::{Args, ValueEnum};
use gateway::config::{Config, Peer};

use super::outcome::say;

/// Print the JSON schema of a kind of file, with which an editor completes and checks keys.
///
/// An editor with a TOML language server finds the schema through the first line of a file: "#:schema ./scenario.json" if it lies
/// beside the file. Files under scenarios/ have that line; docs/editors.md says which editors need what.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longhaul schema gateway > gateway.json
  longhaul schema gateway-peer > gateway-peer.json")]
pub(crate) struct Arguments {
    /// The kind of file.
    kind: Kind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// What `longhaul run` reads, and `longhaul sweep`.
    #[cfg(feature = "lab")]
    Scenario,
    /// Each file of a study for `longhaul sweep`: experiments, files that it includes, claims.
    #[cfg(feature = "lab")]
    Study,
    /// What `longhaul gateway` reads.
    Gateway,
    /// A file of a peer, in the directory peers.d beside a gateway's.
    GatewayPeer,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let schema = match arguments.kind {
        #[cfg(feature = "lab")]
        Kind::Scenario => lab::scenario::schema(),
        #[cfg(feature = "lab")]
        Kind::Study => lab::study::schema(),
        Kind::Gateway => of::<Config>("The configuration of a gateway of Longhaul"),
        Kind::GatewayPeer => of::<Peer>("A peer of a gateway of Longhaul"),
    };
    let text = serde_json::to_string_pretty(&schema).expect("a schema has only names, numbers and lists");
    say!("{text}");
    ExitCode::SUCCESS
}
