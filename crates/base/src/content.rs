//! The bytes that a test stream carries: any offset can be produced and checked without keeping the stream.

use crate::Rng;

/// Bytes after which a stream repeats: a prime, so that a segment that lands at the wrong place by any likely
/// distance (a multiple of a segment size, of a power of two) is noticed.
const PERIOD: usize = 65_521;
/// Bytes that can be produced or checked at once, kept beyond the period so that no run wraps.
const LONGEST_RUN: usize = 16 * 1024;

/// The content of every stream of a run. Streams start at different phases, so that one cannot pass for another.
#[derive(Clone)]
pub struct Content {
    bytes: Box<[u8]>,
}

impl Content {
    /// The content of the run with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::named(seed, "content");
        let mut bytes: Vec<u8> = (0..PERIOD.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
        bytes.truncate(PERIOD);
        bytes.extend_from_within(..LONGEST_RUN);
        Self { bytes: bytes.into() }
    }

    /// The bytes of `stream` from `offset`: at most `len` of them, and at least one if `len` is not zero.
    #[must_use]
    #[inline]
    pub fn slice(&self, stream: u32, offset: u64, len: usize) -> &[u8] {
        // Streams start a third prime apart.
        let at = ((offset + u64::from(stream) * 7_919) % PERIOD as u64) as usize;
        &self.bytes[at..at + len.min(LONGEST_RUN)]
    }

    /// Whether `bytes` are what `stream` carries from `offset`.
    #[must_use]
    #[inline]
    pub fn matches(&self, stream: u32, mut offset: u64, bytes: &[u8]) -> bool {
        bytes.chunks(LONGEST_RUN).all(|run| {
            let expected = self.slice(stream, offset, run.len());
            offset += run.len() as u64;
            run == expected
        })
    }
}

impl core::fmt::Debug for Content {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Content")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_a_swap_or_a_flip_is_noticed() {
        let content = Content::new(1);
        let bytes = content.slice(3, 10_000, 1448).to_vec();
        assert!(content.matches(3, 10_000, &bytes));
        for shift in [1, 8, 1448, 2896, 4096, 65_536] {
            assert!(!content.matches(3, 10_000 + shift, &bytes), "shifted by {shift}");
        }
        assert!(!content.matches(4, 10_000, &bytes));
        let mut flipped = bytes;
        flipped[700] ^= 1;
        assert!(!content.matches(3, 10_000, &flipped));
    }

    #[test]
    fn runs_longer_than_the_table_are_checked_piece_by_piece() {
        let content = Content::new(1);
        let mut bytes = Vec::new();
        while bytes.len() < 200_000 {
            bytes.extend_from_slice(content.slice(0, bytes.len() as u64, 10_000));
        }
        assert!(content.matches(0, 0, &bytes));
        bytes[150_000] ^= 0x80;
        assert!(!content.matches(0, 0, &bytes));
    }
}
