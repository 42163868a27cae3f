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

    /// The rate to three significant digits, for people.
    #[must_use]
    pub const fn rounded(self) -> Self {
        let mut unit = 1;
        while self.0 / unit >= 1000 {
            unit *= 10;
        }
        Self((self.0 + unit / 2) / unit * unit)
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

/// Serializes frames onto a line without ever losing a fraction of a nanosecond.
///
/// While the line is busy, the sub-nanosecond remainder of each frame goes to the next, so that a
/// million frames take exactly as long as their bits say. An idle gap clears it. The rate is fixed or changes at given
/// times, within frames too.
#[derive(Clone, Debug)]
pub struct Serializer {
    /// At `free_at`.
    rate: Rate,
    free_at: Instant,
    /// Nanoseconds times rate that the last frame used beyond `free_at`; less than `rate`.
    carry: u64,
    /// None if there is only one rate.
    changes: Option<Box<Changes>>,
}

/// The rates of a line that has several.
#[derive(Clone, Debug)]
struct Changes {
    /// When the rate changes next; [`Instant::MAX`] for never.
    until: Instant,
    /// Every rate with the time from which it holds, the first from zero.
    schedule: Vec<(Instant, Rate)>,
}

impl Serializer {
    /// An idle line of this rate.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, free_at: Instant::ZERO, carry: 0, changes: None }
    }

    /// An idle line of this rate, until the first of the `changes`: each a time after the one before, and the rate from
    /// then on.
    ///
    /// # Panics
    /// If the changes are not in order, or one is at time zero.
    #[must_use]
    pub fn with_changes(rate: Rate, changes: &[(Instant, Rate)]) -> Self {
        let schedule: Vec<_> = [(Instant::ZERO, rate)].into_iter().chain(changes.iter().copied()).collect();
        assert!(schedule.is_sorted_by(|(a, _), (b, _)| a < b), "each change after the one before");
        let changes = changes.first().map(|&(until, _)| Box::new(Changes { until, schedule }));
        Self { changes, ..Self::new(rate) }
    }

    /// The line's rate, as of [`Serializer::free_at`].
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
    #[inline]
    pub fn send(&mut self, now: Instant, bits: u64) -> core::ops::Range<Instant> {
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        if self.changes.is_some() { self.send_while_it_changes(bits) } else { self.send_at_rate(bits) }
    }

    /// When the last `bits` of what was on the air until `end` started to leave.
    #[must_use]
    pub fn start_of_last(&self, end: Instant, bits: u64) -> Instant {
        let mut work = u128::from(bits) * NANOS_PER_SEC;
        let (last, mut end) = (end, end);
        let schedule = self.changes.as_ref().map_or(&[][..], |changes| &changes.schedule);
        for &(from, rate) in schedule.iter().rev().filter(|(from, _)| *from < last) {
            let passed = u128::from(rate.0) * u128::from((end - from).as_nanos());
            if work <= passed {
                break;
            }
            work -= passed;
            end = from;
        }
        let rate = match schedule.iter().rev().find(|(from, _)| *from < end) {
            Some((_, rate)) => *rate,
            None => self.rate,
        };
        let nanos = if rate.0 == 0 { u128::MAX } else { work.div_ceil(u128::from(rate.0)) };
        end.saturating_sub(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// When the rate changes next.
    fn until(&self) -> Instant {
        self.changes.as_ref().map_or(Instant::MAX, |changes| changes.until)
    }

    /// The rate is another from `free_at` on.
    fn change_rate(&mut self) {
        let Some(Changes { until, schedule }) = self.changes.as_deref_mut() else { return };
        let next = schedule.partition_point(|(from, _)| *from <= self.free_at);
        self.rate = schedule[next - 1].1;
        *until = schedule.get(next).map_or(Instant::MAX, |(from, _)| *from);
    }

    /// Sends from `free_at` on a line with several rates.
    #[cold]
    fn send_while_it_changes(&mut self, bits: u64) -> core::ops::Range<Instant> {
        let start = self.free_at;
        if start >= self.until() {
            self.change_rate();
        }
        let carry = self.carry;
        let on_air = self.send_at_rate(bits);
        if on_air.end < self.until() { on_air } else { self.send_through_changes(start, bits, carry) }
    }

    /// Sends what does not end before the next change, from `start` with this carry.
    fn send_through_changes(&mut self, start: Instant, bits: u64, carry: u64) -> core::ops::Range<Instant> {
        let mut work = u128::from(bits) * NANOS_PER_SEC + u128::from(carry);
        self.free_at = start;
        while self.until() < Instant::MAX {
            let until_change = u128::from(self.rate.0) * u128::from((self.until() - self.free_at).as_nanos());
            if work <= until_change {
                break;
            }
            work -= until_change;
            self.free_at = self.until();
            self.change_rate();
        }
        let rate = u128::from(self.rate.0);
        let nanos = if work == 0 { 0 } else { work.checked_div(rate).unwrap_or(u128::MAX) };
        self.carry = if rate == 0 { 0 } else { (work % rate) as u64 };
        self.free_at =
            self.free_at.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        start..self.free_at
    }

    #[inline]
    fn send_at_rate(&mut self, bits: u64) -> core::ops::Range<Instant> {
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
    fn a_rounded_rate_has_three_digits() {
        for (exact, rounded) in [(0, 0), (999, 999), (3_324_586, 3_320_000), (99_960, 100_000)] {
            assert_eq!(Rate::from_bps(exact).rounded(), Rate::from_bps(rounded));
        }
    }

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

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// 3 bits a second until 1 s, 7 until 2 s, none until 5 s, 1 from then on.
    fn changing() -> Serializer {
        let second = |n: u64| at(n * 1_000_000_000);
        let changes = [(second(1), 7), (second(2), 0), (second(5), 1)];
        Serializer::with_changes(Rate(3), &changes.map(|(at, bps)| (at, Rate(bps))))
    }

    #[test]
    fn frames_back_to_back_take_what_their_bits_take_at_every_rate() {
        let mut line = changing();
        // Ten bits pass in the first two seconds: the remainders of the others do not get lost at the changes.
        let ends: Vec<u64> = (0..12).map(|_| line.send(at(0), 1).end.as_nanos()).collect();
        let sevenths = (1..=6).map(|n| 1_000_000_000 + n * 1_000_000_000 / 7);
        let expected = [333_333_333, 666_666_666, 1_000_000_000].into_iter().chain(sevenths);
        assert_eq!(ends[..9], expected.collect::<Vec<_>>());
        // The bit that ends with the rate leaves before it stops, the next two after it is back.
        assert_eq!(ends[9..], [2_000_000_000, 6_000_000_000, 7_000_000_000]);
    }

    #[test]
    fn a_frame_may_pass_several_changes_and_a_gap_too() {
        let mut line = changing();
        assert_eq!(line.send(at(500_000_000), 10).end.as_nanos(), 6_500_000_000);
        assert_eq!(line.rate(), Rate(1));
        let mut line = changing();
        assert_eq!(line.send(at(1_500_000_000), 1).end.as_nanos(), 1_642_857_142);
        assert_eq!(line.send(at(10_000_000_000), 2).end.as_nanos(), 12_000_000_000);
    }

    #[test]
    fn the_start_of_the_last_bits_is_found_behind_changes() {
        let mut line = changing();
        let end = line.send(at(500_000_000), 10).end;
        let start_of_last = |bits| line.start_of_last(end, bits).as_nanos();
        assert_eq!(start_of_last(1), 5_500_000_000);
        // 1.5 bits since 5 s, 7 in the second from 1 s, and half a bit takes a sixth of a second.
        assert_eq!(start_of_last(9), 1_000_000_000 - 166_666_667);
        assert_eq!(start_of_last(10), 500_000_000);
        let mut fixed = Serializer::new(Rate(262_144));
        let end = fixed.send(at(7), 3968).end;
        assert_eq!(fixed.start_of_last(end, 32), end.saturating_sub(Rate(262_144).time_for(32)));
    }

    #[test]
    fn a_line_that_stops_for_good_never_finishes() {
        let mut line = Serializer::with_changes(Rate(8), &[(at(1_000_000_000), Rate(0))]);
        assert_eq!(line.send(at(0), 4).end.as_nanos(), 500_000_000);
        assert_eq!(line.send(at(0), 5).end, Instant::MAX);
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
