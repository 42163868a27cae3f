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

use super::gf256::{add_multiple, div, mul};

/// Sources and repairs of a block at most, together.
pub const MAX_FRAMES: usize = 256;

/// Adds a block's repair number `index` to `sum`, which is zeros at least as long as the longest source. Shorter sources
/// count as if zeros followed.
///
/// # Panics
/// If the block has more than [`MAX_FRAMES`] frames, or a source is longer than `sum`.
pub fn encode<'a>(sources: impl ExactSizeIterator<Item = &'a [u8]>, index: usize, sum: &mut [u8]) {
    let count = sources.len();
    assert!(count + index < MAX_FRAMES, "too many frames for a block");
    let points: Vec<u8> = (0..count).map(|source| source as u8).collect();
    for (at, source) in sources.enumerate() {
        add_multiple(sum, weight(&points, at, (count + index) as u8), source);
    }
}

/// Adds a block's source number `missing` to `sum`, zeros as long as the repairs. `known` are exactly as many sources and repairs as the
/// block has sources, each with its number; those of the repairs follow those of the sources.
///
/// # Panics
/// If two numbers are the same or above 255, or something known is longer than `sum`.
pub fn decode<'a>(known: impl Iterator<Item = (usize, &'a [u8])> + Clone, missing: usize, sum: &mut [u8]) {
    let point = |number: usize| u8::try_from(number).expect("a block's frames have numbers below 256");
    let points: Vec<u8> = known.clone().map(|(number, _)| point(number)).collect();
    for (at, (_, bytes)) in known.enumerate() {
        add_multiple(sum, weight(&points, at, point(missing)), bytes);
    }
}

/// By how much the value at `points[at]` counts for the value at `point`: Lagrange's polynomial.
fn weight(points: &[u8], at: usize, point: u8) -> u8 {
    let others = points.iter().enumerate().filter(|(other, _)| *other != at);
    let (above, below) = others.fold((1, 1), |(above, below), (_, other)| {
        (mul(above, point ^ other), mul(below, points[at] ^ other))
    });
    div(above, below)
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
        (0..count)
            .map(|index| {
                let mut sum = vec![0; len];
                encode(sources.iter().map(Vec::as_slice), index, &mut sum);
                sum
            })
            .collect()
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
                let left = (0..k + r).filter(|frame| lost >> frame & 1 == 0).take(k);
                let known = left.map(|frame| (frame, all[frame].as_slice()));
                for missing in (0..k).filter(|frame| lost >> frame & 1 == 1) {
                    let mut sum = vec![0; 11];
                    decode(known.clone(), missing, &mut sum);
                    assert_eq!(sum, sources[missing], "{k}:{r} without {lost:b}");
                }
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
            let short: Vec<Vec<u8>> = lens.iter().zip(sources(lens.len(), 60)).map(|(len, bytes)| bytes[..*len].to_vec()).collect();
            let longest = *lens.iter().max().unwrap();
            let padded: Vec<Vec<u8>> = short.iter().cloned().map(|mut bytes| { bytes.resize(longest, 0); bytes }).collect();
            prop_assert_eq!(repairs(&short, 4), repairs(&padded, 4));
        }
    }

    #[test]
    fn the_largest_block_has_a_repair_at_every_number() {
        let sources = sources(200, 3);
        let repairs = repairs(&sources, 56);
        let known =
            sources[56..].iter().chain(&repairs).enumerate().map(|(at, bytes)| (at + 56, bytes.as_slice()));
        for (missing, source) in sources.iter().enumerate().take(56) {
            let mut sum = [0; 3];
            decode(known.clone(), missing, &mut sum);
            assert_eq!(sum, **source);
        }
    }
}
