//! Sets of sequence ranges, kept sorted and merged.

use std::collections::VecDeque;

/// A half-open run of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Disjoint, not even touching spans in ascending order; takes memory only while there are any.
#[derive(Debug, Default)]
pub(crate) struct RangeSet(Option<Box<Spans>>);

/// The spans of a set that has some.
type Spans = VecDeque<Span>;

impl RangeSet {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The spans, ascending.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Span> + '_ {
        self.0.as_deref().into_iter().flatten().copied()
    }

    /// The highest span.
    pub(crate) fn last(&self) -> Option<Span> {
        self.0.as_deref()?.back().copied()
    }

    /// The lowest span.
    pub(crate) fn first(&self) -> Option<Span> {
        self.0.as_deref()?.front().copied()
    }

    /// Adds `span`, calls `on_new` for each part that was not in the set, ascending, and returns the span that
    /// now holds it; none if that would take more than `most` spans: then nothing is added.
    pub(crate) fn insert(&mut self, span: Span, most: usize, mut on_new: impl FnMut(Span)) -> Option<Span> {
        debug_assert!(span.start < span.end && most > 0, "empty span, or none allowed");
        let spans = self.0.get_or_insert_default();
        let first = first_reaching(spans, span.start);
        if spans.len() >= most && spans.get(first).is_none_or(|held| held.start > span.end) {
            return None;
        }
        let mut merged = span;
        let mut uncovered = span.start;
        let mut past = first;
        while let Some(held) = spans.get(past).filter(|held| held.start <= span.end) {
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
            spans.insert(first, merged);
        } else {
            spans[first] = merged;
            spans.drain(first + 1..past);
        }
        Some(merged)
    }

    /// What [`RangeSet::insert`] would return if there were room.
    pub(crate) fn merged(&self, mut span: Span) -> Span {
        let Some(spans) = self.0.as_deref() else { return span };
        let touching = |at: usize, span: &Span| spans.get(at).filter(|held| held.start <= span.end).copied();
        if let Some(first) = touching(first_reaching(spans, span.start), &span) {
            span = Span { start: span.start.min(first.start), end: span.end.max(first.end) };
        }
        // The last that begins by its end may reach further.
        let past = spans.partition_point(|held| held.start <= span.end);
        let last = past.checked_sub(1).map(|at| spans[at].end);
        Span { end: span.end.max(last.unwrap_or(0)), ..span }
    }

    /// The span of the set that holds all of `span`.
    pub(crate) fn around(&self, span: Span) -> Option<Span> {
        let spans = self.0.as_deref()?;
        let held = *spans.get(first_reaching(spans, span.end))?;
        (held.start <= span.start).then_some(held)
    }

    /// Bytes of memory that the set takes.
    pub(crate) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |spans| spans.capacity() * size_of::<Span>())
    }

    /// The first part of `span` that is in the set.
    pub(crate) fn overlap(&self, span: Span) -> Option<Span> {
        let spans = self.0.as_deref()?;
        let held = spans.get(first_reaching(spans, span.start + 1))?;
        let part = Span { start: held.start.max(span.start), end: held.end.min(span.end) };
        (part.start < part.end).then_some(part)
    }

    /// Takes out everything below `offset`.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        let Some(spans) = &mut self.0 else { return };
        while let Some(first) = spans.front_mut() {
            if first.start >= offset {
                return;
            }
            if first.end > offset {
                first.start = offset;
                return;
            }
            spans.pop_front();
        }
        self.0 = None;
    }

    /// Takes out everything.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}

/// Spans of any set at the most, so that peers who leave a gap after every byte cannot make an insertion expensive: it moves
/// half of them, 32 KiB. A window of 100 MB that loses a twentieth of its segments has 3500 gaps.
pub(crate) const MOST_SPANS: usize = 4096;

/// The index of the first span whose end is at or past `offset`. New data is mostly near the top.
fn first_reaching(spans: &Spans, offset: u64) -> usize {
    match spans.back() {
        None => 0,
        Some(last) if last.end < offset => spans.len(),
        Some(last) if last.start <= offset => spans.len() - 1,
        Some(_) => spans.partition_point(|held| held.end < offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9293 (3.10.7.4): whoever leaves gaps, in whatever order, takes no more than the memory that is for them.
    #[test]
    fn a_full_set_takes_no_span_below_the_others() {
        let mut set = RangeSet::default();
        for start in [100, 90, 80, 70] {
            assert!(set.insert(Span { start, end: start + 1 }, 4, |_| ()).is_some());
        }
        assert_eq!(set.insert(Span { start: 60, end: 61 }, 4, |_| ()), None);
        assert_eq!(set.insert(Span { start: 85, end: 86 }, 4, |_| ()), None);
        assert_eq!(set.iter().count(), 4, "gaps take memory without bound");
    }

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
                let foreseen = set.merged(span);
                let merged = set.insert(span, 8, |part| fresh.extend(part.start..part.end));
                let Some(merged) = merged else {
                    // Refused: there are eight, and it touches none.
                    prop_assert_eq!(set.iter().count(), 8);
                    let around = span.start.saturating_sub(1)..=span.end;
                    prop_assert!(!around.into_iter().any(|i| model[i as usize]) && fresh.is_empty());
                    continue;
                };
                prop_assert_eq!((foreseen, set.around(span)), (merged, Some(merged)));
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
