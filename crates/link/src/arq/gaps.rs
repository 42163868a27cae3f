//! Serials that have not come: lost, or overtaken on their way. A receiver tells the two apart before it counts losses.
//!
//! Ours. Where nothing is overtaken, each gap counts at once. Where frames are, a gap counts once it is as old as frames have come late
//! lately, and a quarter more.

use std::collections::VecDeque;

use base::{Duration, Instant};

/// The latest gaps.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// In the order of their serials, which is that of their times.
    gaps: VecDeque<Gap>,
    /// The first of them, which have counted as losses.
    counted: usize,
    /// The furthest that a frame was overtaken, in this age and in the one before.
    furthest: [Duration; 2],
    age_since: Instant,
}

/// Serials `first..end` are missing, as is known since `at`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    at: Instant,
    first: u64,
    end: u64,
}

impl Gaps {
    /// Serials `first..end` were left out.
    pub(super) fn push(&mut self, now: Instant, first: u64, end: u64) {
        self.gaps.push_back(Gap { at: now, first, end });
        if now.saturating_since(self.age_since) >= AGE {
            self.age_since = now;
            self.furthest = [Duration::ZERO, self.furthest[0]];
        }
    }

    /// The next gap that is one of losses: how many serials.
    pub(super) fn poll_lost(&mut self, now: Instant) -> Option<u64> {
        let [latest, before] = self.furthest;
        let seen = latest.max(before);
        let window = seen.saturating_add(Duration::from_nanos(seen.as_nanos() / 4));
        while self.counted > 0
            && self
                .gaps
                .front()
                .is_some_and(|gap| self.gaps.len() > MOST || now.saturating_since(gap.at) > MEMORY)
        {
            self.gaps.pop_front();
            self.counted -= 1;
        }
        let gap = self.gaps.get(self.counted)?;
        let is_lost = self.gaps.len() > MOST || now.saturating_since(gap.at) >= window;
        is_lost.then(|| {
            self.counted += 1;
            gap.end - gap.first
        })
    }

    /// The transmission `serial` has come after later ones; whether a gap that has counted was none.
    pub(super) fn on_late(&mut self, now: Instant, serial: u64) -> bool {
        let place = self.gaps.partition_point(|gap| gap.end <= serial);
        let Some(Gap { at, first, end }) = self.gaps.get(place).copied().filter(|gap| gap.first <= serial)
        else {
            return false;
        };
        let late = now.saturating_since(at).min(MEMORY);
        self.furthest[0] = self.furthest[0].max(late);
        if self.gaps.len() > MOST_PARTS && first < serial && serial + 1 < end {
            // Whoever sends every other one of a long gap late has it counted as lost.
            return false;
        }
        let was_counted = place < self.counted;
        self.gaps.remove(place);
        self.counted -= usize::from(was_counted);
        let rest = [(serial + 1, end), (first, serial)].into_iter().filter(|(first, end)| first < end);
        // Parts of what was one gap share its time.
        let is_part = |gap: Option<&Gap>| gap.is_some_and(|gap| gap.at == at);
        let mut is_filled = !is_part(place.checked_sub(1).and_then(|before| self.gaps.get(before)))
            && !is_part(self.gaps.get(place));
        for (first, end) in rest {
            self.gaps.insert(place, Gap { at, first, end });
            self.counted += usize::from(was_counted);
            is_filled = false;
        }
        was_counted && is_filled
    }
}

/// How long the furthest is remembered, and as long again at most. Ours.
const AGE: Duration = Duration::from_secs(10);

/// How late a frame may be to be told from one that comes twice. Ours.
const MEMORY: Duration = Duration::from_secs(1);

/// Gaps that are remembered. Ours: a tenth overtaken by 20 ms is 170 of them at 1 Gbit/s.
const MOST: usize = 1024;

/// Gaps, with those that late frames have split in two. Ours.
const MOST_PARTS: usize = 2 * MOST;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_gap_counts_at_once_until_one_was_overtaking() {
        let mut gaps = Gaps::default();
        gaps.push(at(1), 5, 8);
        assert_eq!((gaps.poll_lost(at(1)), gaps.poll_lost(at(1))), (Some(3), None));
        assert!(!gaps.on_late(at(9), 6) && !gaps.on_late(at(9), 6) && !gaps.on_late(at(9), 5));
        assert!(gaps.on_late(at(9), 7), "all of it has come");
        gaps.push(at(10), 10, 13);
        assert_eq!(gaps.poll_lost(at(19)), None);
        assert!(!gaps.on_late(at(19), 11));
        assert_eq!(
            (gaps.poll_lost(at(22)), gaps.poll_lost(at(22)), gaps.poll_lost(at(22))),
            (Some(1), Some(1), None)
        );
    }

    #[test]
    fn a_path_that_stops_is_trusted_again() {
        let mut gaps = Gaps::default();
        gaps.push(at(1), 5, 6);
        gaps.on_late(at(100), 5);
        for second in 1..=3 {
            let now = at(second * 10_001);
            gaps.push(now, second * 100, second * 100 + 1);
            assert_eq!(gaps.poll_lost(now).is_some(), second > 1, "{second}");
            gaps.poll_lost(at(second * 10_001 + 500));
        }
    }

    /// A peer may leave out as many serials as it likes and send every other one of them late.
    #[test]
    fn a_gap_that_is_split_again_and_again_takes_bounded_memory() {
        let mut gaps = Gaps::default();
        gaps.push(at(1), 1, 1_000_000);
        (1..500_000).for_each(|number| _ = gaps.on_late(at(2), 2 * number));
        assert!(gaps.gaps.len() <= MOST_PARTS + 1, "{}", gaps.gaps.len());
        // What is at an end of a part still counts as late, so that the parts go away.
        let parts = gaps.gaps.len();
        assert!(!gaps.on_late(at(2), 1));
        assert_eq!(gaps.gaps.len(), parts - 1);
    }

    #[test]
    fn memory_is_bounded_and_nothing_goes_uncounted() {
        let mut gaps = Gaps::default();
        gaps.push(at(1), 5, 6);
        gaps.on_late(at(900), 5);
        let mut lost = 0;
        for number in 1..=5000 {
            gaps.push(at(900), 10 * number, 10 * number + 2);
            lost += core::iter::from_fn(|| gaps.poll_lost(at(900))).sum::<u64>();
        }
        assert!(gaps.gaps.len() <= MOST + 1);
        lost += core::iter::from_fn(|| gaps.poll_lost(at(9000))).sum::<u64>();
        assert_eq!(lost, 10_000);
    }
}
