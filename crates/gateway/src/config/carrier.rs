//! How frames reach the peer: the `[carrier]` table.

use core::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use base::Rate;
use link::efl;
use link::limit::Limit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Destination, HostName, Mtu};
use crate::carrier::Address;
use crate::session::{OVERHEAD, Peer};

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

    /// Bytes that the carrier adds to each datagram.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.header_len(),
            Self::Serial(_) => efl::HEADER_BITS as usize / 8,
        }
    }

    /// The longest datagram with what the carrier adds to it, in bytes.
    #[must_use]
    pub const fn packet_limit(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.mtu.0 as usize,
            Self::Serial(_) => efl::MAX_FRAME,
        }
    }

    /// The longest packet that every path is taken to carry, where the path may carry less than is configured.
    #[must_use]
    pub const fn shortest_limit(&self) -> Option<usize> {
        match self {
            // RFC 8200, 5. IPv4 only promises 68; 576, which every host takes (RFC 1122, 3.3.2), is what narrow links have.
            Self::Udp(udp) => Some(if udp.listen.is_ipv4() { 576 } else { 1280 }),
            Self::Serial(_) => None,
        }
    }

    /// The longest frame of the link that a datagram holds.
    #[must_use]
    pub const fn frame_limit(&self) -> usize {
        self.packet_limit() - self.header_len() - OVERHEAD
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

impl Udp {
    /// Bytes of IP and UDP headers around each datagram.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        if self.listen.is_ipv4() { 20 + 8 } else { 40 + 8 }
    }
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
