//! `longhaul gateway`: the daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::config::ConfigError;
use gateway::config::Config;
use gateway::daemon::{Gateway, GatewayError};
use gateway::doctor::{self, Finding};
use gateway::privileges;
use gateway::signals::Signals;
use gateway::supervisor;
use tunnel::config::Link;

#[cfg(feature = "top")]
use super::gateway_top;
use super::log::Log;
use super::outcome::{complain, failure, misconfigured, say};
use super::{gateway_doctor, gateway_status};

/// Run a gateway, or show the status of a running one.
///
/// The gateway runs until SIGTERM or SIGINT; SIGHUP makes it reload its configuration. Needs root, or the capability
/// `CAP_NET_ADMIN`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  longhaul keygen --out /etc/longhaul/site.key    # prints the public key
  longhaul gateway --config /etc/longhaul/site.toml
  longhaul gateway doctor --config /etc/longhaul/site.toml
  longhaul gateway status

site.toml:
  [tun]
  name = \"sat0\"
  addresses = [\"10.77.0.1/30\"]
  routes = [\"10.78.0.0/16\"]     # networks behind the peers
  [carrier.udp]
  listen = \"192.0.2.1:51900\"
  # or: [carrier.serial] with device = \"/dev/ttyUSB0\" and baud = 115200
  [link]                        # the whole table is optional
  protocol = \"coded\"            # or \"cotmll\", \"slacp\", \"plain\"
  rate = \"auto\"                 # or \"1 Mbit/s\", with all headers
  [identity]
  private-key-file = \"site.key\"
  [[peer]]                      # or a file of its own, peers.d/NAME.toml
  public-key = \"…\"            # as keygen printed it at the other site
  endpoint = \"198.51.100.7:51900\"    # that site leaves it out and waits")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    question: Option<Question>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Check the configuration, and whether this host has what it needs, and exit.
    #[arg(long)]
    check: bool,
    /// Print notices as JSON objects with time and level, one per line, and the counters on exit.
    #[arg(long)]
    json: bool,
}

/// What to ask.
#[derive(Debug, clap::Subcommand)]
enum Question {
    Status(gateway_status::Arguments),
    Doctor(gateway_doctor::Arguments),
    #[cfg(feature = "top")]
    Top(gateway_top::Arguments),
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    match &args.question {
        Some(Question::Status(args)) => return gateway_status::execute(args),
        Some(Question::Doctor(args)) => return gateway_doctor::execute(args),
        #[cfg(feature = "top")]
        Some(Question::Top(args)) => return gateway_top::execute(args),
        None => {}
    }
    let Some(file) = &args.config else { unreachable!("clap requires it where nothing is asked") };
    let config = match read(file) {
        Ok(config) => config,
        Err(error) => return misconfigured(error),
    };
    for file in config.exposed() {
        let file = file.display();
        complain(format_args!("{file}: users other than its owner may have read the key; chmod o= {file}"));
    }
    warn_of_edges(&config);
    if args.check {
        return check(file, &config);
    }
    match serve(config, args.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(GatewayError::Config(error)) => misconfigured(error),
        Err(error) => failure(error),
    }
}

/// Reads the configuration, and every key that it names.
pub(super) fn read(file: &Path) -> Result<Config, ConfigError> {
    let config = Config::read(file)?;
    config.check_identity(config.identity.load()?.public())?;
    config.peers.iter().try_for_each(|peer| peer.load_preshared().map(drop))?;
    Ok(config)
}

/// Looks whether this host has what the configuration needs.
fn check(file: &Path, config: &Config) -> ExitCode {
    let file = file.display();
    let found = doctor::examine(config);
    found.iter().for_each(|finding| complain(format_args!("{file}: {finding}")));
    if found.iter().any(|finding| matches!(finding, Finding::Fault(_))) {
        return ExitCode::from(2);
    }
    say!("{file}: all right");
    ExitCode::SUCCESS
}

/// Tells where a window limits a link: once for all peers, and for each where it is otherwise.
fn warn_of_edges(config: &Config) {
    let edge = |link: &Link| {
        link.round_trip.and_then(|time| link.edge(&config.carrier.limits(), link.rate.fixed(), time))
    };
    let usual = edge(&config.link).map(|edge| edge.to_string());
    if let Some(usual) = &usual {
        complain(usual);
    }
    for peer in &config.peers {
        if let Some(own) =
            edge(&peer.link).map(|edge| edge.to_string()).filter(|own| usual.as_ref() != Some(own))
        {
            complain(format_args!("peer {}: {own}", peer.name()));
        }
    }
}

fn serve(config: Config, json: bool) -> Result<(), GatewayError> {
    privileges::confine()?;
    let mut signals = Signals::with_reload()?;
    let mut gateway = Gateway::new(config)?;
    // A manager that does not hear it says so itself.
    let _ = supervisor::notify_ready();
    let log = Log::new(json);
    gateway.run(&mut signals, |notice| log.write(&notice))?;
    if json {
        say!("{}", gateway.into_status());
    }
    Ok(())
}
