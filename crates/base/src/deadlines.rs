//! One deadline each for many numbered things, in a tournament tree: setting one costs a match per
//! level, finding the first nothing.
//!
//! A match has four sides, which share a line of the processor's cache. Ties go to the deadline that was set first.

use crate::Instant;

/// The deadlines of things ("nodes") that are numbered from zero.
#[derive(Debug)]
pub struct Deadlines {
    /// From the final at 0, whose sides are the winners of matches 1 to 4, and so on; in the last ones are the nodes' own.
    matches: Vec<Match>,
    /// Where the matches of the nodes' own deadlines start; before them are all others.
    leaves: usize,
    /// The winner of the final.
    first: Deadline,
    nodes: usize,
    /// Deadlines that were set so far.
    sequence: u64,
}

/// When, in nanoseconds; then which was set, counted; then the node: one number, so that a comparison is one.
type Deadline = u128;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Match([Deadline; SIDES]);

const SIDES: usize = 4;
const NEVER: Deadline = Deadline::MAX;
const DUE_SHIFT: u32 = 64;
/// Bits of a node's number: four million nodes, and 4e12 deadlines before the count runs over.
const NODE_BITS: u32 = 22;

impl Match {
    const OF_NOBODY: Self = Self([NEVER; SIDES]);

    #[inline]
    fn winner(&self) -> Deadline {
        let [a, b, c, d] = self.0;
        a.min(b).min(c.min(d))
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::new()
    }
}

impl Deadlines {
    /// Of no nodes.
    #[must_use]
    pub const fn new() -> Self {
        Self { matches: Vec::new(), leaves: 0, first: NEVER, nodes: 0, sequence: 0 }
    }

    /// Adds the next node.
    ///
    /// # Panics
    /// With more nodes than their numbers have room for.
    pub fn add(&mut self, deadline: Option<Instant>) {
        if self.nodes == SIDES * (self.matches.len() - self.leaves) {
            self.grow();
        }
        let id = self.nodes as u32;
        assert!(id < 1 << NODE_BITS, "too many nodes");
        self.nodes += 1;
        self.set(id, deadline);
    }

    /// The earliest deadline and whose it is.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<(Instant, u32)> {
        let node = self.first as u32 & ((1 << NODE_BITS) - 1);
        (self.first != NEVER).then_some((Instant::from_nanos((self.first >> DUE_SHIFT) as u64), node))
    }

    /// A node's deadline; [`Instant::MAX`] if it has none.
    #[must_use]
    #[inline]
    pub fn due(&self, id: u32) -> Instant {
        let of_four = &self.matches[self.leaves + id as usize / SIDES];
        Instant::from_nanos((of_four.0[id as usize % SIDES] >> DUE_SHIFT) as u64)
    }

    /// Replaces a node's deadline; one that has not changed keeps its place among equals.
    #[inline]
    pub fn set(&mut self, id: u32, deadline: Option<Instant>) {
        let due = deadline.unwrap_or(Instant::MAX).as_nanos();
        if self.due(id).as_nanos() != due {
            self.replace(id, due);
        }
    }

    fn replace(&mut self, id: u32, due: u64) {
        let (mut at, mut side) = (self.leaves + id as usize / SIDES, id as usize % SIDES);
        let mut winner = NEVER;
        if due != Instant::MAX.as_nanos() {
            self.sequence += 1;
            winner =
                Deadline::from(due) << DUE_SHIFT | Deadline::from(self.sequence << NODE_BITS | u64::from(id));
        }
        while let Some(of_four) = self.matches.get_mut(at) {
            // Above a match that ends as before, nothing changes.
            if of_four.0[side] == winner {
                return;
            }
            of_four.0[side] = winner;
            winner = of_four.winner();
            if at == 0 {
                break;
            }
            (at, side) = ((at - 1) / SIDES, (at - 1) % SIDES);
        }
        self.first = winner;
    }

    /// Makes room for four times as many nodes, or for the first four.
    fn grow(&mut self) {
        let own = self.matches.split_off(self.leaves);
        self.leaves = if own.is_empty() { 0 } else { SIDES * self.leaves + 1 };
        let room = (SIDES * own.len()).max(1);
        self.matches = vec![Match::OF_NOBODY; self.leaves + room];
        self.matches[self.leaves..self.leaves + own.len()].copy_from_slice(&own);
        for at in (1..self.leaves + own.len()).rev() {
            self.matches[(at - 1) / SIDES].0[(at - 1) % SIDES] = self.matches[at].winner();
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
