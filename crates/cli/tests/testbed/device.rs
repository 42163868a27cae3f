//! What becomes of a gateway whose TUN device somebody else takes down, or away.

use super::bench::{Testbed, missing};

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
