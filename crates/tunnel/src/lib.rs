//! A gateway without its devices: its ends of tunnels to other gateways, sans-I/O.
//!
//! [`Tunnel`] is one end of a connection with one peer. It joins the protocol machines: [`session`], [`survey`] (rate, delay and packet size
//! of the path), [`pacer`], the [`ingress`] queues with the split-connection proxy, and a link endpoint. [`Hub`] is all tunnels of a
//! gateway: one, or thousands. The daemon gives it packets of a TUN device and datagrams of a socket, the lab those of nodes in virtual
//! time; both run the same one.

#![forbid(unsafe_code)]

mod allowance;
pub mod batch;
pub mod config;
mod congestion;
pub mod control;
pub mod counters;
mod due;
pub mod hub;
pub mod ingress;
pub mod key;
mod line_use;
pub mod pacer;
mod pairing;
mod parts;
pub mod path;
mod proxy_side;
pub mod random;
pub mod session;
pub mod super_segment;
pub mod survey;
mod tunnel;
pub mod worker;

pub use config::Config;
pub use hub::{Hub, Membership, PeerId};
pub use proxy_side::{Delivery, poll_super_segment};
pub use tunnel::{Event, Line, Presence, Sent, Status, Transmit, Tunnel};
pub use worker::WorkerId;
