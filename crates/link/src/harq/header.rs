//! What stands in front of a frame.
//!
//! ```text
//! +------+-------+--------+--------+-------+----------+
//! | kind | index | number | serial | floor | fragment |      kind 0 has neither serial nor floor, kind 1 no floor
//! +------+-------+--------+--------+-------+----------+
//!   2 bits 6 bits  3        3        3       n bytes         big-endian
//!
//! +------+-------+----------------------------------------+
//! | kind | zeros | a frame of class 000 as in arq::frame  |      kind 3
//! +------+-------+----------------------------------------+
//!   2 bits 6 bits
//! ```
//!
//! *index* is the fragment's place in the code, data first. *number* is the block's; blocks that are sent once have numbers of their
//! own. *serial* counts transmissions of blocks, so that the receiver can tell one from another, and a report says which it has heard of.
//! No block before *floor* will be sent again: it is there while the receiver has not acknowledged all blocks before it.

use crate::arq::frame::Frame;
use crate::endpoint::Discard;

/// Bytes of the longest header.
pub(super) const HEADER_LEN: usize = 10;

/// A frame, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A fragment of a block.
    Fragment(Header, &'a [u8]),
    /// A report, or a question for one.
    Control(Frame<'a>),
}

/// What is said of a fragment. Numbers are as they are on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The fragment's place in the code.
    pub(super) index: u8,
    /// The block.
    pub(super) number: u32,
    /// Which transmission it is of; `None` if the block is sent once.
    pub(super) transmission: Option<Transmission>,
}

/// A transmission of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transmission {
    pub(super) serial: u32,
    /// The first block that may be sent again, if that is news.
    pub(super) floor: Option<u32>,
}

/// First byte of a control frame.
pub(super) const CONTROL: u8 = 3 << KIND_SHIFT;
const KIND_SHIFT: u32 = 6;
const INDEX: u8 = 0x3f;

impl Header {
    /// Appends the header.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let (kind, serial, floor) = match self.transmission {
            None => (0, None, None),
            Some(Transmission { serial, floor: None }) => (1, Some(serial), None),
            Some(Transmission { serial, floor }) => (2, Some(serial), floor),
        };
        out.push(kind << KIND_SHIFT | self.index & INDEX);
        for number in [Some(self.number), serial, floor].into_iter().flatten() {
            out.extend_from_slice(&number.to_be_bytes()[1..]);
        }
    }
}

impl<'a> Piece<'a> {
    /// Takes `frame` apart.
    ///
    /// # Errors
    /// [`Discard::Truncated`] if it is shorter than its fields and a byte, [`Discard::Malformed`] with values that no sender writes.
    pub(super) fn parse(frame: &'a [u8]) -> Result<Self, Discard> {
        let truncated = Discard::Truncated(frame.len());
        let (&first, mut rest) = frame.split_first().ok_or(truncated)?;
        let (kind, index) = (first >> KIND_SHIFT, first & INDEX);
        if kind == CONTROL >> KIND_SHIFT {
            let control = if index == 0 { Frame::parse(rest) } else { Err(Discard::Malformed) };
            return control.map(Self::Control);
        }
        let mut number = || {
            let (&[a, b, c], behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(u32::from_be_bytes([0, a, b, c]))
        };
        let block = number().ok_or(truncated)?;
        let serial = if kind > 0 { Some(number().ok_or(truncated)?) } else { None };
        let floor = if kind > 1 { Some(number().ok_or(truncated)?) } else { None };
        if rest.is_empty() {
            return Err(truncated);
        }
        let transmission = serial.map(|serial| Transmission { serial, floor });
        Ok(Self::Fragment(Header { index, number: block, transmission }, rest))
    }
}
