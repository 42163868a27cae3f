//! What one vehicle of a group passes, the next passes some time later.

use core::ops::Range;

use base::{Duration, Instant};

use super::Timeline;

/// Blocked some time after another timeline is; before that, open.
#[derive(Clone, Debug)]
pub struct Later {
    timeline: Timeline,
    by: Duration,
}

impl Later {
    /// Later than `timeline` by so much.
    #[must_use]
    pub const fn new(timeline: Timeline, by: Duration) -> Self {
        Self { timeline, by }
    }
}

impl Iterator for Later {
    type Item = Range<Instant>;

    fn next(&mut self) -> Option<Range<Instant>> {
        let Range { start, end } = self.timeline.next()?;
        Some(start.saturating_add(self.by)..end.saturating_add(self.by))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Periodic;
    use super::*;

    #[test]
    fn it_is_the_same_some_time_later() {
        let seconds = Duration::from_secs;
        let at = |second| Instant::ZERO + seconds(second);
        let first = Periodic::new(seconds(10), seconds(2), at(0));
        let later = Later::new(Timeline::Periodic(first), seconds(3));
        assert_eq!(later.take(2).collect::<Vec<_>>(), [at(3)..at(5), at(15)..at(17)]);
    }
}
