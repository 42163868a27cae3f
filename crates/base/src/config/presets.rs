//! Tables that start from a named one: what a table does not say comes from its preset.

use core::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use toml::{Table, Value};

/// Named tables of one kind: each a name and its TOML, which may start from another one in turn.
///
/// A type opts in by reading itself from [`Presets::beneath`] its deserializer. Then the key `preset` of its table
/// names the preset that the keys which the table lacks come from; what neither has is the type's default.
/// Complaints about the table's own keys keep their place in the file.
#[derive(Clone, Copy, Debug)]
pub struct Presets(pub &'static [(&'static str, &'static str)]);

/// The key that names a preset.
const KEY: &str = "preset";

impl Presets {
    /// The names, in order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|&(name, _)| name)
    }

    /// All keys of the preset with this name, if there is one.
    ///
    /// # Panics
    /// If a preset is not TOML, or starts from one that does not exist.
    #[must_use]
    pub fn table(self, name: &str) -> Option<Table> {
        let &(_, text) = self.0.iter().find(|&&(known, _)| known == name)?;
        let mut table: Table = text.parse().unwrap_or_else(|error| panic!("preset {name}: {error}"));
        if let Some(below) = table.remove(KEY) {
            let below = below.as_str().and_then(|below| self.table(below));
            let below = below.unwrap_or_else(|| panic!("preset {name} starts from no preset"));
            for (key, value) in below {
                table.entry(key).or_insert(value);
            }
        }
        Some(table)
    }

    /// Reads a table and, for the keys that it lacks, its preset.
    pub const fn beneath<D>(self, deserializer: D) -> Layered<D> {
        Layered { deserializer, presets: self }
    }
}

/// A deserializer of a table that may name a preset; see [`Presets::beneath`].
#[derive(Debug)]
pub struct Layered<D> {
    deserializer: D,
    presets: Presets,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Layered<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.deserializer.deserialize_map(LayeredVisitor { visitor, presets: self.presets })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct LayeredVisitor<V> {
    visitor: V,
    presets: Presets,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for LayeredVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, own: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Entries {
            own: Some(own),
            seen: Vec::new(),
            presets: self.presets,
            preset: Table::new().into_iter(),
            value: None,
        })
    }
}

/// The table's own entries, then those of the preset that it did not have.
struct Entries<A> {
    /// None once they are exhausted.
    own: Option<A>,
    seen: Vec<String>,
    presets: Presets,
    preset: toml::map::IntoIter<String, Value>,
    /// The value of the preset's key that was just given out.
    value: Option<Value>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        while let Some(own) = &mut self.own {
            match own.next_key_seed(OwnKey { seed: &mut seed, seen: &mut self.seen })? {
                Some(Key::Other(key)) => return Ok(Some(key)),
                Some(Key::Preset) => self.preset = own.next_value_seed(PresetName(self.presets))?.into_iter(),
                None => self.own = None,
            }
        }
        let seen = &self.seen;
        let Some((key, value)) = self.preset.find(|(key, _)| !seen.contains(key)) else { return Ok(None) };
        self.value = Some(value);
        let Some(seed) = seed else { unreachable!("only a key that is given out takes the seed") };
        seed.deserialize(StringDeserializer::<A::Error>::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match (self.value.take(), &mut self.own) {
            (Some(value), _) => seed.deserialize(value).map_err(de::Error::custom),
            (None, Some(own)) => own.next_value_seed(seed),
            (None, None) => Err(de::Error::custom("a value without a key")),
        }
    }
}

enum Key<T> {
    Preset,
    Other(T),
}

/// Reads a key and, unless it is `preset`, hands it on.
struct OwnKey<'a, K> {
    seed: &'a mut Option<K>,
    seen: &'a mut Vec<String>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for OwnKey<'_, K> {
    type Value = Key<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == KEY {
            return Ok(Key::Preset);
        }
        self.seen.push(name.clone());
        let Some(seed) = self.seed.take() else { unreachable!("one key is given out at a time") };
        let key: StringDeserializer<D::Error> = name.into_deserializer();
        seed.deserialize(key).map(Key::Other)
    }
}

/// Reads a preset's name as its table.
struct PresetName(Presets);

impl<'de> DeserializeSeed<'de> for PresetName {
    type Value = Table;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Table, D::Error> {
        let name = String::deserialize(deserializer)?;
        self.0.table(&name).ok_or_else(|| {
            let known: Vec<String> = self.0.names().map(|known| format!("\"{known}\"")).collect();
            de::Error::custom(format!("no preset \"{name}\"; allowed are {}", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;
    use crate::config;

    const PRESETS: Presets =
        Presets(&[("quick", "delay = \"1 ms\"\ncount = 7"), ("slow", "preset = \"quick\"\ndelay = \"1 s\"")]);

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(remote = "Self", default, deny_unknown_fields)]
    struct Link {
        delay: Duration,
        count: u32,
        tail: u32,
    }

    impl Default for Link {
        fn default() -> Self {
            Self { delay: Duration::ZERO, count: 1, tail: 2 }
        }
    }

    impl<'de> Deserialize<'de> for Link {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Self::deserialize(PRESETS.beneath(deserializer))
        }
    }

    fn read(text: &str) -> Result<Link, String> {
        config::parse::<Link>("t", text).map_err(|error| error.to_string())
    }

    #[test]
    fn own_keys_go_before_the_presets_and_these_before_the_defaults() {
        assert_eq!(read(""), Ok(Link::default()));
        let quick = Link { delay: Duration::from_millis(1), count: 7, tail: 2 };
        assert_eq!(read("preset = \"quick\""), Ok(quick));
        // Wherever it stands.
        let own = Link { delay: Duration::from_millis(1), count: 3, tail: 4 };
        assert_eq!(read("count = 3\npreset = \"quick\"\ntail = 4").as_ref(), Ok(&own));
        assert_eq!(read("preset = \"quick\"\ntail = 4\ncount = 3"), Ok(own));
    }

    #[test]
    fn a_preset_may_start_from_another() {
        assert_eq!(read("preset = \"slow\""), Ok(Link { delay: Duration::from_secs(1), count: 7, tail: 2 }));
    }

    #[test]
    fn complaints_keep_their_place() {
        for (text, complaint) in [
            (
                "count = 3\npreset = \"fast\"",
                "t:2: preset = \"fast\": no preset \"fast\"; allowed are \"quick\", \"slow\"",
            ),
            ("preset = \"quick\"\ncount = -1", "t:2: count = -1: invalid value: integer `-1`, expected u32"),
            (
                "preset = \"quick\"\n\nwidth = 3",
                "t:3: width = 3: unknown field `width`, expected one of `delay`, `count`, `tail`",
            ),
            ("preset = 3", "t:1: preset = 3: invalid type: integer `3`, expected a string"),
        ] {
            assert_eq!(read(text).unwrap_err(), complaint);
        }
    }
}
