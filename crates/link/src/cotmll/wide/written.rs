//! How a file says the parameters of wide COTMLL. Keys that its table had in earlier versions are refused with what to write now.

use core::fmt;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Config;

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Keys that only the thesis's format has.
const OF_THE_THESIS: [&str; 6] =
    ["persistence", "attempts", "flag-against", "acknowledge", "block", "gap-opens-with"];

/// What to write instead of a key of earlier versions.
fn complaint(key: &str) -> Option<String> {
    if key == "sequence" {
        return Some(
            "`sequence` is no longer a key: `cotmll` is the wide format without it; write `cotmll-thesis` for that of the \
             thesis"
                .to_owned(),
        );
    }
    OF_THE_THESIS.contains(&key).then(|| {
        format!("`{key}` is a key of `cotmll-thesis`; `cotmll` has `window`, `ordered` and `frame-payload`")
    })
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Config;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Config, A::Error> {
        Config::deserialize(MapAccessDeserializer::new(Entries(map)))
    }
}

/// The table's entries, unless a key is one of earlier versions.
struct Entries<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(Key(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

struct Key<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if let Some(complaint) = complaint(&name) {
            return Err(de::Error::custom(complaint));
        }
        let key: StringDeserializer<D::Error> = name.into_deserializer();
        self.0.deserialize(key)
    }
}
