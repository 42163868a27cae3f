//! How frames reach the peer: the `[carrier]` table.

use core::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use base::Rate;
use link::efl;
use link::limit::Limit;
use schemars::JsonSchema;
use serde::Deserialize;

use tunnel::config::{CarrierLimits, Mtu};
use tunnel::path::Address;
use tunnel::session::Peer;

use super::{Destination, HostName};

/// How frames reach the peer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
    /// Where the peer is, for who begins handshakes. On a serial line both sides do. The address of a name is not known yet.
    #[must_use]
    pub fn peer(&self) -> Peer {
        match self {
            Self::Udp(udp) => {
                let address = udp.peer.as_ref().and_then(Destination::address);
                Peer { address: address.map(Address::Udp), pinned: udp.pin_peer }
            }
            Self::Serial(_) => Peer { address: Some(Address::Serial), pinned: true },
        }
    }

    /// The peer's name, if it is known by one.
    #[must_use]
    pub const fn peer_name(&self) -> Option<&HostName> {
        match self {
            Self::Udp(Udp { peer: Some(Destination::Name(name)), .. }) => Some(name),
            Self::Udp(_) | Self::Serial(_) => None,
        }
    }

    /// Whom this end calls, as configured; `None` waits to be called.
    #[must_use]
    pub fn called(&self) -> Option<String> {
        match self {
            Self::Udp(udp) => udp.peer.as_ref().map(ToString::to_string),
            Self::Serial(_) => Some(Address::Serial.to_string()),
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
            Self::Udp(udp) => udp.listen.fmt(f),
            Self::Serial(serial) => serial.device.display().fmt(f),
        }
    }
}

/// A UDP carrier.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Udp {
    /// Local address and port to listen on.
    #[schemars(extend("pattern" = SOCKET, "examples" = ["192.0.2.1:51900"]))]
    pub listen: SocketAddr,
    /// Address and port of the peer. The end with `peer` set initiates the session; an end without it waits and learns the
    /// peer's address from the handshake.
    #[serde(default)]
    pub peer: Option<Destination>,
    /// Accept the peer at this address only: it cannot move to another one, and other addresses get no answer.
    #[serde(default)]
    pub pin_peer: bool,
    /// Largest IP packet that the path to the peer carries, in bytes, 576 to 65535.
    #[serde(default)]
    pub mtu: Mtu<1500>,
}

/// An address and a port; which addresses there are is left to the parser.
const SOCKET: &str = r"^([0-9.]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]{1,5}$";

/// A serial line with 8 data bits, no parity and one stop bit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Serial {
    /// Path of the serial device, or of a pseudo-terminal.
    pub device: PathBuf,
    /// Speed in baud. A byte takes ten bits on the line, with start and stop bit.
    pub baud: Limit<50, 4_000_000, 115_200>,
    /// Key with which the EFL framing encrypts frames, below the session. Set it at both ends or at neither; it does not
    /// replace `[session]`.
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
