//! When something is due, and how late it may be. What may be late waits for whatever wakes its owner first, so a hub with a thousand tunnels
//! does not wake for each keep-alive of each.

use base::{Duration, Instant};

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// From when on it is done, if anybody is awake.
    pub(crate) from: Instant,
    /// When somebody has to wake for it.
    pub(crate) by: Instant,
}

/// By which keep-alives, and reports that nobody waits for, may be late. Ours: a fiftieth of what is between two keep-alives.
const LENIENCE: Duration = Duration::from_millis(20);

impl Due {
    /// Never.
    pub(crate) const NEVER: Self = Self { from: Instant::MAX, by: Instant::MAX };

    /// Due at this moment.
    pub(crate) const fn at(moment: Instant) -> Self {
        Self { from: moment, by: moment }
    }

    /// Due from this moment on, and a little later at the latest.
    pub(crate) fn about(moment: Instant) -> Self {
        Self { from: moment, by: moment.saturating_add(LENIENCE) }
    }

    /// When the first of several is due, and when somebody has to wake for one of them.
    pub(crate) fn first(dues: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let earlier = |a: Self, b: Self| Self { from: a.from.min(b.from), by: a.by.min(b.by) };
        dues.into_iter().flatten().reduce(earlier)
    }

    /// Due when this is, but not before `now`.
    pub(crate) fn not_before(self, now: Instant) -> Self {
        Self { from: self.from.max(now), by: self.by.max(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_late_is_due_with_whatever_comes_first() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let first = |dues: &[Due]| Due::first(dues.iter().copied().map(Some)).map(|due| (due.from, due.by));
        assert_eq!(first(&[Due::about(at(100))]), Some((at(100), at(120))));
        assert_eq!(first(&[Due::about(at(100)), Due::at(at(110))]), Some((at(100), at(110))));
        assert_eq!(first(&[Due::at(at(90)), Due::about(at(100))]), Some((at(90), at(90))));
        assert_eq!(first(&[Due::about(at(100)), Due::at(at(130))]), Some((at(100), at(120))));
        assert_eq!(Due::first([None, None]), None);
    }
}
