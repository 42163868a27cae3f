//! Who is a peer: at a hub by itself, or at those of several workers, which are told the same in the same order.

use std::sync::Arc;

use base::Prefix;
use link::Endpoint;

use super::{Hub, Member, Membership, Offered, PeerId, Unfit};
use crate::key::PublicKey;
use crate::session::{Ends, MOST_PEERS};
use crate::tunnel::Tunnel;

impl Hub {
    /// Takes somebody in, at this worker, which is the first or the only one.
    ///
    /// # Errors
    /// [`Unfit`] says why not; nothing has changed then.
    pub fn add(&mut self, membership: Membership) -> Result<PeerId, Unfit> {
        let line = membership.config.first_line();
        let endpoint = membership.config.link.protocol.build(&line);
        self.add_with_endpoint(membership, endpoint)
    }

    /// Takes somebody in, at this worker, which is the first or the only one, with the caller's endpoint instead of
    /// one of the configured protocol. Its frames must fit the carrier
    /// ([`frame_limit`](crate::config::CarrierLimits::frame_limit)), and the peer must have one like it.
    ///
    /// # Errors
    /// As [`Hub::add`].
    pub fn add_with_endpoint(
        &mut self,
        membership: Membership,
        endpoint: Box<dyn Endpoint>,
    ) -> Result<PeerId, Unfit> {
        let id = self.enrol_at(self.worker.number(), membership.key, &membership.allowed)?;
        self.settle_with_endpoint(id, membership, endpoint);
        Ok(id)
    }

    /// Gives somebody a number, which says whose peer it is: that of the worker with the fewest. For the first worker's hub. All others
    /// follow with [`Hub::enrol_as`], and the peer's own builds its tunnel with [`Hub::settle`].
    ///
    /// # Errors
    /// As [`Hub::add`].
    pub fn enrol(&mut self, key: PublicKey, allowed: &[Prefix]) -> Result<PeerId, Unfit> {
        self.enrol_at(self.numbers.least(), key, allowed)
    }

    fn enrol_at(&mut self, worker: u32, key: PublicKey, allowed: &[Prefix]) -> Result<PeerId, Unfit> {
        let id = self.numbers.next(worker);
        self.enrol_as(id, key, allowed)?;
        self.numbers.take(worker);
        Ok(id)
    }

    /// Knows somebody under the number that the first worker's hub gave. Its packets find it from now on, as far as there is a tunnel.
    ///
    /// # Errors
    /// As [`Hub::add`], if this hub was not told all that the first was.
    pub fn enrol_as(&mut self, id: PeerId, key: PublicKey, allowed: &[Prefix]) -> Result<(), Unfit> {
        if key == self.public {
            return Err(Unfit::Own);
        }
        if let Some(known) = self.by_key.get(&key) {
            return Err(Unfit::Known(*known));
        }
        if id.at() >= MOST_PEERS {
            return Err(Unfit::Full);
        }
        self.prefixes.set(id, allowed)?;
        self.by_key.insert(key, id);
        if !self.worker.has_peer(id.0) {
            self.neighbours.add(id, key);
        }
        Ok(())
    }

    /// Builds the tunnel to a peer of this worker's that was enrolled.
    pub fn settle(&mut self, id: PeerId, membership: Membership) {
        let line = membership.config.first_line();
        let endpoint = membership.config.link.protocol.build(&line);
        self.settle_with_endpoint(id, membership, endpoint);
    }

    fn settle_with_endpoint(&mut self, id: PeerId, membership: Membership, endpoint: Box<dyn Endpoint>) {
        debug_assert!(self.worker.has_peer(id.0) && self.find(&membership.key) == Some(id));
        let Membership { key, preshared, place, weight, config, .. } = membership;
        let ends = Ends { own: Arc::clone(&self.own), peer: key, preshared };
        let (indices, random) = ((self.indices, id.0), (self.randoms.0)());
        let tunnel = Tunnel::new(config, endpoint, ends, place, indices, random);
        while self.members.len() <= id.at() {
            self.members.push(None);
            self.deadlines.add(None);
            self.wakes.add(None);
            self.share.add();
            self.memory.add();
        }
        let super_segment = tunnel.super_segment();
        self.super_segments.add(super_segment);
        self.members[id.at()] = Some(Box::new(Member {
            tunnel,
            weight: weight.max(1),
            super_segment,
            stuck: None,
            was_settled: false,
        }));
        self.touch(id);
    }

    /// Takes somebody out: its session ends here and now, and its datagrams are nobody's.
    pub fn remove(&mut self, id: PeerId) {
        let member = self.members.get_mut(id.at()).and_then(Option::take);
        let neighbour = self.neighbours.remove(id);
        let Some(key) = neighbour.or(member.as_ref().map(|member| member.tunnel.session().peer_key())) else {
            return;
        };
        self.by_key.remove(&key);
        self.prefixes.remove(id);
        if self.worker.number() == 0 {
            self.numbers.free(id);
        }
        let Some(member) = member else { return };
        self.super_segments.remove(member.super_segment);
        self.deadlines.set(id.0, None);
        self.wakes.set(id.0, None);
        self.share.rest(id);
        self.memory.forget(id);
        self.offered.take_if(|offered| *offered == Offered::Of(id));
        self.held.remove(id.0);
        if self.held.first().is_none() {
            // Nobody waits for a carrier any more.
            self.on_writable();
        }
    }
}
