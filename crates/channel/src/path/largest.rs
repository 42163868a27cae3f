//! The longest packet that a path carries.

use base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest packet that a path carries, for a while or all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LargestPacket {
    /// Bytes, IP header included, 68 to 65535. Longer packets are dropped.
    pub bytes: PacketLength,
    /// From when on, since the start of the run. Default: from its start.
    #[serde(default)]
    pub from: Duration,
    /// Until when. Default: to the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Whether the source of a dropped packet is told by ICMP. Default: it is dropped in silence.
    #[serde(default, skip_serializing_if = "is_false")]
    pub says: bool,
}

impl LargestPacket {
    /// Whether a packet of `len` bytes is too long at `now`.
    pub(super) fn refuses(&self, now: Instant, len: u64) -> bool {
        let since_start = now.saturating_since(Instant::ZERO);
        len > u64::from(self.bytes.get())
            && self.from <= since_start
            && self.until.is_none_or(|until| since_start < until)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Bytes that any path carries, or more: 68 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(extend("minimum" = 68, "maximum" = 65535))]
pub struct PacketLength(u16);

impl PacketLength {
    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A length that no path may have as its longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a largest packet; allowed are 68 to 65535 bytes")]
pub struct NotALargestPacket(u32);

/// RFC 791, 3.2: every module forwards datagrams of 68 bytes.
const LEAST: u16 = 68;

impl TryFrom<u32> for PacketLength {
    type Error = NotALargestPacket;
    fn try_from(bytes: u32) -> Result<Self, NotALargestPacket> {
        match u16::try_from(bytes) {
            Ok(bytes) if bytes >= LEAST => Ok(Self(bytes)),
            _ => Err(NotALargestPacket(bytes)),
        }
    }
}

impl From<PacketLength> for u32 {
    fn from(length: PacketLength) -> Self {
        length.0.into()
    }
}
