//! Indices: the four bytes by which a datagram names a session.
//!
//! A gateway with many peers finds the peer from the index alone, without a table to keep: an index is the peer's number and twelve random
//! bits under a permutation that only this gateway can undo. To all others indices are random, so they do not tell that two sessions
//! belong to one peer.
//!
//! The permutation is a Feistel network of four rounds (Luby and Rackoff 1988) with SipHash-1-3 as its round function.

use core::fmt;
use core::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::random::Random;

/// The indices of all sessions of one gateway.
#[derive(Clone, Copy)]
pub struct Indices {
    key: [u8; 16],
}

/// Bits of an index that tell a peer's sessions apart: far more than are ever alive at once.
const SESSION_BITS: u32 = 12;
/// How many peers can be told apart.
pub(crate) const MOST_PEERS: usize = 1 << (32 - SESSION_BITS);
const ROUNDS: u8 = 4;

impl Indices {
    /// Under a new secret.
    #[must_use]
    pub fn new(random: &mut Random) -> Self {
        Self { key: random.draw() }
    }

    /// One for a session with the peer of this number, of which `session` are the last bits.
    pub(super) fn index(self, peer: u32, session: u32) -> u32 {
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
