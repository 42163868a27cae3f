//! Where `longhaul run --pcap` writes: a file for each scheme.

use std::path::Path;

use lab::run::Captures;
use lab::scenario::Suite;

/// The files of a capture at the node or link `name`, in `directory`: `NAME.pcapng` with one scheme, otherwise with
/// the scheme's number and name.
///
/// # Errors
/// A name that is neither a node's nor a link's, with those that are.
pub(crate) fn of(suite: &Suite, name: &str, directory: &Path) -> Result<Captures, String> {
    let is_node = suite.scenario.node_names().contains(name);
    if !is_node && !suite.scenario.link.contains_key(name) {
        return Err(suite.scenario.no_such_place(name));
    }
    let file = |(index, (scheme, _)): (usize, &(String, _))| {
        let file = match suite.schemes.len() {
            1 => format!("{name}.pcapng"),
            _ => format!("{name}-{}-{}.pcapng", index + 1, slug(scheme)),
        };
        (scheme.clone(), directory.join(file))
    };
    Ok(Captures { at: name.to_owned(), files: suite.schemes.iter().enumerate().map(file).collect() })
}

/// A name in small letters and digits, with hyphens for all else.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn a_slug_is_fit_for_a_file_name() {
        assert_eq!(slug("TCP over COTMLL"), "tcp-over-cotmll");
        assert_eq!(slug(" a gateway's defaults/../"), "a-gateway-s-defaults");
    }
}
