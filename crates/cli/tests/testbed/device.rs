//! What becomes of a gateway whose TUN device somebody else takes down, or away.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time;

use super::bench::{Testbed, missing};
use gateway::carrier::UdpCarrier;
use link::Marks;
use tunnel::Sent;

/// Routes come back when the device does, and so does the device itself.
#[test]
fn routes_come_back_with_the_device() {
    if missing("routes_come_back_with_the_device") {
        return;
    }
    let testbed = Testbed::up("device", &["--protocol", "cotmll"], &["--delay", "5 ms"].map(str::to_owned));
    let routes = || {
        let output = testbed.run("gw1", &["ip", "route", "show", "dev", "sat0"]);
        String::from_utf8(output.stdout).unwrap()
    };
    let server = testbed.serve(20_000);
    let before = routes();
    assert!(before.contains("10.77.2.0/24"), "{before}");
    assert!(testbed.run("gw1", &["ip", "link", "set", "sat0", "down"]).status.success());
    assert!(!routes().contains("10.77.2.0/24"));
    assert!(testbed.run("gw1", &["ip", "link", "set", "sat0", "up"]).status.success());
    testbed.wait_until("the routes are back", 10, || routes() == before);
    testbed.download(&server, 30);
    assert!(testbed.run("gw1", &["ip", "link", "delete", "sat0"]).status.success());
    testbed.wait_until("the device is back", 10, || routes() == before);
    testbed.download(&server, 30);
    assert!(testbed.is_alive("gw1"));
}

/// A datagram that is longer than the device carries does not leave, in parts either, in both families.
#[test]
fn long_datagrams_are_refused_by_a_narrow_device() {
    if missing("long_datagrams_are_refused_by_a_narrow_device") {
        return;
    }
    let testbed = Testbed::up("narrow", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    for (room, device) in [("gw1", "wan0"), ("sat", "gw1")] {
        assert!(testbed.run(room, &["ip", "link", "set", device, "mtu", "1400"]).status.success());
    }
    for (from, to) in [("10.77.10.1", "10.77.10.2"), ("fd77:10::1", "fd77:10::2")] {
        let [from, to] = [from, to].map(|address| address.parse::<IpAddr>().unwrap());
        let receiver = testbed.inside("sat", move || UdpSocket::bind((to, 0)).unwrap());
        receiver.set_read_timeout(Some(time::Duration::from_secs(10))).unwrap();
        let port = receiver.local_addr().unwrap().port();
        let sent = testbed.inside("gw1", move || {
            let carrier = UdpCarrier::bind((from, 0).into()).unwrap();
            let target = SocketAddr::new(to, port);
            let datagram = [7; 1452];
            [1452, 1352].map(|len| carrier.send(target, None, Marks::default(), &datagram[..len], len))
        });
        assert_eq!(sent, [Sent::TooLong, Sent::Yes], "{from}");
        let mut buffer = [0; 2000];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 1352, "{from}");
    }
}
