//! `longhaul gateway status`: asks a running gateway how it is doing.

use std::process::ExitCode;

use base::Duration;
use gateway::daemon::Status;
use gateway::daemon::query::{self, Asked, Place};
use serde_json::Value;

use super::outcome::{complain, failure, say};

/// Show the status of a running gateway: its peer, the path, and its counters.
///
/// Without a name, all gateways in this network namespace report. Needs root, or the gateway's user. A gateway whose status cannot be
/// had is an error: exit code 1, whatever others say.
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
    let running = match query::running() {
        Ok(running) => running,
        Err(error) => return failure(format_args!("the list of gateways: {error}")),
    };
    let places: Vec<Place> = match &args.device {
        Some(device) => running.iter().filter(|it| it.device() == device).cloned().collect(),
        None => running.clone(),
    };
    if places.is_empty() {
        return failure(nothing(args.device.as_deref(), &running));
    }
    let (mut answers, mut failed) = (Vec::new(), false);
    for Asked { device, status } in query::ask(&places) {
        match status {
            Ok(status) => answers.push(status),
            // Others may answer all the same.
            Err(error) => {
                failed = true;
                complain(format_args!("gateway of {device}: {error}"));
            }
        }
    }
    if answers.is_empty() && !failed {
        return failure(nothing(args.device.as_deref(), &[]));
    }
    // Where nothing is known, an empty array would say that nothing runs.
    match args.json {
        true if answers.is_empty() => {}
        true => say!("{:#}", Value::from(answers)),
        false => answers.iter().for_each(show),
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What there is to say where there is nobody to ask.
fn nothing(device: Option<&str>, running: &[Place]) -> String {
    let Some(device) = device else { return "no gateway runs in this network namespace".to_owned() };
    let mut known: Vec<&str> = running.iter().map(Place::device).collect();
    known.dedup();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("no gateway runs for device {device}; running: {known}")
}

/// The most asked-for of it, a line each.
fn show(status: &Status) {
    let number = |path: &str| status.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    // What answers may be another user's, and goes to a terminal.
    let text = |path: &str| {
        let text = status.pointer(path).and_then(Value::as_str).unwrap_or("none");
        text.replace(char::is_control, "?")
    };
    let seconds = |path: &str| {
        let seconds = status.pointer(path).and_then(Value::as_f64);
        seconds.map_or_else(|| "not known".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
    };
    let rate = |path: &str| {
        let bps = status.pointer(path).and_then(Value::as_u64);
        bps.map_or_else(|| "no limit".to_owned(), |bps| format!("{:.3} Mbit/s", bps as f64 / 1e6))
    };
    let is = |path: &str| status.pointer(path).and_then(Value::as_bool).unwrap_or(false);
    let uptime = status["uptime_seconds"].as_f64().unwrap_or(0.0) as u64;
    let state = if is("/established") { "established" } else { "no session" };
    let user = match number("/answered_by_user") {
        0 => String::new(),
        user => format!("; answered by user {user}"),
    };
    say!("{}: up for {}, {}{user}", text("/device"), Duration::from_secs(uptime), text("/protocol"));
    say!("  peer     {}, {state}; handshakes so far: {}", text("/peer"), number("/handshakes"));
    say!(
        "  path     carries {}; paced at {} now; round trip {} (queueing {}); {:.1} % lost besides blockages; \
         packets of up to {} bytes",
        rate("/path/carries"),
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
            "  pep      connections split so far: {}; ends open now: {open}; broken: {}",
            number("/pep/split"),
            number("/pep/broken")
        );
    }
}
