//! The split-connection proxy (RFC 3135): a TCP connection across a bad link is made of several, each with what its own
//! stretch needs.
//!
//! A [`Proxy`] stands between a LAN and a link. It takes up the connections that hosts of either side open to those of the
//! other, as if it were the other host, and opens a twin to that host, as if it were the first; then it relays what comes.
//! Hosts see each other's real addresses and ports. One proxy at one end of a link is enough; where there is one at each end,
//! two whose owners have told them of each other ([`Proxy::set_peer`]) need no congestion control between them.
//!
//! Drain order, for the owner: offer each packet to [`Proxy::handle_packet`] and forward it if it is none of the proxy's; after
//! that and after [`Proxy::handle_timeout`], take packets for either side with [`Proxy::poll_transmit`] until there are none,
//! then read [`Proxy::poll_timeout`] again. Packets for a link that is clocked from below may be taken later, when the link has
//! room.

#![forbid(unsafe_code)]

pub mod config;
pub mod counters;
mod known;
pub mod proxy;
pub mod rules;

pub use config::{Acknowledgement, Answer, Config, ETHERNET_MSS};
pub use counters::Counters;
pub use proxy::{Peer, Proxy, Side, Verdict};
pub use rules::{Action, Ports, Rule};
