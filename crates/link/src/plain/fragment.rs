//! Fragments of packets that are longer than a frame.

use base::Packet;

use crate::endpoint::Discard;
use crate::reassembly::Reassembly;

/// What stands in front of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// It starts a packet.
    pub(super) first: bool,
    /// It ends a packet.
    pub(super) last: bool,
    /// Fragments before it, modulo 2^24.
    pub(super) number: u32,
}

/// Bytes of a header.
pub(crate) const HEADER_LEN: usize = 4;

/// First nibble of a fragment: 1.
const KIND: u8 = 0x10;
const FIRST: u8 = 0b10;
const LAST: u8 = 0b01;

impl Header {
    pub(super) fn emit(self) -> [u8; HEADER_LEN] {
        let [_, a, b, c] = self.number.to_be_bytes();
        [KIND | (u8::from(self.first) * FIRST) | (u8::from(self.last) * LAST), a, b, c]
    }

    /// The header and the payload behind it.
    pub(super) fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Discard> {
        let Some((&[kind, a, b, c], payload)) = frame.split_first_chunk() else {
            return Err(Discard::Truncated(frame.len()));
        };
        if kind & !(FIRST | LAST) != KIND {
            return Err(Discard::Malformed);
        }
        let number = u32::from_be_bytes([0, a, b, c]);
        Ok((Self { first: kind & FIRST != 0, last: kind & LAST != 0, number }, payload))
    }
}

/// The number after `number`.
pub(super) const fn after(number: u32) -> u32 {
    (number + 1) & 0x00ff_ffff
}

/// Puts fragments together again. One packet at a time, since senders do not interleave: so that a peer takes one buffer of memory at most.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    reassembly: Reassembly,
    /// Number of the fragment that continues the packet begun.
    expected: u32,
}

impl Fragments {
    /// Takes a fragment; answers the packet that it completes.
    pub(super) fn handle(&mut self, frame: &[u8]) -> Result<Option<Packet>, Discard> {
        let (header, payload) = Header::parse(frame)?;
        if header.number != self.expected {
            self.reassembly.abort();
        }
        self.expected = after(header.number);
        if !header.first && !self.reassembly.is_partial() {
            return Err(Discard::OutsideWindow(header.number.into()));
        }
        Ok(self.reassembly.push(header.first, header.last, payload))
    }

    /// Bytes of memory that they take.
    pub(super) fn memory(&self) -> usize {
        self.reassembly.memory()
    }

    /// Whatever was begun will never be complete.
    pub(super) fn abort(&mut self) {
        self.reassembly.abort();
    }

    /// Packets dropped for a missing fragment, of which at least one fragment was kept.
    pub(super) const fn incomplete(&self) -> u64 {
        self.reassembly.incomplete()
    }
}
