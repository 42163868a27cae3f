//! Peers: what follows for each, and what is wrong with one or between two.

use super::*;

/// A site with these lines behind it, which begin at line 12.
fn with(peers: &str) -> Result<Config, String> {
    let site = format!("share.rate = \"9 Mbit/s\"{SITE}{peers}");
    Config::parse("site.toml", &site).map_err(|error| error.to_string())
}

/// A peer's first two lines, with as many of the rest as it takes.
fn peer(name: &str, key: &str, rest: &str) -> String {
    format!("[[peer]]\nname = \"{name}\"\npublic-key = \"{key}\"\n{rest}\n")
}

fn wrong(peers: &str) -> String {
    with(peers).expect_err(peers)
}

#[test]
fn a_single_peer_needs_a_key_only() {
    let config = with(&format!("[[peer]]\npublic-key = \"{PUBLIC}\"\n")).unwrap();
    assert_eq!(config.share.rate, Some(Rate::from_bps(9_000_000)));
    let [peer] = &config.peers[..] else { panic!("one peer") };
    assert_eq!((peer.name(), peer.public_key.to_string().as_str()), ("peer", PUBLIC));
    assert_eq!(peer.allowed, Prefix::EVERYTHING);
    assert_eq!((peer.weight, peer.keep_alive), (1, Duration::from_secs(10)));
    assert_eq!((peer.called(&config.carrier), peer.host_name()), (None, None));
    assert_eq!(peer.place(&config.carrier), tunnel::session::Peer::default());
    assert_eq!(format!("{:?}", peer.link), format!("{:?}", config.link));
    assert_eq!((&peer.pep, peer.origin.as_path()), (&config.pep, Path::new("site.toml")));
    assert_eq!(config.tunnel(peer).link.rate, config.link.rate);
}

#[test]
fn an_endpoint_is_an_address_or_a_name() {
    let of = |endpoint: &str| {
        let rest = format!("endpoint = \"{endpoint}\"\npin-endpoint = true");
        let mut config = with(&peer("hub", PUBLIC, &rest)).unwrap();
        (config.peers.remove(0), config.carrier)
    };
    let (literal, carrier) = of("198.51.100.7:51900");
    let place = literal.place(&carrier);
    assert_eq!(place.address, Some(Address::Udp(([198, 51, 100, 7], 51900).into())));
    assert!(place.pinned && literal.host_name().is_none());
    assert_eq!(literal.called(&carrier).as_deref(), Some("198.51.100.7:51900"));
    let (named, carrier) = of("hub.example.org:7000");
    let place = named.place(&carrier);
    assert_eq!((place.address, place.pinned), (None, true), "no address is known yet");
    assert_eq!(named.host_name().map(HostName::name), Some("hub.example.org"));
    assert_eq!(named.called(&carrier).as_deref(), Some("hub.example.org:7000"));
}

#[test]
fn a_peer_s_own_keys_are_laid_over_those_of_the_file() {
    let own = "allowed = [\"10.1.0.0/16\"]\nlink.rate = \"2 Mbit/s\"\npep.connections = 7\n\
               [peer.link.protocol.coded]\nwindow = 64\n[peer.pep.link]\nnagle = true";
    let both = peer("a", PUBLIC, own) + &peer("b", OTHER, "allowed = [\"10.2.0.0/16\"]");
    let base = "[pep]\nconnections = 9\nhalf-open = 5\nlink.congestion = \"bbr\"\n";
    let config = with(&format!("{both}{base}")).unwrap();
    let [a, b] = &config.peers[..] else { panic!("two peers") };
    assert_eq!((a.link.rate, b.link.rate), (LinkRate::Fixed(Rate::from_bps(2_000_000)), config.link.rate));
    assert_eq!((a.link.protocol.name(), b.link.protocol.name()), ("coded", "plain"));
    assert_eq!((a.pep.connections, a.pep.half_open, b.pep.connections), (7, 5, 9));
    assert_eq!((&a.pep.link.congestion, a.pep.link.nagle), (&config.pep.link.congestion, true));
    assert_ne!(a.pep.link.congestion, pep::Config::default().link.congestion);
    assert_eq!(b.pep, config.pep);
}

#[test]
fn a_wrong_value_is_named_with_its_place() {
    for (rest, want) in [
        ("weight = 0", "site.toml:15: weight = 0: 0 is out of range; allowed are 1 to 1000"),
        ("weight = 1001", "site.toml:15: weight = 1001: 1001 is out of range; allowed are 1 to 1000"),
        (
            "keep-alive = \"999 ms\"",
            "site.toml:15: keep-alive = \"999 ms\": 999 ms is out of range; allowed are 1 s to 10 min",
        ),
        ("keep-alive = \"11 min\"", "site.toml:15: keep-alive = \"11 min\": "),
        ("endpoint = \"hub\"", "site.toml:15: endpoint = \"hub\": \"hub\" is not an address of a peer"),
        (
            "allowed = [\"10.0.0.0\"]",
            "site.toml:15: allowed = [\"10.0.0.0\"]: \"10.0.0.0\" is not an address with",
        ),
        ("link.rat = 1", "site.toml:15: link.rat = 1: unknown key `rat`"),
        ("link.rate = \"0 bit/s\"", "site.toml:15: link.rate = \"0 bit/s\": a rate of zero"),
        ("pep.link.nagle = 1", "site.toml:15: pep.link.nagle = 1: invalid type"),
        (
            "link.protocol = \"cotmll\"\nlink.fillers = 0",
            "site.toml:16: link.fillers = 0: peer \"hub\": 0 fillers, but cotmll needs them",
        ),
        (
            "endpoint = \"[fd00::1]:1\"",
            "site.toml:15: endpoint = \"[fd00::1]:1\": peer \"hub\" cannot be reached from 192.0.2.1:51900",
        ),
        (
            "pin-endpoint = true",
            "site.toml:15: pin-endpoint = true: pin-endpoint of peer \"hub\" needs an endpoint",
        ),
        (
            "preshared-key-file = \"k\"\npreshared-key = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"",
            "site.toml:16: preshared-key = ",
        ),
    ] {
        let got = wrong(&peer("hub", PUBLIC, rest));
        assert!(got.starts_with(want), "{got}");
    }
    let degenerate = wrong(&peer("hub", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", ""));
    assert!(degenerate.starts_with("site.toml:14: public-key = "), "{degenerate}");
    for name in ["", ".hidden", "a b", "ü", &"x".repeat(64)] {
        let got = wrong(&peer(name, PUBLIC, ""));
        assert!(got.contains("site.toml:13: name") && got.contains("allowed are 1 to 63 letters"), "{got}");
    }
    assert!(with(&peer(&"x".repeat(63), PUBLIC, "")).is_ok());
    let zero = SITE.replace("[identity]", "[share]\nrate = \"0 bit/s\"\n[identity]");
    let zero = Config::parse("site.toml", &zero).unwrap_err().to_string();
    assert!(zero.starts_with("site.toml:11: rate = \"0 bit/s\": a rate of zero"), "{zero}");
}

/// What the file says is right by itself, and wrong for one of its peers.
#[test]
fn a_key_of_the_file_can_be_wrong_for_a_peer() {
    let site = SITE.replace("[identity]", "fillers = 0\n[identity]");
    let peers = peer("hub", PUBLIC, "link.protocol = \"cotmll\"");
    let error = Config::parse("site.toml", &format!("{site}{peers}")).unwrap_err().to_string();
    assert!(error.starts_with("site.toml:13: [[peer]]: peer \"hub\": 0 fillers, but cotmll"), "{error}");
}

#[test]
fn two_peers_differ() {
    let first = peer("a", PUBLIC, "allowed = [\"10.1.0.0/16\", \"fd01::/32\"]");
    assert!(with(&first).is_ok());
    for (second, want) in [
        (
            peer("b", PUBLIC, "allowed = [\"10.2.0.0/16\"]"),
            format!("site.toml:18: public-key = \"{PUBLIC}\": peer \"b\" has the public key of peer \"a\" at site.toml:14; allowed"),
        ),
        (
            peer("a", OTHER, "allowed = [\"10.2.0.0/16\"]"),
            "site.toml:17: name = \"a\": two peers are called \"a\", the other at site.toml:13; allowed".to_owned(),
        ),
        (peer("b", OTHER, ""), "site.toml:16: [[peer]]: peer \"b\" does not say which networks".to_owned()),
        (
            format!("[[peer]]\npublic-key = \"{OTHER}\"\nallowed = []\n"),
            "site.toml:16: [[peer]]: a peer without a name; where there are several".to_owned(),
        ),
        (
            peer("b", OTHER, "allowed = [\"10.2.0.0/16\", \"10.1.7.0/24\"]"),
            "site.toml:19: allowed = [\"10.2.0.0/16\", \"10.1.7.0/24\"]: 10.1.7.0/24 of peer \"b\" overlaps 10.1.0.0/16 of peer \
             \"a\" at site.toml:15; allowed"
                .to_owned(),
        ),
        (
            peer("b", OTHER, "allowed = [\"::/0\"]"),
            "site.toml:19: allowed = [\"::/0\"]: ::/0 of peer \"b\" overlaps fd01::/32 of peer \"a\" at site.toml:15".to_owned(),
        ),
    ] {
        let got = wrong(&format!("{first}{second}"));
        assert!(got.starts_with(&want), "{got}");
    }
    let others = peer("b", OTHER, "allowed = [\"10.2.0.0/16\", \"10.0.0.0/16\", \"fd00::/32\"]");
    assert_eq!(with(&format!("{first}{others}")).unwrap().peers.len(), 2);
}

/// Networks within networks: a peer may have both, and nobody else what lies in either.
#[test]
fn networks_nest_within_a_peer_only() {
    let first = peer("a", PUBLIC, "allowed = [\"10.0.0.0/8\", \"10.1.0.0/16\", \"10.1.1.0/24\"]");
    assert!(with(&first).is_ok());
    for inner in ["10.1.1.1/32", "10.1.2.0/24", "10.9.0.0/16", "10.255.255.255/32", "10.0.0.0/8", "0.0.0.0/0"]
    {
        let got = wrong(&format!("{first}{}", peer("b", OTHER, &format!("allowed = [\"{inner}\"]"))));
        assert!(got.starts_with("site.toml:19: ") && got.contains("of peer \"a\" at site.toml:15"), "{got}");
    }
    assert!(with(&format!("{first}{}", peer("b", OTHER, "allowed = [\"11.0.0.0/32\"]"))).is_ok());
    let twice = wrong(&peer("a", PUBLIC, "allowed = [\"10.1.0.0/16\", \"10.1.9.9/16\"]"));
    assert!(twice.contains("10.1.9.9/16 is there twice; allowed is each network once"), "{twice}");
}

#[test]
fn what_a_device_or_a_line_cannot_have_is_refused() {
    let narrow = SITE.replace(", \"fd77::1/64\"", "").replace("[carrier.udp]", "mtu = 1279\n[carrier.udp]");
    let parse = |site: &str, peers: &str| Config::parse("site.toml", &format!("{site}{peers}"));
    let error = parse(&narrow, &peer("a", PUBLIC, "allowed = [\"fd01::/32\"]")).unwrap_err().to_string();
    assert!(
        error.starts_with("site.toml:16: allowed") && error.contains("needs an MTU of at least 1280"),
        "{error}"
    );
    assert!(parse(&narrow, &peer("a", PUBLIC, "")).is_ok(), "everything is everything that there is");

    let serial = "[carrier.serial]\ndevice = \"/dev/ttyS0\"\nbaud = 9600\n";
    let serial =
        SITE.replace("[carrier.udp]\nlisten = \"192.0.2.1:51900\"\n", serial).replace("1 Mbit/s", "auto");
    let error = |peers: &str| parse(&serial, peers).unwrap_err().to_string();
    assert!(error("").contains("no peer, but a serial line has one other end"), "{}", error(""));
    let two = peer("a", PUBLIC, "allowed = []") + &peer("b", OTHER, "allowed = []");
    assert!(error(&two).contains("2 peers, but a serial line has one other end"), "{}", error(&two));
    let called = error(&peer("a", PUBLIC, "endpoint = \"192.0.2.7:1\""));
    assert!(
        called.starts_with("site.toml:16: endpoint = ") && called.contains("allowed is no endpoint"),
        "{called}"
    );
    let fast = error(&peer("a", PUBLIC, "link.rate = \"1 Mbit/s\""));
    assert!(fast.starts_with("site.toml:16: link.rate") && fast.contains("rates up to 7680 bit/s"), "{fast}");
    let own = parse(&serial, &peer("a", PUBLIC, "link.fillers = 3")).unwrap();
    assert_eq!(own.peers[0].link.rate, LinkRate::Fixed(Rate::from_bps(7680)));
}

#[test]
fn what_earlier_versions_had_says_what_to_write_now() {
    let former = SITE.replace("[identity]\nprivate-key", "[session]\nkey");
    let error = |site: &str| Config::parse("site.toml", site).unwrap_err().to_string();
    let told = error(&former);
    assert_eq!(
        told,
        "site.toml:10: [session]: [session] is gone: gateways have identities now; run `longhaul keygen --out identity.key` at each \
         end, put private-key-file = \"identity.key\" under [identity], and under [[peer]] public-key = \"…\", as `longhaul pubkey \
         identity.key` prints it at the other end"
    );
    let called = former.replace("[link]", "peer = \"hub.example.org:7000\"\npin-peer = true\n[link]");
    assert!(
        error(&called).ends_with("at the other end and endpoint = \"hub.example.org:7000\""),
        "{}",
        error(&called)
    );
    let moved = called.replace("[session]\nkey", "[identity]\nprivate-key");
    assert_eq!(
        error(&moved),
        "site.toml:7: peer = \"hub.example.org:7000\": `peer` has moved; write endpoint = \"hub.example.org:7000\" under \
         [[peer]] instead"
    );
    let pinned = moved.replace("peer = \"hub.example.org:7000\"\n", "");
    assert!(
        error(&pinned).starts_with("site.toml:7: pin-peer = true: `pin-peer` has moved; write pin-endpoint")
    );
}
