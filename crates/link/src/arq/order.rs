//! Which packets wait for which.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Which packets wait for a packet that is missing: `ordered = "flow"`, `true` or `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those of its flow that were sent after it; unless told.
    #[default]
    Flow,
    /// All that were sent after it.
    Link,
    /// None.
    None,
}

impl Serialize for Order {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flow => serializer.serialize_str(FLOW),
            Self::Link => serializer.serialize_bool(true),
            Self::None => serializer.serialize_bool(false),
        }
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlowOrBool;
        impl de::Visitor<'_> for FlowOrBool {
            type Value = Order;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("true, false or \"flow\"")
            }
            fn visit_bool<E: de::Error>(self, link: bool) -> Result<Order, E> {
                Ok(if link { Order::Link } else { Order::None })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Order, E> {
                if text == FLOW {
                    Ok(Order::Flow)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }
        }
        deserializer.deserialize_any(FlowOrBool)
    }
}

impl JsonSchema for Order {
    fn schema_name() -> Cow<'static, str> {
        "Order".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Which packets wait for a packet that is missing: those of its flow that were sent after it (\"flow\"), all that \
                            were (true), or none (false).",
            "enum": [FLOW, true, false],
        })
    }
}

const FLOW: &str = "flow";
