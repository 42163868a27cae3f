//! What `docs/tcp.md` says of the settings is what they are.

use longhaul_tcp::TcpConfig;
use longhaul_tcp::config::PRESETS;
use toml::{Table, Value};

const DOCUMENT: &str = include_str!("../../../docs/tcp.md");
/// The columns of the table of presets; the other presets differ from `enhanced` in a key each.
const COLUMNS: [&str; 4] = ["reference", "enhanced", "linux", "rfc"];
/// Tables of parameters that matter to one value of another key only; presets leave them alone.
const PARAMETERS: [&str; 4] = ["vegas", "fast", "hybla", "ensemble"];

/// Every key, in order: the complaint about an unknown one lists them.
fn keys(table: &str) -> Vec<String> {
    let text = if table.is_empty() { "?=0".to_owned() } else { format!("[{table}]\n?=0") };
    let text = text.replace('?', "nonsense");
    let complaint = base::config::parse::<TcpConfig>("t", &text).unwrap_err().to_string();
    let (_, listed) = complaint.split_once("expected ").expect("what is allowed");
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn settings(config: &TcpConfig) -> Table {
    Table::try_from(config).expect("plain data")
}

fn cell(table: &Table, key: &str) -> String {
    match table.get(key) {
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
    lines += "|---|---|---|---|---|---|\n";
    for key in keys("").iter().filter(|key| !PARAMETERS.contains(&key.as_str())) {
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
    let mut all = keys("");
    for table in PARAMETERS {
        all.retain(|key| key != table);
        all.extend(keys(table).iter().map(|key| format!("{table}.{key}")));
    }
    assert!(all.len() > 50, "{all:?}");
    for key in all {
        assert!(DOCUMENT.contains(&format!("\n| `{key}` | ")), "docs/tcp.md does not describe {key}");
    }
}

#[test]
fn every_preset_is_described() {
    for name in PRESETS.names() {
        assert!(DOCUMENT.contains(&format!("\n- `{name}`")), "docs/tcp.md does not describe {name}");
    }
}

/// A preset does not change when a default does. What has no default has to be left out where it is meant so.
#[test]
fn presets_say_everything() {
    let default = settings(&TcpConfig::default());
    for name in PRESETS.names() {
        let table = PRESETS.table(name).expect("a preset");
        for key in default.keys().filter(|key| !PARAMETERS.contains(&key.as_str())) {
            assert!(table.contains_key(key), "crates/tcp/presets/{name}.toml leaves {key} open");
        }
    }
}
