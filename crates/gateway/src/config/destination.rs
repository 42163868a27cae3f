//! Where the peer is, as an address or as a name.

use core::fmt;
use core::str::FromStr;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

/// Where the peer is: an IP address or a host name, with a port.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("pattern" = r"^[^\s/]+:[0-9]{1,5}$", "examples" = ["hub.example.org:51900"]))]
pub enum Destination {
    /// At this address.
    Address(SocketAddr),
    /// At the address that the system's resolver gives for the name.
    Name(HostName),
}

/// A host's name and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    name: String,
    port: u16,
}

/// RFC 1035, 2.3.4: bytes of a name as text.
const NAME_LIMIT: usize = 253;
/// RFC 1035, 2.3.4: bytes between two dots.
const LABEL_LIMIT: usize = 63;

impl Destination {
    /// The address, if it is one.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(name) => name.port(),
        }
    }
}

impl HostName {
    /// The name, without the port.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port, 1 to 65535.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What `text` says, if it is the name of a host and a port.
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = text.rsplit_once(':')?;
        let has_digits_only = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| has_digits_only && *port > 0)?;
        is_host_name(name).then(|| Self { name: name.to_owned(), port })
    }
}

/// Letters, digits, hyphens and underscores in labels with dots between them; one dot more may say that the name is complete.
fn is_host_name(name: &str) -> bool {
    let labels = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=LABEL_LIMIT).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // A resolver takes 10.1 and 0x7f.1 for addresses, and 192.0.2.300 is a wrong one.
    let last = labels.rsplit('.').next().unwrap_or_default();
    let ends_in_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    labels.len() <= NAME_LIMIT && labels.split('.').all(is_label) && !ends_in_number
}

impl FromStr for Destination {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.parse().map(Self::Address).ok();
        address.or_else(|| HostName::parse(text).map(Self::Name)).ok_or_else(|| {
            format!(
                "\"{text}\" is not an address of a peer; allowed is an IP address or a host name, with a port, \
                 such as 192.0.2.1:7000 or hub.example.org:7000"
            )
        })
    }
}

impl<'de> Deserialize<'de> for Destination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// As it is written in a configuration: `hub.example.org:7000`.
impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_one() {
        for text in ["192.0.2.1:7000", "[2001:db8::1]:7000", "[fe80::1%2]:7000", "192.0.2.1:0"] {
            let destination: Destination = text.parse().unwrap();
            assert_eq!(destination.address(), Some(text.parse().unwrap()), "{text}");
            assert_eq!(destination.to_string(), text);
        }
    }

    #[test]
    fn a_name_has_a_port() {
        let labels = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
        for (name, port) in [
            ("hub.example.org", 7000),
            ("hub.example.org.", 65_535),
            ("localhost", 1),
            ("2.hub-1.example_x.org", 7000),
            ("xn--bcher-kva.example", 7000),
            ("1.2.3.4a", 7000),
            (&labels, 7000),
        ] {
            let text = format!("{name}:{port}");
            let Destination::Name(host) = text.parse().unwrap() else { panic!("{text} is a name") };
            assert_eq!((host.name(), host.port(), host.to_string()), (name, port, text));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let label = format!("{}.org:7000", "a".repeat(64));
        let name =
            format!("{}:7000", ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(62)].join("."));
        for text in [
            "",
            ":7000",
            ".:7000",
            "hub",
            "hub.example.org",
            "hub:",
            "hub:0",
            "hub:65536",
            "hub:+7000",
            "hub:7000 ",
            " hub:7000",
            "hub..org:7000",
            ".hub:7000",
            "hub..:7000",
            "-hub:7000",
            "hub-:7000",
            "hub/x:7000",
            "http://hub:7000",
            "büro.example:7000",
            "hub\0:7000",
            "2001:db8::1:7000",
            "[hub]:7000",
            "[2001:db8::1]",
            "[2001:db8::g]:7000",
            "192.0.2.300:7000",
            "192.0.2:7000",
            "0x7f.0x1:7000",
            "7:7000",
            &label,
            &name,
        ] {
            let error = text.parse::<Destination>().unwrap_err();
            assert!(error.contains("such as 192.0.2.1:7000 or hub.example.org:7000"), "{text}: {error}");
        }
    }
}
