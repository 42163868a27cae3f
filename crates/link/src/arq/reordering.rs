//! How far frames are overtaken, and so how long a sender waits until it takes one for lost: wide COTMLL's and coded ARQ's.
//!
//! After RACK (RFC 8985, 6.2 and 7): a frame is lost if one that was sent a *reordering window* later has come. The window is a time, so
//! it holds at any rate.
//!
//! Deviations:
//! - RACK learns from duplicates that a repair was needless and widens its window by a quarter of the round trip each time. Reports here
//!   are exact and name the newest transmission that has come: a frame that was missing from one and has come by the next was overtaken, and
//!   for how long is known.
//! - The window is what was seen and a quarter more, a round trip at most. Without overtaking it is nothing: the first report repairs.
//! - RACK's window goes back after 16 recoveries without a needless repair. Here an age is 16 round trips with losses, and the window is
//!   that of the latest two ages. Where nothing is lost it stays, since nobody waits then.
//! - Where nothing is sent a window later, the clock takes its place, a window later still: the report may be overtaken too.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::sender::{Arrival, Told};
use super::{Departures, Timer};
use crate::slack;

/// What one sender knows of it.
#[derive(Debug, Default)]
pub(crate) struct Reordering {
    departures: Departures,
    /// The furthest that a frame was overtaken, in this age and in the one before.
    furthest: [Duration; 2],
    /// Round trips with losses in this age.
    recoveries: u32,
    /// The transmission that was the last when the latest of them began.
    recovery_until: u64,
    /// The newest transmission that a report has heard of.
    heard: u64,
    /// The shortest between a transmission and a report of it.
    round_trip: Option<Duration>,
    /// The latest reports with their times, and the transmission that each had heard of.
    reports: VecDeque<(Instant, Told)>,
    /// Sums that went out, oldest first: a frame in one may have come with it.
    sums: VecDeque<Sum>,
    /// Before this transmission sums are forgotten.
    sums_from: u64,
    /// When the next frame's time is up.
    timer: Timer,
    needless: u64,
    false_alarms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sum {
    serial: u64,
    start: u64,
    end: u64,
}

impl Reordering {
    /// A transmission leaves.
    pub(crate) fn on_sent(&mut self, now: Instant, serial: u64) {
        self.departures.hand_over(now, Some(serial));
    }

    /// The transmission `serial` is a sum of frames from `start` to `end`.
    pub(crate) fn on_sum(&mut self, serial: u64, start: u64, end: u64) {
        self.sums.push_back(Sum { serial, start, end });
        if self.sums.len() > MOST_SUMS
            && let Some(sum) = self.sums.pop_front()
        {
            self.sums_from = sum.serial;
        }
    }

    /// Forgets what is noted of transmissions: no answer to any of them is to come.
    pub(crate) fn forget_transmissions(&mut self) {
        self.departures.reset();
        (self.reports, self.sums) = (VecDeque::new(), VecDeque::new());
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.departures.memory() + slack::room(&self.reports) + slack::room(&self.sums)
    }

    /// How long a frame may be overtaken.
    pub(crate) fn window(&self) -> Duration {
        let [now, before] = self.furthest;
        let seen = now.max(before);
        let window = seen.saturating_add(Duration::from_nanos(seen.as_nanos() / 4));
        self.round_trip.map_or(window, |most| window.min(most))
    }

    /// The last transmission that would have come if it ever did, once `heard` has.
    pub(crate) fn ripe(&self, heard: u64) -> u64 {
        let window = self.window();
        match self.departures.of(heard) {
            Some(sent) if !window.is_zero() => self.departures.last_until(sent.saturating_sub(window)),
            _ => heard,
        }
    }

    /// A frame has come, as a report is the first to tell. If those before had heard of later transmissions, it was overtaken.
    pub(crate) fn on_arrival(&mut self, now: Instant, arrival: Arrival) {
        let Arrival { sequence, serial, heard, is_needless, was_lost, .. } = arrival;
        if serial >= self.heard {
            return;
        }
        self.measure(now, heard);
        if serial < self.sums_from || self.may_be_in_sum(sequence, serial, heard) {
            return;
        }
        let is_missing = |told: &Told| told.heard > serial && told.covers(sequence);
        let last =
            self.reports.iter().filter(|(_, told)| is_missing(told)).max_by_key(|(_, told)| told.heard);
        let Some((at, told)) = last else { return };
        self.needless += u64::from(is_needless);
        self.false_alarms += u64::from(was_lost);
        if let (Some(sent), Some(overtaker)) = (self.departures.of(serial), self.departures.of(told.heard)) {
            let late = overtaker.saturating_since(sent).saturating_add(now.saturating_since(*at));
            let most = self.round_trip.unwrap_or(late);
            self.furthest[0] = self.furthest[0].max(late.min(most));
        }
    }

    /// Whether a frame may have come with a sum that is known, after `serial` and up to `heard`.
    pub(crate) fn may_be_in_sum(&self, sequence: u64, serial: u64, heard: u64) -> bool {
        let mut newer = self.sums.iter().rev().take_while(|sum| sum.serial > serial);
        newer.any(|sum| sum.serial <= heard && (sum.start..=sum.end).contains(&sequence))
    }

    /// A report has come, which has told of all frames that have come.
    pub(crate) fn on_report(&mut self, now: Instant, told: Told) {
        self.measure(now, told.heard);
        self.heard = self.heard.max(told.heard);
        self.reports.push_back((now, told));
        if self.reports.len() > REPORTS {
            self.reports.pop_front();
        }
        self.departures.forget_until(now.saturating_sub(MEMORY));
    }

    /// A report has heard of the transmission `heard`.
    fn measure(&mut self, now: Instant, heard: u64) {
        if let Some(sent) = self.departures.of(heard) {
            let round_trip = now.saturating_since(sent);
            self.round_trip = Some(self.round_trip.map_or(round_trip, |shortest| shortest.min(round_trip)));
        }
    }

    /// Frames were taken for lost when `heard` had come and `serial` was the last transmission.
    pub(crate) fn on_loss(&mut self, heard: u64, serial: u64) {
        if heard <= self.recovery_until || self.window().is_zero() {
            return;
        }
        self.recovery_until = serial;
        self.recoveries += 1;
        if self.recoveries >= AGE {
            self.recoveries = 0;
            self.furthest = [Duration::ZERO, self.furthest[0]];
        }
    }

    /// The oldest transmission that may still have been overtaken, if any, waits for its time, unless that is up.
    pub(crate) fn wait_for(&mut self, now: Instant, serial: Option<u64>) {
        let due = serial.and_then(|serial| {
            let (at, told) = self.reports.back()?;
            let apart = self.departures.of(told.heard)?.saturating_since(self.departures.of(serial)?);
            Some(at.saturating_add(self.patience().saturating_sub(apart)))
        });
        self.timer = due.filter(|due| *due > now).map_or(Timer::Off, Timer::At);
    }

    /// If a frame's time is up: the latest report, and the last transmission whose time is.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<(Told, u64)> {
        if !self.timer.is_due(now) {
            return None;
        }
        self.timer = Timer::Off;
        let (at, told) = *self.reports.back()?;
        let elapsed = self.departures.of(told.heard)?.saturating_add(now.saturating_since(at));
        Some((told, self.departures.last_until(elapsed.saturating_sub(self.patience()))))
    }

    /// Where the clock decides.
    fn patience(&self) -> Duration {
        self.window().saturating_mul(2)
    }

    /// When [`Reordering::handle_timeout`] wants to be called.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.timer.poll_timeout()
    }

    /// The newest transmission that a report has heard of.
    pub(crate) const fn heard(&self) -> u64 {
        self.heard
    }

    /// The shortest between a transmission and a report of it.
    pub(crate) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Frames that were sent again and had only been overtaken.
    pub(crate) const fn needless(&self) -> u64 {
        self.needless
    }

    /// Frames that were taken for lost and had only been overtaken, sent again or not.
    pub(crate) const fn false_alarms(&self) -> u64 {
        self.false_alarms
    }

    /// Numbers start anew; the path is the same.
    pub(crate) fn reset(&mut self) {
        let Self { furthest, recoveries, round_trip, needless, false_alarms, .. } = *self;
        *self = Self { furthest, recoveries, round_trip, needless, false_alarms, ..Self::default() };
    }
}

/// Round trips with losses. RFC 8985, 6.2, step 4: 16 recoveries.
const AGE: u32 = 16;

/// Reports that are remembered. Ours: where gaps take several reports, each tells of a stretch.
const REPORTS: usize = 16;

/// Sums that are remembered. Ours.
const MOST_SUMS: usize = 1024;

/// For how long transmissions are remembered. Ours: more than any round trip.
const MEMORY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Sending 1 leaves 1 ms before sending 2, of which alone a report tells. Frames were overtaken by 8 ms: the window is 10 ms.
    #[test]
    fn the_clock_decides_where_nothing_follows() {
        let mut reordering = Reordering { furthest: [Duration::from_millis(8); 2], ..Reordering::default() };
        (1..=2).for_each(|serial| reordering.on_sent(at(serial), serial));
        reordering.on_report(at(50), Told::nothing(2));
        assert_eq!(reordering.ripe(2), 0, "1 may have been overtaken");
        reordering.wait_for(at(50), Some(1));
        assert_eq!(reordering.poll_timeout(), Some(at(69)), "two windows after its own transmission");
        assert!(reordering.handle_timeout(at(68)).is_none());
        let (told, ripe) = reordering.handle_timeout(at(69)).unwrap();
        assert_eq!((told.heard, ripe), (2, 1));
        for (now, serial) in [(69, Some(1)), (50, None)] {
            reordering.wait_for(at(now), serial);
            assert_eq!(reordering.poll_timeout(), None, "there is nothing to wait for");
        }
    }
}
