//! tshark with our dissectors: named fields of every frame in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why tests with tshark cannot run, if they cannot.
pub(crate) fn missing() -> Option<String> {
    let missing = Command::new("tshark").arg("--version").output().is_err();
    missing.then(|| "tshark is not installed".to_owned())
}

/// The folder with the dissectors.
pub(crate) fn dissectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wireshark")
}

/// The fields of one frame, by name, and perhaps its line in the packet list. A field that is there more than once has all
/// its values, with commas between.
#[derive(Debug)]
pub(crate) struct Row {
    fields: BTreeMap<String, String>,
    line: String,
}

impl Row {
    /// The field's text; empty if the frame does not have it.
    pub(crate) fn text(&self, name: &str) -> &str {
        &self.fields[name]
    }

    /// The line in the packet list.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    pub(crate) fn set_line(&mut self, line: &str) {
        self.line = line.to_owned();
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.numbers(name).next().unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    pub(crate) fn numbers(&self, name: &str) -> impl Iterator<Item = u64> {
        self.text(name).split(',').filter(|text| !text.is_empty()).map(|text| {
            let hexadecimal = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
            hexadecimal.unwrap_or_else(|| text.parse()).unwrap_or_else(|_| panic!("{text} is no number"))
        })
    }
}

/// Runs tshark on `file` with our dissectors; what it prints. It must not complain.
pub(crate) fn run(file: &Path, arguments: &[&str]) -> String {
    let script = format!("lua_script:{}", dissectors().join("longhaul.lua").display());
    let output =
        Command::new("tshark").args(["-X", &script, "-r"]).arg(file).args(arguments).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complaint.contains("Lua"), "{complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// These fields of every frame that `filter` lets through; all frames if it is empty.
pub(crate) fn fields(file: &Path, filter: &str, names: &[&str]) -> Vec<Row> {
    let mut arguments = vec!["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    if !filter.is_empty() {
        arguments.extend(["-Y", filter]);
    }
    let row = |line: &str| {
        let values = line.split('\t').map(str::to_owned);
        let fields = names.iter().map(|name| (*name).to_owned()).zip(values).collect();
        Row { fields, line: String::new() }
    };
    run(file, &arguments).lines().map(row).collect()
}

/// How many frames a filter lets through.
pub(crate) fn count(file: &Path, filter: &str) -> usize {
    fields(file, filter, &["frame.number"]).len()
}
