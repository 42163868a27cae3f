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

    /// Adds a packet's arrival: when, where, its length, and the 16 bytes that in a TCP segment hold the sequence and
    /// acknowledgement numbers, flags, window and the checksum over the rest; of a shorter packet all its bytes.
    #[inline]
    pub fn mix_arrival(&mut self, now: Instant, node: NodeId, port: Port, packet: &Packet) {
        self.mix(now.as_nanos());
        self.mix(u64::from(node.0) << 32 | u64::from(port.0) << 16 | (packet.len() as u64 & 0xffff));
        let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
        let numbers = if is_v6 { 44 } else { 24 };
        match packet.get(numbers..).and_then(<[u8]>::first_chunk::<16>) {
            Some(bytes) => {
                let word = u128::from_le_bytes(*bytes);
                self.mix(word as u64);
                self.mix((word >> 64) as u64);
            }
            None => packet.iter().for_each(|byte| self.mix(u64::from(*byte))),
        }
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
