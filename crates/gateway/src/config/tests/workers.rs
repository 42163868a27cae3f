//! How many workers there are, and where only one may be.

use super::*;

fn peers(count: usize) -> String {
    let peer = |(number, key)| {
        format!(
            "[[peer]]\nname = \"p{number}\"\npublic-key = \"{key}\"\nallowed = [\"10.{number}.0.0/16\"]\n"
        )
    };
    (1..).zip([PUBLIC, OTHER]).take(count).map(peer).collect()
}

#[test]
fn there_is_one_for_each_core_where_that_helps() {
    let on = |top: &str, peers: &str, cores| {
        let config = Config::parse("site.toml", &format!("{top}\n{SITE}{peers}")).unwrap();
        config.workers_on(cores)
    };
    assert_eq!([1, 2, 3, 4, 16, 99].map(|cores| on("", &peers(2), cores)), [1, 1, 3, 4, 16, 16]);
    assert_eq!(on("", "", 4), 4, "peers may come later");
    assert_eq!(on("", &peers(1), 4), 1);
    assert_eq!(on("share.rate = \"1 Mbit/s\"", &peers(2), 4), 1);
    assert_eq!(on("share.rate = \"1 Mbit/s\"\nworkers = 1", &peers(2), 4), 1);
    assert_eq!(on("workers = 2", &peers(1), 1), 2);
}

#[test]
fn several_where_one_can_be_are_refused() {
    let complaint = |site: &str| Config::parse("site.toml", site).unwrap_err().to_string();
    for count in ["0", "17"] {
        let got = complaint(&format!("workers = {count}{SITE}"));
        let want = format!("site.toml:1: workers = {count}: {count} is out of range; allowed are 1 to 16");
        assert_eq!(got, want);
    }
    let shared = complaint(&format!("workers = 2\nshare.rate = \"9 Mbit/s\"{SITE}"));
    assert_eq!(
        shared,
        "site.toml:1: workers = 2: 2 workers cannot share a rate, and [share] has rate = \"9 Mbit/s\"; \
         allowed is workers = 1, or no rate in [share]"
    );
    let serial = SITE.replace(
        "[carrier.udp]\nlisten = \"192.0.2.1:51900\"",
        "[carrier.serial]\ndevice = \"d\"\nbaud = 9600",
    );
    let serial = serial.replace("\"1 Mbit/s\"", "\"1 kbit/s\"");
    assert_eq!(
        complaint(&format!("workers = 3{serial}{}", peers(1))),
        "site.toml:1: workers = 3: 3 workers, but a serial line has one other end; allowed is workers = 1"
    );
}
