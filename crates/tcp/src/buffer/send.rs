//! What the application wrote and the peer has not acknowledged.

use core::fmt::Debug;
use std::sync::Arc;

use base::Packet;

use super::ring::Ring;

/// A stream whose bytes can be had again at any time, so that a buffer need not keep them.
pub trait Source: Debug + Send + Sync {
    /// The bytes from `offset` on: at most `len` of them, and at least one if `len` is not zero.
    fn slice(&self, offset: u64, len: usize) -> &[u8];
}

/// A bounded queue of bytes that is read at any position and emptied from the front.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    held: Held,
    len: usize,
    limit: usize,
}

#[derive(Debug)]
enum Held {
    /// The bytes themselves.
    Bytes(Ring),
    /// Where to have them from.
    Stretch(Box<Stretch>),
}

/// A part of a source.
#[derive(Debug)]
struct Stretch {
    source: Arc<dyn Source>,
    /// Where in the source the buffer's front is.
    at: u64,
}

impl Stretch {
    /// Gives the bytes `at..at + len` from the front to `sink`, piece by piece.
    fn read(&self, at: usize, len: usize, mut sink: impl FnMut(&[u8])) {
        let mut done = 0;
        while done < len {
            let piece = self.source.slice(self.at + (at + done) as u64, len - done);
            sink(piece);
            done += piece.len();
        }
    }
}

impl SendBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { held: Held::Bytes(Ring::default()), len: 0, limit }
    }

    /// Bytes held.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes that fit.
    pub(crate) const fn room(&self) -> usize {
        match &self.held {
            Held::Bytes(ring) => ring.most(self.limit) - self.len,
            Held::Stretch(_) => self.limit - self.len,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) const fn memory(&self) -> usize {
        match &self.held {
            Held::Bytes(ring) => ring.memory(),
            Held::Stretch(_) => 0,
        }
    }

    /// The host has so many bytes of memory left for it.
    pub(crate) fn set_allowance(&mut self, bytes: usize) {
        if let Held::Bytes(ring) = &mut self.held {
            ring.set_allowance(bytes);
        }
    }

    /// Bytes that it can hold.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Appends as much of `data` as fits; the bytes taken.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        let (used, limit) = (self.len, self.limit);
        let ring = self.ring();
        ring.reserve(used, used + taken, limit);
        ring.write(used, &data[..taken]);
        self.len += taken;
        taken
    }

    /// Appends up to `len` bytes that `fill` writes in place; the bytes appended.
    pub(crate) fn write_with(&mut self, len: usize, mut fill: impl FnMut(&mut [u8])) -> usize {
        let taken = len.min(self.room());
        let (used, limit) = (self.len, self.limit);
        let ring = self.ring();
        ring.reserve(used, used + taken, limit);
        let (first, second) = ring.slices_mut(used, taken);
        for part in [first, second] {
            if !part.is_empty() {
                fill(part);
            }
        }
        self.len += taken;
        taken
    }

    /// Appends up to `len` bytes of `source` from `offset` on; the bytes appended. Behind other bytes they are copied, else
    /// only remembered.
    pub(crate) fn write_from(&mut self, source: &Arc<dyn Source>, offset: u64, len: usize) -> usize {
        let taken = len.min(self.room());
        let continues = match &self.held {
            Held::Stretch(held) => held.at + self.len as u64 == offset && Arc::ptr_eq(&held.source, source),
            Held::Bytes(_) => false,
        };
        if !continues && self.len == 0 {
            self.held = Held::Stretch(Box::new(Stretch { source: Arc::clone(source), at: offset }));
        } else if !continues {
            Stretch { source: Arc::clone(source), at: offset }.read(0, taken, |piece| {
                self.write(piece);
            });
            return taken;
        }
        self.len += taken;
        taken
    }

    /// The ring, to which what was only remembered is copied.
    fn ring(&mut self) -> &mut Ring {
        if let Held::Stretch(stretch) = &self.held {
            let mut ring = Ring::default();
            ring.reserve(0, self.len, self.limit);
            let mut used = 0;
            stretch.read(0, self.len, |piece| {
                ring.write(used, piece);
                used += piece.len();
            });
            self.held = Held::Bytes(ring);
        }
        match &mut self.held {
            Held::Bytes(ring) => ring,
            Held::Stretch(_) => unreachable!("it was just replaced"),
        }
    }

    /// Appends the bytes `at..at + len` from the front to `out`.
    pub(crate) fn copy_to(&self, at: usize, len: usize, out: &mut Packet) {
        self.read(at, len, |piece| out.extend_from_slice(piece));
    }

    /// Gives the bytes `at..at + len` from the front to `sink`, piece by piece.
    pub(crate) fn read(&self, at: usize, len: usize, mut sink: impl FnMut(&[u8])) {
        debug_assert!(at + len <= self.len, "beyond what was written");
        match &self.held {
            Held::Bytes(ring) => {
                let (first, second) = ring.slices(at, len);
                sink(first);
                sink(second);
            }
            Held::Stretch(stretch) => stretch.read(at, len, sink),
        }
    }

    /// Drops `count` bytes from the front.
    pub(crate) fn acknowledge(&mut self, count: usize) {
        debug_assert!(count <= self.len, "acknowledged more than was written");
        self.len -= count;
        match &mut self.held {
            Held::Bytes(ring) => {
                ring.advance(count);
                if self.len == 0 {
                    ring.rest();
                }
            }
            Held::Stretch(stretch) => stretch.at += count as u64,
        }
    }

    /// Drops everything and gives the memory back.
    pub(crate) fn release(&mut self) {
        self.held = Held::Bytes(Ring::default());
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Bytes by their offset, in pieces of at most 700.
    #[derive(Debug)]
    struct Numbers(Vec<u8>);

    impl Source for Numbers {
        fn slice(&self, offset: u64, len: usize) -> &[u8] {
            &self.0[offset as usize..][..len.min(700)]
        }
    }

    proptest! {
        /// Against a queue of bytes: what is written comes out in order, whatever wraps or grows, and however bytes and
        /// stretches of sources follow each other.
        #[test]
        fn behaves_as_a_queue(
            steps in proptest::collection::vec((0_usize..9000, 0_usize..9000, 0_u8..4, 0_usize..9000), 1..40),
        ) {
            let (mut buffer, mut model) = (SendBuffer::new(10_000), VecDeque::<u8>::new());
            let numbers = [2_654_435_761, 2_246_822_519].map(|factor| -> Vec<u8> {
                (0..41 * 9000_u32).map(|i| (i.wrapping_mul(factor) >> 24) as u8).collect()
            });
            let sources = numbers.clone().map(|numbers| Arc::new(Numbers(numbers)) as Arc<dyn Source>);
            let mut next = 0;
            for (write, acknowledge, kind, other) in steps {
                // Where the last write ended, from the start again, or somewhere else.
                let offset = [next, next, 0, other][other % 4];
                let data = &numbers[usize::from(kind == 3)][offset..offset + write];
                let taken = match kind {
                    0 => buffer.write(data),
                    1 => {
                        let mut left = data;
                        buffer.write_with(write, |part| {
                            part.copy_from_slice(&left[..part.len()]);
                            left = &left[part.len()..];
                        })
                    }
                    _ => buffer.write_from(&sources[usize::from(kind - 2)], offset as u64, write),
                };
                prop_assert_eq!(taken, write.min(10_000 - model.len()));
                model.extend(&data[..taken]);
                next = offset + taken;
                let mut out = Packet::default();
                buffer.copy_to(0, buffer.len(), &mut out);
                prop_assert!(out.iter().eq(model.iter()));
                let gone = acknowledge.min(model.len());
                buffer.acknowledge(gone);
                model.drain(..gone);
                prop_assert_eq!(buffer.len(), model.len());
            }
        }
    }
}
