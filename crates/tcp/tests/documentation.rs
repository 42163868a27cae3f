//! What `docs/tcp.md` says of the settings is what they are.

use longhaul_tcp::TcpConfig;
use longhaul_tcp::config::DIALECT;
use toml::{Table, Value};

const DOCUMENT: &str = include_str!("../../../docs/tcp.md");
/// The columns of the table of presets; the other presets differ from `enhanced` in a key each, or are a proxy's.
const COLUMNS: [&str; 5] = ["reference", "enhanced", "linux-2.4", "linux", "rfc"];
/// Controllers that have parameters.
const CONTROLLERS: [&str; 4] =
    ["congestion.cubic", "congestion.vegas", "congestion.fast", "congestion.hybla"];

/// Every key of a table, in order: the complaint about an unknown one lists them.
fn keys_of(table: &str) -> Vec<String> {
    let text = if table.is_empty() { "?=0".to_owned() } else { format!("[{table}]\n?=0") };
    let text = text.replace('?', "nonsense");
    let complaint = base::config::parse::<TcpConfig>("t", &text).unwrap_err().to_string();
    let (_, listed) = complaint.split_once("expected ").expect("what is allowed");
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The paths of all keys, those within tables included; controllers' parameters are not.
fn keys() -> Vec<String> {
    let is_table = |key: &String| DIALECT.tables.iter().any(|(table, _)| table == key);
    let within = |key: String| match is_table(&key) {
        true => keys_of(&key).into_iter().map(|inner| format!("{key}.{inner}")).collect(),
        false => vec![key],
    };
    keys_of("").into_iter().flat_map(within).collect()
}

/// Whether a key is a parameter of what is shared or of the erasure code: most presets leave those alone.
fn is_parameter(key: &str) -> bool {
    (key.starts_with("sharing.") && key != "sharing.policy") || key.starts_with("fec.")
}

fn settings(config: &TcpConfig) -> Table {
    Table::try_from(config).expect("plain data")
}

fn value<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => table.get(path),
        Some((outer, inner)) => value(table.get(outer)?.as_table()?, inner),
    }
}

fn cell(table: &Table, key: &str) -> String {
    match value(table, key) {
        None => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// The table of presets as the data have it.
fn presets() -> String {
    let default = settings(&TcpConfig::default());
    let columns = COLUMNS.map(|name| settings(&TcpConfig::preset(name).expect("a preset")));
    let mut lines = format!("| key | default | {} |\n", COLUMNS.map(|name| format!("`{name}`")).join(" | "));
    lines += "|---|---|---|---|---|---|---|\n";
    for key in keys().iter().filter(|key| !is_parameter(key)) {
        let row: Vec<String> = columns.iter().map(|table| cell(table, key)).collect();
        lines += &format!("| `{key}` | {} | {} |\n", cell(&default, key), row.join(" | "));
    }
    lines
}

#[test]
fn the_table_of_presets_is_the_data() {
    let expected = presets();
    assert!(DOCUMENT.contains(&expected), "docs/tcp.md should have this table:\n{expected}");
}

#[test]
fn every_key_is_described() {
    let mut all = keys();
    for controller in CONTROLLERS {
        all.extend(keys_of(controller).iter().map(|key| format!("{controller}.{key}")));
    }
    assert!(all.len() > 50, "{all:?}");
    for key in &all {
        assert!(DOCUMENT.contains(&format!("\n| `{key}` | ")), "docs/tcp.md does not describe {key}");
    }
    // And nothing else.
    for line in DOCUMENT.lines().filter(|line| line.starts_with("| `")) {
        let key = line.split('`').nth(1).unwrap_or_default();
        let known = all.iter().any(|known| known == key);
        let is_old = DIALECT.moved.iter().any(|(old, _)| *old == key);
        assert!(known || is_old, "docs/tcp.md describes {key}, which is no key");
    }
}

#[test]
fn every_table_and_its_short_form_is_described() {
    for (table, short) in DIALECT.tables {
        assert!(DOCUMENT.contains(&format!("`[tcp.{table}]`")), "docs/tcp.md does not name [tcp.{table}]");
        if let Some(short) = short {
            assert!(DOCUMENT.contains(&format!("`{table}.{short}`")), "{table}.{short}");
        }
    }
}

/// What an older file says is found by what it says.
#[test]
fn every_key_that_moved_is_listed() {
    let lines: Vec<String> =
        DIALECT.moved.iter().map(|(old, new)| format!("| `{old}` | `{new}` |\n")).collect();
    let expected = lines.concat();
    assert!(DOCUMENT.contains(&expected), "docs/tcp.md should have this table:\n{expected}");
    let all = keys();
    for (_, new) in DIALECT.moved {
        let exists = all.iter().any(|key| key == new || key.starts_with(&format!("{new}.")));
        assert!(exists || CONTROLLERS.contains(new), "{new}");
    }
}

/// The example at the beginning and those of other documents are settings.
#[test]
fn examples_read() {
    for document in [
        DOCUMENT,
        include_str!("../../../docs/congestion.md"),
        include_str!("../../../docs/sharing.md"),
        include_str!("../../../docs/scenarios.md"),
        include_str!("../../../README.md"),
    ] {
        for block in document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let table: Table = block.parse().unwrap_or_else(|error| panic!("{error} in\n{block}"));
            let Some(tcp) = table.get("tcp") else { continue };
            tcp.clone().try_into::<TcpConfig>().unwrap_or_else(|error| panic!("{error} in\n{block}"));
        }
    }
}

#[test]
fn every_preset_is_described() {
    for name in DIALECT.names() {
        assert!(DOCUMENT.contains(&format!("\n- `{name}`")), "docs/tcp.md does not describe {name}");
    }
}

/// A preset does not change when a default does. What has no default has to be left out where it is meant so.
#[test]
fn presets_say_everything() {
    let default = settings(&TcpConfig::default());
    for name in DIALECT.names() {
        let table = DIALECT.preset(name).expect("a preset");
        for key in keys().iter().filter(|key| !is_parameter(key) && value(&default, key).is_some()) {
            assert!(value(&table, key).is_some(), "crates/tcp/presets/{name}.toml leaves {key} open");
        }
    }
}

/// Segment scripts and their like; the other tests here are of documents, of hostile peers and of whole transfers.
fn cases() -> Vec<(String, String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the tests") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if !is_source || WITHOUT_SOURCE.contains(&name.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let mut comment = String::new();
        let mut is_test = false;
        for line in text.lines() {
            match line.strip_prefix("/// ") {
                Some(part) => comment = comment + part + " ",
                None if line == "#[test]" => is_test = true,
                None => {
                    if is_test {
                        cases.push((name.clone(), line.to_owned(), comment));
                    }
                    (comment, is_test) = (String::new(), false);
                }
            }
        }
    }
    cases
}

/// An RFC, a draft, Linux, or a paper by its year.
fn names_a_source(comment: &str) -> bool {
    let words: Vec<&str> =
        comment.split([' ', ',', '(', ')', ':', '.', ';']).filter(|it| !it.is_empty()).collect();
    let is_year = |word: &str| (1960..2030).contains(&word.parse().unwrap_or(0));
    let is_author = |word: &str| word == "al" || word.starts_with(char::is_uppercase);
    ["RFC ", "Linux", "draft-"].iter().any(|source| comment.contains(source))
        || words.windows(2).any(|pair| is_author(pair[0]) && is_year(pair[1]))
}

/// Each segment script says what it holds the implementation against.
#[test]
fn every_segment_script_names_its_source() {
    let cases = cases();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    for (file, function, comment) in cases {
        assert!(names_a_source(&comment), "{file}.rs: {function} names no source: {comment}");
    }
}

/// Test files that are held against nothing published.
const WITHOUT_SOURCE: [&str; 10] = [
    "coding",
    "coding_fairness",
    "coding_forged",
    "coding_hostile",
    "coding_paths",
    "documentation",
    "hostile",
    "interleaving",
    // Its scripts name their sources.
    "packetdrill",
    "transfer",
];
