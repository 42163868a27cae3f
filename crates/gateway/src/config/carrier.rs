//! How frames reach peers: the `[carrier]` table.

use core::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use base::Rate;
use link::efl;
use link::limit::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use tunnel::config::{CarrierLimits, Link, LinkRate, Mtu};

use super::InterfaceName;
use crate::carrier::udp::is_here;

/// How frames reach peers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Carriers")]
pub enum Carrier {
    /// In UDP datagrams.
    Udp(Udp),
    /// On a serial line.
    Serial(Serial),
}

/// The tables that `[carrier]` may hold.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
struct Carriers {
    /// In UDP datagrams.
    udp: Option<Udp>,
    /// On a serial line.
    serial: Option<Serial>,
}

impl TryFrom<Carriers> for Carrier {
    type Error = &'static str;
    fn try_from(tables: Carriers) -> Result<Self, &'static str> {
        match tables {
            Carriers { udp: Some(udp), serial: None } => Ok(Self::Udp(udp)),
            Carriers { udp: None, serial: Some(serial) } => Ok(Self::Serial(serial)),
            _ => Err("not exactly one carrier; allowed are [carrier.udp] or [carrier.serial]"),
        }
    }
}

impl Carrier {
    /// Gives a link what follows from the carrier: on a serial line, the line's rate.
    pub(super) fn complete(&self, link: &mut Link) {
        if let Self::Serial(serial) = self
            && link.rate.fixed().is_none()
        {
            link.rate = LinkRate::Fixed(serial.line_rate());
        }
    }

    /// Where it listens, if no device has that address now.
    #[must_use]
    pub fn absent_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(udp) => Some(udp.listen).filter(|listen| !is_here(listen.ip())),
            Self::Serial(_) => None,
        }
    }

    /// Where it listens, if the port is known from the start.
    #[must_use]
    pub fn listen(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(udp) => Some(udp.listen).filter(|listen| listen.port() > 0),
            Self::Serial(_) => None,
        }
    }

    /// Whether both cannot be open at once.
    pub(super) fn clashes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp(one), Self::Udp(other)) => {
                let covers = |one: IpAddr, other: IpAddr| one.is_unspecified() || one == other;
                let (mine, theirs) = (one.listen, other.listen);
                let devices_differ =
                    one.interface.is_some() && other.interface.is_some() && one.interface != other.interface;
                !devices_differ
                    && mine.port() == theirs.port()
                    && (covers(mine.ip(), theirs.ip()) || covers(theirs.ip(), mine.ip()))
            }
            (Self::Serial(one), Self::Serial(other)) => one.device == other.device,
            _ => false,
        }
    }

    /// What it takes.
    #[must_use]
    pub const fn limits(&self) -> CarrierLimits {
        match self {
            Self::Udp(udp) => CarrierLimits::udp(udp.listen.is_ipv4(), udp.mtu.0 as usize),
            Self::Serial(_) => CarrierLimits {
                header_len: efl::HEADER_BITS as usize / 8,
                packet_limit: efl::MAX_FRAME,
                shortest_limit: None,
            },
        }
    }
}

/// The address, or the device.
impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(Udp { listen, interface: Some(interface), .. }) => {
                write!(f, "{listen} on {}", interface.as_str())
            }
            Self::Udp(udp) => udp.listen.fmt(f),
            Self::Serial(serial) => serial.device.display().fmt(f),
        }
    }
}

/// A UDP carrier.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Udp {
    /// Local address and port to listen on.
    #[serde(deserialize_with = "address_with_port")]
    #[schemars(extend("pattern" = SOCKET, "examples" = ["192.0.2.1:51900"]))]
    pub listen: SocketAddr,
    /// Largest IP packet that a path to a peer carries, in bytes, 576 to 65535.
    #[serde(default)]
    pub mtu: Mtu<1500>,
    /// Network interface that datagrams leave and come over, whatever routes say. It may come and go. Default: what routes say.
    #[serde(default)]
    pub interface: Option<InterfaceName>,
}

pub(super) fn address_with_port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        let with_port = match text.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, 51_900).to_string(),
            Err(_) => "0.0.0.0:51900\" or \"[::]:51900".to_owned(),
        };
        de::Error::custom(format!(
            "\"{text}\" is not an IP address with a port; allowed is one, such as \"{with_port}\""
        ))
    })
}

/// An address and a port; which addresses there are is left to the parser.
pub(super) const SOCKET: &str = r"^([0-9.]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]{1,5}$";

/// A serial line with 8 data bits, no parity and one stop bit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Serial {
    /// Path of the serial device, or of a pseudo-terminal.
    pub device: PathBuf,
    /// Speed in baud. A byte takes ten bits on the line, with start and stop bit.
    pub baud: Limit<50, 4_000_000, 115_200>,
    /// Key with which the EFL framing encrypts frames, below the session. Set it at both ends or at neither; it does not
    /// replace the identities above it.
    #[serde(default)]
    pub efl_key: Option<efl::Key>,
}

impl Serial {
    /// Bits of frames that the line carries a second.
    #[must_use]
    pub fn line_rate(&self) -> Rate {
        Rate::from_bps(u64::from(self.baud.get()) * 8 / 10)
    }
}
