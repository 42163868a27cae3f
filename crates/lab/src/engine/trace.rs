//! A running hash of everything that happens, to prove that two runs were the same.

use base::{Instant, Packet};

use super::{NodeId, Port};

/// A hash of a sequence of events. Not cryptographic: it guards against mistakes, not against forgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    /// The hash of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds a word.
    pub const fn mix(&mut self, word: u64) {
        // One round of FxHash, rotated so that high bits reach low ones; the factor is 2^64 / pi.
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Adds a packet's arrival: when, where, its length, and its bytes from 20 to 60, which hold a TCP header over
    /// IPv4 and with it a checksum over the rest; of a shorter packet all its bytes.
    pub fn mix_arrival(&mut self, now: Instant, node: NodeId, port: Port, packet: &Packet) {
        self.mix(now.as_nanos());
        self.mix(u64::from(node.0) << 32 | u64::from(port.0) << 16 | (packet.len() as u64 & 0xffff));
        let (words, rest) = packet.get(20..60).unwrap_or(packet).as_chunks();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    /// The hash so far.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        // The finalizer of splitmix64: every input bit reaches every output bit.
        let mut hash = self.0;
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ hash >> 31
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        Self::new()
    }
}
