//! Peers that are known by name: they are called where their names are now.
//!
//! At the start the daemon does not wait for an answer: a terminal may boot before its name server can be reached.

mod whereabouts;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

use base::Instant;
use tunnel::PeerId;
use tunnel::path::Address;

use super::Notice;
use super::workers::Hubs;
use crate::carrier::resolver::Resolver;
use crate::config::{Carrier, Peer};
use whereabouts::Whereabouts;

/// All peers that are known by name, and the questions for their addresses.
#[derive(Debug)]
pub(super) struct Names {
    resolver: Resolver,
    peers: BTreeMap<PeerId, Named>,
    /// Questions so far.
    questions: u64,
    /// When a question is due next, or one is to be looked for.
    due: Option<Instant>,
}

#[derive(Debug)]
struct Named {
    whereabouts: Whereabouts,
    /// The number of the question on its way.
    question: Option<u64>,
}

impl Names {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { resolver: Resolver::new()?, peers: BTreeMap::new(), questions: 0, due: None })
    }

    /// Follows a peer, if it is known by name.
    pub(super) fn add(&mut self, id: PeerId, peer: &Peer, carrier: &Carrier) {
        if let (Carrier::Udp(udp), Some(name)) = (carrier, peer.host_name()) {
            let whereabouts = Whereabouts::new(name.clone(), udp.listen.is_ipv4());
            self.peers.insert(id, Named { whereabouts, question: None });
            self.due = Some(Instant::ZERO);
        }
    }

    /// Follows a peer no more.
    pub(super) fn remove(&mut self, id: PeerId) {
        self.peers.remove(&id);
    }

    /// What is readable when there is an answer.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.peers.is_empty()).then(|| self.resolver.as_fd())
    }

    /// Where they are, as far as that is known.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.peers.values().filter_map(|named| named.whereabouts.address)
    }

    /// Whether an address is known of each.
    pub(super) fn are_known(&self) -> bool {
        self.peers.values().all(|named| named.whereabouts.address.is_some())
    }

    /// When [`Names::follow`] wants to be called though there is no answer, as of when it was called last.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Takes the answer, if there is one, and asks what is to be asked.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        answered: bool,
        hubs: &mut Hubs<'_>,
        notify: &mut impl FnMut(Notice),
    ) {
        if self.peers.is_empty() {
            return;
        }
        let answer = if answered { self.resolver.poll_answer() } else { None };
        if let Some((number, answer)) = answer {
            let mut asked = self.peers.iter_mut().filter(|(_, named)| named.question == Some(number));
            // Whoever it was about may have been removed.
            if let Some((id, named)) = asked.next() {
                named.question = None;
                let is_heard = hubs.whereabouts(now, *id).is_some_and(|it| it.is_heard);
                named.whereabouts.handle_answer(now, is_heard, answer).into_iter().for_each(&mut *notify);
                call(now, hubs, *id, &named.whereabouts);
            }
        }
        self.due = None;
        for (id, named) in &mut self.peers {
            let Some(present) = hubs.whereabouts(now, *id) else { continue };
            let (is_heard, peer) = (present.is_heard, present.address);
            let whereabouts = &mut named.whereabouts;
            if let (true, Some(Address::Udp(address))) = (is_heard, peer)
                && whereabouts.address.is_some_and(|called| called != address)
            {
                // It is heard where it was before its name was asked for.
                whereabouts.address = Some(address);
                call(now, hubs, *id, whereabouts);
            }
            if self.resolver.has_room()
                && let Some(name) = whereabouts.poll_question(now, is_heard)
            {
                self.questions += 1;
                match self.resolver.ask(self.questions, name) {
                    Ok(()) => named.question = Some(self.questions),
                    Err(error) => {
                        let notice = whereabouts.handle_answer(now, is_heard, Err(error));
                        notice.into_iter().for_each(&mut *notify);
                    }
                }
            }
            let next = whereabouts.poll_timeout(is_heard).filter(|_| self.resolver.has_room());
            self.due = [self.due, next].into_iter().flatten().min();
        }
    }
}

/// Has a peer called where it is known to be.
fn call(now: Instant, hubs: &mut Hubs<'_>, id: PeerId, whereabouts: &Whereabouts) {
    if let Some(address) = whereabouts.address {
        hubs.call(now, id, Address::Udp(address));
    }
}

#[cfg(test)]
mod tests;
