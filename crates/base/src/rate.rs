//! Bit rates, and the serializer that turns them into exact air times.

use core::fmt;

use crate::time::{Duration, Instant};

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A bit rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits_per_second`; zero is allowed and means that nothing moves.
    #[must_use]
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The time that `bits` take, rounded up; [`Duration::MAX`] at rate zero.
    ///
    /// For one isolated frame. A line that sends frames back to back uses [`Serializer`], which carries the remainder.
    #[must_use]
    pub fn time_for(self, bits: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bits) * NANOS_PER_SEC).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whole bits that pass in `span`.
    #[must_use]
    pub fn bits_in(self, span: Duration) -> u64 {
        let bits = u128::from(self.0) * u128::from(span.as_nanos()) / NANOS_PER_SEC;
        u64::try_from(bits).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Exact, in the largest decimal unit that needs no fraction: `262144 bit/s`, `256 kbit/s`, `10 Mbit/s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
        for (unit, name) in units {
            if self.0 != 0 && self.0.is_multiple_of(unit) {
                return write!(f, "{} {name}", self.0 / unit);
            }
        }
        write!(f, "{} bit/s", self.0)
    }
}

/// Serializes frames onto a line at a fixed rate without ever losing a fraction of a nanosecond.
///
/// While the line is busy, the sub-nanosecond remainder of each frame goes to the next, so that a
/// million frames take exactly as long as their bits say. An idle gap clears it.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Instant,
    /// Nanoseconds times rate that the last frame used beyond `free_at`; less than `rate`.
    carry: u64,
}

impl Serializer {
    /// An idle line of this rate.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, free_at: Instant::ZERO, carry: 0 }
    }

    /// The line's rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// When the last bit accepted so far has left.
    #[must_use]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Puts `bits` on the line no earlier than `now`; answers when the first of them starts and the last has left.
    pub fn send(&mut self, now: Instant, bits: u64) -> core::ops::Range<Instant> {
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        let start = self.free_at;
        if self.rate.0 == 0 {
            self.free_at = Instant::MAX;
            return start..Instant::MAX;
        }
        // One frame's bits times 1e9 fits 64 bits up to 18 Gbit; wider arithmetic is the rare path.
        let (nanos, carry) =
            match bits.checked_mul(NANOS_PER_SEC as u64).and_then(|n| n.checked_add(self.carry)) {
                Some(n) => (n / self.rate.0, n % self.rate.0),
                None => {
                    let n = u128::from(bits) * NANOS_PER_SEC + u128::from(self.carry);
                    let rate = u128::from(self.rate.0);
                    (u64::try_from(n / rate).unwrap_or(u64::MAX), (n % rate) as u64)
                }
            };
        self.carry = carry;
        self.free_at = start.saturating_add(Duration::from_nanos(nanos));
        start..self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_line_loses_no_fraction() {
        // 3968 bits at 262144 bit/s are 15,136,718.75 ns: a million of them are exactly 15,136.71875 s.
        let mut line = Serializer::new(Rate::from_bps(262_144));
        for _ in 0..1_000_000 {
            line.send(Instant::ZERO, 3968);
        }
        assert_eq!(line.free_at().as_nanos(), 15_136_718_750_000);
    }

    #[test]
    fn an_idle_gap_starts_afresh() {
        let mut line = Serializer::new(Rate::from_bps(3));
        assert_eq!(line.send(Instant::ZERO, 1).end.as_nanos(), 333_333_333);
        let later = Instant::from_nanos(500_000_000);
        let on_air = line.send(later, 3);
        assert_eq!((on_air.start, (on_air.end - on_air.start).as_nanos()), (later, 1_000_000_000));
    }

    #[test]
    fn a_rate_of_zero_never_finishes() {
        let mut line = Serializer::new(Rate::from_bps(0));
        assert_eq!(line.send(Instant::ZERO, 1).end, Instant::MAX);
        assert_eq!(Rate::from_bps(0).time_for(8), Duration::MAX);
    }

    #[test]
    fn bits_and_times_invert() {
        let rate = Rate::from_bps(10_000_000);
        assert_eq!(rate.time_for(12_000), Duration::from_micros(1_200));
        assert_eq!(rate.bits_in(Duration::from_micros(1_200)), 12_000);
    }
}
