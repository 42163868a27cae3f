//! State that the connections of a host share: what one found out about a destination, the others need not find out
//! again. One policy a file; `docs/sharing.md` tells their rules.
//!
//! A `Policy` holds what is known of one destination, a host or a prefix. A connection joins it when it opens, asks it
//! for a congestion controller when its handshake is over, and leaves it when it has nothing more to send. The
//! policy's state has a lock, for its members' controllers reach it too; connections of one host are driven by one
//! thread, so nobody ever waits for it.

mod cache;
mod careful_resume;
mod settings;
mod stcp;

use core::fmt::Debug;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::{Duration, Instant};

use crate::config::TcpConfig;
use crate::congestion::{Controller, Start};
pub use cache::CachedState;
pub use careful_resume::{Phase as CarefulResumePhase, SavedState};
pub use settings::{FloorAcks, Sharing, SharingConfig};
pub use stcp::{EcbState, EcbStatistics};

/// What connections to one destination know together.
pub(crate) trait Policy: Debug + Send + Sync {
    /// A connection opens: its SYN is about to leave, or its SYN-ACK was answered.
    fn join(&self, opening: &Opening<'_>) -> Ticket;

    /// Its handshake is over: the controller that it is to use.
    fn establish(&self, ticket: Ticket, opening: &Opening<'_>) -> Box<dyn Controller>;

    /// It has nothing more to send, or has failed.
    fn leave(&self, ticket: Ticket, closing: &Closing);

    /// The smoothed round-trip time and its variation that a new connection is to start with.
    fn rtt(&self, _now: Instant) -> Option<(Duration, Duration)> {
        None
    }

    /// Connections that take part.
    fn members(&self) -> u32;

    /// What is known, for the owner of the host.
    fn shared(&self) -> Shared;
}

/// What a policy is told of a connection that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a Arc<TcpConfig>,
    /// What its controller would begin with; until the handshake is over, as this side supposes.
    pub(crate) start: Start,
    /// Its SYN or SYN-ACK had to be sent again.
    pub(crate) syn_lost: bool,
    /// The peer opened it.
    pub(crate) called: bool,
}

/// What a policy is told of a connection that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    pub(crate) now: Instant,
    /// Its threshold, if its controller has one and it is not what the connection began with.
    pub(crate) ssthresh: Option<u64>,
    /// None before its first sample.
    pub(crate) srtt: Option<Duration>,
    pub(crate) rttvar: Duration,
}

/// Which member of a policy a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Reused after the member left.
    pub(crate) slot: u32,
    /// Never reused.
    pub(crate) number: u64,
}

/// A connection's part in a policy.
#[derive(Debug)]
pub(crate) struct Membership {
    policy: Arc<dyn Policy>,
    ticket: Ticket,
    key: Key,
    unused: Arc<Mutex<Unused>>,
    /// The threshold that its controller began with.
    ssthresh: Option<u64>,
}

impl Membership {
    /// The handshake is over: the controller to use.
    pub(crate) fn establish(&mut self, opening: &Opening<'_>) -> Box<dyn Controller> {
        let controller = self.policy.establish(self.ticket, opening);
        self.ssthresh = controller.ssthresh();
        controller
    }

    /// The smoothed round-trip time and its variation to start with.
    pub(crate) fn rtt(&self, now: Instant) -> Option<(Duration, Duration)> {
        self.policy.rtt(now)
    }

    /// The connection has nothing more to send.
    pub(crate) fn leave(&self, closing: &Closing) {
        let ssthresh = closing.ssthresh.filter(|_| closing.ssthresh != self.ssthresh);
        self.policy.leave(self.ticket, &Closing { ssthresh, ..*closing });
        if self.policy.members() == 0 {
            lock(&self.unused).add(self.key, closing.now);
        }
    }
}

/// What one destination's policy knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// `sharing = "cache"`.
    Cache(CachedState),
    /// `sharing = "stcp"`.
    Stcp(EcbState),
    /// `sharing = "careful-resume"`.
    CarefulResume(SavedState),
}

/// Which policy of a host a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    sharing: Sharing,
    network: IpAddr,
    bits: u8,
}

/// The destinations without members, the one unused longest first, the lowest address first among equals.
#[derive(Debug, Default)]
struct Unused {
    since: BTreeMap<Key, Instant>,
    order: BTreeSet<(Instant, Key)>,
}

impl Unused {
    fn add(&mut self, key: Key, now: Instant) {
        self.since.insert(key, now);
        self.order.insert((now, key));
    }

    fn remove(&mut self, key: Key) {
        if let Some(since) = self.since.remove(&key) {
            self.order.remove(&(since, key));
        }
    }

    fn take_longest(&mut self) -> Option<Key> {
        let (_, key) = self.order.pop_first()?;
        self.since.remove(&key);
        Some(key)
    }
}

/// All that the connections of one host share.
#[derive(Debug, Default)]
pub struct Ensemble {
    entries: BTreeMap<Key, Arc<dyn Policy>>,
    /// Memberships add to it when they end.
    unused: Arc<Mutex<Unused>>,
    evictions: u64,
    refusals: u64,
}

impl Ensemble {
    /// What is known of `destination` under this kind of sharing; the longest prefix counts.
    #[must_use]
    pub fn shared(&self, sharing: Sharing, destination: IpAddr) -> Option<Shared> {
        let longest = if destination.is_ipv4() { 32 } else { 128 };
        let keys = (0..=longest).rev().map(|bits| Key { sharing, network: network(destination, bits), bits });
        let policy = keys.filter_map(|key| self.entries.get(&key)).next()?;
        Some(policy.shared())
    }

    /// The ensemble control block of `destination` (STCP).
    #[must_use]
    pub fn ecb(&self, destination: IpAddr) -> Option<EcbState> {
        match self.shared(Sharing::Stcp, destination)? {
            Shared::Stcp(ecb) => Some(ecb),
            Shared::Cache(_) | Shared::CarefulResume(_) => None,
        }
    }

    /// Destinations that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Destinations that were forgotten to make room.
    #[must_use]
    pub const fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Connections that share nothing because there was no room for their destination.
    #[must_use]
    pub const fn refusals(&self) -> u64 {
        self.refusals
    }

    /// A connection to `destination` opens. None if it is to share nothing, or if there is no room.
    pub(crate) fn join(&mut self, destination: IpAddr, opening: &Opening<'_>) -> Option<Membership> {
        let sharing = opening.config.sharing.policy;
        if sharing == Sharing::None {
            return None;
        }
        let settings = &opening.config.sharing;
        let bits = if destination.is_ipv4() { settings.prefix_v4 } else { settings.prefix_v6 };
        let key = Key { sharing, network: network(destination, bits), bits };
        if !self.entries.contains_key(&key) {
            if !self.make_room(settings.entries as usize) {
                self.refusals += 1;
                return None;
            }
            self.entries.insert(key, new_policy(&key, opening)?);
        }
        lock(&self.unused).remove(key);
        let policy = Arc::clone(&self.entries[&key]);
        let ticket = policy.join(opening);
        let (ssthresh, unused) = (Some(opening.start.ssthresh), Arc::clone(&self.unused));
        Some(Membership { policy, ticket, ssthresh, key, unused })
    }

    /// Forgets the destinations unused longest until there is room for one more.
    fn make_room(&mut self, entries: usize) -> bool {
        while self.entries.len() >= entries {
            let Some(key) = lock(&self.unused).take_longest() else { return false };
            self.entries.remove(&key);
            self.evictions += 1;
        }
        true
    }
}

fn new_policy(key: &Key, opening: &Opening<'_>) -> Option<Arc<dyn Policy>> {
    match key.sharing {
        Sharing::None => None,
        Sharing::Cache => Some(Arc::new(cache::Cache::new(opening))),
        Sharing::Stcp => Some(Arc::new(stcp::Stcp::new(key.network, opening))),
        Sharing::CarefulResume => Some(Arc::new(careful_resume::CarefulResume::new(&opening.config.sharing))),
    }
}

/// The first address of the prefix of this many bits.
fn network(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from(u32::from(v4) & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from(u128::from(v6) & mask).into()
        }
    }
}

/// A panic elsewhere leaves numbers, not promises: the lock is taken all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_its_first_address() {
        for (address, bits, first) in [
            ("10.1.2.3", 32, "10.1.2.3"),
            ("10.1.2.3", 24, "10.1.2.0"),
            ("10.1.2.3", 0, "0.0.0.0"),
            ("fd00::1:2", 128, "fd00::1:2"),
            ("fd00::1:2", 112, "fd00::1:0"),
            ("fd00::1:2", 0, "::"),
        ] {
            assert_eq!(network(address.parse().unwrap(), bits), first.parse::<IpAddr>().unwrap());
        }
    }
}
