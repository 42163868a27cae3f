//! Limited persistence: packets are given up, and the receiver is told to skip their frames.
//!
//! Faulkner 2004, 5.2 (7), argues against it and names no mechanism; all of this is ours, and off unless asked for. A packet
//! is given up as a whole, once its time is over or one of its frames would be sent once too often. Time counts from
//! the first transmission of its first frame and is looked at when the line asks for a frame: that is soon enough, since
//! nothing could be sent instead before. What was not cut by then is never sent.
//!
//! The frames that are given up stay in the window until an acknowledgement covers them, which it does when the receiver
//! has skipped them. Until then they are told again and again, one range at a time.

use base::{Duration, Instant};

use super::{Config, Sender, Set, on_air, place};
use crate::cotmll::{self, skip::Skip};
use crate::limit::Limit;

/// When a sender gives up, and what of it the receiver does not know yet.
#[derive(Debug)]
pub(super) struct Persistence {
    time: Option<Duration>,
    attempts: Option<u32>,
    /// Frames in the window that were given up and not acknowledged.
    abandoned: Set,
    /// Where the range ended that was told last.
    told_up_to: u64,
    /// Whether a range was never told.
    has_news: bool,
    /// Packets before this one need no further look at the time.
    judged: u64,
    packets: u64,
}

impl Persistence {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            time: config.persistence.map(cotmll::Persistence::get),
            attempts: config.attempts.map(Limit::get),
            abandoned: Set::default(),
            told_up_to: 0,
            has_news: false,
            judged: 0,
            packets: 0,
        }
    }

    /// A frame is acknowledged: the receiver has it, or has skipped it.
    #[inline]
    pub(super) fn settle(&mut self, sequence: u64) {
        if !self.abandoned.is_empty() {
            self.abandoned.remove(sequence);
            self.has_news &= !self.abandoned.is_empty();
        }
    }

    /// Frames are acknowledged, some of them perhaps among those given up.
    #[inline]
    pub(super) fn settle_all(&mut self, start: u64, end: u64) {
        let mut at = start;
        while !self.abandoned.is_empty()
            && let Some(sequence) = self.abandoned.first_in(at, end)
        {
            self.settle(sequence);
            at = sequence + 1;
        }
    }

    pub(super) const fn keep_count(&mut self, packets: u64) {
        self.packets = packets;
    }
}

impl Sender {
    /// Gives up the packets that are overdue at `now`, or of which the frame that rule 1 or 3 would send next was sent often
    /// enough.
    #[inline]
    pub(in crate::cotmll) fn give_up_overdue(&mut self, now: Instant) {
        if let Some(time) = self.persistence.time {
            self.give_up_by_time(now, time);
        }
        if let Some(attempts) = self.persistence.attempts {
            while let Some(sequence) = self.next_again()
                && self.frames[place(sequence)].transmissions >= attempts
            {
                self.give_up((self.frames[place(sequence)].packet - self.packets_done) as usize);
            }
        }
    }

    /// Packets are first sent in their order, so those that are overdue come first.
    fn give_up_by_time(&mut self, now: Instant, time: Duration) {
        loop {
            let judged = self.persistence.judged.max(self.packets_done);
            let index = (judged - self.packets_done) as usize;
            let Some(outgoing) = self.packets.get(index) else { return };
            if outgoing.first_sent.saturating_add(time) > now {
                return;
            }
            self.persistence.judged = judged + 1;
            self.give_up(index);
        }
    }

    /// The frame that would be sent again now.
    fn next_again(&self) -> Option<u64> {
        if !self.flagged.is_empty() {
            self.flagged.first_in(self.base, self.next)
        } else if self.may_cut() {
            None
        } else {
            self.by_age.oldest().map(|place| self.sequence_at(place))
        }
    }

    /// Gives up a packet, unless all of it has arrived.
    fn give_up(&mut self, index: usize) {
        let following = self.packets.get(index + 1).map_or(u64::MAX, |outgoing| outgoing.first_frame);
        let end = following.min(self.next);
        let mut at = self.packets[index].first_frame.max(self.base);
        let is_cut = self.is_pending() && index + 1 == self.packets.len();
        let mut is_whole = !is_cut;
        while let Some(sequence) = self.outstanding.first_in(at, end) {
            self.settle(sequence);
            self.persistence.abandoned.insert(sequence);
            self.persistence.has_news = true;
            is_whole = false;
            at = sequence + 1;
        }
        if is_whole {
            return;
        }
        self.packets[index].given_up = true;
        self.persistence.packets += 1;
        self.persistence.told_up_to = self.base;
        if is_cut {
            self.stop_cutting();
        }
    }

    /// What is not cut of the last packet will not be.
    fn stop_cutting(&mut self) {
        self.cut = None;
        if self.base == self.next {
            // None of its frames is left in the window to take it along.
            self.drop_first();
        } else {
            // Never sent again, so the peer does not see this.
            self.frames[place(self.next - 1)].last = true;
        }
    }

    /// Whether the receiver is still to be told of frames that were given up.
    #[inline]
    pub(in crate::cotmll) const fn has_skips(&self) -> bool {
        !self.persistence.abandoned.is_empty()
    }

    /// Whether some of that was never told.
    #[inline]
    pub(in crate::cotmll) const fn has_new_skips(&self) -> bool {
        self.persistence.has_news
    }

    /// The range to tell now: all in turn, from a frame that was given up to the next that was not.
    pub(in crate::cotmll) fn next_skip(&mut self) -> Option<Skip> {
        let abandoned = &self.persistence.abandoned;
        let from = self.persistence.told_up_to.max(self.base);
        let start = abandoned.first_in(from, self.next);
        let start = start.or_else(|| abandoned.first_in(self.base, self.next))?;
        // What has arrived in between is not harmed.
        let end = self.outstanding.first_in(start, self.next).unwrap_or(self.next);
        self.persistence.told_up_to = end;
        self.persistence.has_news &= abandoned.first_in(end, self.next).is_some();
        Some(Skip { start: on_air(start), count: (end - start) as u16 })
    }

    /// Packets given up so far.
    pub(in crate::cotmll) const fn packets_given_up(&self) -> u64 {
        self.persistence.packets
    }
}
