//! Received data on its way to the application: in order, or waiting for a gap to fill.

use super::ranges::{RangeSet, Span};
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
        self.limit.saturating_sub(self.unread)
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
        let end = offset + data.len() as u64;
        if end <= self.next {
            return Placed::Duplicate;
        }
        // What was read already lies before the ring's head.
        let skip = self.next.saturating_sub(offset) as usize;
        let (offset, data) = (offset + skip as u64, &data[skip..]);
        let at = self.unread + (offset - self.next) as usize;
        // An advertised window may exceed the limit by the rounding of its scale.
        let most = self.unread + (right_edge - self.next) as usize;
        let used =
            self.waiting.last().map_or(self.unread, |last| self.unread + (last.end - self.next) as usize);
        self.ring.reserve(used, at + data.len(), most.max(self.limit));
        self.ring.write(at, data);
        if offset > self.next {
            let mut fresh = false;
            let span = self.waiting.insert(Span { start: offset, end }, |_| fresh = true);
            return if fresh { Placed::OutOfOrder(span) } else { Placed::Duplicate };
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
}
