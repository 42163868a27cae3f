//! What the outer headers of datagrams say, and what hosts hear of it.

use field::testbed::GATEWAY_PORT;

use super::bench::{Testbed, missing};

/// Both fields of a download's packets are in the outer header, and a router that marks datagrams marks the packets in them.
#[test]
fn dscp_and_ecn_cross_the_gateways() {
    if missing("dscp_and_ecn_cross_the_gateways") {
        return;
    }
    let channel = ["--rate", "5 Mbit/s", "--delay", "5 ms"].map(str::to_owned);
    let testbed = Testbed::up("marks", &["--protocol", "plain"], &channel);
    for host in ["host1", "host2"] {
        testbed.namespace(host).set_parameters(&[("ipv4/tcp_ecn", "1")]).unwrap();
    }
    let server = testbed.serve(300_000);
    // The server's packets are for telephony. The emulator sends datagrams of its own, so a router behind it marks all of them.
    rules(&testbed, "host2", "output", "tcp sport 8000 ip dscp set ef");
    rules(&testbed, "gw2", "output", &format!("udp dport {GATEWAY_PORT} ip dscp ef ip ecn ect0 counter"));
    rules(&testbed, "host1", "input", "tcp sport 8000 ip dscp ef ip ecn ce counter");
    testbed.download(&server, 60);
    assert!(counted(&testbed, "gw2") > 150, "{} datagrams have the marks", counted(&testbed, "gw2"));
    assert_eq!(
        (counted(&testbed, "host1"), ecn_marked(&testbed)),
        (0, 0),
        "nothing is marked without reason"
    );
    rules(&testbed, "gw1", "prerouting", &format!("udp sport {GATEWAY_PORT} ip ecn set ce"));
    testbed.download(&server, 60);
    testbed.wait_until("the gateway tells of marks", 10, || ecn_marked(&testbed) > 100);
    assert!(counted(&testbed, "host1") > 100, "{} packets are marked", counted(&testbed, "host1"));
}

/// Adds a rule to a chain of its own.
fn rules(testbed: &Testbed, room: &str, hook: &str, rule: &str) {
    for command in [
        "add table ip marks".to_owned(),
        format!("add chain ip marks {hook} {{ type filter hook {hook} priority -150 ; }}"),
        format!("add rule ip marks {hook} {rule}"),
    ] {
        let output = testbed.run(room, &["nft", &command]);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Packets that the rules of a room have counted.
fn counted(testbed: &Testbed, room: &str) -> u64 {
    let output = testbed.run(room, &["nft", "list", "table", "ip", "marks"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, counter) = text.split_once("counter packets ").expect("a rule with a counter");
    counter.split(' ').next().unwrap().parse().unwrap()
}

fn ecn_marked(testbed: &Testbed) -> u64 {
    testbed.status("gw1")["peers"][0]["traffic"]["ecn_marked"].as_u64().expect("a counter")
}
