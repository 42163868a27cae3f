//! Whole numbers with a range and a default, checked while they are read.

use core::fmt;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A whole number from `MIN` to `MAX`, `DEFAULT` by default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Limit<const MIN: u32, const MAX: u32, const DEFAULT: u32>(u32);

/// A number that is too small or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is out of range; allowed are {min} to {max}")]
pub struct OutOfRange {
    value: u32,
    min: u32,
    max: u32,
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> Limit<MIN, MAX, DEFAULT> {
    /// The value.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> Default for Limit<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        const { assert!(MIN <= DEFAULT && DEFAULT <= MAX) };
        Self(DEFAULT)
    }
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> TryFrom<u32> for Limit<MIN, MAX, DEFAULT> {
    type Error = OutOfRange;
    fn try_from(value: u32) -> Result<Self, OutOfRange> {
        if (MIN..=MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(OutOfRange { value, min: MIN, max: MAX })
        }
    }
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> From<Limit<MIN, MAX, DEFAULT>> for u32 {
    fn from(limit: Limit<MIN, MAX, DEFAULT>) -> Self {
        limit.0
    }
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> fmt::Debug for Limit<MIN, MAX, DEFAULT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> JsonSchema for Limit<MIN, MAX, DEFAULT> {
    fn schema_name() -> Cow<'static, str> {
        format!("Limit{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}
