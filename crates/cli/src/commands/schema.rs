//! `longhaul schema`: what the files of scenarios, studies and gateways may say, for editors.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

/// Print the JSON schema of a kind of file, with which an editor completes and checks keys.
///
/// An editor with a TOML language server finds the schema through the first line of the file, as in the files under scenarios/:
/// "#:schema scenario.json".
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longhaul schema scenario > scenario.json
  longhaul schema gateway > gateway.json")]
pub(crate) struct Arguments {
    /// The kind of file.
    kind: Kind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// What `longhaul run` and `longhaul sweep` read.
    Scenario,
    /// A study's experiments and claims, which `longhaul sweep` reads.
    Study,
    /// What `longhaul gateway` reads.
    Gateway,
}

pub(crate) fn execute(arguments: &Arguments) -> ExitCode {
    let schema = match arguments.kind {
        Kind::Scenario => lab::scenario::schema(),
        Kind::Study => lab::study::schema(),
        Kind::Gateway => {
            base::config::schema::of::<gateway::config::Config>("The configuration of a gateway of Longhaul")
        }
    };
    let printed = serde_json::to_string_pretty(&schema).map_err(io::Error::from);
    match printed.and_then(|text| writeln!(io::stdout().lock(), "{text}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
