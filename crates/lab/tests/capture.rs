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
    let file = std::env::temp_dir().join(format!("longhaul-capture-{}.pcap", std::process::id()));
    let watch = Watch { capture: Some(("terminal".to_owned(), file.clone())), ..Watch::default() };
    run::run(name, scenario, 1, &watch).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();

    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut data, mut syns, mut before) = (24, 0, 0, (0, 0));
    while at < bytes.len() {
        let (time, len) = ((word(at), word(at + 4)), word(at + 8));
        assert!(time >= before && word(at + 12) == len);
        before = time;
        let packet = ip::View::parse(&bytes[at + 16..at + 16 + len]).unwrap();
        let view = tcp::View::parse(packet.payload()).unwrap();
        let header = tcp::Repr::parse(&view, packet.src(), packet.dst()).unwrap();
        syns += usize::from(header.flags.has(Flags::SYN));
        data += view.payload().len();
        at += 16 + len;
    }
    assert_eq!((at, syns), (bytes.len(), 2));
    assert!(data >= 100_000, "{data}");
}

#[test]
fn an_unknown_node_is_named_with_the_known_ones() {
    let suite = Suite::parse("download.toml", DEMO, Path::new(""), &[]).unwrap();
    let watch = Watch { capture: Some(("moon".to_owned(), "moon.pcap".into())), ..Watch::default() };
    let error = run::run("TCP", &suite.scenario, 1, &watch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no node or link \"moon\"; the nodes are server, terminal, the links satellite"
    );
}
