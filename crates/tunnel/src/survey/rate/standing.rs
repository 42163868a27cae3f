//! The queue that stands in front of the bottleneck, told from one-way delays.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::minimum::Minimum;

/// Delays of late, against the smallest of the last minute or two.
///
/// One delay may be long because packets came in a bunch; a queue *stands* if each of the last few was long.
#[derive(Clone, Debug)]
pub struct Standing {
    /// In ns, plus an unknown constant.
    base: Minimum<i64>,
    recent: VecDeque<i64>,
    /// Whether the base is what stood when nothing helped, not an empty queue's.
    is_accepted: bool,
}

/// How long a smallest delay holds: clocks of 50 ppm drift apart by 3 ms in a minute.
const MEMORY: Duration = Duration::from_secs(60);
/// Delays that a queue must outlast.
const RECENT: usize = 3;

impl Default for Standing {
    fn default() -> Self {
        Self { base: Minimum::over(MEMORY), recent: VecDeque::new(), is_accepted: false }
    }
}

impl Standing {
    /// Takes in the delay of a stamp.
    pub fn observe(&mut self, now: Instant, delay: i64) {
        if self.base.get().is_none_or(|base| delay < base) {
            self.is_accepted = false;
        }
        self.base.observe(now, delay);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(delay);
    }

    /// How long the newest stamp waited.
    #[must_use]
    pub fn newest(&self) -> Duration {
        self.above_base(self.recent.back())
    }

    /// How long each of the newest few waited at least.
    #[must_use]
    pub fn standing(&self) -> Duration {
        self.above_base(self.recent.iter().min())
    }

    /// What stands now is no queue that sending less would empty: from now on it counts as the path's own delay.
    pub fn accept(&mut self, now: Instant) {
        if let Some(least) = self.recent.iter().min().copied() {
            self.base.clear();
            self.base.observe(now, least);
            self.is_accepted = true;
        }
    }

    /// Whether the path's own delay may be less than it seems.
    #[must_use]
    pub const fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    /// The other end's clock is another one from now on.
    pub fn clear(&mut self) {
        self.base.clear();
        self.recent.clear();
    }

    fn above_base(&self, delay: Option<&i64>) -> Duration {
        let above = delay.zip(self.base.get()).map_or(0, |(delay, base)| delay.saturating_sub(base));
        Duration::from_nanos(above.max(0).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn one_long_delay_is_no_queue_and_three_are() {
        let mut queue = Standing::default();
        let mut now = Instant::ZERO;
        let mut observe = |delay: i64| {
            now += Duration::from_millis(100);
            queue.observe(now, -5000 * MS + delay * MS);
            (queue.newest().as_millis(), queue.standing().as_millis())
        };
        assert_eq!([observe(300), observe(380), observe(301)], [(0, 0), (80, 0), (1, 0)]);
        assert_eq!([observe(350), observe(340), observe(345)], [(50, 1), (40, 1), (45, 40)]);
    }

    #[test]
    fn an_accepted_queue_is_the_paths_delay_until_it_is_less() {
        let mut queue = Standing::default();
        queue.observe(Instant::ZERO, 0);
        (0..3).for_each(|_| queue.observe(Instant::ZERO, 500 * MS));
        queue.accept(Instant::ZERO);
        assert_eq!(queue.newest(), Duration::ZERO);
        queue.observe(Instant::ZERO, 530 * MS);
        assert_eq!(queue.newest(), Duration::from_millis(30));
        queue.observe(Instant::ZERO, 100 * MS);
        queue.observe(Instant::ZERO, 150 * MS);
        assert_eq!(queue.newest(), Duration::from_millis(50));
    }
}
