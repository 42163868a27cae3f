//! The link-layer protocol as a scenario or a configuration writes it: its name, or its name and parameters.
//!
//! ```toml
//! protocol = "plain"
//! protocol = { plain = { buffer = 10 } }
//! protocol = "cotmll"
//! protocol = { cotmll = { window = 4096, ordered = "flow" } }
//! protocol = "cotmll-thesis"
//! protocol = { cotmll-thesis = { window = 512, ordered = true, frame-payload = 487 } }
//! protocol = "slacp"
//! protocol = { slacp = { max-retransmissions = 1, fec-ratio = 1.0, fec-block = 8 } }
//! protocol = "harq"
//! protocol = "coded"
//! protocol = { coded = { ordered = "flow", window = 4096 } }
//! protocol = { harq = { fragments = 10, data = 9, transmissions = 4, combine = false } }
//! ```
//!
//! `cotmll` is COTMLL in the wide format, `cotmll-thesis` in that of Faulkner's thesis.

use core::fmt::Write as _;
use std::borrow::Cow;

use base::config::choice;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use crate::capabilities::Capabilities;
use crate::coded::{self, Coded};
use crate::cotmll::{self, Cotmll, Wide, wide};
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
    /// Selective-repeat ARQ: COTMLL in its wide format.
    Cotmll(wide::Config),
    /// Selective-repeat ARQ that never stops sending: COTMLL as in Faulkner's thesis.
    CotmllThesis(cotmll::Config),
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
            Self::Cotmll(config) => Box::new(Wide::new(*config, line)),
            Self::CotmllThesis(config) => Box::new(Cotmll::new(*config, line)),
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
            Self::Cotmll(_) => "cotmll",
            Self::CotmllThesis(_) => "cotmll-thesis",
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
            Self::CotmllThesis(config) => {
                let default = cotmll::Config::default();
                say("window", config.window.get(), default.window.get());
                say("ordered", config.ordered.into(), default.ordered.into());
            }
            // How many fragments make a block whole; how many there are, and how often, is the sender's own.
            Self::Harq(config) => say("data", config.data.get(), harq::Config::default().data.get()),
            // The sender's window and frames are its own, and so is the receiver's order. To earlier versions `cotmll` alone was the
            // thesis's format.
            Self::Cotmll(_) => agreement.push_str(" sequence=wide"),
        }
        agreement
    }

    /// What it does and needs: the same as its endpoints say.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        match self {
            Self::Plain(_) => plain::CAPABILITIES,
            Self::Cotmll(config) => config.capabilities(),
            Self::CotmllThesis(config) => config.capabilities(),
            Self::Slacp(config) => config.capabilities(),
            Self::Coded(config) => config.capabilities(),
            Self::Harq(config) => config.capabilities(),
        }
    }

    /// Bits that the layer below adds to each frame on a serial link: boundaries and integrity, the same for every
    /// protocol so that none has an advantage.
    pub const FRAMING_BITS: u32 = efl::HEADER_BITS;
}

impl Protocol {
    /// What they are called.
    pub const NAMES: [&str; 6] = ["coded", "cotmll", "slacp", "plain", "harq", "cotmll-thesis"];
}

impl Default for Protocol {
    fn default() -> Self {
        Self::Plain(plain::Config::default())
    }
}

/// A protocol's name and parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Table {
    /// One packet per frame, without loss recovery.
    Plain(plain::Config),
    /// Selective-repeat ARQ: COTMLL in its wide format.
    Cotmll(wide::Config),
    /// COTMLL as in Faulkner's thesis, to reproduce it.
    CotmllThesis(cotmll::Config),
    /// Few retransmissions, with redundancy; packets that are still lost are dropped.
    Slacp(slacp::Config),
    /// Selective repeat that sends repairs computed from several frames.
    Coded(coded::Config),
    /// Packets in coded fragments, which are retransmitted as a whole or not at all.
    Harq(harq::Config),
}

impl From<Table> for Protocol {
    fn from(table: Table) -> Self {
        match table {
            Table::Plain(config) => Self::Plain(config),
            Table::Cotmll(config) => Self::Cotmll(config),
            Table::CotmllThesis(config) => Self::CotmllThesis(config),
            Table::Slacp(config) => Self::Slacp(config),
            Table::Coded(config) => Self::Coded(config),
            Table::Harq(config) => Self::Harq(config),
        }
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        choice::read::<Table, D>(deserializer, "a protocol").map(Into::into)
    }
}

impl JsonSchema for Protocol {
    fn schema_name() -> Cow<'static, str> {
        "Protocol".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        choice::schema(
            Table::json_schema(generator),
            "A link-layer protocol: its name, or a table of its name and parameters.",
        )
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
        let written_out = "{ cotmll-thesis = { window = 512, ordered = true, frame-payload = 487 } }";
        assert_eq!(read("\"cotmll-thesis\"").unwrap(), read(written_out).unwrap());
        assert_eq!(read("\"cotmll\"").unwrap(), read("{ cotmll = { ordered = \"flow\" } }").unwrap());
    }

    #[test]
    fn each_protocol_is_read_by_its_name() {
        for name in Protocol::NAMES {
            assert_eq!(read(&format!("\"{name}\"")).unwrap().name(), name);
        }
    }

    #[test]
    fn a_protocol_writes_back() {
        for text in [
            "\"plain\"",
            "{ plain = { buffer = 3 } }",
            "\"cotmll\"",
            "\"cotmll-thesis\"",
            "{ cotmll-thesis = { window = 66, ordered = false } }",
            "{ cotmll-thesis = { persistence = \"2 s\", attempts = 3, flag-against = \"first\", acknowledge = \"start\", block = \"latest\" } }",
            "{ cotmll = { window = 131072, ordered = true, frame-payload = 700 } }",
            "{ cotmll = { ordered = false } }",
            "\"slacp\"",
            "{ slacp = { max-retransmissions = 0, fec-ratio = 0.25, fec-block = 4, fec-timer = \"20 ms\" } }",
            "\"coded\"",
            "{ coded = { ordered = false, window = 100, frame-payload = 700 } }",
            "\"harq\"",
            "{ harq = { fragments = 20, data = 16, transmissions = 1 } }",
            "{ harq = { transmissions = 3, combine = true, ordered = false, window = 100 } }",
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
            ("{ cotmll = { window = 9, ordered = false } }", "cotmll sequence=wide"),
            ("{ plain = { buffer = 3 } }", "plain"),
            ("{ slacp = { max-retransmissions = 3, ordered = false } }", "slacp"),
            ("{ coded = { window = 7, ordered = true } }", "coded"),
            (
                "{ harq = { fragments = 12, transmissions = 1, combine = true, ordered = false, window = 9 } }",
                "harq",
            ),
            ("{ harq = { data = 8 } }", "harq data=8"),
            (
                "{ cotmll-thesis = { frame-payload = 1400, block = \"latest\", attempts = 3 } }",
                "cotmll-thesis",
            ),
            ("{ cotmll-thesis = { window = 66, ordered = false } }", "cotmll-thesis window=66 ordered=0"),
        ] {
            assert_eq!(read(text).unwrap().agreement(), agreement);
        }
    }

    #[test]
    fn keys_of_earlier_versions_say_what_to_write_now() {
        for sequence in ["wide", "thesis"] {
            let error =
                read(&format!("{{ cotmll = {{ window = 9, sequence = \"{sequence}\" }} }}")).unwrap_err();
            assert!(error.starts_with("s.toml:2: protocol = "), "{error}");
            let said = "`sequence` is no longer a key: `cotmll` is the wide format without it; write `cotmll-thesis` for that of the thesis";
            assert!(error.ends_with(said), "{error}");
        }
        for key in [
            "persistence = \"2 s\"",
            "attempts = 3",
            "flag-against = \"first\"",
            "acknowledge = \"start\"",
            "block = \"latest\"",
            "gap-opens-with = \"cumulative\"",
        ] {
            let name = key.split(' ').next().unwrap();
            let error = read(&format!("{{ cotmll = {{ {key} }} }}")).unwrap_err();
            let said = format!(
                "`{name}` is a key of `cotmll-thesis`; `cotmll` has `window`, `ordered` and `frame-payload`"
            );
            assert!(error.ends_with(&said), "{error}");
            assert!(read(&format!("{{ cotmll-thesis = {{ {key} }} }}")).is_ok());
        }
    }

    #[test]
    fn a_wrong_value_names_its_line_and_what_is_allowed() {
        for (text, complaint) in [
            ("\"plan\"", "unknown value `plan`, expected"),
            ("{ plan = {} }", "unknown value `plan`, expected"),
            ("{ plain = { buffer = 0 } }", "0 is out of range; allowed are 1 to 65536"),
            ("{ plain = { bufer = 1 } }", "unknown key `bufer`, expected `buffer`"),
            (
                "{ cotmll-thesis = { persistence = \"0 s\" } }",
                "0 s is out of range; allowed is any longer time",
            ),
            (
                "{ cotmll-thesis = { persistence = 2 } }",
                "invalid type: integer `2`, expected a time with its unit",
            ),
            ("{ cotmll-thesis = { attempts = 0 } }", "0 is out of range; allowed are 1 to 1000000"),
            ("{ cotmll-thesis = { flag-against = \"last\" } }", "expected `latest` or `first`"),
            ("{ cotmll-thesis = { acknowledge = \"end\" } }", "expected `trailer` or `start`"),
            ("{ cotmll-thesis = { block = \"last\" } }", "expected `first` or `latest`"),
            ("{ cotmll-thesis = { window = 513 } }", "513 is out of range; allowed are 1 to 512"),
            ("{ cotmll = { window = 131073 } }", "131073 is out of range; allowed are 1 to 131072"),
            (
                "{ cotmll = { windw = 1 } }",
                "unknown key `windw`, expected one of `window`, `ordered`, `frame-payload`",
            ),
            ("{ cotmll = 3 }", "expected a table"),
            ("{ cotmll-thesis = { ordered = \"flow\" } }", "expected true or false"),
            ("{ cotmll = { ordered = \"link\" } }", "expected true, false or \"flow\""),
            ("{ slacp = { max-retransmissions = 101 } }", "101 is out of range; allowed are 0 to 100"),
            ("{ coded = { window = 0 } }", "0 is out of range; allowed are 1 to 131072"),
            ("{ coded = { windw = 1 } }", "unknown key `windw`, expected"),
            ("{ slacp = { fec-ratio = 10.5 } }", "10.5 is out of range; allowed are 0 to 10"),
            ("{ harq = { fragments = 65 } }", "65 is out of range; allowed are 1 to 64"),
            ("{ harq = { data = 0 } }", "0 is out of range; allowed are 1 to 64"),
            ("{ harq = { data = 11 } }", "data = 11 of fragments = 10; allowed are values up to fragments"),
            ("{ harq = { transmissions = 0 } }", "0 is out of range; allowed are 1 to 16"),
            ("{ harq = { transmissions = 17 } }", "17 is out of range; allowed are 1 to 16"),
            ("{ harq = { window = 131073 } }", "131073 is out of range; allowed are 1 to 131072"),
            ("{ harq = { sending = 3 } }", "unknown key `sending`, expected"),
            ("{ harq = { ordered = \"flow\" } }", "expected true or false"),
            (
                "{ harq = { transmissions = 7, combine = true } }",
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
