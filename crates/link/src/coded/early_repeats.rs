//! When what is interactive goes once more although nobody knows that it was lost.
//!
//! Ours. A queue on the way overflows when the line becomes slower. What it drops then is found to be lost a round trip later at the earliest, and what tells of it
//! waits in that queue itself. But much is known to be lost before, or the line to carry less, and what is interactive is little. So it goes once more then: a few
//! times, since a queue that is still full drops most of what comes at once.

use base::{Duration, Instant};

/// The times that are still to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyRepeats {
    left: u32,
    not_before: Instant,
}

impl EarlyRepeats {
    /// Something has just become known that makes it worth while.
    pub(super) const fn begin(&mut self) {
        (self.left, self.not_before) = (TIMES, Instant::ZERO);
    }

    /// Whether it is time, which it is then no more.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.left > 0 && now >= self.not_before;
        if is_due {
            (self.left, self.not_before) = (self.left - 1, now + APART);
        }
        is_due
    }
}

/// How often. Ours: where one in ten arrives, four of ten do; once less is sent, all.
const TIMES: u32 = 5;

/// How far apart. Ours: in so long a queue of 100 packets at 10 Mbit/s is half empty.
const APART: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_time_a_few_times_and_then_no_more() {
        let mut again = EarlyRepeats::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert!(!again.is_due(at(0)), "nothing has happened");
        again.begin();
        let due: Vec<u64> = (100..1000).filter(|millis| again.is_due(at(*millis))).collect();
        assert_eq!(due, [100, 150, 200, 250, 300]);
        again.begin();
        assert!(again.is_due(at(1000)));
    }
}
