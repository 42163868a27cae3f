//! One deadline each for many numbered things, in a tournament tree: setting one costs a comparison per
//! level, finding the first nothing.
//!
//! Ties go to the deadline that was set first.

use crate::Instant;

/// The deadlines of things ("nodes") that are numbered from zero.
#[derive(Debug)]
pub struct Deadlines {
    /// The earlier deadline of each match, from the root at 1; the second half are the nodes' own.
    matches: Vec<Deadline>,
    nodes: usize,
    /// Leaves there is room for, a power of two.
    room: usize,
    /// Deadlines that were set so far.
    sequence: u64,
}

/// When, in nanoseconds; then which was set, counted; then the node: one number, so that a match is one comparison.
type Deadline = u128;

const NEVER: Deadline = Deadline::MAX;
const DUE_SHIFT: u32 = 64;
/// Bits of a node's number: four million nodes, and 4e12 deadlines before the count runs over.
const NODE_BITS: u32 = 22;

impl Default for Deadlines {
    fn default() -> Self {
        Self::new()
    }
}

impl Deadlines {
    /// Of no nodes.
    #[must_use]
    pub fn new() -> Self {
        Self { matches: vec![NEVER; 2], nodes: 0, room: 1, sequence: 0 }
    }

    /// Adds the next node.
    ///
    /// # Panics
    /// With more nodes than their numbers have room for.
    pub fn add(&mut self, deadline: Option<Instant>) {
        if self.nodes == self.room {
            self.grow();
        }
        let id = self.nodes as u32;
        assert!(id < 1 << NODE_BITS, "too many nodes");
        self.nodes += 1;
        self.set(id, deadline);
    }

    /// The earliest deadline and whose it is.
    #[must_use]
    pub fn first(&self) -> Option<(Instant, u32)> {
        let first = self.matches[1];
        let node = first as u32 & ((1 << NODE_BITS) - 1);
        (first != NEVER).then_some((Instant::from_nanos((first >> DUE_SHIFT) as u64), node))
    }

    /// Replaces a node's deadline; one that has not changed keeps its place among equals.
    pub fn set(&mut self, id: u32, deadline: Option<Instant>) {
        let due = deadline.unwrap_or(Instant::MAX).as_nanos();
        let mut at = self.room + id as usize;
        if (self.matches[at] >> DUE_SHIFT) as u64 == due {
            return;
        }
        let mut first = NEVER;
        if due != Instant::MAX.as_nanos() {
            self.sequence += 1;
            first =
                Deadline::from(due) << DUE_SHIFT | Deadline::from(self.sequence << NODE_BITS | u64::from(id));
        }
        // Their number is a power of two: with the mask the compiler knows that every place is there.
        let matches = self.matches.as_mut_slice();
        let Some(mask) = matches.len().checked_sub(1) else { return };
        matches[at & mask] = first;
        while at > 1 {
            first = first.min(matches[(at ^ 1) & mask]);
            at /= 2;
            // Above a match that ends as before, nothing changes.
            let before = &mut matches[at & mask];
            if *before == first {
                return;
            }
            *before = first;
        }
    }

    fn grow(&mut self) {
        let leaves = self.matches.split_off(self.room);
        self.room *= 2;
        self.matches = vec![NEVER; 2 * self.room];
        self.matches[self.room..self.room + leaves.len()].copy_from_slice(&leaves);
        for at in (1..self.room).rev() {
            self.matches[at] = self.matches[2 * at].min(self.matches[2 * at + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list searched from the front.
        #[test]
        fn the_first_is_the_earliest_set_first(
            nodes in 1_usize..100,
            steps in proptest::collection::vec((0_usize..100, proptest::option::of(0_u64..20)), 1..200),
        ) {
            let mut deadlines = Deadlines::new();
            let mut model: Vec<Option<(u64, u64)>> = vec![None; nodes];
            (0..nodes).for_each(|_| deadlines.add(None));
            for (sequence, (node, due)) in steps.into_iter().enumerate() {
                let node = node % nodes;
                deadlines.set(node as u32, due.map(Instant::from_nanos));
                if model[node].map(|(at, _)| at) != due {
                    model[node] = due.map(|due| (due, sequence as u64));
                }
                let first = (0..nodes).filter_map(|n| model[n].map(|key| (key, n))).min();
                let expected = first.map(|((due, _), n)| (Instant::from_nanos(due), n as u32));
                prop_assert_eq!(deadlines.first(), expected);
            }
        }
    }
}
