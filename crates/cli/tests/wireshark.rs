//! Captures of links, read by tshark with the dissectors in `wireshark/`: what it shows is what the lab's event log and
//! counters say.
//!
//! These tests need tshark. Where it is missing they say so and pass, unless `LONGHAUL_REQUIRE_ROOT=1`, as in CI: then
//! they fail.

mod requirements;
mod scratch;
mod wireshark {
    pub(crate) mod agreement;
    pub(crate) mod gateways;
    pub(crate) mod lab;
    pub(crate) mod oddities;
    pub(crate) mod tshark;
}

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use requirements::skipped;
use scratch::Scratch;
use wireshark::agreement::{
    DIRECTIONS, INTACT, TRAILER, assert_all, assert_inner_packets, assert_trailers, assert_windows, of,
};
use wireshark::lab::{self, key};
use wireshark::tshark::{self, Row};
use wireshark::{gateways, oddities};

fn missing(test: &str) -> bool {
    skipped(test, tshark::missing())
}

#[test]
fn plain_frames_are_packets_or_fragments() {
    if missing("plain_frames_are_packets_or_fragments") {
        return;
    }
    let run = lab::run("plain", &["link.sky.protocol=\"plain\""]);
    let rows = run.agree(&["ip.version", "longhaul.plain.number"]);
    assert!(rows.iter().all(|row| row.has("ip.version") && !row.has("longhaul.plain.number")));
    assert_inner_packets(&run, INTACT);
    for direction in DIRECTIONS {
        let lost = of(&rows, direction).filter(|row| row.text("frame.comment") == "lost").count();
        assert_eq!(lost as u64, run.counter(direction, "frames-lost"));
    }
}

#[test]
fn fragments_of_plain_packets_count_on() {
    if missing("fragments_of_plain_packets_count_on") {
        return;
    }
    let run = lab::run(
        "fragments",
        &[
            "link.sky.protocol=\"plain\"",
            "link.sky.framing=\"efl\"",
            "link.sky.channel.errors={ bit-errors = { ber = 2e-5 } }",
        ],
    );
    let names =
        ["longhaul.efl.check.ok", "longhaul.plain.number", "longhaul.plain.first", "longhaul.plain.last"];
    let rows = run.agree(&[&names[..], &["ip.version", "longhaul.efl.length", "frame.len"]].concat());
    // What is damaged is not dissected further, and leaves a gap.
    let (mut numbers, mut parts) = (Vec::new(), Vec::new());
    for row in of(&rows, 0) {
        let intact = row.number("longhaul.fate") == 0;
        assert_eq!(row.text("longhaul.efl.check.ok") == "1", intact, "{row:?}");
        if intact {
            assert_eq!(row.number("frame.len"), 28 + 5 + row.number("longhaul.efl.length"));
            let number = row.has("longhaul.plain.number").then(|| row.number("longhaul.plain.number"));
            numbers.push(number);
            let [first, last] =
                ["first", "last"].map(|name| row.text(&format!("longhaul.plain.{name}")) == "1");
            // The last fragment completes a packet, unless one is missing.
            assert!(
                if number.is_none() { row.has("ip.version") } else { last || !row.has("ip.version") },
                "{row:?}"
            );
            parts.push(number.map(|_| (first, last)));
        } else {
            numbers.push(None);
            parts.push(None);
        }
    }
    let fragments: Vec<u64> = numbers.iter().flatten().copied().collect();
    assert!(fragments.len() > 50 && fragments.is_sorted(), "{fragments:?}");
    let adjoining = numbers.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?)));
    assert!(adjoining.clone().count() > 50);
    adjoining.for_each(|(before, after)| assert_eq!(after, before + 1));
    for ((_, last), (first, _)) in parts.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?))) {
        assert_eq!(first, last, "a packet begins where the one before has ended");
    }
    assert_inner_packets(&run, INTACT);
    let sent = run.counter(0, "endpoint-fragments-sent");
    assert!(fragments.len() as u64 <= sent && *fragments.last().unwrap() < sent);
}

#[test]
fn cotmll_trailers_are_those_of_the_log() {
    if missing("cotmll_trailers_are_those_of_the_log") {
        return;
    }
    let run = lab::run("cotmll", &["link.sky.protocol={ cotmll-thesis = { attempts = 2 } }"]);
    let names = ["ip.version", "longhaul.cotmll.skip.count"];
    let rows = run.agree(&[&TRAILER[..], &names].concat());
    assert_trailers(&run, rows.iter());
    assert!(rows.iter().any(|row| row.number("longhaul.cotmll.ack_count") > 0));
    assert_inner_packets(&run, INTACT);
    // A second pass, as in the graphical Wireshark, shows the same.
    let with_packet = ["-Y", "longhaul.part && tcp"];
    let once = tshark::run(&run.file(), &with_packet);
    assert!(once.lines().count() > 15);
    assert_eq!(tshark::run(&run.file(), &[&["-2"][..], &with_packet].concat()), once);
    let is_whole = |row: &&Row| {
        row.number("longhaul.cotmll.class") == 1
            && row.text("longhaul.cotmll.first") == "1"
            && row.text("longhaul.cotmll.last") == "1"
    };
    let whole: Vec<_> = rows.iter().filter(is_whole).collect();
    assert!(whole.len() > 15 && whole.iter().all(|row| row.text("ip.version") == "4"));
    for direction in DIRECTIONS {
        let skips = of(&rows, direction).filter(|row| row.has("longhaul.cotmll.skip.count")).count();
        assert!(skips > 0);
        assert_all(skips, run.counter(direction, "endpoint-skips-sent"));
    }
}

/// Goal: packets are put together where sequence numbers come again, and parts of one arrive a window apart.
#[test]
fn cotmll_packets_are_whole_across_a_full_window() {
    if missing("cotmll_packets_are_whole_across_a_full_window") {
        return;
    }
    let run = lab::run(
        "window",
        &[
            "link.sky.protocol=\"cotmll-thesis\"",
            "link.sky.channel.delay=\"250 ms\"",
            "link.sky.channel.errors={ gilbert-elliott = { f = 0.3, d = \"1 s\" } }",
            "link.sky.queue={ drop-tail = { packets = 100 } }",
            "tcp.preset=\"linux\"",
            "traffic.download.bulk.size=\"1 MB\"",
            "duration=\"200 s\"",
        ],
    );
    assert!(run.counter(0, "endpoint-frames-new") > 1024);
    assert_inner_packets(&run, INTACT);
    lab::assert_sound(&run.file());
}

#[test]
fn efl_frames_open_where_they_are_intact() {
    if missing("efl_frames_open_where_they_are_intact") {
        return;
    }
    let blockages = "link.sky.channel.errors={ gilbert-elliott = { f = 0.3, d = \"200 ms\" } }";
    let protocol = "link.sky.protocol=\"cotmll-thesis\"";
    let run = lab::run("efl", &[protocol, "link.sky.framing=\"efl\"", blockages]);
    let rows = run.agree(&[&TRAILER[..], &["longhaul.efl.check.ok"]].concat());
    let (intact, damaged): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.number("longhaul.fate") == 0);
    assert!(intact.iter().all(|row| row.text("longhaul.efl.check.ok") == "1"));
    assert_trailers(&run, intact.iter().copied());
    assert_inner_packets(&run, INTACT);
    assert!(damaged.len() > 20);
    for row in damaged {
        assert!(row.text("longhaul.efl.check.ok") != "1" && !row.has("longhaul.cotmll.class"), "{row:?}");
    }

    let run = lab::run("encrypted", &[protocol, "link.sky.framing=\"encrypted-efl\"", blockages]);
    let names = ["longhaul.efl.length", "longhaul.efl.preamble", "longhaul.cotmll.class", "frame.len"];
    let rows = run.agree(&names);
    assert!(rows.iter().all(|row| !row.has("longhaul.cotmll.class")));
    for direction in DIRECTIONS {
        let preambles = of(&rows, direction).filter(|row| row.has("longhaul.efl.preamble"));
        assert_eq!(preambles.map(key).collect::<Vec<_>>(), [(direction, 1)]);
    }
    let intact =
        rows.iter().filter(|row| row.number("longhaul.fate") == 0 && row.number("longhaul.number") > 1);
    intact.for_each(|row| assert_eq!(row.number("frame.len"), 28 + 5 + row.number("longhaul.efl.length")));
}

#[test]
fn wide_cotmll_acknowledges_what_came() {
    if missing("wide_cotmll_acknowledges_what_came") {
        return;
    }
    let run = lab::run("wide", &["link.sky.protocol=\"cotmll\""]);
    assert_windows(&run, "wide", false);
}

#[test]
fn slacp_repairs_have_a_place_behind_their_block() {
    if missing("slacp_repairs_have_a_place_behind_their_block") {
        return;
    }
    let run = lab::run("slacp", &["link.sky.protocol=\"slacp\""]);
    assert_windows(&run, "slacp", true);
    let names = ["longhaul.slacp.block", "longhaul.slacp.index", "longhaul.slacp.sources"];
    let rows = run.rows(&names);
    for direction in DIRECTIONS {
        let repairs: Vec<_> = of(&rows, direction).filter(|row| row.has("longhaul.slacp.sources")).collect();
        assert_all(repairs.len(), run.counter(direction, "endpoint-frames-repair"));
        for row in &repairs {
            assert_eq!(row.number("longhaul.kind"), 3, "{row:?}");
            assert!(row.number("longhaul.slacp.index") >= row.number("longhaul.slacp.sources"), "{row:?}");
            assert!(row.has("longhaul.slacp.block"), "{row:?}");
        }
        // What is sent again is in a block.
        let again = of(&rows, direction).filter(|row| row.number("longhaul.kind") == 1);
        again.for_each(|row| assert!(row.has("longhaul.slacp.block"), "{row:?}"));
    }
    assert!(rows.iter().any(|row| row.has("longhaul.slacp.sources")));
}

#[test]
fn coded_repairs_are_sums() {
    if missing("coded_repairs_are_sums") {
        return;
    }
    let run = lab::run("coded", &["link.sky.protocol=\"coded\""]);
    assert_windows(&run, "coded", true);
    let names = [
        "longhaul.coded.treatment",
        "longhaul.coded.class",
        "longhaul.coded.sum.count",
        "longhaul.coded.seq",
    ];
    let rows = run.rows(&names);
    assert!(rows.iter().all(|row| row.number("longhaul.coded.treatment") == 2), "one class");
    for direction in DIRECTIONS {
        let repairs = of(&rows, direction).filter(|row| row.number("longhaul.kind") == 3).count();
        assert_all(repairs, run.counter(direction, "endpoint-frames-repair"));
        let sums: Vec<_> =
            of(&rows, direction).filter(|row| row.number("longhaul.coded.class") == 3).collect();
        assert!(!sums.is_empty());
        for row in sums {
            let (count, last) = (row.number("longhaul.coded.sum.count"), row.number("longhaul.coded.seq"));
            assert!(count >= 2 && count <= last + 1, "{row:?}");
        }
    }
}

#[test]
fn coded_frames_tell_the_class_of_their_packets() {
    if missing("coded_frames_tell_the_class_of_their_packets") {
        return;
    }
    let voice = "{ from = \"hub\", to = \"terminal\", rate = \"20 kbit/s\", record = \"100 B\", transport = \"udp\", dscp = 46 }";
    let run = lab::run(
        "once",
        &["link.sky.protocol=\"coded\"", "link.sky.once-dscp=[46]", &format!("traffic.voice.rate={voice}")],
    );
    let rows = run.agree(&["longhaul.coded.treatment", "ip.dsfield.dscp"]);
    let mut seen = BTreeMap::new();
    for row in rows.iter().filter(|row| row.has("ip.dsfield.dscp")) {
        let treatment = row.number("longhaul.coded.treatment");
        assert_eq!(treatment == 0, row.number("ip.dsfield.dscp") == 46, "{row:?}");
        *seen.entry(treatment).or_insert(0) += 1;
    }
    assert!(seen[&0] > 15 && seen[&2] > 15 && seen.len() == 2, "{seen:?}");
}

#[test]
fn harq_fragments_make_whole_blocks() {
    if missing("harq_fragments_make_whole_blocks") {
        return;
    }
    let run = lab::run("harq", &["link.sky.protocol=\"harq\""]);
    let names = [
        "longhaul.harq.type",
        "longhaul.harq.fragment.index",
        "longhaul.harq.fragment.block",
        "longhaul.harq.fragment.serial",
        "longhaul.harq.fragment.redundant",
        "longhaul.harq.content.first",
        "longhaul.harq.content.last",
        "longhaul.harq.ack",
    ];
    let rows = run.agree(&names);
    for direction in DIRECTIONS {
        let fragments: Vec<_> =
            of(&rows, direction).filter(|row| row.number("longhaul.harq.type") < 3).collect();
        // A transmission is ten fragments, the last of them redundant; the last transmission may be under way.
        for (at, row) in fragments.iter().enumerate() {
            assert_eq!(row.number("longhaul.harq.fragment.index"), at as u64 % 10, "{row:?}");
            assert_eq!(row.number("longhaul.harq.fragment.serial"), at as u64 / 10 + 1, "{row:?}");
            assert_eq!(row.text("longhaul.harq.fragment.redundant") == "1", at % 10 == 9, "{row:?}");
            assert_eq!(row.number("longhaul.kind") == 3, at % 10 == 9, "{row:?}");
            if at % 10 == 0 {
                let is_packet =
                    ["first", "last"].map(|it| row.text(&format!("longhaul.harq.content.{it}")) == "1");
                assert_eq!(is_packet, [true; 2], "{row:?}");
            }
        }
        let new = fragments.iter().filter(|row| row.number("longhaul.kind") == 0);
        let blocks: BTreeSet<_> = new.map(|row| row.number("longhaul.harq.fragment.block")).collect();
        assert_eq!(blocks, (0..run.counter(direction, "endpoint-blocks-new")).collect());
        let controls = of(&rows, direction).filter(|row| row.number("longhaul.harq.type") == 3);
        let acks: Vec<_> = controls.map(|row| row.number("longhaul.harq.ack")).collect();
        let others = run.counter(1 - direction, "endpoint-blocks-new");
        assert!(acks.len() > 10 && acks.is_sorted() && *acks.last().unwrap() <= others, "{acks:?}");
    }
    // Without a code a fragment is a packet.
    let run = lab::run("repetition", &["link.sky.protocol={ harq = { data = 1, fragments = 2 } }"]);
    let rows = run.agree(&["ip.version", "longhaul.harq.fragment.index"]);
    let first = rows.iter().filter(|row| row.text("longhaul.harq.fragment.index") == "0");
    assert!(first.clone().count() > 40 && first.clone().all(|row| row.text("ip.version") == "4"));
    assert_inner_packets(&run, "tcp");
}

#[test]
fn a_wire_has_packets_with_comments() {
    if missing("a_wire_has_packets_with_comments") {
        return;
    }
    let run = lab::run("wire", &[]);
    let names = ["ip.version", "frame.comment", "frame.packet_flags_direction", "longhaul.version"];
    let rows = tshark::fields(&run.file(), "", &names);
    assert!(rows.iter().all(|row| row.text("ip.version") == "4" && !row.has("longhaul.version")));
    for direction in DIRECTIONS {
        let ours = rows.iter().filter(|row| row.number("frame.packet_flags_direction") == 2 - direction);
        assert_eq!(ours.clone().count() as u64, run.counter(direction, "packets-sent"));
        let lost = ours.filter(|row| row.text("frame.comment") == "lost").count();
        assert_eq!(lost as u64, run.counter(direction, "packets-lost"));
    }
    lab::assert_sound(&run.file());
}

#[test]
fn options_of_tcp_are_named() {
    if missing("options_of_tcp_are_named") {
        return;
    }
    let run = lab::run("lt-tcp", &["tcp.preset=\"lt-tcp\""]);
    let names =
        ["offered", "block", "number", "sources", "repair"].map(|name| format!("longhaul.tcp.coding.{name}"));
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.extend(["tcp.flags.syn", "tcp.len", "longhaul.tcp.report.block"]);
    let rows = tshark::fields(&run.file(), "", &all);
    let [offered, block, number, sources, repair] = names.each_ref().map(String::as_str);
    assert!(rows.iter().all(|row| (row.text(offered) == "1") == (row.number("tcp.flags.syn") == 1)));
    let data: Vec<_> = rows.iter().filter(|row| row.number("tcp.len") > 0).collect();
    assert!(data.len() > 40 && data.iter().all(|row| row.has(block)));
    for row in data {
        let is_repair = row.text(repair) == "1";
        assert_eq!(row.number(number) >= row.number(sources), is_repair, "{row:?}");
    }
    assert!(rows.iter().any(|row| row.text(repair) == "1"));
    assert!(rows.iter().any(|row| row.numbers("longhaul.tcp.report.block").count() == 2));

    let wide = "link.sky.protocol=\"cotmll\"";
    let run = lab::run("proxies", &[wide, "link.sky.pep={}"]);
    let rows = run.agree(&["longhaul.tcp.proxy_mss", "tcp.flags.syn", "tcp.len"]);
    let packets = rows.iter().filter(|row| row.has("tcp.len"));
    assert!(packets.clone().count() > 40);
    packets.for_each(|row| {
        let told = row.numbers("longhaul.tcp.proxy_mss").next();
        let is_syn = row.number("tcp.flags.syn") == 1;
        assert_eq!(told, is_syn.then_some(pep::ETHERNET_MSS.into()), "{row:?}");
    });
}

#[test]
fn datagrams_of_gateways_show_their_headers() {
    if missing("datagrams_of_gateways_show_their_headers") {
        return;
    }
    let scratch = Scratch::new("gateway");
    let file = PathBuf::from(scratch.path("gateway.pcapng"));
    let datagrams = gateways::exchange();
    let names = ["type", "sender", "receiver", "cookie", "noise", "seal", "counter", "payload_length", "tag"];
    let names = names.map(|name| format!("longhaul.gateway.{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // At any port: a conversation is known by its handshake.
    gateways::write(&file, &datagrams, [40_000, 40_001]);
    let rows = tshark::fields(&file, "", &names);
    let types: Vec<u64> = rows.iter().map(|row| row.number(names[0])).collect();
    assert_eq!(types, [1, 3, 1, 2, 4, 4, 4, 4, 4, 5]);
    let (handshake, (sealed, denial)) = (&rows[..4], (&rows[4..9], &rows[9]));
    let [challenge, initiation, response] = [1, 2, 3].map(|at| &handshake[at]);
    // Whoever has no cookie yet shows something, and then the one that the challenge brought; that of the answer is encrypted.
    let cookies: Vec<&str> = handshake.iter().map(|row| row.text(names[3])).collect();
    assert!(cookies[..3].iter().all(|cookie| cookie.len() == 88) && cookies[3].is_empty(), "{cookies:?}");
    assert!(cookies[0] != cookies[1] && cookies[1] == cookies[2], "{cookies:?}");
    let noise: Vec<usize> = handshake.iter().map(|row| row.text(names[4]).len()).collect();
    assert_eq!(noise, [248, 0, 248, 224]);
    // The seal ends the datagram.
    for (row, (_, datagram)) in handshake.iter().zip(&datagrams) {
        let seal: String = datagram[datagram.len() - 32..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(row.text(names[5]), seal, "{row:?}");
    }
    assert_eq!(challenge.number(names[2]), handshake[0].number(names[1]));
    assert_eq!(initiation.number(names[1]), response.number(names[2]));
    for (place, row) in sealed.iter().enumerate() {
        let to = if place < 4 { response } else { initiation };
        assert_eq!(row.number(names[2]), to.number(names[1]), "{row:?}");
        assert_eq!(row.number(names[6]), [0, 1, 2, 3, 0][place], "{row:?}");
        assert_eq!(row.number(names[7]), [1, 11, 21, 31, 5][place], "{row:?}");
        assert_eq!(row.text(names[8]).len(), 32);
    }
    // The called end says of the caller's last datagram that it does not know its session.
    assert_eq!([denial.number(names[2]), denial.number(names[6])], [response.number(names[1]), 3]);
    // Of several paths each counts its own datagrams, and the counter's highest byte says which it is.
    let mut over_another = datagrams.clone();
    over_another[5].1[15] = 2;
    gateways::write(&file, &over_another, [40_000, 40_001]);
    let rows = tshark::fields(&file, "", &["longhaul.gateway.counter", "longhaul.gateway.path"]);
    assert_eq!([rows[5].number("longhaul.gateway.counter"), rows[5].number("longhaul.gateway.path")], [1, 2]);
    assert_eq!(rows[6].text("longhaul.gateway.path"), "", "of the first path it is not said");
    // At the usual port the handshake need not be there; elsewhere it must.
    let without = &datagrams[4..9];
    for (port, known) in [(51_900, 5), (40_001, 0)] {
        gateways::write(&file, without, [40_000, port]);
        assert_eq!(tshark::count(&file, "longhaul.gateway"), known, "port {port}");
    }
    lab::assert_sound(&file);
}

#[test]
fn frames_that_no_sender_makes_are_malformed_and_nothing_fails() {
    if missing("frames_that_no_sender_makes_are_malformed_and_nothing_fails") {
        return;
    }
    let scratch = Scratch::new("oddities");
    let file = PathBuf::from(scratch.path("sky.pcapng"));
    for (protocol, framing) in oddities::PROTOCOLS {
        let frames = oddities::random();
        oddities::write(&file, oddities::format(protocol, framing), &frames);
        // An inner packet of random bytes may be malformed; that is for Wireshark's own dissectors to say.
        let rows =
            tshark::fields(&file, "", &["longhaul.number", "longhaul.malformed", "longhaul.bad_check"]);
        assert_eq!(rows.len(), frames.len());
        assert_eq!(tshark::count(&file, lab::LUA_ERROR), 0, "{protocol}");
        assert!(rows.iter().all(|row| row.has("longhaul.number")));
        let refused =
            rows.iter().filter(|row| row.has("longhaul.malformed") || row.has("longhaul.bad_check"));
        assert!(refused.count() > frames.len() / 8, "{protocol}, {framing}");
        assert!(rows[..8].iter().all(|row| row.has("longhaul.malformed")), "{protocol}: empty frames");
    }
}

/// Goal: packets in very many fragments are put together, whatever their order, and one that lacks a fragment is not.
#[test]
fn a_packet_can_have_very_many_fragments() {
    if missing("a_packet_can_have_very_many_fragments") {
        return;
    }
    const COUNT: u32 = 20_000;
    let scratch = Scratch::new("fragments");
    let file = PathBuf::from(scratch.path("sky.pcapng"));
    let in_order: Vec<u32> = (0..COUNT).collect();
    // The even ones from the end; then every other odd one, which makes runs of three; then the rest, which join these.
    let evens = (0..COUNT).step_by(2).rev();
    let mixed: Vec<u32> = evens.chain((1..COUNT).step_by(4)).chain((3..COUNT).step_by(4)).collect();
    let mut frames = oddities::fragments(&in_order, 0, 3);
    frames.extend(oddities::fragments(&mixed, COUNT, 3));
    let mut incomplete = oddities::fragments(&in_order, 2 * COUNT, 3);
    incomplete.remove(COUNT as usize / 2);
    frames.extend(incomplete);
    oddities::write(&file, oddities::format("\"plain\"", "ideal"), &frames);
    let rows = tshark::fields(&file, "ip", &["frame.number", "ip.len", "ip.dst", "longhaul.part"]);
    let ends: Vec<_> = rows.iter().map(|row| (row.number("frame.number"), row.number("ip.len"))).collect();
    let (count, bytes) = (u64::from(COUNT), u64::from(3 * COUNT));
    assert_eq!(ends, [(count, bytes), (2 * count, bytes)]);
    assert!(rows.iter().all(|row| row.text("ip.dst") == "10.0.0.2"));
    assert!(rows[0].numbers("longhaul.part").eq(1..=count), "in order");
    let mut in_order: Vec<(u32, u64)> = mixed.into_iter().zip(count + 1..).collect();
    in_order.sort_unstable();
    let frames = in_order.into_iter().map(|(_, frame)| frame);
    assert!(rows[1].numbers("longhaul.part").eq(frames), "mixed");
    lab::assert_sound(&file);
}

#[test]
fn a_super_segment_opens() {
    if missing("a_super_segment_opens") {
        return;
    }
    let scratch = Scratch::new("super-segment");
    let file = PathBuf::from(scratch.path("sky.pcapng"));
    // Metadata of TCP/IPv4 with segments of 1448 bytes, and an IPv4 header with nothing but its length behind it.
    let mut frame = vec![1, 16, 0xa8, 0x05, 52, 0, 20, 0];
    frame.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    oddities::write(&file, oddities::format("\"plain\"", "ideal"), &[frame]);
    let names = ["kind", "size", "header_length", "checksum_start", "checksum_offset"];
    let names = names.map(|name| format!("longhaul.super_segment.{name}"));
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.push("ip.dst");
    let rows = tshark::fields(&file, "", &all);
    let values: Vec<u64> = names.iter().map(|name| rows[0].number(name)).collect();
    assert_eq!((values, rows[0].text("ip.dst")), (vec![1, 1448, 52, 20, 16], "10.0.0.2"));
    lab::assert_sound(&file);
}

/// Wireshark loads every file of a plugin folder, in any order.
#[test]
fn the_folder_can_be_installed_as_a_plugin() {
    if missing("the_folder_can_be_installed_as_a_plugin") {
        return;
    }
    let run = lab::run("plugin", &["link.sky.protocol=\"coded\""]);
    let scratch = Scratch::new("home");
    let plugins = PathBuf::from(scratch.path(".local/lib/wireshark/plugins/longhaul"));
    copy(&tshark::dissectors(), &plugins);
    let file = run.file();
    let mut command = Command::new("tshark");
    command.env("HOME", scratch.path("")).env_remove("XDG_CONFIG_HOME").arg("-r").arg(&file);
    let output = command.args(["-Y", "longhaul.coded.serial && tcp"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complaint.contains("Lua"), "{complaint}");
    assert!(String::from_utf8_lossy(&output.stdout).lines().count() > 40);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
