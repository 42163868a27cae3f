//! `longhaul gateway doctor` on hosts where something is wrong.

use std::fs;

use serde_json::Value;
use tunnel::key::PrivateKey;

use super::bench::missing;
use super::road::{FULL, Road};

/// What the doctor finds at the host: each kind with its message.
fn finds(road: &Road, text: &str) -> Vec<(String, String)> {
    let file = road.file(0, "toml");
    fs::write(&file, text).unwrap();
    let told = road.says(&[
        env!("CARGO_BIN_EXE_longhaul"),
        "gateway",
        "doctor",
        "--json",
        "--config",
        file.to_str().unwrap(),
    ]);
    let told: Vec<Value> = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    told.iter().map(|finding| (text(&finding["kind"]), text(&finding["message"]))).collect()
}

#[track_caller]
fn assert_found(found: &[(String, String)], kind: &str, part: &str) {
    assert!(
        found.iter().any(|(known, text)| known == kind && text.contains(part)),
        "no {kind} with \"{part}\": {found:#?}"
    );
}

#[test]
fn the_doctor_says_why_there_is_no_session() {
    if missing("the_doctor_says_why_there_is_no_session") {
        return;
    }
    let mut road = Road::new();
    let site = road.host_file("\"10.3.0.0/24\"", "", "10.2.0.2:51900");

    // Nobody listens yet.
    assert_found(&finds(&road, &site), "fault", "that port is refused");

    road.start_hub();
    let other = a_key();
    let found = finds(&road, &site);
    assert_found(&found, "ok", "peer hub at 10.2.0.2:51900: it answers");
    assert_found(&found, "ok", "TUN devices can be made");
    assert_found(&found, "ok", "datagrams (UDP segmentation)");
    assert!(road.log(1).contains("has ended"), "the doctor has said farewell: {}", road.log(1));

    // The hub does not know this key: it says so at home, and nothing here.
    let stranger = site.replace(&*road.keys[0].to_base64(), &other.0);
    assert_found(&finds(&road, &stranger), "fault", &other.1);
    assert!(road.log(1).contains("no peer has the public key"), "{}", road.log(1));

    assert_found(
        &finds(&road, &(site.clone() + "preshared-key = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\"\n")),
        "fault",
        "preshared-key",
    );
    assert_found(
        &finds(&road, &format!("{site}[link]\nprotocol = \"cotmll\"\n")),
        "fault",
        "another link protocol than cotmll",
    );

    // Over each path on its own.
    let paths = "[[path]]\ninterface = \"eth0\"\n[[path]]\ninterface = \"wwan0\"\n";
    let found = finds(&road, &site.replace("[carrier.udp]", &format!("{paths}[carrier.udp]")));
    assert_found(&found, "ok", "peer hub over eth0 at 10.2.0.2:51900: it answers");
    assert_found(&found, "advice", "peer hub over wwan0: not called, since there is no interface wwan0 now");

    // A path that carries less than is configured, and a firewall in the way.
    road.namespaces[0].ip_batch("route add 10.2.0.2/32 via 10.1.0.1 mtu lock 1300\n").unwrap();
    assert_found(&finds(&road, &site), "advice", "carries 1300 bytes at most");
    road.namespaces[0].ip_batch("route del 10.2.0.2/32\n").unwrap();
    for rule in [
        "add table inet filter",
        "add chain inet filter input { type filter hook input priority 0; policy drop; }",
    ] {
        assert!(road.run(&["nft", rule]).status.success());
    }
    assert_found(&finds(&road, &site), "fault", "no answer for 8 s");
    let waits = site.replace("endpoint = \"10.2.0.2:51900\"\n", "").replace("0.0.0.0:0", "0.0.0.0:51900");
    assert_found(&finds(&road, &waits), "advice", "none is seen to let in port 51900");
    assert!(road.run(&["nft", "delete table inet filter"]).status.success());

    // This host forwards nothing, and believes only what it would send there.
    let unrouted = waits.clone() + "allowed = [\"10.3.0.0/24\", \"10.9.0.0/24\"]\n";
    let found = finds(&road, &unrouted);
    assert_found(&found, "advice", "sysctl -w net.ipv4.ip_forward=1");
    assert_found(&found, "advice", "nothing translates the addresses of what comes from sat0");
    for rule in [
        "add table inet nat",
        "add chain inet nat out { type nat hook postrouting priority srcnat; }",
        "add rule inet nat out masquerade",
    ] {
        assert!(road.run(&["nft", rule]).status.success());
    }
    assert_found(&finds(&road, &waits), "ok", "nftables translates addresses");
    assert!(road.run(&["nft", "delete table inet nat"]).status.success());
    assert_found(&found, "advice", "routes has nothing that holds 10.9.0.0/24");

    // The other end's file: this host would call itself.
    let swapped = site.replace("0.0.0.0:0", "0.0.0.0:51900").replace("10.2.0.2:51900", "10.1.0.2:51900");
    assert_found(&finds(&road, &swapped), "fault", "is this the other end's file?");
    road.start(0, &swapped);
    assert_eq!(road.gateways[0].take().unwrap().wait().unwrap().code(), Some(2));

    // What a killed one has left holds everything up.
    let full = road.host_file(FULL, "", "10.2.0.2:51900");
    road.start(0, &full);
    road.wait_for_session();
    road.end(0, "KILL");
    assert_found(&finds(&road, &full), "fault", "ip rule flush protocol 76");

    // One that runs is asked, and not disturbed.
    road.start(0, &site);
    road.wait_for_session();
    assert_found(&finds(&road, &site), "ok", "has heard peer hub for");
    // What it said to do about the reverse-path filter helps.
    assert_found(&finds(&road, &unrouted), "advice", "net.ipv4.conf.sat0.rp_filter=2");
    road.namespaces[0].set_parameters(&[("ipv4/conf/sat0/rp_filter", "2")]).unwrap();
    let found = finds(&road, &unrouted);
    assert!(found.iter().all(|(_, text)| !text.contains("rp_filter")), "{found:#?}");
    road.end(1, "KILL");
}

/// A private key that nobody knows, and its public one.
fn a_key() -> (String, String) {
    let key = PrivateKey::generate(&mut gateway::random::system());
    (key.to_base64().to_string(), key.public().to_string())
}
