//! A small scenario, run by the program: a capture of its link, its event log and its counters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::tshark::{self, Row};
use crate::scratch::Scratch;

/// A run with its files.
pub(crate) struct Run {
    scratch: Scratch,
    log: Vec<Value>,
    counters: Value,
}

/// What the log says of a frame from its start to its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logged {
    pub(crate) kind: String,
    pub(crate) bits: u64,
    pub(crate) from: u64,
    pub(crate) arrives_at: u64,
    pub(crate) intact: bool,
    pub(crate) trailer: Value,
}

/// By direction (0 down, 1 up) and number.
pub(crate) type Frames = BTreeMap<(u64, u64), Logged>;

/// A download over a link that loses one frame in ten.
const SCENARIO: &str = r#"
name = "A download over a lossy link"
seed = 1
seeds = 1
duration = "20 s"

[link.sky]
ends = ["hub", "terminal"]

[link.sky.channel]
rate = "256 kbit/s"
delay = "50 ms"
errors = { erasure = { probability = 0.1 } }

[traffic.download.bulk]
from = "hub"
to = "terminal"
size = "40 kB"
"#;

/// Runs the scenario with these changes and captures its link.
pub(crate) fn run(name: &str, changes: &[&str]) -> Run {
    let scratch = Scratch::new(name);
    let file = PathBuf::from(scratch.path("scenario.toml"));
    std::fs::write(&file, SCENARIO).unwrap();
    let log = PathBuf::from(scratch.path("log"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.arg("run").arg(&file).args(["--json", "--pcap", "sky", "--out"]).arg(scratch.path(""));
    command.arg("--log").arg(&log);
    changes.iter().for_each(|change| {
        command.args(["--set", change]);
    });
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    let log = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Run { scratch, log, counters: summary["runs"][0]["links"].clone() }
}

impl Run {
    /// The capture of the link.
    pub(crate) fn file(&self) -> PathBuf {
        PathBuf::from(self.scratch.path("sky.pcapng"))
    }

    /// A counter of one direction.
    pub(crate) fn counter(&self, direction: u64, name: &str) -> u64 {
        let counter = &self.counters[place(direction)][name];
        counter.as_u64().unwrap_or_else(|| panic!("no {name} of {}", self.counters))
    }

    /// Events of this kind in one direction.
    pub(crate) fn events<'a>(&'a self, direction: u64, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.log.iter().filter(move |event| event["event"] == kind && event["place"] == place(direction))
    }

    /// Every frame that left, as the log has it.
    pub(crate) fn frames(&self) -> Frames {
        let mut frames = Frames::new();
        for direction in [0, 1] {
            let mut started = BTreeMap::new();
            for event in self.events(direction, "frame-started") {
                let number = |name: &str| event[name].as_u64().unwrap();
                let (kind, bits) = (event["kind"].as_str().unwrap().to_owned(), number("bits"));
                let (from, arrives_at) = (number("from"), number("arrives_at"));
                let logged = Logged { kind, bits, from, arrives_at, ..Logged::default() };
                started.insert(number("number"), logged);
            }
            for event in self.events(direction, "frame-sealed") {
                let number = event["number"].as_u64().unwrap();
                let (intact, trailer) = (event["intact"].as_bool().unwrap(), event["trailer"].clone());
                frames.insert((direction, number), Logged { intact, trailer, ..started[&number].clone() });
            }
        }
        frames
    }

    /// These fields of every captured frame, with those that tell frames apart.
    pub(crate) fn rows(&self, names: &[&str]) -> Vec<Row> {
        let mut rows = tshark::fields(&self.file(), "", &[&COMMON[..], names].concat());
        let lines = tshark::run(&self.file(), &[]);
        assert_eq!(lines.lines().count(), rows.len());
        rows.iter_mut().zip(lines.lines()).for_each(|(row, line)| row.set_line(line));
        rows
    }

    /// The capture has the very frames of the log, says the same of them, and nothing in it is malformed. The rows are
    /// answered.
    pub(crate) fn agree(&self, names: &[&str]) -> Vec<Row> {
        let (rows, mut frames) = (self.rows(names), self.frames());
        assert!(frames.len() > 50 && frames.values().any(|frame| !frame.intact));
        let mut before = 0;
        for row in &rows {
            let key = key(row);
            let logged =
                frames.remove(&key).unwrap_or_else(|| panic!("{key:?} is not in the log, or twice here"));
            let at = nanos(row.text("frame.time_epoch"));
            assert!(at >= before, "out of order: {key:?}");
            before = at;
            assert_eq!((at, row.number("longhaul.bits")), (logged.arrives_at, logged.bits), "{key:?}");
            assert_eq!(row.number("longhaul.under_way"), logged.arrives_at - logged.from, "{key:?}");
            assert_eq!(KINDS[row.number("longhaul.kind") as usize], logged.kind, "{key:?}");
            let (fate, comment) = (row.number("longhaul.fate"), row.text("frame.comment"));
            assert_eq!((fate == 0, comment.is_empty()), (logged.intact, logged.intact), "{key:?}");
            assert!(["", "damaged", "lost"][fate as usize] == comment, "{key:?}: {comment}");
            assert_eq!(row.number("frame.packet_flags_direction"), 2 - key.0, "{key:?}");
            let experts = [row.has("longhaul.damaged"), row.has("longhaul.lost")];
            assert_eq!(experts, [fate == 1, fate == 2], "{key:?}");
            let mark = ["", " [damaged]", " [lost]"][fate as usize];
            let line = format!("{} {}{mark} {}", ["down", "up"][key.0 as usize], key.1, logged.kind);
            assert!(row.line().contains(&line), "{row:?}: no {line}");
        }
        assert!(frames.is_empty(), "not captured: {frames:?}");
        assert_sound(&self.file());
        rows
    }
}

/// No frame is malformed, and no dissector failed.
pub(crate) fn assert_sound(file: &Path) {
    let bad = format!("longhaul.malformed || longhaul.bad_packet || _ws.malformed || {LUA_ERROR}");
    let bad = tshark::run(file, &["-Y", &bad]);
    assert_eq!(bad.lines().next(), None);
}

/// What Wireshark adds to a frame where one of our dissectors fails.
pub(crate) const LUA_ERROR: &str = "_ws.lua.error";

/// A frame's direction and number.
pub(crate) fn key(row: &Row) -> (u64, u64) {
    (row.number("longhaul.direction"), row.number("longhaul.number"))
}

/// Nanoseconds of a time in seconds with nine decimals.
fn nanos(text: &str) -> u64 {
    let (seconds, decimals) = text.split_once('.').unwrap();
    assert_eq!(decimals.len(), 9, "{text}");
    seconds.parse::<u64>().unwrap() * 1_000_000_000 + decimals.parse::<u64>().unwrap()
}

const fn place(direction: u64) -> &'static str {
    if direction == 0 { "sky/down" } else { "sky/up" }
}

const COMMON: [&str; 11] = [
    "longhaul.damaged",
    "longhaul.lost",
    "frame.time_epoch",
    "frame.comment",
    "frame.packet_flags_direction",
    "longhaul.direction",
    "longhaul.number",
    "longhaul.kind",
    "longhaul.fate",
    "longhaul.bits",
    "longhaul.under_way",
];
const KINDS: [&str; 5] = ["new", "retransmission", "filler", "repair", "control"];
