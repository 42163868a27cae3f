//! A full tunnel: routes and names, ends of all kinds, reloads, metrics and what Prometheus makes of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use base::{Duration, Instant};
use gateway::clock::{Clock, sleep};
use serde_json::Value;

use super::bench::{Ending, missing, needs, signal, told, wait_until};
use super::name::HostFiles;
use super::road::{FULL, IN_CLEAR, Road, TUNNELLED, WEB};

#[test]
fn a_full_tunnel_takes_everything_and_gives_it_back() {
    if missing("a_full_tunnel_takes_everything_and_gives_it_back") {
        return;
    }
    let mut road = Road::new();
    let system = HostFiles::new(road.namespaces[0].name());
    system.write("resolv.conf", "nameserver 10.3.0.2\n");
    system.write("nsswitch.conf", "hosts: files dns\n");
    let before = road.routes();
    assert_eq!(road.seen(), IN_CLEAR);
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
    assert_eq!(
        road.fetch("http://any.test/"),
        TUNNELLED[0],
        "the server of names is asked through the tunnel"
    );
    let rules = road.routes();
    assert!(
        rules.starts_with(before.lines().next().unwrap()) && rules.contains("default via 10.1.0.1"),
        "{rules}"
    );
    let neighbour = road.says(&["ip", "route", "get", "10.1.0.1"]);
    assert!(neighbour.contains("dev eth0"), "{neighbour}");
    // Somebody removes all rules, as managers of networks do.
    for family in ["-4", "-6"] {
        assert!(road.run(&["ip", family, "rule", "flush", "protocol", "76"]).status.success());
    }
    wait_until("the rules are back", 10, || road.seen() == TUNNELLED);
    road.end(0, "TERM");
    assert_eq!(road.routes(), before);
    assert_eq!(road.seen(), IN_CLEAR);
}

#[test]
fn a_killed_gateway_leaves_no_way_in_clear_unless_asked() {
    if missing("a_killed_gateway_leaves_no_way_in_clear_unless_asked") {
        return;
    }
    let mut road = Road::new();
    let before = road.routes();
    road.start_hub();
    for (lines, after) in
        [("", None), ("when-down = \"drop\"", None), ("when-down = \"pass\"", Some(IN_CLEAR))]
    {
        road.start_host(FULL, lines, "10.2.0.2:51900");
        road.wait_for_session();
        assert_eq!(road.seen(), TUNNELLED);
        road.end(0, "KILL");
        let seen = road.seen();
        match after {
            None => assert!(seen.iter().all(|said| said.contains("connect")), "{seen:?}"),
            Some(clear) => assert_eq!(seen, clear),
        }
    }
    // Another start, from another port, and an end that is asked for: nothing is left.
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
    road.end(0, "TERM");
    assert_eq!(road.routes(), before);
}

#[test]
fn nothing_that_was_there_is_replaced() {
    if missing("nothing_that_was_there_is_replaced") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    road.namespaces[0]
        .ip_batch("route add 10.3.0.0/24 via 10.1.0.1\nroute add fd03::/64 via fd01::1 metric 1\n")
        .unwrap();
    let before = road.routes();
    for taken in ["10.3.0.0/24", "fd03::/64"] {
        road.start_host(&format!("\"10.9.0.0/16\", \"{taken}\""), "", "10.2.0.2:51900");
        assert_eq!(road.gateways[0].take().unwrap().wait().unwrap().code(), Some(1));
        assert!(road.log(0).contains(&format!("there is a route to {taken} already")), "{}", road.log(0));
        assert_eq!(road.routes(), before);
    }
    // What has a route of its own keeps it beside a full tunnel.
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), IN_CLEAR);
}

/// A route that covers the peer would carry the tunnel through itself.
#[test]
fn a_tunnel_does_not_go_through_itself() {
    if missing("a_tunnel_does_not_go_through_itself") {
        return;
    }
    let mut road = Road::new();
    let before = road.routes();
    road.start_hub();
    road.start_host("\"10.2.0.0/16\"", "", "10.2.0.2:51900");
    assert_eq!(road.gateways[0].take().unwrap().wait().unwrap().code(), Some(1));
    assert!(road.log(0).contains("hub: its address 10.2.0.2 lies in one of [tun] routes"), "{}", road.log(0));
    assert_eq!(road.routes(), before);
    // It does where the way to the peer is more specific.
    road.namespaces[0].ip_batch("route add 10.2.0.2/32 via 10.1.0.1\n").unwrap();
    road.start_host("\"10.2.0.0/16\", \"10.3.0.0/16\"", "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen()[0], TUNNELLED[0]);
}

/// The server of names is beyond the default route: packets take that until the peer's address is known.
#[test]
fn a_full_tunnel_to_a_name_waits_for_its_address() {
    if missing("a_full_tunnel_to_a_name_waits_for_its_address") {
        return;
    }
    let mut road = Road::new();
    let system = HostFiles::new(road.namespaces[0].name());
    system.write("nsswitch.conf", "hosts: files\n");
    system.write("hosts", "127.0.0.1 localhost\n");
    road.start_hub();
    road.start_host(FULL, "", "hub.test:51900");
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    assert_eq!(road.seen(), IN_CLEAR);
    system.write("hosts", "10.2.0.2 hub.test\n");
    wait_until("the name is known", 60, || road.seen() == TUNNELLED);
    let address: SocketAddr = "10.2.0.2:51900".parse().unwrap();
    assert!(road.log(0).contains(&address.to_string()), "{}", road.log(0));
}

/// Hosts need not wait for a peer that is gone, and the status and the log say that it is.
#[test]
fn hosts_hear_that_the_peer_is_gone() {
    if missing("hosts_hear_that_the_peer_is_gone") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
    road.end(1, "KILL");
    wait_until("the peer is silent", 60, || {
        told(&road.namespaces[0]).is_some_and(|status| status["peers"][0]["state"] == "silent")
    });
    let is_refused = || {
        WEB.iter().zip(road.seen()).all(|(_, said)| said.contains("onnect") && !said.contains("timed out"))
    };
    wait_until("hosts are told", 30, is_refused);
    let log = road.log(0);
    let line = log.lines().find(|line| line.contains("hub: silent at 10.2.0.2:51900")).expect("it is told");
    assert!(line.starts_with("20") && line.contains("Z warning: hub: "), "{line}");
    road.start_hub();
    wait_until("the peer is back", 30, || road.seen() == TUNNELLED);
}

/// Who ends a gateway breaks the connections that it had split: both hosts hear that at once, and new ones pass when it is back.
#[test]
fn hosts_hear_that_a_gateway_was_restarted() {
    if missing("hosts_hear_that_a_gateway_was_restarted") {
        return;
    }
    let mut road = Road::new();
    let server =
        road.namespaces[2].enter(|| TcpListener::bind((WEB[0].parse::<IpAddr>().unwrap(), 81)).unwrap());
    let server = server.unwrap().join().unwrap().unwrap();
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    for end in [1, 0] {
        let client = road.namespaces[0].enter(|| TcpStream::connect((WEB[0].parse::<IpAddr>().unwrap(), 81)));
        let mut client = client.unwrap().join().unwrap().unwrap().unwrap();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"x").unwrap();
        served.read_exact(&mut [0]).unwrap();
        for stream in [&client, &served] {
            stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        }
        let clock = Clock::start();
        road.end(end, "TERM");
        let log = road.log(end);
        assert!(
            log.contains("ended; 1 connections that were split are broken, and their hosts were told"),
            "{log}"
        );
        for stream in [&mut client, &mut served] {
            let heard = stream.read(&mut [0]).unwrap_err().kind();
            assert_eq!(heard, std::io::ErrorKind::ConnectionReset, "end {end}");
        }
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(10), "{:?}", clock.now());
        match end {
            1 => road.start_hub(),
            _ => road.start_host(FULL, "", "10.2.0.2:51900"),
        }
        wait_until("it is back", 20, || road.seen() == TUNNELLED);
        if end == 1 {
            let log = road.log(0);
            assert!(log.contains("hub: has ended at 10.2.0.2:51900"), "{log}");
            assert_eq!(log.matches("hub: connected to 10.2.0.2:51900").count(), 2, "{log}");
        }
    }
}

/// Who is killed says nothing, and knows nobody when it runs again: it denies what still comes, and is called.
#[test]
fn a_gateway_that_was_killed_is_heard_of_at_once() {
    if missing("a_gateway_that_was_killed_is_heard_of_at_once") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    // An idle session takes 23 s to miss its peer, however long that takes to start.
    sleep(Duration::from_secs(12));
    road.end(1, "KILL");
    road.start_hub();
    wait_until("it runs", 20, || told(&road.namespaces[1]).is_some());
    assert_eq!(road.seen(), TUNNELLED);
    assert!(road.log(0).contains("hub: connected to 10.2.0.2:51900, which has restarted"), "{}", road.log(0));
    let status = told(&road.namespaces[1]).unwrap();
    assert!(status["traffic"]["denials_sent"].as_u64().is_some_and(|count| count >= 1), "{status}");
}

/// A gateway may start before the network does: without an address, or without a way anywhere.
#[test]
fn a_gateway_waits_for_its_network() {
    if missing("a_gateway_waits_for_its_network") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    let text = road.host_file("", "", "10.2.0.2:51900").replace("0.0.0.0:0", "10.1.0.9:0");
    road.start(0, &text);
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    assert!(road.log(0).contains("no device has the address 10.1.0.9 yet"), "{}", road.log(0));
    road.namespaces[0].ip_batch("address add 10.1.0.9/24 dev eth0\n").unwrap();
    road.wait_for_session();
    road.end(0, "TERM");
    road.namespaces[0].ip_batch("link set eth0 down\n").unwrap();
    road.start_host(FULL, "", "10.2.0.2:51900");
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    let up = "link set eth0 up\naddress replace fd01::2/64 dev eth0 nodad\nroute add default via 10.1.0.1\nroute add ::/0 via fd01::1\n";
    road.namespaces[0].ip_batch(up).unwrap();
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
}

/// Routes follow the file; another key is named, since the session has the one that it began with.
#[test]
fn routes_and_keys_are_looked_at_again() {
    if missing("routes_and_keys_are_looked_at_again") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    let key = road.directory.join("host.key");
    fs::write(&key, road.keys[0].to_base64().as_str()).unwrap();
    let inline = format!("private-key = \"{}\"", *road.keys[0].to_base64());
    let file = |road: &Road, routes: &str| {
        road.host_file(routes, "", "10.2.0.2:51900").replace(&inline, "private-key-file = \"host.key\"")
    };
    let (none, some, taken) =
        (file(&road, ""), file(&road, "\"10.3.0.0/24\""), file(&road, "\"10.1.0.0/24\", \"10.3.0.0/24\""));
    road.start(0, &none);
    road.wait_for_session();
    assert_eq!(road.seen(), IN_CLEAR);
    let pid = road.gateways[0].as_ref().unwrap().id();
    let reload = |road: &Road, text: &str, seen: &str, said: &str| {
        fs::write(road.file(0, "toml"), text).unwrap();
        signal(pid, "HUP");
        wait_until(said, 20, || road.log(0).contains(said));
        assert_eq!(road.seen()[0], seen, "{said}");
    };
    reload(&road, &some, TUNNELLED[0], "configuration reloaded");
    fs::write(&key, road.keys[1].to_base64().as_str()).unwrap();
    reload(&road, &some, TUNNELLED[0], "configuration reloaded; these changes need a restart: [identity]");
    fs::write(&key, road.keys[0].to_base64().as_str()).unwrap();
    road.namespaces[0].ip_batch("route add 10.9.0.0/24 via 10.1.0.1\n").unwrap();
    let taken = taken.replace("10.1.0.0/24", "10.9.0.0/24");
    reload(&road, &taken, TUNNELLED[0], "there is a route to 10.9.0.0/24 already");
    fs::remove_file(road.file(0, "log")).unwrap();
    fs::write(road.file(0, "toml"), &none).unwrap();
    signal(pid, "HUP");
    wait_until("its route is gone", 20, || road.seen() == IN_CLEAR);
}

/// What Prometheus would fetch: the peer is there, and is gone once it has ended.
#[test]
fn metrics_tell_of_the_peer() {
    if missing("metrics_tell_of_the_peer") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    let text = road.host_file(FULL, "", "10.2.0.2:51900") + "[metrics]\nlisten = \"127.0.0.1:9469\"\n";
    road.start(0, &text);
    road.wait_for_session();
    let scrape = |road: &Road| road.fetch("http://127.0.0.1:9469/metrics");
    let told = scrape(&road);
    assert!(
        told.contains("longhaul_peer_connected{peer=\"hub\"} 1.0") && told.ends_with("# EOF\n"),
        "{told}"
    );
    let sent = |told: &str| {
        let line = told.lines().find(|line| line.starts_with("longhaul_peer_sent_bytes_total")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let before = sent(&told);
    assert_eq!(road.seen(), TUNNELLED);
    assert!(sent(&scrape(&road)) > before);
    assert_eq!(road.fetch("http://127.0.0.1:9469/other"), "there is /metrics\n");
    road.end(1, "TERM");
    wait_until("it is told", 10, || scrape(&road).contains("longhaul_peer_connected{peer=\"hub\"} 0.0"));
}

/// A real Prometheus with the rules that are packaged: the alert fires once the peer was killed, and ends when it is back.
#[test]
fn an_alert_fires_while_the_peer_is_gone() {
    if missing("an_alert_fires_while_the_peer_is_gone") || needs("prometheus") || needs("promtool") {
        return;
    }
    let rules = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus"));
    let tested = Command::new("promtool")
        .args(["test", "rules", "longhaul.rules.test.yml"])
        .current_dir(rules)
        .output();
    let tested = tested.unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));

    let mut road = Road::new();
    road.start_hub();
    let text = road.host_file(FULL, "", "10.2.0.2:51900") + "[metrics]\nlisten = \"127.0.0.1:9469\"\n";
    road.start(0, &text);
    road.wait_for_session();
    // What is to last a minute lasts a second here.
    let rules = fs::read_to_string(rules.join("longhaul.rules.yml")).unwrap().replace("for: 1m", "for: 1s");
    fs::write(road.directory.join("rules.yml"), rules).unwrap();
    let config = "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\nscrape_configs:\n  \
                  - job_name: longhaul\n    static_configs: [{targets: [\"127.0.0.1:9469\"]}]\n";
    fs::write(road.directory.join("prometheus.yml"), config).unwrap();
    let mut prometheus = Command::new("ip");
    prometheus.args([
        "netns",
        "exec",
        road.namespaces[0].name(),
        "prometheus",
        "--web.listen-address=127.0.0.1:9090",
    ]);
    prometheus.arg(format!("--config.file={}", road.directory.join("prometheus.yml").display()));
    prometheus.arg(format!("--storage.tsdb.path={}", road.directory.join("data").display()));
    let _prometheus =
        Ending(prometheus.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let is_up = |road: &Road| {
        let target = &prometheus_says(road, "targets")["activeTargets"][0];
        target["health"] == "up" && target["lastError"] == ""
    };
    let fires = |road: &Road| {
        let alerts = prometheus_says(road, "alerts")["alerts"].as_array().cloned().unwrap_or_default();
        let mut ours = alerts.iter().filter(|alert| alert["labels"]["alertname"] == "LonghaulPeerSilent");
        ours.any(|alert| alert["state"] == "firing" && alert["labels"]["peer"] == "hub")
    };
    wait_until("Prometheus has scraped", 60, || is_up(&road));
    assert!(!fires(&road));
    road.end(1, "KILL");
    wait_until("the alert fires", 90, || fires(&road));
    let text = fs::read_to_string(road.file(1, "toml")).unwrap();
    road.start(1, &text);
    wait_until("the alert has ended", 60, || !fires(&road) && is_up(&road));
}

fn prometheus_says(road: &Road, what: &str) -> Value {
    let answer = road.fetch(&format!("http://127.0.0.1:9090/api/v1/{what}"));
    serde_json::from_str::<Value>(&answer).unwrap_or_default()["data"].take()
}
