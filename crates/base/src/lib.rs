//! The ground floor: integer time and rates, sequence numbers, packet buffers, named random streams, test content, erasure codes,
//! and the wire formats of IPv4, IPv6, TCP and UDP.
//!
//! Nothing here knows a protocol's behaviour; everything above is built from these values.

#![forbid(unsafe_code)]

pub mod code;
pub mod config;
pub mod content;
pub mod deadlines;
pub mod packet;
pub mod prefix;
pub mod random;
pub mod rate;
pub mod seq;
pub mod time;
pub mod units;
pub mod wire;

pub use deadlines::Deadlines;
pub use packet::Packet;
pub use prefix::Prefix;
pub use random::Rng;
pub use rate::{Rate, Serializer};
pub use seq::SeqNum;
pub use time::{Duration, Instant};
