//! The control message that tells a receiver to skip frames.
//!
//! ```text
//! +------+--------------+--------------+
//! | 1    | start        | count        |    1, 2 and 2 bytes, big-endian
//! +------+--------------+--------------+
//! ```
//!
//! The payload of a frame of class 000. Ours: Faulkner 2004 has no such message.

use crate::endpoint::Discard;

/// Frames that the sender has given up or that have arrived: none of them will be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// Number of the first, modulo 1024.
    pub start: u16,
    /// How many, 1 to 512.
    pub count: u16,
}

impl Skip {
    /// The message in a control frame's payload.
    ///
    /// # Errors
    /// [`Discard::Malformed`] for any other length, type, or a number or count out of range.
    pub fn parse(payload: &[u8]) -> Result<Self, Discard> {
        let &[TYPE, a, b, c, d] = payload else { return Err(Discard::Malformed) };
        let (start, count) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        if start > MAX_SEQUENCE || !(1..=MAX_COUNT).contains(&count) {
            return Err(Discard::Malformed);
        }
        Ok(Self { start, count })
    }

    /// Its bytes.
    #[must_use]
    pub const fn emit(&self) -> [u8; SKIP_LEN] {
        let ([a, b], [c, d]) = (self.start.to_be_bytes(), self.count.to_be_bytes());
        [TYPE, a, b, c, d]
    }
}

/// Bytes of the message.
pub const SKIP_LEN: usize = 5;

/// Ours; the only type so far.
const TYPE: u8 = 1;
const MAX_SEQUENCE: u16 = 1023;
/// The widest window.
const MAX_COUNT: u16 = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_as_it_was_written() {
        for skip in
            [Skip { start: 0, count: 1 }, Skip { start: 1023, count: 512 }, Skip { start: 258, count: 259 }]
        {
            assert_eq!(Skip::parse(&skip.emit()), Ok(skip));
        }
        assert_eq!(Skip { start: 258, count: 3 }.emit(), [1, 1, 2, 0, 3]);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for wrong in [
            [1, 4, 0, 0, 1].as_slice(),
            &[1, 0, 0, 0, 0],
            &[1, 0, 0, 2, 1],
            &[1, 0, 0, 0xff, 0xff],
            &[2, 0, 0, 0, 1],
            &[0, 0, 0, 0, 1],
            &[1, 0, 0, 0],
            &[1, 0, 0, 0, 1, 0],
            &[],
        ] {
            assert_eq!(Skip::parse(wrong), Err(Discard::Malformed), "{wrong:?}");
        }
    }
}
