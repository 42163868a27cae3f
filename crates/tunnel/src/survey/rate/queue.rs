//! The queue that stands in front of the bottleneck, and the one that should.

use base::{Duration, Instant, Rate};

use super::floor::Floor;
use super::standing::Standing;
use crate::survey::report::{self, Sample};

/// What delays tell: the queue that stands, the round trip, and the queue that is kept.
#[derive(Clone, Debug)]
pub struct Queue {
    standing: Standing,
    /// The smallest of the last minutes.
    round_trip: Floor,
    /// The newest round trip, queues included.
    present_round_trip: Duration,
}

/// The queue that is kept: a quarter of a round trip within these bounds, enough to see that the bottleneck is busy. Ours.
const TARGET: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(20));
/// Packets of 1500 bytes that the queue holds at least, since one cannot be told from none. Ours.
const TARGET_BITS: u64 = 2 * 1500 * 8;
/// A queue of this many targets is too long. Ours.
const HIGH: u64 = 2;
/// A delay that is less than all others by one part in this many of the target is believed at once: [`super::floor`]. Ours.
const DOUBTED: u64 = 2;
/// The time in which a queue is to reach its target: at least this, half a round trip, and two reports, since nothing is corrected between them. Ours.
const SETTLING: Duration = Duration::from_millis(200);
/// Two reports, at most: on the slowest lines it is better to correct too much than too late. Ours.
const LONGEST_SETTLING: Duration = Duration::from_secs(6);
/// How long a smallest round trip holds. Ours.
const ROUND_TRIP_MEMORY: Duration = Duration::from_secs(300);

impl Default for Queue {
    fn default() -> Self {
        Self {
            standing: Standing::default(),
            round_trip: Floor::over(ROUND_TRIP_MEMORY),
            present_round_trip: Duration::ZERO,
        }
    }
}

impl Queue {
    /// Takes in the delays of a stamp and its answer. The bottleneck carries `capacity` bits per second.
    pub fn observe(&mut self, now: Instant, sample: &Sample, capacity: f64) {
        let margin = self.margin(capacity);
        self.round_trip.observe(now, sample.round_trip.as_nanos().cast_signed(), margin);
        self.present_round_trip = sample.round_trip.max(self.round_trip().unwrap_or(Duration::ZERO));
        self.standing.observe(now, sample.delay, margin);
    }

    /// The smallest delay of late, in ns.
    #[must_use]
    pub fn least_delay(&self) -> Option<i64> {
        self.standing.base()
    }

    /// By how many ns a delay is above the smallest; zero without one.
    #[must_use]
    pub fn above(&self, delay: i64) -> i64 {
        self.standing.above(delay)
    }

    /// A delay that is less than all others by no more than this is believed at once.
    fn margin(&self, capacity: f64) -> Duration {
        Duration::from_nanos(self.target(capacity).as_nanos() / DOUBTED)
    }

    /// Whether the newest stamp arrived earlier than the path carries anything, as far as is known.
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.standing.is_early()
    }

    /// A train was answered after so long: the round trip, as long as nothing better is known.
    pub fn on_train(&mut self, round_trip: Duration) {
        if self.present_round_trip == Duration::ZERO {
            self.present_round_trip = round_trip;
        }
    }

    /// The other end's clock is another one from now on.
    pub fn restart(&mut self) {
        self.standing.clear();
    }

    /// What stands now is no queue that sending less would empty: from now on it counts as the path's own delay.
    pub fn accept(&mut self, now: Instant) {
        self.standing.accept(now);
        self.round_trip.accept(now);
    }

    /// Whether the path's own delay may be less than it seems.
    #[must_use]
    pub const fn is_accepted(&self) -> bool {
        self.standing.is_accepted()
    }

    /// How long each of the newest few stamps waited at least.
    #[must_use]
    pub fn standing(&self) -> Duration {
        self.standing.standing()
    }

    /// How long the newest stamp waited.
    #[must_use]
    pub fn newest(&self) -> Duration {
        self.standing.newest()
    }

    /// The smallest round trip of the last minutes.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.get().map(|nanos| Duration::from_nanos(nanos.max(0).cast_unsigned()))
    }

    /// The newest round trip, queues included; zero before the first.
    #[must_use]
    pub const fn present_round_trip(&self) -> Duration {
        self.present_round_trip
    }

    /// Whether the bottleneck, which carries `capacity` bits per second, has been busy for the last few stamps.
    #[must_use]
    pub fn is_busy(&self, capacity: f64) -> bool {
        self.standing().saturating_mul(2) >= self.target(capacity)
    }

    /// Whether a queue stands that is too long for a bottleneck of `capacity` bits per second.
    #[must_use]
    pub fn is_long(&self, capacity: f64) -> bool {
        self.standing() >= self.high(capacity)
    }

    /// Whether no more stands than is kept, above the smallest delay from before a queue was accepted.
    #[must_use]
    pub fn is_empty(&self, capacity: f64) -> bool {
        self.standing.above_empty() <= self.target(capacity)
    }

    /// Whether a queue that is too long stands above the smallest delay from before one was accepted.
    #[must_use]
    pub fn is_above_empty(&self, capacity: f64) -> bool {
        self.standing.above_empty() >= self.high(capacity)
    }

    /// A queue from this one on is too long for a bottleneck of `capacity` bits per second.
    #[must_use]
    pub fn high(&self, capacity: f64) -> Duration {
        self.target(capacity).saturating_mul(HIGH)
    }

    /// The queue to keep in front of a bottleneck of `capacity` bits per second.
    #[must_use]
    pub fn target(&self, capacity: f64) -> Duration {
        let quarter = self.round_trip().map_or(TARGET.1, |time| Duration::from_nanos(time.as_nanos() / 4));
        let packets = Duration::from_secs_f64(TARGET_BITS as f64 / capacity.max(super::LOWEST));
        quarter.clamp(TARGET.0, TARGET.1).max(packets)
    }

    /// The time in which a queue is to reach its target.
    #[must_use]
    pub fn settling(&self, capacity: f64) -> Duration {
        let half = Duration::from_nanos(self.present_round_trip.as_nanos() / 2);
        let rate = Rate::from_bps(capacity.max(super::LOWEST) as u64);
        let reports = report::interval(Some(rate)).saturating_mul(2).min(LONGEST_SETTLING);
        SETTLING.max(half).max(reports).max(self.target(capacity))
    }

    /// By what part of the capacity more is sent to build the queue that is kept.
    #[must_use]
    pub fn least_growth(&self, capacity: f64) -> f64 {
        self.target(capacity).as_secs_f64() / self.settling(capacity).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::Long;
    use crate::survey::silence::Silence;

    /// A path with this round trip, and a queue that has stood for this long.
    fn queue(round_trip: u64, waited: u64) -> Queue {
        let mut queue = Queue::default();
        for wait in [0, waited, waited, waited] {
            let sample = Sample {
                sent_at: Instant::ZERO,
                round_trip: Duration::from_millis(round_trip + wait),
                delay: (wait * 1_000_000).cast_signed(),
                span: None,
                missed: 0,
                after: crate::survey::report::Totals::default(),
                long: Long::default(),
                silence: Silence::default(),
            };
            queue.observe(Instant::ZERO, &sample, 1e7);
        }
        queue
    }

    #[test]
    fn the_queue_that_is_kept_is_a_quarter_of_a_round_trip_or_two_packets() {
        for (round_trip, capacity, millis) in [(600, 1e7, 20), (40, 1e7, 10), (4, 1e8, 5), (600, 1e5, 240)] {
            assert_eq!(queue(round_trip, 0).target(capacity).as_millis(), millis, "{round_trip}, {capacity}");
        }
    }

    #[test]
    fn half_of_the_target_makes_the_bottleneck_busy_and_two_targets_are_too_long() {
        for (waited, is_busy, is_long) in
            [(9, false, false), (10, true, false), (39, true, false), (40, true, true)]
        {
            let queue = queue(600, waited);
            assert_eq!((queue.is_busy(1e7), queue.is_long(1e7)), (is_busy, is_long), "{waited}");
        }
    }

    #[test]
    fn a_queue_settles_within_half_of_the_present_round_trip() {
        assert_eq!(queue(600, 0).settling(1e7).as_millis(), 300);
        assert_eq!(queue(600, 400).settling(1e7).as_millis(), 500);
        assert_eq!(queue(20, 0).settling(1e7).as_millis(), 200);
        assert_eq!(queue(20, 0).settling(64e3).as_millis(), 3225);
        assert!((queue(600, 0).least_growth(1e7) - 20.0 / 300.0).abs() < 1e-9);
    }

    #[test]
    fn what_stands_above_an_empty_queue_is_told_whatever_was_accepted() {
        let mut queue = queue(600, 100);
        queue.accept(Instant::ZERO);
        assert_eq!((queue.standing(), queue.is_long(1e7)), (Duration::ZERO, false));
        assert!(queue.is_above_empty(1e7) && !queue.is_above_empty(1e5));
    }

    #[test]
    fn no_more_than_what_is_kept_is_empty() {
        for (waited, is_empty) in [(20, true), (21, false)] {
            let queue = queue(600, waited);
            assert_eq!((queue.is_empty(1e7), queue.newest().as_millis()), (is_empty, waited), "{waited}");
        }
    }

    #[test]
    fn a_train_tells_the_round_trip_until_a_report_does() {
        let mut queue = Queue::default();
        for millis in [90, 80] {
            queue.on_train(Duration::from_millis(millis));
            assert_eq!(queue.present_round_trip().as_millis(), 90);
        }
    }

    #[test]
    fn another_clock_makes_no_queue() {
        let mut queue = queue(600, 100);
        assert_eq!((queue.standing().as_millis(), queue.above(250_000_000)), (100, 250_000_000));
        queue.restart();
        assert_eq!((queue.standing(), queue.above(250_000_000)), (Duration::ZERO, 0));
        assert_eq!(queue.round_trip(), Some(Duration::from_millis(600)), "no clock tells that");
    }

    /// Half of the target below all others may be chance on an empty path.
    #[test]
    fn what_is_far_below_all_others_is_early() {
        for (delay, is_early) in [(-10, false), (-11, true), (0, false), (5, false)] {
            let mut queue = queue(600, 0);
            let sample = Sample {
                sent_at: Instant::ZERO,
                round_trip: Duration::from_millis(600),
                delay: delay * 1_000_000,
                span: None,
                missed: 0,
                after: crate::survey::report::Totals::default(),
                long: Long::default(),
                silence: Silence::default(),
            };
            queue.observe(Instant::ZERO, &sample, 1e7);
            assert_eq!(queue.is_early(), is_early, "{delay} ms");
        }
    }
}
