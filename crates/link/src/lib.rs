//! Link-layer protocols: what the two ends of a bad link say to each other, and the queues in front of them.
//!
//! An [`Endpoint`] is one end. It is clocked from below: whoever owns the line asks it for a frame when
//! the line is free, so what to send is decided at the last moment.

#![forbid(unsafe_code)]

pub mod endpoint;

pub use endpoint::{Class, Demand, Discard, Endpoint, FrameInfo, FrameKind, Full};
