//! Whether the path marks congestion: a sender that heeds marks alone would starve others where it does not.
//!
//! Erasures come whatever the queue; drops of a full queue come with a full queue. So a loss counts as congestion where all packets
//! of the last round trip waited in a queue, nearly as long as they ever did, and no mark has come for many round trips,
//! although a queue that marks would have done so long before. The first half is the "spike" rule of loss differentiation (Tobe et
//! al. 2000; Cen, Cosman, Voelker 2003) with the least delay of a round trip in place of a single one: bursts of others come and go.
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
        self.distrusted = !marks && is_seen && standing.saturating_mul(2) >= queue;
        self.distrusted
    }
}

/// Rounds for which a mark shows that the path marks.
const MARKS_LAST: u64 = 64;
/// The longest queue is forgotten by this part of it a round.
const FORGET: u64 = 256;
/// Less is jitter.
const LEAST_QUEUE: Duration = Duration::from_millis(5);
