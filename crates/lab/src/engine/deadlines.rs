//! One deadline per node, or per application of a host, in a tournament of fours: setting one costs some comparisons per
//! level, finding the first nothing.
//!
//! A group of four fills a line of cache. Ties go to the deadline that was set first.

use base::Instant;

/// The deadlines of nodes that are numbered from zero.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Group 0 is the final; slot s of group g holds the winner of group 4g + 1 + s, and in the last round a node.
    groups: Vec<[Entrant; 4]>,
    /// The winner of the final.
    first: Entrant,
    /// The first group of the last round.
    last_round: usize,
    /// When each node's deadline was set, for ties.
    set_at: Vec<u64>,
    sequence: u64,
}

/// A node with its deadline; [`Instant::MAX`] is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entrant {
    due: Instant,
    node: u32,
}

const NOBODY: Entrant = Entrant { due: Instant::MAX, node: u32::MAX };

impl Deadlines {
    pub(crate) const fn new() -> Self {
        Self { groups: Vec::new(), first: NOBODY, last_round: 0, set_at: Vec::new(), sequence: 0 }
    }

    /// Adds the next node.
    pub(crate) fn add(&mut self, deadline: Option<Instant>) {
        let id = self.set_at.len();
        // A round has three times as many groups as all before it, and one more.
        if id == 4 * (3 * self.last_round + 1) {
            self.add_round();
        }
        if self.last_round + id / 4 == self.groups.len() {
            self.groups.push([NOBODY; 4]);
        }
        self.set_at.push(0);
        self.groups[self.last_round + id / 4][id % 4].node = id as u32;
        self.set(id as u32, deadline);
    }

    /// The earliest deadline and whose it is.
    pub(crate) fn first(&self) -> Option<(Instant, u32)> {
        (self.first.due != Instant::MAX).then_some((self.first.due, self.first.node))
    }

    /// Replaces a node's deadline; one that has not changed keeps its place among equals.
    pub(crate) fn set(&mut self, id: u32, deadline: Option<Instant>) {
        let due = deadline.unwrap_or(Instant::MAX);
        let (mut group, mut slot) = (self.last_round + id as usize / 4, id as usize % 4);
        let mut before = self.groups[group][slot];
        if before.due == due {
            return;
        }
        self.sequence += 1;
        self.set_at[id as usize] = self.sequence;
        let mut entrant = Entrant { due, node: id };
        loop {
            self.groups[group][slot] = entrant;
            let winner = match group {
                0 => self.first,
                _ => self.groups[(group - 1) / 4][(group - 1) % 4],
            };
            if winner.node != before.node {
                // Someone else had won, and is beaten or goes on.
                if !wins(&self.set_at, entrant, winner) {
                    return;
                }
            } else if entrant.due >= winner.due {
                entrant = self.best_of(group);
            }
            if group == 0 {
                self.first = entrant;
                return;
            }
            before = winner;
            (group, slot) = ((group - 1) / 4, (group - 1) % 4);
        }
    }

    #[inline]
    fn best_of(&self, group: usize) -> Entrant {
        let [mut best, others @ ..] = self.groups[group];
        for other in others {
            if wins(&self.set_at, other, best) {
                best = other;
            }
        }
        best
    }

    /// Puts one more round before the others.
    fn add_round(&mut self) {
        let nodes = self.groups.split_off(self.last_round);
        self.last_round = 4 * self.last_round + 1;
        self.groups = vec![[NOBODY; 4]; self.last_round];
        self.groups.extend(nodes);
        for group in (1..self.groups.len()).rev() {
            self.groups[(group - 1) / 4][(group - 1) % 4] = self.best_of(group);
        }
    }
}

/// Whether `one` comes before `other`; `set_at` tells when their deadlines were set.
#[inline]
fn wins(set_at: &[u64], one: Entrant, other: Entrant) -> bool {
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
