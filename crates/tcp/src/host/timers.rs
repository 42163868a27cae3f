//! The deadlines of a host's connections: an indexed heap with one entry a connection.
//!
//! Deadlines mostly move later (every acknowledgement restarts the retransmission timer), and those moves cost
//! nothing: the entry stays, and only when its old time comes is it put where it belongs.

use base::Instant;

/// A binary heap of (deadline, slot), each slot at most once.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<Entry>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its deadline now, at or after the heap's.
    wanted: Instant,
    /// Its place in the heap, or [`ABSENT`].
    place: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline: Instant,
    slot: u32,
}

const ABSENT: u32 = u32::MAX;

impl Timers {
    /// Sets the slot's deadline; [`Instant::MAX`] is none.
    pub(super) fn schedule(&mut self, slot: u32, deadline: Instant) {
        let at = slot as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, Slot { wanted: Instant::MAX, place: ABSENT });
        }
        let entry = &mut self.slots[at];
        entry.wanted = deadline;
        match entry.place {
            ABSENT if deadline < Instant::MAX => {
                self.heap.push(Entry { deadline, slot });
                self.rise(self.heap.len() - 1);
            }
            ABSENT => {}
            place if deadline < self.heap[place as usize].deadline => {
                self.heap[place as usize].deadline = deadline;
                self.rise(place as usize);
            }
            _ => {}
        }
    }

    /// Takes the slot out.
    pub(super) fn cancel(&mut self, slot: u32) {
        let at = slot as usize;
        if let Some(entry) = self.slots.get_mut(at) {
            entry.wanted = Instant::MAX;
            let place = entry.place;
            if place != ABSENT {
                self.take_out(place as usize);
            }
        }
    }

    /// A deadline by which to look again: the earliest, or earlier.
    #[inline]
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.deadline)
    }

    /// A slot whose deadline has come; it is scheduled no more.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Entry { deadline, slot }) = self.heap.first() {
            if deadline > now {
                break;
            }
            let wanted = self.slots[slot as usize].wanted;
            if wanted <= now {
                self.take_out(0);
                return Some(slot);
            }
            if wanted == Instant::MAX {
                self.take_out(0);
            } else {
                self.heap[0].deadline = wanted;
                self.sink(0);
            }
        }
        None
    }

    fn take_out(&mut self, place: usize) {
        let gone = self.heap.swap_remove(place);
        self.slots[gone.slot as usize].place = ABSENT;
        if place < self.heap.len() {
            self.note(place);
            self.rise(place);
            self.sink(place);
        }
    }

    fn note(&mut self, place: usize) {
        self.slots[self.heap[place].slot as usize].place = place as u32;
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= self.heap[place] {
                break;
            }
            self.heap.swap(parent, place);
            self.note(place);
            place = parent;
        }
        self.note(place);
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(mut least) = self.heap.get(left).map(|_| left) else { break };
            if self.heap.get(left + 1).is_some_and(|right| *right < self.heap[left]) {
                least = left + 1;
            }
            if self.heap[place] <= self.heap[least] {
                break;
            }
            self.heap.swap(place, least);
            self.note(place);
            place = least;
        }
        self.note(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a table: every slot comes due exactly at its latest deadline, and never is one missed.
        #[test]
        fn nothing_is_due_early_or_late(steps in proptest::collection::vec((0_u32..8, 0_u64..50, 0_u8..10), 1..200)) {
            let (mut timers, mut model) = (Timers::default(), [None::<u64>; 8]);
            let mut now = 0;
            for (slot, after, kind) in steps {
                match kind {
                    0 => { timers.cancel(slot); model[slot as usize] = None; }
                    1 => { timers.schedule(slot, Instant::MAX); model[slot as usize] = None; }
                    2..=5 => {
                        timers.schedule(slot, Instant::from_nanos(now + after));
                        model[slot as usize] = Some(now + after);
                    }
                    _ => {
                        now += after;
                        let mut due = Vec::new();
                        while let Some(slot) = timers.pop_due(Instant::from_nanos(now)) { due.push(slot); }
                        due.sort_unstable();
                        let expected: Vec<u32> =
                            (0..8).filter(|&s| model[s as usize].is_some_and(|at| at <= now)).collect();
                        for &slot in &expected { model[slot as usize] = None; }
                        prop_assert_eq!(due, expected);
                    }
                }
                let earliest = model.iter().flatten().min();
                if let Some(&earliest) = earliest {
                    prop_assert!(timers.earliest().is_some_and(|at| at <= Instant::from_nanos(earliest)));
                }
            }
        }
    }
}
