//! A capture holds what the node sent and received, every packet whole and with right checksums.

use std::path::Path;

use base::wire::ip;
use base::wire::tcp::{self, Flags};
use longhaul_lab::run::{self, Watch};
use longhaul_lab::scenario::Suite;

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");

#[test]
fn every_captured_packet_parses() {
    let changes = ["traffic.download.bulk.size=100 kB".parse().unwrap()];
    let suite = Suite::parse("download.toml", DEMO, Path::new(""), &changes).unwrap();
    let (name, scenario) = &suite.schemes[1];
    let file = std::env::temp_dir().join(format!("longhaul-capture-{}.pcapng", std::process::id()));
    let watch = Watch { capture: Some(("terminal".to_owned(), file.clone())), ..Watch::default() };
    run::run(name, scenario, 1, &watch).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();

    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut data, mut syns, mut before) = (0, 0, 0, (0, 0));
    while at < bytes.len() {
        let (kind, whole) = (word(at), word(at + 4));
        if kind != 6 {
            // The section and its interface.
            at += whole;
            continue;
        }
        let (time, len) = ((word(at + 12), word(at + 16)), word(at + 20));
        assert!(time >= before && word(at + 24) == len);
        before = time;
        let packet = ip::View::parse(&bytes[at + 28..at + 28 + len]).unwrap();
        let view = tcp::View::parse(packet.payload()).unwrap();
        let header = tcp::Repr::parse(&view, packet.src(), packet.dst()).unwrap();
        syns += usize::from(header.flags.has(Flags::SYN));
        data += view.payload().len();
        at += whole;
    }
    assert_eq!((at, syns), (bytes.len(), 2));
    assert!(data >= 100_000, "{data}");
}

#[test]
fn an_unknown_node_is_named_with_the_known_ones() {
    let suite = Suite::parse("download.toml", DEMO, Path::new(""), &[]).unwrap();
    let watch = Watch { capture: Some(("moon".to_owned(), "moon.pcapng".into())), ..Watch::default() };
    let error = run::run("TCP", &suite.scenario, 1, &watch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no node or link \"moon\"; the nodes are server, terminal, the links satellite"
    );
}

/// Goal: a capture of a link takes no part, whatever the link is, and is the same each time.
#[test]
fn capturing_a_link_changes_nothing() {
    let folder = std::env::temp_dir().join(format!("longhaul-capture-link-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Without a protocol the link is a wire.
    let demo = DEMO.replace("protocol = \"plain\"\n", "");
    for (number, link) in LINKS.into_iter().enumerate() {
        let mut changes = vec!["traffic.download.bulk.size=20 kB".parse().unwrap()];
        changes.extend(link.iter().map(|change| change.parse().unwrap()));
        let suite = Suite::parse("download.toml", &demo, Path::new(""), &changes).unwrap();
        let file = folder.join(number.to_string());
        let captured = || {
            let watch = Watch { capture: Some(("satellite".to_owned(), file.clone())), ..Watch::default() };
            let run = run::run("one", &suite.scenario, 1, &watch).unwrap();
            (run, std::fs::read(&file).unwrap())
        };
        let plain = run::run("one", &suite.scenario, 1, &Watch::default()).unwrap();
        let (first, bytes) = captured();
        assert_eq!((&first.trace_hash, first.events), (&plain.trace_hash, plain.events), "{link:?}");
        assert_eq!(first.links, plain.links, "{link:?}");
        assert!(bytes.len() > 20_000, "{link:?}");
        assert_eq!(captured().1, bytes, "{link:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Links of every kind: how frames are framed, and when they leave.
const LINKS: [&[&str]; 7] = [
    &[],
    &["link.satellite.protocol=\"plain\""],
    &["link.satellite.protocol=\"cotmll-thesis\""],
    &["link.satellite.protocol=\"coded\"", "link.satellite.pep={}"],
    &["link.satellite.protocol=\"cotmll-thesis\"", "link.satellite.framing=\"efl\""],
    &["link.satellite.protocol=\"plain\"", "link.satellite.framing=\"encrypted-efl\""],
    &["link.satellite.protocol=\"slacp\"", "link.satellite.dama={ vbdc = true }"],
];
