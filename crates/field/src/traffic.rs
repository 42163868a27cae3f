//! Test traffic on real sockets: the thesis's applications, between a server and its clients.
//!
//! Source: Faulkner 2004, section 3.3: a bulk transfer, a rate-controlled source whose stream carries time stamps,
//! and transactions on many short connections; any number of a model at once, and several clients at once. What is measured is what the
//! receiver sees: bytes over time, and every byte checked.
//!
//! Deviations: bulk streams are stamped records too, so that latency is sampled there as well.

mod client;
mod measurement;
mod offset;
pub mod request;
mod server;
mod sockets;
mod stream;
#[cfg(test)]
mod tests;

pub use client::{ClockReport, Load, MOST_CONNECTIONS, Options, Report, run, run_until_signal};
pub use measurement::{Distribution, Histogram, Observation, Series};
pub use offset::Offset;
pub use server::{Counters, Server};
pub use stream::Broken;

use base::Duration;

/// For how long nothing may move on a connection before it counts as broken, unless told otherwise.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Why traffic failed.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// No connection.
    #[error("{server}: {error}")]
    Connect {
        /// The server's address.
        server: std::net::SocketAddr,
        /// The system's word.
        error: std::io::Error,
    },
    /// The server answered with something else than yes.
    #[error("{server}: {reason}")]
    Refused {
        /// The server's address.
        server: std::net::SocketAddr,
        /// What it said.
        reason: &'static str,
    },
    /// This end's kernel does not let it use the congestion control.
    #[error(
        "congestion control {0}: {1}; /proc/sys/net/ipv4/tcp_allowed_congestion_control lists those allowed"
    )]
    Congestion(request::Congestion, std::io::Error),
    /// A stream or transaction broke.
    #[error("{0}")]
    Broken(#[from] Broken),
    /// The transfer ended in order, with another number of bytes.
    #[error("{got} bytes arrived instead of {expected}")]
    Incomplete {
        /// What came.
        got: u64,
        /// What was asked for.
        expected: u64,
    },
    /// The server's report of what it received is none.
    #[error("the server's report cannot be read: {0}")]
    Report(String),
    /// One of the connections failed.
    #[error("connection {connection}: {error}")]
    Connection {
        /// Which, or which transaction, from 1.
        connection: u64,
        /// What went wrong.
        error: Box<TrafficError>,
    },
    /// A thread could not be started.
    #[error("{0}")]
    Thread(std::io::Error),
    /// A signal asked to end.
    #[error("interrupted")]
    Interrupted,
}
