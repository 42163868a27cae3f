//! Where a connection's window starts.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = InitialWindow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<InitialWindow, E> {
        let wrong = || E::custom(format!("{count} is no window; allowed is {EXPECTED}"));
        u32::try_from(count).ok().filter(|&count| count > 0).map(InitialWindow::Segments).ok_or_else(wrong)
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<InitialWindow, E> {
        self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<InitialWindow, E> {
        match name {
            "rfc3390" => Ok(InitialWindow::Rfc3390),
            _ => Err(E::custom(format!("\"{name}\" is no window; allowed is {EXPECTED}"))),
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
