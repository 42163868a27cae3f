//! Whole files, and what is wrong with some.

use base::{Duration, Rate};
use link::Protocol;
use link::cotmll::ToldBlock;
use serde::Serialize;

use super::*;
use tunnel::config::LinkRate;
use tunnel::path::Address;

mod paths;
mod peers;
mod secrets;
mod workers;

const SITE: &str = r#"
[tun]
name = "sat0"
addresses = ["10.77.0.1/30", "fd77::1/64"]
[carrier.udp]
listen = "192.0.2.1:51900"
[link]
protocol = "plain"
rate = "1 Mbit/s"
[identity]
private-key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
"#;

/// RFC 7748, 6.1: public keys of Alice and Bob.
const PUBLIC: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const OTHER: &str = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";

fn complaint(change: impl Fn(&str) -> String) -> String {
    Config::parse("site.toml", &change(SITE)).unwrap_err().to_string()
}

#[test]
fn a_site_is_read() {
    let config = Config::parse("site.toml", SITE).unwrap();
    assert_eq!((config.tun.mtu.0, config.carrier.limits().packet_limit), (1400, 1500));
    assert_eq!(config.carrier.limits().frame_limit(), 1500 - 28 - 33);
    assert_eq!(config.tun.addresses[1].len, 64);
    assert!(config.identity.load().is_ok());
    assert!(config.peers.is_empty() && config.share.rate.is_none(), "peers may come later");
}

#[test]
fn a_complaint_names_file_line_key_value_and_what_is_allowed() {
    for (from, to, want) in [
        (
            "\"1 Mbit/s\"",
            "\"1 Mbps\"",
            "site.toml:9: rate = \"1 Mbps\": \"1 Mbps\" is not a rate; write a number",
        ),
        ("\"1 Mbit/s\"", "\"0 bit/s\"", "site.toml:9: rate = \"0 bit/s\": a rate of zero; allowed"),
        ("\"sat0\"", "\"a/b\"", "site.toml:3: name = \"a/b\": \"a/b\" is not an interface name; allowed"),
        ("\"10.77.0.1/30\"", "\"10.77.0.1\"", "site.toml:4: addresses"),
        ("\"192.0.2.1:51900\"", "\"here\"", "site.toml:6: listen = \"here\""),
        ("\"plain\"", "\"plan\"", "site.toml:8: protocol = \"plan\": unknown value `plan`, expected"),
        (
            "\"plain\"",
            "{ harq = { data = 11 } }",
            "site.toml:8: protocol = { harq = { data = 11 } }: data = 11 of fragments = 10; allowed are",
        ),
        ("[identity]", "mut = 3\n[identity]", "site.toml:10: mut = 3: unknown key `mut`, expected one of"),
        ("AAAA=", "AA==", "site.toml:11: private-key"),
        (
            "[identity]",
            "once-dscp = [46, 64]\n[identity]",
            "site.toml:10: once-dscp = [46, 64]: 64 is not a DSCP; allowed are 0 to 63",
        ),
    ] {
        let got = complaint(|site| site.replacen(from, to, 1));
        assert!(got.starts_with(want), "{got}");
    }
    let both = complaint(|site| format!("{site}private-key-file = \"k\"\n"));
    assert!(both.contains("allowed is only one of them"), "{both}");
    let none = complaint(|site| {
        site.lines().filter(|line| !line.starts_with("private")).collect::<Vec<_>>().join("\n")
    });
    assert!(none.contains("longhaul keygen"), "{none}");
}

#[test]
fn values_that_contradict_each_other_are_complained_about_in_their_place() {
    let cotmll = |site: &str| site.replace("\"plain\"", "\"cotmll\"");
    let fillers = complaint(|site| cotmll(site).replace("[identity]", "fillers = 0\n[identity]"));
    assert!(fillers.starts_with("site.toml:10: fillers = 0: 0 fillers, but cotmll needs them"), "{fillers}");
    assert!(fillers.ends_with("allowed are 1 or more"), "{fillers}");
    let plain = SITE.replace("[identity]", "fillers = 0\n[identity]");
    assert!(Config::parse("site.toml", &plain).is_ok());
    let mtu = complaint(|site| site.replace("[carrier.udp]", "mtu = 1279\n[carrier.udp]"));
    assert!(mtu.starts_with("site.toml:4: addresses = ["), "{mtu}");
    assert!(mtu.contains("at least 1280, but [tun] has mtu = 1279; allowed"), "{mtu}");
    let route = complaint(|site| {
        let site = site.replace(", \"fd77::1/64\"", "");
        site.replace("[carrier.udp]", "mtu = 576\nroutes = [\"10.0.0.0/8\", \"fd78::/64\"]\n[carrier.udp]")
    });
    assert!(route.starts_with("site.toml:6: routes = ["), "{route}");
}

#[test]
fn a_serial_line_is_read() {
    let site = |serial: &str| {
        let table = format!("[carrier.serial]\n{serial}");
        let site = SITE.replace("[carrier.udp]\nlisten = \"192.0.2.1:51900\"\n", &table);
        format!("{site}[[peer]]\npublic-key = \"{PUBLIC}\"\n")
    };
    let device = "device = \"/dev/ttyUSB0\"\n";
    let slower = site(&format!("{device}baud = 2400\n")).replace("rate = \"1 Mbit/s\"\n", "");
    let config = Config::parse("site.toml", &slower).unwrap();
    assert_eq!(config.link.rate, LinkRate::Fixed(Rate::from_bps(1920)));
    assert_eq!((config.carrier.limits().frame_limit(), config.carrier.limits().header_len), (511 - 33, 5));
    let place = config.peers[0].place(&config.carrier);
    assert_eq!((place.address, place.pinned), (Some(Address::Serial), true));
    assert_eq!(config.peers[0].called(&config.carrier).as_deref(), Some("the serial line"));
    assert_eq!(config.peers[0].link.rate, config.link.rate);
    for (serial, want) in [
        ("baud = 9600\n".to_owned(), "missing key `device`"),
        (device.to_owned(), "missing key `baud`"),
        (
            format!("{device}baud = 49\n"),
            "site.toml:7: baud = 49: 49 is out of range; allowed are 50 to 4000000",
        ),
        (
            format!("{device}baud = 9600\n"),
            "site.toml:10: rate = \"1 Mbit/s\": a line with 9600 baud carries less; allowed are rates up to 7680 bit/s",
        ),
        (
            format!("{device}baud = 9600\nefl-key = \"00\"\n"),
            "site.toml:8: efl-key = \"00\": not a key; allowed are 32 hexadecimal digits",
        ),
        (
            format!("{device}speed = 1\n"),
            "site.toml:7: speed = 1: unknown key `speed`, expected one of `device`, `baud`, `efl-key`",
        ),
    ] {
        let error = Config::parse("site.toml", &site(&serial)).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    let other = complaint(|site| site.replace("carrier.udp", "carrier.pigeon"));
    assert!(other.contains("unknown key `pigeon`, expected `udp` or `serial`"), "{other}");
    let both =
        complaint(|site| site.replace("[link]", "[carrier.serial]\ndevice = \"x\"\nbaud = 50\n[link]"));
    assert!(both.contains("allowed are [carrier.udp] or [carrier.serial]"), "{both}");
}

#[test]
fn a_link_table_survives_as_text() {
    #[derive(Serialize)]
    struct Site {
        link: Link,
    }
    let text = "fillers = 7\nonce-dscp = [34, 46]\nrate = \"2 Mbit/s\"\nclean = true\n[protocol.cotmll]\nwindow = 256\n\
                [queue.drop-tail]\npackets = 9\n";
    let link = Link::parse("link.toml", text).unwrap();
    let site = toml::to_string(&Site { link }).unwrap();
    let site = SITE.replace("[link]\nprotocol = \"plain\"\nrate = \"1 Mbit/s\"\n", &site);
    let again = Config::parse("site.toml", &site).unwrap().link;
    assert_eq!(format!("{again:?}"), format!("{link:?}"));
    let timed = "protocol = \"plain\"\nqueue = { drop-tail = { time = \"1 s\" } }\nrate = \"max\"";
    let error = Link::parse("link.toml", timed).unwrap_err().to_string();
    assert!(error.starts_with("link.toml:2: queue = ") && error.contains("with rate = \"max\""), "{error}");
    assert!(Link::parse("link.toml", &timed.replace("max", "auto")).is_ok());
    let error = Link::parse("link.toml", "fillers = 0\nprotocol = \"cotmll\"").unwrap_err().to_string();
    assert!(error.starts_with("link.toml:1: fillers = 0: "), "{error}");
}

#[test]
fn a_protocol_is_read_with_its_parameters() {
    for (text, agreement) in
        [("\"harq\"", "harq"), ("{ harq = { data = 8, transmissions = 1 } }", "harq data=8")]
    {
        let config = Config::parse("site.toml", &SITE.replace("\"plain\"", text)).unwrap();
        assert_eq!(config.link.protocol.agreement(), agreement);
    }
    let table = "protocol = { cotmll-thesis = { block = \"latest\", frame-payload = 400 } }";
    let site = SITE.replace("protocol = \"plain\"", table);
    let Protocol::CotmllThesis(cotmll) = Config::parse("site.toml", &site).unwrap().link.protocol else {
        panic!("another protocol");
    };
    assert_eq!(
        (cotmll.block, cotmll.frame_payload.get(), cotmll.window.get()),
        (ToldBlock::Latest, 400, 512)
    );
    let newest = complaint(|_| site.replace("latest", "newest"));
    assert!(newest.contains("expected `first` or `latest`"), "{newest}");
}

/// What docs/gateway.md shows is read, and each key has its row.
#[test]
fn docs_gateway_is_complete() {
    let page = include_str!("../../../../docs/gateway.md");
    let example = page.split("```").nth(1).and_then(|text| text.strip_prefix("toml\n")).unwrap();
    let config = Config::parse("site.toml", example).unwrap();
    assert_eq!(config.status.map(|status| status.interval), Some(Duration::from_secs(1)));
    for key in [
        "name",
        "addresses",
        "routes",
        "mtu",
        "listen",
        "device",
        "baud",
        "efl-key",
        "protocol",
        "rate",
        "round-trip",
        "queue",
        "once-dscp",
        "interactive-dscp",
        "datagram-age",
        "sparse-flows",
        "fillers",
        "overhead",
        "clean",
        "private-key-file",
        "private-key",
        "public-key",
        "preshared-key-file",
        "preshared-key",
        "allowed",
        "endpoint",
        "pin-endpoint",
        "weight",
        "keep-alive",
        "file",
        "interval",
        "token",
    ] {
        assert!(page.contains(&format!("\n| `{key}` | ")), "{key} is not described");
    }
}

#[test]
fn queues_that_need_a_rate_say_so() {
    for queue in ["drop-tail = { time = \"1 s\" }", "red = {}", "fq-codel = {}"] {
        let text = format!("protocol = \"plain\"\nrate = \"max\"\nqueue = {{ {queue} }}");
        let error = Link::parse("link.toml", &text).unwrap_err().to_string();
        assert!(error.contains("rate = \"max\"; allowed are packets and bytes, or another rate"), "{error}");
        assert!(Link::parse("link.toml", &text.replace("max", "1 Mbit/s")).is_ok());
        assert!(Link::parse_without_rate("link.toml", &text).is_ok(), "it is said elsewhere");
        let error = complaint(|site| site.replace("protocol = \"plain\"\nrate = \"1 Mbit/s\"", &text));
        assert!(error.contains("rate = \"max\""), "{error}");
    }
}

/// What is packaged is read.
#[test]
fn the_examples_are_configurations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/examples");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 3);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        Config::parse(&file.display().to_string(), &text).unwrap();
    }
}

/// A page for everybody has a token; one for this host alone need not.
#[test]
fn a_page_that_others_reach_needs_a_token() {
    let page = |table: &str| Config::parse("site.toml", &format!("{SITE}\n[page]\n{table}\n"));
    assert!(page("listen = \"127.0.0.1:9470\"").is_ok() && page("listen = \"[::1]:9470\"").is_ok());
    for open in ["0.0.0.0", "192.0.2.1", "[::]"] {
        let listen = format!("listen = \"{open}:9470\"");
        let error = page(&listen).unwrap_err();
        assert!(error.message.contains("needs a token") && error.excerpt == listen, "{error}");
        assert!(page(&format!("{listen}\ntoken = \"0123456789abcdef\"")).is_ok());
    }
    for token in ["short", "with a space in it", "0123456789abcde\u{e9}"] {
        let error = page(&format!("listen = \"127.0.0.1:9470\"\ntoken = \"{token}\"")).unwrap_err();
        assert!(error.message.contains("openssl rand -hex 16"), "{error}");
    }
}
