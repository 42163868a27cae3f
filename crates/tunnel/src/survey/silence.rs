//! Silences: times in which nothing of what left arrived.
//!
//! Something in front of the antenna, or a link that goes away for a moment, swallows everything for a while, and lets everything pass before and after. That says
//! nothing of a rate. It looks different from a queue that overflows: there some arrive among those that are lost, and what arrives keeps the bottleneck's pace.

use base::{Duration, Instant};

/// What was lost in silences, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Datagrams.
    pub datagrams: u64,
    /// From the last arrival before to the first after, without what one datagram takes.
    pub time: Duration,
}

/// The silences that the receiving end has heard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silences {
    total: Silence,
    /// When the newest datagram came.
    heard_at: Option<Instant>,
    /// Arrivals since so many were missing in a row that it may have been a silence.
    since: u64,
    /// What usually lies between two arrivals, silences apart.
    spacing: Duration,
}

/// So many lost in a row may be a silence. Ours: a path that becomes four times slower drops three of four.
const RUN: u64 = 4;
/// So many must have arrived since the last such row. Ours: where a path has become far slower, single ones arrive among those that are dropped.
const BEFORE: u64 = 2;
/// A silence takes so long at least: what leaves in a burst loses many in a row where a short queue overflows. Ours.
const SHORTEST: Duration = Duration::from_millis(50);
/// And so many times what usually lies between two arrivals: those that a full queue lets through keep the bottleneck's pace. Ours.
const PAUSE: u64 = 2;
/// Unit of the time in a report.
const UNIT: u64 = 100_000;

impl Silences {
    /// A datagram has come, the newest so far if any were `skipped` just before it.
    pub fn on_arrival(&mut self, now: Instant, skipped: u64) {
        let heard_at = self.heard_at.replace(now).unwrap_or(now);
        let passed = now.saturating_since(heard_at);
        let is_pause = passed >= SHORTEST && passed >= self.spacing.saturating_mul(PAUSE);
        let is_silence = skipped >= RUN && self.since >= BEFORE && is_pause;
        if !is_silence {
            self.spacing = (self.spacing.saturating_mul(7) + passed) / 8;
        }
        if skipped < RUN {
            self.since = self.since.saturating_add(1);
            return;
        }
        if is_silence {
            self.total.datagrams += skipped;
            let nanos = u128::from(passed.as_nanos()) * u128::from(skipped) / u128::from(skipped + 1);
            self.total.time += Duration::from_nanos(nanos as u64);
        }
        self.since = 1;
    }

    /// All of them so far.
    #[must_use]
    pub const fn total(&self) -> Silence {
        self.total
    }
}

impl Silence {
    /// As in a report: datagrams, and time in units of 100 us, modulo 2^32.
    #[must_use]
    pub const fn words(self) -> (u32, u32) {
        (self.datagrams as u32, (self.time.as_nanos() / UNIT) as u32)
    }

    /// What was added between two reports.
    #[must_use]
    pub const fn between(before: (u32, u32), after: (u32, u32)) -> Self {
        let (datagrams, time) = (after.0.wrapping_sub(before.0), after.1.wrapping_sub(before.1));
        Self { datagrams: datagrams as u64, time: Duration::from_nanos(time as u64 * UNIT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What silences there were, in datagrams and ms, after arrivals at `(ms, skipped)`.
    fn heard(arrivals: &[(u64, u64)]) -> (u64, u64) {
        let mut silences = Silences::default();
        for (millis, skipped) in arrivals {
            silences.on_arrival(Instant::from_nanos(millis * 1_000_000), *skipped);
        }
        let Silence { datagrams, time } = silences.total();
        (datagrams, time.as_nanos() / 1_000_000)
    }

    #[test]
    fn many_in_a_row_that_are_lost_for_a_while_are_a_silence() {
        assert_eq!(heard(&[(0, 0), (10, 0), (20, 0), (70, 4)]), (4, 40));
        assert_eq!(heard(&[(0, 0), (10, 0), (20, 0), (70, 3)]), (0, 0), "too few");
        assert_eq!(heard(&[(0, 0), (10, 0), (20, 0), (69, 4)]), (0, 0), "too short");
        assert_eq!(heard(&[(0, 0), (10, 0), (1010, 99), (1020, 1), (2040, 101)]), (200, 990 + 1010));
    }

    #[test]
    fn single_ones_among_those_that_are_lost_are_a_slow_path() {
        assert_eq!(heard(&[(0, 0), (100, 9), (200, 9), (300, 9), (400, 9)]), (0, 0));
        assert_eq!(heard(&[(0, 0), (100, 0), (200, 0), (300, 9), (400, 9), (500, 9)]), (9, 90));
        assert_eq!(heard(&[(0, 0), (100, 0), (200, 0), (300, 9), (310, 0), (410, 9)]), (18, 180));
    }

    #[test]
    fn what_keeps_the_bottlenecks_pace_is_no_silence() {
        // Two that arrive and nine that a queue drops, in turn: at first it looks like silences.
        let arrivals: Vec<_> = (0..60).map(|at| (100 * at, if at % 3 == 2 { 9 } else { 0 })).collect();
        let early = heard(&arrivals[..30]);
        assert!(early.0 <= 27, "{early:?}");
        assert_eq!(heard(&arrivals), early);
    }

    #[test]
    fn the_first_that_comes_tells_nothing_of_those_before() {
        assert_eq!(heard(&[(5000, 40), (5010, 0), (5020, 0)]), (0, 0));
    }

    #[test]
    fn numbers_in_reports_may_wrap() {
        let silence = Silence { datagrams: 7, time: Duration::from_millis(250) };
        assert_eq!(silence.words(), (7, 2500));
        let before = (u32::MAX - 1, u32::MAX);
        assert_eq!(Silence::between(before, (5, 2499)), silence);
    }
}
