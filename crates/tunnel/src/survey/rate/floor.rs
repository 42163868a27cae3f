//! The smallest delay of late that can be believed.
//!
//! A single delay far below all others is none of the path's: somebody made a copy of the datagram arrive earlier than the path carries it, or the clock
//! was set. A plain minimum would hold it for a minute, and count all that comes after as a queue. Leaving out the smallest few of a minute does not help
//! against whoever sends a copy a second. But a path that has become shorter keeps so: each delay that follows is short. So a value counts as *confirmed*
//! once three in a row were no larger, and the floor is the smallest value, but no more than a margin below the smallest confirmed one. The margin is
//! there because on an empty path delays vary by less, and waiting for three in a row would lose the lowest of them.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::minimum::Minimum;

/// The smallest of recent values, with those left out that nothing confirms. Values are in ns.
#[derive(Clone, Debug)]
pub struct Floor {
    least: Minimum<i64>,
    confirmed: Minimum<i64>,
    recent: VecDeque<(Instant, i64)>,
    value: Option<i64>,
}

/// Values in a row that confirm the largest of them: with reports every 100 ms, a third of a second. Ours.
const IN_A_ROW: usize = 3;

/// Values that are older than the newest by more than this say nothing about the present: on slow lines reports are seconds apart. Ours.
const TOGETHER: Duration = Duration::from_secs(1);

impl Floor {
    /// No value yet; one holds for `span` to twice that.
    #[must_use]
    pub const fn over(span: Duration) -> Self {
        Self {
            least: Minimum::over(span),
            confirmed: Minimum::over(span),
            recent: VecDeque::new(),
            value: None,
        }
    }

    /// Takes a value in; it counts at once unless it is more than `margin` below what is confirmed.
    pub fn observe(&mut self, now: Instant, value: i64, margin: Duration) {
        if self.recent.len() == IN_A_ROW {
            self.recent.pop_front();
        }
        self.recent.push_back((now, value));
        self.least.observe(now, value);
        // Nothing speaks against the first one, behind which a queue may build at once.
        let is_first = self.confirmed.get().is_none();
        if (self.recent.len() == IN_A_ROW || is_first)
            && let Some(largest) = self.recent.iter().map(|(_, value)| *value).max()
        {
            self.confirmed.observe(now, largest);
        }
        let bound =
            self.confirmed.get().map_or(i64::MIN, |least| least.saturating_sub_unsigned(margin.as_nanos()));
        self.value = self.least.get().map(|least| least.max(bound));
    }

    /// The floor.
    #[must_use]
    pub const fn get(&self) -> Option<i64> {
        self.value
    }

    /// The newest value.
    #[must_use]
    pub fn newest(&self) -> Option<i64> {
        self.recent.back().map(|(_, value)| *value)
    }

    /// The smallest of the newest few values, of those that are not much older than the newest.
    #[must_use]
    pub fn least_of_newest(&self) -> Option<i64> {
        let (newest, _) = self.recent.back()?;
        self.recent.iter().filter(|(at, _)| *at + TOGETHER >= *newest).map(|(_, value)| *value).min()
    }

    /// What the newest few values come to is the floor from now on.
    pub fn accept(&mut self, now: Instant) {
        if let Some(least) = self.least_of_newest() {
            (self.least, self.confirmed) = (self.least.cleared(), self.confirmed.cleared());
            self.least.observe(now, least);
            self.confirmed.observe(now, least);
            self.value = Some(least);
        }
    }

    /// Forgets what was observed.
    pub fn clear(&mut self) {
        (self.least, self.confirmed) = (self.least.cleared(), self.confirmed.cleared());
        (self.recent, self.value) = (VecDeque::new(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Duration = Duration::from_nanos(10);

    fn floors(values: &[i64]) -> Vec<i64> {
        let mut floor = Floor::over(Duration::from_secs(60));
        let mut observe = |value| {
            floor.observe(Instant::ZERO, value, MARGIN);
            floor.get().unwrap()
        };
        values.iter().map(|value| observe(*value)).collect()
    }

    #[test]
    fn a_value_far_below_all_others_is_left_out_unless_two_more_follow() {
        assert_eq!(
            floors(&[200, 205, 201, 14, 203, 202, 14, 14, 201]),
            [200, 200, 200, 190, 190, 190, 190, 190, 190]
        );
        assert_eq!(floors(&[200, 205, 201, 14, 15, 16, 203]), [200, 200, 200, 190, 190, 14, 14]);
    }

    #[test]
    fn the_first_value_counts_though_others_are_larger() {
        assert_eq!(floors(&[100, 200, 201, 203]), [100; 4]);
    }

    #[test]
    fn what_is_a_little_less_counts_at_once() {
        assert_eq!(floors(&[200, 200, 200, 191, 250]), [200, 200, 200, 191, 191]);
    }

    #[test]
    fn what_is_older_than_a_second_says_nothing_of_the_present() {
        let mut floor = Floor::over(Duration::from_secs(60));
        for (seconds, value, least) in [(0, 50, 50), (1, 60, 50), (2, 70, 60), (4, 80, 80)] {
            floor.observe(Instant::ZERO + Duration::from_secs(seconds), value, MARGIN);
            assert_eq!((floor.newest(), floor.least_of_newest()), (Some(value), Some(least)));
        }
    }

    #[test]
    fn a_cleared_floor_knows_nothing() {
        let mut floor = Floor::over(Duration::from_secs(60));
        floor.observe(Instant::ZERO, 50, MARGIN);
        floor.clear();
        assert_eq!((floor.get(), floor.newest(), floor.least_of_newest()), (None, None, None));
        floor.observe(Instant::ZERO, 900, MARGIN);
        assert_eq!(floor.get(), Some(900), "the first one, as before");
    }

    #[test]
    fn what_is_accepted_counts_until_it_is_less() {
        let mut floor = Floor::over(Duration::from_secs(60));
        for value in [0, 0, 0, 503, 500, 501] {
            floor.observe(Instant::ZERO, value, MARGIN);
        }
        floor.accept(Instant::ZERO);
        assert_eq!(floor.get(), Some(500));
        floor.observe(Instant::ZERO, 100, MARGIN);
        assert_eq!(floor.get(), Some(490));
    }
}
