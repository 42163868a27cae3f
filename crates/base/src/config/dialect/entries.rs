//! A table as it is written, handed on as its type reads it; on the way its keys are noted.

use core::fmt;

use serde::de::value::{MapDeserializer, StringDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use toml::Table;

use super::{Dialect, KEY, Said};

/// A deserializer of a whole table.
pub(super) struct Written<'a, D> {
    pub(super) deserializer: D,
    pub(super) dialect: Dialect,
    pub(super) said: &'a mut Said,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Written<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let Self { deserializer, dialect, said } = self;
        deserializer.deserialize_map(WholeTable { visitor, dialect, said })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct WholeTable<'a, V> {
    visitor: V,
    dialect: Dialect,
    said: &'a mut Said,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WholeTable<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Entries { map, dialect: self.dialect, said: self.said })
    }
}

/// The entries but for `preset`.
struct Entries<'a, A> {
    map: A,
    dialect: Dialect,
    said: &'a mut Said,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let mut seed = Some(seed);
        loop {
            let key = Key { seed: &mut seed, dialect: self.dialect, said: self.said };
            match self.map.next_key_seed(key)? {
                Some(Some(key)) => return Ok(Some(key)),
                Some(None) => self.said.preset = Some(self.map.next_value_seed(Preset(self.dialect))?),
                None => return Ok(None),
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let Some((key, within)) = self.said.keys.last_mut() else {
            return Err(de::Error::custom("a value without a key"));
        };
        match self.dialect.table(key) {
            None => self.map.next_value_seed(seed),
            Some((_, short)) => {
                self.map.next_value_seed(InnerTable { inner: seed, short, said: within.insert(Vec::new()) })
            }
        }
    }
}

/// Reads a key and, unless it is `preset`, hands it on.
struct Key<'a, K> {
    seed: &'a mut Option<K>,
    dialect: Dialect,
    said: &'a mut Said,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, K> {
    type Value = Option<K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == KEY {
            return Ok(None);
        }
        if let Some((_, new)) = self.dialect.moved.iter().find(|(old, _)| *old == name) {
            return Err(de::Error::custom(format!("`{name}` has moved; write `{new}` instead")));
        }
        self.said.keys.push((name.clone(), None));
        let Some(seed) = self.seed.take() else { unreachable!("one key is given out at a time") };
        let key: StringDeserializer<D::Error> = name.into_deserializer();
        seed.deserialize(key).map(Some)
    }
}

/// Reads a preset's name as its table.
struct Preset(Dialect);

impl<'de> DeserializeSeed<'de> for Preset {
    type Value = Table;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Table, D::Error> {
        let name = String::deserialize(deserializer)?;
        self.0.preset(&name).ok_or_else(|| {
            let known: Vec<String> = self.0.names().map(|known| format!("\"{known}\"")).collect();
            de::Error::custom(format!("no preset \"{name}\"; allowed are {}", known.join(", ")))
        })
    }
}

/// A table within the table, in its turn as seed, deserializer, visitor and entries.
struct InnerTable<'a, T> {
    inner: T,
    short: Option<&'static str>,
    said: &'a mut Vec<String>,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for InnerTable<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(InnerTable { inner: deserializer, short: self.short, said: self.said })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for InnerTable<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(InnerTable { inner: visitor, short: self.short, said: self.said })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for InnerTable<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.short {
            Some(key) => write!(f, "a table, or its `{key}` alone"),
            None => f.write_str("a table"),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<V::Value, E> {
        let Some(key) = self.short else { return Err(E::invalid_type(de::Unexpected::Str(text), &self)) };
        self.said.push(key.to_owned());
        self.inner.visit_map(MapDeserializer::new([(key, text)].into_iter()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(InnerTable { inner: map, short: self.short, said: self.said })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for InnerTable<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(InnerKey { seed, said: self.said })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// Notes a key and hands it on.
struct InnerKey<'a, K> {
    seed: K,
    said: &'a mut Vec<String>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for InnerKey<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        self.said.push(name.clone());
        let key: StringDeserializer<D::Error> = name.into_deserializer();
        self.seed.deserialize(key)
    }
}
