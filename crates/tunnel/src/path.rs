//! Where a peer is, and the way there.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use serde::{Serialize, Serializer};

/// Where on its carrier a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// At an address and a port.
    Udp(SocketAddr),
    /// At the other end of the serial line, where there is only one.
    Serial,
}

/// One of a gateway's carriers, by its place in the configuration. The first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CarrierId(pub u8);

impl CarrierId {
    /// The only one of most gateways.
    pub const FIRST: Self = Self(0);

    /// Its place.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// Carriers of a gateway at most: as many as a link has lines.
pub const MOST_CARRIERS: usize = link::MAX_LINES;

/// Some of a gateway's carriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carriers(u8);

impl Carriers {
    /// Adds one.
    pub const fn insert(&mut self, carrier: CarrierId) {
        self.0 |= 1 << carrier.0;
    }

    /// Whether one is among them.
    #[must_use]
    pub const fn contains(self, carrier: CarrierId) -> bool {
        self.0 & 1 << carrier.0 != 0
    }

    /// How many they are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Over which of our carriers.
    pub via: CarrierId,
    /// Where the peer is.
    pub peer: Address,
    /// Which of our addresses it knows, so that answers come from there; `None` leaves that to the kernel.
    pub local: Option<IpAddr>,
}

impl Path {
    /// Bytes of the fixed form.
    pub(crate) const LEN: usize = 16 + 2 + 16;

    /// Whether what comes on `other` comes on this path.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.via == other.via
            && self.peer == other.peer
            && (self.local.is_none() || self.local == other.local)
    }

    /// A fixed form that no other path over the same carrier has. Who receives at an address over one does so over another.
    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let octets = |ip| match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        let (ip, port) = match self.peer {
            Address::Udp(peer) => (octets(peer.ip()), peer.port()),
            Address::Serial => ([0; 16], 0),
        };
        let mut bytes = [0; Self::LEN];
        bytes[..16].copy_from_slice(&ip);
        bytes[16..18].copy_from_slice(&port.to_le_bytes());
        bytes[18..].copy_from_slice(&octets(self.local.unwrap_or(Ipv6Addr::UNSPECIFIED.into())));
        bytes
    }
}

impl From<Address> for Path {
    fn from(peer: Address) -> Self {
        Self { via: CarrierId::FIRST, peer, local: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => address.fmt(f),
            Self::Serial => f.write_str("the serial line"),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
