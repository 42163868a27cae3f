//! What trains ([`crate::survey::train`]) found of the bottleneck, and steps of the rate that are taken on their word.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::window::Line;
use crate::survey::train::TrainReport;

/// The latest trains, and the latest jump.
#[derive(Clone, Debug)]
pub struct TrainEstimates {
    /// What they found, the newest last.
    found: VecDeque<Found>,
    /// What the newest found, even if it is to be forgotten.
    latest: f64,
    /// The latest jump and when it was, while it is not known to be right.
    jump: Option<(f64, Instant)>,
    not_before: Instant,
    pause: Duration,
}

/// What a train found, in bits per second.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// When its answer came.
    at: Instant,
    /// When it left.
    left: Instant,
    /// What the bottleneck carries.
    bits: f64,
    /// What of it arrived, whatever was lost.
    passed: f64,
}

/// Arrivals are not told apart better than by a part of this. Ours.
const SHORTEST_PASSAGE: Duration = Duration::from_millis(2);
/// What trains find holds for so long. Ours.
const MEMORY: Duration = Duration::from_secs(30);
/// Trains that are remembered. Ours.
const KEPT: usize = 5;
/// Trains that have to find others in the bottleneck before that is believed. Ours.
const TELLING: usize = 2;
/// Two trains that find more than this part of what is known make the rate jump. Ours.
const FAR_ABOVE: f64 = 1.2;
/// A jump goes to this part of what they found. Ours.
pub const TRUSTED: f64 = 0.97;
/// A jump goes to this part of what was known, at most. Ours.
const LONGEST_JUMP: f64 = 4.0;
/// A jump was too high if less than this part of it is carried. Ours.
const CARRIED: f64 = 0.8;
/// After a jump that was too high there is none before the first, doubled each time up to the second. Ours.
const PAUSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(160));

impl Default for TrainEstimates {
    fn default() -> Self {
        Self { found: VecDeque::new(), latest: 0.0, jump: None, not_before: Instant::ZERO, pause: PAUSE.0 }
    }
}

impl TrainEstimates {
    /// Takes in a train on a channel that loses the part `loss` of what is sent; what it found, in bits per second, if anything.
    pub fn observe(&mut self, now: Instant, passage: &TrainReport, line: Line, loss: f64) -> Option<f64> {
        let sent = line.bits(passage.sent) as f64;
        let arrived = line.bits(passage.received) as f64 / (1.0 - loss);
        let time = passage.received_in.max(passage.sent_in).max(SHORTEST_PASSAGE).as_secs_f64();
        // A part of it must have come, or what is measured is something else.
        let found = (arrived * 4.0 > sent).then(|| sent.min(arrived) / time)?;
        if self.found.len() == KEPT {
            self.found.pop_front();
        }
        let passed = line.bits(passage.received) as f64 / time;
        self.latest = found;
        self.found.push_back(Found { at: now, left: passage.sent_at, bits: found, passed });
        Some(found)
    }

    /// There is another bottleneck: what trains found before tells nothing about it.
    pub fn forget(&mut self) {
        self.found.clear();
    }

    /// Whether there has been only one train.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.found.len() == 1
    }

    /// Whether the newest train found far more than `capacity`.
    #[must_use]
    pub fn is_above(&self, capacity: f64) -> bool {
        self.newest() > FAR_ABOVE * capacity
    }

    /// What the next train may find: what the last one did, if that was far more than `capacity`.
    #[must_use]
    pub fn expected(&self, capacity: f64) -> f64 {
        if self.is_above(capacity) { self.newest().min(capacity * LONGEST_JUMP) } else { capacity }
    }

    /// The capacity to jump to from `capacity`, if the last two trains found far more and the last jump was right.
    #[must_use]
    pub fn poll_jump(&self, now: Instant, capacity: f64) -> Option<f64> {
        let before = self.found.iter().rev().nth(1).map_or(0.0, |train| train.bits);
        let both = self.newest().min(before).min(capacity * LONGEST_JUMP);
        (now >= self.not_before && both > FAR_ABOVE * capacity).then_some(both * TRUSTED)
    }

    /// Whether there may be a jump again.
    #[must_use]
    pub fn may_jump(&self, now: Instant) -> bool {
        now >= self.not_before
    }

    /// The rate has jumped to this.
    pub const fn on_jump(&mut self, now: Instant, to: f64) {
        self.jump = Some((to, now));
    }

    /// So much was carried: whether the latest jump went too high shows after a `round_trip`.
    pub fn check_jump(&mut self, now: Instant, carried: f64, round_trip: Duration) {
        let Some((to, at)) = self.jump else { return };
        if now < at + round_trip {
            return;
        }
        if carried < CARRIED * to {
            self.not_before = now + self.pause;
            self.pause = self.pause.saturating_mul(2).min(PAUSE.1);
        } else {
            self.pause = PAUSE.0;
        }
        self.jump = None;
    }

    /// What trains found lately, the middle one.
    #[must_use]
    pub fn bottleneck(&self, now: Instant) -> Option<f64> {
        let recent = self.found.iter().filter(|train| now < train.at + MEMORY);
        let mut recent: Vec<f64> = recent.map(|train| train.bits).collect();
        recent.sort_by(f64::total_cmp);
        recent.get(recent.len() / 2).copied()
    }

    /// At what rate those arrived that left from `since` on, the slowest, if there are enough of them to tell.
    #[must_use]
    pub fn passed_since(&self, since: Instant) -> Option<f64> {
        let passed = self.found.iter().filter(|train| train.left >= since).map(|train| train.passed);
        (passed.clone().count() >= TELLING).then(|| passed.fold(f64::INFINITY, f64::min))
    }

    /// What the newest train of all found, in bits per second; zero before the first.
    #[must_use]
    pub const fn latest(&self) -> f64 {
        self.latest
    }

    fn newest(&self) -> f64 {
        self.found.back().map_or(0.0, |train| train.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::report::Totals;

    const LINE: Line = Line { overhead: 0 };

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Ten datagrams of 1250 bytes that left within 1 ms, of which `arrived` come within `millis`.
    fn passage(arrived: u64, millis: u64) -> TrainReport {
        let totals = |datagrams| Totals { datagrams, bytes: 1250 * datagrams };
        TrainReport {
            is_padding: false,
            is_long: true,
            sent_at: Instant::ZERO,
            sent: totals(10),
            sent_in: Duration::from_millis(1),
            received: totals(arrived),
            received_in: Duration::from_millis(millis),
        }
    }

    /// Trains that found these bits per second, a second apart.
    fn trains(found: &[u64]) -> TrainEstimates {
        let mut trains = TrainEstimates::default();
        for (at, bits) in found.iter().enumerate() {
            trains.observe(ms(1000 * at as u64), &passage(10, 100_000_000 / bits), LINE, 0.0);
        }
        trains
    }

    #[test]
    fn a_train_finds_what_arrived_of_it_in_its_time() {
        let mut trains = TrainEstimates::default();
        let mut found = |passage, loss| trains.observe(ms(0), &passage, LINE, loss).map(f64::round);
        assert_eq!(found(passage(10, 10), 0.0), Some(10e6));
        assert_eq!(found(passage(5, 10), 0.0), Some(5e6));
        assert_eq!(found(passage(5, 10), 0.5), Some(10e6), "what the channel lost has passed the bottleneck");
        assert_eq!(found(passage(2, 10), 0.0), None);
        assert_eq!(found(passage(10, 0), 0.0), Some(50e6), "times are not told so well");
        assert_eq!(
            found(TrainReport { sent_in: Duration::from_millis(20), ..passage(10, 10) }, 0.0),
            Some(5e6)
        );
    }

    #[test]
    fn two_trains_far_above_make_a_jump_fourfold_at_most() {
        let jump = |found: &[u64]| trains(found).poll_jump(ms(5000), 1e6);
        assert_eq!((jump(&[2_000_000]), jump(&[2_000_000, 1_100_000])), (None, None));
        assert_eq!((jump(&[2_000_000, 4_000_000]), jump(&[10_000_000; 2])), (Some(1.94e6), Some(3.88e6)));
        assert_eq!(trains(&[10_000_000]).expected(1e6), 4e6);
        assert_eq!(trains(&[1_100_000]).expected(1e6), 1e6);
    }

    #[test]
    fn a_jump_that_was_too_high_is_followed_by_none_for_a_while() {
        let mut trains = trains(&[4_000_000; 2]);
        for (at, pause) in [(2000, 10_000), (20_000, 20_000), (60_000, 40_000)] {
            trains.on_jump(ms(at), 4e6);
            trains.check_jump(ms(at + 50), 1e6, Duration::from_millis(100));
            assert!(trains.may_jump(ms(at + 50)), "too early to say");
            trains.check_jump(ms(at + 100), 1e6, Duration::from_millis(100));
            let again = at + 100 + pause;
            assert!(!trains.may_jump(ms(again - 1)) && trains.may_jump(ms(again)), "after {at} ms");
            assert!(trains.poll_jump(ms(again - 1), 1e6).is_none());
        }
        trains.on_jump(ms(200_000), 4e6);
        trains.check_jump(ms(200_100), 3.5e6, Duration::from_millis(100));
        assert_eq!((trains.may_jump(ms(200_100)), trains.pause), (true, PAUSE.0));
    }

    #[test]
    fn the_bottleneck_is_the_middle_of_the_last_five_trains_for_half_a_minute() {
        let trains =
            trains(&[50_000_000, 50_000_000, 10_000_000, 1_000_000, 2_000_000, 10_000_000, 50_000_000]);
        assert_eq!(trains.bottleneck(ms(7000)).map(f64::round), Some(10e6));
        assert_eq!(trains.bottleneck(ms(35_500)).map(f64::round), Some(50e6));
        assert_eq!(trains.bottleneck(ms(36_000)), None);
    }

    #[test]
    fn two_trains_that_left_since_tell_what_passes_whatever_the_channel_loses() {
        let mut trains = TrainEstimates::default();
        let mut observe = |left, arrived| {
            trains.observe(ms(9000), &TrainReport { sent_at: ms(left), ..passage(arrived, 10) }, LINE, 0.5);
            [0, 1000, 1001].map(|since| trains.passed_since(ms(since)).map(f64::round))
        };
        assert_eq!(observe(500, 3), [None; 3]);
        assert_eq!(observe(1000, 5), [Some(3e6), None, None]);
        assert_eq!(observe(1500, 8), [Some(3e6), Some(5e6), None]);
        assert_eq!(observe(2000, 10), [Some(3e6), Some(5e6), Some(8e6)]);
        trains.forget();
        assert_eq!((trains.passed_since(ms(0)), trains.latest().round()), (None, 10e6));
    }
}
