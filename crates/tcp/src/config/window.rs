//! `[tcp.window]`: where the congestion window starts and how slow start opens it, and the windows of the two ends.

use core::fmt;
use std::borrow::Cow;

use base::units::{Size, above_zero};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::SlowStart;
use super::range;

/// The windows of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct WindowConfig {
    /// Congestion window at the start, and again after an idle time (`after-idle`).
    pub initial: InitialWindow,
    /// Slow start threshold at the start; by default there is none (RFC 5681, 3.1).
    pub initial_ssthresh: Option<Size>,
    /// How slow start ends, for the controllers that have the usual one: Reno, CUBIC and Westwood.
    pub slow_start: SlowStart,
    /// Segments that one acknowledgement can open the window by in slow start: L of RFC 3465. 1 in RFC 5681 (3.1), and after
    /// a time-out, unless it is 65535: then every acknowledged segment always counts.
    #[serde(deserialize_with = "range::one_or_more")]
    #[schemars(range(min = 1))]
    pub byte_counting_limit: u32,
    /// When a congestion window counts as used, which is when it may grow.
    pub in_use: InUse,
    /// What happens to the congestion window while a sender does not use it.
    pub after_idle: AfterIdle,
    /// Offer window scaling (RFC 7323, 2).
    pub scaling: bool,
    /// Receive buffer, and so the largest window. Memory is taken as data come.
    #[serde(deserialize_with = "range::buffer")]
    #[schemars(transform = above_zero)]
    pub receive_buffer: Size,
    /// Whether the window begins with 64 KiB and grows up to the receive buffer, with what the application reads in a
    /// round trip (Fisk and Feng 2001; Linux).
    pub autotuning: bool,
    /// Send buffer: data that was written and is not yet acknowledged. Memory is taken as data come.
    #[serde(deserialize_with = "range::buffer")]
    #[schemars(transform = above_zero)]
    pub send_buffer: Size,
    /// How much of the send buffer may hold data that was never sent (`TCP_NOTSENT_LOWAT` of Linux). Default: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent_limit: Option<Size>,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            initial: InitialWindow::Segments(2),
            initial_ssthresh: None,
            slow_start: SlowStart::Standard,
            byte_counting_limit: 1,
            in_use: InUse::Round,
            after_idle: AfterIdle::Restart,
            scaling: true,
            receive_buffer: Size(256 * 1024),
            autotuning: false,
            send_buffer: Size(512 * 1024),
            unsent_limit: None,
        }
    }
}

/// When a congestion window counts as used (RFC 5681 leaves it open).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InUse {
    /// When it kept data back in the last round trip in which data were sent or, in slow start, is less than twice the most that was
    /// outstanding in it: Linux since 3.12.
    Round,
    /// When it is full as an acknowledgement comes: Linux 2.4.
    Now,
}

/// What happens to the congestion window while a sender does not use it. BBR's is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterIdle {
    /// After an idle retransmission time-out it starts again from the initial window (RFC 5681, 4.1).
    Restart,
    /// It halves for each idle time-out, and falls half of the way to what is used of it in each other; the threshold
    /// remembers three quarters (RFC 2861; Linux).
    Decay,
    /// It is kept for five minutes, data are spaced out, and a loss takes it back to what was really used (RFC 7661).
    Validate,
    /// It stays.
    Keep,
}

/// The initial window: in TOML a number of segments, or `"rfc3390"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// So many segments, 1 or more. 1 in RFC 2001, 2 in RFC 2581 and Linux 2.4, 10 in RFC 6928.
    Segments(u32),
    /// 4380 bytes, but no less than two segments and no more than four (RFC 3390, 1; RFC 5681, 3.1).
    Rfc3390,
}

impl InitialWindow {
    /// Its bytes, where a full segment has `mss`.
    #[must_use]
    pub fn bytes(self, mss: u64) -> u64 {
        match self {
            Self::Segments(count) => mss * u64::from(count),
            Self::Rfc3390 => (4 * mss).min(RFC_3390_BYTES.max(2 * mss)),
        }
    }
}

/// RFC 3390 (1), equation 1: three segments of 1460 bytes.
const RFC_3390_BYTES: u64 = 4380;

impl Serialize for InitialWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Segments(count) => serializer.serialize_u32(*count),
            Self::Rfc3390 => serializer.serialize_str("rfc3390"),
        }
    }
}

impl<'de> Deserialize<'de> for InitialWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for InitialWindow {
    fn schema_name() -> Cow<'static, str> {
        "InitialWindow".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of segments, or \"rfc3390\".",
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": u32::MAX }, { "const": "rfc3390" }],
        })
    }
}

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = InitialWindow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<InitialWindow, E> {
        let wrong = || E::custom(format!("{count} is not a window; allowed is {EXPECTED}"));
        u32::try_from(count).ok().filter(|&count| count > 0).map(InitialWindow::Segments).ok_or_else(wrong)
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<InitialWindow, E> {
        self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<InitialWindow, E> {
        match name {
            "rfc3390" => Ok(InitialWindow::Rfc3390),
            _ => Err(E::custom(format!("\"{name}\" is not a window; allowed is {EXPECTED}"))),
        }
    }
}

const EXPECTED: &str = "a number of segments from 1 on, or \"rfc3390\"";

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3390 (1): by the size of a segment.
    #[test]
    fn the_window_of_rfc_3390_depends_on_the_segment() {
        for (mss, bytes) in [
            (500, 2000),
            (1095, 4380),
            (1096, 4380),
            (1460, 4380),
            (2190, 4380),
            (2191, 4382),
            (9000, 18_000),
        ] {
            assert_eq!(InitialWindow::Rfc3390.bytes(mss), bytes, "{mss}");
        }
        assert_eq!(InitialWindow::Segments(10).bytes(1448), 14_480);
    }
}
