//! Packets and datagrams between the kernel and the hub.

use std::io;

use base::{Duration, Instant};
use tunnel::Sent;
use tunnel::counters::Counter;

use super::Gateway;
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
/// Datagrams sent before arrivals have their turn: two batches.
const DATAGRAMS: usize = 128;
/// Before a device whose queue was full is tried again: what a gigabit takes for a few dozen packets.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

impl Gateway {
    /// Moves packets from the TUN to the hub, a few at most. Without a rate each is cut up and sealed at once, while it is in the cache.
    pub(super) fn read_tun(&mut self, now: Instant) -> io::Result<()> {
        for turn in 0..TURN {
            // The first time the device may have an error to tell, which shows whatever is wanted.
            if turn > 0 && !self.hub.wants_packets() {
                break;
            }
            let Some(packet) = self.tun.read()? else { break };
            self.traffic.tun_packets_read.increment();
            if self.hub.handle_packet(now, packet) {
                self.transmit(true);
            }
        }
        self.deliver(now);
        Ok(())
    }

    /// Takes what has arrived, a few batches at most, and delivers what it completes.
    pub(super) fn receive(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..TURN {
            let Self { carrier, hub, complaints, .. } = self;
            let is_more = carrier.receive(now, |from, ecn, datagram| {
                if let Err(rejection) = hub.handle_datagram(now, from, ecn, datagram) {
                    complaints.on_rejection(now, from.peer, rejection);
                }
            })?;
            self.deliver(now);
            if !is_more {
                break;
            }
        }
        Ok(())
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
    /// measured, so the time is what it is, not when this turn of the loop began.
    pub(super) fn transmit(&mut self, more: bool) {
        let limit = self.carrier.batch_limit();
        let mut left = DATAGRAMS;
        while left > 0 {
            let now = self.clock.now();
            let Some(transmit) = self.hub.poll_transmit(now, limit, more) else { break };
            left = left.saturating_sub(transmit.datagrams());
            let sent = self.carrier.send(&transmit);
            self.hub.on_sent(now, sent);
            self.retry_at = (self.hub.is_blocked() && sent == Sent::Busy).then(|| now + BUSY_PAUSE);
        }
    }

    /// Tells the hub that the carrier takes more, if it does.
    pub(super) fn unblock(&mut self, now: Instant, is_writable: bool) {
        let is_due = self.retry_at.take_if(|at| *at <= now).is_some();
        if is_due || (is_writable && self.carrier.flush()) {
            self.hub.on_writable();
        }
    }
}
