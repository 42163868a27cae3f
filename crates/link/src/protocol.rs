//! The link-layer protocol as a scenario or a configuration writes it: its name, or its name and parameters.
//!
//! ```toml
//! protocol = "plain"
//! protocol = { plain = { buffer = 10 } }
//! protocol = "cotmll"
//! protocol = { cotmll = { window = 512, ordered = true, frame-payload = 487 } }
//! protocol = { cotmll = { sequence = "wide" } }
//! protocol = "slacp"
//! protocol = { slacp = { max-retransmissions = 1, fec-ratio = 1.0, fec-block = 8 } }
//! protocol = "harq"
//! protocol = "coded"
//! protocol = { coded = { ordered = "flow", window = 4096 } }
//! protocol = { harq = { fragments = 10, data = 9, sendings = 4, combine = false } }
//! ```
//!
//! Where a scenario does not say which format of COTMLL it means, it is the thesis's, which the lab reproduces. A gateway means the
//! wide one ([`of_gateway`]).

use core::fmt::{self, Write as _};
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::capabilities::Capabilities;
use crate::coded::{self, Coded};
use crate::cotmll::{self, Cotmll, Sequence, Sessions, Wide, Written, wide};
use crate::efl;
use crate::endpoint::Endpoint;
use crate::harq::{self, Harq};
use crate::line::LineLimits;
use crate::plain::{self, Plain};
use crate::slacp::{self, Slacp};

/// A link-layer protocol and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// One packet per frame, without loss recovery.
    Plain(plain::Config),
    /// Selective-repeat ARQ that never stops sending.
    Cotmll(cotmll::Config),
    /// The same in a wider format.
    #[serde(rename = "cotmll", serialize_with = "wide_sequence")]
    Wide(wide::Config),
    /// Few retransmissions, with redundancy; packets that are still lost are dropped.
    Slacp(slacp::Config),
    /// Selective repeat that sends repairs computed from several frames.
    Coded(coded::Config),
    /// Packets in coded fragments, which are retransmitted as a whole or not at all: LT-TCP's baselines.
    Harq(harq::Config),
}

impl Protocol {
    /// One end of it for a line, with nothing said yet. Both ends of a link need the same parameters.
    #[must_use]
    pub fn build(&self, line: &LineLimits) -> Box<dyn Endpoint> {
        match self {
            Self::Plain(config) => Box::new(Plain::new(*config, line)),
            Self::Cotmll(config) if config.sessions.get() > 1 => Box::new(Sessions::new(*config, line)),
            Self::Cotmll(config) => Box::new(Cotmll::new(*config, line)),
            Self::Wide(config) => Box::new(Wide::new(*config, line)),
            Self::Slacp(config) => Box::new(Slacp::new(*config, line)),
            Self::Coded(config) => Box::new(Coded::new(*config, line)),
            Self::Harq(config) => Box::new(Harq::new(*config, line)),
        }
    }

    /// The protocol's name, as it is written.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plain(_) => "plain",
            Self::Cotmll(_) | Self::Wide(_) => "cotmll",
            Self::Slacp(_) => "slacp",
            Self::Coded(_) => "coded",
            Self::Harq(_) => "harq",
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
            // Each end decides about what it sends.
            Self::Plain(_) | Self::Slacp(_) | Self::Coded(_) => {}
            Self::Cotmll(config) => {
                let default = cotmll::Config::default();
                say("window", config.window.get(), default.window.get());
                say("ordered", config.ordered.into(), default.ordered.into());
                say("sessions", config.sessions.get(), default.sessions.get());
            }
            // How many fragments make a block whole; how many there are, and how often, is the sender's own.
            Self::Harq(config) => say("data", config.data.get(), harq::Config::default().data.get()),
            // The sender's window and frames are its own, and so is the receiver's order.
            Self::Wide(_) => agreement.push_str(" sequence=wide"),
        }
        agreement
    }

    /// What it does and needs: the same as its endpoints say.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        match self {
            Self::Plain(_) => plain::CAPABILITIES,
            Self::Cotmll(config) => config.capabilities(),
            Self::Wide(config) => config.capabilities(),
            Self::Slacp(config) => config.capabilities(),
            Self::Coded(config) => config.capabilities(),
            Self::Harq(config) => config.capabilities(),
        }
    }

    /// Bits that the layer below adds to each frame on a serial link: boundaries and integrity, the same for every
    /// protocol so that none has an advantage.
    #[must_use]
    pub const fn framing_bits(&self) -> u32 {
        match self {
            Self::Plain(_)
            | Self::Cotmll(_)
            | Self::Wide(_)
            | Self::Slacp(_)
            | Self::Coded(_)
            | Self::Harq(_) => efl::HEADER_BITS,
        }
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self::Plain(plain::Config::default())
    }
}

/// What a gateway means by the same words: COTMLL is wide unless told. For `#[serde(with = "…")]`.
pub mod of_gateway {
    use super::{
        Deserializer, NameOrTable, Protocol, Schema, SchemaGenerator, Sequence, Serialize, Serializer,
        cotmll, with_sequence,
    };

    /// What may be written, for `#[schemars(schema_with = "…")]`.
    #[must_use]
    pub fn schema(generator: &mut SchemaGenerator) -> Schema {
        super::schema(generator, Sequence::Wide)
    }

    /// Reads a protocol as a gateway means it.
    ///
    /// # Errors
    /// What the deserializer says of a wrong name, key or value.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
        deserializer.deserialize_any(NameOrTable { sequence: Sequence::Wide })
    }

    /// Writes a protocol so that it reads back here.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(protocol: &Protocol, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case")]
        enum Thesis<'a> {
            #[serde(serialize_with = "thesis")]
            Cotmll(&'a cotmll::Config),
        }
        fn thesis<S: Serializer>(config: &&cotmll::Config, serializer: S) -> Result<S::Ok, S::Error> {
            with_sequence(Sequence::Thesis, *config, serializer)
        }
        match protocol {
            Protocol::Cotmll(config) => Thesis::Cotmll(config).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

/// Writes the format's name in front of its parameters.
fn with_sequence<S: Serializer>(
    sequence: Sequence,
    config: impl Serialize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Named<C> {
        sequence: Sequence,
        #[serde(flatten)]
        config: C,
    }
    Named { sequence, config }.serialize(serializer)
}

fn wide_sequence<S: Serializer>(config: &wide::Config, serializer: S) -> Result<S::Ok, S::Error> {
    with_sequence(Sequence::Wide, config, serializer)
}

/// A protocol's name alone.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ProtocolName")]
#[serde(rename_all = "kebab-case")]
enum Name {
    /// One packet per frame, without loss recovery.
    Plain,
    /// Selective-repeat ARQ that never stops sending.
    Cotmll,
    /// Few retransmissions, with redundancy; packets that are still lost are dropped.
    Slacp,
    /// Selective repeat that sends repairs computed from several frames.
    Coded,
    /// Packets in coded fragments, which are retransmitted as a whole or not at all.
    Harq,
}

/// A protocol's name and parameters.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Table {
    Plain(plain::Config),
    Cotmll(Written),
    Slacp(slacp::Config),
    Coded(coded::Config),
    Harq(harq::Config),
}

impl Table {
    fn resolve<E: de::Error>(self, sequence: Sequence) -> Result<Protocol, E> {
        match self {
            Self::Plain(config) => Ok(Protocol::Plain(config)),
            Self::Slacp(config) => Ok(Protocol::Slacp(config)),
            Self::Coded(config) => Ok(Protocol::Coded(config)),
            Self::Harq(config) => Ok(Protocol::Harq(config)),
            Self::Cotmll(written) => match written.sequence(sequence) {
                Sequence::Thesis => written.thesis().map(Protocol::Cotmll),
                Sequence::Wide => written.wide().map(Protocol::Wide),
            }
            .map_err(E::custom),
        }
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable { sequence: Sequence::Thesis })
    }
}

/// `sequence` is the format of COTMLL where none is named.
struct NameOrTable {
    sequence: Sequence,
}

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Protocol;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a protocol's name, or a table of one name and its parameters")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Protocol, E> {
        let table = match Name::deserialize(StrDeserializer::new(name))? {
            Name::Plain => Table::Plain(plain::Config::default()),
            Name::Cotmll => Table::Cotmll(Written::default()),
            Name::Slacp => Table::Slacp(slacp::Config::default()),
            Name::Coded => Table::Coded(coded::Config::default()),
            Name::Harq => Table::Harq(harq::Config::default()),
        };
        table.resolve(self.sequence)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Protocol, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(map))?.resolve(self.sequence)
    }
}

impl JsonSchema for Protocol {
    fn schema_name() -> Cow<'static, str> {
        "Protocol".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema(generator, Sequence::Thesis)
    }
}

/// What [`NameOrTable`] reads.
fn schema(generator: &mut SchemaGenerator, otherwise: Sequence) -> Schema {
    let tables = [
        ("plain", generator.subschema_for::<plain::Config>()),
        ("cotmll", cotmll::schema(generator, otherwise)),
        ("slacp", generator.subschema_for::<slacp::Config>()),
        ("coded", generator.subschema_for::<coded::Config>()),
        ("harq", generator.subschema_for::<harq::Config>()),
    ];
    let table = |(name, parameters): (&str, Schema)| json_schema!({ "type": "object", "properties": { name: parameters }, "required": [name] });
    let name = generator.subschema_for::<Name>();
    json_schema!({
        "description": "A link-layer protocol: its name, or a table of its name and parameters.",
        "oneOf": core::iter::once(name).chain(tables.map(table)).collect::<Vec<_>>(),
    })
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
            "{ cotmll = { sequence = \"wide\" } }",
            "{ cotmll = { sequence = \"wide\", window = 131072, ordered = true, frame-payload = 700 } }",
            "{ cotmll = { sequence = \"wide\", ordered = false } }",
            "\"slacp\"",
            "{ slacp = { max-retransmissions = 0, fec-ratio = 0.25, fec-block = 4, fec-timer = \"20 ms\" } }",
            "\"coded\"",
            "{ coded = { ordered = false, window = 100, frame-payload = 700 } }",
            "\"harq\"",
            "{ harq = { fragments = 20, data = 16, sendings = 1 } }",
            "{ harq = { sendings = 3, combine = true, ordered = false, window = 100 } }",
            "{ slacp = { ack-timer = \"1 s\", ordered = true, window = 100, frame-payload = 700 } }",
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
            ("{ cotmll = { sequence = \"wide\", window = 9, ordered = false } }", "cotmll sequence=wide"),
            ("{ plain = { buffer = 3 } }", "plain"),
            ("{ slacp = { max-retransmissions = 3, ordered = false } }", "slacp"),
            ("{ coded = { window = 7, ordered = true } }", "coded"),
            (
                "{ harq = { fragments = 12, sendings = 1, combine = true, ordered = false, window = 9 } }",
                "harq",
            ),
            ("{ harq = { data = 8 } }", "harq data=8"),
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
    fn cotmll_is_wide_at_a_gateway_unless_told() {
        #[derive(Debug, Deserialize, Serialize)]
        struct Link {
            #[serde(with = "of_gateway")]
            protocol: Protocol,
        }
        let read = |text: &str| {
            let text = format!("protocol = {text}");
            base::config::parse::<Link>("g.toml", &text).map(|link| link.protocol).map_err(|e| e.to_string())
        };
        let wide = Protocol::Wide(wide::Config::default());
        assert_eq!(read("\"cotmll\""), Ok(wide));
        assert_eq!(read("{ cotmll = { ordered = \"flow\" } }"), Ok(wide));
        let thesis = Protocol::Cotmll(cotmll::Config::default());
        assert_eq!(read("{ cotmll = { sequence = \"thesis\" } }"), Ok(thesis));
        assert_eq!(read("\"plain\""), Ok(Protocol::default()));
        for protocol in [wide, thesis, Protocol::default()] {
            let text = toml::to_string(&Link { protocol }).unwrap();
            assert_eq!(base::config::parse::<Link>("g.toml", &text).unwrap().protocol, protocol, "{text}");
        }
        assert!(read("{ cotmll = { sessions = 4 } }").unwrap_err().contains("sequence = \"thesis\""));
    }

    #[test]
    fn a_wrong_value_names_its_line_and_what_is_allowed() {
        for (text, complaint) in [
            ("\"plan\"", "unknown value `plan`, expected"),
            ("{ plan = {} }", "unknown value `plan`, expected"),
            ("{ plain = { buffer = 0 } }", "0 is out of range; allowed are 1 to 65536"),
            ("{ plain = { bufer = 1 } }", "unknown key `bufer`, expected `buffer`"),
            ("{ cotmll = { persistence = \"0 s\" } }", "0 s is out of range; allowed is any longer time"),
            ("{ cotmll = { persistence = 2 } }", "invalid type: integer `2`, expected a time with its unit"),
            ("{ cotmll = { attempts = 0 } }", "0 is out of range; allowed are 1 to 1000000"),
            ("{ cotmll = { flag-against = \"last\" } }", "expected `latest` or `first`"),
            ("{ cotmll = { acknowledge = \"end\" } }", "expected `trailer` or `start`"),
            ("{ cotmll = { block = \"last\" } }", "expected `first` or `latest`"),
            ("{ cotmll = { sessions = 0 } }", "0 is out of range; allowed are 1 to 8"),
            ("{ cotmll = { sessions = 9 } }", "9 is out of range; allowed are 1 to 8"),
            ("{ cotmll = { session-queue = 0 } }", "0 is out of range; allowed are 1 to 65536"),
            ("{ cotmll = { window = 513 } }", "513 is out of range; allowed are 1 to 512"),
            ("{ cotmll = { window = 131073 } }", "131073 is out of range; allowed are 1 to 131072"),
            ("{ cotmll = { sequence = \"broad\" } }", "expected `thesis` or `wide`"),
            ("{ cotmll = { ordered = \"flow\" } }", "with \"thesis\", allowed are true and false"),
            ("{ cotmll = { ordered = \"link\" } }", "expected true, false or \"flow\""),
            (
                "{ cotmll = { sequence = \"wide\", block = \"latest\" } }",
                "block needs sequence = \"thesis\"; with \"wide\", allowed are window, ordered and frame-payload",
            ),
            ("{ slacp = { max-retransmissions = 101 } }", "101 is out of range; allowed are 0 to 100"),
            ("{ coded = { window = 0 } }", "0 is out of range; allowed are 1 to 131072"),
            ("{ coded = { windw = 1 } }", "unknown key `windw`, expected"),
            ("{ slacp = { fec-ratio = 10.5 } }", "10.5 is out of range; allowed are 0 to 10"),
            ("{ harq = { fragments = 65 } }", "65 is out of range; allowed are 1 to 64"),
            ("{ harq = { data = 0 } }", "0 is out of range; allowed are 1 to 64"),
            ("{ harq = { data = 11 } }", "data = 11 of fragments = 10; allowed are values up to fragments"),
            ("{ harq = { sendings = 0 } }", "0 is out of range; allowed are 1 to 16"),
            ("{ harq = { sendings = 17 } }", "17 is out of range; allowed are 1 to 16"),
            ("{ harq = { window = 131073 } }", "131073 is out of range; allowed are 1 to 131072"),
            ("{ harq = { sending = 3 } }", "unknown key `sending`, expected"),
            ("{ harq = { ordered = \"flow\" } }", "expected true or false"),
            (
                "{ harq = { sendings = 7, combine = true } }",
                "combine with 70 fragments in all transmissions of a block; allowed are up to 64",
            ),
            ("{ slacp = { fec-block = 0 } }", "0 is out of range; allowed are 1 to 64"),
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
