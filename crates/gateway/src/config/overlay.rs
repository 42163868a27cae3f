//! Tables of a peer that differ from the file's: what a peer's `[link]` and `[pep]` do not say comes from the file's own.

use base::config::ConfigError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// The tables that a peer may have of its own, as they are written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tables {
    pub(super) link: Option<Table>,
    pub(super) pep: Option<Table>,
}

/// Keys of `[link]` whose value is a table of one kind, as in `protocol = { coded = { … } }`.
const KINDS: [&str; 2] = ["protocol", "queue"];
/// Keys of `[pep]` that are settings of TCP.
const TCP: [&str; 2] = ["link", "lan"];
/// Names what settings of TCP start from.
const PRESET: &str = "preset";

impl Tables {
    /// The `[link]` of a peer whose own is `over`.
    pub(super) fn link(&self, over: &Table) -> Table {
        let mut link = self.link.clone().unwrap_or_default();
        for (key, value) in over {
            match (link.get_mut(key), value) {
                (Some(Value::Table(base)), Value::Table(over)) if KINDS.contains(&key.as_str()) => {
                    lay_kind(base, over);
                }
                _ => {
                    link.insert(key.clone(), value.clone());
                }
            }
        }
        link
    }

    /// The `[pep]` of a peer whose own is `over`.
    pub(super) fn pep(&self, over: &Table) -> Table {
        let mut pep = self.pep.clone().unwrap_or_default();
        for (key, value) in over {
            match (pep.get_mut(key), value) {
                // Settings that name a preset start afresh.
                (Some(Value::Table(base)), Value::Table(over))
                    if TCP.contains(&key.as_str()) && !over.contains_key(PRESET) =>
                {
                    tcp::config::DIALECT.lay_over(base, over);
                }
                _ => {
                    pep.insert(key.clone(), value.clone());
                }
            }
        }
        pep
    }
}

/// Parameters of the same kind merge; another kind has none of them.
fn lay_kind(base: &mut Table, over: &Table) {
    for (kind, parameters) in over {
        match (base.get_mut(kind), parameters) {
            (Some(Value::Table(base)), Value::Table(over)) => {
                base.extend(over.clone());
            }
            _ => base.clone_from(over),
        }
    }
}

/// Reads a table that was put together of two, each of which was read by itself.
pub(super) fn read<T: DeserializeOwned>(file: &str, table: Table) -> Result<T, ConfigError> {
    base::config::from_table(table).map_err(|error| ConfigError::about(file, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(text: &str) -> Tables {
        toml::from_str(text).unwrap()
    }

    fn laid(base: &str, over: &str) -> Tables {
        let (base, over) = (tables(base), tables(over));
        let link = over.link.as_ref().map(|over| base.link(over));
        let pep = over.pep.as_ref().map(|over| base.pep(over));
        Tables { link, pep }
    }

    #[test]
    fn a_kind_keeps_its_parameters_and_another_has_none_of_them() {
        let base = "[link]\nrate = \"1 Mbit/s\"\nprotocol.coded.window = 9\n";
        for (over, want) in [
            ("[link]\nfillers = 3", "rate = \"1 Mbit/s\"\nprotocol.coded.window = 9\nfillers = 3"),
            ("[link]\nrate = \"max\"", "rate = \"max\"\nprotocol.coded.window = 9"),
            (
                "[link.protocol.coded]\nordered = true",
                "rate = \"1 Mbit/s\"\nprotocol.coded = { window = 9, ordered = true }",
            ),
            ("[link]\nprotocol.cotmll.window = 7", "rate = \"1 Mbit/s\"\nprotocol.cotmll.window = 7"),
            ("[link]\nprotocol = \"coded\"", "rate = \"1 Mbit/s\"\nprotocol = \"coded\""),
        ] {
            assert_eq!(laid(base, over).link.unwrap(), want.parse().unwrap(), "{over}");
        }
        let short = laid("[link]\nprotocol = \"coded\"", "[link]\nprotocol.coded.window = 7").link.unwrap();
        assert_eq!(short, "protocol.coded.window = 7".parse().unwrap());
    }

    #[test]
    fn settings_of_tcp_merge_unless_they_name_a_preset() {
        let base = "[pep]\nack = \"local\"\nlink = { congestion = \"bbr\", recovery = \"rack\", rto.min = \"1 s\" }\n";
        let pep = laid(base, "[pep.link]\nnagle = true\nrto.max = \"9 s\"\n").pep.unwrap();
        let want = "ack = \"local\"\nlink = { congestion = \"bbr\", recovery.scheme = \"rack\", \
                    rto = { min = \"1 s\", max = \"9 s\" }, nagle = true }";
        assert_eq!(pep, want.parse().unwrap());
        let pep = laid(base, "[pep]\nconnections = 5\nlink = { preset = \"linux\" }\n").pep.unwrap();
        assert_eq!(pep, "ack = \"local\"\nconnections = 5\nlink.preset = \"linux\"".parse().unwrap());
    }
}
