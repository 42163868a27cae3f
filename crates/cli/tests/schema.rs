//! The schemas that editors use: as strict as the parsers, and no stricter.

#[path = "schema/samples.rs"]
mod samples;

use std::path::{Path, PathBuf};
use std::process::Command;

use base::config::parse;
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const KINDS: [&str; 4] = ["scenario", "study", "gateway", "gateway-peer"];

/// What `longhaul schema` prints.
fn printed(kind: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul")).args(["schema", kind]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
    text: Value,
}

impl Schema {
    fn of(kind: &str) -> Self {
        let text: Value = serde_json::from_str(&printed(kind)).unwrap();
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("schema.json", text.clone()).unwrap();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        Self { schemas, index, text }
    }

    /// What is wrong with a document, each complaint with its place.
    fn complaint(&self, document: &str) -> Option<String> {
        let table: toml::Table = document.parse().unwrap_or_else(|error| panic!("{error}\n{document}"));
        let value = serde_json::to_value(table).unwrap();
        self.schemas.validate(&value, self.index).err().map(|error| error.to_string())
    }
}

/// With `LONGHAUL_WRITE_SCHEMAS=1` this writes the files.
#[test]
fn the_schemas_in_the_tree_are_those_of_the_program() {
    for kind in KINDS {
        let path = Path::new(ROOT).join(format!("scenarios/schema/{kind}.json"));
        let printed = printed(kind);
        if std::env::var_os("LONGHAUL_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &printed).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap();
        assert!(
            stored == printed,
            "{kind}.json is old; LONGHAUL_WRITE_SCHEMAS=1 cargo test -p longhaul --test schema writes it"
        );
    }
}

/// Every file under `scenarios/` with this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_study(text: &str) -> bool {
    ["[[experiment]]", "[[figure]]", "[[table]]", "[[claim]]", "\ninclude = ["]
        .iter()
        .any(|part| text.contains(part))
}

#[test]
fn every_file_names_its_schema_and_fits() {
    let [scenario, study] = ["scenario", "study"].map(Schema::of);
    let files = files(&Path::new(ROOT).join("scenarios"), "toml");
    assert!(files.len() > 40);
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let (schema, kind) = if is_study(&text) { (&study, "study") } else { (&scenario, "scenario") };
        let first = format!("#:schema ../schema/{kind}.json");
        assert_eq!(text.lines().next(), Some(first.as_str()), "{}", path.display());
        assert_eq!(schema.complaint(&text), None, "{}", path.display());
    }
}

/// Blocks of the pages that the parsers take for whole files.
#[test]
fn what_the_pages_show_fits() {
    let [scenario, study, gateway] = ["scenario", "study", "gateway"].map(Schema::of);
    let mut pages = files(&Path::new(ROOT).join("docs"), "md");
    pages.push(Path::new(ROOT).join("README.md"));
    let mut seen = [0; 3];
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("\n```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next()) {
            let checks = [
                lab::scenario::Suite::parse("page", block, Path::new(ROOT), &[]).is_ok(),
                is_study(block) && block.parse::<toml::Table>().is_ok(),
                gateway::config::Config::parse("page", block).is_ok(),
            ];
            for (place, schema) in
                [&scenario, &study, &gateway].into_iter().enumerate().filter(|&(at, _)| checks[at])
            {
                assert_eq!(schema.complaint(block), None, "{}:\n{block}", page.display());
                seen[place] += 1;
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

const SCENARIO: &str = r#"
name = "two hosts"
duration = "60 s"
seeds = 2
[tcp]
preset = "linux"
nagle = false
recovery = "rack"
rto.min = "1 s"
[link.satellite]
ends = ["hub", "terminal"]
channel = { rate = "1 Mbit/s", delay = "250 ms", errors = { erasure = { probability = 0.01 } } }
protocol = "cotmll-thesis"
queue = { drop-tail = { packets = 10 } }
[traffic.download.bulk]
from = "hub"
to = "terminal"
size = "1 MB"
[[scheme]]
name = "TCP"
set = { link.satellite.protocol = "plain" }
"#;

const GATEWAY: &str = r#"
[tun]
name = "sat0"
addresses = ["10.77.0.1/30", "fd77::1/64"]
[carrier.udp]
listen = "192.0.2.1:51900"
[link]
protocol = "plain"
rate = "1 Mbit/s"
once-dscp = [46]
[identity]
private-key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
[pep]
connections = 100
link.congestion = "bbr"
[[peer]]
public-key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
endpoint = "hub.example.org:51900"
allowed = ["10.78.0.0/16"]
"#;

const PEER: &str = r#"
public-key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
weight = 2
link = { rate = "2 Mbit/s" }
"#;

/// What is changed, into what, and the key that schema and parser complain about.
type Wrong = (&'static str, &'static str, &'static str);

const WRONG_SCENARIOS: &[Wrong] = &[
    ("duration", "durration", "durration"),
    ("duration = \"60 s\"\n", "", "duration"),
    ("\"60 s\"", "\"60 sec\"", "duration"),
    ("\"60 s\"", "60", "duration"),
    ("\"60 s\"", "\"0 s\"", "duration"),
    ("seeds = 2", "seeds = 0", "seeds"),
    ("seeds = 2", "seeds = 100001", "seeds"),
    ("seeds = 2", "seed = -1", "seed"),
    ("seeds = 2", "network = \"ipv5\"", "network"),
    ("\"linux\"", "\"windows\"", "preset"),
    ("nagle = false", "nagle = 0", "nagle"),
    ("nagle = false", "mss = 10", "mss"),
    ("nagle = false", "mss = 65496", "mss"),
    ("nagle = false", "cwnd = 3", "cwnd"),
    ("nagle = false", "congestion = \"tahoe\"", "congestion"),
    ("nagle = false", "congestion = { fast = { gamma = 1.5 } }", "gamma"),
    ("nagle = false", "congestion = { vegas = { alpha = 0 } }", "alpha"),
    ("nagle = false", "congestion = { hybla = { rtt0 = \"0 s\" } }", "rtt0"),
    ("nagle = false", "window.initial = 0", "initial"),
    ("nagle = false", "window.initial = \"iw10\"", "initial"),
    ("nagle = false", "window.receive-buffer = \"0 B\"", "receive-buffer"),
    ("nagle = false", "window.after-idle = \"go\"", "after-idle"),
    ("nagle = false", "limits.backlog = 0", "backlog"),
    ("nagle = false", "fec.granularity = 65", "granularity"),
    ("nagle = false", "sharing = \"some\"", "sharing"),
    ("nagle = false", "sharing.prefix-v4 = 33", "prefix-v4"),
    ("nagle = false", "acknowledgements.delayed = true", "delayed"),
    ("\"rack\"", "\"tahoe\"", "recovery"),
    ("\"rack\"", "{ skeme = \"rack\" }", "skeme"),
    ("rto.min = \"1 s\"", "rto.min = \"0 s\"", "min"),
    ("[\"hub\", \"terminal\"]", "[\"hub\"]", "ends"),
    ("[\"hub\", \"terminal\"]", "[\"hub\", \"../terminal\"]", "ends"),
    ("1 Mbit/s", "1 Mbps", "rate"),
    ("\"250 ms\"", "250", "delay"),
    ("delay", "dealy", "dealy"),
    ("probability = 0.01", "probability = 1.01", "probability"),
    ("probability = 0.01", "p = 0.01", "p"),
    ("erasure = { probability = 0.01 }", "loss = 0.01", "loss"),
    ("erasure = { probability = 0.01 }", "gilbert-elliott = { f = 1, d = \"1 s\" }", "f"),
    ("erasure = { probability = 0.01 }", "gilbert-elliott = { f = 0.1, d = \"0 s\" }", "d"),
    ("erasure = { probability = 0.01 }", "gilbert-elliott = { f = 0.1 }", "d"),
    ("erasure = { probability = 0.01 }", "pooled = { links = 65, f = 0.1, d = \"1 s\" }", "links"),
    ("\"cotmll-thesis\"", "\"coteml\"", "protocol"),
    ("\"cotmll-thesis\"", "{ coded = { windw = 1 } }", "windw"),
    ("\"cotmll-thesis\"", "{ coded = { window = 131073 } }", "window"),
    ("\"cotmll-thesis\"", "{ coded = { ordered = \"link\" } }", "ordered"),
    ("\"cotmll-thesis\"", "{ slacp = { fec-ratio = 10.5 } }", "fec-ratio"),
    ("\"cotmll-thesis\"", "{ harq = { ordered = \"flow\" } }", "ordered"),
    ("\"cotmll-thesis\"", "{ harq = { sending = 3 } }", "sending"),
    ("\"cotmll-thesis\"", "{ cotmll-thesis = { window = 513 } }", "window"),
    ("\"cotmll-thesis\"", "{ cotmll-thesis = { ordered = \"flow\" } }", "ordered"),
    ("\"cotmll-thesis\"", "{ cotmll = { block = \"latest\" } }", "block"),
    ("\"cotmll-thesis\"", "{ cotmll = { sequence = \"wide\" } }", "sequence"),
    ("\"cotmll-thesis\"", "{ cotmll-thesis = { persistence = \"0 s\" } }", "persistence"),
    ("\"cotmll-thesis\"", "{ plain = {}, coded = {} }", "protocol"),
    ("packets = 10", "packets = 0", "packets"),
    ("drop-tail = { packets = 10 }", "codel = {}", "codel"),
    ("drop-tail = { packets = 10 }", "red = { max-p = 0 }", "max-p"),
    ("queue =", "once-dscp = [64]\nqueue =", "once-dscp"),
    ("queue =", "dama = { rbdc-timeout = 16 }\nqueue =", "rbdc-timeout"),
    ("queue =", "encapsulation.up = { cells = { cell = 53, payload = 0 } }\nqueue =", "payload"),
    ("queue =", "pep.rule = [{ action = \"drop\" }]\nqueue =", "action"),
    ("queue =", "pep.rule = [{ action = \"pass\", ports = [0] }]\nqueue =", "ports"),
    ("queue =", "pep.rule = [{ action = \"pass\", networks = [\"10.0.0.0/33\"] }]\nqueue =", "networks"),
    ("download.bulk", "download.bulky", "bulky"),
    ("to = \"terminal\"\n", "", "to"),
    ("\"1 MB\"", "\"0 B\"", "size"),
    ("\"1 MB\"", "\"1 Mb\"", "size"),
    ("size =", "connections = 0\nsize =", "connections"),
    ("size =", "opened-by = \"both\"\nsize =", "opened-by"),
    ("set = { link", "sets = { link", "sets"),
    ("protocol = \"plain\"", "protocol = \"plane\"", "protocol"),
    ("satellite.protocol", "satellite.protokol", "protokol"),
    ("link.satellite.protocol = \"plain\"", "seed = 3", "seed"),
    ("link.satellite.protocol = \"plain\"", "tcp.recovery = \"tahoe\"", "recovery"),
    ("link.satellite.protocol = \"plain\"", "link.satellite.channel.rate = \"1 Mbps\"", "rate"),
];

const WRONG_GATEWAYS: &[Wrong] = &[
    ("\"sat0\"", "\"a/b\"", "name"),
    ("\"sat0\"", "\"a-name-of-16-byte\"", "name"),
    ("\"10.77.0.1/30\"", "\"10.77.0.1\"", "addresses"),
    ("[carrier.udp]", "mtu = 575\n[carrier.udp]", "mtu"),
    ("\"192.0.2.1:51900\"", "\"here\"", "listen"),
    ("hub.example.org:51900", "hub.example.org", "endpoint"),
    ("carrier.udp", "carrier.pigeon", "pigeon"),
    ("[link]", "[carrier.serial]\ndevice = \"x\"\nbaud = 50\n[link]", "carrier"),
    ("[carrier.udp]\nlisten = \"192.0.2.1:51900\"\n", "", "carrier"),
    ("\"1 Mbit/s\"", "\"1 Mbps\"", "rate"),
    ("\"1 Mbit/s\"", "\"0 bit/s\"", "rate"),
    ("\"1 Mbit/s\"", "\"fast\"", "rate"),
    ("\"plain\"", "\"plan\"", "protocol"),
    ("\"plain\"", "{ cotmll = { attempts = 4 } }", "attempts"),
    ("\"plain\"", "{ plain = { buffer = 0 } }", "buffer"),
    ("[46]", "[46, 64]", "once-dscp"),
    ("[identity]", "mut = 3\n[identity]", "mut"),
    ("[identity]", "overhead = 257\n[identity]", "overhead"),
    ("[identity]", "fillers = -1\n[identity]", "fillers"),
    ("AAAA=", "AA==", "private-key"),
    ("[pep]", "private-key-file = \"k\"\n[pep]", "identity"),
    ("[pep]", "[share]\nrate = \"0 bit/s\"\n[pep]", "rate"),
    ("Tmo=", "Tm==", "public-key"),
    ("allowed = [", "allowed = [\"10.0.0.0\", ", "allowed"),
    ("allowed", "alowed", "alowed"),
    ("public-key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n", "", "public-key"),
    ("connections = 100", "connections = 0", "connections"),
    ("connections = 100", "ack = \"remote\"", "ack"),
    ("\"bbr\"", "\"bbr9\"", "congestion"),
    ("[pep]", "[status]\ninterval = \"1 s\"\n[pep]", "file"),
];

const WRONG_PEERS: &[Wrong] = &[
    ("weight = 2", "weight = 0", "weight"),
    ("weight = 2", "weight = 1001", "weight"),
    ("weight = 2", "name = \"a b\"", "name"),
    ("weight = 2", "name = \".a\"", "name"),
    ("weight = 2", "pep.connections = 0", "connections"),
    ("weight = 2", "pin-endpoint = 1", "pin-endpoint"),
    ("weight = 2", "preshared-key = \"AAAA\"", "preshared-key"),
    ("2 Mbit/s", "2 Mbps", "rate"),
    ("rate", "rat", "rat"),
    ("public-key", "publickey", "publickey"),
];

/// The schema's complaint has the key as the end of a place or between quotes, the parser's anywhere.
fn check_wrong(schema: &Schema, right: &str, wrong: &[Wrong], parse: impl Fn(&str) -> Result<(), String>) {
    assert_eq!((schema.complaint(right), parse(right)), (None, Ok(())));
    for (from, to, key) in wrong {
        assert!(right.contains(from), "{from}");
        let document = right.replacen(from, to, 1);
        let parser = parse(&document).expect_err(to);
        let schema =
            schema.complaint(&document).unwrap_or_else(|| panic!("no complaint about {to}\n{parser}"));
        assert!(parser.contains(key), "{to}: {parser}");
        let places = [format!("/{key}'"), format!("'{key}'"), format!("/{key}/")];
        assert!(places.iter().any(|place| schema.contains(place.as_str())), "{to}: {schema}");
    }
}

fn parse_scenario(text: &str) -> Result<(), String> {
    let suite = lab::scenario::Suite::parse("s.toml", text, Path::new(""), &[]);
    suite.map(|_| ()).map_err(|error| error.to_string())
}

fn parse_gateway(text: &str) -> Result<(), String> {
    gateway::config::Config::parse("g.toml", text).map(|_| ()).map_err(|error| error.to_string())
}

fn parse_peer(text: &str) -> Result<(), String> {
    base::config::parse::<gateway::config::Peer>("p.toml", text)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

#[test]
fn what_the_parser_refuses_the_schema_refuses_with_the_same_key() {
    check_wrong(&Schema::of("scenario"), SCENARIO, WRONG_SCENARIOS, parse_scenario);
    check_wrong(&Schema::of("gateway"), GATEWAY, WRONG_GATEWAYS, parse_gateway);
    check_wrong(&Schema::of("gateway-peer"), PEER, WRONG_PEERS, parse_peer);
}

/// Keys of earlier versions are refused too.
#[test]
fn a_key_that_moved_is_refused() {
    let schema = Schema::of("scenario");
    for (old, _) in tcp::config::DIALECT.moved {
        let document = SCENARIO.replace("nagle = false", &format!("{old} = 3"));
        let (parser, schema) = (parse_scenario(&document).unwrap_err(), schema.complaint(&document).unwrap());
        assert!(parser.contains("has moved") && schema.contains(&format!("'{old}'")), "{old}: {schema}");
    }
}

/// Short forms, presets, dotted keys, and values at the ends of their ranges.
#[test]
fn what_the_parser_takes_the_schema_takes() {
    let (scenario, gateway) = (Schema::of("scenario"), Schema::of("gateway"));
    for (from, to) in [
        ("\"60 s\"", "\" 1.5min \""),
        ("\"60 s\"", "\".5 h\""),
        ("\"cotmll-thesis\"", "{ coded = { ordered = true } }"),
        ("\"cotmll-thesis\"", "{ cotmll = { window = 131072, ordered = \"flow\" } }"),
        ("\"cotmll-thesis\"", "{ cotmll-thesis = { attempts = 8, persistence = \"2 s\" } }"),
        ("protocol = \"cotmll-thesis\"", "protocol.coded.window = 9"),
        ("\"rack\"", "{ scheme = \"rack\", undo = true }"),
        ("nagle = false", "sharing = \"stcp\"\nacknowledgements = \"off\"\nwindow.initial = \"rfc3390\""),
        ("nagle = false", "congestion.vegas.alpha = 10000"),
        ("erasure = { probability = 0.01 }", "gilbert-elliott = { f = 0, d = \"1 us\", b = 1 }"),
        ("{ erasure = { probability = 0.01 } }", "\"none\""),
        ("queue =", "pep.link.preset = \"linux\"\nqueue ="),
        ("link.satellite.protocol = \"plain\"", "tcp.preset = \"rfc\""),
        ("link.satellite.protocol = \"plain\"", "link.satellite.channel.errors.erasure.probability = 0.5"),
        ("link.satellite.protocol = \"plain\"", "traffic.download.bulk.connections = 3"),
    ] {
        let document = SCENARIO.replacen(from, to, 1);
        assert_eq!((parse_scenario(&document), scenario.complaint(&document)), (Ok(()), None), "{to}");
    }
    for (from, to) in [
        ("\"1 Mbit/s\"", "\"auto\""),
        ("\"1 Mbit/s\"", "\"max\""),
        ("\"plain\"", "{ cotmll = { ordered = \"flow\" } }"),
        ("\"plain\"", "{ cotmll-thesis = { attempts = 4 } }"),
        ("hub.example.org:51900", "192.0.2.7:51900"),
        ("192.0.2.1:51900", "[::]:51900"),
        ("private-key = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"", "private-key-file = \"site.key\""),
        ("allowed", "link.protocol.coded.window = 9\nkeep-alive = \"10 min\"\nname = \"a.b\"\nallowed"),
        ("[pep]", "[[pep.rule]]\naction = \"pass\"\nports = [22, \"5000-5010\"]\n[pep]"),
    ] {
        let document = GATEWAY.replacen(from, to, 1);
        assert_eq!((parse_gateway(&document), gateway.complaint(&document)), (Ok(()), None), "{to}");
    }
}

/// Documents that are built of nothing but a schema's defaults, examples and names fit it, and are read.
#[test]
fn what_a_schema_proposes_is_read() {
    let [scenario, gateway, peer] = ["scenario", "gateway", "gateway-peer"].map(Schema::of);
    for (schema, least, read) in [
        (&scenario, 500, (|text| parse::<lab::scenario::Scenario>("s", text).map(|_| ())) as fn(&str) -> _),
        (&gateway, 400, |text| parse::<gateway::config::Config>("s", text).map(|_| ())),
        (&peer, 200, |text| parse::<gateway::config::Peer>("s", text).map(|_| ())),
    ] {
        let documents = samples::of(&schema.text);
        assert!(documents.len() >= least, "{}", documents.len());
        let complaints: Vec<String> = documents
            .iter()
            .filter_map(|document| {
                let text = toml::to_string(document).unwrap();
                let parser = read(&text).err().map(|error| error.to_string());
                parser.or_else(|| schema.complaint(&text)).map(|complaint| format!("{complaint}\n{text}"))
            })
            .collect();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

#[test]
fn a_study_s_keys_and_sets_are_checked() {
    const STUDY: &str = r#"
name = "loss"
title = "Loss"
[axes]
f = [0.1, 0.2]
tcp = { Ref = { tcp.preset = "reference" } }
[[experiment]]
name = "window"
base = "base"
axes = { f = "f", tcp = "tcp" }
set = { link.sat.channel.errors.erasure.probability = "$f", link.sat.channel.delay = "${10 * f} s" }
when = [{ if = "f > 0.1", set = { traffic.file.bulk.connections = 4 } }]
length = { periods = 150, least = "60 s" }
probes = ["throughput"]
[[figure]]
id = "1"
title = "One"
from = "window"
kind = "bars"
"#;
    const CLAIMS: &str =
        "[[claim]]\nid = \"a\"\nsection = \"1\"\nstatement = \"s\"\ncheck = [\"1 < 2\"]\nkind = \"ratio\"";
    let schema = Schema::of("study");
    assert_eq!((schema.complaint(STUDY), schema.complaint(CLAIMS)), (None, None));
    for (from, to, key) in [
        ("title = \"Loss\"\n", "", "title"),
        ("\"bars\"", "\"pies\"", "kind"),
        ("probes", "probe", "probe"),
        ("\"throughput\"", "\"thruput\"", "probes/0"),
        ("reference", "referense", "preset"),
        ("errors.erasure", "errors.erasures", "erasures"),
        ("\"$f\"", "\"f\"", "probability"),
        ("bulk.connections", "bulk.connection", "connection"),
        ("least = \"60 s\"", "least = \"60\"", "length"),
        ("id = \"1\"\n", "", "id"),
    ] {
        let complaint = schema.complaint(&STUDY.replacen(from, to, 1)).expect(to);
        assert!(complaint.contains(&format!("{key}'")), "{to}: {complaint}");
    }
    for (from, to, key) in
        [("ratio", "rate", "kind"), ("[\"1 < 2\"]", "[]", "check"), ("id = \"a\"\n", "", "id")]
    {
        let complaint = schema.complaint(&CLAIMS.replacen(from, to, 1)).expect(to);
        assert!(complaint.contains(&format!("{key}'")), "{to}: {complaint}");
    }
    assert!(schema.complaint(&format!("{CLAIMS}\n[[experiment]]\nname = \"x\"\nprobes = []")).is_some());
}
