//! All hubs of a gateway: what concerns peers is told to those whom it concerns, the first worker's first.

use base::{Duration, Instant, Prefix};
use tunnel::config::Link;
use tunnel::hub::Unfit;
use tunnel::key::PublicKey;
use tunnel::path::Address;
use tunnel::{Hub, Membership, PeerId};

use super::orders::{Change, Order};
use super::{Whereabouts, Workers};

/// The first worker's hub, and the others' by what they are told. Changes reach these with [`Workers::commit`].
pub(in crate::daemon) struct Hubs<'a> {
    pub(in crate::daemon) first: &'a mut Hub,
    pub(in crate::daemon) others: &'a mut Workers,
}

impl Hubs<'_> {
    /// The peer with this key, if it is one.
    pub(in crate::daemon) fn find(&self, key: &PublicKey) -> Option<PeerId> {
        self.first.find(key)
    }

    /// The number of the worker that has a peer.
    fn worker(&self, id: PeerId) -> u32 {
        self.first.worker().of_peer(id.number())
    }

    /// Takes somebody in, at the worker that has the fewest peers. Of one that is known by its name, whereabouts are asked for later.
    pub(in crate::daemon) fn add(&mut self, membership: Membership, by_name: bool) -> Result<PeerId, Unfit> {
        if self.others.is_empty() {
            return self.first.add(membership);
        }
        let id = self.first.enrol(membership.key, &membership.allowed)?;
        self.change_all(|| Change::Enrol(id, membership.key, membership.allowed.clone()));
        match self.worker(id) {
            0 => self.first.settle(id, membership),
            worker => self.others.change(worker, Change::Settle(id, Box::new(membership), by_name)),
        }
        Ok(id)
    }

    pub(in crate::daemon) fn remove(&mut self, id: PeerId) {
        self.first.remove(id);
        self.change_all(|| Change::Remove(id));
        self.others.whereabouts.remove(&id);
    }

    pub(in crate::daemon) fn set_allowed(&mut self, id: PeerId, allowed: &[Prefix]) -> Result<(), Unfit> {
        self.first.set_allowed(id, allowed)?;
        self.change_all(|| Change::SetAllowed(id, allowed.to_vec()));
        Ok(())
    }

    pub(in crate::daemon) fn set_weight(&mut self, id: PeerId, weight: u32) {
        match self.worker(id) {
            0 => self.first.set_weight(id, weight),
            worker => self.others.change(worker, Change::SetWeight(id, weight)),
        }
    }

    pub(in crate::daemon) fn reconfigure(
        &mut self,
        now: Instant,
        id: PeerId,
        link: &Link,
        keep_alive: Duration,
    ) {
        match self.worker(id) {
            0 => {
                if let Some(tunnel) = self.first.tunnel_mut(id) {
                    tunnel.reconfigure(now, link, keep_alive);
                }
            }
            worker => {
                let change = Change::Reconfigure(id, Box::new(*link), keep_alive);
                self.others.change(worker, change);
            }
        }
    }

    /// All peers together may take so many bytes: each worker's an equal part.
    pub(in crate::daemon) fn set_memory(&mut self, bytes: usize) {
        let part = bytes / self.first.worker().count() as usize;
        self.first.set_memory(part);
        self.change_all(|| Change::SetMemory(part));
    }

    /// Where a peer is that is known by name, as far as its worker has told; `None` if it is none.
    pub(in crate::daemon) fn whereabouts(&self, now: Instant, id: PeerId) -> Option<Whereabouts> {
        match self.worker(id) {
            0 => self.first.tunnel(id).map(|tunnel| Whereabouts::of(now, tunnel)),
            _ => Some(self.others.whereabouts.get(&id).copied().unwrap_or_default()),
        }
    }

    /// Has a peer called at `address` from now on.
    pub(in crate::daemon) fn call(&mut self, now: Instant, id: PeerId, address: Address) {
        match self.worker(id) {
            0 => {
                if let Some(tunnel) = self.first.tunnel_mut(id) {
                    tunnel.call_at(now, address);
                }
            }
            worker => self.others.threads.order(worker, Order::Call(id, address)),
        }
    }

    fn change_all(&mut self, change: impl Fn() -> Change) {
        self.others.changes.iter_mut().for_each(|changes| changes.push(change()));
    }
}
