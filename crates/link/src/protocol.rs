//! The link-layer protocol as a scenario or a configuration writes it: its name, or its name and parameters.
//!
//! ```toml
//! protocol = "plain"
//! protocol = { plain = { buffer = 10 } }
//! protocol = "cotmll"
//! protocol = { cotmll = { window = 512, ordered = true, frame-payload = 487 } }
//! ```

use core::fmt::{self, Write as _};

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::capabilities::Capabilities;
use crate::cotmll::{self, Cotmll, Sessions};
use crate::efl;
use crate::endpoint::Endpoint;
use crate::line::LineLimits;
use crate::plain::{self, Plain};

/// A link-layer protocol and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One packet a frame, no recovery.
    Plain(plain::Config),
    /// Selective-repeat ARQ that never stops sending.
    Cotmll(cotmll::Config),
}

impl Protocol {
    /// One end of it for a line, with nothing said yet. Both ends of a link need the same parameters.
    #[must_use]
    pub fn build(&self, line: &LineLimits) -> Box<dyn Endpoint> {
        match self {
            Self::Plain(config) => Box::new(Plain::new(*config, line)),
            Self::Cotmll(config) if config.sessions.get() > 1 => Box::new(Sessions::new(*config, line)),
            Self::Cotmll(config) => Box::new(Cotmll::new(*config, line)),
        }
    }

    /// The protocol's name, as it is written.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plain(_) => "plain",
            Self::Cotmll(_) => "cotmll",
        }
    }

    /// What both ends of a link must have in common, as text: what changes what is on the line. Parameters that have their
    /// defaults are left out, so that ends which know different ones agree where they can.
    #[must_use]
    pub fn agreement(&self) -> String {
        let mut agreement = self.name().to_owned();
        let mut say = |key: &str, value: u32, default: u32| {
            if value != default {
                let _ = write!(agreement, " {key}={value}");
            }
        };
        match self {
            Self::Plain(_) => {}
            Self::Cotmll(config) => {
                let default = cotmll::Config::default();
                say("window", config.window.get(), default.window.get());
                say("ordered", config.ordered.into(), default.ordered.into());
                say("sessions", config.sessions.get(), default.sessions.get());
            }
        }
        agreement
    }

    /// What it does and needs: the same as its endpoints say.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        match self {
            Self::Plain(_) => plain::CAPABILITIES,
            Self::Cotmll(config) => config.capabilities(),
        }
    }

    /// Bits that the layer below adds to each frame on a serial link: boundaries and integrity, the same for every
    /// protocol so that none has an advantage.
    #[must_use]
    pub const fn framing_bits(&self) -> u32 {
        match self {
            Self::Plain(_) | Self::Cotmll(_) => efl::HEADER_BITS,
        }
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self::Plain(plain::Config::default())
    }
}

/// A protocol's name alone.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    Plain,
    Cotmll,
}

/// A protocol's name and parameters.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Table {
    Plain(plain::Config),
    Cotmll(cotmll::Config),
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Protocol;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a protocol's name, or a table of one name and its parameters")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Protocol, E> {
        Name::deserialize(StrDeserializer::new(name)).map(|name| match name {
            Name::Plain => Protocol::Plain(plain::Config::default()),
            Name::Cotmll => Protocol::Cotmll(cotmll::Config::default()),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Protocol, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(|table| match table {
            Table::Plain(config) => Protocol::Plain(config),
            Table::Cotmll(config) => Protocol::Cotmll(config),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Scenario {
        protocol: Protocol,
    }

    fn read(protocol: &str) -> Result<Protocol, String> {
        let text = format!("\nprotocol = {protocol}\n");
        base::config::parse::<Scenario>("s.toml", &text).map(|s| s.protocol).map_err(|e| e.to_string())
    }

    #[test]
    fn a_name_stands_for_its_defaults() {
        assert_eq!(read("\"plain\"").unwrap(), read("{ plain = { buffer = 10 } }").unwrap());
        assert_eq!(read("\"plain\"").unwrap(), Protocol::default());
        let written_out = "{ cotmll = { window = 512, ordered = true, frame-payload = 487 } }";
        assert_eq!(read("\"cotmll\"").unwrap(), read(written_out).unwrap());
    }

    #[test]
    fn a_protocol_writes_back() {
        for text in [
            "\"plain\"",
            "{ plain = { buffer = 3 } }",
            "{ cotmll = { window = 66, ordered = false } }",
            "{ cotmll = { persistence = \"2 s\", attempts = 3, flag-against = \"first\", acknowledge = \"start\", block = \"latest\" } }",
            "{ cotmll = { sessions = 4, session-queue = 20 } }",
        ] {
            let protocol = read(text).unwrap();
            let written = toml::to_string(&Scenario { protocol }).unwrap();
            assert_eq!(base::config::parse::<Scenario>("s.toml", &written).unwrap().protocol, protocol);
        }
    }

    #[test]
    fn ends_need_to_agree_on_what_is_on_the_line_alone() {
        for (text, agreement) in [
            ("\"plain\"", "plain"),
            ("{ plain = { buffer = 3 } }", "plain"),
            ("{ cotmll = { frame-payload = 1400, block = \"latest\", attempts = 3 } }", "cotmll"),
            (
                "{ cotmll = { sessions = 4, window = 66, ordered = false } }",
                "cotmll window=66 ordered=0 sessions=4",
            ),
        ] {
            assert_eq!(read(text).unwrap().agreement(), agreement);
        }
    }

    #[test]
    fn one_session_is_written_as_if_there_were_no_others() {
        let written = toml::to_string(&Scenario { protocol: read("\"cotmll\"").unwrap() }).unwrap();
        assert!(!written.contains("session"), "{written}");
        assert_eq!(read("{ cotmll = { sessions = 1 } }").unwrap(), read("\"cotmll\"").unwrap());
    }

    #[test]
    fn a_wrong_value_names_its_line_and_what_is_allowed() {
        for (text, complaint) in [
            ("\"plan\"", "unknown variant `plan`, expected"),
            ("{ plan = {} }", "unknown variant `plan`, expected"),
            ("{ plain = { buffer = 0 } }", "0 is out of range; allowed are 1 to 65536"),
            ("{ plain = { bufer = 1 } }", "unknown field `bufer`, expected `buffer`"),
            ("{ cotmll = { persistence = \"0 s\" } }", "0 s is out of range; allowed is anything longer"),
            ("{ cotmll = { persistence = 2 } }", "invalid type: integer `2`, expected a string"),
            ("{ cotmll = { attempts = 0 } }", "0 is out of range; allowed are 1 to 1000000"),
            ("{ cotmll = { flag-against = \"last\" } }", "expected `latest` or `first`"),
            ("{ cotmll = { acknowledge = \"end\" } }", "expected `trailer` or `start`"),
            ("{ cotmll = { block = \"last\" } }", "expected `first` or `latest`"),
            ("{ cotmll = { sessions = 0 } }", "0 is out of range; allowed are 1 to 8"),
            ("{ cotmll = { sessions = 9 } }", "9 is out of range; allowed are 1 to 8"),
            ("{ cotmll = { session-queue = 0 } }", "0 is out of range; allowed are 1 to 65536"),
            ("{ cotmll = { window = 513 } }", "513 is out of range; allowed are 1 to 512"),
            ("7", "expected a protocol's name, or a table of one name and its parameters"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("s.toml:2: protocol = "), "{error}");
            assert!(error.contains(complaint), "{error}");
        }
        let table = "[protocol.cotmll]\nwindow = 512\nframe-payload = 0\n";
        let error = base::config::parse::<Scenario>("s.toml", table).unwrap_err().to_string();
        assert_eq!(error, "s.toml:3: frame-payload = 0: 0 is out of range; allowed are 1 to 65000");
    }
}
