//! Wire formats: for each protocol a checked `View` over bytes and a `Repr` that parses from it and emits to a buffer.
//!
//! A view never panics on what a peer sent; a representation holds what the protocol machines use and
//! round-trips exactly.

pub mod checksum;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod record;
pub mod tcp;
pub mod udp;

/// Why bytes are not what they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the header or a length field needs.
    #[error("truncated: {have} bytes of {need}")]
    Truncated {
        /// Bytes present.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// A version field that is not the format's.
    #[error("version {0}")]
    Version(u8),
    /// A length field that contradicts the header's own size.
    #[error("impossible length field {0}")]
    Length(usize),
    /// A checksum that does not match.
    #[error("checksum does not match")]
    Checksum,
    /// Another protocol than the one asked for.
    #[error("protocol {0} instead")]
    Protocol(u8),
}

/// Checks that `bytes` holds at least `need`.
fn require(bytes: &[u8], need: usize) -> Result<(), Malformed> {
    if bytes.len() < need { Err(Malformed::Truncated { have: bytes.len(), need }) } else { Ok(()) }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
