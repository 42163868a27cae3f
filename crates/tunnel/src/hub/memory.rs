//! Memory of all tunnels together: what queues, links and proxies hold, as it is allocated.
//!
//! What is left is shared by dynamic thresholds (Choudhury and Hahne 1998), as it is among the connections of a proxy: no tunnel may hold
//! more than is left, so a few greedy ones never starve the rest, and nothing is set aside for those that need little.
//!
//! Counted is what grows with traffic: packets that wait and that are under way (1664 bytes for the shortest), notes about them, what has come and
//! cannot go up, copies, sums and connections. What every tunnel has from its start, its session among it, is not counted; `idle_memory.rs`
//! in the tests says how much that is.
//!
//! A tunnel that holds more than it may:
//! - takes one packet at a time from the LAN,
//! - sends no new packet while more is under way,
//! - drops its copies,
//! - refuses frames beyond a gap.
//!
//! What it holds besides stays until it is acknowledged, delivered or given up, so the sum may be above the limit for that long, and by what each
//! tunnel may always have.

use super::PeerId;

#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    used: usize,
    members: Vec<Member>,
    /// Who is looked at next.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// What it is counted as.
    counted: usize,
    /// What it was told last that it may have.
    told: usize,
    /// Occasions since it was counted.
    occasions: u8,
}

/// Bytes of all tunnels, unless the configuration says otherwise.
pub const MEMORY: usize = 1 << 30;
/// Each may always have so many bytes: with less a link of today's rates does not get along.
const LEAST: usize = 256 << 10;
/// Occasions of a member of which one is counted. Ours: on none it takes more than a packet or what a batch of datagrams brings.
const OCCASIONS: u8 = 16;
/// Members that are looked at each time.
const LOOKS: usize = 8;

impl Memory {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, used: 0, members: Vec::new(), next: 0 }
    }

    pub(super) const fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Adds the next member.
    pub(super) fn add(&mut self) {
        self.members.push(Member { counted: 0, told: usize::MAX, occasions: 0 });
    }

    /// Something happens with a member, such as a packet from the LAN. Whether it is to be counted again: once in a few times is enough, since
    /// it does not hold much more after a few.
    pub(super) fn is_due(&mut self, id: PeerId) -> bool {
        let Member { occasions, .. } = &mut self.members[id.0 as usize];
        *occasions = (*occasions + 1) % OCCASIONS;
        *occasions == 0
    }

    /// A member takes so many bytes; what it is to be told that it may have, if that is new.
    pub(super) fn count(&mut self, id: PeerId, bytes: usize) -> Option<usize> {
        self.note(id, bytes);
        let allowed = self.allowed();
        let Member { told, .. } = &mut self.members[id.0 as usize];
        let is_new = allowed.abs_diff(*told) > *told / 8;
        is_new.then(|| {
            *told = allowed;
            allowed
        })
    }

    /// A member takes so many bytes.
    pub(super) fn note(&mut self, id: PeerId, bytes: usize) {
        let Member { counted, .. } = &mut self.members[id.0 as usize];
        self.used = self.used - core::mem::replace(counted, bytes) + bytes;
    }

    /// What anybody may have.
    fn allowed(&self) -> usize {
        self.limit.saturating_sub(self.used).max(LEAST)
    }

    /// Somebody who holds more than may be and was told of more: few are looked at each time, all in turn.
    pub(super) fn poll_excess(&mut self) -> Option<PeerId> {
        let allowed = self.allowed();
        for _ in 0..LOOKS.min(self.members.len()) {
            let number = self.next % self.members.len();
            self.next = number + 1;
            let Member { counted, told, .. } = self.members[number];
            if counted > allowed && told - told / 8 > allowed {
                return Some(PeerId(number as u32));
            }
        }
        None
    }

    /// Whether a member holds no more than it may.
    pub(super) fn has_room(&self, id: PeerId) -> bool {
        self.members.get(id.0 as usize).is_none_or(|member| member.counted <= member.told)
    }

    /// A member has gone, and all that it held.
    pub(super) fn forget(&mut self, id: PeerId) {
        let Member { counted, told, .. } = &mut self.members[id.0 as usize];
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

    /// Whatever happens with others, and in which order.
    #[test]
    fn each_is_counted_once_in_a_few_times() {
        let mut memory = Memory::new(1);
        (0..16).for_each(|_| memory.add());
        let mut counted = [0; 16];
        for _ in 0..32 {
            (0..16_u32).for_each(|at| counted[at as usize] += u32::from(memory.is_due(PeerId(at))));
        }
        assert_eq!(counted, [2; 16]);
    }

    #[test]
    fn who_holds_too_much_and_rests_is_found() {
        const MIB: usize = 1 << 20;
        let mut memory = Memory::new(64 * MIB);
        (0..30).for_each(|_| memory.add());
        memory.count(PeerId(7), 20 * MIB);
        assert!((0..30).all(|_| memory.poll_excess().is_none()));
        memory.count(PeerId(3), 30 * MIB);
        let found: Vec<_> = (0..30).filter_map(|_| memory.poll_excess()).collect();
        assert!(found.contains(&PeerId(7)) && !found.contains(&PeerId(5)), "{found:?}");
        assert_eq!(memory.count(PeerId(7), 10 * MIB), Some(24 * MIB));
        memory.count(PeerId(3), 20 * MIB);
        assert!((0..30).all(|_| memory.poll_excess().is_none()), "both know");
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
