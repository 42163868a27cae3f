//! One deadline per node, or per application of a host, in a tournament tree: setting one costs a comparison per
//! level, finding the first nothing.
//!
//! Every match of the tournament keeps its winner's time, so a walk to the root touches one small array.
//! Ties go to the deadline that was set first.

use base::Instant;

/// The deadlines of nodes that are numbered from zero.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Matches from the root at 1; the leaves are the second half.
    matches: Vec<Winner>,
    /// When each node's deadline was set, for ties.
    set_at: Vec<u64>,
    /// Leaves there is room for, a power of two.
    room: usize,
    sequence: u64,
}

/// The earlier of a match's two deadlines; [`Instant::MAX`] is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Winner {
    due: Instant,
    node: u32,
}

const NOBODY: Winner = Winner { due: Instant::MAX, node: 0 };

impl Deadlines {
    pub(crate) fn new() -> Self {
        Self { matches: vec![NOBODY; 2], set_at: Vec::new(), room: 1, sequence: 0 }
    }

    /// Adds the next node.
    pub(crate) fn add(&mut self, deadline: Option<Instant>) {
        if self.set_at.len() == self.room {
            self.grow();
        }
        let id = self.set_at.len() as u32;
        self.set_at.push(0);
        self.matches[self.room + id as usize].node = id;
        self.set(id, deadline);
    }

    /// The earliest deadline and whose it is.
    pub(crate) fn first(&self) -> Option<(Instant, u32)> {
        let winner = self.matches[1];
        (winner.due != Instant::MAX).then_some((winner.due, winner.node))
    }

    /// Replaces a node's deadline; one that has not changed keeps its place among equals.
    pub(crate) fn set(&mut self, id: u32, deadline: Option<Instant>) {
        let due = deadline.unwrap_or(Instant::MAX);
        let mut at = self.room + id as usize;
        if self.matches[at].due == due {
            return;
        }
        self.sequence += 1;
        self.set_at[id as usize] = self.sequence;
        let mut winner = Winner { due, node: id };
        self.matches[at] = winner;
        while at > 1 {
            let rival = self.matches[at ^ 1];
            if self.wins(rival, winner) {
                winner = rival;
            }
            at /= 2;
            let slot = &mut self.matches[at];
            // Above a match that someone else had won and still wins, nothing changes.
            if *slot == winner && winner.node != id {
                return;
            }
            *slot = winner;
        }
    }

    /// Whether `one` comes before `other`.
    #[inline]
    fn wins(&self, one: Winner, other: Winner) -> bool {
        if one.due == other.due && one.due != Instant::MAX {
            return self.set_at[one.node as usize] < self.set_at[other.node as usize];
        }
        one.due < other.due
    }

    fn grow(&mut self) {
        let leaves: Vec<_> = self.matches[self.room..].to_vec();
        self.room *= 2;
        self.matches = vec![NOBODY; 2 * self.room];
        self.matches[self.room..self.room + leaves.len()].copy_from_slice(&leaves);
        for at in (1..self.room).rev() {
            let (one, other) = (self.matches[2 * at], self.matches[2 * at + 1]);
            self.matches[at] = if self.wins(other, one) { other } else { one };
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
