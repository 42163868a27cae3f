//! A host that stands in for others, as a split-connection proxy does: all addresses are its own.
//!
//! It takes up connections that somebody opens to anybody, but answers no SYN before its owner says so, and keeps silent about
//! segments of connections that it does not know, which are their receivers' to answer. What it has no room for it leaves
//! alone too: no cookies, for an answer would be a promise.

use core::net::SocketAddr;
use std::sync::Arc;

use base::wire::tcp;
use base::{Instant, Rng};

use super::listener::Listener;
use super::ports::Key;
use super::{ConnectError, ConnectionError, ConnectionId, Discard, Host};
use crate::config::TcpConfig;
use crate::connection::{Connection, Offer, State};

impl Host {
    /// A host that stands in for all addresses.
    #[must_use]
    pub fn standing_in(rng: Rng) -> Self {
        let mut host = Self::at(None, rng);
        host.turns.let_newcomers_first();
        host
    }

    pub(super) const fn stands_in(&self) -> bool {
        self.address.is_none()
    }

    /// Takes up connections to any port with these settings, `limits.backlog` half-open ones at once. Each begins with
    /// [`Event::Asked`](crate::Event::Asked), and its SYN is answered when it is [admitted](Connection::admit).
    pub fn listen_everywhere(&mut self, config: &TcpConfig) {
        let config = self.shared(config);
        self.ports.listen_everywhere(config);
    }

    /// A SYN for somebody: the connection waits for the owner's word.
    pub(super) fn open_held(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        syn: &tcp::Repr,
        payload: &[u8],
    ) -> Result<(), Discard> {
        let port = local.port();
        let Some(listener) = self.ports.listener(port) else { return Err(Discard::NoConnection(port)) };
        if !self.budget.has_room() {
            return Err(Discard::NoMemory(port));
        }
        let Some(config) = listener.take_place() else { return Err(Discard::BacklogFull(port)) };
        let seeds = self.seeds(now, local, remote);
        let mut connection = Connection::accept(now, config, local, remote, seeds, syn);
        connection.set_allowance(self.budget.first_allowance());
        connection.keep_unread();
        connection.hold(payload);
        let slot = self.insert(connection);
        let entry = &mut self.slots[slot as usize];
        entry.half_open = true;
        entry.call = Some(self.callers.add(remote.ip(), slot));
        self.touch(slot);
        Ok(())
    }

    /// Opens a connection from `local`, whoever that is, to `remote`; with an `offer`, as the end would that made it.
    ///
    /// # Errors
    /// The two have a connection, or are of different families, or there is no memory.
    pub fn connect_from(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        config: &TcpConfig,
        offer: Option<&Offer>,
    ) -> Result<ConnectionId, ConnectError> {
        if remote.is_ipv4() != local.is_ipv4() {
            return Err(ConnectError::Family(remote.ip()));
        }
        if !self.budget.has_room() {
            return Err(ConnectError::Memory(remote));
        }
        let key = Key::new(local, remote);
        let former = self.ports.find(key).and_then(|slot| self.slots[slot as usize].connection.as_deref());
        // Who opens it anew knows when the old one is over: its TIME-WAIT, not ours, counts.
        if former.is_some_and(|it| !matches!(it.state(), State::Closed | State::TimeWait)) {
            return Err(ConnectError::Taken(remote));
        }
        let seeds = self.seeds(now, local, remote);
        let mut connection = Connection::connect(self.shared(config), local, remote, seeds);
        if let Some(offer) = offer {
            connection.resemble(offer);
        }
        connection.keep_unread();
        connection.lose_patience_after(now);
        connection.join(now, &mut self.ensemble);
        let slot = self.insert(connection);
        self.touch(slot);
        Ok(self.id(slot))
    }

    /// Lets `steer` at a connection, for what a proxy has to say to it.
    ///
    /// # Errors
    /// The connection is unknown.
    pub fn steer<R>(
        &mut self,
        id: ConnectionId,
        steer: impl FnOnce(&mut Connection) -> R,
    ) -> Result<R, ConnectionError> {
        let result = steer(self.live_mut(id)?);
        self.touch(id.slot);
        Ok(result)
    }

    /// Lets a connection go without a word to its peer. Nothing more is heard of it.
    pub fn forget(&mut self, id: ConnectionId) {
        if self.known(id).is_ok() {
            self.remove(id.slot);
        }
    }

    /// The connection between these two, if it is known.
    #[must_use]
    pub fn find(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<ConnectionId> {
        let slot = self.ports.find(Key::new(local, remote))?;
        Some(self.id(slot))
    }
}

impl Listener {
    /// Takes a place in the backlog, if there is one: the settings.
    pub(super) fn take_place(&mut self) -> Option<Arc<TcpConfig>> {
        let room = self.half_open < self.config.limits.backlog;
        self.half_open += u32::from(room);
        room.then(|| Arc::clone(&self.config))
    }
}
