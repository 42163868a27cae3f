//! Tables that start from a named one: what a table does not say comes from its preset.

mod written;

use schemars::Schema;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use toml::{Table, Value};

use super::document::{Node, Wrong};

/// What one kind of table may look like, beyond what its type says.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// Named tables: each a name and its TOML, which may start from another one in turn.
    pub presets: &'static [(&'static str, &'static str)],
    /// The tables within it. Where a key is named, the table may be written as that key's value alone, a text:
    /// `("recovery", Some("scheme"))` makes `recovery = "sack"` the same as `recovery.scheme = "sack"`.
    pub tables: &'static [(&'static str, Option<&'static str>)],
    /// Keys of earlier versions, and what to write instead.
    pub moved: &'static [(&'static str, &'static str)],
}

/// A type that is read in a [`Dialect`]. Its key `preset` names the preset that the keys which its table lacks come
/// from, also within the tables of that table; what neither has is the type's default. Complaints about the table's own
/// keys keep their place in the file.
pub trait Settings: Sized {
    /// How it may be written.
    const DIALECT: Dialect;

    /// Reads it where all keys are its own.
    ///
    /// # Errors
    /// A key or a value that is not allowed.
    fn read_plain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// Reads settings, and from their preset what they lack.
///
/// # Errors
/// A key, a value or a preset that is not allowed.
pub fn read<'de, T: Settings, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    read_or(deserializer, None)
}

/// Reads settings; the keys that a table lacks come from the preset it names, or from preset `otherwise` if it names
/// none.
///
/// # Errors
/// As [`read`].
pub fn read_or<'de, T: Settings, D: Deserializer<'de>>(
    deserializer: D,
    otherwise: Option<&str>,
) -> Result<T, D::Error> {
    let mut node = Node::deserialize(deserializer)?;
    let read = T::DIALECT.write_out(&mut node, otherwise).and_then(|()| T::read_plain(node));
    read.map_err(Wrong::into_error)
}

/// The key that names a preset.
const KEY: &str = "preset";

impl Dialect {
    /// The presets' names, in order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.presets.iter().map(|&(name, _)| name)
    }

    /// All keys of the preset with this name, if there is one.
    ///
    /// # Panics
    /// If a preset is not TOML, or starts from one that does not exist.
    #[must_use]
    pub fn preset(self, name: &str) -> Option<Table> {
        let &(_, text) = self.presets.iter().find(|&&(known, _)| known == name)?;
        let mut table: Table = text.parse().unwrap_or_else(|error| panic!("preset {name}: {error}"));
        let Some(below) = table.remove(KEY) else {
            self.expand(&mut table);
            return Some(table);
        };
        let below = below.as_str().and_then(|below| self.preset(below));
        let mut whole = below.unwrap_or_else(|| panic!("preset {name} starts from no preset"));
        self.lay_over(&mut whole, &table);
        Some(whole)
    }

    /// Lays `over` over `base`: tables within them merge, however they are written, and anything else is replaced.
    pub fn lay_over(self, base: &mut Table, over: &Table) {
        let mut over = over.clone();
        self.expand(base);
        self.expand(&mut over);
        for (key, value) in over {
            match (base.get_mut(&key), value) {
                (Some(Value::Table(below)), Value::Table(above)) if self.table(&key).is_some() => {
                    below.extend(above);
                }
                (_, value) => {
                    base.insert(key, value);
                }
            }
        }
    }

    /// Adds to the schema of its type's own keys that it may name a preset and have short forms, for
    /// `#[schemars(transform = …)]`.
    pub fn complete(self, schema: &mut Schema) {
        let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) else {
            return;
        };
        for (name, short) in self.tables {
            let table = properties.get_mut(*name).and_then(serde_json::Value::as_object_mut);
            if let (Some(short), Some(table)) = (short, table)
                && let Some(serde_json::Value::String(long)) = table.remove("$ref")
            {
                let short = format!("{long}/properties/{short}");
                table.insert("anyOf".to_owned(), json!([{ "$ref": long }, { "$ref": short }]));
            }
        }
        let names: Vec<_> = self.names().collect();
        let preset = json!({
            "description": "The settings from which the keys that are missing here are taken.",
            "type": "string",
            "enum": names,
        });
        properties.insert(KEY.to_owned(), preset);
    }

    /// Writes short forms out.
    fn expand(self, table: &mut Table) {
        for &(name, short) in self.tables {
            if let (Some(short), Some(value @ Value::String(_))) = (short, table.get_mut(name)) {
                let text = core::mem::replace(value, Value::Boolean(false));
                *value = Value::Table(Table::from_iter([(short.to_owned(), text)]));
            }
        }
    }

    /// The table within it that has this name.
    fn table(self, name: &str) -> Option<(&'static str, Option<&'static str>)> {
        self.tables.iter().copied().find(|&(known, _)| known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;
    use crate::config;

    #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(remote = "Self", default, deny_unknown_fields)]
    struct Link {
        delay: Duration,
        count: u32,
        tail: Tail,
    }

    #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Tail {
        kind: String,
        length: u32,
        width: Option<u32>,
    }

    impl Default for Tail {
        fn default() -> Self {
            Self { kind: "long".to_owned(), length: 2, width: None }
        }
    }

    impl Default for Link {
        fn default() -> Self {
            Self { delay: Duration::ZERO, count: 1, tail: Tail::default() }
        }
    }

    impl serde::Serialize for Link {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Self::serialize(self, serializer)
        }
    }

    impl<'de> serde::Deserialize<'de> for Link {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            read(deserializer)
        }
    }

    impl Settings for Link {
        const DIALECT: Dialect = Dialect {
            presets: &[
                ("quick", "delay = \"1 ms\"\ncount = 7\ntail = { length = 3, width = 4 }"),
                ("slow", "preset = \"quick\"\ndelay = \"1 s\"\ntail = \"short\""),
            ],
            tables: &[("tail", Some("kind"))],
            moved: &[("tail-length", "tail.length")],
        };

        fn read_plain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Self::deserialize(deserializer)
        }
    }

    fn of(text: &str) -> Result<Link, String> {
        config::parse::<Link>("t", text).map_err(|error| error.to_string())
    }

    fn link(delay: u64, count: u32, kind: &str, length: u32, width: Option<u32>) -> Link {
        let tail = Tail { kind: kind.to_owned(), length, width };
        Link { delay: Duration::from_millis(delay), count, tail }
    }

    #[test]
    fn own_keys_go_before_the_presets_and_these_before_the_defaults() {
        assert_eq!(of(""), Ok(Link::default()));
        assert_eq!(of("preset = \"quick\""), Ok(link(1, 7, "long", 3, Some(4))));
        // Wherever it stands.
        assert_eq!(of("count = 3\npreset = \"quick\""), Ok(link(1, 3, "long", 3, Some(4))));
        assert_eq!(of("preset = \"quick\"\ncount = 3"), Ok(link(1, 3, "long", 3, Some(4))));
        // A value that is the default's is one that was said.
        assert_eq!(of("preset = \"quick\"\ncount = 1"), Ok(link(1, 1, "long", 3, Some(4))));
    }

    #[test]
    fn a_preset_may_start_from_another() {
        assert_eq!(of("preset = \"slow\""), Ok(link(1000, 7, "short", 3, Some(4))));
    }

    #[test]
    fn tables_within_merge_with_the_presets() {
        for text in [
            "tail = { length = 9 }\npreset = \"slow\"",
            "preset = \"slow\"\ntail.length = 9",
            "preset = \"slow\"\n[tail]\nlength = 9",
        ] {
            assert_eq!(of(text), Ok(link(1000, 7, "short", 9, Some(4))), "{text}");
        }
    }

    #[test]
    fn a_table_has_a_short_form() {
        assert_eq!(of("tail = \"curly\""), Ok(link(0, 1, "curly", 2, None)));
        for text in ["tail = \"curly\"\npreset = \"slow\"", "preset = \"slow\"\ntail = \"curly\""] {
            assert_eq!(of(text), Ok(link(1000, 7, "curly", 3, Some(4))), "{text}");
        }
        // Short over long and long over short: one key each.
        let mut table: Table = "tail = { length = 9 }".parse().unwrap();
        Link::DIALECT.lay_over(&mut table, &"tail = \"curly\"".parse().unwrap());
        assert_eq!(table, "tail = { length = 9, kind = \"curly\" }".parse().unwrap());
        let mut table: Table = "tail = \"curly\"".parse().unwrap();
        Link::DIALECT.lay_over(&mut table, &"tail.length = 9\ncount = 2".parse().unwrap());
        assert_eq!(table, "count = 2\ntail = { length = 9, kind = \"curly\" }".parse().unwrap());
    }

    #[test]
    fn complaints_keep_their_place() {
        for (text, complaint) in [
            (
                "count = 3\npreset = \"fast\"",
                "t:2: preset = \"fast\": no preset \"fast\"; allowed are \"quick\", \"slow\"",
            ),
            (
                "preset = \"quick\"\ncount = -1",
                "t:2: count = -1: invalid value: integer `-1`, expected a whole number from 0 to 4294967295",
            ),
            (
                "preset = \"quick\"\n\nwidth = 3",
                "t:3: width = 3: unknown key `width`, expected one of `delay`, `count`, `tail`",
            ),
            ("preset = 3", "t:1: preset = 3: invalid type: integer `3`, expected a string"),
            (
                "preset = \"quick\"\n[tail]\nlength = -1",
                "t:3: length = -1: invalid value: integer `-1`, expected a whole number from 0 to 4294967295",
            ),
            ("tail = 3", "t:1: tail = 3: invalid type: integer `3`, expected a table, or its `kind` alone"),
            (
                "count = 3\ntail-length = 3",
                "t:2: tail-length = 3: `tail-length` has moved; write `tail.length` instead",
            ),
        ] {
            assert_eq!(of(text).unwrap_err(), complaint);
        }
    }

    /// Another reader's errors say the same, and nothing of them is left for the next file.
    #[test]
    fn another_format_has_its_own_errors() {
        let error = serde_json::from_str::<Link>("{\"preset\": \"fast\"}").unwrap_err();
        assert!(error.to_string().starts_with("no preset \"fast\""), "{error}");
        let complaint =
            "t:1: count = -1: invalid value: integer `-1`, expected a whole number from 0 to 4294967295";
        assert_eq!(of("count = -1").unwrap_err(), complaint);
        assert_eq!(
            serde_json::from_str::<Link>("{\"tail\": \"curly\"}").unwrap(),
            link(0, 1, "curly", 2, None)
        );
    }
}
