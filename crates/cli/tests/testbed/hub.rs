//! A hub on real sockets: peers that come and go with a reload, and the benchmark with a fleet of terminals.

use std::fs;

use serde_json::Value;

use super::bench::{Testbed, directory_of, longhaul, missing, signal};

/// A peer that is taken out is refused from the reload on; taken in again, it has its name.
#[test]
fn peers_come_and_go_with_a_reload() {
    if missing("peers_come_and_go_with_a_reload") {
        return;
    }
    let testbed = Testbed::up("reload", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    let directory = directory_of(testbed.name());
    let config = directory.join("gw2.toml");
    let whole = fs::read_to_string(&config).unwrap();
    // The table of the only peer, up to the next table.
    let start = whole.find("[[peer]]").expect("it has a peer");
    let end = whole[start + 1..].find("\n[").map_or(whole.len(), |at| start + 1 + at + 1);
    let (peer, without) = (whole[start..end].to_owned(), format!("{}{}", &whole[..start], &whole[end..]));
    let peers = || testbed.status("gw2")["peers"].as_array().map_or(9, Vec::len);
    let log = || fs::read_to_string(directory.join("gw2.log")).unwrap();
    let pid = testbed.pid("gw2");
    assert_eq!(peers(), 1);

    fs::write(&config, &without).unwrap();
    signal(pid, "HUP");
    testbed.wait_until("the peer is gone", 10, || peers() == 0);
    testbed.wait_until("it is refused", 30, || log().contains("no peer has the public key "));

    fs::write(&config, whole.replace(&peer, &peer.replacen("[[peer]]", "[[peer]]\nname = \"terminal\"", 1)))
        .unwrap();
    signal(pid, "HUP");
    testbed.wait_until("the peer is back", 60, || testbed.status("gw2")["peers"][0]["state"] == "connected");
    assert_eq!(testbed.status("gw2")["peers"][0]["name"], "terminal");
    assert!(log().contains("terminal: connected to "), "{}", log());
    let server = testbed.serve(20_000);
    testbed.download(&server, 60);

    // What is wrong changes nothing.
    fs::write(&config, whole.replace("[tun]", "[tunnel]")).unwrap();
    signal(pid, "HUP");
    testbed.wait_until("it is told", 10, || log().contains("the previous configuration stays in effect"));
    assert_eq!(peers(), 1);
}

/// Real sessions over real sockets; what was measured is somebody else's business.
#[test]
fn a_fleet_of_terminals_is_measured() {
    if missing("a_fleet_of_terminals_is_measured") {
        return;
    }
    let bench = |arguments: &[&str]| -> Value {
        let output = longhaul(&[&["bench", "hub", "--json"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let runs = bench(&["--peers", "1,5", "--seconds", "1", "--rate", "2 Mbit/s"]);
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for (run, peers) in runs.iter().zip([1, 5]) {
        assert_eq!(run["peers"], peers);
        assert!(run["mbps"].as_f64() > Some(0.0) && run["hub_bytes"].as_u64() > Some(1_000_000), "{run}");
    }
    let runs = bench(&["--bare", "--peers", "1,5", "--seconds", "1", "--rate", "2 Mbit/s"]);
    assert!(
        runs.as_array().unwrap().iter().all(|run| run["hub_seconds_per_gbit"].as_f64() > Some(0.0)),
        "{runs}"
    );
    let storm = &bench(&["--storm", "--peers", "12"])[0]["storm"];
    assert!(storm["hub_restart_seconds"].as_f64() > Some(0.0), "{storm}");
    assert!(storm["longest_pause_seconds"].as_f64() > Some(0.0), "{storm}");
    let run = &bench(&["--reload", "--peers", "3", "--seconds", "1", "--rate", "1 Mbit/s"])[0]["reload"];
    assert!(run["times"].as_u64() > Some(0), "{run}");
    assert!(run["longest_pause_seconds"].as_f64() > Some(0.0), "{run}");
}
