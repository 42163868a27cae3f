//! What carries datagrams to the peer: UDP, or a serial line with EFL frames.

pub mod resolver;
pub mod serial;
pub mod udp;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use base::Instant;
use base::wire::ip::Ecn;

use tunnel::path::{Address, CarrierId, Path};
use tunnel::{Sent, Transmit};

use crate::config::{self, InterfaceName};
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

impl Carrier {
    /// Opens what the configuration names.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open(config: &config::Carrier) -> io::Result<Self> {
        match config {
            config::Carrier::Udp(udp) => {
                let device = udp.interface.as_ref().map(InterfaceName::as_str);
                UdpCarrier::bind_at(udp.listen, device).map(|carrier| Self::Udp(Box::new(carrier)))
            }
            config::Carrier::Serial(serial) => {
                SerialCarrier::open(serial).map(|carrier| Self::Serial(Box::new(carrier)))
            }
        }
    }

    /// Opens it for so many workers, each of which gets the datagrams that name it.
    ///
    /// # Errors
    /// What the kernel says; a serial line has one worker, and so has an interface.
    pub fn open_all(config: &config::Carrier, workers: u32) -> io::Result<Vec<Self>> {
        match config {
            config::Carrier::Udp(udp) if workers > 1 && udp.interface.is_none() => {
                let group = UdpCarrier::bind_group(udp.listen, workers)?;
                Ok(group.into_iter().map(|carrier| Self::Udp(Box::new(carrier))).collect())
            }
            _ if workers > 1 => Err(io::ErrorKind::Unsupported.into()),
            config => Ok(vec![Self::open(config)?]),
        }
    }

    /// Where datagrams leave from, if it sends any.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Udp(udp) => udp.local_addr().map(Some),
            Self::Serial(_) => Ok(None),
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

    /// Sends datagrams. A serial line has no place for marks, and takes one at a time.
    pub fn send(&mut self, transmit: &Transmit<'_>) -> Sent {
        let Transmit { to, marks, bytes, segment } = *transmit;
        match (self, to.peer) {
            (Self::Udp(udp), Address::Udp(peer)) => udp.send(peer, to.local, marks, bytes, segment),
            (Self::Serial(serial), Address::Serial) => serial.send(bytes),
            _ => Sent::Refused,
        }
    }

    /// Receives a batch and hands each datagram to `handle`, with its way, which is over the carrier `via`, and the ECN field that it came with; whether there may be
    /// more.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing.
    pub fn receive(
        &mut self,
        now: Instant,
        via: CarrierId,
        mut handle: impl FnMut(Path, Ecn, &mut [u8]),
    ) -> io::Result<bool> {
        match self {
            Self::Udp(udp) => udp.receive(|peer, local, ecn, datagram| {
                handle(Path { via, peer: Address::Udp(peer), local }, ecn, datagram);
            }),
            Self::Serial(serial) => {
                let from = Path { via, peer: Address::Serial, local: None };
                let taken = serial.receive(now, |datagram| handle(from, Ecn::NotEct, datagram));
                taken.map(|()| false)
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
            Self::Udp(udp) => udp.poll_timeout(),
            Self::Serial(serial) => serial.poll_timeout(),
        }
    }

    /// Looks whether its interface is there, if it has one of its own and it is time; whether it is there now, if that is news.
    pub fn tend(&mut self, now: Instant) -> Option<bool> {
        match self {
            Self::Udp(udp) => udp.tend(now),
            Self::Serial(_) => None,
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
