//! Which handshake datagrams have arrived before: a Bloom filter in two generations.
//!
//! The tags that it takes are already uniform and keyed, so they need no further hashing. An honest datagram
//! is new and taken for a repeated one with a probability below 5 %; its sender tries again with another.

/// The datagrams of one to two generations, in 128 KiB, of which each half is there only once it is needed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    recent: Vec<u64>,
    older: Vec<u64>,
    /// Datagrams in the recent generation.
    count: usize,
}

/// Bits of a generation.
const BITS: usize = 1 << 19;
/// Datagrams of a generation: as many as renewals of keys in three months, or of a thousand peers in two hours.
const GENERATION: usize = 1 << 16;

impl Seen {
    /// Remembers the datagram with this authentic `tag`; whether it is new.
    pub(super) fn insert(&mut self, tag: &[u8]) -> bool {
        let (words, _) = tag.as_chunks::<4>();
        let bits = || words.iter().take(4).map(|word| u32::from_le_bytes(*word) as usize % BITS);
        let is_in =
            |filter: &[u64]| !filter.is_empty() && bits().all(|bit| filter[bit / 64] >> (bit % 64) & 1 == 1);
        if is_in(&self.recent) || is_in(&self.older) {
            return false;
        }
        if self.count == GENERATION {
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
            self.count = 0;
        }
        self.recent.resize(BITS / 64, 0);
        bits().for_each(|bit| self.recent[bit / 64] |= 1 << (bit % 64));
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_generation_is_remembered_and_new_datagrams_are_rarely_mistaken() {
        let (mut seen, mut random) = (Seen::default(), Random::seeded(1));
        let first: [u8; 32] = random.draw();
        assert!(seen.insert(&first));
        let mistaken = (1..GENERATION).filter(|_| !seen.insert(&random.draw::<32>())).count();
        assert!(mistaken < GENERATION / 40, "{mistaken}");
        assert!(!seen.insert(&first));
        // Into the next generation: still remembered, and after one more not.
        for _ in 0..GENERATION {
            seen.insert(&random.draw::<32>());
        }
        assert!(!seen.insert(&first));
        for _ in 0..3 * GENERATION {
            seen.insert(&random.draw::<32>());
        }
        // In one of twenty cases it would be mistaken; this seed's is not.
        assert!(seen.insert(&first));
    }
}
