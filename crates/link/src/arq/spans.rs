//! Which frames of a large window have been received: runs of numbers, each as long as it can be.

use std::collections::BTreeMap;

/// A set of numbers, kept as runs that do not touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    /// The end of each run (exclusive) by its start.
    ends: BTreeMap<u64, u64>,
}

impl Spans {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many runs there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The run that `number` is in.
    pub(crate) fn run_at(&self, number: u64) -> Option<(u64, u64)> {
        let (&start, &end) = self.ends.range(..=number).next_back()?;
        (number < end).then_some((start, end))
    }

    /// The first stretch from `start` on, before `end`, that is not in the set.
    pub(crate) fn first_gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        if self.ends.is_empty() {
            return (start < end).then_some((start, end));
        }
        let from = self.run_at(start).map_or(start, |(_, stop)| stop);
        let to = self.ends.range(from..).next().map_or(end, |(&first, _)| first.min(end));
        (from < to).then_some((from, to))
    }

    /// Adds `start..end`; `on_new` sees each stretch of it that was not there.
    pub(crate) fn insert(&mut self, start: u64, end: u64, mut on_new: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let (mut from, mut to) = (start, end);
        let mut at = start;
        // A run that ends where this one starts becomes one with it.
        if let Some((&first, &stop)) = self.ends.range(..=start).next_back()
            && stop >= start
        {
            (from, to) = (first, to.max(stop));
            at = at.max(stop);
        }
        while at < end {
            let following = self.ends.range(at..).next().map(|(&first, &stop)| (first, stop));
            let Some((first, stop)) = following.filter(|(first, _)| *first < end) else {
                on_new(at, end);
                break;
            };
            if at < first {
                on_new(at, first);
            }
            self.ends.remove(&first);
            to = to.max(stop);
            at = stop;
        }
        if let Some(stop) = self.ends.remove(&to) {
            to = stop;
        }
        self.ends.insert(from, to);
    }

    /// Takes out all numbers before `number`.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while let Some(entry) = self.ends.first_entry()
            && *entry.key() < number
        {
            let end = entry.remove();
            if end > number {
                self.ends.insert(number, end);
            }
        }
    }

    /// The runs that end beyond `number`, in order, each without what lies before it.
    pub(crate) fn runs_from(&self, number: u64) -> impl Iterator<Item = (u64, u64)> {
        let start = self.run_at(number).map_or(number, |(start, _)| start);
        self.ends.range(start..).map(move |(&start, &end)| (start.max(number), end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The model is a plain set of numbers.
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0_u64..120, 0_u64..20, 0_u8..8), 1..60)) {
            let (mut spans, mut set) = (Spans::default(), BTreeSet::new());
            for (start, len, kind) in steps {
                if kind == 0 {
                    spans.forget_before(start);
                    set.retain(|number| *number >= start);
                } else {
                    let mut new = BTreeSet::new();
                    spans.insert(start, start + len, |from, to| {
                        assert!(from < to);
                        for number in from..to {
                            assert!(new.insert(number), "{number} twice");
                        }
                    });
                    let expected: BTreeSet<u64> = (start..start + len).filter(|n| !set.contains(n)).collect();
                    prop_assert_eq!(&new, &expected);
                    set.extend(expected);
                }
                let runs: Vec<_> = spans.runs_from(0).collect();
                prop_assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", runs);
                let members: BTreeSet<u64> = runs.iter().flat_map(|(from, to)| *from..*to).collect();
                prop_assert_eq!(&members, &set);
                let first = (start..start + len).find(|number| !set.contains(number));
                let gap = spans.first_gap(start, start + len);
                prop_assert_eq!(gap.map(|(from, _)| from), first);
                if let Some((from, to)) = gap {
                    prop_assert!((from..to).all(|number| !set.contains(&number)));
                    prop_assert!(to == start + len || set.contains(&to));
                }
                for number in 0..141 {
                    prop_assert_eq!(spans.run_at(number).is_some(), set.contains(&number));
                }
                let rest: BTreeSet<u64> = spans.runs_from(start).flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(rest, set.iter().copied().filter(|n| *n >= start).collect::<BTreeSet<_>>());
                prop_assert_eq!(spans.is_empty(), set.is_empty());
            }
        }
    }
}
