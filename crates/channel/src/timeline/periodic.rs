//! Blockages of fixed length at fixed times (Faulkner 2004, 4.1.2, figures 4-5 to 4-7).

use core::ops::Range;

use base::{Duration, Instant};

/// Blocked for the same time, again and again, with the same open time between.
#[derive(Clone, Debug)]
pub struct Periodic {
    open: Duration,
    blocked: Duration,
    next: Instant,
}

impl Periodic {
    /// First blocked at `first`, each time for `blocked`, then open for `open`; a `blocked` of zero is never blocked.
    #[must_use]
    pub fn new(open: Duration, blocked: Duration, first: Instant) -> Self {
        let next = if blocked.is_zero() { Instant::MAX } else { first };
        Self { open, blocked, next }
    }
}

impl Iterator for Periodic {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        if self.next == Instant::MAX {
            return None;
        }
        let interval = self.next..self.next.saturating_add(self.blocked);
        self.next = interval.end.saturating_add(self.open);
        Some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blockages_repeat_after_the_same_time() {
        let s = Duration::from_secs;
        let at = |secs| Instant::ZERO + s(secs);
        let intervals: Vec<_> = Periodic::new(s(10), s(5), at(10)).take(3).collect();
        assert_eq!(intervals, [at(10)..at(15), at(25)..at(30), at(40)..at(45)]);
        assert_eq!(Periodic::new(s(10), Duration::ZERO, at(0)).next(), None);
    }
}
