//! Sequence space without the wrap: 64-bit offsets inside, 32-bit numbers on the wire.

use base::SeqNum;

/// The offset of the SYN. Not zero, so that numbers older than the connection stay positive.
pub(crate) const ORIGIN: u64 = 1 << 32;

/// One direction's numbering, fixed by its initial sequence number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeqSpace {
    initial: SeqNum,
}

impl SeqSpace {
    /// The numbering whose SYN has this number.
    pub(crate) const fn starting_at(initial: SeqNum) -> Self {
        Self { initial }
    }

    /// The number on the wire.
    pub(crate) fn number(self, offset: u64) -> SeqNum {
        // ORIGIN's low 32 bits are zero: truncation gives the distance from the initial number.
        self.initial + offset as u32
    }

    /// The offset nearest to `near` that has this number.
    pub(crate) fn offset(self, number: SeqNum, near: u64) -> u64 {
        near.wrapping_add_signed(i64::from(number.distance(self.number(near))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_survives_the_wrap_of_its_number() {
        let space = SeqSpace::starting_at(SeqNum(u32::MAX - 2));
        assert_eq!(space.number(ORIGIN), SeqNum(u32::MAX - 2));
        assert_eq!(space.number(ORIGIN + 5), SeqNum(2));
        assert_eq!(space.offset(SeqNum(2), ORIGIN), ORIGIN + 5);
        assert_eq!(space.offset(SeqNum(u32::MAX - 10), ORIGIN + 1), ORIGIN - 8);
        let far = ORIGIN + (7 << 32) + 3;
        assert_eq!(space.offset(space.number(far), far - 1_000_000), far);
    }
}
