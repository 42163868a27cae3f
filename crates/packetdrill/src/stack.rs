//! The TCP that a script runs on.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::Instant;

use crate::call::{Errno, Operation};
use crate::expression::Field;

/// A TCP, its clock and its sockets. An `Err` of a method is what it cannot do, in words.
pub trait Stack {
    /// Time since the start of the script.
    fn now(&self) -> Instant;

    /// Lets time pass until `until`, or less if the host sends something or a call that blocked may return.
    ///
    /// # Errors
    /// The host cannot go on.
    fn pass(&mut self, until: Instant) -> Result<(), String>;

    /// The next IP packet that the host has sent, and when.
    fn poll_packet(&mut self) -> Option<(Instant, Vec<u8>)>;

    /// Gives the host an IP packet of the peer's.
    ///
    /// # Errors
    /// The host cannot take it.
    fn inject(&mut self, packet: &[u8]) -> Result<(), String>;

    /// Makes a system call, which never blocks.
    ///
    /// # Errors
    /// The host has no such call, option or descriptor.
    fn call(&mut self, operation: &Operation) -> Result<Answer, String>;

    /// A field of the connection's `TCP_INFO`.
    ///
    /// # Errors
    /// There is no connection.
    fn info(&mut self, field: Field) -> Result<i64, String>;
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It returns this.
    Value(i64),
    /// It fails.
    Error(Errno),
    /// It would block, or a connection is being opened.
    Blocks,
}

/// Addresses and ports of a script's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The host's address.
    pub host: IpAddr,
    /// The peer's address.
    pub peer: IpAddr,
}

impl Ends {
    /// The host's port where it is bound, and the peer's where the host connects to.
    pub const PORT: u16 = 8080;
    /// The peer's port where the peer connects.
    pub const PEER_PORT: u16 = 40_961;

    /// Those of IPv4 (192.0.2.0/24 is RFC 5737's) or of IPv6 (RFC 3849).
    #[must_use]
    pub const fn of(ipv6: bool) -> Self {
        if ipv6 {
            let host = IpAddr::V6(Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1));
            Self { host, peer: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)) }
        } else {
            let host = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1));
            Self { host, peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)) }
        }
    }
}
