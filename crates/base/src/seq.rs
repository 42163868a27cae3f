//! TCP sequence numbers: 32 bits that wrap (RFC 9293, 3.4).

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. Comparisons hold for numbers less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// The signed distance from `other` to `self`, in bytes of sequence space.
    #[must_use]
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// `self < other` on the circle.
    #[must_use]
    pub const fn lt(self, other: Self) -> bool {
        self.distance(other) < 0
    }

    /// `self <= other` on the circle.
    #[must_use]
    pub const fn le(self, other: Self) -> bool {
        self.distance(other) <= 0
    }

    /// `self > other` on the circle.
    #[must_use]
    pub const fn gt(self, other: Self) -> bool {
        self.distance(other) > 0
    }

    /// `self >= other` on the circle.
    #[must_use]
    pub const fn ge(self, other: Self) -> bool {
        self.distance(other) >= 0
    }

    /// The later of the two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.ge(other) { self } else { other }
    }

    /// The earlier of the two.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.le(other) { self } else { other }
    }

    /// The bytes from `start` forward to `self`; `start` must not be later.
    #[must_use]
    pub const fn since(self, start: Self) -> u32 {
        debug_assert!(self.ge(start), "sequence numbers out of order");
        self.0.wrapping_sub(start.0)
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, bytes: u32) {
        self.0 = self.0.wrapping_add(bytes);
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Debug for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = SeqNum(u32::MAX - 9);
        let after = before + 20;
        assert_eq!(after, SeqNum(10));
        assert!(before.lt(after) && after.gt(before) && before.le(before));
        assert_eq!(after.since(before), 20);
        assert_eq!(after.distance(before), 20);
        assert_eq!(before.distance(after), -20);
        assert_eq!(before.max(after), after);
        assert_eq!(after - 20, before);
    }
}
