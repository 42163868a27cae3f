//! Choices with parameters: a name, or a table of one name and its parameters. A name alone stands for a table without any.

use core::fmt;
use core::marker::PhantomData;

use schemars::Schema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

/// Reads a choice of `what`, such as "a queue", as an enum whose variants have parameters, or none.
///
/// # Errors
/// A name that is none of the enum's, or parameters that are wrong or missing.
pub fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    what: &'static str,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(NameOrTable { what, of: PhantomData })
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

struct NameOrTable<T> {
    what: &'static str,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for NameOrTable<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}'s name, or a table of one name and its parameters", self.what)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        T::deserialize(MapAccessDeserializer::new(Named { name: Some(name), error: PhantomData }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A table of one name, without parameters.
struct Named<'a, E> {
    name: Option<&'a str>,
    error: PhantomData<E>,
}

impl<'de, E: de::Error> MapAccess<'de> for Named<'_, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        self.name.take().map(|name| seed.deserialize(StrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, E> {
        seed.deserialize(Nothing(PhantomData))
    }
}

/// No parameters: an empty table, or what a variant without any has.
struct Nothing<E>(PhantomData<E>);

impl<'de, E: de::Error> Deserializer<'de> for Nothing<E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_map(Named { name: None, error: PhantomData })
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
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
