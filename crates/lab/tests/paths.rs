//! What paths do besides errors: delays that change, jitter, several error models, packets that are too long, policing.

use std::collections::BTreeMap;
use std::path::Path;

use crate::things::{Thing, packet};
use base::wire::icmp::{Cause, Report};
use base::wire::ip::{self, Ecn, Protocol, Repr};
use base::{Duration, Instant, Packet};
use lab::engine::Engine;
use lab::node::{Wire, WireEnd};
use lab::run::{self, Watch};
use lab::scenario::Suite;
use link::queue::{self, Site};
use longhaul_lab as lab;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A wire of 100 Mbit/s and 100 ms with a path between two hosts, of which the first sends packets of `len` bytes at these times: when
/// each arrived, in ms, with its number, and what the wire counted.
fn over(path: &str, len: usize, times: &[u64]) -> (Vec<(u64, u8)>, BTreeMap<String, u64>) {
    let text = format!("rate = \"100 Mbit/s\"\ndelay = \"100 ms\"\n{path}");
    let channel: channel::duplex::Config = base::config::parse("channel.toml", &text).unwrap();
    let lines = channel.build(1, "l");
    let ends = [lines.down, lines.up].map(|line| {
        let site = Site { rate: Some(line.rate()), seed: 1, name: "l" };
        WireEnd::new(queue::Config::default().build(&site, "queue"), None, line)
    });
    let mut engine = Engine::new();
    let wire = engine.add(Thing::Wire(Box::new(Wire::new(ends))));
    let packets = times.iter().zip(0..).map(|(ms, n)| (at(*ms), packet(n, 0, len))).collect();
    let (sender, _) = Thing::host(packets);
    let (receiver, heard) = Thing::host(Vec::new());
    for host in [sender, receiver] {
        let host = engine.add(host);
        engine.connect(wire, host);
    }
    engine.run(at(60_000), 0);
    let Thing::Wire(wire) = engine.node(wire) else { panic!("no wire") };
    let report = wire.end(lab::engine::Port(0)).report();
    let heard = heard.take().into_iter().map(|(at, n)| (at.as_nanos() / 1_000_000, n)).collect();
    (heard, report)
}

/// Goal: packets take the delay of their time, in steps, slowly and slot by slot, and what leaves in the silence of a slot is lost.
#[test]
fn packets_take_the_delay_of_their_time() {
    let (heard, _) = over(
        "delay-changes = [{ at = \"1 s\", delay = \"200 ms\" }, { at = \"2 s\", delay = \"100 ms\", over = \"10 s\" }]",
        100,
        &[0, 1500, 7000, 20_000],
    );
    assert_eq!(heard, [(100, 0), (1700, 1), (7150, 2), (20_100, 3)]);
    let slots = "delay-slots = { every = \"15 s\", more = [\"0 ms\", \"30 ms\"], gap = \"50 ms\" }";
    let (heard, report) = over(slots, 100, &[0, 15_010, 15_060, 30_010, 30_060]);
    assert_eq!(heard, [(100, 0), (15_190, 2), (30_160, 4)]);
    assert_eq!((report["packets-silenced"], report["packets-lost"]), (2, 2));
}

/// Goal: when the delay falls, packets arrive in order unless overtaking is asked for.
#[test]
fn order_is_kept_when_the_delay_falls() {
    let fall = "delay-changes = [{ at = \"1 s\", delay = \"20 ms\" }]";
    let times = [990, 1000, 1010, 1075];
    let (heard, _) = over(fall, 100, &times);
    assert_eq!(heard, [(1090, 0), (1090, 1), (1090, 2), (1095, 3)]);
    let (heard, report) = over(&format!("{fall}\novertaking = true"), 100, &times);
    assert_eq!(heard, [(1020, 1), (1030, 2), (1090, 0), (1095, 3)]);
    assert_eq!(report["packets-delivered"], 4);
}

/// Goal: jitter in order delays packets and changes nothing else; overtaking jitter lets a part of them be overtaken, and none is lost.
#[test]
fn jitter_keeps_order_or_lets_packets_overtake() {
    let times: Vec<u64> = (0..200).map(|n| n * 20).collect();
    let (heard, _) = over("jitter = { in-order = { up-to = \"50 ms\" } }", 100, &times);
    assert!(heard.iter().map(|(_, n)| *n).eq(0..200));
    assert!(heard.iter().any(|(at, n)| at - u64::from(*n) * 20 > 130));
    let late = "jitter = { overtaking = { probability = 0.2, from = \"25 ms\", to = \"90 ms\" } }";
    let (heard, report) = over(late, 100, &times);
    let mut numbers: Vec<u8> = heard.iter().map(|(_, n)| *n).collect();
    assert!(!numbers.is_sorted());
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..200));
    // 40 of 200, within five standard errors.
    assert!((12..68).contains(&report["packets-late"]), "{report:?}");
    let waited = heard.iter().filter(|(at, n)| at - u64::from(*n) * 20 >= 125).count();
    assert_eq!(waited as u64, report["packets-late"]);
}

/// Goal: a packet is lost if any model of a list loses it, and each model says how many it hit.
#[test]
fn several_error_models_lose_packets_side_by_side() {
    let errors = "errors = { any = [{ scripted = { lost = [2, 4] } }, \
                  { periodic = { open = \"1 s\", blocked = \"500 ms\" } }, { scripted = { lost = [2] } }] }";
    let (heard, report) = over(errors, 100, &[0, 100, 1200, 1300, 2000]);
    assert_eq!(heard.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [0, 4]);
    let hits = [1, 2, 3].map(|model| report[&format!("packets-hit-by-errors-{model}")]);
    assert_eq!((hits, report["packets-lost"]), ([2, 2, 1], 3));
}

/// Goal: a policer passes the burst and then its rate, and what it drops never gets to the queue.
#[test]
fn a_policer_drops_what_exceeds_it() {
    // 1250 bytes take 10 ms at 1 Mbit/s.
    let times: Vec<u64> = (0..50).map(|n| 1000 + n * 5).collect();
    let (heard, report) = over("policer = { rate = \"1 Mbit/s\", burst = \"6250 B\" }", 1250, &times);
    // The burst, and what 245 ms more give.
    assert_eq!((heard.len(), report["packets-policed"]), (5 + 24, 50 - 29));
    assert_eq!((report["packets-sent"], report["queue-dropped-for-packets"]), (29, 0));
    assert!(heard[..5].iter().map(|(_, n)| *n).eq(0..5));
}

fn suite(text: &str, changes: &[&str]) -> Result<Suite, String> {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Suite::parse("s.toml", text, Path::new(""), &changes).map_err(|error| error.to_string())
}

const DOWNLOAD: &str = "name = \"paths\"\nduration = \"60 s\"\n[link.net]\nends = [\"hub\", \"terminal\"]\n\
                        channel = { rate = \"5 Mbit/s\", delay = \"20 ms\" }\n\
                        [traffic.download.bulk]\nfrom = \"hub\"\nto = \"terminal\"\nsize = \"500 kB\"\n";

/// What a download reports of the link towards the terminal, and whether it came to its end.
fn download(changes: &[&str]) -> (BTreeMap<String, u64>, bool) {
    let suite = suite(DOWNLOAD, changes).unwrap();
    let run = run::run("paths", &suite.scenario, 1, &Watch::default()).unwrap();
    assert!(run.intact);
    (run.links["net/down"].clone(), run.complete)
}

/// Goal: over a path that takes 1280 bytes TCP comes through where the wire says so, by either version of IP, and not where it is silent.
#[test]
fn tcp_hears_what_is_too_long_if_the_wire_says_so() {
    let limit = |tail: &str| format!("link.net.channel.largest-packet={{bytes=1280{tail}}}");
    for network in ["ipv4", "ipv6"] {
        let network = format!("network={network}");
        let (report, complete) = download(&[&network, &limit(",says=true")]);
        assert!(complete && report["packets-too-long"] > 0, "{network}: {report:?}");
        assert_eq!(report["packets-too-long"], report["packets-too-long-told"]);
        let (report, complete) = download(&[&network, &limit("")]);
        assert!(!complete && report["packets-too-long"] > 0 && report["packets-too-long-told"] == 0);
        // From the time on at which longer ones pass again, a silent path does no harm.
        assert!(download(&[&network, &limit(",until=\"10 s\"")]).1);
    }
}

/// Goal: what the wire says comes from its near end at once, about the packet that it dropped, which nobody gets.
#[test]
fn the_source_is_told_by_the_near_end() {
    let text = "rate = \"1 Mbit/s\"\ndelay = \"100 ms\"\nlargest-packet = { bytes = 1280, says = true }";
    let channel: channel::duplex::Config = base::config::parse("channel.toml", text).unwrap();
    let lines = channel.build(1, "l");
    let site = Site { rate: None, seed: 1, name: "l" };
    let ends = [lines.down, lines.up]
        .map(|line| WireEnd::new(queue::Config::default().build(&site, "queue"), None, line));
    let mut engine = Engine::new();
    let wire = engine.add(Thing::Wire(Box::new(Wire::new(ends))));
    let header = Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::UDP, Ecn::NotEct, 1281 - 20);
    let mut bytes = vec![0; 1281];
    header.emit(&mut bytes);
    let (sender, told) = Thing::keeper(vec![(at(5), Packet::from_slice(&bytes))]);
    let (receiver, heard) = Thing::keeper(Vec::new());
    for host in [sender, receiver] {
        let host = engine.add(host);
        engine.connect(wire, host);
    }
    engine.run(at(60_000), 0);
    let told = told.take();
    let [(when, message)] = &told[..] else { panic!("{told:?}") };
    let view = ip::View::parse(message).unwrap();
    let report = Report::parse(&view).unwrap().unwrap();
    assert_eq!((*when, view.src().to_string()), (at(5), "192.0.0.8".to_owned()));
    assert_eq!((report.cause, report.len, report.protocol), (Cause::TooBig(1280), 1281, Protocol::UDP));
    assert!(heard.take().is_empty());
}

/// Goal: paths under a link protocol lose, delay and police its frames, and a protocol that repairs losses delivers everything.
#[test]
fn a_link_gets_its_packets_over_a_bad_path() {
    let path = [
        "link.net.protocol=\"coded\"",
        "link.net.channel.delay-slots={every=\"1 s\",more=[\"0 ms\",\"9 ms\"],gap=\"50 ms\"}",
        "link.net.channel.jitter={in-order={up-to=\"10 ms\"}}",
        "link.net.channel.policer={rate=\"4 Mbit/s\",burst=\"20 kB\"}",
        "traffic.download.bulk.size=2 MB",
    ];
    let (report, complete) = download(&path);
    assert!(complete && report["frames-silenced"] > 0 && report["frames-policed"] > 0, "{report:?}");
    assert!(report["frames-lost"] >= report["frames-policed"]);
    let late = "link.net.channel.jitter={overtaking={probability=0.1,from=\"1 ms\",to=\"9 ms\"}}";
    let (report, complete) = download(&["link.net.protocol=\"plain\"", late]);
    assert!(complete && report["frames-late"] > 0, "{report:?}");
    assert_eq!(report["frames-lost"], 0);
}

/// Goal: what cannot be is refused, with what is allowed.
#[test]
fn paths_that_make_no_sense_are_refused() {
    let late = "link.net.channel.jitter={overtaking={probability=0.1,from=\"1 ms\",to=\"9 ms\"}}";
    let says = "link.net.channel.largest-packet={bytes=1280,says=true}";
    let cotmll = "link.net.protocol=\"cotmll-thesis\"";
    for (changes, want) in [
        (
            &[cotmll, late][..],
            "lets frames overtake by jitter, but \"cotmll-thesis\" infers losses from their order",
        ),
        (
            &[cotmll, "link.net.channel.overtaking=true"],
            "lets frames overtake by overtaking, but \"cotmll-thesis\" infers losses from their order",
        ),
        (
            &[
                cotmll,
                "link.net.framing=\"efl\"",
                "link.net.channel.policer={rate=\"1 Mbit/s\",burst=\"9 kB\"}",
            ],
            "has policer and a framing; allowed is framing = \"ideal\"",
        ),
        (
            &[
                cotmll,
                "link.net.framing=\"efl\"",
                "link.net.channel.errors={any=[\"none\",{erasure={probability=0.1}}]}",
            ],
            "loses whole frames, which a stream of bits does not have",
        ),
        (
            &[cotmll, says],
            "with says = true and a protocol, whose frames have no source to tell; allowed is says = false",
        ),
        (&["link.net.pep={}", says], "with says = true and a proxy, which stands between it and the source"),
        (
            &[
                "dama.beam={}",
                cotmll,
                "link.net.dama={network=\"beam\",vbdc=true}",
                "link.net.channel.up-jitter={in-order={up-to=\"1 ms\"}}",
            ],
            "has both dama and up-jitter; allowed is only one of them",
        ),
        (
            &["link.net.channel.delay-changes=[{at=\"0 s\",delay=\"1 ms\"}]"],
            "link \"net\" changes its delay at 0 s; allowed are times after 0 s",
        ),
        (&["link.net.channel.errors={any=[\"none\"]}"], "1 error models on a line; allowed are 2 to 16"),
        (
            &[
                "link.net.channel.errors={any=[\"none\",{erasure={probability=0.1,changes=[{at=\"2 s\",probability=0},{at=\"1 s\",probability=0}]}}]}",
            ],
            "changes its erasures at 1 s; allowed are times in increasing order",
        ),
    ] {
        let error = suite(DOWNLOAD, changes).unwrap_err();
        assert!(error.contains(want), "{changes:?}: {error}");
    }
    for fine in [
        &[late][..],
        &[late, "link.net.protocol=\"plain\""],
        &[says],
        &[cotmll, "link.net.channel.jitter={in-order={up-to=\"1 ms\"}}"],
    ] {
        assert!(suite(DOWNLOAD, fine).is_ok(), "{fine:?}");
    }
}
