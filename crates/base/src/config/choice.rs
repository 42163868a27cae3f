//! Choices with parameters: a name, or a table of one name and its parameters. A name alone stands for a table without any.

use schemars::Schema;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::{Value, json};

use super::document::{Node, Wrong};

/// Reads a choice of `what`, such as "a queue", as an enum whose variants have parameters, or none.
///
/// # Errors
/// A name that is none of the enum's, or parameters that are wrong or missing.
pub fn read<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
    what: &'static str,
) -> Result<T, D::Error> {
    let node = Node::deserialize(deserializer)?.into_choice();
    let read = if node.is_table() {
        T::deserialize(node)
    } else {
        Err(node.unexpected(&&*format!("{what}'s name, or a table of one name and its parameters")))
    };
    read.map_err(Wrong::into_error)
}

/// The schema of such a choice, from that of the enum.
///
/// # Panics
/// If that is no list of choices.
#[must_use]
pub fn schema(mut table: Schema, description: &str) -> Schema {
    let choices = table.get_mut("oneOf").and_then(Value::as_array_mut).expect("an enum is one of several");
    let names = choices.iter().filter_map(|choice| {
        let name = choice["required"][0].as_str()?;
        Some(json!({ "const": name, "description": choice.get("description").cloned().unwrap_or_default() }))
    });
    let names: Vec<Value> = names.collect();
    choices.splice(0..0, names);
    table.insert("description".to_owned(), description.into());
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Table {
        None,
        Some(Parameters),
        All(Required),
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Parameters {
        count: u32,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Required {
        count: u32,
    }

    #[derive(Debug, serde::Deserialize)]
    struct File {
        #[serde(deserialize_with = "choice")]
        of: Table,
    }

    fn choice<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        read(deserializer, "a thing")
    }

    #[test]
    fn a_name_stands_for_a_table_without_parameters() {
        let read = |text: &str| parse::<File>("f.toml", &format!("of = {text}\n")).map(|file| file.of);
        assert_eq!(read("\"none\"").unwrap(), Table::None);
        assert_eq!(read("\"some\"").unwrap(), Table::Some(Parameters { count: 0 }));
        assert_eq!(read("{ some = { count = 7 } }").unwrap(), Table::Some(Parameters { count: 7 }));
        assert_eq!(read("{ all = { count = 7 } }").unwrap(), Table::All(Required { count: 7 }));
        for (text, told) in [
            ("\"all\"", "missing key `count`"),
            ("\"other\"", "`none`, `some`, `all`"),
            ("{ some = { cuont = 7 } }", "`count`"),
            ("7", "a thing's name, or a table of one name and its parameters"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("f.toml:") && error.contains(told), "{error}");
        }
    }
}
