//! What needs the lab: simulations, studies, benchmarks and testbeds. A build for gateways alone is without.

pub(super) mod bench;
mod captures;
pub(super) mod chaos;
pub(super) mod demo;
pub(super) mod emulate;
mod interruption;
mod pages;
pub(super) mod reproduce;
pub(super) mod run;
mod scheme;
mod studies;
mod suite;
pub(super) mod sweep;
pub(super) mod testbed;
pub(super) mod traffic;
