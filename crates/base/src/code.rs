//! Erasure codes that protocols of the link and of TCP share.

pub mod gf256;
pub mod reed_solomon;
