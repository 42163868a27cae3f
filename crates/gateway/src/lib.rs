//! The gateway: a [tunnel](tunnel::Tunnel) on real packets.
//!
//! [`daemon::Gateway`] is the daemon, and this crate holds what a process with its rights runs and nothing else: a TUN
//! device ([`tun`]) with [routes](routing) into it, a [`carrier`] below, and the event loop around the tunnel, which has no I/O. What measures it on
//! real sockets is the crate `field`. [`middlebox`] is the split-connection proxy by itself, where there is no link of ours. This crate is where the real clock ([`clock`]) and the system's random source enter.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod carrier;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod heap;
pub mod history;
mod http;
pub mod metrics;
pub mod middlebox;
pub mod netlink;
mod page;
pub mod privileges;
pub mod random;
pub mod readiness;
pub mod routing;
pub mod signals;
pub mod supervisor;
pub mod tun;
