//! `longhaul traffic` as a user meets it: over loopback, and over an emulated satellite.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::bench::{Testbed, longhaul, missing, signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longhaul");

/// A server on loopback, killed when dropped.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start() -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["traffic", "serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening at ").expect("where it listens").to_owned();
        Self { child, address }
    }

    fn run(&self, model: &str, arguments: &[&str]) -> Output {
        longhaul(&[&["traffic", model, &self.address], arguments].concat())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn traffic_is_measured_and_failures_have_a_code_and_a_name() {
    let mut served = Served::start();
    let bulk = object(&served.run("bulk", &["--size", "1MB", "--connections", "3", "--json"]));
    assert_eq!((&bulk["bytes"], &bulk["connections"]), (&3_000_000.into(), &3.into()));
    let rate = ["--rate", "80 kbit/s", "--duration", "500ms", "--up", "--json"];
    let rate = object(&served.run("rate", &rate));
    assert_eq!((&rate["records_due"], &rate["clock"]["same_clock"]), (&5.into(), &true.into()));
    let table = served.run("transactions", &["--count", "10", "--concurrency", "2"]);
    let table = String::from_utf8(table.stdout).unwrap();
    for part in ["80000 bytes on 10 connections", "Mbit/s", "connecting", "transaction", "p99"] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
    for (model, arguments, code, want) in [
        ("bulk", &["--size", "12 B"][..], 2, "a size of 12 bytes"),
        ("rate", &["--rate", "1 bit/s"], 2, "allowed are up to"),
        ("transactions", &["--request", "10B"], 2, "allowed are 60 B to 1 TB"),
        ("bulk", &["--size", "1 Mb"], 2, "is not a size"),
        ("bulk", &["--size", "1MB", "--congestion", "No"], 2, "not the name of a congestion control"),
        ("bulk", &["--size", "1MB", "--congestion", "nosuch"], 1, "congestion control nosuch"),
    ] {
        let output = served.run(model, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(want), "{arguments:?}: {stderr}");
    }
    signal(served.child.id(), "TERM");
    assert!(served.child.wait().unwrap().success(), "a server that is asked to end ends in order");
    let output = served.run("bulk", &["--size", "1MB"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&served.address));
}

/// Nothing is faster than the satellite: no record, and no connection, nor the transaction on it.
#[test]
fn latency_over_a_satellite_is_at_least_its_delay() {
    if missing("latency_over_a_satellite_is_at_least_its_delay") {
        return;
    }
    let channel = ["--rate", "1 Mbit/s", "--delay", "250 ms"].map(str::to_owned);
    let testbed = Testbed::up("traffic", &["--no-gateway"], &channel);
    let mut server = testbed.start("host2", &[PROGRAM, "traffic", "serve", "--listen", "10.77.2.2:5300"]);
    let client = |arguments: &[&str]| {
        let command = [&[PROGRAM, "traffic"], arguments, &["--json"]].concat();
        testbed.run("host1", &command)
    };
    let probe = ["transactions", "10.77.2.2:5300", "--count", "1"];
    testbed.wait_until("the server listens", 30, || client(&probe).status.success());
    for direction in [&["--duration", "3s"][..], &["--duration", "3s", "--up"]] {
        let arguments = [&["rate", "10.77.2.2:5300", "--rate", "50 kbit/s"], direction].concat();
        let report = object(&client(&arguments));
        let latency = &report["latency_ms"];
        assert_eq!(report["clock"]["same_clock"], true, "{report:#}");
        // 3 s at 6.25 records a second.
        assert_eq!(latency["n"], 19, "{report:#}");
        assert!(latency["min"].as_f64() >= Some(250.0), "{report:#}");
    }
    let report = object(&client(&["transactions", "10.77.2.2:5300", "--count", "3"]));
    assert!(report["connect_ms"]["min"].as_f64() >= Some(500.0), "{report:#}");
    assert!(report["latency_ms"]["min"].as_f64() >= Some(1000.0), "{report:#}");
    let _ = server.kill();
    let _ = server.wait();
}
