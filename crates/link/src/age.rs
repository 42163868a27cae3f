//! Up to which age a datagram is worth carrying.
//!
//! TCP's data are as good when they come late. A packet of a call or a game, an answer from DNS or an echo is not: whoever waited
//! for it has given up or asked again, and what comes late holds up what is new. So datagrams expire, as with the timed reliability of RFC 3758.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use base::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The age beyond which datagrams are dropped, as a configuration says it: `"auto"`, `"none"` or a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatagramAge {
    /// As long as the queue takes to drain, and then two and a half round trips.
    Auto,
    /// They are carried however old they are.
    #[default]
    None,
    /// This age.
    Fixed(Duration),
}

impl DatagramAge {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The age on a link with this round trip, behind a queue that takes so long to drain if that is known.
    #[must_use]
    pub fn limit(self, round_trip: Duration, queue: Option<Duration>) -> Option<Duration> {
        match self {
            // What is lost shows after a round trip. Twice that is enough for a repair and one of the repair, where a reporting receiver or a
            // longer frame takes a little more.
            Self::Auto => {
                let repairs = round_trip.saturating_mul(5) / 2;
                Some(queue.unwrap_or(round_trip).saturating_add(repairs).max(LEAST))
            }
            Self::None => None,
            Self::Fixed(age) => Some(age),
        }
    }
}

/// Below this nobody notices. Ours: five packets of a call.
const LEAST: Duration = Duration::from_millis(100);

impl fmt::Display for DatagramAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Fixed(age) => age.fmt(f),
        }
    }
}

impl FromStr for DatagramAge {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            age => match age.parse() {
                Ok(Duration::ZERO) => {
                    Err("an age of zero; allowed are times above 0, \"auto\" or \"none\"".to_owned())
                }
                Ok(age) => Ok(Self::Fixed(age)),
                Err(error) => Err(format!("{error}, \"auto\" or \"none\"")),
            },
        }
    }
}

impl Serialize for DatagramAge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DatagramAge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'_, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for DatagramAge {
    fn schema_name() -> Cow<'static, str> {
        "DatagramAge".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let age = generator.subschema_for::<Duration>();
        json_schema!({
            "description": "Age beyond which datagrams are dropped: \"auto\", what the queue takes to drain and two and a half round trips, \"none\", or a time.",
            "anyOf": [{ "type": "string", "enum": ["auto", "none"] }, age],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_age_is_read_and_written() {
        for text in ["auto", "none", "500 ms"] {
            assert_eq!(text.parse::<DatagramAge>().unwrap().to_string(), text);
        }
        for (text, complaint) in [("0 s", "above 0"), ("never", "\"auto\" or \"none\""), ("500", "\"none\"")]
        {
            assert!(text.parse::<DatagramAge>().unwrap_err().contains(complaint), "{text}");
        }
    }

    #[test]
    fn the_age_follows_the_round_trip_unless_told() {
        let auto = |round_trip, queue: Option<u64>| DatagramAge::Auto.limit(ms(round_trip), queue.map(ms));
        assert_eq!(auto(600, Some(600)), Some(ms(2100)));
        assert_eq!(auto(600, None), Some(ms(2100)));
        assert_eq!(auto(600, Some(3000)), Some(ms(4500)));
        assert_eq!(auto(2, Some(1)), Some(ms(100)));
        assert_eq!(DatagramAge::None.limit(ms(600), None), None);
        assert_eq!(DatagramAge::Fixed(ms(7)).limit(ms(600), None), Some(ms(7)));
    }
}
