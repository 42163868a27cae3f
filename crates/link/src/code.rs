//! Erasure codes that several protocols share.

pub mod gf256;
pub mod reed_solomon;
