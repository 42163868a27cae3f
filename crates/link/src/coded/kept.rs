//! Frames that have come, kept for the sums that they are in: their sender may not have heard yet that they came.

use std::collections::{BTreeMap, VecDeque};

use base::Packet;

use crate::arq::frame::Part;
use crate::slack;

/// Copies of the latest frames.
#[derive(Debug, Default)]
pub(super) struct Kept {
    frames: BTreeMap<u64, Copy>,
    /// In the order in which they came.
    order: VecDeque<u64>,
    bytes: usize,
}

#[derive(Debug)]
struct Copy {
    first: bool,
    last: bool,
    back: u32,
    payload: Packet,
}

/// Bytes of memory that copies take at most, in all classes together: half a second of 1 Gbit/s.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Bytes of notes about a frame.
const NOTES: usize = 128;

impl Kept {
    /// Keeps a copy of a frame.
    pub(super) fn keep(&mut self, sequence: u64, part: &Part<'_>) {
        let payload = Packet::kept(part.payload);
        let copy = Copy { first: part.first, last: part.last, back: part.back, payload };
        self.bytes += copy.bytes();
        match self.frames.insert(sequence, copy) {
            Some(before) => self.bytes -= before.bytes(),
            None => self.order.push_back(sequence),
        }
        self.shrink(MAX_BYTES);
    }

    /// Drops the oldest copies until the others take `bytes` at most.
    pub(super) fn shrink(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.frames.remove(&oldest).map_or(0, |copy| copy.bytes());
        }
        slack::give_back(&mut self.order);
    }

    /// Bytes of memory that the copies take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }

    /// A frame that is kept.
    pub(super) fn part(&self, sequence: u64) -> Option<Part<'_>> {
        let Copy { first, last, back, payload } = self.frames.get(&sequence)?;
        let sequence = crate::arq::sequence::on_air(sequence);
        Some(Part { sequence, first: *first, last: *last, back: *back, payload })
    }

    /// Keeps none.
    pub(super) fn clear(&mut self) {
        if !self.order.is_empty() {
            *self = Self::default();
        }
    }
}

impl Copy {
    fn bytes(&self) -> usize {
        self.payload.capacity() + NOTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(payload: &[u8]) -> Part<'_> {
        Part { sequence: 0, first: true, last: false, back: 3, payload }
    }

    #[test]
    fn the_oldest_go_first_and_memory_is_bounded() {
        let mut kept = Kept::default();
        let payload = vec![7; 1 << 16];
        for sequence in 0..3000 {
            kept.keep(sequence, &part(&payload));
            assert!(kept.bytes <= MAX_BYTES);
        }
        assert_eq!(kept.part(2999), Some(Part { sequence: 2999, ..part(&payload) }));
        assert_eq!(kept.part(0), None);
        assert_eq!(kept.frames.len(), kept.order.len());
        kept.keep(2999, &part(b"again"));
        assert_eq!(kept.part(2999).unwrap().payload, b"again");
        assert_eq!(kept.frames.len(), kept.order.len());
        kept.clear();
        assert_eq!((kept.bytes, kept.part(2999)), (0, None));
    }
}
