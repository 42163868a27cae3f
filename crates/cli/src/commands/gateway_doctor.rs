//! `longhaul gateway doctor`: what is in the way.

use std::path::PathBuf;
use std::process::ExitCode;

use gateway::doctor::{self, Finding};
use serde_json::{Value, json};

use super::gateway::read;
use super::outcome::{complain, misconfigured, say};

/// Look for what keeps a gateway from working, and say what to do about it.
///
/// Looks at the kernel (devices, offloads, buffers, clock), the firewall, routes and forwarding, the configuration's users, addresses and
/// directories, and at each peer: a gateway that runs says how it hears them, and where none runs they are called, which shows
/// whether their port can be reached, and whether keys and protocol agree. Not while a gateway with this key runs elsewhere, whose session
/// the call would end. Run it as root. Exit code 2 if there is a fault.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  longhaul gateway doctor --config /etc/longhaul/site.toml")]
pub(crate) struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print a JSON array of what was found.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let config = match read(&args.config) {
        Ok(config) => config,
        Err(error) => return misconfigured(error),
    };
    let found = doctor::visit(&config);
    let told: Vec<(&str, &String)> = found.iter().map(told).collect();
    if args.json {
        let all: Vec<Value> =
            told.iter().map(|(kind, text)| json!({ "kind": kind, "message": text })).collect();
        say!("{}", Value::from(all));
    } else {
        told.iter().for_each(|(kind, text)| say!("{kind:6}  {text}"));
    }
    let count = |kind: &str| told.iter().filter(|(known, _)| *known == kind).count();
    let (faults, advice) = (count("fault"), count("advice"));
    if faults > 0 {
        complain(format_args!("{}: {faults} of {} checks found a fault", args.config.display(), found.len()));
        return ExitCode::from(2);
    }
    if !args.json {
        let rest = if advice > 0 { format!(", with {advice} things to know") } else { String::new() };
        say!("{}: all right{rest}", args.config.display());
    }
    ExitCode::SUCCESS
}

fn told(finding: &Finding) -> (&'static str, &String) {
    match finding {
        Finding::Fault(text) => ("fault", text),
        Finding::Advice(text) => ("advice", text),
        Finding::Good(text) => ("ok", text),
    }
}
