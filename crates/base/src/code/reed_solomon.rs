//! Reed-Solomon codes for erasures, across frames: the i-th bytes of a block's frames are one codeword.
//!
//! RFC 5510, section 8, with m = 8: the bytes at one place of k source frames are the values of a polynomial of degree below k at k
//! points, repair frames are its values at further points, and any k of all of them tell the polynomial. Sources are sent
//! as they are.
//!
//! Deviations:
//! - The points are 0, 1, 2, … instead of powers of x, so that there are 256. The code is then that of Backblaze's library and its many
//!   descendants, and a test compares it with one of these.
//! - Values at other points come from Lagrange's formula: no matrix is inverted.

use super::gf256::{add_multiples, exp, log};

/// Sources and repairs of a block at most, together.
pub const MAX_FRAMES: usize = 256;

/// Frames of a block as sums of others: what encoding and decoding have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The wanted frames' weights: those of the first known frame, then those of the second, and so on.
    weights: Vec<u8>,
    wanted: usize,
}

impl Plan {
    /// The first `repairs` repairs of a block of so many sources.
    ///
    /// # Panics
    /// If that is more than [`MAX_FRAMES`].
    #[must_use]
    pub fn encode(sources: usize, repairs: usize) -> Self {
        let number = |at: usize| u8::try_from(at).expect("a block's frames have numbers below 256");
        let known: Vec<u8> = (0..sources).map(number).collect();
        let wanted: Vec<u8> = (sources..sources + repairs).map(number).collect();
        Self::new(&known, &wanted)
    }

    /// The frames `wanted` from as many others, `known`, as the block has sources. Repairs are numbered behind the sources.
    ///
    /// # Panics
    /// If a number is in both lists, or in one twice.
    #[must_use]
    pub fn decode(known: &[u8], wanted: &[u8]) -> Self {
        Self::new(known, wanted)
    }

    /// Lagrange's weights, by logarithms: of point i at p, the product of (p - m) / (i - m) over all other known points m.
    fn new(known: &[u8], wanted: &[u8]) -> Self {
        let log_distance = |a: &u8, b: &u8| u32::from(log(a ^ b));
        let below: Vec<u32> = (0..known.len())
            .map(|at| {
                let others = known.iter().enumerate().filter(|(other, _)| *other != at);
                others.map(|(_, other)| log_distance(&known[at], other)).sum::<u32>() % 255
            })
            .collect();
        let all: Vec<u32> =
            wanted.iter().map(|point| known.iter().map(|m| log_distance(point, m)).sum()).collect();
        let mut weights = Vec::with_capacity(known.len() * wanted.len());
        for (at, below) in known.iter().zip(below) {
            weights.extend(
                wanted.iter().zip(&all).map(|(point, all)| exp(all - log_distance(point, at) + 255 - below)),
            );
        }
        Self { weights, wanted: wanted.len() }
    }

    /// Adds the wanted frames to `sums`, zeros at least as long as the longest known frame. Shorter frames count as if zeros
    /// followed.
    ///
    /// # Panics
    /// If there are other numbers of frames than were planned for, or a sum is shorter than a known frame.
    pub fn add<'a>(&self, known: impl ExactSizeIterator<Item = &'a [u8]>, sums: &mut [Vec<u8>]) {
        assert_eq!((known.len() * self.wanted, sums.len()), (self.weights.len(), self.wanted), "as planned");
        for (frame, weights) in known.zip(self.weights.chunks(self.wanted.max(1))) {
            add_multiples(sums, weights, frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frames of a block whose bytes depend on their number.
    fn sources(count: usize, len: usize) -> Vec<Vec<u8>> {
        (0..count)
            .map(|frame| (0..len).map(|at| (frame * 89 + at * 57 + at * frame) as u8).collect())
            .collect()
    }

    fn repairs(sources: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
        let len = sources.iter().map(Vec::len).max().unwrap_or(0);
        let mut sums = vec![vec![0; len]; count];
        Plan::encode(sources.len(), count).add(sources.iter().map(Vec::as_slice), &mut sums);
        sums
    }

    /// The sources of a block that are not among the `k` frames left, whose numbers are given.
    fn recover(all: &[Vec<u8>], left: &[u8], k: usize) -> Vec<Vec<u8>> {
        let missing: Vec<u8> = (0..k as u8).filter(|source| !left.contains(source)).collect();
        let mut sums = vec![vec![0; all[0].len()]; missing.len()];
        let known = left.iter().map(|number| all[usize::from(*number)].as_slice());
        Plan::decode(left, &missing).add(known, &mut sums);
        sums
    }

    /// Every way of losing as many frames of a block as it has repairs, and fewer.
    #[test]
    fn every_erasure_up_to_the_redundancy_is_made_good() {
        for (k, r) in [(1, 1), (1, 4), (2, 2), (3, 1), (4, 4), (5, 3), (8, 4)] {
            let sources = sources(k, 11);
            let all: Vec<Vec<u8>> = sources.iter().cloned().chain(repairs(&sources, r)).collect();
            for lost in 0_u32..1 << (k + r) {
                if lost.count_ones() as usize > r {
                    continue;
                }
                let left: Vec<u8> =
                    (0..(k + r) as u8).filter(|frame| lost >> frame & 1 == 0).take(k).collect();
                let missing =
                    (0..k).filter(|frame| lost >> frame & 1 == 1).map(|frame| sources[frame].clone());
                assert_eq!(recover(&all, &left, k), missing.collect::<Vec<_>>(), "{k}:{r} without {lost:b}");
            }
        }
    }

    /// As version 6.0.0 of the crate `reed-solomon-erasure` has them, which shares no line with this file.
    #[test]
    fn repairs_are_those_of_another_implementation() {
        let expected: [(usize, &[[u8; 4]]); 4] = [
            (1, &[[0, 57, 114, 171], [0, 57, 114, 171]]),
            (8, &[[252, 107, 107, 179], [40, 200, 1, 35], [112, 105, 185, 180], [173, 255, 184, 136]]),
            (10, &[[62, 132, 143, 105], [222, 219, 11, 169], [3, 202, 111, 121]]),
            (100, &[[210, 24, 48, 5], [140, 156, 193, 64]]),
        ];
        for (k, expected) in expected {
            assert_eq!(repairs(&sources(k, 4), expected.len()), expected, "{k} sources");
        }
    }

    proptest! {
        #[test]
        fn shorter_sources_end_in_zeros(lens in prop::collection::vec(0_usize..60, 1..12)) {
            let long = sources(lens.len(), 60);
            let short: Vec<_> = lens.iter().zip(&long).map(|(len, bytes)| bytes[..*len].to_vec()).collect();
            let longest = *lens.iter().max().unwrap();
            let mut padded = short.clone();
            padded.iter_mut().for_each(|bytes| bytes.resize(longest, 0));
            prop_assert_eq!(repairs(&short, 4), repairs(&padded, 4));
        }
    }

    #[test]
    fn the_largest_block_has_a_repair_at_every_number() {
        let sources = sources(200, 3);
        let all: Vec<Vec<u8>> = sources.iter().cloned().chain(repairs(&sources, 56)).collect();
        let left: Vec<u8> = (56..=255).collect();
        assert_eq!(recover(&all, &left, 200), sources[..56]);
    }
}
