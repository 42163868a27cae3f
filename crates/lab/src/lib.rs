//! The laboratory: the protocol machines in virtual time, on the same channel realisations, measured.
//!
//! A [`scenario::Suite`] is read from a file, [`run::run_all`] runs it, [`report`] tells what came out. A
//! scenario's network is built of [`node`]s in an [`engine::Engine`]; a packet in it is real IP bytes.

#![forbid(unsafe_code)]

pub mod bench;
pub mod bound;
pub mod chaos;
pub mod claims;
mod drawing;
pub mod engine;
pub mod metrics;
pub mod network;
pub mod node;
pub mod observe;
pub mod papers;
pub mod real_time;
pub mod report;
pub mod run;
pub mod scenario;
pub mod statistics;
pub mod study;
pub mod table;
pub mod traffic;
