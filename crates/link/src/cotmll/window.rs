//! Sequence numbers, and sets of those within a window.
//!
//! Inside, frames are counted with 64 bits that never wrap; on the air are the lowest ten.

/// Frames in the widest window: half the sequence space, so that a receiver can tell new from old.
pub(super) const WINDOW: usize = 512;

/// A frame's number on the air.
pub(super) const fn on_air(sequence: u64) -> u16 {
    (sequence % SPACE) as u16
}

/// How far a number on the air lies beyond `base`, 0 to 1023.
pub(super) const fn beyond(base: u64, number: u16) -> u64 {
    (number as u64).wrapping_sub(base) % SPACE
}

/// A sequence number's place in an array of the window's length.
pub(super) const fn place(sequence: u64) -> usize {
    (sequence % WINDOW as u64) as usize
}

/// Sequence numbers: 10 bits (Faulkner 2004, 2.3). Divides 2^64, so that differences may wrap.
pub(super) const SPACE: u64 = 1024;

/// A set of sequence numbers that lie within one window of each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    words: [u64; WINDOW / 64],
    len: usize,
}

impl Set {
    #[inline]
    pub(super) const fn contains(&self, sequence: u64) -> bool {
        let place = place(sequence);
        self.words[place / 64] >> (place % 64) & 1 == 1
    }

    /// Adds a number; whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, sequence: u64) -> bool {
        let new = !self.contains(sequence);
        let place = place(sequence);
        self.words[place / 64] |= 1 << (place % 64);
        self.len += usize::from(new);
        new
    }

    /// Removes a number; whether it was there.
    #[inline]
    pub(super) fn remove(&mut self, sequence: u64) -> bool {
        let was = self.contains(sequence);
        let place = place(sequence);
        self.words[place / 64] &= !(1 << (place % 64));
        self.len -= usize::from(was);
        was
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The first member from `start` on, before `end`; at most one window apart.
    #[inline]
    pub(super) fn first_in(&self, start: u64, end: u64) -> Option<u64> {
        self.scan(start, end, 0)
    }

    /// The first number from `start` on, before `end`, that is not a member; at most one window apart.
    #[inline]
    pub(super) fn first_missing_in(&self, start: u64, end: u64) -> Option<u64> {
        self.scan(start, end, u64::MAX)
    }

    /// The first number whose bit differs from those of `flip`.
    fn scan(&self, start: u64, end: u64, flip: u64) -> Option<u64> {
        let mut at = start;
        while at < end {
            let place = place(at);
            let rest = (self.words[place / 64] ^ flip) >> (place % 64);
            if rest != 0 {
                let found = at + u64::from(rest.trailing_zeros());
                return (found < end).then_some(found);
            }
            at += 64 - (place % 64) as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn distances_wrap() {
        assert_eq!(beyond(1020, 3), 7);
        assert_eq!(beyond(1020 + (1 << 40), 3), beyond((1020 + (1 << 40)) % 1024, 3));
        assert_eq!(beyond(5, 4), 1023);
        assert_eq!((on_air(1024), on_air(u64::MAX)), (0, 1023));
    }

    proptest! {
        #[test]
        fn a_set_is_a_set(base in 0_u64..2000, steps in prop::collection::vec((0_u64..512, any::<bool>()), 0..300)) {
            let (mut set, mut model) = (Set::default(), BTreeSet::new());
            for (offset, insert) in steps {
                let sequence = base + offset;
                if insert {
                    prop_assert_eq!(set.insert(sequence), model.insert(sequence));
                } else {
                    prop_assert_eq!(set.remove(sequence), model.remove(&sequence));
                }
                let end = base + 512;
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert_eq!(set.first_in(sequence, end), model.range(sequence..).next().copied());
                let missing = (sequence..end).find(|s| !model.contains(s));
                prop_assert_eq!(set.first_missing_in(sequence, end), missing);
            }
        }
    }
}
