//! One deadline per node, or per application of a host, in a tournament tree: setting one costs a comparison per
//! level, finding the first nothing.
//!
//! Every match of the tournament keeps its winner's time, so a walk to the root touches one small array.
//! Ties go to the deadline that was set first.

use base::Instant;

/// The deadlines of nodes that are numbered from zero.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Those who meet in each match, side by side: place p of the tournament, with the winner of all at 1 and the winner of
    /// places 2p and 2p + 1 at p, is at `[p / 2][p % 2]`. The leaves are the second half.
    pairs: Vec<[Winner; 2]>,
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
        Self { pairs: vec![[NOBODY; 2]; 1], set_at: Vec::new(), room: 1, sequence: 0 }
    }

    /// Adds the next node.
    pub(crate) fn add(&mut self, deadline: Option<Instant>) {
        if self.set_at.len() == self.room {
            self.grow();
        }
        let id = self.set_at.len() as u32;
        self.set_at.push(0);
        let leaf = self.room + id as usize;
        self.pairs[leaf / 2][leaf % 2].node = id;
        self.set(id, deadline);
    }

    /// The earliest deadline and whose it is.
    pub(crate) fn first(&self) -> Option<(Instant, u32)> {
        let winner = self.pairs[0][1];
        (winner.due != Instant::MAX).then_some((winner.due, winner.node))
    }

    /// Replaces a node's deadline; one that has not changed keeps its place among equals.
    pub(crate) fn set(&mut self, id: u32, deadline: Option<Instant>) {
        let due = deadline.unwrap_or(Instant::MAX);
        let mut at = self.room + id as usize;
        if self.pairs[at / 2][at % 2].due == due {
            return;
        }
        self.sequence += 1;
        self.set_at[id as usize] = self.sequence;
        let mut winner = Winner { due, node: id };
        while at > 0 {
            let pair = &mut self.pairs[at / 2];
            let slot = &mut pair[at % 2];
            // Above a match that someone else had won and still wins, nothing changes.
            if *slot == winner && winner.node != id {
                return;
            }
            *slot = winner;
            let rival = pair[at % 2 ^ 1];
            at /= 2;
            if at > 0 && wins(&self.set_at, rival, winner) {
                winner = rival;
            }
        }
    }

    fn grow(&mut self) {
        let leaf = |at: usize| self.pairs[at / 2][at % 2];
        let leaves: Vec<_> = (self.room..2 * self.room).map(leaf).collect();
        self.room *= 2;
        self.pairs = vec![[NOBODY; 2]; self.room];
        for (at, leaf) in (self.room..).zip(leaves) {
            self.pairs[at / 2][at % 2] = leaf;
        }
        for at in (1..self.room).rev() {
            let [one, other] = self.pairs[at];
            let winner = if wins(&self.set_at, other, one) { other } else { one };
            self.pairs[at / 2][at % 2] = winner;
        }
    }
}

/// Whether `one` comes before `other`; `set_at` tells when their deadlines were set.
#[inline]
fn wins(set_at: &[u64], one: Winner, other: Winner) -> bool {
    if one.due == other.due && one.due != Instant::MAX {
        return set_at[one.node as usize] < set_at[other.node as usize];
    }
    one.due < other.due
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list searched from the front.
        #[test]
        fn the_first_is_the_earliest_set_first(
            nodes in 1_usize..40,
            steps in proptest::collection::vec((0_usize..40, proptest::option::of(0_u64..20)), 1..200),
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
