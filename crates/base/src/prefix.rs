//! Networks: an address and how much of it they share.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The device's own address.
    pub address: IpAddr,
    /// Bits of the network part.
    pub len: u8,
}

impl Prefix {
    /// All addresses, of IPv4 and of IPv6.
    pub const EVERYTHING: [Self; 2] = [
        Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), len: 0 },
        Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), len: 0 },
    ];

    /// The network's address: all bits behind the prefix are zero.
    #[must_use]
    pub fn masked(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        }
    }

    /// Whether `address` lies in the network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Self { address, ..self }.masked() == self.masked()
    }

    /// Whether any address lies in both networks: then one of them holds the other.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let (wide, narrow) = if self.len <= other.len { (self, other) } else { (other, self) };
        wide.contains(narrow.address)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Prefix {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is not an address with a prefix length, as in \"10.77.0.1/30\" or \"fd77::1/64\""
            )
        };
        let (address, len) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let len: u8 = len.parse().map_err(|_| wrong())?;
        if len > if address.is_ipv4() { 32 } else { 128 } { Err(wrong()) } else { Ok(Self { address, len }) }
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Prefix {
    fn schema_name() -> Cow<'static, str> {
        "Prefix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Which addresses there are is left to the parser.
        json_schema!({
            "description": "An address and the length of its network's prefix.",
            "type": "string",
            "pattern": r"^([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+/([0-9]|[12][0-9]|3[0-2])|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))$",
            "examples": ["10.77.0.1/30", "fd77::1/64"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_the_addresses_that_share_its_first_bits() {
        let holds = |network: &str, address: &str| {
            network.parse::<Prefix>().unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("10.1.0.0/16", "10.1.255.3") && !holds("10.1.0.0/16", "10.2.0.0"));
        assert!(holds("0.0.0.0/0", "192.0.2.1") && !holds("0.0.0.0/0", "::1") && !holds("::/0", "10.0.0.1"));
        assert!(holds("fd00:1::/32", "fd00:1:2::3") && !holds("fd00:1::/32", "fd00:2::"));
        assert!(holds("10.0.0.1/32", "10.0.0.1") && !holds("10.0.0.1/32", "10.0.0.2"));
        assert_eq!("10.0.0.1/8".parse::<Prefix>().unwrap().to_string(), "10.0.0.1/8");
    }

    #[test]
    fn networks_overlap_if_one_holds_the_other() {
        let of = |text: &str| text.parse::<Prefix>().unwrap();
        let overlap = |a: &str, b: &str| {
            let both = of(a).overlaps(of(b));
            assert_eq!(both, of(b).overlaps(of(a)), "{a} {b}");
            both
        };
        assert!(overlap("10.1.0.0/16", "10.1.2.0/24") && overlap("10.1.2.3/16", "10.1.9.9/16"));
        assert!(!overlap("10.1.0.0/16", "10.2.0.0/16") && !overlap("10.1.2.0/24", "10.1.3.0/24"));
        assert!(overlap("fd00::/8", "fd77::1/128") && !overlap("fd00::/9", "fd80::/9"));
        assert!(!overlap("0.0.0.0/0", "::/0"), "of different families");
        for text in ["0.0.0.0/32", "255.255.255.255/1", "::1/128", "ffff::/16"] {
            assert_eq!(
                Prefix::EVERYTHING.into_iter().filter(|all| all.overlaps(of(text))).count(),
                1,
                "{text}"
            );
        }
    }
}
