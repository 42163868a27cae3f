//! Whether the path has a bottleneck at all.
//!
//! Between two machines on a fast wire nothing is slower than the machines. Then no rate is the right one: pacing costs more than it gives, and what the
//! kernel's own queues hold back need not be dropped. Trains tell: where there is no bottleneck they arrive as fast as they leave, far above what is
//! paced. Times of tens of microseconds are noisy, and a receiver that is late reads a whole train at once; so several must agree that left some time apart,
//! at rates at which a link would spread a train over milliseconds. A queue that stands, or losses, end it, and there is a pause before the next try, doubled
//! each time.

use base::{Duration, Instant};

use crate::survey::train::TrainReport;

/// What trains said of late, and what came of believing them.
#[derive(Clone, Copy, Debug)]
pub struct Openness {
    /// Trains that found no bottleneck, less twice as many as found one.
    free: u32,
    is_open: bool,
    not_before: Instant,
    pause: Duration,
    /// Samples in a row that found a queue.
    against: u32,
}

/// Trains that must agree, one that does not outweighing two. Ours.
const AGREE: u32 = 5;
/// Between them. Ours: a machine that does something else is back by then.
pub const SPACING: Duration = Duration::from_millis(50);
/// A train arrives as fast as it leaves if it takes no more time, but for a quarter and what clocks, interrupts and turns of a loop are late by. Ours.
const LATE: Duration = Duration::from_micros(100);
/// Slower paths have a bottleneck, bits per second: there a full train takes nearly 4 ms. Ours.
const SLOWEST: f64 = 200e6;
/// Datagrams of a train that tells: half of a full one. Ours.
const LEAST: u64 = 32;
/// A train's rate is far above what is paced from this factor on. Ours.
const FAR_ABOVE: f64 = 1.5;
/// Samples that find a queue, one after the other, before it is taken for one: a machine that is busy is late too. Ours.
const AGAINST: u32 = 3;
/// After an end there is no other try before the first, doubled each time up to the second. Ours.
const PAUSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(640));

impl Default for Openness {
    fn default() -> Self {
        Self { free: 0, is_open: false, not_before: Instant::ZERO, pause: PAUSE.0, against: 0 }
    }
}

impl Openness {
    /// Whether there is no bottleneck, as far as is known.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes in a train of frames with so many `bits`, while `capacity` bits per second are known to pass; whether another one should follow soon.
    pub fn on_train(&mut self, now: Instant, passage: &TrainReport, bits: u64, capacity: f64) -> bool {
        let TrainReport { sent_in, received_in, sent, received, .. } = *passage;
        if sent.datagrams < LEAST || capacity < SLOWEST || now < self.not_before {
            return false;
        }
        let late = Duration::from_nanos(sent_in.as_nanos() / 4) + LATE;
        let rate = bits as f64 / received_in.as_secs_f64().max(1e-9);
        let is_free = received_in <= sent_in + late
            && received.datagrams >= sent.datagrams
            && rate >= FAR_ABOVE * capacity;
        self.free = if is_free { self.free + 1 } else { self.free.saturating_sub(2) };
        self.is_open = self.free >= AGREE;
        is_free && !self.is_open
    }

    /// Takes in whether a queue stands that is too long.
    pub fn on_sample(&mut self, now: Instant, is_long: bool) {
        self.against = if is_long { self.against + 1 } else { 0 };
        if self.against >= AGAINST {
            self.close(now);
        }
    }

    /// There is a bottleneck: it queues, or drops.
    pub fn close(&mut self, now: Instant) {
        (self.free, self.against) = (0, 0);
        if self.is_open {
            self.is_open = false;
            self.not_before = now + self.pause;
            self.pause = self.pause.saturating_mul(2).min(PAUSE.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::Totals;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A full train that left within 150 us and of which so much arrived within so many us.
    fn passage(arrived: u64, micros: u64) -> TrainReport {
        let totals = |datagrams| Totals { datagrams, bytes: 1500 * datagrams };
        TrainReport {
            is_padding: false,
            is_long: true,
            sent_at: ms(0),
            sent: totals(65),
            sent_in: Duration::from_micros(150),
            received: totals(arrived),
            received_in: Duration::from_micros(micros),
        }
    }

    /// Whether trains like these, 50 ms apart, find that there is no bottleneck on a path that is known to carry so many Mbit/s.
    fn is_open(trains: &[(u64, u64)], megabits: f64) -> bool {
        let mut openness = Openness::default();
        for (at, (arrived, micros)) in trains.iter().enumerate() {
            let passage = passage(*arrived, *micros);
            openness.on_train(ms(50 * at as u64), &passage, passage.received.bytes * 8, megabits * 1e6);
        }
        openness.is_open()
    }

    #[test]
    fn five_trains_that_arrive_as_fast_as_they_leave_find_no_bottleneck() {
        assert!(!is_open(&[(65, 160); 4], 1000.0) && is_open(&[(65, 160); 5], 1000.0));
        assert!(is_open(&[(65, 0); 5], 1000.0), "all were read at once");
        assert!(is_open(&[(65, 287); 5], 1000.0) && !is_open(&[(65, 288); 20], 1000.0));
        assert!(!is_open(&[(64, 160); 20], 1000.0), "one of each is lost");
        assert!(!is_open(&[(65, 160); 20], 199.0), "slower than any wire");
        assert!(!is_open(&[(65, 160); 20], 3500.0), "no more than is paced");
    }

    #[test]
    fn one_train_that_is_spread_outweighs_two_that_are_not() {
        let mut trains = vec![(65, 160); 4];
        trains.extend([(65, 13_000), (65, 160), (65, 160)]);
        assert!(!is_open(&trains, 1000.0));
        trains.push((65, 160));
        assert!(is_open(&trains, 1000.0));
        // As a bottleneck does that is hidden by a late receiver more often than not.
        assert!(!is_open(&[(65, 0), (65, 0), (65, 2000)].repeat(20), 1000.0));
    }

    #[test]
    fn a_queue_or_losses_end_it_for_longer_each_time() {
        let mut openness = Openness::default();
        let mut now = ms(0);
        for pause in [10, 20, 40] {
            let passage = passage(65, 160);
            let mut open = |at| {
                for _ in 0..AGREE {
                    openness.on_train(at, &passage, passage.received.bytes * 8, 1e9);
                }
                openness.is_open()
            };
            assert!(open(now));
            openness.on_sample(now, true);
            openness.on_sample(now, true);
            openness.on_sample(now, false);
            assert!(openness.is_open(), "late now and then");
            if pause == 10 {
                openness.close(now);
            } else {
                (0..AGAINST).for_each(|_| openness.on_sample(now, true));
            }
            let again = now + Duration::from_secs(pause);
            let mut open = |at| {
                for _ in 0..AGREE {
                    openness.on_train(at, &passage, passage.received.bytes * 8, 1e9);
                }
                openness.is_open()
            };
            assert!(!open(again - Duration::from_millis(1)), "{pause} s");
            now = again;
        }
    }

    #[test]
    fn another_train_follows_soon_until_enough_agree() {
        let (mut openness, passage) = (Openness::default(), passage(65, 160));
        let mut follows = || openness.on_train(ms(0), &passage, passage.received.bytes * 8, 1e9);
        assert_eq!([(); AGREE as usize].map(|()| follows()), [true, true, true, true, false]);
    }

    #[test]
    fn half_of_a_full_train_tells() {
        for (datagrams, is_open) in [(LEAST, true), (LEAST - 1, false)] {
            let totals = Totals { datagrams, bytes: 1500 * datagrams };
            let half = TrainReport { sent: totals, received: totals, ..passage(0, 160) };
            let mut openness = Openness::default();
            for _ in 0..AGREE {
                openness.on_train(ms(0), &half, totals.bytes * 8, 1e9);
            }
            assert_eq!(openness.is_open(), is_open, "{datagrams}");
        }
    }
}
