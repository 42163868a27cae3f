//! What a gateway finds out about the path that its carrier takes: round trip, queueing delay, rate and largest packet.
//!
//! Sans-I/O, like the session whose control datagrams carry it: `now` is a parameter and what to send is polled.

pub mod follower;
pub mod minimum;
pub mod mtu;
pub mod report;

#[cfg(test)]
mod tests;

use crate::session::FIRST_DAEMON_KIND;

/// Kind of the control datagram that holds a [`report`].
pub const REPORT: u8 = FIRST_DAEMON_KIND;
/// Kind of a padded datagram that asks whether packets as long as it arrive ([`mtu`]).
pub const PROBE: u8 = FIRST_DAEMON_KIND + 1;
/// Kind of the answer to it.
pub const PROBE_ANSWER: u8 = FIRST_DAEMON_KIND + 2;
