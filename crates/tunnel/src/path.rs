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

/// A way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
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
        self.peer == other.peer && (self.local.is_none() || self.local == other.local)
    }

    /// A fixed form that no other path has.
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
        Self { peer, local: None }
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
