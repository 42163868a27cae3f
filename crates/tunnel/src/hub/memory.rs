//! Memory of all tunnels together: what queues, links and proxies hold, as it is allocated.
//!
//! What is left is shared by dynamic thresholds (Choudhury and Hahne 1998), as it is among the connections of a proxy: no tunnel may hold
//! more than is left, so a few greedy ones never starve the rest, and nothing is set aside for those that need little.

use super::PeerId;

#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    used: usize,
    /// What each is counted as, and what it was told last that it may have.
    members: Vec<(usize, usize)>,
}

/// Bytes of all tunnels, unless the configuration says otherwise.
pub const MEMORY: usize = 1 << 30;
/// Each may always have so many bytes: with less a link of today's rates does not get along.
const LEAST: usize = 256 << 10;

impl Memory {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, used: 0, members: Vec::new() }
    }

    pub(super) const fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Adds the next member.
    pub(super) fn add(&mut self) {
        self.members.push((0, usize::MAX));
    }

    /// A member takes so many bytes; what it is to be told that it may have, if that is new.
    pub(super) fn count(&mut self, id: PeerId, bytes: usize) -> Option<usize> {
        let (counted, told) = &mut self.members[id.0 as usize];
        self.used = self.used - core::mem::replace(counted, bytes) + bytes;
        let allowed = self.limit.saturating_sub(self.used).max(LEAST);
        let is_new = allowed.abs_diff(*told) > *told / 8;
        is_new.then(|| {
            *told = allowed;
            allowed
        })
    }

    /// Whether a member holds no more than it may.
    pub(super) fn has_room(&self, id: PeerId) -> bool {
        self.members.get(id.0 as usize).is_none_or(|(counted, told)| counted <= told)
    }

    /// A member has gone, and all that it held.
    pub(super) fn forget(&mut self, id: PeerId) {
        let (counted, told) = &mut self.members[id.0 as usize];
        self.used -= core::mem::take(counted);
        *told = usize::MAX;
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greedy_leave_as_much_as_they_have() {
        const LIMIT: usize = 64 << 20;
        let mut memory = Memory::new(LIMIT);
        (0..4).for_each(|_| memory.add());
        let mut held = [0; 4];
        // Two take what they may, again and again.
        for _ in 0..1000 {
            for at in [0, 1] {
                let id = PeerId(at as u32);
                memory.count(id, held[at]);
                if memory.has_room(id) {
                    held[at] += 100_000;
                }
            }
        }
        let sum: usize = held.iter().sum();
        assert!((LIMIT / 2..LIMIT * 3 / 4).contains(&sum), "{held:?}");
        assert!(held[0].abs_diff(held[1]) < LIMIT / 8, "{held:?}");
        // A third finds as much.
        let third = memory.count(PeerId(2), 0).expect("it was told nothing so far");
        assert!(third > LIMIT / 4, "{third}");
        // When one has gone, the others may have more.
        memory.forget(PeerId(0));
        let more = memory.count(PeerId(1), held[1]).expect("much has changed");
        assert!(more > third);
        assert_eq!(memory.used(), held[1]);
    }

    #[test]
    fn what_is_allowed_is_told_again_when_it_differs_by_an_eighth() {
        const MIB: usize = 1 << 20;
        let mut memory = Memory::new(80 * MIB);
        memory.add();
        let mut told = |held| memory.count(PeerId(0), held * MIB).map(|bytes| bytes / MIB);
        assert_eq!([0, 10, 11, 19, 20].map(&mut told), [Some(80), None, Some(69), None, Some(60)]);
        assert_eq!([13, 12].map(told), [None, Some(68)], "more is allowed again");
    }

    #[test]
    fn a_little_is_always_allowed() {
        let mut memory = Memory::new(1);
        memory.add();
        assert_eq!(memory.count(PeerId(0), 5), Some(LEAST));
        assert!(memory.has_room(PeerId(0)));
        memory.count(PeerId(0), LEAST + 1);
        assert!(!memory.has_room(PeerId(0)));
    }
}
