//! A plain scenario file as a study: its schemes, and keys of it as axes.

use core::fmt::Write as _;
use std::path::Path;

use base::config::ConfigError;
use toml::{Table, Value as Toml};

use super::{Files, Study};
use crate::scenario::built_in;

/// What is measured of each run.
const PROBES: [&str; 3] = ["throughput", "transfers", "latency"];

impl Study {
    /// The study of a scenario file over `axes`: dotted keys of the scenario, each with the values that it takes.
    ///
    /// # Errors
    /// The file is no scenario, or does not have such keys.
    pub fn of_scenario(path: &Path, axes: &[(String, Vec<Toml>)]) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.ok_or_else(|| ConfigError::about(&file, "a scenario's file ends in .toml"))?;
        let text = built_in::read(path)?;
        let scenario: Table = base::config::parse(&file, &text)?;
        let title = scenario.get("name").and_then(Toml::as_str).unwrap_or(stem);
        let seeds = scenario.get("seeds").and_then(Toml::as_integer).unwrap_or(1);
        let seed = scenario.get("seed").and_then(Toml::as_integer).unwrap_or(1);
        let probes = PROBES.map(|probe| format!("\"{probe}\"")).join(", ");
        let mut head = format!(
            "name = {}\ntitle = {}\nseed = {seed}\n[[experiment]]\nname = \"sweep\"\nbase = {}\nseeds = {seeds}\nprobes = [{probes}]\n",
            quoted(&stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
            quoted(title),
            quoted(stem)
        );
        let mut names: Vec<String> = Vec::new();
        for (key, values) in axes {
            let name = name(key, &names);
            let values: Vec<String> = values.iter().map(Toml::to_string).collect();
            let _ = writeln!(head, "axes.{name} = [{}]", values.join(", "));
            names.push(name);
        }
        for ((key, _), name) in axes.iter().zip(&names) {
            let _ = writeln!(head, "set.{key} = \"${name}\"");
        }
        let has_schemes = scenario.get("scheme").and_then(Toml::as_array).is_some_and(|all| !all.is_empty());
        head += &table(has_schemes, &names);
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let base = folder.join(format!("{stem}.toml")).display().to_string();
        Self::parse(Files::Folder(folder), &format!("the sweep of {file}"), &head, &[]).map_err(|error| {
            // The study is in no file that anybody could look at; what it says of the scenario is all that counts.
            match error.message.split_once(&format!("{base}: ")) {
                Some((_, message)) => ConfigError::about(&base, message),
                None => ConfigError::about(&error.file, error.message),
            }
        })
    }
}

/// The table that shows a sweep: goodput and bound at all coordinates.
fn table(has_schemes: bool, names: &[String]) -> String {
    let mut rows: Vec<&str> = if has_schemes { vec!["scheme"] } else { Vec::new() };
    rows.extend(names.iter().map(String::as_str));
    let (quoted, at) = (rows.iter().map(|row| quoted(row)).collect::<Vec<_>>().join(", "), rows.join(", "));
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "[[table]]\nid = \"Goodput and bound, Mbit/s\"\nfrom = \"sweep\"\nrows = [{quoted}]\n[table.value]\n\
         \"goodput\" = \"goodput({at}) / 1e6\"\n\"bound\" = \"bound({at}) / 1e6\"\n\
         \"share of the bound\" = \"goodput({at}) / bound({at})\"\n"
    )
}

/// What expressions call the axis of a key: its last part, with more of it if that is taken.
fn name(key: &str, taken: &[String]) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let names = (1..=parts.len()).map(|n| {
        let name = parts[parts.len() - n..].join("_");
        name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    });
    let mut names = names.peekable();
    let last = names.clone().last().unwrap_or_default();
    names.find(|name| !taken.contains(name)).unwrap_or(last)
}

fn quoted(text: &str) -> String {
    Toml::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_get_short_names_that_differ() {
        let first = name("link.satellite.channel.up-rate", &[]);
        assert_eq!(first, "up_rate");
        assert_eq!(name("link.other.channel.up-rate", &[first]), "channel_up_rate");
    }
}
