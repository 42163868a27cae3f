//! Gives up packets whose time is up, whether or not they were sent.
//!
//! As in RFC 3758, 3.5, the sender abandons what is too old ("timed reliability"), takes it out of account, and tells the receiver a
//! point, here the *floor*, before which nothing will be sent again.
//!
//! Deviations: the chunk is the floor in any frame (`frame`). Streams need not be named, as a packet tells how far back the one before
//! in its flow is.

use core::cmp::Reverse;

use base::{Instant, Packet};

use crate::event::Event;
use crate::flow;

use super::{FLOWS, Sender};

impl Sender {
    /// Gives up all packets whose time is up; whether the receiver may be waiting for one of them.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let mut is_news = false;
        while let Some(&Reverse((at, number))) = self.expiring.peek()
            && at <= now
        {
            self.expiring.pop();
            is_news |= self.expire_packet(number);
        }
        is_news
    }

    /// When a packet that has not arrived may have to be given up.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiring.peek().map(|Reverse((at, _))| *at)
    }

    /// Packets given up because their time was up.
    pub(crate) const fn expired(&self) -> u64 {
        self.expired
    }

    /// Whether the receiver is to say something: of frames that it may not have, or that it has heard of those that have expired.
    pub(crate) fn awaits_report(&self) -> bool {
        self.has_outstanding() || self.told_floor() > self.base
    }

    /// From now on the receiver is told the floor until it has heard of it, and answers.
    pub(crate) fn tell_floor(&mut self) {
        self.tells_floor = true;
    }

    /// The floor, where the receiver is told of it; otherwise the first frame that no cumulative acknowledgement covers.
    pub(crate) fn told_floor(&self) -> u64 {
        if self.tells_floor { self.floor() } else { self.base }
    }

    /// Whether a packet of the flow with this hash may not have arrived. Flows that share a place are taken for one.
    pub(crate) fn carries(&self, hash: u64) -> bool {
        let of_pending = || self.packets.back().is_some_and(|packet| flow::hash(packet) == hash);
        let after_last = self.flows.get((hash % FLOWS as u64) as usize);
        after_last.is_some_and(|after| *after > self.base) || self.is_pending() && of_pending()
    }

    /// Whether a frame of the window is of a packet that has expired.
    pub(super) fn is_expired(&self, sequence: u64) -> bool {
        let place = self.frame(sequence).packet - self.packets_done;
        self.packets[place as usize].is_empty()
    }

    /// Packets that have left need no time.
    pub(super) fn forget_expiries(&mut self) {
        while let Some(Reverse((_, number))) = self.expiring.peek()
            && *number < self.packets_done
        {
            self.expiring.pop();
        }
        // Long after a burst few of them are left.
        if self.expiring.len() < self.expiring.capacity() / 8 {
            self.expiring.shrink_to(2 * self.expiring.len() + LEAST_ROOM);
        }
    }

    /// Gives up a packet; whether frames of it were given up that have a number.
    fn expire_packet(&mut self, number: u64) -> bool {
        let Some(place) = number.checked_sub(self.packets_done).map(|place| place as usize) else {
            return false;
        };
        if self.is_pending() && place + 1 == self.packets.len() {
            if self.cut == Some(0) {
                self.cut = None;
                self.expired += 1;
                if let Some(packet) = self.packets.pop_back() {
                    self.buffers -= packet.capacity();
                    self.events.push(|| Event::GivenUp(packet));
                }
                return false;
            }
            // The rest has a number, so that the packet has an end.
            self.cut_frame(usize::MAX);
        }
        let from = self.frames.partition_point(|frame| frame.packet < number);
        let to = self.frames.partition_point(|frame| frame.packet <= number);
        let mut is_given_up = false;
        for offset in from..to {
            if !self.frames[offset].is_received {
                self.give_up(self.base + offset as u64);
                is_given_up = true;
            }
        }
        if is_given_up {
            self.expired += 1;
            // Its frames will not be read again.
            let packet = core::mem::replace(&mut self.packets[place], Packet::empty());
            self.buffers -= packet.capacity();
        }
        is_given_up
    }
}

/// Times for which there is always room.
const LEAST_ROOM: usize = 64;
