//! Received data on its way to the application: in order, or waiting for a gap to fill.

use super::ranges::{MOST_SPANS, RangeSet, Span};
use super::ring::Ring;

/// A bounded buffer that takes segments at any offset and gives bytes out in order.
#[derive(Debug)]
pub(crate) struct Reassembly {
    ring: Ring,
    /// The offset of the first byte not yet received in order.
    next: u64,
    /// Bytes received in order and not yet read; the ring's head is at `next - unread`.
    unread: usize,
    /// What was received beyond `next`.
    waiting: RangeSet,
    limit: usize,
}

/// What became of a segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Every byte had come before.
    Duplicate,
    /// It moved the edge of in-order data; `gap_filled` if data had been waiting beyond it.
    InOrder {
        /// Whether anything had been waiting.
        gap_filled: bool,
    },
    /// It waits beyond a gap, now within this span.
    OutOfOrder(Span),
    /// There is no memory for it: the peer will send it again.
    Dropped,
}

impl Reassembly {
    /// An empty buffer of `limit` bytes whose first byte is at offset `next`.
    pub(crate) fn new(next: u64, limit: usize) -> Self {
        Self { ring: Ring::default(), next, unread: 0, waiting: RangeSet::default(), limit }
    }

    /// The offset of the first byte not yet received in order.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that can be read.
    pub(crate) const fn unread(&self) -> usize {
        self.unread
    }

    /// Bytes that it holds at most.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Lets it hold `limit` bytes.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Bytes that fit beyond `next`.
    pub(crate) const fn room(&self) -> usize {
        self.ring.most(self.limit).saturating_sub(self.unread)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.ring.memory() + self.waiting.memory()
    }

    /// The host has so many bytes of memory left for it.
    pub(crate) fn set_allowance(&mut self, bytes: usize) {
        self.ring.set_allowance(bytes);
    }

    /// What was received beyond `next`.
    pub(crate) const fn waiting(&self) -> &RangeSet {
        &self.waiting
    }

    /// The first part of `span` that was received before.
    pub(crate) fn held(&self, span: Span) -> Option<Span> {
        if span.start < self.next {
            return Some(Span { start: span.start, end: span.end.min(self.next) });
        }
        self.waiting.overlap(span)
    }

    /// Takes a segment's data, which the caller has cut to the advertised window.
    pub(crate) fn insert(&mut self, offset: u64, data: &[u8], right_edge: u64) -> Placed {
        if offset + data.len() as u64 <= self.next {
            return Placed::Duplicate;
        }
        // What was read already lies before the ring's head.
        let skip = self.next.saturating_sub(offset) as usize;
        let (offset, data) = (offset + skip as u64, &data[skip..]);
        let at = self.unread + (offset - self.next) as usize;
        // An advertised window may exceed the limit by the rounding of its scale.
        let most = self.ring.most((self.unread + (right_edge - self.next) as usize).max(self.limit));
        let data = &data[..data.len().min(most.saturating_sub(at))];
        if data.is_empty() {
            return Placed::Dropped;
        }
        let end = offset + data.len() as u64;
        let used =
            self.waiting.last().map_or(self.unread, |last| self.unread + (last.end - self.next) as usize);
        let mut placed = Placed::Duplicate;
        if offset > self.next {
            // A span for each 64 bytes of memory: they take a quarter of what the data do.
            let spans = (self.ring.memory().max(at + data.len()) / 64).clamp(64, MOST_SPANS);
            let mut fresh = false;
            match self.waiting.insert(Span { start: offset, end }, spans, |_| fresh = true) {
                None => return Placed::Dropped,
                Some(span) if fresh => placed = Placed::OutOfOrder(span),
                Some(_) => {}
            }
        }
        self.ring.reserve(used, at + data.len(), most);
        self.ring.write(at, data);
        if offset > self.next {
            return placed;
        }
        let gap_filled = !self.waiting.is_empty();
        let mut next = end;
        if let Some(first) = self.waiting.first()
            && first.start <= end
        {
            next = next.max(first.end);
            self.waiting.remove_below(next);
            // A long segment may have reached over further spans.
            while let Some(first) = self.waiting.first().filter(|first| first.start <= next) {
                next = next.max(first.end);
                self.waiting.remove_below(next);
            }
        }
        self.unread += (next - self.next) as usize;
        self.next = next;
        Placed::InOrder { gap_filled }
    }

    /// The bytes that can be read, in two pieces where the ring wraps.
    pub(crate) fn readable(&self) -> (&[u8], &[u8]) {
        self.ring.slices(0, self.unread)
    }

    /// Gives all memory back if there is nothing in it.
    pub(crate) fn release_if_empty(&mut self) {
        if self.unread == 0 && self.waiting.is_empty() {
            self.ring.release();
        }
    }

    /// Drops `count` bytes that were read.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.unread, "read more than there is");
        self.ring.advance(count);
        self.unread -= count;
        if self.unread == 0 && self.waiting.is_empty() {
            self.ring.rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::SMALLEST;
    use super::*;
    use proptest::prelude::*;

    fn byte_at(offset: u64) -> u8 {
        (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    proptest! {
        /// Segments of one stream in any order, overlapping and repeated, with reads in between: the bytes read are
        /// the stream's, and `next` is the edge of what came.
        #[test]
        fn gives_out_the_stream_in_order(
            steps in proptest::collection::vec((0_u64..4000, 1_u64..900, 0_usize..1500), 1..80),
        ) {
            let mut buffer = Reassembly::new(0, 3000);
            let mut came = vec![false; 8000];
            let mut read = 0_u64;
            for (start, len, take) in steps {
                let edge = buffer.next() + buffer.room() as u64;
                let end = (start + len).min(edge);
                if start < end {
                    let data: Vec<u8> = (start..end).map(byte_at).collect();
                    let before = buffer.next();
                    let placed = buffer.insert(start, &data, edge);
                    let fresh = (start..end).any(|i| i >= before && !came[i as usize]);
                    prop_assert_eq!(placed == Placed::Duplicate, !fresh);
                    came[start as usize..end as usize].fill(true);
                }
                let expected = came.iter().position(|&c| !c).unwrap() as u64;
                prop_assert_eq!(buffer.next(), expected);
                let (first, second) = buffer.readable();
                let got: Vec<u8> = first.iter().chain(second).copied().collect();
                prop_assert_eq!(got.len() as u64, expected - read);
                prop_assert!(got.iter().enumerate().all(|(i, &b)| b == byte_at(read + i as u64)));
                let take = take.min(got.len());
                buffer.consume(take);
                read += take as u64;
            }
        }
    }

    /// A gap after every byte: what waits takes a quarter of the data's memory, and all that was kept arrives.
    #[test]
    fn gaps_are_bounded() {
        let mut buffer = Reassembly::new(0, 1 << 20);
        let placed: Vec<Placed> =
            (0..400_000).map(|at| buffer.insert(1 + 2 * at, &[byte_at(1 + 2 * at)], 1 << 20)).collect();
        let kept = placed.iter().filter(|&&placed| placed != Placed::Dropped).count();
        assert_eq!((kept, buffer.waiting().iter().count()), (MOST_SPANS, MOST_SPANS));
        assert!(buffer.waiting.memory() <= buffer.ring.memory() / 4);
        // What is in order is always taken, and what was kept stays.
        let stream: Vec<u8> = (0..400_000).map(byte_at).collect();
        for (at, part) in stream.chunks(999).enumerate() {
            let gap_filled = !buffer.waiting().is_empty();
            assert_eq!(buffer.insert(at as u64 * 999, part, 1 << 20), Placed::InOrder { gap_filled });
        }
        assert_eq!(buffer.readable().0, stream);
    }

    /// Without an allowance the smallest ring is all there is; what was taken stays.
    #[test]
    fn without_memory_what_fits_is_taken() {
        let mut buffer = Reassembly::new(0, 1 << 20);
        buffer.set_allowance(0);
        assert_eq!(buffer.room(), SMALLEST);
        assert!(matches!(buffer.insert(1000, &[1; 1000], 1 << 20), Placed::OutOfOrder(_)));
        assert_eq!(buffer.insert(5000, &[1; 1000], 1 << 20), Placed::Dropped);
        assert_eq!(buffer.insert(0, &[1; 6000], 1 << 20), Placed::InOrder { gap_filled: true });
        assert_eq!((buffer.next(), buffer.room()), (SMALLEST as u64, 0));
        assert_eq!(buffer.insert(SMALLEST as u64, &[1; 10], 1 << 20), Placed::Dropped);
        buffer.consume(SMALLEST);
        assert_eq!((buffer.memory(), buffer.room()), (0, SMALLEST));
    }
}
