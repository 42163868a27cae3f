//! The rate to pace at: the capacity, less in proportion to the queue beyond the one that is kept.
//!
//! What is under way is known, so the queue that it will meet is too: the law looks ahead by a round trip, and does not repeat a correction that is on its
//! way. Without a queue the rate is above the capacity, by as much as is tried. Now and then the queue is left to run empty, so that the path's own delay is seen.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::LOWEST;
use super::bottleneck::Capacity;
use super::experiments::{Cause, Experiments};
use super::queue::Queue;
use super::window::{Line, Window};

/// The rate that holds, and those of late. All are in bits per second.
#[derive(Clone, Debug)]
pub struct Pacing {
    rate: f64,
    /// Rates that held of late, from when.
    held: VecDeque<(Instant, f64)>,
    drained_at: Instant,
}

/// What is known when a stamp is answered, besides queue, capacity and experiments.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// When the stamp left.
    pub sent_at: Instant,
    /// Bits that have left since.
    pub under_way: u64,
    /// Whether the capacity is our share of a bottleneck with somebody else's queue, which no rate of ours empties.
    pub is_shared: bool,
}

/// The queue is let run empty this often, for so long, to see the path's own delay. Ours.
const DRAIN_EVERY: Duration = Duration::from_secs(15);
const DRAIN_FOR: Duration = Duration::from_millis(300);
/// By how much less is sent meanwhile, if a queue may have been taken for the path's delay, for a round trip or so long. Ours.
const DEEP_DRAIN: f64 = -0.5;
const LONGEST_DRAIN: Duration = Duration::from_secs(1);
/// A queue lowers the rate by this part of the capacity at most. Ours.
const MOST_LESS: f64 = -0.5;
/// Or by this, if sending less has just been found not to help. Ours.
const QUIET_LESS: f64 = -0.05;
/// So much less at least while it is seen whether losses are our doing. Ours.
const LOSSES_LESS: f64 = -0.1;
/// And while it is seen whether a small queue is: more than a capacity may be wrong by. Ours.
const SMALL_QUEUE_LESS: f64 = -0.2;
/// A rate counts as used from this part on. Ours.
const USED: f64 = 0.9;
/// Rates that are remembered: those of more than ten seconds.
const HELD: usize = 128;

impl Pacing {
    /// Begins at this rate.
    #[must_use]
    pub const fn new(rate: f64) -> Self {
        Self { rate, held: VecDeque::new(), drained_at: Instant::ZERO }
    }

    /// The rate that holds.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// This rate holds from now on.
    pub fn set(&mut self, now: Instant, rate: f64) {
        self.rate = rate;
        if self.held.len() == HELD {
            self.held.pop_front();
        }
        self.held.push_back((now, self.rate.max(LOWEST)));
    }

    /// The rate that the queue asks for which what leaves now will meet.
    #[must_use]
    pub fn wanted(
        &mut self,
        now: Instant,
        outlook: Outlook,
        capacity: &Capacity,
        queue: &Queue,
        experiments: &Experiments,
    ) -> f64 {
        let bits = capacity.bits();
        if outlook.is_shared {
            return bits;
        }
        let standing = queue.standing().as_secs_f64();
        let left_in = now.saturating_since(outlook.sent_at).as_secs_f64();
        let coming = outlook.under_way as f64 / bits - left_in;
        // While the capacity is only known to be no less, what is under way is no queue.
        let is_known = capacity.is_known(queue);
        let ahead = if is_known || coming < 0.0 { (standing + coming).max(0.0) } else { standing };
        let drains = self.drains(now, queue);
        // As far below empty as the target is above it, in case the path's own delay has not been seen for long.
        let target = queue.target(bits).as_secs_f64() * if drains { -1.0 } else { 1.0 };
        let mut wanted = (target - ahead) / queue.settling(bits).as_secs_f64();
        if drains && queue.is_accepted() {
            wanted = wanted.min(DEEP_DRAIN);
        }
        let is_quiet = experiments.cause().is_none() && now < experiments.queue_quiet_until();
        let least = if is_quiet { QUIET_LESS } else { MOST_LESS };
        let most = if capacity.overflows() { 0.0 } else { 1.0 };
        let grows = ahead <= target && !drains && !is_known;
        let mut gain = if grows { capacity.growth().max(wanted) } else { wanted.max(least) }.min(most);
        match experiments.cause() {
            Some(Cause::Losses) => gain = gain.min(LOSSES_LESS),
            Some(Cause::SmallQueue) => gain = gain.min(SMALL_QUEUE_LESS),
            Some(Cause::Queue) | None => {}
        }
        bits * (1.0 + gain)
    }

    /// Whether the queue is to run empty now.
    fn drains(&mut self, now: Instant, queue: &Queue) -> bool {
        if now >= self.drained_at + DRAIN_EVERY {
            self.drained_at = now;
        }
        let accepted = queue.present_round_trip().min(LONGEST_DRAIN);
        let length = if queue.is_accepted() { accepted } else { DRAIN_FOR };
        now < self.drained_at + length && self.drained_at > Instant::ZERO
    }

    /// Whether a stamp of `sent_at` left while the queue was to run empty, or soon after.
    #[must_use]
    pub fn is_of_drain(&self, sent_at: Instant) -> bool {
        let until = self.drained_at + DRAIN_FOR.saturating_mul(2);
        self.drained_at > Instant::ZERO && (self.drained_at..until).contains(&sent_at)
    }

    /// Whether as much left in a window as was allowed to.
    #[must_use]
    pub fn is_used(&self, window: &Window, line: Line) -> bool {
        let Some(since) = window.since else { return false };
        let span = window.span.sent_in;
        line.bits(window.span.sent) as f64 >= USED * self.allowed(since, span) * span.as_secs_f64()
    }

    /// What was allowed to leave since `since`: before the first rate that is remembered, as much as by that.
    fn allowed(&self, since: Instant, span: Duration) -> f64 {
        let until = since + span;
        let mut bits = 0.0;
        let mut end = until;
        for (from, rate) in self.held.iter().rev() {
            let from = (*from).max(since);
            if from < end {
                bits += rate * end.saturating_since(from).as_secs_f64();
                end = from;
            }
        }
        let first = self.held.front().map_or(self.rate, |(_, rate)| *rate);
        bits += first * end.saturating_since(since).as_secs_f64();
        bits / span.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiments::Before;
    use super::*;
    use crate::survey::report::{Long, Sample, Span, Totals};
    use crate::survey::silence::Silence;

    const fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A path with a round trip of 200 ms and a queue of `waited`.
    fn queue(waited: u64) -> Queue {
        let mut queue = Queue::default();
        for wait in [0, waited, waited, waited] {
            let round_trip = Duration::from_millis(200 + wait);
            let delay = (wait * 1_000_000).cast_signed();
            let after = Totals::default();
            queue.observe(
                ms(0),
                &Sample {
                    sent_at: ms(0),
                    round_trip,
                    delay,
                    span: None,
                    missed: 0,
                    after,
                    long: Long::default(),
                    silence: Silence::default(),
                },
                10e6,
            );
        }
        queue
    }

    /// What is wanted, as a part of a capacity of 10 Mbit/s, when `under_way` milliseconds of it have left within 200 ms.
    fn wanted(pacing: &mut Pacing, now: Instant, waited: u64, under_way: u64) -> f64 {
        let queue = queue(waited);
        let mut capacity = Capacity::new(10e6, 0.0);
        capacity.settle(ms(0), &queue);
        let sent_at = now - Duration::from_millis(200);
        let outlook = Outlook { sent_at, under_way: under_way * 10_000, is_shared: false };
        pacing.wanted(now, outlook, &capacity, &queue, &Experiments::default()) / 10e6
    }

    #[test]
    fn the_rate_is_less_by_the_queue_that_will_be_met() {
        for (waited, under_way, part) in [
            // As much left as is carried: what stands stays.
            (20, 200, 1.0),
            (40, 200, 0.9),
            (0, 200, 1.1),
            // More left, and less did: the queue will be another.
            (20, 240, 0.8),
            (40, 180, 1.0),
            // At most half as much less.
            (400, 200, 0.5),
        ] {
            let found = wanted(&mut Pacing::new(10e6), ms(5000), waited, under_way);
            assert!((found - part).abs() < 1e-6, "{waited} ms, {under_way} ms: {found}");
        }
    }

    #[test]
    fn the_queue_runs_empty_every_fifteen_seconds() {
        let mut pacing = Pacing::new(10e6);
        let mut at = |millis| wanted(&mut pacing, ms(millis), 20, 200) < 0.85;
        let found = [14_999, 15_000, 15_299, 15_300, 29_999, 30_000].map(&mut at);
        assert_eq!(found, [false, true, true, false, false, true]);
    }

    #[test]
    fn more_is_tried_while_no_queue_stands_and_less_while_losses_are_in_question() {
        let (queue, mut pacing) = (queue(0), Pacing::new(10e6));
        let outlook = Outlook { sent_at: ms(800), under_way: 4_000_000, is_shared: false };
        let mut experiments = Experiments::default();
        let capacity = Capacity::new(10e6, 0.6);
        assert!((pacing.wanted(ms(1000), outlook, &capacity, &queue, &experiments) - 16e6).abs() < 1.0);
        let before = Before { capacity: 10e6, arrived: 8e6, queue: Duration::ZERO, losses: 0.2 };
        experiments.begin(ms(1000), Cause::Losses, before);
        assert!((pacing.wanted(ms(1000), outlook, &capacity, &queue, &experiments) - 9e6).abs() < 1.0);
    }

    #[test]
    fn a_rate_is_used_if_as_much_left_as_was_allowed() {
        let mut pacing = Pacing::new(1e6);
        pacing.set(ms(1000), 1e6);
        pacing.set(ms(1500), 3e6);
        assert_eq!(pacing.rate(), 3e6);
        // Of 2 Mbit/s on average for a second.
        for (bytes, is_used) in [(220_000, false), (230_000, true)] {
            let sent = Totals { datagrams: 200, bytes };
            let span = Span { sent, sent_in: Duration::from_secs(1), ..Span::default() };
            let window = Window { span, since: Some(ms(1000)), is_busy: false };
            assert_eq!(pacing.is_used(&window, Line { overhead: 0 }), is_used, "{bytes}");
        }
        // At 3 Mbit/s for two seconds.
        for (bytes, is_used) in [(670_000, false), (680_000, true)] {
            let sent = Totals { datagrams: 600, bytes };
            let span = Span { sent, sent_in: Duration::from_secs(2), ..Span::default() };
            let window = Window { span, since: Some(ms(2000)), is_busy: false };
            assert_eq!(pacing.is_used(&window, Line { overhead: 0 }), is_used, "{bytes}");
        }
    }

    #[test]
    fn what_leaves_while_the_queue_runs_empty_or_soon_after_is_told_apart() {
        let mut pacing = Pacing::new(10e6);
        assert!(![0, 100, 15_000].iter().any(|millis| pacing.is_of_drain(ms(*millis))), "none yet");
        wanted(&mut pacing, ms(15_000), 20, 200);
        let told = [14_999, 15_000, 15_599, 15_600].map(|millis| pacing.is_of_drain(ms(millis)));
        assert_eq!(told, [false, true, true, false]);
    }

    /// What stands may have been taken for the path's delay, so it would not run empty by a little less.
    #[test]
    fn after_a_queue_was_accepted_it_is_drained_deeply() {
        let mut queue = queue(20);
        queue.accept(ms(0));
        let capacity = Capacity::new(10e6, 0.0);
        let wanted = |millis| {
            let outlook = Outlook { sent_at: ms(millis - 200), under_way: 2_000_000, is_shared: false };
            let mut pacing = Pacing::new(10e6);
            pacing.wanted(ms(millis), outlook, &capacity, &queue, &Experiments::default()) / 10e6
        };
        assert!((wanted(15_000) - 0.5).abs() < 1e-6 && wanted(14_000) > 1.0);
    }
}
