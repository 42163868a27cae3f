//! Values with a range or a form of their own.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use base::Rate;
use base::units::above_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How fast a gateway sends: `"auto"`, `"max"` or a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum LinkRate {
    /// As fast as the path carries it, which is found out.
    #[default]
    #[schemars(extend("type" = "string", "const" = "auto"))]
    Auto,
    /// As fast as the carrier takes it.
    #[schemars(extend("type" = "string", "const" = "max"))]
    Max,
    /// At this rate, above zero, or less where the path carries less.
    #[schemars(transform = above_zero)]
    Fixed(Rate),
}

impl LinkRate {
    /// The rate as configured, if it is above zero.
    #[must_use]
    pub fn of(rate: Rate) -> Option<Self> {
        (rate.as_bps() > 0).then_some(Self::Fixed(rate))
    }

    /// The rate, if one is configured.
    #[must_use]
    pub const fn fixed(self) -> Option<Rate> {
        match self {
            Self::Fixed(rate) => Some(rate),
            Self::Auto | Self::Max => None,
        }
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Max => f.write_str("max"),
            Self::Fixed(rate) => rate.fmt(f),
        }
    }
}

impl FromStr for LinkRate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "max" => Ok(Self::Max),
            rate => match rate.parse().map(Self::of) {
                Ok(rate) => rate.ok_or_else(|| "a rate of zero; allowed are rates above 0".to_owned()),
                Err(error) => Err(format!("{error}, \"auto\" or \"max\"")),
            },
        }
    }
}

impl Serialize for LinkRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LinkRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Largest IP packet in bytes, 576 to 65535; `DEFAULT` by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Mtu<const DEFAULT: u32>(#[schemars(range(min = 576, max = 65_535))] pub u32);

impl<const DEFAULT: u32> Default for Mtu<DEFAULT> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<'de, const DEFAULT: u32> Deserialize<'de> for Mtu<DEFAULT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            mtu @ 576..=65_535 => Ok(Self(mtu)),
            mtu => Err(de::Error::custom(format!("{mtu} is out of range; allowed are 576 to 65535 (bytes)"))),
        }
    }
}

/// Bytes that a packet of the carrier occupies on the line besides those of its IP packet, -64 to 256, as in `tc-cake(8)`.
///
/// Below zero where headers of the carrier are not to count: `-55` has a datagram over IPv4 take the time that its
/// frame would take on a line of EFL, without headers of IP and UDP, without a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Overhead(#[schemars(range(min = -64, max = 256))] i16);

impl Overhead {
    /// What is allowed.
    const RANGE: RangeInclusive<i16> = -64..=256;

    /// The overhead in bytes.
    #[must_use]
    pub const fn get(self) -> i16 {
        self.0
    }

    /// Bytes of the line that an IP packet of `len` bytes occupies; never less than one.
    #[must_use]
    pub fn on_line(self, len: usize) -> usize {
        len.saturating_add_signed(self.0.into()).max(1)
    }
}

impl TryFrom<i16> for Overhead {
    type Error = String;
    fn try_from(bytes: i16) -> Result<Self, String> {
        if Self::RANGE.contains(&bytes) {
            return Ok(Self(bytes));
        }
        Err(format!("{bytes} is out of range; allowed are -64 to 256 (bytes)"))
    }
}

impl<'de> Deserialize<'de> for Overhead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(i16::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
