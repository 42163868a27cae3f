//! Which frames are in a sum, and with which coefficients.
//!
//! A sum's frame has the number of the last frame in it in place of its own. In front of the sum it says how far the frames in
//! it go on without a gap before that one, and which of those before these are in it too.
//!
//! ```text
//! +--------------+--------+------------------+-----+
//! | bitmap bytes | run    | bitmap           | sum |
//! +--------------+--------+------------------+-----+
//!   1              varint   0 to 127 bytes
//! ```
//!
//! The lowest bit of the bitmap's first byte is the frame before the run. Coefficients are not written: both ends draw them from the
//! sum's serial and the frames' numbers.

use crate::arq::Transmission;
use crate::arq::frame::{push_varint, read_varint};
use crate::arq::sequence::on_air;
use crate::flow;

/// Frames in a sum at most. Ours: each costs both ends an addition of a frame.
pub(super) const MAX_SUMMED: u64 = 256;

/// Frames from the first in a sum to the last at most, both included.
pub(super) const MAX_SPAN: u64 = MAX_SUMMED + MAX_BITMAP as u64 * 8;

/// The frames in a sum, the last first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Coverage {
    end: u64,
    /// Frames up to `end` without a gap, at least one.
    run: u64,
    bitmap: Vec<u8>,
}

impl Coverage {
    /// The frames up to `end` that `is_lacking` says yes to, which it does to `end`: the last `most` of them, as far as `space`
    /// bytes can say. `None` where there is not even room for one.
    pub(super) fn choose(
        end: u64,
        most: u64,
        space: usize,
        is_lacking: impl Fn(u64) -> bool,
    ) -> Option<Self> {
        let most = most.min(MAX_SUMMED);
        let before = |count: u64| end.checked_sub(count);
        let mut run = 1;
        while run < most && before(run).is_some_and(&is_lacking) {
            run += 1;
        }
        let mut said = Vec::new();
        push_varint(run, &mut said);
        let space = space.checked_sub(1 + said.len())?.min(MAX_BITMAP);
        let (mut bitmap, mut count) = (Vec::new(), run);
        for place in 0..(space as u64 * 8).min(MAX_SPAN - run) {
            if count == most {
                break;
            }
            let Some(sequence) = before(run + place) else { break };
            if is_lacking(sequence) {
                bitmap.resize(place as usize / 8 + 1, 0);
                bitmap[place as usize / 8] |= 1 << (place % 8);
                count += 1;
            }
        }
        Some(Self { end, run, bitmap })
    }

    /// Appends what stands in front of the sum.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.bitmap.len() as u8);
        push_varint(self.run, out);
        out.extend_from_slice(&self.bitmap);
    }

    /// Takes it off the front of `bytes`, for a sum that ends at `end`; `None` for what no sender writes.
    pub(super) fn parse(end: u64, bytes: &mut &[u8]) -> Option<Self> {
        let (&len, rest) = bytes.split_first()?;
        *bytes = rest;
        let run = u64::from(read_varint(bytes)?);
        let (bitmap, sum) = bytes.split_at_checked(len.into())?;
        if run == 0 || run > MAX_SUMMED || usize::from(len) > MAX_BITMAP {
            return None;
        }
        *bytes = sum;
        let coverage = Self { end, run, bitmap: bitmap.to_vec() };
        (coverage.count() <= MAX_SUMMED).then_some(coverage)
    }

    /// The frames, the last first.
    pub(super) fn frames(&self) -> impl Iterator<Item = u64> {
        let run = (0..self.run).filter_map(|before| self.end.checked_sub(before));
        let is_set = |place: &u64| self.bitmap[*place as usize / 8] >> (place % 8) & 1 == 1;
        let others = (0..self.bitmap.len() as u64 * 8).filter(is_set);
        run.chain(others.filter_map(|place| self.end.checked_sub(self.run + place)))
    }

    /// The last.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The first.
    pub(super) fn start(&self) -> u64 {
        self.frames().last().unwrap_or(self.end)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.run + self.bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
    }
}

/// What a frame counts in the sum that is the transmission `serial`: never zero.
pub(super) fn coefficient(transmission: Transmission, sequence: u64) -> u8 {
    let Transmission { line, serial } = transmission;
    let key = u64::from(line.number()) << 56 | u64::from(on_air(serial)) << 32 | u64::from(on_air(sequence));
    (flow::mixed(key) % 255) as u8 + 1
}

/// Bytes; so that a frame's length is not all about others.
const MAX_BITMAP: usize = 127;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arq::LineId;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// What is chosen is lacking, as many as fit, none left out between; and reads as it was written.
        #[test]
        fn the_last_that_are_lacking(
            lacking in prop::collection::btree_set(0_u64..300, 1..200),
            most in 1_u64..100,
            space in 2_usize..60,
        ) {
            let end = *lacking.last().unwrap();
            let coverage = Coverage::choose(end, most, space, |it| lacking.contains(&it)).unwrap();
            let frames: Vec<u64> = coverage.frames().collect();
            let expected: Vec<u64> = lacking.iter().rev().copied().take(frames.len()).collect();
            prop_assert_eq!(&frames, &expected);
            prop_assert_eq!(coverage.count(), frames.len() as u64);
            prop_assert!(frames.len() as u64 <= most);
            let mut bytes = Vec::new();
            coverage.emit(&mut bytes);
            prop_assert!(bytes.len() <= space);
            if (frames.len() as u64) < most && frames.len() < lacking.len() {
                let first_out = lacking.iter().rev().nth(frames.len()).unwrap();
                prop_assert!(end - first_out >= coverage.run + 8 * (space as u64 - 2), "there was room");
            }
            bytes.push(9);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(Coverage::parse(end, &mut rest), Some(coverage));
            prop_assert_eq!(rest, [9]);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), end in 0_u64..5000) {
            if let Some(coverage) = Coverage::parse(end, &mut bytes.as_slice()) {
                let frames: BTreeSet<u64> = coverage.frames().collect();
                prop_assert!(frames.len() as u64 <= coverage.count());
                prop_assert!(frames.len() as u64 <= MAX_SUMMED && frames.iter().all(|frame| end - frame < MAX_SPAN));
            }
        }
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        let parse = |mut bytes: &[u8]| Coverage::parse(9999, &mut bytes).is_some();
        assert!(parse(&[0, 1]) && parse(&[0, 0x80, 2]) && parse(&[1, 0xff, 1, 1]));
        for bytes in [&[][..], &[0], &[0, 0], &[1, 1], &[128, 1]] {
            assert!(!parse(bytes), "{bytes:?}");
        }
        assert!(!parse(&[&[128, 1][..], &[0; 200]].concat()));
        for too_many in [&[0, 0x81, 2][..], &[1, 0xff, 1, 3], &[1, 0x80, 2, 1]] {
            assert!(!parse(too_many), "{too_many:?}");
        }
    }

    #[test]
    fn coefficients_are_spread_and_never_zero() {
        let mut counts = [0_u32; 256];
        for serial in 0..255 {
            (0..100).for_each(|sequence| {
                counts[usize::from(coefficient(Transmission::first(serial), sequence))] += 1;
            });
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (50..150).contains(count)), "{counts:?}");
        let of = |serial| Transmission::first(serial);
        assert_eq!(coefficient(of(1), 2), coefficient(of(1 + (1 << 24)), 2 + (1 << 24)), "as on the air");
        let over = |number| Transmission { line: LineId::new(number).unwrap(), serial: 1 };
        let differ = (0..100).filter(|it| coefficient(over(0), *it) != coefficient(over(1), *it)).count();
        assert!(differ > 90, "sums over two lines are two equations: {differ}");
    }
}
