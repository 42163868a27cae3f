//! `longhaul gateway status`: asks a running gateway how it is doing.

use std::io;
use std::process::ExitCode;

use base::{Duration, Rate};
use gateway::daemon::{Status, query};
use serde_json::Value;

use super::outcome::{failure, say};

/// Show the status of a running gateway: its peer, the path, and its counters.
///
/// Without a name, all gateways in this network namespace report. Needs root, or the gateway's user.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul gateway status
  longhaul gateway status sat0 --json
  ip netns exec far longhaul gateway status")]
pub(crate) struct Arguments {
    /// Name of the gateway's TUN device [default: all gateways].
    device: Option<String>,
    /// Print the full status as a JSON array, one object per gateway.
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let devices = match &args.device {
        Some(device) => Ok(vec![device.clone()]),
        None => query::running(),
    };
    let devices = match devices {
        Ok(devices) if devices.is_empty() => return failure("no gateway runs in this network namespace"),
        Ok(devices) => devices,
        Err(error) => return failure(error),
    };
    let mut all = Vec::new();
    for device in devices {
        match query::ask(&device) {
            Ok(status) => all.push(status),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let running = query::running().unwrap_or_default();
                let known = if running.is_empty() { "none".to_owned() } else { running.join(", ") };
                return failure(format_args!("no gateway runs for device {device}; running: {known}"));
            }
            Err(error) => return failure(format_args!("gateway of {device}: {error}")),
        }
    }
    match args.json {
        true => say!("{:#}", Value::from(all)),
        false => all.iter().for_each(show),
    }
    ExitCode::SUCCESS
}

/// The most asked-for of it, a line each.
fn show(status: &Status) {
    let number = |path: &str| status.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let text = |path: &str| status.pointer(path).and_then(Value::as_str).unwrap_or("none");
    let seconds = |path: &str| {
        let seconds = status.pointer(path).and_then(Value::as_f64);
        seconds.map_or_else(|| "not known".to_owned(), |seconds| format!("{:.0} ms", seconds * 1e3))
    };
    let rate = |path: &str| {
        let bps = status.pointer(path).and_then(Value::as_u64);
        bps.map_or_else(|| "not limited".to_owned(), |bps| Rate::from_bps(bps).rounded().to_string())
    };
    let is = |path: &str| status.pointer(path).and_then(Value::as_bool).unwrap_or(false);
    let uptime = status["uptime_seconds"].as_f64().unwrap_or(0.0) as u64;
    let state = if is("/established") { "established" } else { "no session" };
    say!("{}: up for {}, {}", text("/device"), Duration::from_secs(uptime), text("/protocol"));
    say!("  peer     {}, {state}, {} handshakes", text("/peer"), number("/handshakes"));
    say!(
        "  path     sends at {}, round trip {} (queueing {}), {:.1} % lost, packets of up to {} bytes",
        rate("/path/rate"),
        seconds("/path/round_trip_seconds"),
        seconds("/path/queueing_seconds"),
        status.pointer("/path/channel_loss").and_then(Value::as_f64).unwrap_or(0.0) * 100.0,
        number("/path/mtu")
    );
    say!(
        "  packets  {} from the hosts, {} to them; queue dropped {}",
        number("/traffic/tun_packets_read"),
        number("/traffic/tun_packets_written"),
        number("/queue/dropped-for-bytes") + number("/queue/dropped-for-packets")
    );
    say!(
        "  carrier  {} datagrams sent, {} received, {} refused by the path",
        number("/traffic/datagrams_sent"),
        number("/traffic/datagrams_received"),
        number("/traffic/datagrams_refused")
    );
    if status["pep"].is_object() {
        let open = number("/pep/connections/lan") + number("/pep/connections/link");
        say!(
            "  pep      {} connections split, {open} open, {} broken",
            number("/pep/split"),
            number("/pep/broken")
        );
    }
}
