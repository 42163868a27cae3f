//! Fragments of packets that are longer than a frame.

use base::Packet;

use crate::MAX_PACKET;
use crate::endpoint::Discard;

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
pub(super) const HEADER_LEN: usize = 4;

/// First nibble of a fragment.
const NIBBLE: u8 = 1;
const FIRST: u8 = 0b10;
const LAST: u8 = 0b01;

impl Header {
    pub(super) fn emit(self) -> [u8; HEADER_LEN] {
        let [_, a, b, c] = self.number.to_be_bytes();
        [NIBBLE << 4 | u8::from(self.first) * FIRST | u8::from(self.last) * LAST, a, b, c]
    }

    /// The header and the payload behind it.
    pub(super) fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Discard> {
        let Some((&[kind, a, b, c], payload)) = frame.split_first_chunk() else {
            return Err(Discard::Truncated(frame.len()));
        };
        if kind & !(FIRST | LAST) != NIBBLE << 4 {
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

/// Puts fragments together again. One packet at a time, since senders do not interleave.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    partial: Option<Partial>,
    incomplete: u64,
}

#[derive(Debug)]
struct Partial {
    packet: Packet,
    expected: u32,
}

impl Reassembly {
    /// Takes a fragment; answers the packet that it completes.
    pub(super) fn handle_fragment(&mut self, frame: &[u8]) -> Result<Option<Packet>, Discard> {
        let (header, payload) = Header::parse(frame)?;
        let mut partial = self.take(header)?;
        if partial.packet.len() + payload.len() > MAX_PACKET {
            self.incomplete += 1;
            return Err(Discard::Malformed);
        }
        partial.packet.extend_from_slice(payload);
        if header.last {
            return Ok(Some(partial.packet));
        }
        partial.expected = after(header.number);
        self.partial = Some(partial);
        Ok(None)
    }

    /// The packet that this fragment continues or starts.
    fn take(&mut self, header: Header) -> Result<Partial, Discard> {
        if header.first {
            self.abort();
            let capacity = if header.last { 0 } else { MAX_PACKET };
            return Ok(Partial { packet: Packet::with_capacity(capacity), expected: header.number });
        }
        match self.partial.take() {
            Some(partial) if partial.expected == header.number => Ok(partial),
            Some(_) => {
                self.incomplete += 1;
                Err(Discard::OutsideWindow(header.number.into()))
            }
            None => Err(Discard::OutsideWindow(header.number.into())),
        }
    }

    /// Whatever was begun will never be complete.
    pub(super) fn abort(&mut self) {
        self.incomplete += u64::from(self.partial.take().is_some());
    }

    /// Packets dropped for a missing fragment.
    pub(super) const fn incomplete(&self) -> u64 {
        self.incomplete
    }
}
