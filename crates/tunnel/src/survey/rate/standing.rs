//! The queue that stands in front of the bottleneck, told from one-way delays.

use base::{Duration, Instant};

use super::floor::Floor;

/// Delays of late, against the smallest of the last minute or two that can be believed.
///
/// One delay may be long because packets came in a bunch; a queue *stands* if each of the last few was long.
#[derive(Clone, Debug)]
pub struct Standing {
    /// In ns, plus an unknown constant.
    base: Floor,
    /// What stood when nothing helped, while that is the base instead of an empty queue's delay.
    accepted: Option<i64>,
    /// The base before the first that was accepted.
    empty: Option<i64>,
}

/// How long a smallest delay holds: clocks of 50 ppm drift apart by 3 ms in a minute.
const MEMORY: Duration = Duration::from_secs(60);

impl Default for Standing {
    fn default() -> Self {
        Self { base: Floor::over(MEMORY), accepted: None, empty: None }
    }
}

impl Standing {
    /// Takes in the delay of a stamp. One that is more than `margin` below what is confirmed is left out until others confirm it.
    pub fn observe(&mut self, now: Instant, delay: i64, margin: Duration) {
        self.base.observe(now, delay, margin);
        let margin = margin.as_nanos();
        let is_base = |accepted: &i64| self.base.get() >= Some(accepted.saturating_sub_unsigned(margin));
        self.accepted = self.accepted.filter(is_base);
        let is_above = |empty: &i64| self.base.get() > Some(empty.saturating_add_unsigned(margin));
        self.empty = self.empty.filter(is_above);
    }

    /// How long the newest stamp waited.
    #[must_use]
    pub fn newest(&self) -> Duration {
        self.above_base(self.base.newest())
    }

    /// How long each of the newest few waited at least, as far as they came within a second.
    #[must_use]
    pub fn standing(&self) -> Duration {
        self.above_base(self.base.least_of_newest())
    }

    /// How long each of the newest few waited at least, by the base before anything was accepted.
    #[must_use]
    pub fn above_empty(&self) -> Duration {
        let least = self.base.least_of_newest();
        let above = least.zip(self.empty).map_or(0, |(least, empty)| least.saturating_sub(empty));
        self.standing().max(Duration::from_nanos(above.max(0).cast_unsigned()))
    }

    /// The smallest delay of late.
    #[must_use]
    pub fn base(&self) -> Option<i64> {
        self.base.get()
    }

    /// By how many ns a delay is above the base; zero without one.
    #[must_use]
    pub fn above(&self, delay: i64) -> i64 {
        self.base.get().map_or(0, |base| delay.saturating_sub(base))
    }

    /// Whether the newest stamp arrived earlier than the path carries anything, as far as is known.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.base.newest() < self.base.get()
    }

    /// What stands now is no queue that sending less would empty: from now on it counts as the path's own delay.
    pub fn accept(&mut self, now: Instant) {
        self.empty = self.empty.or_else(|| self.base.get());
        self.base.accept(now);
        self.accepted = self.base.get();
    }

    /// Whether the path's own delay may be less than it seems.
    #[must_use]
    pub const fn is_accepted(&self) -> bool {
        self.accepted.is_some()
    }

    /// The other end's clock is another one from now on.
    pub fn clear(&mut self) {
        self.base.clear();
        self.empty = None;
    }

    fn above_base(&self, delay: Option<i64>) -> Duration {
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
            queue.observe(now, -5000 * MS + delay * MS, Duration::from_millis(10));
            (queue.newest().as_millis(), queue.standing().as_millis())
        };
        assert_eq!([observe(300), observe(380), observe(301)], [(0, 0), (80, 0), (1, 0)]);
        assert_eq!([observe(350), observe(340), observe(345)], [(50, 1), (40, 1), (45, 40)]);
    }

    #[test]
    fn an_accepted_queue_is_the_paths_delay_until_it_is_less() {
        let mut queue = Standing::default();
        let observe = |queue: &mut Standing, delay: i64| {
            queue.observe(Instant::ZERO, delay * MS, Duration::from_millis(10));
            (queue.newest().as_millis(), queue.is_early())
        };
        for delay in [0, 500, 500, 500] {
            observe(&mut queue, delay);
        }
        queue.accept(Instant::ZERO);
        assert_eq!((queue.newest(), queue.is_accepted()), (Duration::ZERO, true));
        assert_eq!(observe(&mut queue, 530), (30, false));
        assert_eq!(
            [100, 120, 110].map(|delay| observe(&mut queue, delay)),
            [(0, true), (0, true), (0, false)]
        );
        assert!(!queue.is_accepted());
        assert_eq!(observe(&mut queue, 150), (40, false));
    }

    /// Values of a queue that observed these delays in ms, 10 ms apart at most for the same.
    fn observed(delays: &[i64]) -> Standing {
        let mut queue = Standing::default();
        for delay in delays {
            queue.observe(Instant::ZERO, delay * MS, Duration::from_millis(10));
        }
        queue
    }

    #[test]
    fn another_clock_forgets_all() {
        let mut queue = observed(&[0, 500, 500, 500]);
        assert_eq!((queue.above(700 * MS), queue.standing().as_millis()), (700 * MS, 500));
        queue.accept(Instant::ZERO);
        assert_eq!(queue.above_empty().as_millis(), 500);
        queue.clear();
        assert_eq!((queue.above(700 * MS), queue.newest()), (0, Duration::ZERO));
        queue.observe(Instant::ZERO, 9000 * MS, Duration::from_millis(10));
        assert_eq!((queue.newest(), queue.above_empty()), (Duration::ZERO, Duration::ZERO));
    }

    /// The margin is what an empty path's delays vary by.
    #[test]
    fn what_was_accepted_holds_within_the_margin() {
        let mut queue = observed(&[0, 500, 500, 500]);
        queue.accept(Instant::ZERO);
        let mut observe = |delay: i64| {
            for _ in 0..3 {
                queue.observe(Instant::ZERO, delay * MS, Duration::from_millis(10));
            }
            (queue.is_accepted(), queue.above_empty().as_millis())
        };
        assert_eq!(
            [observe(490), observe(489), observe(11), observe(10)],
            [(true, 490), (false, 489), (false, 11), (false, 0)]
        );
    }
}
