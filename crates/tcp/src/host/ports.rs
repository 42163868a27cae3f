//! Which connection or listener a segment is for.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::Rng;
use rustc_hash::FxHashMap;

use crate::config::TcpConfig;

/// What tells the connections of one host apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    remote: u128,
    ports: u32,
}

impl Key {
    pub(super) fn new(local_port: u16, remote: SocketAddr) -> Self {
        // A host's peers are of one family: the mapping need not tell them apart.
        let address = match remote.ip() {
            IpAddr::V4(v4) => u128::from(u32::from(v4)),
            IpAddr::V6(v6) => u128::from(v6),
        };
        Self { remote: address, ports: u32::from(local_port) << 16 | u32::from(remote.port()) }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.remote as u64 ^ (self.remote >> 64) as u64);
        state.write_u32(self.ports);
    }
}

/// A port that accepts connections.
#[derive(Debug)]
pub(super) struct Listener {
    config: Arc<TcpConfig>,
    half_open: u32,
}

impl Listener {
    pub(super) const fn new(config: Arc<TcpConfig>) -> Self {
        Self { config, half_open: 0 }
    }

    /// Takes a place in the backlog, if there is one.
    pub(super) fn admit(&mut self) -> bool {
        let room = self.half_open < self.config.limits.backlog;
        self.half_open += u32::from(room);
        room
    }

    pub(super) fn config(&self) -> Arc<TcpConfig> {
        Arc::clone(&self.config)
    }
}

/// The port space of one host. Maps are only looked up, never walked.
#[derive(Debug, Default)]
pub(super) struct Ports {
    connections: FxHashMap<Key, u32>,
    listeners: FxHashMap<u16, Listener>,
    /// The last connection found: segments come in runs.
    last: Option<(Key, u32)>,
}

/// RFC 6335 (6): dynamic ports.
const EPHEMERAL_FIRST: u16 = 49_152;
/// How many there are.
const EPHEMERAL_COUNT: u16 = u16::MAX - EPHEMERAL_FIRST + 1;

impl Ports {
    /// The slot that `key` is bound to.
    pub(super) fn find(&mut self, key: Key) -> Option<u32> {
        if let Some((last, slot)) = self.last
            && last == key
        {
            return Some(slot);
        }
        let slot = *self.connections.get(&key)?;
        self.last = Some((key, slot));
        Some(slot)
    }

    pub(super) fn bind(&mut self, key: Key, slot: u32) {
        self.connections.insert(key, slot);
        self.last = None;
    }

    /// Frees `key` if it is still bound to `slot`.
    pub(super) fn unbind(&mut self, key: Key, slot: u32) {
        if self.connections.get(&key) == Some(&slot) {
            self.connections.remove(&key);
        }
        self.last = None;
    }

    /// A free port to `remote`, chosen at random (RFC 6056, 3.3.1).
    pub(super) fn ephemeral(&self, remote: SocketAddr, rng: &mut Rng) -> Option<u16> {
        let first = rng.below(u64::from(EPHEMERAL_COUNT)) as u16;
        (0..EPHEMERAL_COUNT).map(|step| EPHEMERAL_FIRST + first.wrapping_add(step) % EPHEMERAL_COUNT).find(
            |&port| {
                !self.listeners.contains_key(&port) && !self.connections.contains_key(&Key::new(port, remote))
            },
        )
    }

    /// Registers a listener; false if the port is taken.
    pub(super) fn listen(&mut self, port: u16, listener: Listener) -> bool {
        let free = !self.listeners.contains_key(&port);
        if free {
            self.listeners.insert(port, listener);
        }
        free
    }

    pub(super) fn listener(&mut self, port: u16) -> Option<&mut Listener> {
        self.listeners.get_mut(&port)
    }

    /// Gives back a place in a listener's backlog.
    pub(super) fn discharge(&mut self, port: u16) {
        if let Some(listener) = self.listeners.get_mut(&port) {
            listener.half_open = listener.half_open.saturating_sub(1);
        }
    }
}
