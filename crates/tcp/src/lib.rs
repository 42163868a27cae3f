//! TCP without I/O: connections, loss recovery, congestion control, and hosts that hold many connections.
//!
//! Nothing here has a socket, a clock or a random source of its own. `now` is a parameter, packets go in as
//! bytes and come out as bytes.
//!
//! Drain order, for the owner of a [`Host`]: after each [`Host::handle_packet`], [`Host::handle_timeout`],
//! [`Host::write`], [`Host::read`], [`Host::finish`], [`Host::close`], [`Host::abort`] or [`Host::connect`], take events with
//! [`Host::poll_event`] and packets with [`Host::poll_transmit`] until there are none, then read
//! [`Host::poll_timeout`] again.
//!
//! A connection's sequence numbers are 64-bit offsets inside (see `sequence`), so nothing but the wire format
//! ever wraps.

#![forbid(unsafe_code)]

mod buffer;
pub mod config;
pub mod congestion;
pub mod connection;
pub mod ensemble;
mod fec;
pub mod host;
mod recovery;
mod rtt;
mod sequence;

pub use buffer::send::Source;
pub use config::{
    AcknowledgementConfig, Congestion, CubicConfig, CubicVariant, DelayedAcks, EcnUse, Estimator, ExitWindow,
    FecConfig, ForwardRto, InUse, InitialWindow, LimitsConfig, PartialAcks, Recovery, RecoveryConfig,
    ReduceFrom, Reduction, RtoConfig, RtoEstimator, SlowStart, SpuriousResponse, TcpConfig, WindowConfig,
};
pub use connection::information::CongestionState;
pub use connection::statistics::{SenderStatistics, Statistics};
pub use connection::{Connection, Discard, Event, Failure, Offer, State};
pub use ensemble::{FloorAcks, Sharing, SharingConfig};
pub use fec::{FecStatistics, RepairStatistics};
pub use host::{ConnectError, ConnectionError, ConnectionId, Host, ListenError};
