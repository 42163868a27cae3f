//! When frames left: at once on a line of their own, and later where they queue in a buffer below, which tells.
//!
//! SLACP: a repeated acknowledgement names the last frame that came and for how long nothing has come since. What left within that time
//! after that frame is lost. [`harq`](crate::harq): the round trip is measured from when a block left, and so is the wait for a report.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::sequence::MAX_WINDOW;
use crate::slack;

/// When the latest transmissions left.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// The serial of the first.
    first: u64,
    /// [`Instant::MAX`] for those that are still in the buffer.
    times: VecDeque<Instant>,
    /// Whether frames leave later than they are handed over.
    pub(crate) is_buffered: bool,
    /// Then, the frames in the buffer, those that are no transmissions too.
    handed_over: VecDeque<Option<u64>>,
}

impl Departures {
    /// A frame is handed over; `serial` is that of a transmission, which other frames have none of.
    pub(crate) fn hand_over(&mut self, now: Instant, serial: Option<u64>) {
        if self.is_buffered {
            self.handed_over.push_back(serial);
        }
        if let Some(serial) = serial {
            self.push(if self.is_buffered { Instant::MAX } else { now }, serial);
        }
    }

    /// Forgets the transmissions; the frames in the buffer are still there.
    pub(crate) fn reset(&mut self) {
        self.times = VecDeque::new();
        self.handed_over.iter_mut().for_each(|frame| *frame = None);
    }

    /// The first frame that was handed over and is still in the buffer leaves.
    pub(crate) fn depart(&mut self, at: Instant) {
        let serial = self.handed_over.pop_front().flatten();
        slack::give_back(&mut self.handed_over);
        let place = serial.and_then(|serial| usize::try_from(serial.checked_sub(self.first)?).ok());
        if let Some(time) = place.and_then(|place| self.times.get_mut(place)) {
            *time = at;
        }
    }

    /// The next transmission leaves then; its serial is `serial`.
    fn push(&mut self, at: Instant, serial: u64) {
        if self.times.is_empty() {
            self.first = serial;
        }
        self.times.push_back(at);
        if self.times.len() > MOST_DEPARTURES {
            self.times.pop_front();
            self.first += 1;
        }
    }

    /// When the transmission `serial` left; `None` while it is in the buffer, and once it is forgotten.
    pub(crate) fn of(&self, serial: u64) -> Option<Instant> {
        let place = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        self.times.get(place).copied().filter(|time| *time < Instant::MAX)
    }

    /// Forgets the transmissions before `serial`.
    pub(crate) fn forget_before(&mut self, serial: u64) {
        while self.first < serial && self.times.pop_front().is_some() {
            self.first += 1;
        }
        slack::give_back(&mut self.times);
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        slack::room(&self.times) + slack::room(&self.handed_over)
    }

    /// The last transmission that left no later than `until`, as far as is known: one before those that are remembered else.
    pub(crate) fn last_until(&self, until: Instant) -> u64 {
        let left = self.times.partition_point(|time| *time <= until && *time < Instant::MAX) as u64;
        (self.first + left).saturating_sub(1)
    }

    /// Forgets the transmissions that left by then.
    pub(crate) fn forget_until(&mut self, until: Instant) {
        while self.times.pop_front_if(|time| *time <= until).is_some() {
            self.first += 1;
        }
        slack::give_back(&mut self.times);
    }

    /// The last transmission that left no later than this after the transmission `serial`, before which all are forgotten. `None` if that one was.
    pub(crate) fn last_within(&mut self, serial: u64, after: Duration) -> Option<u64> {
        self.forget_before(serial);
        let until = self.times.front().filter(|_| self.first == serial)?.saturating_add(after);
        // What is still in the buffer leaves at no known time.
        let left = self.times.partition_point(|time| *time <= until && *time < Instant::MAX) as u64;
        Some(self.first + left.checked_sub(1)?)
    }
}

/// More than two windows at their widest: nobody is heard of for long then.
const MOST_DEPARTURES: usize = 2 * MAX_WINDOW as usize;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn last_within(departures: &mut Departures, serial: u64, ms: u64) -> Option<u64> {
        departures.last_within(serial, Duration::from_millis(ms))
    }

    #[test]
    fn without_a_buffer_frames_leave_as_they_are_handed_over() {
        let mut departures = Departures::default();
        for serial in 1..=5 {
            departures.hand_over(at(10 * serial), Some(serial));
        }
        assert_eq!(last_within(&mut departures, 2, 0), Some(2));
        assert_eq!(last_within(&mut departures, 2, 19), Some(3));
        assert_eq!(last_within(&mut departures, 3, 1000), Some(5));
        assert_eq!(last_within(&mut departures, 2, 0), None, "forgotten");
    }

    #[test]
    fn what_is_still_in_the_buffer_has_not_left() {
        let mut departures = Departures { is_buffered: true, ..Departures::default() };
        for serial in [Some(1), None, Some(2), Some(3)] {
            departures.hand_over(at(0), serial);
        }
        assert_eq!(last_within(&mut departures, 1, 1000), None);
        departures.depart(at(500));
        assert_eq!(last_within(&mut departures, 1, 1000), Some(1));
        departures.depart(at(600));
        assert_eq!(last_within(&mut departures, 1, 1000), Some(1), "the second frame was no transmission");
        departures.depart(at(700));
        assert_eq!(last_within(&mut departures, 1, 1000), Some(2));
        assert_eq!(last_within(&mut departures, 1, 199), Some(1));
    }

    #[test]
    fn after_a_reset_what_was_in_the_buffer_leaves_unheeded() {
        let mut departures = Departures { is_buffered: true, ..Departures::default() };
        departures.hand_over(at(0), Some(7));
        departures.reset();
        departures.hand_over(at(1), Some(1));
        departures.depart(at(500));
        assert_eq!(last_within(&mut departures, 1, 1000), None);
        departures.depart(at(501));
        assert_eq!(last_within(&mut departures, 1, 1000), Some(1));
    }

    #[test]
    fn the_oldest_are_forgotten_and_the_newest_found() {
        let mut departures = Departures::default();
        let last = MOST_DEPARTURES as u64 + 10;
        for serial in 1..=last {
            departures.hand_over(at(serial), Some(serial));
        }
        assert_eq!(last_within(&mut departures, 10, u64::from(u32::MAX)), None);
        assert_eq!(last_within(&mut departures, 11, 0), Some(11));
        assert_eq!(last_within(&mut departures, last, 0), Some(last));
    }
}
