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
