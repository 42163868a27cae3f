//! Packets and datagrams between the kernel and the hub.

use std::io;

use base::{Duration, Instant, Packet};
use tunnel::Sent;
use tunnel::counters::Counter;
use tunnel::hub::Taken;
use tunnel::path::{CarrierId, MOST_CARRIERS};
use tunnel::session::{Rejection, is_denial};

use super::worker::Worker;
use super::workers::{Parcel, Post};
use crate::carrier::Carrier;
use crate::clock::sleep;
use crate::readiness::Ready;
use crate::tun::Written;

/// What passed the TUN device, and what did not.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(super) struct Traffic {
    tun_packets_read: Counter,
    tun_packets_written: Counter,
    /// The kernel's queue was full.
    tun_dropped_full: Counter,
    /// The kernel refused the packet.
    tun_dropped_refused: Counter,
}

/// Packets read from the TUN, or batches from the carrier, before the other direction has its turn.
const TURN: usize = 16;
/// Parcels of other workers before others have their turn.
const PARCELS: usize = 256;
/// Datagrams sent before arrivals have their turn: two batches.
const DATAGRAMS: usize = 128;
/// For a gateway that ends to say so to all its peers.
const LEAVING: Duration = Duration::from_secs(1);
/// Before a device whose queue was full is tried again: what a gigabit takes for a few dozen packets.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

impl Worker {
    /// Moves packets from the TUN to the hub, a few at most. Without a rate each is cut up and sealed at once, while it is in the cache.
    pub(super) fn read_tun(&mut self, now: Instant) -> io::Result<()> {
        for turn in 0..TURN {
            // The first time the device may have an error to tell, which shows whatever is wanted.
            if turn > 0 && !self.hub.wants_packets() {
                break;
            }
            let Some(packet) = self.tun.read()? else { break };
            self.traffic.tun_packets_read.increment();
            if let Some((worker, packet)) = self.take_packet(now, packet)
                && let Some(post) = &mut self.post
            {
                post.send(worker, Parcel::Packet(packet));
            }
        }
        self.deliver(now);
        Ok(())
    }

    /// Gives the hub a packet from the LAN; back comes one that is for a peer of another worker.
    fn take_packet(&mut self, now: Instant, packet: Packet) -> Option<(u32, Packet)> {
        match self.hub.handle_packet(now, packet) {
            Taken::Here => None,
            Taken::ToLeave => {
                self.transmit(true);
                None
            }
            Taken::Elsewhere(worker, packet) => Some((worker, packet)),
        }
    }

    /// Takes what has arrived at carriers that are `ready`, or have waited for a time, a few batches at most each, and delivers what it completes.
    pub(super) fn receive(&mut self, now: Instant, ready: &[Ready]) -> io::Result<()> {
        for (at, ready) in ready.iter().enumerate().take(self.carriers.len()) {
            let is_due = self.carriers[at].poll_timeout().is_some_and(|due| due <= now);
            if is_due && let Some(is_there) = self.carriers[at].tend(now) {
                self.came_or_went.push((at, is_there));
            }
            if ready.read || is_due {
                self.receive_over(now, CarrierId(at as u8))?;
            }
        }
        Ok(())
    }

    fn receive_over(&mut self, now: Instant, via: CarrierId) -> io::Result<()> {
        for _ in 0..TURN {
            let Self { carriers, hub, complaints, post, .. } = self;
            let is_more = carriers[via.at()].receive(now, via, |from, ecn, datagram| {
                if let Some(post) = post
                    && let Some(worker) = post.is_for(datagram)
                {
                    return post.send(worker, Parcel::Datagram(from, ecn, datagram.to_vec()));
                }
                if let Err(rejection) = hub.handle_datagram(now, from, ecn, datagram) {
                    if let Some(post) = post
                        && rejection == Rejection::UnknownSession
                        && is_denial(datagram)
                    {
                        post.send_all(|| Parcel::Datagram(from, ecn, datagram.to_vec()));
                    }
                    complaints.on_rejection(now, from.peer, rejection);
                }
            })?;
            self.hand_over();
            self.deliver(now);
            if !is_more {
                break;
            }
        }
        Ok(())
    }

    /// Hands over the calls that other workers are to answer.
    fn hand_over(&mut self) {
        let Some(post) = &mut self.post else { return };
        while let Some(handover) = self.hub.poll_handover() {
            let worker = self.hub.worker().of_peer(handover.peer().number());
            post.send(worker, Parcel::Call(handover));
        }
    }

    /// Takes what other workers have passed, a number at most.
    pub(super) fn take_parcels(&mut self, now: Instant) {
        let mut left = PARCELS;
        while left > 0
            && let Some(parcel) = self.post.as_mut().and_then(Post::poll)
        {
            left -= 1;
            self.take_parcel(now, parcel);
        }
        self.hand_over();
        self.deliver(now);
        if left == 0 {
            self.post.as_ref().into_iter().for_each(Post::remind);
        }
    }

    fn take_parcel(&mut self, now: Instant, parcel: Parcel) {
        let (from, taken) = match parcel {
            Parcel::Packet(packet) => {
                if self.take_packet(now, packet).is_some() {
                    self.post.as_mut().into_iter().for_each(Post::on_astray);
                }
                return;
            }
            Parcel::Datagram(from, ecn, mut datagram) => {
                (from, self.hub.handle_datagram(now, from, ecn, &mut datagram))
            }
            Parcel::Call(handover) => (handover.from(), self.hub.take_over(now, handover)),
        };
        if let Err(rejection) = taken {
            self.complaints.on_rejection(now, from.peer, rejection);
        }
    }

    /// Writes what the tunnels have for the LAN to the TUN.
    pub(super) fn deliver(&mut self, now: Instant) {
        while let Some(delivery) = self.hub.poll_packet(now) {
            match self.tun.deliver(&delivery) {
                Written::Yes => self.traffic.tun_packets_written.increment(),
                Written::Full => self.traffic.tun_dropped_full.increment(),
                Written::Refused => self.traffic.tun_dropped_refused.increment(),
            }
        }
    }

    /// Sends what may leave now, two batches at most; while `more` packets are about to come, only whole ones. What a train takes is
    /// measured, so the time is what it is, not when this turn of the loop began. Whether there may be more.
    pub(super) fn transmit(&mut self, more: bool) -> bool {
        let limit = self.carriers.iter().map(Carrier::batch_limit).min().unwrap_or(1);
        let mut left = DATAGRAMS;
        while left > 0 {
            let now = self.clock.now();
            let Some(transmit) = self.hub.poll_transmit(now, limit, more) else { break };
            left = left.saturating_sub(transmit.datagrams());
            let carrier = self.carriers.get_mut(transmit.to.via.at());
            let sent = carrier.map_or(Sent::Refused, |carrier| carrier.send(&transmit));
            self.hub.on_sent(now, sent);
            self.retry_at = match sent {
                Sent::Busy if !self.hub.full().is_empty() => Some(now + BUSY_PAUSE),
                // Another carrier may have taken more.
                _ if self.carriers.len() > 1 => self.retry_at,
                _ => None,
            };
        }
        left == 0
    }

    /// Says what there is to say when the gateway ends; how many connections were split. What finds no room now is lost, and found out
    /// later.
    pub(super) fn close(&mut self, now: Instant) -> usize {
        let split = self.hub.close(now);
        let until = now + LEAVING;
        let mut now = now;
        while now < until {
            let is_more = self.transmit(false);
            self.deliver(now);
            if !is_more && !self.hub.is_blocked() {
                break;
            }
            sleep(BUSY_PAUSE);
            now = self.clock.now();
            self.unblock(now, &[Ready { write: true, ..Ready::default() }; MOST_CARRIERS]);
        }
        split
    }

    /// Tells the hub that a carrier takes more, if one does.
    pub(super) fn unblock(&mut self, now: Instant, ready: &[Ready]) {
        let is_due = self.retry_at.take_if(|at| *at <= now).is_some();
        let mut is_writable = false;
        for (carrier, ready) in self.carriers.iter_mut().zip(ready) {
            is_writable |= ready.write && carrier.flush();
        }
        if is_due || is_writable {
            self.hub.on_writable();
        }
    }
}
