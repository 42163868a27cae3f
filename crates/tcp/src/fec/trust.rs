//! Whether the path marks congestion: a sender that heeds marks alone would starve others where it does not.
//!
//! Erasures come whatever the queue; drops of a full queue come with a full queue. So a loss counts as congestion where the round-trip
//! time at that moment is in the upper part of what was ever seen ("spike": Tobe et al. 2000; Cen, Cosman, Voelker 2003) and no
//! mark has come for many round trips, although one that marks would have done so long before.
//!
//! The paper has nothing of this kind.

use base::Duration;

/// What is known of the path's honesty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    /// The longest round trip seen of late.
    longest: Duration,
    latest: Duration,
    /// Round trips at the last mark; none before the first.
    marked_in: Option<u64>,
    round: u64,
    distrusted: bool,
}

impl Trust {
    pub(super) const fn new() -> Self {
        Self { longest: Duration::ZERO, latest: Duration::ZERO, marked_in: None, round: 0, distrusted: false }
    }

    /// A round trip was measured in round trip number `round`.
    pub(crate) fn on_rtt(&mut self, sample: Duration, round: u64) {
        if round >= self.round + FORGET_AFTER {
            // A queue that was long once says little of today's.
            self.longest = self.longest - self.longest / 8 + sample / 8;
            self.round = round;
        }
        self.latest = sample;
        self.longest = self.longest.max(sample);
    }

    /// The peer echoed a mark in this round trip.
    pub(crate) const fn on_mark(&mut self, round: u64) {
        self.marked_in = Some(round);
    }

    /// Whether the loss that was found last meant congestion.
    pub(crate) const fn is_distrusted(&self) -> bool {
        self.distrusted
    }

    /// Whether a loss found in this round trip means congestion: the shortest round trip took `least`.
    pub(crate) fn judge(&mut self, round: u64, least: Duration) -> bool {
        let marks = self.marked_in.is_some_and(|at| round < at + MARKS_LAST);
        let queue = self.longest.saturating_sub(least);
        let standing = self.latest.saturating_sub(least);
        // A queue too short to be seen is too short to starve anybody by standing in it.
        self.distrusted =
            !marks && queue >= (least / 16).max(LEAST_QUEUE) && standing.saturating_mul(2) >= queue;
        self.distrusted
    }
}

/// Round trips for which a mark shows that the path marks.
const MARKS_LAST: u64 = 64;
/// Round trips after which the longest one is lowered towards the current one.
const FORGET_AFTER: u64 = 32;
/// Less is jitter.
const LEAST_QUEUE: Duration = Duration::from_millis(2);
