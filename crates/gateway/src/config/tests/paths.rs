//! Several paths to the peers.

use base::Rate;
use link::When;
use tunnel::config::{LinkRate, Usage};
use tunnel::path::Address;

use super::*;

/// A site that calls one peer, over these paths.
fn site(paths: &str) -> String {
    let site = SITE
        .replace("192.0.2.1:51900", "0.0.0.0:51900")
        .replace("[link]\nprotocol = \"plain\"\nrate = \"1 Mbit/s\"\n", "");
    format!("{site}{paths}\n[[peer]]\npublic-key = \"{PUBLIC}\"\nendpoint = \"192.0.2.7:51900\"\n")
}

const TWO: &str = "[[path]]\ninterface = \"sat0\"\n[[path]]\ninterface = \"wwan0\"\n";

fn read(paths: &str) -> Result<Config, ConfigError> {
    Config::parse("site.toml", &site(paths))
}

#[test]
fn without_paths_there_is_one_way() {
    let config = read("").unwrap();
    let tunnel = config.tunnel(&config.peers[0]);
    assert!(tunnel.ways.is_empty() && config.path_names().is_empty());
    assert_eq!(config.carriers(), std::slice::from_ref(&config.carrier));
}

#[test]
fn each_path_has_what_it_says_and_else_what_all_have() {
    let more =
        "metered = true\nclasses = [\"interactive\"]\nrate = \"3 Mbit/s\"\nendpoint = \"192.0.2.8:7\"\n";
    let third = "[[path]]\nname = \"cable\"\ncarrier = { serial = { device = \"/dev/ttyS0\", baud = 115200 } }\nbackup = true\n";
    let config = read(&format!("{TWO}{more}{third}")).unwrap();
    assert_eq!(config.path_names(), ["sat0", "wwan0", "cable"]);
    let [first, second, third] = config.tunnel(&config.peers[0]).ways[..] else { panic!("three ways") };
    assert_eq!((first.rate, first.usage, first.address), (LinkRate::Auto, Usage::default(), None));
    assert_eq!(second.rate, LinkRate::Fixed(Rate::from_bps(3_000_000)));
    assert_eq!(second.usage.when, When::Metered);
    assert!(second.usage.carries.contains(link::Treatment::Interactive));
    assert!(!second.usage.carries.contains(link::Treatment::Reliable));
    assert_eq!(second.address, Some(Address::Udp("192.0.2.8:7".parse().unwrap())));
    assert_eq!((third.usage.when, third.address), (When::Backup, Some(Address::Serial)));
    assert_eq!(third.rate, LinkRate::Fixed(Rate::from_bps(92_160)), "what the line carries");
    let carriers = config.carriers().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(carriers, ["0.0.0.0:51900 on sat0", "0.0.0.0:51900 on wwan0", "/dev/ttyS0"]);
}

#[test]
fn paths_that_cannot_be_are_refused() {
    for (paths, want) in [
        (
            "[[path]]\n[[path]]\nmetered = false\n",
            "paths \"path-1\" and \"path-2\" both send from 0.0.0.0:51900; allowed",
        ),
        ("[[path]]\ninterface = \"a\"\n[[path]]\naddress = \"192.0.2.1\"\n", "both send from"),
        (
            "[[path]]\ninterface = \"a\"\n[[path]]\nname = \"a\"\naddress = \"192.0.2.1\"\n",
            "two paths are called \"a\"",
        ),
        ("[[path]]\nmetered = true\nbackup = true\n", "backup = true: both metered and backup; allowed"),
        ("[[path]]\nclasses = []\n", "classes = []: no classes"),
        ("[[path]]\nspeed = 3\n", "unknown key `speed`"),
        ("[[path]]\nclasses = [\"once\"]\n", "some packets have no path but a backup; allowed"),
        ("[[path]]\nbackup = true\n", "some packets have no path but a backup; allowed"),
        (
            "[[path]]\naddress = \"2001:db8::1\"\n",
            "192.0.2.7:51900 cannot be reached from [2001:db8::1]:51900; allowed",
        ),
        (
            "[[path]]\nendpoint = \"[2001:db8::2]:7\"\n",
            "[2001:db8::2]:7 cannot be reached from 0.0.0.0:51900; allowed",
        ),
        (
            "[[path]]\ncarrier = { serial = { device = \"/dev/ttyS0\", baud = 9600 } }\n[[path]]\n",
            "a serial line as the first of several paths",
        ),
        (&TWO.repeat(5), "10 paths; allowed are up to 8"),
        (
            &format!("{TWO}[link]\nprotocol = \"slacp\"\n"),
            "2 paths, but slacp goes over one; allowed are coded and cotmll",
        ),
        (
            &format!("{TWO}[link]\nrate = \"9 Mbit/s\"\n"),
            "[link] has rate = \"9 Mbit/s\", but there are 2 paths",
        ),
        (&format!("workers = 2\n{TWO}"), "workers"),
    ] {
        let complaint = read(paths).map(|_| ()).unwrap_err().to_string();
        assert!(complaint.contains(want), "{complaint}");
        assert!(complaint.starts_with("site.toml"), "{complaint}");
    }
    let several = format!("workers = 2\n{}", site(TWO));
    let complaint = Config::parse("site.toml", &several).unwrap_err().to_string();
    assert!(complaint.contains("2 workers, but a carrier with an interface"), "{complaint}");
    let nobody =
        site("[[path]]\nendpoint = \"192.0.2.8:7\"\n").replace("endpoint = \"192.0.2.7:51900\"\n", "");
    let complaint = Config::parse("site.toml", &nobody).unwrap_err().to_string();
    assert!(complaint.contains("a path with an endpoint, but the peer has none"), "{complaint}");
}

/// What the first path has of its own is not for the others.
#[test]
fn an_endpoint_is_of_its_path_alone() {
    let config =
        read("[[path]]\ninterface = \"a\"\nendpoint = \"192.0.2.8:7\"\n[[path]]\ninterface = \"b\"\n")
            .unwrap();
    let peer = &config.peers[0];
    let addresses: Vec<_> = config.tunnel(peer).ways.iter().map(|way| way.address).collect();
    let at = |address: &str| Some(Address::Udp(address.parse().unwrap()));
    assert_eq!(addresses, [at("192.0.2.8:7"), at("192.0.2.7:51900")]);
    assert_eq!(config.place(peer).address, at("192.0.2.8:7"));
}
