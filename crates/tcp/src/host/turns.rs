//! Turns of a host's connections: deficit round robin (Shreedhar and Varghese, "Efficient Fair Queueing Using Deficit Round
//! Robin", 1995), so that none sends its whole window while others wait.
//!
//! A packet costs a constant number of steps, however many connections wait. Where newcomers go first, one that had nothing
//! to send has a turn before those that always have (RFC 8290, 4.2): sparse flows do not wait behind bulk.

use std::collections::VecDeque;

/// The slots that may have something to send, each at most once, and the bytes that each may send in its turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    queue: VecDeque<u32>,
    /// Those that have just begun, where newcomers go first.
    newcomers: VecDeque<u32>,
    newcomers_first: bool,
    /// By slot: what is left of its turn, below zero if its last packet was longer; [`ABSENT`] if it does not wait.
    credit: Vec<i32>,
}

/// Bytes of a turn: two packets of Ethernet's size, as in Linux's `fq`.
const QUANTUM: i32 = 3000;
const ABSENT: i32 = i32::MIN;

impl Turns {
    /// The slot may have something to send; one that waits already keeps its place.
    pub(super) fn join(&mut self, slot: u32) {
        let at = slot as usize;
        if at >= self.credit.len() {
            self.credit.resize(at + 1, ABSENT);
        }
        if self.credit[at] == ABSENT {
            self.credit[at] = QUANTUM;
            let queue = if self.newcomers_first { &mut self.newcomers } else { &mut self.queue };
            queue.push_back(slot);
        }
    }

    /// Whether anybody waits.
    pub(super) fn is_someones(&self) -> bool {
        self.front().is_some()
    }

    /// All that wait, those first whose turn is next.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.newcomers.iter().chain(&self.queue).copied()
    }

    /// Who begins has its first turn before all others.
    pub(super) const fn let_newcomers_first(&mut self) {
        self.newcomers_first = true;
    }

    /// Whose turn it is.
    pub(super) fn current(&mut self) -> Option<u32> {
        while let Some(&slot) = self.newcomers.front() {
            let credit = &mut self.credit[slot as usize];
            if *credit > 0 {
                return Some(slot);
            }
            *credit += QUANTUM;
            self.newcomers.pop_front();
            self.queue.push_back(slot);
        }
        loop {
            let &slot = self.queue.front()?;
            let credit = &mut self.credit[slot as usize];
            if *credit > 0 {
                return Some(slot);
            }
            *credit += QUANTUM;
            self.queue.rotate_left(1);
        }
    }

    /// The current one sent a packet of `len` bytes.
    pub(super) fn note_sent(&mut self, len: usize) {
        if let Some(&slot) = self.front() {
            self.credit[slot as usize] -= len as i32;
        }
    }

    /// The current one has nothing more to send.
    pub(super) fn leave(&mut self) {
        if let Some(slot) = self.newcomers.pop_front() {
            if self.queue.is_empty() {
                self.credit[slot as usize] = ABSENT;
            } else {
                // RFC 8290 (4.2): through the others' round first, lest it come back as a newcomer at once.
                self.queue.push_back(slot);
            }
        } else if let Some(slot) = self.queue.pop_front() {
            self.credit[slot as usize] = ABSENT;
        }
    }

    fn front(&self) -> Option<&u32> {
        self.newcomers.front().or(self.queue.front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shreedhar and Varghese 1995: whatever the sizes of their packets, those that always have something to send get the
    /// same number of bytes, up to a quantum and a packet.
    #[test]
    fn bytes_are_shared_equally() {
        let sizes = [1500, 40, 700, 9000];
        let (mut turns, mut sent) = (Turns::default(), [0; 4]);
        (0..4).for_each(|slot| turns.join(slot));
        for _ in 0..50_000 {
            let slot = turns.current().unwrap() as usize;
            turns.note_sent(sizes[slot]);
            sent[slot] += sizes[slot];
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least <= 3 * (QUANTUM as usize) + 9000, "{sent:?}");
        }
    }

    /// RFC 8290 (4.2): who begins goes before those that always send, for one turn; from then on it gets what they get.
    #[test]
    fn a_newcomer_goes_first_and_then_has_its_share() {
        let (mut turns, mut sent) = (Turns::default(), [0; 2]);
        turns.let_newcomers_first();
        turns.join(0);
        for _ in 0..8 {
            assert_eq!(turns.current(), Some(0));
            turns.note_sent(1400);
        }
        turns.join(1);
        assert_eq!(turns.current(), Some(1), "sparse flows wait behind bulk");
        for _ in 0..10_000 {
            let slot = turns.current().unwrap() as usize;
            turns.note_sent(1400);
            sent[slot] += 1400_i32;
            let ahead = sent[1] - sent[0];
            assert!(
                (0..3 * QUANTUM).contains(&ahead) || sent[0] == 0,
                "one waits for turns of the other: {sent:?}"
            );
        }
    }

    /// Who leaves begins anew behind the others, and gets nothing twice.
    #[test]
    fn joining_twice_is_joining_once() {
        let mut turns = Turns::default();
        for slot in [3, 1, 3, 1] {
            turns.join(slot);
        }
        turns.note_sent(1000);
        assert_eq!(turns.current(), Some(3));
        turns.leave();
        assert_eq!(turns.current(), Some(1));
        turns.join(3);
        turns.leave();
        assert_eq!(turns.current(), Some(3));
        turns.leave();
        assert_eq!(turns.current(), None);
    }
}
