//! Whether the path marks congestion: a sender that heeds marks alone would starve others where it does not.
//!
//! Erasures come whatever the queue; drops of a full queue come with a full queue. So a loss counts as congestion where all packets
//! of the last two round trips waited in a queue, for a good part of the time that they ever did, and no mark has come for many round
//! trips, although a queue that marks would have done so long before. The first half is the "spike" rule of loss differentiation (Tobe
//! et al. 2000; Cen, Cosman, Voelker 2003) with the least delay of a round trip in place of a single one: bursts of others come and go.
//! A quarter is a good part: in a short queue of many flows some packet always finds few others. With half, eight flows in a queue of a
//! quarter of the round trip left Reno two fifths of its share; with a quarter it keeps three (`tests/coding_fairness.rs`).
//!
//! The paper has nothing of this kind. A queue that holds less than an eighth of a round trip cannot be told from none in this way.

use base::Duration;

/// What is known of the path's honesty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    /// The shortest round trip of the current round and of the last one.
    current: Duration,
    last: Duration,
    round: u64,
    /// The longest of these shortest ones, of late.
    longest: Duration,
    /// The round of the latest mark; none before the first.
    marked_in: Option<u64>,
    distrusted: bool,
}

impl Trust {
    pub(super) const fn new() -> Self {
        Self {
            current: Duration::MAX,
            last: Duration::ZERO,
            round: 0,
            longest: Duration::ZERO,
            marked_in: None,
            distrusted: false,
        }
    }

    /// A round trip was measured in round number `round`.
    pub(crate) fn on_rtt(&mut self, sample: Duration, round: u64) {
        if round > self.round {
            self.last = if self.current < Duration::MAX { self.current } else { self.last };
            // A queue that was long once says ever less of today's.
            self.longest = (self.longest - self.longest / FORGET).max(self.last);
            (self.current, self.round) = (Duration::MAX, round);
        }
        self.current = self.current.min(sample);
    }

    /// The peer echoed a mark in this round.
    pub(crate) const fn on_mark(&mut self, round: u64) {
        self.marked_in = Some(round);
    }

    /// Whether the loss that was found last meant congestion.
    pub(crate) const fn is_distrusted(&self) -> bool {
        self.distrusted
    }

    /// Whether a loss found in this round means congestion: the shortest round trip of all took `least`.
    pub(crate) fn judge(&mut self, round: u64, least: Duration) -> bool {
        let marks = self.marked_in.is_some_and(|at| round < at + MARKS_LAST);
        let queue = self.longest.saturating_sub(least);
        let standing = self.last.min(self.current).saturating_sub(least);
        let is_seen = queue >= (least / 8).max(LEAST_QUEUE);
        self.distrusted = !marks && is_seen && standing.saturating_mul(STANDING) >= queue;
        self.distrusted
    }
}

/// Rounds for which a mark shows that the path marks: RED tells one of ten flows seldom.
const MARKS_LAST: u64 = 256;
/// A queue stands that is never shorter than this part of the longest.
const STANDING: u64 = 4;
/// The longest queue is forgotten by this part of it a round.
const FORGET: u64 = 256;
/// Less is jitter.
const LEAST_QUEUE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(100);

    /// What is known after rounds whose shortest and longest round trips took so many milliseconds.
    fn after(rounds: &[(u64, u64)]) -> (Trust, u64) {
        let mut trust = Trust::new();
        for (round, (shortest, longest)) in (1..).zip(rounds) {
            for millis in [*longest, *shortest, *longest] {
                trust.on_rtt(Duration::from_millis(millis), round);
            }
        }
        (trust, rounds.len() as u64)
    }

    #[test]
    fn losses_behind_a_standing_queue_are_congestion() {
        for (rounds, congestion) in [
            // No queue, or one that is jitter: an eighth of the round trip.
            (vec![(100, 100); 10], false),
            (vec![(100, 111); 10], false),
            (vec![(112, 150); 10], false),
            (vec![(113, 150); 10], true),
            // A queue that grows and stands.
            (vec![(100, 120), (120, 150), (150, 190), (190, 200)], true),
            (vec![(100, 120), (140, 200), (111, 200), (111, 200)], true),
            // Bursts come and go within the round trip: its shortest is the path's.
            (vec![(100, 300); 10], false),
            (vec![(100, 120), (200, 300), (200, 300), (100, 300)], false),
            (vec![(100, 120), (200, 300), (120, 300), (120, 300)], false),
        ] {
            let (mut trust, round) = after(&rounds);
            assert_eq!(trust.judge(round, LEAST), congestion, "{rounds:?}");
            assert_eq!(trust.is_distrusted(), congestion);
        }
    }

    #[test]
    fn a_path_that_marks_is_trusted_for_a_while() {
        let (mut trust, round) = after(&[(200, 250); 10]);
        trust.on_mark(round);
        assert!(!trust.judge(round, LEAST) && !trust.judge(round + MARKS_LAST - 1, LEAST));
        assert!(trust.judge(round + MARKS_LAST, LEAST));
        trust.on_mark(round + MARKS_LAST);
        assert!(!trust.judge(round + MARKS_LAST, LEAST));
    }

    /// A queue of the past says less and less: what stands now is compared with what there was of late.
    #[test]
    fn long_queues_are_forgotten() {
        let mut rounds = vec![(400, 400); 2];
        rounds.extend([(150, 150); 10]);
        let (mut trust, round) = after(&rounds);
        assert!(!trust.judge(round, LEAST), "a sixth of what it was");
        rounds.extend([(150, 150); 300]);
        let (mut trust, round) = after(&rounds);
        assert!(trust.judge(round, LEAST));
    }

    #[test]
    fn without_a_round_trip_nothing_is_known() {
        assert!(!Trust::new().judge(0, Duration::MAX));
    }

    /// A queue of less than 5 ms is jitter, however short the round trip.
    #[test]
    fn jitter_is_no_queue() {
        let least = Duration::from_millis(10);
        for (shortest, congestion) in [(11, false), (14, false), (15, true)] {
            let (mut trust, round) = after(&[(shortest, 20); 10]);
            assert_eq!(trust.judge(round, least), congestion, "{shortest} ms");
        }
    }

    /// A queue stood only where it did in the last round trip as in this one: a loss right after it was empty is none of it.
    #[test]
    fn both_round_trips_count() {
        let mut rounds = vec![(200, 300); 10];
        rounds.extend([(100, 300), (200, 300)]);
        let (mut trust, round) = after(&rounds);
        assert!(!trust.judge(round, LEAST), "the last one");
        let (mut trust, round) = after(&rounds[..11]);
        assert!(!trust.judge(round, LEAST), "this one");
        rounds.push((200, 300));
        let (mut trust, round) = after(&rounds);
        assert!(trust.judge(round, LEAST));
    }
}
