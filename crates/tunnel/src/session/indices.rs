//! Indices: the four bytes by which a datagram names a session.
//!
//! A gateway with many peers finds the peer from the index alone, without a table to keep: an index is the peer's number and twelve random
//! bits under a permutation that only this gateway can undo. To all others indices are random, so they do not tell that two sessions
//! belong to one peer.
//!
//! Of several workers each draws those indices that name it ([`WorkerId`]): so much of an index is the same in all sessions of a peer.
//!
//! The permutation is a Feistel network of four rounds (Luby and Rackoff 1988) with SipHash-1-3 as its round function.

use core::fmt;
use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::random::Random;
use crate::worker::WorkerId;

/// The indices of all sessions of one worker of a gateway.
#[derive(Clone, Copy)]
pub struct Indices {
    key: [u8; 16],
    worker: WorkerId,
}

/// Bits of an index that tell a peer's sessions apart: far more than are ever alive at once.
const SESSION_BITS: u32 = 12;
/// How many peers can be told apart.
pub(crate) const MOST_PEERS: usize = 1 << (32 - SESSION_BITS);
const ROUNDS: u8 = 4;

impl Indices {
    /// Under a new secret, of the only worker.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        Self::of_worker(random, WorkerId::ONLY)
    }

    /// Under a new secret, of this worker.
    #[must_use]
    pub fn of_worker(random: &mut Random, worker: WorkerId) -> Self {
        Self { key: random.draw(), worker }
    }

    /// One of this worker's for a session with the peer of this number, at random.
    pub(super) fn draw(self, peer: u32, random: &mut Random) -> u32 {
        loop {
            let index = self.index(peer, u32::from_le_bytes(random.draw()));
            if self.worker.has_index(index) {
                return index;
            }
        }
    }

    /// One for a session with the peer of this number, of which `session` are the last bits.
    fn index(self, peer: u32, session: u32) -> u32 {
        let whole = peer << SESSION_BITS | session & ((1 << SESSION_BITS) - 1);
        let (mut left, mut right) = ((whole >> 16) as u16, whole as u16);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.mix(round, right));
        }
        u32::from(left) << 16 | u32::from(right)
    }

    /// The number of the peer that `index` would be of.
    pub(crate) fn peer(self, index: u32) -> u32 {
        let (mut left, mut right) = ((index >> 16) as u16, index as u16);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.mix(round, left), left);
        }
        (u32::from(left) << 16 | u32::from(right)) >> SESSION_BITS
    }

    fn mix(self, round: u8, half: u16) -> u16 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        hasher.write_u32(u32::from(round) << 16 | u32::from(half));
        hasher.finish() as u16
    }
}

impl fmt::Debug for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Indices(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::MOST_WORKERS;
    use std::collections::HashSet;

    #[test]
    fn each_index_leads_back_to_its_peer() {
        let indices = Indices::new(&mut Random::seeded(1));
        let mut seen = HashSet::new();
        for peer in (0..1000).chain([MOST_PEERS as u32 - 1]) {
            for session in [0, 1, 77, 4095] {
                let index = indices.index(peer, session);
                assert_eq!(indices.peer(index), peer);
                assert!(seen.insert(index), "two sessions share {index}");
            }
        }
    }

    /// Of as many workers as there may be, each has enough for any peer, and who gets a datagram can be told from its index alone.
    #[test]
    fn each_worker_draws_indices_that_name_it() {
        for count in [1, 2, 3, 7, MOST_WORKERS] {
            for worker in WorkerId::all(count) {
                let mut random = Random::seeded(worker.number().into());
                let indices = Indices::of_worker(&mut random, worker);
                for peer in (0..50).chain([MOST_PEERS as u32 - 1]) {
                    let drawn: HashSet<_> = (0..100).map(|_| indices.draw(peer, &mut random)).collect();
                    assert!(drawn.iter().all(|index| (index % 256) % count == worker.number()));
                    assert!(drawn.iter().all(|index| indices.peer(*index) == peer));
                    // 4096 / count of them: with 16 workers 100 draws give 82 different ones in the mean.
                    assert!(drawn.len() > 50, "{} of worker {worker:?}", drawn.len());
                }
            }
        }
    }

    /// Neighbours have no bits in common but by chance.
    #[test]
    fn indices_of_one_peer_look_random() {
        let indices = Indices::new(&mut Random::seeded(1));
        let alike: u32 =
            (0..4095).map(|n| (!(indices.index(7, n) ^ indices.index(7, n + 1))).count_ones()).sum();
        let mean = f64::from(alike) / 4095.0;
        assert!((15.5..16.5).contains(&mean), "{mean} of 32 bits");
    }
}
