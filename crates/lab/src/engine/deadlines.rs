//! One deadline per node, in a tournament tree: setting one costs a comparison per level, finding the first nothing.
//!
//! Every match of the tournament keeps its winner's key, so a walk to the root touches one small array.
//! Ties go to the deadline that was set first.

use base::Instant;

use super::NodeId;

/// When, and which of those with the same time was set first: ordered as one number.
type Key = u128;

const NEVER: Key = Key::MAX;

#[derive(Debug)]
pub(super) struct Deadlines {
    /// Matches from the root at 1; the leaves are the second half.
    winners: Vec<(Key, u32)>,
    /// Leaves there is room for, a power of two.
    room: usize,
    count: usize,
    sequence: u64,
}

impl Deadlines {
    pub(super) fn new() -> Self {
        Self { winners: vec![(NEVER, 0); 2], room: 1, count: 0, sequence: 0 }
    }

    /// Adds the next node.
    pub(super) fn add(&mut self, deadline: Option<Instant>) {
        if self.count == self.room {
            self.grow();
        }
        let id = NodeId(self.count as u32);
        self.count += 1;
        self.winners[self.room + id.0 as usize] = (NEVER, id.0);
        self.set(id, deadline);
    }

    /// The earliest deadline and whose it is.
    pub(super) fn first(&self) -> Option<(Instant, NodeId)> {
        let (key, node) = self.winners[1];
        (key != NEVER).then(|| (time_of(key), NodeId(node)))
    }

    /// Replaces a node's deadline; one that has not changed keeps its place among equals.
    pub(super) fn set(&mut self, id: NodeId, deadline: Option<Instant>) {
        let mut at = self.room + id.0 as usize;
        let key = match deadline {
            None if self.winners[at].0 == NEVER => return,
            None => NEVER,
            Some(due) if time_of(self.winners[at].0) == due => return,
            Some(due) => {
                self.sequence += 1;
                Key::from(due.as_nanos()) << 64 | Key::from(self.sequence)
            }
        };
        let mut winner = (key, id.0);
        self.winners[at] = winner;
        while at > 1 {
            let rival = self.winners[at ^ 1];
            if rival.0 < winner.0 {
                winner = rival;
            }
            at /= 2;
            if self.winners[at] == winner {
                return;
            }
            self.winners[at] = winner;
        }
    }

    fn grow(&mut self) {
        let leaves: Vec<_> = self.winners[self.room..].to_vec();
        self.room *= 2;
        self.winners = vec![(NEVER, 0); 2 * self.room];
        self.winners[self.room..self.room + leaves.len()].copy_from_slice(&leaves);
        for at in (1..self.room).rev() {
            self.winners[at] = self.winners[2 * at].min(self.winners[2 * at + 1]);
        }
    }
}

fn time_of(key: Key) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
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
                deadlines.set(NodeId(node as u32), due.map(Instant::from_nanos));
                if model[node].map(|(at, _)| at) != due {
                    model[node] = due.map(|due| (due, sequence as u64));
                }
                let first = (0..nodes).filter_map(|n| model[n].map(|key| (key, n))).min();
                let expected = first.map(|((due, _), n)| (Instant::from_nanos(due), NodeId(n as u32)));
                prop_assert_eq!(deadlines.first(), expected);
            }
        }
    }
}
