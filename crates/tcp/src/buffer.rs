//! Byte buffers: rings that grow as they fill, the send buffer, and reassembly.

pub(crate) mod ranges;
pub(crate) mod reassembly;
pub(crate) mod ring;
pub(crate) mod send;
