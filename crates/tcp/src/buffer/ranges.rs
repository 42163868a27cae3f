//! Sets of sequence ranges, kept sorted and merged.

use std::collections::VecDeque;

/// A half-open run of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Disjoint, not even touching spans in ascending order.
#[derive(Debug, Default)]
pub(crate) struct RangeSet {
    spans: VecDeque<Span>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The spans, ascending.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Span> + '_ {
        self.spans.iter().copied()
    }

    /// The highest span.
    pub(crate) fn last(&self) -> Option<Span> {
        self.spans.back().copied()
    }

    /// The lowest span.
    pub(crate) fn first(&self) -> Option<Span> {
        self.spans.front().copied()
    }

    /// Adds `span`, calls `on_new` for each part that was not in the set, ascending, and returns the span that
    /// now holds it.
    pub(crate) fn insert(&mut self, span: Span, mut on_new: impl FnMut(Span)) -> Span {
        debug_assert!(span.start < span.end, "empty span");
        let first = self.first_reaching(span.start);
        let mut merged = span;
        let mut uncovered = span.start;
        let mut past = first;
        while let Some(held) = self.spans.get(past).filter(|held| held.start <= span.end) {
            if uncovered < held.start {
                on_new(Span { start: uncovered, end: held.start });
            }
            uncovered = uncovered.max(held.end);
            merged = Span { start: merged.start.min(held.start), end: merged.end.max(held.end) };
            past += 1;
        }
        if uncovered < span.end {
            on_new(Span { start: uncovered, end: span.end });
        }
        if past == first {
            self.spans.insert(first, merged);
        } else {
            self.spans[first] = merged;
            self.spans.drain(first + 1..past);
        }
        merged
    }

    /// The index of the first span whose end is at or past `offset`. New data is mostly near the top.
    fn first_reaching(&self, offset: u64) -> usize {
        match self.spans.back() {
            None => 0,
            Some(last) if last.end < offset => self.spans.len(),
            Some(last) if last.start <= offset => self.spans.len() - 1,
            Some(_) => self.spans.partition_point(|held| held.end < offset),
        }
    }

    /// The first part of `span` that is in the set.
    pub(crate) fn overlap(&self, span: Span) -> Option<Span> {
        let held = self.spans.get(self.first_reaching(span.start + 1))?;
        let part = Span { start: held.start.max(span.start), end: held.end.min(span.end) };
        (part.start < part.end).then_some(part)
    }

    /// Takes out everything below `offset`.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        while let Some(first) = self.spans.front_mut() {
            if first.start >= offset {
                break;
            }
            if first.end > offset {
                first.start = offset;
                break;
            }
            self.spans.pop_front();
        }
    }

    /// Takes out everything.
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a bitmap: membership, the new parts, and that spans never touch.
        #[test]
        fn behaves_as_a_bitmap(
            steps in proptest::collection::vec((0_u64..120, 1_u64..20, 0_u64..140), 1..60),
        ) {
            let (mut set, mut model) = (RangeSet::default(), [false; 160]);
            for (start, len, floor) in steps {
                let span = Span { start, end: start + len };
                let mut fresh = Vec::new();
                let held = (span.start..span.end).skip_while(|&i| !model[i as usize]);
                let held: Vec<u64> = held.take_while(|&i| model[i as usize]).collect();
                prop_assert_eq!(set.overlap(span).map_or(vec![], |part| (part.start..part.end).collect()), held);
                let merged = set.insert(span, |part| fresh.extend(part.start..part.end));
                let expected: Vec<u64> = (span.start..span.end).filter(|&i| !model[i as usize]).collect();
                prop_assert_eq!(fresh, expected);
                prop_assert!(merged.start <= span.start && merged.end >= span.end);
                model[start as usize..span.end as usize].fill(true);
                if floor % 7 == 0 {
                    set.remove_below(floor);
                    model[..floor as usize].fill(false);
                }
                let held: Vec<u64> = set.iter().flat_map(|s| s.start..s.end).collect();
                let wanted: Vec<u64> = (0..160).filter(|&i| model[i as usize]).collect();
                prop_assert_eq!(held, wanted);
                let spans: Vec<Span> = set.iter().collect();
                prop_assert!(spans.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
