//! `longhaul proxy`: the split-connection proxy by itself.

use std::path::PathBuf;
use std::process::ExitCode;

use gateway::daemon::GatewayError;
use gateway::middlebox::{Config, Middlebox};
use gateway::privileges;
use gateway::signals::Signals;
use gateway::supervisor;

use super::outcome::{failure, misconfigured, say};

/// Split TCP connections between two TUN devices, without a Longhaul link. Needs root, or the capability `CAP_NET_ADMIN`.
///
/// The proxy runs until SIGTERM or SIGINT.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, on a router whose LAN is at lan0 and whose modem is at wan0:
  longhaul proxy --config proxy.toml &
  ip rule add iif lan0 ipproto tcp lookup 5101
  ip rule add iif wan0 ipproto tcp lookup 5102
  ip rule add iif lan0 ipproto icmp lookup 5101
  ip rule add iif wan0 ipproto icmp lookup 5102
  ip route add default dev lh-lan table 5101
  ip route add default dev lh-wan table 5102
  sysctl net.ipv4.ip_forward=1
  sysctl net.ipv4.conf.lh-lan.rp_filter=0 net.ipv4.conf.lh-wan.rp_filter=0

proxy.toml:
  lan = \"lh-lan\"
  wan = \"lh-wan\"
  pep.link.congestion = \"bbr\"")]
pub(crate) struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration and exit.
    #[arg(long)]
    check: bool,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let config = match Config::read(&args.config) {
        Ok(config) => config,
        Err(error) => return misconfigured(error),
    };
    if args.check {
        if let Some(user) = config.user.as_deref().filter(|user| !privileges::is_user(user)) {
            return misconfigured(format_args!("user = \"{user}\": there is no such user"));
        }
        say!("{}: all right", args.config.display());
        return ExitCode::SUCCESS;
    }
    match serve(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(error),
    }
}

fn serve(config: &Config) -> Result<(), GatewayError> {
    privileges::confine()?;
    let mut signals = Signals::new()?;
    let mut middlebox = Middlebox::new(config)?;
    // A manager that does not hear it says so itself.
    let _ = supervisor::notify_ready();
    say!("splitting connections between {} and {}", config.lan.as_str(), config.wan.as_str());
    middlebox.run(&mut signals)?;
    for (name, count) in middlebox.counters() {
        say!("{name}: {count}");
    }
    Ok(())
}
