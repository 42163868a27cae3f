//! The smallest of recent values.

use base::{Duration, Instant};

/// Keeps the smallest value of the last one to two spans of time.
#[derive(Clone, Copy, Debug)]
pub struct Minimum<T> {
    span: Duration,
    /// When the present span began, its smallest value, and that of the span before.
    since: Instant,
    present: Option<T>,
    former: Option<T>,
}

impl<T: Copy + PartialOrd> Minimum<T> {
    /// No value yet.
    #[must_use]
    pub const fn over(span: Duration) -> Self {
        Self { span, since: Instant::ZERO, present: None, former: None }
    }

    /// Takes a value in.
    pub fn observe(&mut self, now: Instant, value: T) {
        if now >= self.since + self.span {
            self.former = self.present.take();
            self.since = now;
        }
        if self.present.is_none_or(|smallest| value < smallest) {
            self.present = Some(value);
        }
    }

    /// The smallest value.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        match (self.present, self.former) {
            (Some(a), Some(b)) => Some(if a < b { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// One that has observed nothing.
    #[must_use]
    pub const fn cleared(&self) -> Self {
        Self::over(self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_for_one_span_to_two() {
        let mut minimum = Minimum::over(Duration::from_secs(60));
        let mut observe = |second, value: u32| {
            minimum.observe(Instant::ZERO + Duration::from_secs(second), value);
            minimum.get().unwrap()
        };
        let smallest = [(0, 5), (30, 3), (59, 4), (60, 9), (61, 7), (119, 8), (120, 6), (180, 10), (240, 12)]
            .map(|(second, value)| observe(second, value));
        assert_eq!(smallest, [5, 3, 3, 3, 3, 3, 6, 6, 10]);
    }

    #[test]
    fn the_smaller_of_two_spans_counts_and_a_cleared_one_knows_nothing() {
        let mut minimum = Minimum::over(Duration::from_secs(1));
        for (second, value) in [(0, 8), (1, 2)] {
            minimum.observe(Instant::ZERO + Duration::from_secs(second), value);
        }
        assert_eq!(minimum.get(), Some(2));
        assert_eq!(minimum.cleared().get(), None);
    }
}
