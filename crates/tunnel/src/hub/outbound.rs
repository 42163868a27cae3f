//! What leaves next, of all tunnels.

use base::Instant;
use link::Marks;

use super::{Hub, Offered, PeerId};
use crate::path::Carriers;
use crate::tunnel::{Sent, Transmit};

impl Hub {
    /// What is to leave now: a datagram, or a batch of up to `limit` of equal marks for one place. Say with [`Hub::on_sent`] what became of it
    /// before the next call.
    ///
    /// While `more` packets are about to come, a batch that is not full may wait for them; unless all tunnels share a rate, only the one
    /// that the latest packet was for is asked.
    pub fn poll_transmit(&mut self, now: Instant, limit: usize, more: bool) -> Option<Transmit<'_>> {
        self.offered = self.choose(now, limit, more);
        match self.offered? {
            Offered::Reply => self.replies.front().map(|(to, datagram)| Transmit {
                to: *to,
                marks: Marks::default(),
                bytes: datagram,
                segment: datagram.len(),
            }),
            Offered::Of(id) => self.members[id.at()].as_ref()?.tunnel.chosen(),
        }
    }

    fn choose(&mut self, now: Instant, limit: usize, more: bool) -> Option<Offered> {
        if self.is_blocked() {
            return None;
        }
        if more && !self.share.is_limited() {
            return self.fed.filter(|id| self.offers(now, *id, limit, more)).map(Offered::Of);
        }
        if !self.replies.is_empty() && self.share.is_free(now) {
            return Some(Offered::Reply);
        }
        // Each has its turn once at most; one that waits for more of its own keeps it.
        let mut waiting = Vec::new();
        let chosen = loop {
            let Some((id, at_once)) = self.share.next(now, DATAGRAM_LEN) else { break None };
            if self.offers(now, id, limit.min(at_once), more) {
                break Some(Offered::Of(id));
            }
            // Its deadline may be another now.
            self.stale.push(id.0);
            self.telling.push(id.0);
            self.share.rest(id);
            if more {
                waiting.push(id);
            }
        };
        waiting.into_iter().for_each(|id| self.share.wake(id));
        chosen
    }

    /// Whether a tunnel has something to send.
    fn offers(&mut self, now: Instant, id: PeerId, limit: usize, more: bool) -> bool {
        if !self.full.is_empty() {
            self.held.push(id.0);
        }
        let member = self.members[id.at()].as_mut();
        member.is_some_and(|member| member.tunnel.decide(now, (limit, more), self.full, &mut self.rooms))
    }

    /// What became of the datagrams that [`Hub::poll_transmit`] gave last.
    pub fn on_sent(&mut self, now: Instant, sent: Sent) {
        match self.offered.take() {
            None => {}
            Some(Offered::Reply) => {
                // Whoever was to hear it asks again.
                if let Some((_, datagram)) = self.replies.pop_front() {
                    self.share.on_sent_for_all(now, datagram.len() + HEADERS_LEN);
                }
            }
            Some(Offered::Of(id)) => self.on_tunnel_sent(now, id, sent),
        }
    }

    fn on_tunnel_sent(&mut self, now: Instant, id: PeerId, sent: Sent) {
        let Some(member) = self.members[id.at()].as_mut() else { return };
        let bytes = member.tunnel.chosen_on_line();
        member.tunnel.on_sent(now, sent, &mut self.rooms);
        match member.tunnel.blocked_by() {
            Some(carrier) => {
                self.full.insert(carrier);
                self.held.push(id.0);
            }
            None => self.share.on_sent(now, id, member.weight, bytes),
        }
        self.stale.push(id.0);
        if !member.is_settled(now) {
            self.telling.push(id.0);
        } else if !member.tunnel.has_control() {
            self.share.rest(id);
        }
    }

    /// Whether the buffers of all carriers were full.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.full.len() >= self.carriers
    }

    /// Carriers whose buffers were full.
    #[must_use]
    pub const fn full(&self) -> Carriers {
        self.full
    }

    /// Carriers whose buffers were full may take more again.
    pub fn on_writable(&mut self) {
        self.full = Carriers::default();
        while let Some(number) = self.held.pop() {
            let id = PeerId(number);
            if let Some(Some(member)) = self.members.get_mut(id.at()) {
                member.tunnel.on_writable();
                self.touch(id);
            }
        }
    }
}

/// Bytes of a datagram, for how many make a turn.
const DATAGRAM_LEN: usize = 1500;
/// Of UDP over IPv6.
const HEADERS_LEN: usize = 48;
