//! Gives up packets whose time is up, whether or not they were sent.
//!
//! As in RFC 3758, 3.5, the sender abandons what is too old ("timed reliability"), takes it out of account, and tells the receiver a
//! point, here the *floor*, before which nothing will be sent again.
//!
//! Deviations: the chunk is the floor in any frame (`frame`). Streams need not be named, as a packet tells how far back the one before
//! in its flow is.

use core::cmp::Reverse;

use base::{Instant, Packet};

use crate::arq::policy::Policy;
use crate::arq::sequence::on_air;
use crate::event::Event;
use crate::flow;

use super::{FLOWS, Sender};

impl<P: Policy> Sender<P> {
    /// Gives up all packets whose time is up.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(&Reverse((at, number))) = self.expiring.peek()
            && at <= now
        {
            self.expiring.pop();
            self.expire_packet(number);
        }
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

    /// The first frame that has not come and may still be sent again.
    pub(super) fn floor(&self) -> u64 {
        self.told.run_at(self.base).map_or(self.base, |(_, end)| end)
    }

    /// The floor, where the receiver is told of it; otherwise the first frame that no cumulative acknowledgement covers.
    pub(super) fn told_floor(&self) -> u64 {
        if self.policy.tells_floor() || self.abandoned > self.base { self.floor() } else { self.base }
    }

    /// The floor as it is on the air, where the receiver has not acknowledged all frames before it.
    pub(crate) fn pending_floor(&self) -> Option<u32> {
        let floor = self.floor();
        (floor > self.base).then(|| on_air(floor))
    }

    /// Whether a frame was given up, and none that left has told the floor since.
    pub(crate) const fn floor_is_news(&self) -> bool {
        self.floor_is_news
    }

    /// Whether the receiver is to hear that it need not wait for what has expired.
    pub(crate) fn has_floor_news(&self) -> bool {
        self.floor_is_news && self.told_floor() > self.base
    }

    /// The floor is to be told once more, where there is one.
    pub(crate) fn renew_floor(&mut self) {
        self.floor_is_news |= self.floor() > self.base;
    }

    /// A frame leaves that tells the floor.
    pub(crate) const fn on_floor_told(&mut self) {
        self.floor_is_news = false;
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

    /// Gives up all packets of which anything has left, and keeps notes of them alone, until the receiver has heard so: it is told by whatever
    /// leaves next.
    pub(crate) fn abandon(&mut self) {
        let begun = self.packets.len() - usize::from(self.cut == Some(0));
        for place in 0..begun {
            self.expire_packet(self.packets_done + place as u64);
            // Some had been given up before.
            let packet = core::mem::replace(&mut self.packets[place], Packet::empty());
            self.buffers -= packet.capacity();
        }
        self.abandoned = self.next();
        self.renew_floor();
    }

    fn expire_packet(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.packets_done).map(|place| place as usize) else { return };
        if self.is_pending() && place + 1 == self.packets.len() {
            if self.cut == Some(0) {
                self.cut = None;
                self.expired += 1;
                if let Some(packet) = self.packets.pop_back() {
                    self.buffers -= packet.capacity();
                    self.events.push(|| Event::GivenUp(packet));
                }
                return;
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
    }
}

/// Times for which there is always room.
const LEAST_ROOM: usize = 64;
