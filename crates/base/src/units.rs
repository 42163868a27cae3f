//! Quantities as people write them in scenario and configuration files: a number, a space, a unit.
//!
//! `"256 kbit/s"`, `"250 ms"`, `"1 MB"`. Decimal prefixes are decimal and binary ones binary: `1 kB` is
//! 1000 bytes and `1 KiB` is 1024. A value that does not fit its unit exactly is rounded to the nearest
//! nanosecond, bit per second or byte.

use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::json;

use crate::rate::Rate;
use crate::time::Duration;

/// A count of bytes, written with a unit: `"1448 B"`, `"64 KiB"`, `"1 MB"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A probability, from 0 to 1 inclusive.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 0, "maximum" = 1))]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);

    /// The value.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A number outside the interval from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a probability; allowed are 0 to 1")]
pub struct NotAProbability(f64);

impl TryFrom<f64> for Probability {
    type Error = NotAProbability;
    fn try_from(value: f64) -> Result<Self, NotAProbability> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(NotAProbability(value)) }
    }
}

impl From<Probability> for f64 {
    fn from(probability: Probability) -> Self {
        probability.0
    }
}

/// A text that is not a quantity of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {kind}; write a number and one of {allowed}, as in \"{example}\"")]
pub struct NotAQuantity {
    text: String,
    kind: &'static str,
    allowed: String,
    example: &'static str,
}

/// A unit's name and its size in the quantity's base unit.
type Unit = (&'static str, f64);

const TIME_UNITS: &[Unit] =
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const RATE_UNITS: &[Unit] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const SIZE_UNITS: &[Unit] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

fn parse(text: &str, kind: &'static str, units: &[Unit], example: &'static str) -> Result<u64, NotAQuantity> {
    let wrong = || NotAQuantity {
        text: text.to_owned(),
        kind,
        allowed: units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        example,
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let scaled = libm::round(value * scale);
    // Above 2^63 the nearest float is no longer the number that was written.
    if scaled.is_finite() && scaled < 9.2e18 { Ok(scaled as u64) } else { Err(wrong()) }
}

impl FromStr for Duration {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        parse(text, "a time", TIME_UNITS, "250 ms").map(Self::from_nanos)
    }
}

impl FromStr for Rate {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        parse(text, "a rate", RATE_UNITS, "256 kbit/s").map(Self::from_bps)
    }
}

impl FromStr for Size {
    type Err = NotAQuantity;
    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        parse(text, "a size", SIZE_UNITS, "64 KiB").map(Self)
    }
}

/// The largest unit that divides the size.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
            (1_000_000_000, "GB"),
            (1_000_000, "MB"),
            (1_000, "kB"),
        ];
        for (unit, name) in units {
            if self.0 != 0 && self.0.is_multiple_of(unit) {
                return write!(f, "{} {name}", self.0 / unit);
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads a quantity; a bare number is told what is missing.
struct Written<T> {
    expected: &'static str,
    quantity: PhantomData<T>,
}

impl<T: FromStr<Err = NotAQuantity>> de::Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(de::Error::custom)
    }
}

macro_rules! serde_as_text {
    ($($quantity:ty: $expected:literal),*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Written { expected: $expected, quantity: PhantomData })
            }
        }

        impl Serialize for $quantity {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

serde_as_text!(
    Duration: "a time with its unit, in quotes, as in \"250 ms\"",
    Rate: "a rate with its unit, in quotes, as in \"256 kbit/s\"",
    Size: "a size with its unit, in quotes, as in \"64 KiB\""
);

macro_rules! schema_as_text {
    ($($quantity:ty: $name:literal, $description:literal, $units:expr, $examples:tt;)*) => {$(
        impl JsonSchema for $quantity {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units: Vec<&str> = $units.iter().map(|(name, _)| *name).collect();
                let units = units.join("|");
                json_schema!({
                    "description": format!(concat!($description, ": a number and one of {}."), units.replace('|', ", ")),
                    "type": "string",
                    "pattern": format!(r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*({units})\s*$"),
                    "examples": $examples,
                })
            }
        }
    )*};
}
schema_as_text! {
    Duration: "Time", "A time", TIME_UNITS, ["250 ms", "1.5 s"];
    Rate: "Rate", "A rate", RATE_UNITS, ["256 kbit/s", "10 Mbit/s"];
    Size: "Size", "A size", SIZE_UNITS, ["64 KiB", "1 MB"];
}

/// Adds to the schema of a quantity that it is above zero, for `#[schemars(transform = …)]`.
pub fn above_zero(schema: &mut Schema) {
    schema.insert("not".to_owned(), json!({ "pattern": r"^\s*[0.]+[^0-9.]" }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_read_as_written() {
        assert_eq!("250 ms".parse(), Ok(Duration::from_millis(250)));
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1_500)));
        assert_eq!("256 kbit/s".parse(), Ok(Rate::from_bps(256_000)));
        assert_eq!("262144 bit/s".parse(), Ok(Rate::from_bps(262_144)));
        assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
        assert_eq!("1 MB".parse(), Ok(Size(1_000_000)));
    }

    #[test]
    fn a_bare_number_is_told_what_is_missing() {
        let error = toml::from_str::<std::collections::BTreeMap<String, Rate>>("rate = 2000000").unwrap_err();
        assert!(
            error.message().ends_with(
                "integer `2000000`, expected a rate with its unit, in quotes, as in \"256 kbit/s\""
            ),
            "{}",
            error.message()
        );
    }

    #[test]
    fn a_wrong_unit_names_the_allowed_ones() {
        let error = "256 kbps".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"256 kbps\" is not a rate; write a number and one of bit/s, kbit/s, Mbit/s, Gbit/s, as in \"256 kbit/s\""
        );
        for wrong in ["", "ms", "1", "-1 ms", "1 ms 2", "1..2 ms", "1e300 s", "999999999999 h"] {
            assert!(wrong.parse::<Duration>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(nanos in 0_u64..1 << 50, bps in 0_u64..1 << 50, bytes in 0_u64..1 << 50) {
            let (time, rate, size) = (Duration::from_nanos(nanos), Rate::from_bps(bps), Size(bytes));
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
