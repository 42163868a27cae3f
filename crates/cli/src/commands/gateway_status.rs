//! `longhaul gateway status`: asks a running gateway how it is doing.

use std::process::ExitCode;

use base::Duration;
use gateway::daemon::Status;
use gateway::daemon::query::{self, Asked, Place};
use serde_json::Value;

use super::outcome::{complain, failure, say};

/// Show the status of a running gateway: its peers, the paths to them, and its counters.
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

/// The most asked-for of it: of a single peer a line for each part, of several a line for each peer.
fn show(status: &Status) {
    let of = Reading(status);
    let uptime = status["uptime_seconds"].as_f64().unwrap_or(0.0) as u64;
    let user = match of.number("/answered_by_user") {
        0 => String::new(),
        user => format!("; answered by user {user}"),
    };
    let peers: Vec<_> = status["peers"].as_array().into_iter().flatten().map(Reading).collect();
    // A gateway of an earlier version says nothing of them.
    let workers = of.number("/workers").max(1);
    let threads = if workers == 1 { String::new() } else { format!(", {workers} workers") };
    say!(
        "{}: up for {}{threads}, public key {}{user}",
        of.text("/device"),
        Duration::from_secs(uptime),
        of.text("/public_key")
    );
    match &peers[..] {
        [only] => show_peer(only),
        peers => show_table(peers, workers > 1),
    }
    say!(
        "  packets  {} from the hosts, {} to them; for no peer: {}; from a source that is not its peer's: {}",
        of.number("/traffic/tun_packets_read"),
        of.number("/traffic/tun_packets_written"),
        of.number("/traffic/packets_without_peer"),
        of.number("/traffic/packets_from_elsewhere")
    );
}

fn show_peer(of: &Reading<'_>) {
    say!(
        "  peer     {} at {}, {}, {}; handshakes so far: {}; {}",
        of.text("/name"),
        of.text("/peer"),
        of.state(),
        of.heard("/heard_seconds_ago"),
        of.number("/handshakes"),
        of.text("/protocol")
    );
    match of.0["paths"].as_array().map(Vec::as_slice).unwrap_or_default() {
        [] => say!(
            "  path     carries {}; paced at {} now; round trip {} (queueing {}); {} lost in the last half-minute; \
             packets of up to {} bytes",
            of.rate("/path/carries"),
            of.rate("/path/rate"),
            of.millis("/path/round_trip_seconds"),
            of.millis("/path/queueing_seconds"),
            of.loss("/path/loss"),
            of.number("/path/mtu")
        ),
        paths => show_paths(paths),
    }
    say!(
        "  carrier  {} datagrams sent, {} received, {} refused by the path; {} bytes wait, {} packets dropped from the queue",
        of.number("/traffic/datagrams_sent"),
        of.number("/traffic/datagrams_received"),
        of.number("/traffic/datagrams_refused"),
        of.number("/queued_bytes"),
        of.number("/queue/dropped-for-bytes") + of.number("/queue/dropped-for-packets")
    );
    if of.0["pep"].is_object() {
        let open = of.number("/pep/connections/lan") + of.number("/pep/connections/link");
        say!(
            "  pep      connections split so far: {}; ends open now: {open}; broken: {}",
            of.number("/pep/split"),
            of.number("/pep/broken")
        );
    }
}

/// A line for each of several paths, in columns.
fn show_paths(paths: &[Value]) {
    let heading =
        ["path", "address", "used", "heard", "carries", "round trip", "queueing", "lost", "sent", "packets"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(paths.iter().map(Reading).map(|of| {
        [
            of.text("/name"),
            of.text("/peer"),
            if of.0["is_open"] == true { of.text("/used") } else { "not now".to_owned() },
            of.heard("/silent_seconds"),
            of.rate("/carries"),
            of.millis("/round_trip_seconds"),
            of.millis("/queueing_seconds"),
            of.loss("/loss"),
            bytes(of.number("/bytes_sent")),
            format!("{} bytes", of.number("/mtu")),
        ]
    }));
    show_columns(&rows, heading.len());
}

/// A line for each peer, in columns; the last one is its worker, where there are several.
fn show_table(peers: &[Reading<'_>], has_workers: bool) {
    let heading = [
        "peer",
        "address",
        "state",
        "heard",
        "carries",
        "round trip",
        "lost",
        "queued",
        "received",
        "sent",
        "worker",
    ];
    let columns = heading.len() - usize::from(!has_workers);
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(peers.iter().map(|of| {
        [
            of.text("/name"),
            of.text("/peer"),
            of.state(),
            of.heard("/heard_seconds_ago"),
            of.rate("/path/carries"),
            of.millis("/path/round_trip_seconds"),
            of.loss("/path/loss"),
            bytes(of.number("/queued_bytes")),
            bytes(of.number("/traffic/bytes_received")),
            bytes(of.number("/traffic/bytes_sent")),
            of.number("/worker").to_string(),
        ]
    }));
    show_columns(&rows, columns);
}

/// The first so many columns of a table.
fn show_columns<const COLUMNS: usize>(rows: &[[String; COLUMNS]], columns: usize) {
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width));
        say!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// Bytes as people read them.
fn bytes(count: u64) -> String {
    let scale = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];
    let (unit, size) = scale.into_iter().rev().find(|(_, size)| count >= 10 * size).unwrap_or(scale[0]);
    format!("{} {unit}B", count / size)
}

/// Reads what a status has, or what stands for it where it has nothing.
struct Reading<'a>(&'a Value);

impl Reading<'_> {
    fn number(&self, path: &str) -> u64 {
        self.0.pointer(path).and_then(Value::as_u64).unwrap_or(0)
    }

    fn real(&self, path: &str) -> Option<f64> {
        self.0.pointer(path).and_then(Value::as_f64)
    }

    /// What answers may be another user's, and goes to a terminal.
    fn text(&self, path: &str) -> String {
        let text = self.0.pointer(path).and_then(Value::as_str).unwrap_or("none");
        text.replace(char::is_control, "?")
    }

    fn millis(&self, path: &str) -> String {
        self.real(path).map_or_else(|| "not known".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3))
    }

    fn rate(&self, path: &str) -> String {
        let bps = self.0.pointer(path).and_then(Value::as_u64);
        bps.map_or_else(|| "no limit".to_owned(), |bps| format!("{:.3} Mbit/s", bps as f64 / 1e6))
    }

    fn loss(&self, path: &str) -> String {
        self.real(path).map_or_else(|| "not known".to_owned(), |part| format!("{:.1} %", part * 100.0))
    }

    /// Whether the peer is there, and for how long it has been so.
    fn state(&self) -> String {
        let seconds = self.real("/state_seconds").unwrap_or(0.0) as u64;
        match self.text("/state").as_str() {
            "never" => "not there yet".to_owned(),
            state => format!("{state} for {}", Duration::from_secs(seconds)),
        }
    }

    /// When the peer was heard last.
    fn heard(&self, path: &str) -> String {
        match self.real(path) {
            None => "never heard".to_owned(),
            Some(seconds) if seconds < 100.0 => format!("heard {seconds:.1} s ago"),
            Some(seconds) => format!("heard {} ago", Duration::from_secs(seconds as u64)),
        }
    }
}
