//! Values with a range or a form of their own.

use core::ops::RangeInclusive;

use base::Rate;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A rate above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositiveRate(pub Rate);

impl PositiveRate {
    /// The rate, if it is above zero.
    #[must_use]
    pub fn new(rate: Rate) -> Option<Self> {
        (rate.as_bps() > 0).then_some(Self(rate))
    }
}

impl Serialize for PositiveRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PositiveRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Rate::deserialize(deserializer)?)
            .ok_or_else(|| de::Error::custom("a rate of zero; allowed are rates above it"))
    }
}

/// Largest IP packet in bytes, 576 to 65535; `DEFAULT` unless told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu<const DEFAULT: u32>(pub u32);

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Overhead(i16);

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

/// A name that a network interface can have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct InterfaceName(String);

impl InterfaceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
        if fits && !name.contains(|c: char| c == '/' || c == '%' || c == '\0' || c.is_whitespace()) {
            return Ok(Self(name));
        }
        Err(format!(
            "\"{name}\" is not an interface name; allowed are 1 to 15 bytes without space, slash or %"
        ))
    }
}
