//! Which connection or listener a segment is for.

use core::fmt;
use core::hash::BuildHasher;
use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;
use std::sync::Arc;

use base::Rng;
use rustc_hash::FxHashMap;
use siphasher::sip::SipHasher13;

use super::listener::Listener;
use crate::config::TcpConfig;

/// What tells the connections of one host apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    local: u128,
    remote: u128,
    ports: u32,
    /// A host that stands in for others has connections of both families.
    is_v6: bool,
}

impl Key {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local: number(local.ip()),
            remote: number(remote.ip()),
            ports: u32::from(local.port()) << 16 | u32::from(remote.port()),
            is_v6: remote.is_ipv6(),
        }
    }

    /// What tells connections of one address apart, the same on every machine.
    pub(super) fn bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(&self.remote.to_be_bytes());
        bytes[16..].copy_from_slice(&self.ports.to_be_bytes());
        bytes
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// A secret that strangers cannot compute with: SipHash-1-3, which addresses of their choice cannot make collide.
#[derive(Clone, Copy)]
pub(super) struct Secret(u64, u64);

impl Secret {
    /// The secret of this name that follows from a host's own.
    pub(super) fn named(secret: u64, name: &str) -> Self {
        let mut rng = Rng::named(secret, name);
        Self(rng.bits(), rng.bits())
    }
}

impl BuildHasher for Secret {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The port space of one host. Maps are only looked up, never walked.
#[derive(Debug)]
pub(super) struct Ports {
    connections: HashMap<Key, u32, Secret>,
    /// Ports that the owner of the host chose: nothing to key.
    listeners: FxHashMap<u16, Listener>,
    /// Who listens at all ports that nobody else does.
    everywhere: Option<Listener>,
    /// The last connection found: segments come in runs.
    last: Option<(Key, u32)>,
}

/// RFC 6335 (6): dynamic ports.
const EPHEMERAL_FIRST: u16 = 49_152;
/// How many there are.
const EPHEMERAL_COUNT: u16 = u16::MAX - EPHEMERAL_FIRST + 1;

impl Ports {
    pub(super) fn new(secret: Secret) -> Self {
        let connections = HashMap::with_hasher(secret);
        Self { connections, listeners: FxHashMap::default(), everywhere: None, last: None }
    }

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

    /// A free port of `local` to `remote`, chosen at random (RFC 6056, 3.3.1); if there is none, one whose slot `may_be_reopened`.
    pub(super) fn ephemeral(
        &self,
        local: IpAddr,
        remote: SocketAddr,
        rng: &mut Rng,
        may_be_reopened: impl Fn(u32) -> bool,
    ) -> Option<u16> {
        let first = rng.below(u64::from(EPHEMERAL_COUNT)) as u16;
        let mut second_best = None;
        for step in 0..EPHEMERAL_COUNT {
            let port = EPHEMERAL_FIRST + first.wrapping_add(step) % EPHEMERAL_COUNT;
            if self.listeners.contains_key(&port) {
                continue;
            }
            match self.connections.get(&Key::new(SocketAddr::new(local, port), remote)) {
                None => return Some(port),
                Some(&slot) if second_best.is_none() && may_be_reopened(slot) => second_best = Some(port),
                Some(_) => {}
            }
        }
        second_best
    }

    /// Registers a listener; false if the port is taken.
    pub(super) fn listen(&mut self, port: u16, listener: Listener) -> bool {
        let free = !self.listeners.contains_key(&port);
        if free {
            self.listeners.insert(port, listener);
        }
        free
    }

    /// Registers who listens at all ports that nobody else does.
    /// With other settings, those that are half open still count.
    pub(super) fn listen_everywhere(&mut self, config: Arc<TcpConfig>) {
        match &mut self.everywhere {
            Some(listener) => listener.config = config,
            None => self.everywhere = Some(Listener::new(config)),
        }
    }

    pub(super) fn listener(&mut self, port: u16) -> Option<&mut Listener> {
        self.listeners.get_mut(&port).or(self.everywhere.as_mut())
    }

    /// Gives back a place in a listener's backlog.
    pub(super) fn discharge(&mut self, port: u16) {
        if let Some(listener) = self.listener(port) {
            listener.discharge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;
    use std::collections::BTreeSet;

    /// 16,000 peers whose addresses' halves differ by the same bits, and one whose port changes with the address: a hash
    /// that anybody can compute may fold each kind into one place. Here each kind fills as many of 16,384 places as chance
    /// does, 63 %, and other places under another secret.
    #[test]
    fn crafted_peers_spread_like_any_others() {
        let halves =
            |at: u64| -> (u128, u16) { (u128::from(at << 20) << 64 | u128::from(at << 20 ^ 7), 5000) };
        let ports = |at: u64| (u128::from(at), at as u16);
        let places = |secret, peer: &dyn Fn(u64) -> (u128, u16)| -> Vec<u64> {
            let secret = Secret::named(secret, "connections");
            let local = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 80);
            let key =
                |(address, port)| Key::new(local, SocketAddr::new(Ipv6Addr::from(address).into(), port));
            (0..16_000).map(|at| secret.hash_one(key(peer(at))) >> 50).collect()
        };
        for peer in [&halves as &dyn Fn(u64) -> (u128, u16), &ports] {
            let filled = places(1, peer).into_iter().collect::<BTreeSet<u64>>().len();
            assert!((9_900..10_700).contains(&filled), "{filled} places");
            assert_eq!(places(1, peer), places(1, peer));
            assert_ne!(places(1, peer), places(2, peer));
        }
    }
}
