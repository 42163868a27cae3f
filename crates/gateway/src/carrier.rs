//! What carries datagrams to the peer: UDP, or a serial line with EFL frames.

pub mod batch;
pub mod resolver;
pub mod serial;
pub mod udp;

use core::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use base::Instant;
use base::wire::ip::Ecn;
use link::Marks;
use serde::{Serialize, Serializer};

use crate::config;
pub use serial::SerialCarrier;
pub use udp::UdpCarrier;

/// An open carrier.
#[derive(Debug)]
pub enum Carrier {
    /// A UDP socket.
    Udp(Box<UdpCarrier>),
    /// A serial device.
    Serial(Box<SerialCarrier>),
}

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

/// What happened to datagrams that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel has them.
    Yes,
    /// The kernel's buffer is full; try again when the carrier is writable.
    Full,
    /// The device's queue is full, of which the kernel does not say when it has room; try again in a while.
    Busy,
    /// Longer than the device carries.
    TooLong,
    /// The kernel refused them: no route, nobody there.
    Refused,
}

impl Carrier {
    /// Opens what the configuration names.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open(config: &config::Carrier) -> io::Result<Self> {
        match config {
            config::Carrier::Udp(udp) => {
                UdpCarrier::bind(udp.listen).map(|carrier| Self::Udp(Box::new(carrier)))
            }
            config::Carrier::Serial(serial) => {
                SerialCarrier::open(serial).map(|carrier| Self::Serial(Box::new(carrier)))
            }
        }
    }

    /// Datagrams that one [`Carrier::send`] takes.
    #[must_use]
    pub fn batch_limit(&self) -> usize {
        match self {
            Self::Udp(udp) => udp.batch_limit(),
            Self::Serial(_) => 1,
        }
    }

    /// Sends `bytes` as datagrams of `segment` bytes, the last one perhaps shorter. A serial line has no place for marks.
    pub fn send(&mut self, to: Path, marks: Marks, bytes: &[u8], segment: usize) -> Sent {
        match (self, to.peer) {
            (Self::Udp(udp), Address::Udp(peer)) => udp.send(peer, to.local, marks, bytes, segment),
            (Self::Serial(serial), Address::Serial) => serial.send(bytes),
            _ => Sent::Refused,
        }
    }

    /// Sends a datagram that is longer than the path carries in one packet: in parts, if need be.
    pub fn send_long(&mut self, to: Path, marks: Marks, datagram: &[u8]) -> Sent {
        match (self, to.peer) {
            (Self::Udp(udp), Address::Udp(peer)) => udp.send_long(peer, to.local, marks, datagram),
            _ => Sent::TooLong,
        }
    }

    /// Receives a batch and hands each datagram to `handle`, with its way and the ECN field that it came with; how many there were.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing.
    pub fn receive(
        &mut self,
        now: Instant,
        mut handle: impl FnMut(Path, Ecn, &mut [u8]),
    ) -> io::Result<usize> {
        match self {
            Self::Udp(udp) => udp.receive(|peer, local, ecn, datagram| {
                handle(Path { peer: Address::Udp(peer), local }, ecn, datagram);
            }),
            Self::Serial(serial) => {
                serial.receive(now, |datagram| handle(Address::Serial.into(), Ecn::NotEct, datagram))
            }
        }
    }

    /// Sends what was taken and has not left; whether it has now.
    pub fn flush(&mut self) -> bool {
        match self {
            Self::Udp(_) => true,
            Self::Serial(serial) => serial.flush(),
        }
    }

    /// Whether something was taken that has not left.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::Serial(serial) => serial.has_unsent(),
        }
    }

    /// When [`Carrier::receive`] wants to be called though nothing has arrived.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Udp(_) => None,
            Self::Serial(serial) => serial.poll_timeout(),
        }
    }

    /// What the carrier counted itself, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Udp(_) => Vec::new(),
            Self::Serial(serial) => serial.counters(),
        }
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(udp) => udp.as_fd(),
            Self::Serial(serial) => serial.as_fd(),
        }
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
