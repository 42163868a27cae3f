//! The field: what measures on real sockets, in real time.
//!
//! [`emulator`] is a channel in real time, [`testbed`] two hosts and two gateways around it in network namespaces,
//! [`mod@bench`] the gateway's own benchmark, [`fleet`] that of a hub with many terminals, [`stack`] our TCP on a TUN device, [`comparison`] what it does beside the
//! kernel's, [`bulk`], [`pages`] and [`latency`] the kernel's through gateways, [`paths`] over several paths and [`traffic`] test traffic on any network. None of it runs in the
//! daemon: clock, TUN device and sockets are the gateway's, and nothing there knows of this crate.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod bench;
pub mod bulk;
pub mod comparison;
mod download;
pub mod emulator;
pub mod fleet;
pub mod latency;
mod objects;
pub mod pages;
pub mod paths;
pub mod stack;
pub mod tcp_info;
pub mod testbed;
pub mod traffic;
mod workers;
