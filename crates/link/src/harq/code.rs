//! Blocks: the bytes that are coded, cut into fragments of one length.
//!
//! ```text
//! +-------+------+---------+---------+-------+
//! | first | last | padding | payload | zeros |
//! +-------+------+---------+---------+-------+
//!   1 bit   1 bit  6 bits    n bytes   padding bytes, fewer than there are fragments with data
//! ```
//!
//! The payload is a packet, or a part of one that is too long for a block: *first* and *last* tell. With the length of a fragment the
//! padding tells the payload's length.

use base::code::reed_solomon::Plan;

/// Bytes of a block before its payload.
pub(super) const BLOCK_FIELDS: usize = 1;

const FIRST: u8 = 0x80;
const LAST: u8 = 0x40;
const PADDING: u8 = 0x3f;

/// Completes a block of `data` fragments, of which the first byte is still free; the length of a fragment.
pub(super) fn complete(block: &mut Vec<u8>, first: bool, last: bool, data: usize) -> usize {
    let size = block.len().div_ceil(data);
    let padding = size * data - block.len();
    let flag = |on, bit| if on { bit } else { 0 };
    block[0] = flag(first, FIRST) | flag(last, LAST) | padding as u8;
    block.resize(size * data, 0);
    size
}

/// What a block carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content<'a> {
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) payload: &'a [u8],
}

/// Reads a block; `None` if no sender made it.
pub(super) fn read(block: &[u8]) -> Option<Content<'_>> {
    let (&fields, rest) = block.split_first()?;
    let end = rest.len().checked_sub((fields & PADDING).into())?;
    Some(Content { first: fields & FIRST != 0, last: fields & LAST != 0, payload: &rest[..end] })
}

/// The fragments from `start` to `end` (exclusive) that are redundancy, of a block of `data` fragments.
pub(super) fn redundancy(block: &[u8], data: usize, start: usize, end: usize) -> Vec<Vec<u8>> {
    let numbers = |from: usize, to: usize| (from as u8..to as u8).collect::<Vec<u8>>();
    let wanted = numbers(start.max(data), end.max(data));
    let size = block.len() / data;
    let mut sums = vec![vec![0; size]; wanted.len()];
    if !wanted.is_empty() {
        Plan::decode(&numbers(0, data), &wanted).add(block.chunks(size), &mut sums);
    }
    sums
}

/// A block of which fragments have come.
#[derive(Debug, Default)]
pub(super) struct Partial {
    /// The length of each fragment.
    size: usize,
    /// The fragments' places in the code, a bit each.
    known: u64,
    numbers: Vec<u8>,
    /// The fragments, one behind the other.
    bytes: Vec<u8>,
}

impl Partial {
    /// Whether the fragment has come.
    pub(super) const fn knows(&self, index: u8) -> bool {
        self.known >> index & 1 == 1
    }

    /// Bytes of memory that the fragments take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes.capacity() + self.numbers.capacity()
    }

    /// Adds a fragment that is news; false if it is none of this block's.
    pub(super) fn add(&mut self, index: u8, fragment: &[u8]) -> bool {
        if self.known == 0 {
            self.size = fragment.len();
        }
        if fragment.len() != self.size {
            return false;
        }
        self.known |= 1 << index;
        self.numbers.push(index);
        self.bytes.extend_from_slice(fragment);
        true
    }

    /// The block, once `data` fragments have come, which are then gone; whether it took the code.
    pub(super) fn take(&mut self, data: usize) -> Option<(Vec<u8>, bool)> {
        if self.numbers.len() < data {
            return None;
        }
        let (numbers, bytes) = (core::mem::take(&mut self.numbers), core::mem::take(&mut self.bytes));
        if numbers.iter().enumerate().all(|(at, number)| usize::from(*number) == at) {
            return Some((bytes, false));
        }
        let missing: Vec<u8> = (0..data as u8).filter(|number| !numbers.contains(number)).collect();
        let mut sums = vec![vec![0; self.size]; missing.len()];
        if !missing.is_empty() {
            Plan::decode(&numbers, &missing).add(bytes.chunks(self.size), &mut sums);
        }
        let mut block = vec![0; self.size * data];
        let known = numbers.iter().zip(bytes.chunks(self.size));
        let computed = missing.iter().zip(sums.iter().map(Vec::as_slice));
        for (number, fragment) in known.chain(computed).filter(|(number, _)| usize::from(**number) < data) {
            let start = usize::from(*number) * self.size;
            block[start..start + self.size].copy_from_slice(fragment);
        }
        Some((block, !missing.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whichever fragments come, in whichever order: as soon as there are enough, the payload is there.
        #[test]
        fn any_fragments_make_the_block(
            (data, all) in (1_usize..=64).prop_flat_map(|all| (1..=all, Just(all))),
            payload in prop::collection::vec(any::<u8>(), 0..300),
            order in Just((0..64_u8).collect::<Vec<_>>()).prop_shuffle(),
            (first, last) in any::<(bool, bool)>(),
        ) {
            let mut block = [&[0], payload.as_slice()].concat();
            let size = complete(&mut block, first, last, data);
            let mut fragments: Vec<Vec<u8>> = block.chunks(size).map(<[u8]>::to_vec).collect();
            fragments.extend(redundancy(&block, data, 0, all));
            prop_assert_eq!(fragments.len(), all);
            let mut partial = Partial::default();
            for (count, index) in order.into_iter().filter(|index| usize::from(*index) < all).take(data).enumerate() {
                prop_assert!(partial.take(data).is_none(), "{} are not enough", count);
                prop_assert!(!partial.knows(index) && partial.add(index, &fragments[usize::from(index)]));
            }
            let (made, _) = partial.take(data).unwrap();
            prop_assert_eq!(read(&made), Some(Content { first, last, payload: &payload }));
        }

        #[test]
        fn no_bytes_do_harm(block in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(content) = read(&block) {
                prop_assert!(content.payload.len() < block.len());
            }
        }
    }
}
