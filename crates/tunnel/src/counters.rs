//! Plain counters, and how a set of them is named.

use serde::{Serialize, Serializer};

/// Counts events or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter(u64);

impl Counter {
    /// One more.
    pub const fn increment(&mut self) {
        self.0 += 1;
    }

    /// `count` more.
    pub const fn add(&mut self, count: u64) {
        self.0 += count;
    }

    /// The count so far.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// Counters by name, in the order in which they were first counted.
#[derive(Clone, Debug, Default)]
pub struct Reasons(Vec<(&'static str, Counter)>);

impl Reasons {
    /// One more of `name`.
    pub fn increment(&mut self, name: &'static str) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, counter)) => counter.increment(),
            None => self.0.push((name, Counter(1))),
        }
    }

    /// The count of `name` so far.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.0.iter().find(|(known, _)| *known == name).map_or(0, |(_, counter)| counter.get())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, counter)| (*name, counter.get()))
    }
}

impl Serialize for Reasons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Counts by name, as JSON has them.
#[derive(Clone, Debug)]
pub(crate) struct Named(pub(crate) Vec<(&'static str, u64)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_of_its_own() {
        let mut reasons = Reasons::default();
        ["late", "malformed", "late"].into_iter().for_each(|name| reasons.increment(name));
        assert_eq!(["late", "malformed", "truncated"].map(|name| reasons.get(name)), [2, 1, 0]);
        assert_eq!(reasons.iter().collect::<Vec<_>>(), [("late", 2), ("malformed", 1)], "in this order");
    }
}
