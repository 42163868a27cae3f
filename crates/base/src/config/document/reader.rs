//! How types are read from a tree.

use core::ops::Range;
use std::vec;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

use super::hand_over::WHOLE;
use super::{Key, Node, Value, Wrong};

impl Node {
    /// Whatever is wrong with it is wrong there, if nowhere within it.
    fn read<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Wrong> {
        let span = self.span.clone();
        seed.deserialize(self).map_err(|wrong| wrong.at(span))
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Value::Text(mut text) => visitor.visit_string(core::mem::take(&mut *text)),
            Value::Ours(name) => visitor.visit_borrowed_str(name),
            Value::Whole(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => visitor.visit_i128(number),
            },
            Value::Number(number) => visitor.visit_f64(number),
            Value::Truth(truth) => visitor.visit_bool(truth),
            Value::Date => Err(Wrong::invalid_type(Unexpected::Other("date"), &visitor)),
            Value::List(items) => visitor.visit_seq(Items::new(items)),
            Value::Table(entries) => visitor.visit_map(Entries::new(entries)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Value::List(items) = self.value else { return Err(self.unexpected(&visitor)) };
        visitor.visit_seq(Items::new(items))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Value::Table(entries) = self.value else { return Err(self.unexpected(&visitor)) };
        visitor.visit_map(Entries::new(entries))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match (name, fields) {
            (WHOLE, _) => self.hand_over(visitor),
            (SPANNED, &[start, end, value]) => {
                visitor.visit_map(Entries::of_place(self, [start, end, value]))
            }
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_enum(match self.value {
            Value::Text(mut name) => {
                Variant { key: Key { span: self.span, name: core::mem::take(&mut *name) }, value: None }
            }
            Value::Table(entries) => Variant::only(entries)?,
            _ => return Err(Wrong::custom("wanted string or table")),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple_struct
        identifier
    }
}

/// How `toml::Spanned` asks for a value with its place: a table of the first byte, the end and the value.
const SPANNED: &str = "$__serde_spanned_private_Spanned";

struct Items {
    index: usize,
    items: vec::IntoIter<Node>,
}

impl Items {
    fn new(items: Vec<Node>) -> Self {
        Self { index: 0, items: items.into_iter() }
    }
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        item.read(seed).map(Some).map_err(|wrong| wrong.in_item(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries {
    entries: vec::IntoIter<(Key, Node)>,
    /// The entry whose key was given out.
    next: Option<(Key, Node)>,
    /// The keys that are ours and not the file's, where it is a place: no part of a path.
    ours: Option<[&'static str; 3]>,
}

impl Entries {
    fn new(entries: Vec<(Key, Node)>) -> Self {
        Self { entries: entries.into_iter(), next: None, ours: None }
    }

    /// A value and its place, in a table of these keys.
    fn of_place(node: Node, keys: [&'static str; 3]) -> Self {
        let Range { start, end } = node.span.clone().unwrap_or_default();
        let number = |number: usize| Node { span: None, value: Value::Whole(number as i128) };
        let entries = [number(start), number(end), node].map(|node| (Key::from(String::new()), node));
        Self { ours: Some(keys), ..Self::new(entries.into()) }
    }
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let Key { span, name } = self.next.insert((key, value)).0.clone();
        let node = match self.ours {
            Some(keys) => Node { span, value: Value::Ours(keys[2 - self.entries.len()]) },
            None => Node::text(name, span),
        };
        let read = node.read(seed).map(Some);
        read.map_err(|wrong| match self.next.take() {
            Some((key, _)) => wrong.in_key(key.name),
            None => wrong,
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Wrong> {
        let Some((key, value)) = self.next.take() else { return Err(Wrong::custom("a value without a key")) };
        let read = value.read(seed);
        read.map_err(|wrong| if self.ours.is_some() { wrong } else { wrong.in_key(key.name) })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// One of several kinds: a name alone, or a table of one name and what belongs to it.
struct Variant {
    key: Key,
    value: Option<Node>,
}

impl Variant {
    /// The only entry of a table.
    fn only(entries: Vec<(Key, Node)>) -> Result<Self, Wrong> {
        let mut entries = entries.into_iter();
        match (entries.next(), entries.next()) {
            (Some((key, value)), None) => Ok(Self { key, value: Some(value) }),
            (None, _) => Err(Wrong::custom("wanted exactly 1 element, found 0 elements")),
            (Some(_), Some((key, _))) => {
                Err(Wrong::custom("wanted exactly 1 element, more than 1 element").at(key.span))
            }
        }
    }

    /// What belongs to the name.
    fn content(self, expected: &'static str) -> Result<(Node, String), Wrong> {
        let Some(value) = self.value else {
            return Err(Wrong::invalid_type(Unexpected::UnitVariant, &expected).at(self.key.span));
        };
        Ok((value, self.key.name))
    }
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        let Key { span, name } = self.key.clone();
        match Node::text(name, span).read(seed) {
            Ok(value) => Ok((value, self)),
            Err(wrong) if self.value.is_some() => Err(wrong.in_key(self.key.name)),
            Err(wrong) => Err(wrong),
        }
    }
}

impl<'de> VariantAccess<'de> for Variant {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.value {
            None => Ok(()),
            Some(Node { value: Value::Table(entries), .. }) if entries.is_empty() => Ok(()),
            Some(node) => Err(node.unexpected(&"an empty table").in_key(self.key.name)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        let (node, name) = self.content("newtype variant")?;
        node.read(seed).map_err(|wrong| wrong.in_key(name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        let (node, name) = self.content("tuple variant")?;
        let span = node.span.clone();
        node.deserialize_seq(visitor).map_err(|wrong| wrong.at(span).in_key(name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let (node, name) = self.content("struct variant")?;
        let span = node.span.clone();
        let read = node.knows_only(fields).and_then(|()| node.deserialize_map(visitor));
        read.map_err(|wrong| wrong.at(span).in_key(name))
    }
}

impl Node {
    /// Whether a table has no other keys.
    fn knows_only(&self, fields: &'static [&'static str]) -> Result<(), Wrong> {
        let Value::Table(entries) = &self.value else { return Ok(()) };
        match entries.iter().find(|(key, _)| !fields.contains(&key.name.as_str())) {
            Some((key, _)) => {
                Err(Wrong::unknown_field(&key.name, fields).at(key.span.clone()).in_key(key.name.clone()))
            }
            None => Ok(()),
        }
    }
}
