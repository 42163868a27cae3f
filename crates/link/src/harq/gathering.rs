//! Fragments that wait for others of their block.

use std::collections::BTreeMap;

use base::code::reed_solomon::MAX_FRAMES;

use crate::MAX_PACKET;
use crate::arq::sequence::{self, SPACE};
use crate::endpoint::Discard;

use super::code::Partial;

/// A block whose fragments are there, and whether it took the code to make it.
pub(super) type Block = (Vec<u8>, bool);

/// Whether a block of `data` fragments as long as this one is none that a sender makes.
fn is_too_long(fragment: &[u8], data: usize) -> bool {
    fragment.len() * data > MAX_PACKET + MAX_FRAMES
}

/// Blocks that may be sent again, from the first that is missing on.
///
/// **Bounds**, whatever the peer sends: they take [`HELD_LIMIT`] bytes of memory, notes included. Of more the last blocks go, which are sent
/// again; the first that is missing stays, so the window moves on. A fragment costs a search among them; a block that is whole takes as many
/// multiples of each byte that came as it has fragments of data missing, 63 at most.
#[derive(Debug, Default)]
pub(super) struct Window {
    blocks: BTreeMap<u64, Sent>,
    /// Bytes of memory that they take.
    bytes: usize,
    /// How many they may take, if that is less than [`HELD_LIMIT`].
    limit: Option<usize>,
    evicted: u64,
}

#[derive(Debug, Default)]
struct Sent {
    /// Which transmission the fragments are of, the latest of them where transmissions are combined.
    serial: u32,
    partial: Partial,
}

impl Window {
    /// Takes a fragment of the block `number`, which is missing; the block, if that makes it whole. Unless transmissions are combined, the
    /// fragments of an earlier one are dropped.
    pub(super) fn add(
        &mut self,
        number: u64,
        (serial, index): (u32, u8),
        fragment: &[u8],
        (data, combine): (usize, bool),
    ) -> Result<Option<Block>, Discard> {
        if is_too_long(fragment, data) {
            return Err(Discard::Malformed);
        }
        let sent = self.blocks.entry(number).or_insert_with(|| {
            self.bytes += NOTES;
            Sent { serial, partial: Partial::default() }
        });
        if sent.serial != serial {
            let is_earlier = sequence::ahead(sent.serial.into(), serial).is_none();
            if !combine && is_earlier {
                return Err(Discard::Late(serial.into()));
            }
            if !combine {
                self.bytes -= sent.partial.memory();
                sent.partial = Partial::default();
            }
            sent.serial = if is_earlier { sent.serial } else { serial };
        }
        if sent.partial.knows(index) {
            return Err(Discard::Duplicate(number));
        }
        let before = sent.partial.memory();
        if !sent.partial.add(index, fragment) {
            return Err(Discard::Malformed);
        }
        let held = sent.partial.memory();
        self.bytes = self.bytes + held - before;
        if let Some(block) = sent.partial.take(data) {
            self.blocks.remove(&number);
            self.bytes -= held + NOTES;
            return Ok(Some(block));
        }
        self.evict();
        Ok(None)
    }

    /// Bytes of memory that they take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }

    /// They may take so many bytes from now on; of more the last go.
    pub(super) fn limit_memory(&mut self, bytes: usize) {
        self.limit = Some(bytes.min(HELD_LIMIT));
        self.evict();
    }

    /// Makes room at the far end: the first block that is missing is the one that others wait for.
    fn evict(&mut self) {
        while self.bytes > self.limit.unwrap_or(HELD_LIMIT)
            && self.blocks.len() > 1
            && let Some((_, sent)) = self.blocks.pop_last()
        {
            self.bytes -= sent.partial.memory() + NOTES;
            self.evicted += 1;
        }
    }

    /// Drops the blocks before `number`, for which nobody waits any more.
    pub(super) fn forget_before(&mut self, number: u64) {
        while let Some(entry) = self.blocks.first_entry()
            && *entry.key() < number
        {
            self.bytes -= entry.remove().partial.memory() + NOTES;
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.bytes == 0
    }

    /// Forgets all fragments.
    pub(super) fn reset(&mut self) {
        *self = Self { evicted: self.evicted, limit: self.limit, ..Self::default() };
    }

    /// Blocks of which fragments were dropped for want of room.
    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }
}

/// Bytes of memory that fragments that wait take at most. Ours: a quarter of the blocks of 1 Gbit/s over 600 ms are missing at the rate of loss
/// that the code is made for, which are 19 MB, in buffers that may be twice as long.
const HELD_LIMIT: usize = 64 << 20;

/// Bytes of notes about a block.
const NOTES: usize = 128;

/// The latest blocks that are sent once: [`KEPT`] of them, of the longest packet each, and so 4.4 MB of memory at most.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// By their numbers modulo [`KEPT`].
    slots: Vec<Slot>,
    /// Bytes of memory that their fragments take.
    bytes: usize,
    /// The latest; `None` before the first.
    latest: Option<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    number: u32,
    is_whole: bool,
    partial: Partial,
}

impl Recent {
    /// Takes a fragment; the block, if that makes it whole. Nothing happens where it was.
    pub(super) fn add(
        &mut self,
        number: u32,
        index: u8,
        fragment: &[u8],
        data: usize,
    ) -> Result<Option<Block>, Discard> {
        if is_too_long(fragment, data) {
            return Err(Discard::Malformed);
        }
        let behind = self.latest.map_or(SPACE - 1, |latest| sequence::beyond(number.into(), latest));
        if (KEPT..LATE).contains(&behind) {
            return Err(Discard::Late(number.into()));
        }
        if behind >= LATE {
            self.latest = Some(number);
        }
        self.slots.resize_with(KEPT as usize, Slot::default);
        let slot = &mut self.slots[number as usize % KEPT as usize];
        if slot.number != number {
            self.bytes -= slot.partial.memory();
            *slot = Slot { number, ..Slot::default() };
        }
        if slot.partial.knows(index) {
            return Err(Discard::Duplicate(number.into()));
        }
        if slot.is_whole {
            return Ok(None);
        }
        let before = slot.partial.memory();
        if !slot.partial.add(index, fragment) {
            return Err(Discard::Malformed);
        }
        let block = slot.partial.take(data);
        slot.is_whole = block.is_some();
        self.bytes = self.bytes + slot.partial.memory() - before;
        Ok(block)
    }

    /// Bytes of memory that the fragments take.
    pub(super) const fn memory(&self) -> usize {
        self.bytes
    }

    /// Forgets all blocks.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Blocks that are sent once and may be in the making at a time. Ours: a carrier reorders over a few, and so many
/// [`unreliable::Receiver`](crate::unreliable::Receiver) tells from a gap. A divisor of the number of numbers.
const KEPT: u64 = 32;

/// A number so little behind the latest is a late block's. Ours: see the same constant there.
const LATE: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: usize = 2;
    /// A whole packet without padding.
    const FRAGMENT: [u8; 4] = [0xc0; 4];

    #[test]
    fn an_earlier_sending_is_too_late_unless_transmissions_are_combined() {
        for combine in [false, true] {
            let mut window = Window::default();
            let mut add = |serial, index| window.add(7, (serial, index), &FRAGMENT, (DATA, combine));
            assert_eq!(add(5, 0), Ok(None));
            let (earlier, later) = (add(4, 1), add(5, 1));
            if combine {
                assert!(earlier.is_ok_and(|block| block.is_some()));
            } else {
                assert_eq!(earlier, Err(Discard::Late(4)));
                assert!(later.is_ok_and(|block| block.is_some()));
                assert!(window.is_empty());
            }
        }
        // A later one replaces what has come, across the end of the numbers too.
        let mut window = Window::default();
        let mut add = |serial, index| window.add(7, (serial, index), &FRAGMENT, (DATA, false));
        assert_eq!((add(0xff_ffff, 0), add(0, 1)), (Ok(None), Ok(None)));
        assert!(add(0, 0).is_ok_and(|block| block.is_some()));
    }

    #[test]
    fn what_is_late_is_told_from_what_is_far_ahead() {
        let mut recent = Recent::default();
        let mut add = |number: u64, index| recent.add((number % SPACE) as u32, index, &FRAGMENT, DATA);
        // Blocks in the making side by side, as many as are kept, and from the first number on.
        let first = SPACE - 20;
        for index in 0..2 {
            for number in first..first + KEPT {
                assert_eq!(add(number, index).unwrap().is_some(), index == 1, "{number}");
            }
        }
        let latest = first + KEPT - 1;
        assert_eq!(add(latest, 1), Err(Discard::Duplicate(latest % SPACE)));
        assert_eq!(add(latest, 2), Ok(None), "nothing is needed any more");
        for behind in [KEPT, 100, LATE - 1] {
            assert_eq!(add(latest - behind, 0), Err(Discard::Late((latest - behind) % SPACE)));
        }
        // An outage may be as long as it likes.
        for ahead in [100, SPACE / 2, SPACE - LATE - 1] {
            let mut recent = Recent::default();
            let mut add = |number: u64, index| recent.add((number % SPACE) as u32, index, &FRAGMENT, DATA);
            assert_eq!((add(3, 0), add(3 + ahead, 0)), (Ok(None), Ok(None)));
            assert!(add(3 + ahead, 1).unwrap().is_some(), "{ahead}");
        }
    }
}
