//! The gateway: the link endpoints of the lab on real packets.
//!
//! [`daemon::Gateway`] is the daemon, [`emulator`] a channel in real time, [`testbed`] two hosts and two
//! gateways around it in network namespaces, [`mod@bench`] the gateway's own benchmark, [`stack`] our TCP on a TUN
//! device, [`comparison`] what it does beside the kernel's and [`traffic`] test traffic on any network. This crate is where
//! the real clock ([`clock`]) and the system's random source enter, and the only one with `unsafe`.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod bench;
pub mod bulk;
pub mod carrier;
pub mod clock;
pub mod comparison;
pub mod config;
pub mod counters;
pub mod daemon;
pub mod emulator;
pub mod key;
pub mod pacer;
pub mod readiness;
pub mod session;
pub mod signals;
pub mod stack;
pub mod testbed;
pub mod traffic;
pub mod tun;
mod workers;
