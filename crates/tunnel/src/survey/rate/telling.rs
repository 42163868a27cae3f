//! What whoever runs the gateway is told about the rate, and when: once, and when it has been so for a while.

use core::cmp::Reverse;

use base::{Duration, Instant, Rate};

use super::Aim;
use super::bottleneck::Capacity;
use super::minimum::Minimum;

/// What whoever runs the gateway should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The rate was found, or is another by more than half.
    Found {
        /// What the path carries, with all headers.
        measured: Rate,
    },
    /// The path carries less than the configured rate; it is paced at what it carries, unless it is not to be paced.
    TooFast {
        /// What it carries, with all headers.
        measured: Rate,
        /// How long packets waited when it was worst, before the rate was reduced.
        queueing: Duration,
        /// How many bytes of a hundred were lost then beyond what the channel loses.
        lost: u8,
    },
    /// The path carries more than the configured rate.
    TooSlow {
        /// What it carries, with all headers.
        measured: Rate,
    },
}

/// What was told, and what is about to be.
#[derive(Clone, Copy, Debug)]
pub struct Telling {
    /// What the latest train found, where it is more than is configured.
    suspected: Option<f64>,
    /// What two in a row did.
    too_slow: Option<f64>,
    is_slow_told: bool,
    /// Since when there has been something to tell.
    since: Option<Instant>,
    /// The capacity that was told.
    told: Option<f64>,
    /// The longest queue of late, and the most that was lost beyond the channel's losses, in percent.
    queueing: Minimum<Reverse<Duration>>,
    lost: Minimum<Reverse<u8>>,
}

/// A configured rate is wrong by this part. Ours.
pub const WRONG: f64 = 0.2;
/// What is told has been so for so long. Ours.
const FOR: Duration = Duration::from_secs(10);
/// A capacity is told again when it is more or less by this factor. Ours.
const OTHER: f64 = 1.5;

/// What was worst holds for this to twice this: what is told has been so for ten seconds, after a queue was seen. Ours.
const MEMORY: Duration = Duration::from_secs(20);

impl Default for Telling {
    fn default() -> Self {
        Self {
            suspected: None,
            too_slow: None,
            is_slow_told: false,
            since: None,
            told: None,
            queueing: Minimum::over(MEMORY),
            lost: Minimum::over(MEMORY),
        }
    }
}

impl Telling {
    /// A queue stands.
    pub fn on_queue(&mut self, now: Instant, standing: Duration) {
        self.queueing.observe(now, Reverse(standing));
    }

    /// A part of what was sent was lost beyond what the channel loses.
    pub fn on_losses(&mut self, now: Instant, beyond: f64) {
        self.lost.observe(now, Reverse((beyond.clamp(0.0, 1.0) * 100.0).round() as u8));
    }

    /// What was lost was the channel's after all.
    pub fn forget_losses(&mut self) {
        self.lost = self.lost.cleared();
    }

    /// A train found `bits` per second, where so much is `configured`; whether another one should confirm it.
    pub fn on_train(&mut self, configured: Rate, bits: f64) -> bool {
        let is_more = (configured.as_bps() as f64) < (1.0 - WRONG) * bits;
        let suspected = core::mem::replace(&mut self.suspected, is_more.then_some(bits));
        self.too_slow = self.suspected.zip(suspected).map(|(one, other)| one.min(other)).or(self.too_slow);
        is_more && suspected.is_none()
    }

    /// What to tell now. A capacity that `is_known` was measured, rather than only being known to be no less.
    pub fn poll(&mut self, now: Instant, aim: Aim, capacity: &Capacity, is_known: bool) -> Option<Finding> {
        if let Some(found) = self.too_slow.take()
            && !self.is_slow_told
        {
            self.is_slow_told = true;
            return Some(Finding::TooSlow { measured: rate(found) });
        }
        let bits = capacity.bits();
        match aim {
            Aim::Find => {
                let is_new = self.told.is_none_or(|told| bits > OTHER * told || bits < told / OTHER);
                // Growth is over, and has been for a while.
                self.lasts(now, is_new && is_known).then(|| {
                    self.told = Some(bits);
                    Finding::Found { measured: rate(bits) }
                })
            }
            Aim::Known(configured) => {
                let is_wrong = bits < (1.0 - WRONG) * configured.as_bps() as f64;
                (self.lasts(now, is_wrong) && self.told.is_none()).then(|| {
                    self.told = Some(bits);
                    let queueing = self.queueing.get().map_or(Duration::ZERO, |worst| worst.0);
                    let lost = self.lost.get().map_or(0, |worst| worst.0);
                    Finding::TooFast { measured: rate(bits), queueing, lost }
                })
            }
            Aim::Unlimited => None,
        }
    }

    /// Whether what is so has been for long enough.
    fn lasts(&mut self, now: Instant, is_so: bool) -> bool {
        if !is_so {
            self.since = None;
            return false;
        }
        now >= *self.since.get_or_insert(now) + FOR
    }
}

fn rate(bits: f64) -> Rate {
    Rate::from_bps(bits as u64).rounded()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// What is told at these times of these capacities, in Mbit/s.
    fn told(aim: Aim, steps: &[(u64, f64)]) -> Vec<(u64, u64)> {
        let mut telling = Telling::default();
        let mut told = Vec::new();
        for (now, megabits) in steps {
            let capacity = Capacity::new(megabits * 1e6, 0.0);
            match telling.poll(at(*now), aim, &capacity, true) {
                Some(Finding::Found { measured } | Finding::TooFast { measured, .. }) => {
                    told.push((*now, measured.as_bps() / 1_000_000));
                }
                Some(finding) => panic!("{finding:?}"),
                None => {}
            }
        }
        told
    }

    #[test]
    fn a_capacity_is_told_after_ten_seconds_and_again_when_it_is_more_by_half() {
        let steps = [
            (0, 10.0),
            (9, 10.0),
            (10, 10.0),
            (20, 14.0),
            (40, 16.0),
            (50, 16.0),
            (51, 16.0),
            (60, 10.0),
            (70, 10.0),
        ];
        assert_eq!(told(Aim::Find, &steps), [(10, 10), (50, 16), (70, 10)]);
        assert_eq!(told(Aim::Find, &[(0, 10.0), (9, 10.0)]), []);
    }

    #[test]
    fn a_capacity_that_still_grows_is_not_told() {
        let (mut telling, capacity) = (Telling::default(), Capacity::new(1e6, 1.0));
        for now in [0, 20] {
            assert_eq!(telling.poll(at(now), Aim::Find, &capacity, false), None);
        }
    }

    #[test]
    fn a_configured_rate_that_is_wrong_is_told_once() {
        let aim = Aim::Known(Rate::from_bps(10_000_000));
        let steps = [(0, 7.0), (5, 9.0), (6, 7.0), (15, 7.0), (16, 7.0), (40, 3.0), (60, 3.0)];
        assert_eq!(told(aim, &steps), [(16, 7)]);
        assert_eq!(told(Aim::Unlimited, &steps), []);
    }

    #[test]
    fn what_was_worst_while_too_much_was_sent_is_told() {
        let aim = Aim::Known(Rate::from_bps(10_000_000));
        let (mut telling, capacity) = (Telling::default(), Capacity::new(5e6, 0.0));
        for (now, standing, beyond) in [(100, 20, 0.0), (101, 600, 0.04), (102, 90, 0.306), (103, 20, -0.1)] {
            telling.on_queue(at(now), Duration::from_millis(standing));
            telling.on_losses(at(now), beyond);
            assert_eq!(telling.poll(at(now), aim, &capacity, true), None);
        }
        let told = |lost| Finding::TooFast {
            measured: Rate::from_bps(5_000_000),
            queueing: Duration::from_millis(600),
            lost,
        };
        let mut forgetful = telling;
        assert_eq!(telling.poll(at(111), aim, &capacity, true), Some(told(31)));
        forgetful.forget_losses();
        assert_eq!(forgetful.poll(at(111), aim, &capacity, true), Some(told(0)));
    }

    #[test]
    fn two_trains_that_find_a_quarter_more_than_is_configured_are_told_once() {
        let configured = Rate::from_bps(8_000_000);
        let (mut telling, capacity) = (Telling::default(), Capacity::new(8e6, 0.0));
        let mut poll = |found| {
            telling.on_train(configured, found);
            telling.poll(at(1), Aim::Known(configured), &capacity, true)
        };
        assert_eq!([poll(10.1e6), poll(9.9e6), poll(10.3e6)], [None; 3]);
        assert_eq!(poll(10.1e6), Some(Finding::TooSlow { measured: Rate::from_bps(10_100_000) }));
        assert_eq!([poll(20e6), poll(20e6)], [None; 2]);
    }

    #[test]
    fn one_train_that_finds_more_wants_another_to_confirm_it() {
        let (mut telling, configured) = (Telling::default(), Rate::from_bps(8_000_000));
        let asks = [9e6, 11e6, 11e6, 9e6, 11e6].map(|found| telling.on_train(configured, found));
        assert_eq!(asks, [false, true, false, false, true]);
    }
}
