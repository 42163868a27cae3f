//! What a capture of a link, its event log and its counters must agree on.

use std::collections::BTreeSet;

use super::lab::{Run, key};
use super::tshark::{self, Row};

/// Down, towards the terminal, and up.
pub(crate) const DIRECTIONS: [u64; 2] = [0, 1];

/// Frames that came, with TCP in them.
pub(crate) const INTACT: &str = "tcp && longhaul.fate == 0";

/// The frames of one direction.
pub(crate) fn of(rows: &[Row], direction: u64) -> impl Iterator<Item = &Row> {
    rows.iter().filter(move |row| row.number("longhaul.direction") == direction)
}

/// As many frames were captured as were sent; one may have started that had not left when the run ended.
pub(crate) fn assert_all(captured: usize, sent: u64) {
    let captured = captured as u64;
    assert!(captured <= sent && sent <= captured + 1, "{captured} of {sent}");
}

/// Every packet that was delivered is in a frame that `filter` lets through, and Wireshark's own dissectors have taken it
/// apart there. This holds where packets are whole in a frame, or put together again.
pub(crate) fn assert_inner_packets(run: &Run, filter: &str) {
    let names = ["longhaul.direction", "tcp.srcport", "tcp.seq", "tcp.len"];
    let packet = |row: &Row| names.map(|name| row.number(name));
    let seen: BTreeSet<_> = tshark::fields(&run.file(), filter, &names).iter().map(packet).collect();
    for direction in DIRECTIONS {
        let packets = run.events(direction, "packet").filter(|packet| packet["step"] == "delivered");
        let mut count = 0;
        for packet in packets {
            let number = |name: &str| packet[name].as_u64().unwrap();
            // Wireshark counts the SYN as the byte before the first; a SYN has its own number in both.
            let is_syn = number("len") == 0 && count == 0;
            let sequence = if is_syn { 0 } else { number("seq") + 1 };
            let wanted = [direction, number("from"), sequence, number("len")];
            assert!(seen.contains(&wanted), "{packet}");
            count += 1;
        }
        assert!(count > 15, "{count} packets");
    }
}

/// Every field of every trailer is the log's.
pub(crate) fn assert_trailers<'a>(run: &Run, rows: impl Iterator<Item = &'a Row>) {
    let frames = run.frames();
    for row in rows {
        let trailer = &frames[&key(row)].trailer;
        let class = ["control", "reliable", "unreliable"][row.number("longhaul.cotmll.class") as usize];
        assert_eq!(trailer["class"], class, "{row:?}");
        for (field, name) in [("seq", "tx"), ("ack", "ack"), ("ack_count", "ack_count")] {
            assert_eq!(trailer[name], row.number(&format!("longhaul.cotmll.{field}")), "{row:?}");
        }
        for name in ["first", "last"] {
            let field = row.text(&format!("longhaul.cotmll.{name}"));
            assert_eq!(trailer[name], field == "1", "{row:?}");
        }
    }
}

/// A trailer's fields.
pub(crate) const TRAILER: [&str; 6] = [
    "longhaul.cotmll.class",
    "longhaul.cotmll.seq",
    "longhaul.cotmll.ack",
    "longhaul.cotmll.ack_count",
    "longhaul.cotmll.first",
    "longhaul.cotmll.last",
];

/// What wide COTMLL, SLACP and coded ARQ have in common: new frames are numbered from 0, every frame has the next serial, and
/// an acknowledgement names the first frame that had not come when it left. A protocol that `recovers` frames
/// without their coming, or gives some up, may be further.
pub(crate) fn assert_windows(run: &Run, protocol: &str, recovers: bool) -> Vec<Row> {
    let field = |name: &str| format!("longhaul.{protocol}.{name}");
    let (class, seq, serial) = (field("class"), field("seq"), field("serial"));
    let (ack, heard, missing) = (field("ack"), field("heard"), field("report.missing"));
    let mut names = vec!["ip.version"];
    names.extend([&class, &seq, &serial, &ack, &heard, &missing].map(String::as_str));
    let rows = run.agree(&names);
    let frames = run.frames();
    for direction in DIRECTIONS {
        let new: Vec<u64> = of(&rows, direction)
            .filter(|row| row.number("longhaul.kind") == 0)
            .map(|row| row.number(&seq))
            .collect();
        assert_eq!(new, (0..new.len() as u64).collect::<Vec<_>>());
        assert!(new.len() > 15);
        assert_all(new.len(), run.counter(direction, "endpoint-frames-new"));
        let first = of(&rows, direction).next().unwrap().number(&serial);
        for (row, wanted) in of(&rows, direction).zip(first..) {
            assert_eq!(row.number(&serial), wanted, "{row:?}");
        }
        // What had come by when, and the serials of all that came.
        let (frames, class) = (&frames, &class);
        let came = |of_all: bool, by: u64| {
            let intact = of(&rows, 1 - direction).filter(|row| row.number("longhaul.fate") == 0);
            let by_then = intact.filter(move |row| frames[&key(row)].arrives_at <= by);
            by_then.filter(move |row| of_all || row.number(class) == 1)
        };
        let mut furthest = 0;
        for row in of(&rows, direction) {
            let from = frames[&key(row)].from;
            let numbers: BTreeSet<_> = came(false, from).map(|row| row.number(&seq)).collect();
            let next = (0..).find(|number| !numbers.contains(number)).unwrap();
            let told = row.number(&ack);
            assert!(told == next || recovers && told > next, "{row:?}: {next} is missing");
            furthest = furthest.max(told);
            let newest = came(true, from).map(|row| row.number(&serial)).max();
            assert_eq!(row.number(&heard), newest.unwrap_or(0), "{row:?}");
            let told = format!("serial {}, ack {told}, heard {}", row.number(&serial), row.number(&heard));
            assert!(row.line().contains(&told), "{row:?}: no {told}");
        }
        let others = of(&rows, 1 - direction).filter(|row| row.number("longhaul.kind") == 0).count() as u64;
        assert!(furthest <= others && furthest > others / 2, "{furthest} of {others}");
    }
    assert!(rows.iter().any(|row| row.has(&missing)), "no report has a gap");
    let data = rows.iter().filter(|row| row.number(&class) == 1);
    assert!(data.clone().count() > 40 && data.clone().all(|row| row.text("ip.version") == "4"));
    // What was solved or recovered never came.
    assert_inner_packets(run, if recovers { "tcp" } else { INTACT });
    rows
}
