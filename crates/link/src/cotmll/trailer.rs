//! The four bytes at a frame's end (Faulkner 2004, 2.3, figure 2-2).
//!
//! ```text
//!  31  29  28   27   26     20 19        10 9          0
//! +------+-----+----+---------+------------+------------+
//! | prot | 1st | lst| count   | tx         | ack        |    big-endian
//! +------+-----+----+---------+------------+------------+
//! ```
//!
//! Deviations: none. The figure is lost; that the count has 7 bits follows by subtraction.

use crate::endpoint::Discard;

/// Bytes of a trailer.
pub const TRAILER_LEN: usize = 4;

/// What a frame's payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubProtocol {
    /// 000: a control message; without payload a bare acknowledgement. Has no sequence number.
    Control,
    /// 001: part of a packet that is sent again if necessary.
    Reliable,
    /// 010: part of a packet that is sent once. Has a sequence of its own.
    Unreliable,
}

/// What a frame acknowledges. Sequence numbers are of class 001, modulo 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// Everything before this number, the first that has not been received.
    Cumulative(u16),
    /// A block beyond the first gap: `count` frames from number `start`. Which one is the receiver's choice
    /// ([`ToldBlock`](super::ToldBlock)).
    Block {
        /// First number of the block.
        start: u16,
        /// Its length, 1 to 127.
        count: u8,
    },
}

/// The trailer's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// What the payload is.
    pub protocol: SubProtocol,
    /// The payload starts a packet.
    pub first: bool,
    /// The payload ends a packet.
    pub last: bool,
    /// The frame's sequence number, modulo 1024; 0 in control frames.
    pub tx: u16,
    /// What the frame acknowledges.
    pub ack: Ack,
}

impl Trailer {
    /// The trailer of `frame` and the payload in front of it.
    ///
    /// # Errors
    /// [`Discard::Truncated`] under four bytes, [`Discard::Malformed`] with an unknown sub-protocol.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Discard> {
        let Some((payload, trailer)) = frame.split_last_chunk() else {
            return Err(Discard::Truncated(frame.len()));
        };
        let word = u32::from_be_bytes(*trailer);
        let protocol = match word >> PROTOCOL {
            0 => SubProtocol::Control,
            1 => SubProtocol::Reliable,
            2 => SubProtocol::Unreliable,
            _ => return Err(Discard::Malformed),
        };
        let number = (word & MAX_SEQUENCE) as u16;
        let ack = match (word >> COUNT) as u8 & MAX_BLOCK {
            0 => Ack::Cumulative(number),
            count => Ack::Block { start: number, count },
        };
        let tx = (word >> TX & MAX_SEQUENCE) as u16;
        let (first, last) = (word >> FIRST & 1 == 1, word >> LAST & 1 == 1);
        Ok((Self { protocol, first, last, tx, ack }, payload))
    }

    /// The four bytes.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; TRAILER_LEN] {
        let word = (self.protocol as u32) << PROTOCOL
            | u32::from(self.first) << FIRST
            | u32::from(self.last) << LAST
            | (u32::from(self.tx) & MAX_SEQUENCE) << TX
            | ack_bits(self.ack);
        word.to_be_bytes()
    }
}

/// Replaces the acknowledgement in the trailer at the end of `frame`, if it is that long.
#[inline]
pub(super) fn seal(frame: &mut [u8], ack: Ack) {
    if let Some(trailer) = frame.last_chunk_mut() {
        let word = u32::from_be_bytes(*trailer) & !ACK_BITS | ack_bits(ack);
        *trailer = word.to_be_bytes();
    }
}

fn ack_bits(ack: Ack) -> u32 {
    match ack {
        Ack::Cumulative(next) => u32::from(next) & MAX_SEQUENCE,
        Ack::Block { start, count } => {
            u32::from(count & MAX_BLOCK) << COUNT | u32::from(start) & MAX_SEQUENCE
        }
    }
}

/// The longest block that the count can tell.
pub(super) const MAX_BLOCK: u8 = 127;

const PROTOCOL: u32 = 29;
const FIRST: u32 = 28;
const LAST: u32 = 27;
const COUNT: u32 = 20;
const TX: u32 = 10;
const MAX_SEQUENCE: u32 = 1023;
const ACK_BITS: u32 = (MAX_BLOCK as u32) << COUNT | MAX_SEQUENCE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_layout_says() {
        let ack = Ack::Block { start: 0b11_0000_0011, count: 0b101_0101 };
        let trailer =
            Trailer { protocol: SubProtocol::Unreliable, first: true, last: false, tx: 0b10_0000_0001, ack };
        let fields = ["010", "1", "0", "1010101", "1000000001", "1100000011"].concat();
        let word = u32::from_str_radix(&fields, 2).unwrap();
        assert_eq!(trailer.emit(), word.to_be_bytes());
    }

    #[test]
    fn every_trailer_of_a_known_protocol_reads_and_writes_back() {
        for word in (0..3_u32 << PROTOCOL).step_by(97) {
            let bytes = word.to_be_bytes();
            let (trailer, payload) = Trailer::parse(&bytes).unwrap();
            assert_eq!((trailer.emit(), payload.len()), (bytes, 0));
        }
    }

    #[test]
    fn short_frames_and_unknown_protocols_are_refused() {
        assert_eq!(Trailer::parse(&[0; 3]), Err(Discard::Truncated(3)));
        for protocol in 3..8_u8 {
            assert_eq!(Trailer::parse(&[protocol << 5, 0, 0, 0]), Err(Discard::Malformed));
        }
    }

    #[test]
    fn sealing_changes_the_acknowledgement_alone() {
        let trailer = Trailer {
            protocol: SubProtocol::Reliable,
            first: true,
            last: true,
            tx: 1023,
            ack: Ack::Cumulative(1023),
        };
        let mut frame = [b"payload".as_slice(), &trailer.emit()].concat();
        for ack in [Ack::Block { start: 5, count: 127 }, Ack::Cumulative(7)] {
            seal(&mut frame, ack);
            assert_eq!(Trailer::parse(&frame).unwrap(), (Trailer { ack, ..trailer }, b"payload".as_slice()));
        }
    }
}
