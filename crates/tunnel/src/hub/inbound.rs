//! What comes in: datagrams from the carrier, packets from the LAN; and what goes out to the LAN.

use base::wire::ip::{self, Ecn};
use base::{Instant, Packet};

use super::{AFTERLIFE, Handover, Hub, MOST_REPLIES, PeerId, count};
use crate::path::Path;
use crate::proxy_side::Delivery;
use crate::session::{Received, Rejection, denied, initiates, receiver};

/// What became of a packet from the LAN.
#[derive(Debug)]
pub enum Taken {
    /// It is in its tunnel, or dropped and counted.
    Here,
    /// It is in a tunnel that sends as fast as it can, so that it is best cut up at once.
    ToLeave,
    /// It is for a peer of the worker with this number.
    Elsewhere(u32, Packet),
}

impl Hub {
    /// Takes a packet from the LAN, perhaps a super-segment behind its metadata.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) -> Taken {
        let destination = ip::View::parse(link::flow::without_metadata(&packet)).ok().map(|view| view.dst());
        let Some(id) = destination.and_then(|address| self.prefixes.owner(address)) else {
            self.traffic.packets_without_peer.increment();
            return Taken::Here;
        };
        if !self.worker.has_peer(id.0) {
            return Taken::Elsewhere(self.worker.of_peer(id.0), packet);
        }
        self.touch(id);
        let Some(member) = &mut self.members[id.at()] else {
            self.traffic.packets_without_peer.increment();
            return Taken::Here;
        };
        if !self.memory.has_room(id) && !member.tunnel.is_clear() {
            self.traffic.packets_without_memory.increment();
            return Taken::Here;
        }
        member.tunnel.handle_packet(now, packet);
        if self.memory.is_due(id) {
            count(&mut self.memory, id, &mut member.tunnel);
        }
        if member.tunnel.rate().is_some() {
            return Taken::Here;
        }
        self.fed = Some(id);
        Taken::ToLeave
    }

    /// Whether packets from the LAN are wanted. With one peer what its tunnel has no room or memory for may wait in the kernel; with more, those
    /// of others must not, nor those of other workers' peers.
    #[must_use]
    pub fn wants_packets(&self) -> bool {
        let mut tunnels = self.peers();
        match (tunnels.next(), tunnels.next()) {
            (Some((id, only)), None) if self.worker.is_only() => {
                only.wants_packets() && (self.memory.has_room(id) || only.is_clear())
            }
            _ => true,
        }
    }

    /// Takes a datagram that came from `from`, with the ECN field of its header. It is opened in place.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped; it is counted.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: Path,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), Rejection> {
        if initiates(datagram) {
            let taken = self.handle_initiation(now, from, datagram);
            return taken.inspect_err(|rejection| self.rejected.increment(rejection.counter()));
        }
        let id = match denied(datagram) {
            Some(index) => self.who_may_be_denied(now, index),
            None => receiver(datagram).map(|index| PeerId(self.peer_of(index))).ok_or(Rejection::UnknownType),
        };
        let known = id.and_then(|id| match self.members.get_mut(id.at()) {
            Some(Some(member)) => Ok((id, member)),
            _ => Err(Rejection::UnknownSession),
        });
        let taken = match known {
            Ok((id, member)) => {
                let taken = member.tunnel.handle_datagram(now, from, ecn, datagram);
                self.follow(now, id);
                taken
            }
            Err(rejection) => {
                self.rejected.increment(rejection.counter());
                Err(rejection)
            }
        };
        if taken == Err(Rejection::UnknownSession) {
            self.deny(now, from, datagram);
        }
        taken
    }

    /// Tells whoever still uses a session of a former life so, for as long as somebody may not have noticed.
    fn deny(&mut self, now: Instant, from: Path, datagram: &[u8]) {
        if now < *self.since.get_or_insert(now) + AFTERLIFE
            && self.replies.len() < MOST_REPLIES
            && let Ok(denial) = self.reception.deny(now, from, datagram)
        {
            self.replies.push_back((from, denial));
            self.traffic.denials_sent.increment();
        }
    }

    /// Whose session a denial of this index is about. The index is the peer's, so all are asked.
    fn who_may_be_denied(&mut self, now: Instant, index: u32) -> Result<PeerId, Rejection> {
        if !self.denials.take(now) {
            return Err(Rejection::TooManyHandshakes);
        }
        let mut peers = self.peers();
        let found = peers.find(|(_, tunnel)| tunnel.session().may_be_denied(index));
        found.map(|(id, _)| id).ok_or(Rejection::UnknownSession)
    }

    /// The number of the peer that an index is of. Datagrams of one session often come in a row.
    fn peer_of(&mut self, index: u32) -> u32 {
        if self.latest.0 != index || self.latest.1 == u32::MAX {
            self.latest = (index, self.indices.peer(index));
        }
        self.latest.1
    }

    fn handle_initiation(&mut self, now: Instant, from: Path, datagram: &[u8]) -> Result<(), Rejection> {
        let Self { reception, members, neighbours, by_key, .. } = self;
        let allows = |number: u32| {
            let member = members.get_mut(number as usize).and_then(Option::as_mut);
            let own = member.map(|member| member.tunnel.allows_answer(now));
            own.or_else(|| neighbours.allows_answer(now, PeerId(number)))
        };
        let challenge = match reception.handle_initiation(now, from, datagram, allows)? {
            Received::Challenged(challenge) => challenge,
            Received::Call(call) => {
                let known = by_key.get(&call.key()).copied();
                let id = known.ok_or(Rejection::UnknownPeer(call.key()))?;
                if let Some(is_newest) = neighbours.is_newest(id, &call) {
                    if is_newest {
                        let handover = Handover::new(id, reception.hand_over(now, call, id.0));
                        self.traffic.calls_without_room.add(u64::from(!neighbours.hand_over(handover)));
                        return Ok(());
                    }
                } else if let Some(member) = members.get_mut(id.at()).and_then(Option::as_mut)
                    && member.tunnel.session().is_newest(&call)
                {
                    let reply = reception.reply(now, from, id.0);
                    let answered = member.tunnel.handle_call(now, call, reply);
                    self.touch(id);
                    return answered;
                }
                reception.challenge_again(now, &call)?
            }
        };
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back((from, challenge));
            self.traffic.challenges_sent.increment();
        }
        Ok(())
    }

    /// A call for a peer of another worker, which that one's hub is to take with [`Hub::take_over`].
    pub fn poll_handover(&mut self) -> Option<Handover> {
        self.neighbours.poll()
    }

    /// Takes a call that the first worker's hub has admitted.
    ///
    /// # Errors
    /// [`Rejection`] says why it was dropped; it is counted. It may be that the peer has been removed meanwhile.
    pub fn take_over(&mut self, now: Instant, handover: Handover) -> Result<(), Rejection> {
        let id = handover.peer();
        let (call, reply) = self.reception.take_over(handover.admitted);
        let member = self.members.get_mut(id.at()).and_then(Option::as_mut);
        let taken = match member.filter(|member| member.tunnel.session().peer_key() == call.key()) {
            Some(member) => {
                let answered = member.tunnel.handle_call(now, call, reply);
                self.touch(id);
                answered
            }
            None => Err(Rejection::UnknownPeer(call.key())),
        };
        taken.inspect_err(|rejection| self.rejected.increment(rejection.counter()))
    }

    /// A packet for the LAN. One whose source is not behind the peer that it comes from is dropped and counted.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Delivery> {
        while let Some(number) = self.delivering.first() {
            let member = self.members[number as usize].as_mut();
            let Some(delivery) = member.and_then(|member| member.tunnel.poll_packet(now)) else {
                self.delivering.pop();
                continue;
            };
            let source =
                ip::View::parse(link::flow::without_metadata(&delivery.packet)).ok().map(|view| view.src());
            if source.and_then(|address| self.prefixes.owner(address)) == Some(PeerId(number)) {
                return Some(delivery);
            }
            self.traffic.packets_from_elsewhere.increment();
        }
        None
    }
}
