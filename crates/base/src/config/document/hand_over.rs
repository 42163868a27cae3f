//! A type that looks at what is written before it reads it takes the node as a whole. serde's traits know neither nodes
//! nor their complaints; so both are laid down here for the one call that is between those who do.

use core::cell::Cell;
use core::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::{Node, Wrong};

thread_local! {
    static NODE: Cell<Option<Node>> = const { Cell::new(None) };
    static WRONG: Cell<Option<Wrong>> = const { Cell::new(None) };
}

/// The name of the struct as which a node is asked for.
pub(super) const WHOLE: &str = "$longhaul_node";

impl Node {
    /// To a visitor that has asked for it by name.
    pub(super) fn hand_over<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        NODE.set(Some(self));
        visitor.visit_unit()
    }
}

impl<'de> Deserialize<'de> for Node {
    /// From a node as it is, and from a table of anybody else's without its places.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(WHOLE, &[], Whole)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a table")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::text(text.to_owned(), None))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        NODE.take().ok_or_else(|| E::invalid_type(de::Unexpected::Unit, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Node, A::Error> {
        toml::Table::deserialize(MapAccessDeserializer::new(map)).map(Node::from)
    }
}

impl Wrong {
    /// The same complaint as an error of the reader that gave the node out: place and path stay if that was ours.
    pub(in crate::config) fn into_error<E: de::Error>(self) -> E {
        let words = self.to_string();
        WRONG.set(Some(self));
        let error = E::custom(words);
        WRONG.take();
        error
    }
}

/// The complaint that is being handed over, if one is.
pub(super) fn wrong() -> Option<Wrong> {
    WRONG.take()
}
