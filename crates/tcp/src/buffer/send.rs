//! What the application wrote and the peer has not acknowledged.

use super::ring::Ring;

/// A bounded queue of bytes that is read at any position and emptied from the front.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    ring: Ring,
    len: usize,
    limit: usize,
}

impl SendBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { ring: Ring::default(), len: 0, limit }
    }

    /// Bytes held.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes that fit.
    pub(crate) const fn room(&self) -> usize {
        self.limit - self.len
    }

    /// Bytes that it can hold.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Appends as much of `data` as fits; the bytes taken.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        self.ring.reserve(self.len, self.len + taken, self.limit);
        self.ring.write(self.len, &data[..taken]);
        self.len += taken;
        taken
    }

    /// Appends up to `len` bytes that `fill` writes in place; the bytes appended.
    pub(crate) fn write_with(&mut self, len: usize, mut fill: impl FnMut(&mut [u8])) -> usize {
        let taken = len.min(self.room());
        self.ring.reserve(self.len, self.len + taken, self.limit);
        let (first, second) = self.ring.slices_mut(self.len, taken);
        for part in [first, second] {
            if !part.is_empty() {
                fill(part);
            }
        }
        self.len += taken;
        taken
    }

    /// The bytes `at..at + len` from the front.
    pub(crate) fn slices(&self, at: usize, len: usize) -> (&[u8], &[u8]) {
        debug_assert!(at + len <= self.len, "beyond what was written");
        self.ring.slices(at, len)
    }

    /// Drops `count` bytes from the front.
    pub(crate) fn acknowledge(&mut self, count: usize) {
        debug_assert!(count <= self.len, "acknowledged more than was written");
        self.ring.advance(count);
        self.len -= count;
        if self.len == 0 {
            self.ring.rest();
        }
    }

    /// Drops everything and gives the memory back.
    pub(crate) fn release(&mut self) {
        self.ring.release();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against a queue of bytes: what is written comes out in order, whatever wraps or grows.
        #[test]
        fn behaves_as_a_queue(steps in proptest::collection::vec((0_usize..9000, 0_usize..9000), 1..40)) {
            let (mut buffer, mut model) = (SendBuffer::new(10_000), VecDeque::new());
            let mut next = 0_u8;
            for (write, acknowledge) in steps {
                let data: Vec<u8> = (0..write).map(|_| { next = next.wrapping_mul(31).wrapping_add(7); next }).collect();
                let taken = buffer.write(&data);
                prop_assert_eq!(taken, write.min(10_000 - model.len()));
                model.extend(&data[..taken]);
                let (first, second) = buffer.slices(0, buffer.len());
                prop_assert!(first.iter().chain(second).eq(model.iter()));
                let gone = acknowledge.min(model.len());
                buffer.acknowledge(gone);
                model.drain(..gone);
                prop_assert_eq!(buffer.len(), model.len());
            }
        }
    }
}
