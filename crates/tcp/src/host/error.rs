//! What a host refuses, and why.

use core::net::{IpAddr, SocketAddr};

use base::wire::Malformed;

use super::ConnectionId;
use crate::connection::{self, Failure, WriteError};

/// Why a port cannot be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Somebody listens there already.
    #[error("port {0} is taken")]
    Taken(u16),
}

/// Why a connection cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The address is of the other family than the host's.
    #[error("{0} is of another address family")]
    Family(IpAddr),
    /// Every ephemeral port to this peer is in use.
    #[error("no free port to {0}")]
    PortsExhausted(SocketAddr),
    /// There is one between the same two ends.
    #[error("a connection to {0} exists")]
    Taken(SocketAddr),
    /// The host's memory is in use.
    #[error("no memory for a connection to {0}")]
    Memory(SocketAddr),
}

/// Why a connection does not take a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// There is no such connection (any more).
    #[error("no connection {0:?}")]
    Unknown(ConnectionId),
    /// This side has finished.
    #[error("already finished")]
    Finished,
    /// The connection ended early.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<WriteError> for ConnectionError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Finished => Self::Finished,
            WriteError::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Discard {
    /// It is no IP packet or no TCP segment, or a checksum does not hold.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It is a fragment; hosts send with "don't fragment" and reassemble nothing.
    #[error("fragment")]
    Fragment,
    /// It carries something other than TCP, or an ICMP message that says nothing of a TCP segment of this host's.
    #[error("protocol {0}")]
    NotTcp(u8),
    /// It is for another address.
    #[error("for {0}")]
    NotForUs(IpAddr),
    /// Nobody is there. It was answered with a reset, unless it was one, or was an ICMP message, or 64 answers wait already.
    #[error("nothing at port {0}")]
    NoConnection(u16),
    /// The listener has too many half-open connections, and 64 answers wait already, so there is not even a cookie.
    #[error("backlog of port {0} is full")]
    BacklogFull(u16),
    /// The host's memory is in use.
    #[error("no memory for a connection to port {0}")]
    NoMemory(u16),
    /// Its connection had no use for it.
    #[error(transparent)]
    Segment(#[from] connection::Discard),
}
