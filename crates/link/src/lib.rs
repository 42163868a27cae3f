//! Link-layer protocols: what the two ends of a bad link say to each other, and the queues in front of them.
//!
//! An [`Endpoint`] is one end. It is clocked from below: whoever owns the line asks it for a frame when
//! the line is free, so what to send is decided at the last moment. [`Protocol`] is what a scenario or a
//! configuration says, and builds endpoints.

#![forbid(unsafe_code)]

pub mod age;
pub mod arq;
pub mod capabilities;
pub mod coded;
pub mod cotmll;
pub mod dscp;
pub mod edge;
pub mod efl;
pub mod endpoint;
pub mod event;
pub mod flow;
pub mod harq;
pub mod ingress_queues;
pub mod limit;
pub mod line;
pub mod marks;
pub mod plain;
pub mod protocol;
pub mod queue;
mod ready;
mod reassembly;
mod slack;
pub mod slacp;
mod sparse;
pub mod treatment;
mod unreliable;

pub use age::DatagramAge;
pub use arq::{LineId, LineTerms, MAX_LINES, Treatments, When};
pub use capabilities::Capabilities;
pub use dscp::DscpSet;
pub use edge::Edge;
pub use endpoint::{Demand, Discard, Endpoint, FrameInfo, FrameKind, Full, Lines, Obstacle};
pub use event::{Event, Header};
pub use ingress_queues::IngressQueues;
pub use line::LineLimits;
pub use marks::Marks;
pub use protocol::Protocol;
pub use queue::Queue;
pub use treatment::{ByDscp, Treatment};

/// The longest packet that any protocol carries, in bytes: a 64 KiB super-segment and its metadata.
pub const MAX_PACKET: usize = 66 * 1024;

/// Bytes of an Ethernet's packet: where frames or blocks could be longer, packets seldom are.
pub(crate) const USUAL_PACKET: usize = 1500;
